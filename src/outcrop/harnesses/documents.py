"""Small documents beside sessions that give facts alone: a title, a time of creation, whose child a session is.

Only the fields that a harness names are taken: accounts, settings and keys stand next to them.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses import SourceFile
from outcrop.model import Item, Parsed


class FactsReader:
    """The `Reader` of one such document, of the session that its place tells. It remembers nothing."""

    kind: str | None = None
    """What its records are called; else by the role of the file."""
    silent = "says nothing"
    """The reason where a document tells none of the facts."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    @property
    def session(self) -> str | None:
        return self.file.native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        items = self.facts(record)
        return Parsed(self.kind or self.file.role, items, None if items else self.silent)

    def facts(self, record: dict[str, Any]) -> list[Item]:
        """What the document tells."""
        raise NotImplementedError
