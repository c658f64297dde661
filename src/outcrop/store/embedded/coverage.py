"""How much of the history can be searched: everything but what still waits for the text index (ruling 23).

While an index serves and its successor is built, what the successor alone still lacks is missing from no answer.
"""

from __future__ import annotations

import sqlite3

TRICKLE = 1_000
"""So many stale documents are a live store, not a partial one."""

_META = "SELECT k, v FROM meta WHERE k IN ('first_build', 'text_dir', 'text_next', 'text_from', 'text_to')"
_WAITING = """SELECT doc FROM text_todo WHERE seq <= :from AND class < 2
    UNION ALL SELECT doc FROM text_todo WHERE seq > :to AND class < 2"""


def coverage(connection: sqlite3.Connection) -> float | None:
    """The share of the history that is searchable, or None where that is all of it (but for a live trickle)."""
    meta = dict(connection.execute(_META))
    replaced = meta.get("text_dir") and meta.get("text_next")
    rebuild = {"from": meta["text_from"], "to": meta["text_to"]} if replaced else {"from": 0, "to": 0}

    def count(what: str, limit: int) -> int:
        told = connection.execute(f"SELECT count({what}) FROM ({_WAITING} LIMIT {limit})", rebuild).fetchone()
        return int(told[0])

    pending = count("*", TRICKLE + 1)
    if pending <= TRICKLE and meta.get("first_build") != "running":
        return None
    total = int(connection.execute("SELECT count(*) FROM event").fetchone()[0])
    if pending > TRICKLE:
        pending = count("DISTINCT doc", -1)
    return max(0.0, 1 - pending / total) if total else 0.0


def extent(connection: sqlite3.Connection, admitted: frozenset[int] | None) -> tuple[int, int]:
    """(events, sessions) that are stored, of the sessions that the caller is held to; None: all."""
    rows = connection.execute("SELECT id, event_count FROM session WHERE event_count > 0")
    counts = [count for id, count in rows if admitted is None or id in admitted]
    return sum(counts), len(counts)
