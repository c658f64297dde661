"""The small documents beside Claude Code's transcripts, which give facts alone.

`agent-<id>.meta.json` says what kind of agent a file is of; `local_<uuid>.json` is the desktop program's session, whose
title people see and change. Only the named fields are taken: accounts and settings stand next to them.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.claude_code import AGENT_META
from outcrop.harnesses.documents import FactsReader
from outcrop.model import Fact, Item, Relation

_AGENT_FACTS = {"agentType": "agent", "name": "agent", "description": "summary"}


class DocumentReader(FactsReader):
    """The `Reader` of one such document; the file's role says which of the two it is."""

    def facts(self, record: dict[str, Any]) -> list[Item]:
        if self.file.role == AGENT_META:
            return self._parentage() + _facts(record, _AGENT_FACTS, str)
        return _facts(record, {"title": "title.user"}, str) + _facts(record, {"createdAt": "created"}, int)

    def _parentage(self) -> list[Item]:
        return [Fact("parent", self.file.parent), Fact("relation", Relation.SUBAGENT)] if self.file.parent else []


def _facts(record: dict[str, Any], names: dict[str, str], kind: type) -> list[Item]:
    found = ((fact, record.get(name)) for name, fact in names.items())
    return [Fact(fact, value) for fact, value in found if value and isinstance(value, kind) and value is not True]
