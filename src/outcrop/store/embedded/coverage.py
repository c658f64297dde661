"""How much of the history can be searched: everything but what still waits for the text index (ruling 23)."""

from __future__ import annotations

import sqlite3

TRICKLE = 1_000
"""So many stale documents are a live store, not a partial one."""


def coverage(connection: sqlite3.Connection) -> float | None:
    """The share of the history that is searchable, or None where that is all of it (but for a live trickle)."""
    pending = int(
        connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM text_todo WHERE class < 2 LIMIT ?)", (TRICKLE + 1,)
        ).fetchone()[0]
    )
    first = connection.execute("SELECT v FROM meta WHERE k = 'first_build'").fetchone()
    if pending <= TRICKLE and not (first and first[0] == "running"):
        return None
    total = int(connection.execute("SELECT count(*) FROM event").fetchone()[0])
    if pending > TRICKLE:
        pending = int(connection.execute("SELECT count(DISTINCT doc) FROM text_todo WHERE class < 2").fetchone()[0])
    return max(0.0, 1 - pending / total) if total else 0.0
