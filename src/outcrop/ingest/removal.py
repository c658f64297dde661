"""Removing sessions from the history: their rows, and what the sessions that shared history with them then are.

Used by `outcrop forget`, where copies elsewhere go as well, and by retention, where they stay and are the originals
from then on. The caller holds a transaction of the writer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from outcrop import ids
from outcrop.harnesses import load
from outcrop.ingest import copies
from outcrop.ingest.forgotten import repeats
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


def plan(writer: Writer, sessions: set[int]) -> Removal:
    """Find all that belongs to sessions, copies elsewhere too."""
    db = writer.db
    origins = {session: erase.origins_of(db, session) for session in sessions}
    owner = {origin: session for session, some in origins.items() for origin in some}
    copied = erase.copies_elsewhere(db, sessions, owner.keys())
    for events in copied.values():
        for event in events:
            origins[owner[event.origin]].add(event.uid)
    files = erase.files_of(db, sessions)
    brought = erase.holders(db)
    alone = {file for file in files if brought.get(file, set()) <= sessions}
    return Removal(sessions, origins, copied, alone, files - alone)


def remove(writer: Writer, removal: Removal) -> int:
    """Erase what was planned, for good; returns how many events went."""
    events = erase.erase_sessions(writer, removal.sessions)
    for file in removal.alone:
        erase.clear_file(writer, file, erase.FORGOTTEN)
    for file in removal.shared:
        erase.thin_file(writer, file, erase.PARTLY)
    for session, copied in removal.copies.items():
        _take_copies(writer, session, copied)
        events += len(copied)
    for session in removal.copies:
        for changed in {session} | copies.decide_again(writer, session):
            renumber(writer, changed)
            _refresh(writer, changed, moved=True)
    return events


class LettingGo:
    """Sessions let go one after another, each in a transaction of the caller's; copies of them stay elsewhere."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._holders = erase.holders(writer.db)
        self._sharing = erase.sharing(writer.db)

    def let_go(self, session: int) -> None:
        writer = self._writer
        others: set[int] = set()
        if self._sharing:
            for origin in erase.origins_of(writer.db, session):
                others |= self._sharing.get(origin, set())
        files = erase.files_of(writer.db, [session])
        erase.erase_sessions(writer, [session])
        for file in files:
            held = self._holders.get(file, set())
            held.discard(session)
            if held:
                erase.thin_file(writer, file, erase.AGED)
            else:
                erase.clear_file(writer, file, erase.AGED)
        for other in others - {session}:
            if writer.db.execute("SELECT 1 FROM session WHERE id = ?", (other,)).fetchone():
                for changed in copies.decide_again(writer, other):
                    _refresh(writer, changed, moved=renumber(writer, changed))


def _take_copies(writer: Writer, session: int, copied: list[Erased]) -> None:
    """Take copied events out of a session that stays, and what of its own may repeat them (`forgotten`)."""
    db = writer.db
    uid = db.execute("SELECT uid FROM session WHERE id = ?", (session,)).fetchone()[0]
    files = erase.files_of(db, [session])
    gone = [str(writer.content(event.block, event.slot).get("text", "")) for event in copied]
    erase.erase_events(writer, session, copied)
    for turn in {event.turn for event in copied}:
        rebuild_turn(writer, turn)
    for file, name, value in db.execute("SELECT file, name, value FROM fact WHERE session = ?", (session,)).fetchall():
        if repeats(name, orjson.loads(value), gone):
            writer.set_fact(session, file, name, None)
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
