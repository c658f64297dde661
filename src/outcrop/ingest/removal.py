"""Removing sessions from the history: their rows, and what the sessions that shared history with them then are.

Used by `outcrop forget`, where copies elsewhere go as well, and by retention, where they stay and are the originals
from then on. The caller holds a transaction of the writer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from outcrop import ids
from outcrop.harnesses import load
from outcrop.ingest import copies
from outcrop.ingest.forgotten import DERIVED
from outcrop.ingest.history import rebuild_turn
from outcrop.ingest.sessions import refresh, renumber
from outcrop.store.embedded import erase, rows
from outcrop.store.embedded.erase import Erased
from outcrop.store.embedded.write import Writer


@dataclass(slots=True)
class Removal:
    """What is about to go. `copies`: events of other sessions, by session. `alone`: files that held nothing else.

    `origins`: by session, the ids and origins of its own events, and the ids of their copies.
    """

    sessions: set[int]
    origins: dict[int, set[bytes]] = field(default_factory=dict)
    copies: dict[int, list[Erased]] = field(default_factory=dict)
    alone: set[int] = field(default_factory=set)
    shared: set[int] = field(default_factory=set)


def plan(writer: Writer, sessions: set[int], holders: dict[int, set[int]] | None = None) -> Removal:
    """Find all that belongs to sessions. `holders`: as of `erase.holders`, for many calls in a row."""
    db = writer.db
    origins = {session: erase.origins_of(db, session) for session in sessions}
    owner = {origin: session for session, some in origins.items() for origin in some}
    copied = erase.copies_elsewhere(db, sessions, owner.keys())
    for events in copied.values():
        for event in events:
            origins[owner[event.origin]].add(event.uid)
    files = erase.files_of(db, sessions)
    brought = erase.holders(db) if holders is None else holders
    alone = {file for file in files if brought.get(file, set()) <= sessions}
    return Removal(sessions, origins, copied, alone, files - alone)


def remove(writer: Writer, removal: Removal, bit: int, with_copies: bool) -> int:
    """Erase what was planned; returns how many events went. `bit`: of `file.erased`."""
    events = erase.erase_sessions(writer, removal.sessions)
    for file in removal.alone:
        erase.clear_file(writer, file, bit)
    for file in removal.shared:
        erase.thin_file(writer, file, erase.PARTLY if bit == erase.FORGOTTEN else bit)
    if with_copies:
        for session, copied in removal.copies.items():
            _take_copies(writer, session, copied)
            events += len(copied)
    for session in removal.copies:
        for changed in copies.decide_again(writer, session) | ({session} if with_copies else set()):
            _refresh(writer, changed, moved=renumber(writer, changed) or with_copies)
    return events


def _take_copies(writer: Writer, session: int, copied: list[Erased]) -> None:
    """Take copied events out of a session that stays, and what of its own may repeat them (`forgotten`)."""
    db = writer.db
    uid = db.execute("SELECT uid FROM session WHERE id = ?", (session,)).fetchone()[0]
    files = erase.files_of(db, [session])
    erase.erase_events(writer, session, copied)
    for turn in {event.turn for event in copied}:
        rebuild_turn(writer, turn)
    db.executemany("DELETE FROM fact WHERE session = ? AND name = ?", [(session, name) for name in DERIVED])
    for file in files:
        whole = set()
        for id, of, origin in db.execute("SELECT id, session, origin FROM kept WHERE file = ?", (file,)).fetchall():
            if origin is not None and writer.known_events([ids.event_uid(uid, origin)]):
                whole.add(id)
            elif of == session:
                db.execute("DELETE FROM kept WHERE id = ?", (id,))
        erase.thin_file(writer, file, erase.PARTLY, whole)
    db.execute(
        "UPDATE session SET first_event = NULL, last_event = NULL, mode = 0, copies = (SELECT count(*) FROM turn t"
        " JOIN event e ON e.turn = t.id WHERE t.session = ?2 AND e.flags & ?1) WHERE id = ?2",
        (rows.COPY, session),
    )


def _refresh(writer: Writer, session: int, moved: bool) -> None:
    harness, file = writer.db.execute("SELECT harness, file FROM session WHERE id = ?", (session,)).fetchone()
    refresh(writer, session, file, load(harness), moved=moved)
