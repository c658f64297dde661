"""The small documents beside Claude Code's transcripts, which give facts alone.

`agent-<id>.meta.json` says what kind of agent a file is of; `local_<uuid>.json` is the desktop program's session, whose
title people see and change. Only the named fields are taken: accounts and settings stand next to them.
"""

from __future__ import annotations

from typing import Any

from outcrop.model import Fact, Item, Parsed, Relation

_AGENT_FACTS = {"agentType": "agent", "name": "agent", "description": "summary"}


class DocumentReader:
    """The `Reader` of one such document; `role` says which of the two it is."""

    def __init__(self, role: str, native: str | None, parent: str | None) -> None:
        self._role = role
        self._native = native
        self._parent = parent

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        if self._role == "agent-meta":
            items = self._parentage() + _facts(record, _AGENT_FACTS, str)
        else:
            items = _facts(record, {"title": "title.user"}, str) + _facts(record, {"createdAt": "created"}, int)
        return Parsed(self._role, items, None if items else "says nothing")

    def _parentage(self) -> list[Item]:
        return [Fact("parent", self._parent), Fact("relation", Relation.SUBAGENT)] if self._parent else []


def _facts(record: dict[str, Any], names: dict[str, str], kind: type) -> list[Item]:
    found = ((fact, record.get(name)) for name, fact in names.items())
    return [Fact(fact, value) for fact, value in found if value and isinstance(value, kind) and value is not True]
