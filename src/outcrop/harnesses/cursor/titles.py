"""What stands about Cursor conversations elsewhere: sidecars of chats, chat stores, generated summaries. Facts alone.

Only the named fields are taken: a key for encrypted contents stands next to them.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.cursor.values import moment, string
from outcrop.model import Fact, Item, Parsed

UNTITLED = frozenset({"new agent", "new chat", "untitled", "untitled session"})
"""What Cursor calls a conversation before it has a title."""


class TitleReader:
    """The `Reader` of such a record; the session is that of the folder, or the one that the record names."""

    def __init__(self, native: str | None) -> None:
        self._native = native

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        items: list[Item] = []
        if (title := title_of(record.get("title"))) is not None:
            items.append(Fact("title.generated", title))
        if (summary := string(record.get("summary"))) is not None:
            items.append(Fact("summary", summary))
        created = moment(record.get("createdAtMs", record.get("created")))
        if created is not None:
            items.append(Fact("created", created))
        return Parsed("title", items, None if items else "says nothing")


def title_of(value: Any) -> str | None:
    title = string(value)
    return None if title is None or title.strip().lower() in UNTITLED else title.strip()
