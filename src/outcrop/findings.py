"""What a check of the installation found: in words that a stranger may read, and apart from them what is private."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is broken."""
    FAILED = "failed"


class Repair(StrEnum):
    """What can be done about a finding without a question, in the order in which it is done."""

    PLACES = "places"
    SOCKET = "socket"
    PERMISSIONS = "permissions"
    DATABASE = "database"
    LEFTOVERS = "leftovers"
    TEXT = "text"


@dataclass(slots=True, frozen=True)
class Finding:
    """One thing that was checked. `what` it is, what that `means`, what to `do`: never a path, a title or a text.

    `facts` are numbers and words for a report, as free of them. `details` are private: paths and reasons with them.
    """

    check: str
    level: Level
    what: str
    means: str = ""
    do: str = ""
    facts: dict[str, int | str] = field(default_factory=dict)
    details: tuple[str, ...] = ()
    repair: Repair | None = None


def ok(check: str, what: str, **facts: int | str) -> Finding:
    return Finding(check, Level.OK, what, facts=facts)
