"""The small documents beside Kimi's sessions, which give facts alone: `state.json`, and `meta.json` of an agent.

Only the named fields are taken: approvals, goals and directories stand next to them.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.documents import FactsReader
from outcrop.harnesses.json_values import object_of
from outcrop.harnesses.kimi_cli import AGENT_META, CODE_STATE
from outcrop.harnesses.kimi_cli.values import string, time_ms
from outcrop.harnesses.moments import iso_ms
from outcrop.model import Fact, Item, Relation

_NO_TITLE = frozenset({"Untitled", "New Session", "Imported session"})


class DocumentReader(FactsReader):
    """The `Reader` of one such document."""

    def facts(self, record: dict[str, Any]) -> list[Item]:
        if self.file.role == AGENT_META:
            return self._agent(record)
        if self.file.role == CODE_STATE:
            return self._code(record)
        title = string(record, "custom_title").strip()
        made = record.get("title_generated") is True
        return [Fact("title.generated" if made else "title.user", title)] if title else []

    def _agent(self, record: dict[str, Any]) -> list[Item]:
        items: list[Item] = [Fact("parent", self.file.parent), Fact("relation", Relation.SUBAGENT)]
        for fact, value in (("agent", "subagent_type"), ("summary", "description")):
            if found := string(record, value):
                items.append(Fact(fact, found))
        return items

    def _code(self, record: dict[str, Any]) -> list[Item]:
        native = self.file.native or ""
        items: list[Item] = []
        title = string(record, "title").strip()
        if title and title not in _NO_TITLE:
            items.append(Fact("title.user" if record.get("isCustomTitle") is True else "title.generated", title))
        # Of a session that was taken over it is the moment of its last change.
        stamp = record.get("createdAt")
        created = iso_ms(stamp, whole=int) if isinstance(stamp, str) else time_ms(stamp)
        if created is not None and not object_of(record, "custom").get("imported_from_kimi_cli"):
            items.append(Fact("created", created))
        if forked := string(record, "forkedFrom"):
            items += [Fact("parent", forked), Fact("relation", Relation.FORK)]
        for id, agent in object_of(record, "agents").items():
            if id != "main" and isinstance(agent, dict) and (item := string(agent, "swarmItem", "name")):
                items.append(Fact("agent", item, session=f"{native}/{id}"))
        return items
