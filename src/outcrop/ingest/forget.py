"""Forgetting sessions for good: which ones, their rows and copies in one transaction, and the proof (`purge`)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from outcrop import faults
from outcrop.errors import NotFound
from outcrop.ids import Kind, write
from outcrop.ingest import purge
from outcrop.ingest.project import project_of
from outcrop.ingest.purge import Progress, Proof
from outcrop.ingest.removal import Removal, plan, remove
from outcrop.model import CONVERSATION, TYPE_CODE
from outcrop.store.embedded import erase, probe
from outcrop.store.embedded.rows import decode_block
from outcrop.store.embedded.text_rows import TextRows
from outcrop.store.embedded.values import values_of
from outcrop.store.embedded.write import Writer

if TYPE_CHECKING:
    import sqlite3

    from outcrop.store.embedded.text import TextWriter

EQUAL_LISTED = 100
"""Equal texts that are named; all are counted."""
_AT_ONCE = 500


@dataclass(slots=True, frozen=True)
class Selection:
    """Which sessions: those that fit all that is given. `before`: last updated before it, UTC ms.

    `sessions` are uids; `project` is a path inside of it, or the path that it once had.
    """

    sessions: tuple[bytes, ...] = ()
    project: str | None = None
    source: str | None = None
    before: int | None = None

    @property
    def empty(self) -> bool:
        return self == Selection()


@dataclass(slots=True, frozen=True)
class Chosen:
    """A session that fits. `label`: what people know it by. `updated`: UTC ms, 0 where it has no event."""

    id: int
    uid: bytes
    harness: str
    source: str
    native: str
    label: str
    updated: int
    events: int


@dataclass(slots=True)
class Report:
    """What was erased. `copies`: (uid, events) of other sessions that held some. `children`: uids of sessions that
    stay though they came from an erased one. `equal`: (event uid, session uid) of messages elsewhere that say the same.

    `marks_before` of the marks, and `words_before` of the words, were found before erasing.
    """

    sessions: list[Chosen]
    events: int = 0
    copies: list[tuple[bytes, int]] = field(default_factory=list)
    children: list[bytes] = field(default_factory=list)
    equal: list[tuple[bytes, bytes]] = field(default_factory=list)
    equal_count: int = 0
    marks_before: int = 0
    words_before: int = 0
    proof: Proof | None = None


def choose(db: sqlite3.Connection, selection: Selection) -> list[Chosen]:
    """The sessions of a selection, the newest first."""
    clauses: list[str] = []
    values: list[Any] = []
    if selection.sessions:
        clauses.append("hex(uid) IN (SELECT value FROM json_each(?))")
        values.append(json.dumps([uid.hex().upper() for uid in selection.sessions]))
    if selection.project is not None:
        clauses.append("id IN (SELECT session FROM place WHERE project IN (?, ?) OR cwd = ? OR worktree = ?)")
        values += [project_of(selection.project), *[selection.project] * 3]
    if selection.source is not None:
        clauses.append("source = ?")
        values.append(selection.source)
    if selection.before is not None:
        clauses.append("event_count > 0 AND updated < ?")
        values.append(selection.before)
    rows = db.execute(
        "SELECT id, uid, harness, source, native, coalesce(title, label, first_prompt, native), updated, event_count"
        f" FROM session WHERE {' AND '.join(clauses)} ORDER BY updated DESC, uid",
        values,
    )
    return [Chosen(*row) for row in rows]


def forget(
    writer: Writer, text: TextWriter, selection: Selection, progress: Progress | None = None, *,
    wait: float = purge.PATIENCE,
) -> Report:  # fmt: skip
    """Erase the sessions of a selection, and prove it. The caller holds the writer lock.

    The report's proof is None where nothing fits. Raises the store's errors: once the rows are gone they stay gone, and
    the next writer goes on (`purge.finish_purge`).
    """
    report = Report(choose(writer.db, selection))
    if not report.sessions:
        return report
    tell = progress or (lambda step: None)
    db = writer.db
    erase.secure(db)
    tell("reading what goes")
    text.drain(db)
    removal = plan(writer, {session.id for session in report.sessions})
    copied = [event for events in removal.copies.values() for event in events]
    marks = probe.marks_of(values_of(db, removal.sessions, removal.alone, copied))
    said = frozenset(probe.whole_mark(some) for some in _messages(db, removal.sessions))
    words = _words(writer, removal)
    tell("looking for it before")
    report.marks_before = probe.look_for(db, marks, until_all=True).count
    report.words_before = _known(writer, words)
    with writer.transaction():
        tell("erasing")
        _describe(writer, removal, report)
        now = time.time_ns() // 1_000_000
        for session, origins in removal.origins.items():
            writer.tombstones.add(session, now, origins)
        writer.tombstones.learn()
        report.events = remove(writer, removal)
        erase.drop_orphans(writer)
        found = probe.look_for(db, marks, said)
        _list_equal(db, found.equal, report)
        probe.save_marks(db, probe.LINES, marks - found.owned)
        probe.save_marks(db, probe.TERMS, words)
        purge.begin(writer, purge.FORGET)
        faults.at("purge-rows")
    faults.at("purge-erased")
    report.proof = purge.finish_purge(writer, text, progress, wait=wait, insist=True)
    return report


def undo(writer: Writer, uids: list[bytes]) -> None:
    """Lift tombstones: the next index reads these sessions again, where their sources still exist.

    Raises NotFound for one that there is not; then none is lifted.
    """
    for uid in uids:
        if uid not in writer.tombstones.uids:
            raise NotFound("forgotten session", write(Kind.SESSION, uid))
    with writer.transaction():
        for uid in uids:
            writer.tombstones.lift(uid)
        erase.read_again(writer.db, erase.FORGOTTEN | erase.PARTLY | erase.LEFT_OUT)


def _messages(db: sqlite3.Connection, sessions: set[int]) -> list[str]:
    """The prompts and answers of sessions that say enough to be told from others by chance."""
    found = []
    kinds = ",".join(str(TYPE_CODE[kind]) for kind in CONVERSATION)
    for session in sessions:
        blocks: dict[int, list[dict[str, Any]]] = {}
        for block, slot in db.execute(
            "SELECT e.block, e.slot FROM turn t JOIN event e ON e.turn = t.id"
            f" WHERE t.session = ? AND e.type IN ({kinds}) ORDER BY e.block",
            (session,),
        ).fetchall():
            if block not in blocks:
                row = db.execute("SELECT z FROM block WHERE id = ?", (block,)).fetchone()
                blocks = {block: decode_block(row[0])}
            text = blocks[block][slot].get("text", "")
            if len(text) > probe.WINDOW:
                found.append(text)
    return found


def _documents(db: sqlite3.Connection, removal: Removal) -> list[int]:
    """The events that go."""
    found = [event.id for events in removal.copies.values() for event in events]
    for session in removal.sessions:
        found += [
            row[0]
            for row in db.execute(
                "SELECT e.id FROM turn t JOIN event e ON e.turn = t.id WHERE t.session = ?", (session,)
            )
        ]
    return found


def _words(writer: Writer, removal: Removal) -> set[bytes]:
    """Marks of words that no other document of the index holds."""
    from outcrop.store.embedded import text_terms

    name = writer.meta("text_dir")
    if not name:
        return set()
    documents = _documents(writer.db, removal)
    rows = TextRows(writer.db)

    def texts() -> Any:
        for at in range(0, len(documents), _AT_ONCE):
            rows.forget()
            for source, _ in rows.read(documents[at : at + _AT_ONCE]):
                yield source.text

    candidates = text_terms.words(texts())
    return text_terms.distinctive(text_terms.searcher_of(writer.home, name), candidates, documents)


def _known(writer: Writer, words: set[bytes]) -> int:
    """How many of the words the index knows now."""
    from outcrop.store.embedded import text_terms

    if not words:
        return 0
    searcher = text_terms.searcher_of(writer.home, writer.meta("text_dir"))
    return len(text_terms.in_dictionaries(searcher, words))


def _describe(writer: Writer, removal: Removal, report: Report) -> None:
    """What of other sessions goes, and which sessions stay that came from one that goes."""
    db = writer.db
    for session, events in removal.copies.items():
        uid = db.execute("SELECT uid FROM session WHERE id = ?", (session,)).fetchone()[0]
        report.copies.append((uid, len(events)))
    for chosen in report.sessions:
        report.children += [
            uid
            for id, uid in db.execute(
                "SELECT id, uid FROM session WHERE parent = ? AND event_count > 0 ORDER BY id", (chosen.uid,)
            )
            if id not in removal.sessions
        ]


def _list_equal(db: sqlite3.Connection, places: list[tuple[int, int]], report: Report) -> None:
    """The messages that stand at these places of blocks."""
    found = []
    for block, slot in places:
        found += db.execute(
            "SELECT e.uid, s.uid FROM block b JOIN turn t ON t.session = b.session JOIN event e ON e.turn = t.id"
            " JOIN session s ON s.id = t.session WHERE b.id = ? AND e.block = b.id AND e.slot = ? AND e.type < 2",
            (block, slot),
        ).fetchall()
    report.equal_count = len(found)
    report.equal = found[:EQUAL_LISTED]
