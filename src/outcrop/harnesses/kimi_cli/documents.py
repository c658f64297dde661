"""The small documents beside Kimi's sessions, which give facts alone: `state.json`, and `meta.json` of an agent.

Only the named fields are taken: approvals, goals and directories stand next to them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from outcrop.harnesses import SourceFile
from outcrop.harnesses.kimi_cli import AGENT_META, CODE_STATE
from outcrop.harnesses.kimi_cli.values import mapping, string, time_ms
from outcrop.model import Fact, Item, Parsed, Relation

_NO_TITLE = frozenset({"Untitled", "New Session", "Imported session"})


class DocumentReader:
    """The `Reader` of one such document."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file

    @property
    def session(self) -> str | None:
        return self._file.native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        if self._file.role == AGENT_META:
            items = self._agent(record)
        elif self._file.role == CODE_STATE:
            items = self._code(record)
        else:
            title = string(record, "custom_title").strip()
            made = record.get("title_generated") is True
            items = [Fact("title.generated" if made else "title.user", title)] if title else []
        return Parsed(self._file.role, items, None if items else "says nothing")

    def _agent(self, record: dict[str, Any]) -> list[Item]:
        items: list[Item] = [Fact("parent", self._file.parent), Fact("relation", Relation.SUBAGENT)]
        for fact, value in (("agent", "subagent_type"), ("summary", "description")):
            if found := string(record, value):
                items.append(Fact(fact, found))
        return items

    def _code(self, record: dict[str, Any]) -> list[Item]:
        native = self._file.native or ""
        items: list[Item] = []
        title = string(record, "title").strip()
        if title and title not in _NO_TITLE:
            items.append(Fact("title.user" if record.get("isCustomTitle") is True else "title.generated", title))
        # Of a session that was taken over it is the moment of its last change.
        created = _moment(record.get("createdAt"))
        if created is not None and not mapping(record, "custom").get("imported_from_kimi_cli"):
            items.append(Fact("created", created))
        if forked := string(record, "forkedFrom"):
            items += [Fact("parent", forked), Fact("relation", Relation.FORK)]
        for id, agent in mapping(record, "agents").items():
            if id != "main" and isinstance(agent, dict) and (item := string(agent, "swarmItem", "name")):
                items.append(Fact("agent", item, session=f"{native}/{id}"))
        return items


def _moment(value: Any) -> int | None:
    """UTC ms of a date in text that names its zone, or of a number."""
    if not isinstance(value, str):
        return time_ms(value)
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return int(parsed.timestamp() * 1000) if parsed.tzinfo is not None else None
