"""Copied history: which session holds the original of an event, whatever the order of reading.

Forks, resumes and some subagents begin with history copied from another session. Copied events carry one origin (and
the same key) in every session that holds them. The original is the declared parent's event, else that of the session
with the earliest own start, then the smallest id (rulings, "Copies"). Decided again whenever either side arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from outcrop import ids
from outcrop.ingest.sessions import COPIED_HEAD
from outcrop.model import Relation
from outcrop.store.embedded import rows
from outcrop.store.embedded.write import Writer, text_class


@dataclass(slots=True)
class Arrived:
    """A new event, as far as copies matter."""

    uid: bytes
    key: str
    origin: bytes | None


@dataclass(slots=True)
class Holder:
    """One session's event of some shared history."""

    session: int
    id: int
    uid: bytes
    origin: bytes | None
    time: int
    flags: int
    kind: int


def decide(writer: Writer, session: int, arrived: Sequence[Arrived]) -> set[int]:
    """Find what the new events of a session share with others; the sessions in which a mark changed."""
    db = writer.db
    uid, head, parent = db.execute("SELECT uid, head, parent FROM session WHERE id = ?", (session,)).fetchone()
    if head is None:
        head = next((event.origin for event in arrived if event.origin is not None), None)
        if head is not None:
            db.execute("UPDATE session SET head = ? WHERE id = ?", (head, session))
    related = _related(writer, session, uid, head, parent)
    related |= _beginning_with(writer, session, (event.origin or event.uid for event in arrived))
    sharing = {other for other in related if _shares(writer, other, arrived)}
    if not sharing:
        return set()
    return decide_again(writer, session, sharing)


def decide_again(writer: Writer, session: int, others: Iterable[int] = ()) -> set[int]:
    """Judge all history that a session shares with the sessions related to it."""
    group: set[int] = {session, *others}
    waiting = list(group)
    while waiting:
        one = waiting.pop()
        uid, head, parent = writer.db.execute("SELECT uid, head, parent FROM session WHERE id = ?", (one,)).fetchone()
        new = _related(writer, one, uid, head, parent) - group
        group |= new
        waiting += new
    return _judge(writer, group)


def _related(writer: Writer, session: int, uid: bytes, head: bytes | None, parent: bytes | None) -> set[int]:
    """Sessions that may share history: the declared parent, those that begin alike, children that hold copies."""
    found = writer.db.execute(
        "SELECT id FROM session WHERE head = ?1 UNION SELECT id FROM session WHERE uid = ?2"
        " UNION SELECT id FROM session WHERE parent = ?3 AND copies > 0",
        (head, parent, uid),
    )
    return {row[0] for row in found} - {session}


def _beginning_with(writer: Writer, session: int, origins: Iterable[bytes]) -> set[int]:
    """Sessions whose history begins with one of these events."""
    found: set[int] = set()
    wanted = list(origins)
    for start in range(0, len(wanted), 500):
        piece = wanted[start : start + 500]
        found.update(
            row[0]
            for row in writer.db.execute(f"SELECT id FROM session WHERE head IN ({','.join('?' * len(piece))})", piece)
        )
    return found - {session}


def _shares(writer: Writer, other: int, arrived: Sequence[Arrived]) -> bool:
    uid = writer.db.execute("SELECT uid FROM session WHERE id = ?", (other,)).fetchone()[0]
    return bool(writer.known_events([ids.event_uid(uid, event.key) for event in arrived]))


def _judge(writer: Writer, group: set[int]) -> set[int]:
    db = writer.db
    sessions: dict[int, tuple[bytes, bytes | None, str | None]] = {}
    holders: list[Holder] = []
    for session in group:
        sessions[session] = db.execute("SELECT uid, parent, relation FROM session WHERE id = ?", (session,)).fetchone()
        holders += [
            Holder(session, *row)
            for row in db.execute(
                "SELECT id, uid, origin, time, flags, type FROM event"
                " WHERE turn IN (SELECT id FROM turn WHERE session = ?)",
                (session,),
            )
        ]
    origin_of = {holder.uid: holder.origin for holder in holders}
    shared: dict[bytes, list[Holder]] = {}
    roots: dict[int, bytes] = {}
    for holder in holders:
        root = roots[holder.id] = _root(origin_of, holder)
        shared.setdefault(root, []).append(holder)
    starts = _own_starts(holders, roots, shared)
    ancestors = {session: _ancestors(session, sessions) for session in group}
    changed: set[int] = set()
    updates: list[tuple[int, bytes | None, int]] = []
    stale: list[tuple[int, int]] = []
    for root, alike in shared.items():
        first = _original(alike, sessions, ancestors, starts)
        for holder in alike:
            flags = holder.flags & ~rows.COPY if holder.session == first else holder.flags | rows.COPY
            origin = holder.origin if holder.origin is None or holder.uid == root else root
            if (flags, origin) != (holder.flags, holder.origin):
                updates.append((flags, origin, holder.id))
                stale.append((holder.id, text_class(holder.kind)))
                changed.add(holder.session)
    db.executemany("UPDATE event SET flags = ?, origin = ? WHERE id = ?", updates)
    writer.todo(stale)
    for session in changed:
        db.execute(
            "UPDATE session SET copies = (SELECT count(*) FROM event WHERE flags & ?1 AND turn IN"
            " (SELECT id FROM turn WHERE session = ?2)) WHERE id = ?2",
            (rows.COPY, session),
        )
        if sessions[session][2] == Relation.SUBAGENT:
            _hide_head(writer, session)
    return changed


def _root(origin_of: dict[bytes, bytes | None], holder: Holder) -> bytes:
    """Follow copies of copies to the event that they all come from."""
    root = holder.origin or holder.uid
    for _ in range(len(origin_of)):
        further = origin_of.get(root)
        if further is None or further == root:
            break
        root = further
    return root


def _own_starts(holders: list[Holder], roots: dict[int, bytes], shared: dict[bytes, list[Holder]]) -> dict[int, int]:
    """When each session's own history begins; of one that has none, when it ended."""
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for holder in holders:
        ends[holder.session] = max(ends.get(holder.session, holder.time), holder.time)
        if len(shared[roots[holder.id]]) == 1:
            starts[holder.session] = min(starts.get(holder.session, holder.time), holder.time)
    return {session: starts.get(session, end) for session, end in ends.items()}


def _ancestors(session: int, sessions: dict[int, tuple[Any, ...]]) -> set[int]:
    by_uid = {row[0]: number for number, row in sessions.items()}
    found: set[int] = set()
    parent = by_uid.get(sessions[session][1])
    while parent is not None and parent not in found and parent != session:
        found.add(parent)
        parent = by_uid.get(sessions[parent][1])
    return found


def _original(
    alike: list[Holder],
    sessions: dict[int, tuple[Any, ...]],
    ancestors: dict[int, set[int]],
    starts: dict[int, int],
) -> int:
    """The session whose event is the original."""
    if len(alike) == 1:
        return alike[0].session
    present = {holder.session for holder in alike}
    oldest = [session for session in present if not ancestors[session] & present] or list(present)
    return min(oldest, key=lambda session: (starts[session], sessions[session][0]))


def _hide_head(writer: Writer, session: int) -> None:
    """Leave a subagent's copied head out of its turns."""
    db = writer.db
    found = db.execute(
        "SELECT t.id, t.hidden, min(e.flags & ?) FROM turn t JOIN event e ON e.turn = t.id WHERE t.session = ?"
        " GROUP BY t.id ORDER BY t.file, t.place",
        (rows.COPY, session),
    ).fetchall()
    at_head = True
    changes = []
    for id, hidden, copied in found:
        at_head = at_head and bool(copied)
        if bool(hidden & COPIED_HEAD) != at_head:
            changes.append((hidden ^ COPIED_HEAD, id))
    db.executemany("UPDATE turn SET hidden = ? WHERE id = ?", changes)
