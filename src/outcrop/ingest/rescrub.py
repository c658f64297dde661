"""Masking what is stored with today's rules: texts, arguments, facts, places, names, kept records, states, problems.

New rules mask only what is read from then on; this brings them to what was read before, whether or not its source is
still there, and whether or not masking is switched off at the moment. Ids are those of the unmasked records and stay.
Each session is one transaction; a killed run is finished by the next writer (`purge`), as masking twice changes
nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from outcrop import faults
from outcrop.harnesses import load
from outcrop.ingest import purge
from outcrop.ingest.history import rebuild_turn, stale
from outcrop.ingest.purge import Progress, Proof
from outcrop.ingest.redaction import Masker
from outcrop.ingest.sessions import refresh
from outcrop.model import EVENT_TYPES
from outcrop.store.embedded import erase, probe, rows
from outcrop.store.embedded.text_rows import searchable
from outcrop.store.embedded.write import Writer

if TYPE_CHECKING:
    from outcrop.store.embedded.text import TextWriter


@dataclass(slots=True)
class Scrubbed:
    """What was masked: secrets by rule, and the events that held any."""

    masked: Counter[str] = field(default_factory=Counter)
    events: int = 0
    seconds: float = 0.0
    proof: Proof | None = None


def rescrub(
    writer: Writer, text: TextWriter, progress: Progress | None = None, *, wait: float = purge.PATIENCE
) -> Scrubbed:
    """Mask everything that is stored, and prove that the old text is gone. The caller holds the writer lock.

    The proof is None where nothing had to be masked and nothing was left to finish. Raises the store's errors.
    """
    began = time.monotonic()
    tell = progress or (lambda step: None)
    erase.secure(writer.db)
    unfinished = purge.pending(writer) is not None
    with writer.transaction():
        purge.begin(writer, purge.RESCRUB, rows_left=True)
    faults.at("rescrub-begun")
    tell("masking what is stored")
    done = mask_rows(writer)
    with writer.transaction():
        if unfinished or done.masked:
            purge.rows_done(writer)
        else:
            purge.cancel(writer)  # nothing is to be made to forget anything
    done.proof = purge.finish_purge(writer, text, progress, wait=wait, insist=True)
    done.seconds = time.monotonic() - began
    return done


def mask_rows(writer: Writer) -> Scrubbed:
    """Mask all rows; done twice it changes nothing."""
    done = Scrubbed()
    for (session,) in writer.db.execute("SELECT id FROM session ORDER BY id").fetchall():
        with writer.transaction():
            _Session(writer, session, done).mask()
            faults.at("rescrub-session")
    with writer.transaction():
        _rest(writer, done)
    return done


class _Session:
    """One session being masked."""

    def __init__(self, writer: Writer, id: int, done: Scrubbed) -> None:
        self._writer = writer
        self._db = writer.db
        self._id = id
        self._done = done
        self._masker = Masker()

    def mask(self) -> None:
        changed = self._blocks()
        if self._facts() | self._places() or changed:
            harness, file = self._db.execute("SELECT harness, file FROM session WHERE id = ?", (self._id,)).fetchone()
            refresh(self._writer, self._id, file, load(harness), moved=False)
            if file is not None:
                self._writer.count_masked(file, self._masker.counts)
        self._done.masked.update(self._masker.counts)

    def _blocks(self) -> bool:
        places: dict[tuple[int, int], Any] = {}
        for number, z in self._db.execute("SELECT id, z FROM block WHERE session = ?", (self._id,)).fetchall():
            raw = rows.decompress(z)
            if not self._masker.needed(raw):
                continue
            contents: list[dict[str, Any]] = rows.decode_block(z)
            masked = [self._masker.mask_value(content) for content in contents]
            if masked == contents:
                continue
            packed, size = rows.encode_block([rows.encode_content(content) for content in masked])
            self._db.execute("UPDATE block SET z = ?, size = ? WHERE id = ?", (packed, size, number))
            for slot, (old, new) in enumerate(zip(contents, masked, strict=True)):
                if old != new:
                    places[number, slot] = (old, new)
        if places:
            self._note_events(places)
        return bool(places)

    def _note_events(self, places: dict[tuple[int, int], Any]) -> None:
        """Events whose content changed: another `rev`, a stale document, their turn folded again."""
        from outcrop.store.embedded import text_terms

        turns = set()
        gone: set[str] = set()
        for id, kind, turn, block, slot, tool in self._db.execute(
            "SELECT e.id, e.type, e.turn, e.block, e.slot, n.text FROM turn t JOIN event e ON e.turn = t.id"
            " LEFT JOIN name n ON n.id = e.tool WHERE t.session = ?",
            (self._id,),
        ).fetchall():
            if (block, slot) not in places:
                continue
            self._done.events += 1
            self._db.execute("UPDATE event SET rev = rev + 1 WHERE id = ?", (id,))
            stale(self._writer, id, kind)
            turns.add(turn)
            old, new = (searchable(EVENT_TYPES[kind], tool, content) for content in places[block, slot])
            gone |= text_terms.words([old]) - text_terms.words([new])
        for turn in turns:
            rebuild_turn(self._writer, turn)
        if self._done.events <= text_terms.MOST:  # a sample is enough
            probe.save_marks(self._db, probe.TERMS, map(text_terms.term_mark, gone))

    def _facts(self) -> bool:
        changed = False
        for file, name, value in self._db.execute(
            "SELECT file, name, value FROM fact WHERE session = ?", (self._id,)
        ).fetchall():
            old = orjson.loads(value)
            new = self._masker.mask_value(old)
            if new != old:
                self._writer.set_fact(self._id, file, name, new)
                changed = True
        return changed

    def _places(self) -> bool:
        changed = False
        for id, cwd, branch in self._db.execute(
            "SELECT id, cwd, branch FROM place WHERE session = ?", (self._id,)
        ).fetchall():
            new = (self._masker.mask(cwd), self._masker.mask(branch))
            if new == (cwd, branch):
                continue
            changed = True
            self._db.execute("DELETE FROM place WHERE id = ?", (id,))
            other, _ = self._writer.place(self._id, *new)
            self._db.execute(
                "UPDATE event SET place = ? WHERE place = ? AND turn IN (SELECT id FROM turn WHERE session = ?)",
                (other, id, self._id),
            )
        return changed


def _rest(writer: Writer, done: Scrubbed) -> None:
    """What belongs to files, and names."""
    db = writer.db
    masker = Masker()
    for table, column in (("kept", "z"), ("file", "state")):
        for id, z in db.execute(f"SELECT id, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall():
            raw = rows.decompress(z)
            if not masker.needed(raw):
                continue
            value = orjson.loads(raw)
            masked = masker.mask_value(value)
            if masked != value:
                packed = rows.compress(rows.encode_content(masked))
                db.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (packed, id))
    for file, offset, reason, detail in db.execute("SELECT file, offset, reason, detail FROM problem").fetchall():
        if (masked := masker.mask(detail)) != detail:
            db.execute(
                "UPDATE problem SET detail = ? WHERE file = ? AND offset = ? AND reason = ?",
                (masked, file, offset, reason),
            )
    names = {text for (text,) in db.execute("SELECT text FROM name")}
    for id, text in db.execute("SELECT id, text FROM name").fetchall():
        masked = masker.mask(text)
        if masked == text:
            continue
        while masked in names:  # two secrets as names: neither may take the other's place
            masked += "'"
        names.add(masked)
        db.execute("UPDATE name SET text = ? WHERE id = ?", (masked, id))
    writer.learn_names()
    done.masked.update(masker.counts)
