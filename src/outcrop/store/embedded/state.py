"""How far the history is known, as its rows tell it: files, roots, passes ("Status, freshness, and availability")."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, NamedTuple


class State(NamedTuple):
    """Counts of files; roots that could not be looked through, as (root, reason); UTC ms of the last whole pass."""

    indexed: int
    due: int
    failed: int
    degraded: tuple[tuple[str, str], ...]
    last_pass: int | None
    building: bool

    @property
    def phase(self) -> str:
        """idle, indexing, degraded or current."""
        if self.last_pass is None and not self.building:
            return "idle"
        if self.degraded or self.failed:
            return "degraded"
        return "indexing" if self.building or self.due else "current"


def state(db: sqlite3.Connection) -> State:
    meta: dict[str, Any] = dict(db.execute("SELECT k, v FROM meta WHERE k IN ('roots', 'last_pass', 'first_build')"))
    indexed, due, failed = db.execute(
        "SELECT coalesce(sum(problem IS NULL AND adapter_version > 0), 0),"
        " coalesce(sum(problem IS NULL AND adapter_version = 0), 0), coalesce(sum(problem IS NOT NULL), 0)"
        " FROM file WHERE NOT missing"
    ).fetchone()
    last_pass = meta.get("last_pass")
    return State(
        indexed,
        due,
        failed,
        degraded(meta.get("roots")),
        None if last_pass is None else int(last_pass),
        meta.get("first_build") == "running" and (last_pass is not None or indexed > 0),
    )


def degraded(roots: str | None) -> tuple[tuple[str, str], ...]:
    """(root, reason) of the roots, as `meta.roots` holds them, that could not be looked through."""
    return tuple((root["root"], root["problem"]) for root in json.loads(roots or "[]") if root["problem"])
