"""Finishing an erasure: after the rows are gone, so must be what the text index, free pages and the log still hold.

The rows go in one transaction, which also notes in `meta.purge_pending` that this has to follow: (2) a text commit,
(3) a new folder of the text index, the database written anew and its log cut to nothing, (4) a look through all that
is stored for what was erased. Every part may be done twice, so that whoever writes next finishes what a kill cut
short, and until (4) is through nothing is said to be proven.

What is proven: no value of any row, decoded, holds a line that begins as an erased one did, but for equal lines of
sessions that stay (`probe`); no dictionary of the text index knows a word of the erased documents that is not in the
present text of an event (`text_terms`); the index has no other folder; the database was written anew afterwards, and
its log is empty. For `outcrop rescrub`: today's rules find nothing in any value. What is not: that the disk itself
keeps no old blocks, nor that nobody made a copy.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from outcrop import faults
from outcrop.ingest import touching
from outcrop.ingest.redaction import Masker
from outcrop.store.embedded import compact, erase, probe
from outcrop.store.embedded.values import all_values
from outcrop.store.embedded.write import Writer

if TYPE_CHECKING:
    from outcrop.store.embedded.text import TextWriter

Progress = Callable[[str], None]
"""Told what is being done."""
FORGET = "forget"
RESCRUB = "rescrub"
SHRINK = "shrink"
"""Why something is to be erased: the last one only wants the room."""
PATIENCE = 10.0
"""Seconds to wait for a reader that holds an older state."""
TRIES = 2
"""So many failed checks, and only a person's command tries again: each costs a look through everything."""
DERIVED = {"turn", "session", "action", "path"}
"""Tables that hold pieces of masked texts: folding a piece can make a new pattern of it, which is no secret kept."""
READER_HOLDS = "a reader still holds an older state of the history"
FOLDER_HELD = "an older folder of the text index could not be removed yet"
NOT_TRIED = "the check found some of it, twice; `outcrop forget --finish` tries again"

_KEY = "purge_pending"


@dataclass(slots=True)
class Pending:
    """`text`: number of the newest folder of the index that may hold what was erased. `since`: UTC ms."""

    kinds: list[str] = field(default_factory=list)
    since: int = 0
    text: int = 0
    rows_left: bool = False
    vacuumed: bool = False
    failed: int = 0


@dataclass(slots=True)
class Proof:
    """`proven`, or the reason why not yet. Marks and words: looked for, and still found."""

    proven: bool
    reason: str | None = None
    marks: int = 0
    marks_left: int = 0
    words: int = 0
    words_left: int = 0
    secrets_left: int = 0
    tables: list[str] = field(default_factory=list)


def pending(writer: Writer) -> Pending | None:
    """What is still to be finished."""
    found = writer.meta(_KEY)
    return None if found is None else Pending(**json.loads(found))


def begin(writer: Writer, kind: str, rows_left: bool = False) -> None:
    """Note in the transaction of the rows that the rest has to follow."""
    note = pending(writer) or Pending(since=time.time_ns() // 1_000_000)
    note.kinds = sorted({*note.kinds, kind})
    note.text = int(writer.meta("text_count") or 0)
    note.rows_left = note.rows_left or rows_left
    note.vacuumed, note.failed = False, 0
    _note(writer, note)


def rows_done(writer: Writer) -> None:
    """Note that all rows are masked. The caller holds a transaction."""
    note = pending(writer)
    if note is not None:
        note.rows_left = False
        _note(writer, note)


def cancel(writer: Writer) -> None:
    """Nothing was erased after all."""
    writer.db.execute("DELETE FROM purge_mark")
    writer.db.execute("DELETE FROM meta WHERE k = ?", (_KEY,))


def finish_purge(
    writer: Writer, text: TextWriter, progress: Progress | None = None, *, wait: float = PATIENCE, insist: bool = False
) -> Proof | None:
    """Do what is still to be done after an erasure; None where nothing is.

    `wait`: seconds for readers that hold an older state. `insist`: also where the check has failed before. Raises the
    store's errors; what was not done stays noted.
    """
    note = pending(writer)
    if note is None:
        return None
    if note.failed >= TRIES and not insist:
        return Proof(False, NOT_TRIED)
    tell = progress or (lambda step: None)
    erase.secure(writer.db)
    if note.rows_left:
        from outcrop.ingest.rescrub import mask_rows

        tell("masking what is stored")
        mask_rows(writer)
        with writer.transaction():
            rows_done(writer)
        note.rows_left = False
    tell("building the text index anew")
    _renew_text(writer, text, note)
    if not note.vacuumed:
        tell("writing the database anew")
        compact.vacuum(writer.db, writer.home)
        faults.at("purge-vacuumed")
        with writer.transaction():
            note.vacuumed = True
            _note(writer, note)
    if not compact.truncate_log(writer.db, wait):
        return Proof(False, READER_HOLDS)
    faults.at("purge-truncated")
    if _older_folders(writer):
        return Proof(False, FOLDER_HELD)
    tell("looking for remains")
    proof = _check(writer, note)
    faults.at("purge-checked")
    with writer.transaction():
        if proof.proven:
            cancel(writer)
        else:
            note.failed += 1
            note.vacuumed, note.text = False, int(writer.meta("text_count") or 0)
            _note(writer, note)
    return proof


def _note(writer: Writer, note: Pending) -> None:
    writer.set_meta(_KEY, json.dumps(asdict(note)))


def _renew_text(writer: Writer, text: TextWriter, note: Pending) -> None:
    """The stale documents go first, so that nobody finds them; then a new folder takes the place of the old one."""
    from outcrop.store.embedded.text import rebuild

    touching.drain(writer)
    with writer.transaction():
        erase.drop_orphans(writer)
    text.drain(writer.db)
    faults.at("purge-text")
    if _newest_folder(writer) <= note.text:
        rebuild(writer.db)
    text.drain(writer.db)
    faults.at("purge-renewed")


def _newest_folder(writer: Writer) -> int:
    name = writer.meta("text_next") or writer.meta("text_dir")
    return int(str(name).rpartition("-")[2]) if name else 0


def _older_folders(writer: Writer) -> bool:
    """Whether another folder than the present one is there: not every system removes a file that somebody reads."""
    from outcrop.store.embedded.text_reader import FOLDER

    return any(path.name != writer.meta("text_dir") for path in (writer.home / FOLDER).iterdir())


def _check(writer: Writer, note: Pending) -> Proof:
    from outcrop.store.embedded import text_terms

    db = writer.db
    marks = probe.saved_marks(db, probe.LINES)
    found = probe.look_for(db, marks)
    words = probe.saved_marks(db, probe.TERMS)
    current = str(writer.meta("text_dir"))
    searcher = text_terms.searcher_of(writer.home, current)
    left = text_terms.unaccounted(db, searcher, text_terms.in_dictionaries(searcher, words))
    proof = Proof(
        True,
        marks=len(marks),
        marks_left=len(found.left),
        words=len(words),
        words_left=len(left),
        secrets_left=_secrets(writer) if RESCRUB in note.kinds else 0,
        tables=sorted(found.tables),
    )
    if proof.marks_left or proof.words_left or proof.secrets_left:
        proof.proven, proof.reason = False, "the check still found some of it"
    return proof


def _secrets(writer: Writer) -> int:
    """How many texts today's rules would still mask."""
    masker = Masker()
    return sum(
        masker.mask(text) != text
        for value in all_values(writer.db)
        if value.table not in DERIVED
        for text in value.texts
    )
