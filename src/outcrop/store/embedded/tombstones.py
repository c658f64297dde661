"""Tombstones: which sessions were forgotten, so that no reading brings them back.

A tombstone holds a session's identity, and the ids and origins of its own events: a fork or a resumed session that is
read later holds copies of them. Nothing that was said is kept. Only `outcrop forget --undo` lifts one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_TOMBSTONE = "id, uid, harness, source, native, at"


@dataclass(slots=True, frozen=True)
class Tombstone:
    """`at`: UTC ms of the forgetting."""

    id: int
    uid: bytes
    harness: str
    source: str
    native: str
    at: int


class Tombstones:
    """Statements of the one writer; those that change anything in its transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.uids: frozenset[bytes] = frozenset()
        """The forgotten sessions."""
        self.learn()

    def learn(self) -> None:
        self.uids = frozenset(row[0] for row in self._db.execute("SELECT uid FROM tombstone"))

    def origins_among(self, origins: Collection[bytes]) -> set[bytes]:
        """Those that are ids or origins of forgotten events."""
        found: set[bytes] = set()
        wanted = list(origins)
        for start in range(0, len(wanted), 500):
            piece = wanted[start : start + 500]
            marks = ",".join("?" * len(piece))
            found.update(
                row[0]
                for row in self._db.execute(f"SELECT origin FROM tombstone_origin WHERE origin IN ({marks})", piece)
            )
        return found

    def add(self, session: int, now: int, origins: Iterable[bytes]) -> None:
        """Put one on a session whose row still exists. `learn` when all are put."""
        added = self._db.execute(
            "INSERT INTO tombstone (uid, harness, source, native, at)"
            " SELECT uid, harness, source, native, ?2 FROM session WHERE id = ?1",
            (session, now),
        )
        self._db.executemany(
            "INSERT OR IGNORE INTO tombstone_origin VALUES (?, ?)", [(origin, added.lastrowid) for origin in origins]
        )

    def lift(self, uid: bytes) -> None:
        """Take one away. What was erased comes back only where it is read again."""
        self._db.execute(
            "DELETE FROM tombstone_origin WHERE tombstone IN (SELECT id FROM tombstone WHERE uid = ?)", (uid,)
        )
        self._db.execute("DELETE FROM tombstone WHERE uid = ?", (uid,))
        self.learn()


def of_session(db: sqlite3.Connection, uid: bytes) -> Tombstone | None:
    """The one on a session, if it was forgotten."""
    return _one(db, "uid = ?", uid)


def of_event(db: sqlite3.Connection, uid: bytes) -> Tombstone | None:
    """The one on the session that an erased event was of."""
    return _one(db, "id IN (SELECT tombstone FROM tombstone_origin WHERE origin = ?)", uid)


def all_tombstones(db: sqlite3.Connection) -> list[Tombstone]:
    """All of them, the newest first."""
    rows = db.execute(f"SELECT {_TOMBSTONE} FROM tombstone ORDER BY at DESC, id DESC")
    return [Tombstone(*row) for row in rows]


def _one(db: sqlite3.Connection, clause: str, value: bytes) -> Tombstone | None:
    row = db.execute(
        f"SELECT {_TOMBSTONE} FROM tombstone WHERE {clause} ORDER BY at DESC, id DESC", (value,)
    ).fetchone()
    return Tombstone(*row) if row else None
