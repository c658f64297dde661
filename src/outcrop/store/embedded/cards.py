"""What session search reads of the rows: which sessions are searched, what a hit shows of them, where their files are.

A subagent whose parent is stored is no session of its own here, and neither is one that a harness ran for itself:
nobody can resume them, and they would hide the session that they belong to. Their events are found over MCP.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from outcrop.model import Relation
from outcrop.store.embedded import state

_SHOWN = f"""s.event_count > 0 AND NOT s.machine AND NOT (s.relation IS '{Relation.SUBAGENT}'
    AND EXISTS (SELECT 1 FROM session p WHERE p.uid = s.parent AND p.event_count > 0))"""
_CARD = "s.id, s.uid, s.harness, s.source, s.native, s.title, s.first_prompt, s.updated, s.messages, s.opening, s.head"
_AT_ONCE = 500


class Card(NamedTuple):
    """A session as a list shows and orders it. `updated` in UTC ms; `opening`: see `text_rows`."""

    id: int
    uid: bytes
    harness: str
    source: str
    native: str
    title: str | None
    first_prompt: str | None
    updated: int
    messages: int
    opening: bytes | None
    head: bytes | None


class Presence(StrEnum):
    """Whether the file that a session was read from is there, as far as the last pass saw."""

    PRESENT = "present"
    UNVERIFIABLE = "unverifiable"
    MISSING = "missing"


class Origin(NamedTuple):
    """Where a session was read from. `path` None: no file is recorded."""

    presence: Presence
    path: str | None


class Where(NamedTuple):
    """Where a session ran: the directory that it started in and the branch that it was on last, where recorded."""

    cwd: str | None
    branch: str | None


def cards(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, Card]:
    """Those of the sessions that are searched."""
    return {
        row[0]: Card._make(row)
        for row in _many(db, f"SELECT {_CARD} FROM session s WHERE s.id IN ({{}}) AND {_SHOWN}", ids)
    }


def newest(db: sqlite3.Connection) -> Iterator[int]:
    """All sessions, the last used first, those without a time at the end."""
    for row in db.execute("SELECT id FROM session WHERE event_count > 0 ORDER BY updated DESC, uid DESC"):
        yield row[0]


def admitted(
    db: sqlite3.Connection, harnesses: Sequence[tuple[str, str | None]], since: int | None, cwds: Collection[str] | None
) -> set[int]:
    """Ids of the sessions of one of the (harness, source) pairs, used at `since` or later, that ran in one of `cwds`.

    Empty `harnesses`, `since` None, `cwds` None: no restriction. Source None: any.
    """
    clauses = ["event_count > 0"]
    values: list[str | int] = []
    if harnesses:
        ways = []
        for harness, source in harnesses:
            ways.append("harness = ?" if source is None else "harness = ? AND source = ?")
            values += [harness] if source is None else [harness, source]
        clauses.append(f"({' OR '.join(ways)})")
    if since is not None:
        clauses.append("updated >= ?")
        values.append(since)
    sql = f"SELECT id FROM session WHERE {' AND '.join(clauses)}"
    if cwds is None:
        return {row[0] for row in db.execute(sql, values)}
    ran = {row[0] for row in _many(db, "SELECT session FROM place WHERE cwd IN ({})", cwds)}
    if len(ran) <= _AT_ONCE:
        return {row[0] for row in db.execute(f"{sql} AND id IN ({','.join('?' * len(ran))})", [*values, *ran])}
    return ran & {row[0] for row in db.execute(sql, values)}


def count(db: sqlite3.Connection) -> int:
    """How many sessions there are, about: those that were erased count too."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM session").fetchone()[0])


def directories(db: sqlite3.Connection) -> list[str]:
    """Every working directory that any session recorded."""
    return [row[0] for row in db.execute("SELECT DISTINCT cwd FROM place")]


def directories_of(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, list[str]]:
    """The working directories of each session, the one that it started in first."""
    found: dict[int, list[str]] = {}
    for session, cwd in _many(db, "SELECT session, cwd FROM place WHERE session IN ({}) ORDER BY id", ids):
        found.setdefault(session, []).append(cwd)
    return found


def places(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, Where]:
    found: dict[int, Where] = {}
    rows = _many(db, "SELECT session, cwd, branch FROM place WHERE session IN ({}) ORDER BY id", ids)
    for session, cwd, branch in rows:
        first = found.get(session)
        found[session] = Where(first.cwd if first else cwd or None, branch or (first.branch if first else None))
    return found


def origins(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, Origin]:
    """Of several files of a session the one that is there counts, then the first."""
    found: dict[int, Origin] = {}
    roots = db.execute("SELECT v FROM meta WHERE k = 'roots'").fetchone()
    degraded = [root for root, _ in state.degraded(roots[0] if roots else None)]
    first = """SELECT s.id, s.files, f.path, f.missing, f.problem FROM session s JOIN file f ON f.id = s.file
        WHERE s.id IN ({})"""
    several: list[int] = []
    for id, files, path, missing, problem in _many(db, first, ids):
        found[id] = _origin(path, missing, problem, degraded)
        if files and found[id].presence is not Presence.PRESENT:
            several.append(id)
    every = """SELECT DISTINCT t.session, f.path, f.missing, f.problem FROM turn t JOIN file f ON f.id = t.file
        WHERE t.session IN ({}) ORDER BY f.id"""
    for id, path, missing, problem in _many(db, every, several):
        other = _origin(path, missing, problem, degraded)
        if other.presence is Presence.PRESENT and found[id].presence is not Presence.PRESENT:
            found[id] = other
    return {id: found.get(id, Origin(Presence.UNVERIFIABLE, None)) for id in ids}


def _origin(path: str, missing: int, problem: str | None, degraded: Sequence[str]) -> Origin:
    if missing:
        return Origin(Presence.MISSING, path)
    unsure = problem is not None or any(path.startswith(root) for root in degraded)
    return Origin(Presence.UNVERIFIABLE if unsure else Presence.PRESENT, path)


class Home(NamedTuple):
    """Where a session started. `worktree` and `common_dir` as Git knew them when it was read."""

    cwd: str | None = None
    branch: str | None = None
    worktree: str | None = None
    common_dir: str | None = None


def home(db: sqlite3.Connection, session: int) -> Home:
    row = db.execute(
        "SELECT cwd, branch, worktree, common_dir FROM place WHERE session = ? ORDER BY id LIMIT 1", (session,)
    ).fetchone()
    return Home(*(value or None for value in row)) if row else Home()


def by_uid(db: sqlite3.Connection, uid: bytes) -> list[Card]:
    return _of(db, "s.uid = ?", uid)


def by_native(db: sqlite3.Connection, native: str) -> list[Card]:
    """Sessions with this own id: several harnesses may use one."""
    return _of(db, "s.native = ?", native)


def beginning(db: sqlite3.Connection, text: str) -> list[Card]:
    """Up to ten sessions whose own id begins so."""
    return _of(db, "substr(s.native, 1, length(?1)) = ?1", text)


def _of(db: sqlite3.Connection, clause: str, value: str | bytes) -> list[Card]:
    rows = db.execute(f"SELECT {_CARD} FROM session s WHERE {clause} AND s.event_count > 0 LIMIT 10", (value,))
    return [Card._make(row) for row in rows]


def transcripts(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, str]:
    """The path of each session's first file."""
    return dict(_many(db, "SELECT s.id, f.path FROM session s JOIN file f ON f.id = s.file WHERE s.id IN ({})", ids))


def _many(db: sqlite3.Connection, sql: str, values: Iterable[int] | Iterable[str]) -> list[tuple]:  # type: ignore[type-arg]
    wanted = list(values)
    found: list[tuple] = []  # type: ignore[type-arg]
    for start in range(0, len(wanted), _AT_ONCE):
        piece = wanted[start : start + _AT_ONCE]
        found += db.execute(sql.format(",".join("?" * len(piece))), piece)
    return found
