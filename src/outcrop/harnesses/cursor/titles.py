"""What stands about Cursor conversations elsewhere: sidecars of chats, chat stores, generated summaries. Facts alone.

Only the named fields are taken: a key for encrypted contents stands next to them.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.cursor.values import moment, string
from outcrop.harnesses.documents import FactsReader
from outcrop.model import Fact, Item

UNTITLED = frozenset({"new agent", "new chat", "untitled", "untitled session"})
"""What Cursor calls a conversation before it has a title."""


class TitleReader(FactsReader):
    """The `Reader` of such a record; the session is that of the folder, or the one that the record names."""

    kind = "title"

    def facts(self, record: dict[str, Any]) -> list[Item]:
        items: list[Item] = []
        if (title := title_of(record.get("title"))) is not None:
            items.append(Fact("title.generated", title))
        if (summary := string(record.get("summary"))) is not None:
            items.append(Fact("summary", summary))
        created = moment(record.get("createdAtMs", record.get("created")))
        if created is not None:
            items.append(Fact("created", created))
        return items


def title_of(value: Any) -> str | None:
    title = string(value)
    return None if title is None or title.strip().lower() in UNTITLED else title.strip()
