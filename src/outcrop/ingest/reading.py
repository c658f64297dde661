"""Reading one file into the history: what is new of it, in batches, each in one transaction with its checkpoint.

A file that only grew is read on from its checkpoint. A file with another content, one that is compressed or written
whole, and one whose adapter became newer is read anew in a single transaction, so that nobody ever sees half of it.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from outcrop import faults
from outcrop.harnesses import Form, Harness, Reader, SourceFile, jsonl
from outcrop.ingest import checkpoints
from outcrop.ingest.checkpoints import Verdict
from outcrop.ingest.forgotten import is_forgotten, leave_out
from outcrop.ingest.history import Keeping, finish_anew, write_batch
from outcrop.ingest.redaction import Masker
from outcrop.ingest.staging import Batch, Stager
from outcrop.store.embedded import erase, rows
from outcrop.store.embedded.write import FileRow, Writer

BATCH_BYTES = 8 * 1024 * 1024
BATCH_RECORDS = 8000
TOLD_BYTES = 1024 * 1024
"""Between two words on how far it is: what is urgent is served there, and a batch may take half a second."""
DOCUMENT_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest whole document that is read."""
EMPTIED = "the file was emptied; its history is kept"
NO_RECORD = "no complete record stands in it yet"
DAMAGED = "the compressed file is damaged or not complete yet"

Progress = Callable[[int, int], None]
"""Called with (bytes read, events written) since the last call."""


@dataclass(slots=True)
class Tally:
    """What a reading did. `cause` is set where the file could not be read to its end."""

    records: int = 0
    events: int = 0
    bytes: int = 0
    set_aside: int = 0
    cause: str | None = None
    stood: bool = False
    """Whether it was not opened, as nothing changed."""


class _Refused(Exception):
    """The file's new content cannot take the place of what is stored: the transaction is to be rolled back."""


class _Emptied(_Refused):
    """It has no content at all."""


class _Unpacked(io.RawIOBase):
    """What a zstd file holds. Damage in the file must not be taken for damage in the store, which is packed as well."""

    def __init__(self, stream: BinaryIO) -> None:
        import zstandard

        self._fault = zstandard.ZstdError
        self._plain = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data: bytes = self._plain.read(len(buffer))
        except self._fault:
            raise _Refused(DAMAGED) from None
        buffer[: len(data)] = data
        return len(data)


class FileSide:
    """Reads what lies beside a transcript, strictly inside the folder that belongs to it (`harnesses.Side`)."""

    def text(self, path: str, inside: str, limit: int) -> str | None:
        try:
            real = os.path.realpath(path)
            if os.path.commonpath([real, os.path.realpath(inside)]) != os.path.realpath(inside):
                return None
            if not os.path.isfile(real):
                return None
            with open(real, "rb") as stream:
                return stream.read(limit).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None


def reason_of(error: Exception) -> str:
    """Why something could not be read, in words."""
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return str(error) or type(error).__name__


class FileReading:
    """One file of one harness, on its way into the history."""

    keeps_gone = False
    """Whether events that a new reading does not hold any more are kept and flagged (ruling 41)."""

    def __init__(self, writer: Writer, harness: Harness, file: SourceFile, masking: bool, now: int) -> None:
        self.writer = writer
        self.harness = harness
        self.file = file
        self.masker = Masker(masking)
        self.now = now
        self.row = writer.file(file.source, file.path) or FileRow(
            0, file.path, harness.name, file.source, file.form.value, file.role, file.native, file.parent
        )
        self.tally = Tally()
        self.keeping: Keeping | None = None
        self._left_out = False
        """Whether this reading met anything that was forgotten."""
        self._fallback = file.native or Path(file.path).stem

    def read(self, found: os.stat_result, progress: Progress | None = None, full: bool = False) -> Tally:
        """Read what is new. Raises the store's errors; what is wrong with the file goes into the tally and its row.

        A file whose identity is that of its checkpoint is not opened, unless `full` asks for it.
        """
        row = self.row
        if not full and row.id and not row.missing and checkpoints.untouched(row, found, self.harness.version):
            self.tally.stood = True
            return self.tally
        try:
            # Not blocking: since it was listed a pipe may have taken the file's place.
            with open(self.file.path, "rb", opener=_without_waiting) as stream:
                now = os.fstat(stream.fileno())
                if not stat.S_ISREG(now.st_mode):
                    self.refuse("not a regular file")
                elif self.file.form is Form.LINES:
                    self._lines(stream, now, progress, full)
                else:
                    self._whole(stream, now, progress)
        except _Refused as refused:
            self.refuse(str(refused), emptied=isinstance(refused, _Emptied))
        except OSError as error:
            self.refuse(reason_of(error))
        return self.tally

    def refuse(self, reason: str, emptied: bool = False) -> None:
        """Note why the file cannot be read at the moment; its history stays. `emptied`: it counts as missing."""
        self.tally.cause = reason
        stored = self.writer.file(self.file.source, self.file.path)
        if stored is not None:
            self.row = stored  # what was in memory alone was rolled back
        else:
            self.row.id = 0
        self.row.problem = reason
        self.row.seen_at = self.now
        self.row.missing = int(emptied and self.row.state is not None)
        with self.writer.transaction():
            self.writer.save_file(self.row)

    # Files that grow

    def _lines(self, stream: BinaryIO, found: os.stat_result, progress: Progress | None, full: bool) -> None:
        row = self.row
        verdict = checkpoints.judge(row, found, stream, self.harness.version)
        if row.erased & erase.ANEW:
            if row.erased == erase.FORGOTTEN and verdict is not Verdict.OTHER and not full:
                self._done(stream, found)  # what is appended to a forgotten session is not even looked at
                return
            verdict = Verdict.OTHER
            stream.seek(0)
        if verdict is Verdict.OTHER:
            self._lines_anew(stream, found, progress)
            return
        if verdict is Verdict.GROWN:
            stager = self._stager(found, self._state())
            for end, line in self._fed(stager, stream, row.offset, row.line, progress):
                if stager.ready:
                    self._write(stager, stream, end, line)
        self._done(stream, found)

    def _lines_anew(self, stream: BinaryIO, found: os.stat_result, progress: Progress | None) -> None:
        with self._anew():
            stager = self._stager(found, {})
            sessions: set[int] = set()
            for end, line in self._fed(stager, stream, 0, 0, progress):
                sessions |= self._put(stager, anew=True)
                checkpoints.mark(self.row, stream, end, line)
            self._finish(stager, found, sessions)

    def _fed(self, stager: Stager, stream: BinaryIO, offset: int, line: int, progress: Progress | None) -> Any:
        """Feed lines; yields (end, line) where a batch should be written, and at the end of what can be read."""
        end, start, told = offset, offset, offset
        for piece in jsonl.lines(stream, offset):
            if piece.oversize:
                if not piece.ended:
                    break
                stager.stub(piece.size, piece.data, piece.offset, line + 1)
            else:
                if not piece.ended and not jsonl.whole(piece.data):
                    break
                found, faults_found = jsonl.records(piece.data)
                for record in found:
                    stager.feed(record, piece.data, piece.offset, line + 1)
                for fault in faults_found:
                    stager.fault(piece.data, piece.offset, line + 1, fault.reason, fault.sample)
            end, line = piece.end, line + 1
            full = end - start >= BATCH_BYTES or stager.batch.records >= BATCH_RECORDS
            if progress is not None and (full or end - told >= TOLD_BYTES):
                progress(end - told, len(stager.batch.events))
                told = end
            if full:
                self.tally.bytes += end - start
                start = end
                yield end, line
        if progress is not None:
            progress(end - told, len(stager.batch.events))
        self.tally.bytes += end - start
        if end > offset or offset == 0:
            yield end, line

    def _write(self, stager: Stager, stream: BinaryIO, end: int, line: int) -> None:
        """One batch and its checkpoint in one transaction."""
        with self.writer.transaction():
            self._put(stager, anew=False)
            checkpoints.mark(self.row, stream, end, line)
            self._save(stager)
            faults.at("before-commit")
        if not self.writer.db.in_transaction:
            faults.at("after-commit")

    # Files that are replaced whole

    def _whole(self, stream: BinaryIO, found: os.stat_result, progress: Progress | None) -> None:
        if self.file.form is Form.ZSTD_LINES:
            if not _frames_end(stream):
                raise _Refused(DAMAGED)
            with self._anew():
                stager = self._stager(found, {})
                sessions: set[int] = set()
                for _end, _line in self._fed(stager, io.BufferedReader(_Unpacked(stream)), 0, 0, progress):
                    sessions |= self._put(stager, anew=True)
                self._finish(stager, found, sessions)
            return
        data = stream.read(DOCUMENT_LIMIT + 1)
        if len(data) > DOCUMENT_LIMIT:
            self.refuse(f"the document is larger than {DOCUMENT_LIMIT} bytes")
            return
        try:
            text = self.file.form is Form.TEXT
            document = data.decode("utf-8", "replace").removeprefix("\ufeff") if text else jsonl.document(data)
        except ValueError:
            self.refuse("not a whole JSON document")
            return
        with self._anew():
            stager = self._stager(found, {})
            masked_whole = data if self.masker.needed(data) else b""
            for number, record in enumerate(self.harness.records(self.file, document), 1):
                stager.feed(record, masked_whole, 0, number)
            self.tally.bytes += len(data)
            if progress is not None:
                progress(len(data), len(stager.batch.events))
            self._finish(stager, found, self._put(stager, anew=True))

    # Common to all

    def _anew(self) -> Any:
        """A transaction in which the file is read from its beginning, as a new generation."""
        return _Anew(self)

    def _state(self) -> dict[str, Any]:
        return orjson.loads(rows.decompress(self.row.state)) if self.row.state else {}

    def _stager(self, found: os.stat_result, state: dict[str, Any]) -> Stager:
        reader: Reader = self.harness.reader(self.file, state.get("reader"), FileSide())
        file_time = found.st_mtime_ns // 1_000_000
        return Stager(self.harness, self.file.source, reader, state, self.masker, file_time, self._fallback)

    def _put(self, stager: Stager, anew: bool) -> set[int]:
        if self.row.id == 0:
            self.writer.save_file(self.row)
        batch: Batch = stager.take()
        if self.row.first_time != stager.first_time:
            self.row.first_time = stager.first_time
            self.writer.save_file(self.row)  # the turns of several files are ranked by it
        self._left_out |= leave_out(self.writer, self.harness, self.file.source, batch)
        self.tally.records += batch.records
        self.tally.set_aside += len(batch.problems)
        self.tally.events += len(batch.events)
        sessions = write_batch(self.writer, self.harness, self.row, batch, anew)
        self.writer.count_masked(self.row.id, self.masker.counts)
        self.masker.counts.clear()
        return sessions

    def _finish(self, stager: Stager, found: os.stat_result, sessions: set[int]) -> None:
        if not self.tally.records and not self.keeps_gone:
            # Nothing that could replace the history: a file that was emptied, or is about to be written again.
            raise _Emptied(NO_RECORD if found.st_size else EMPTIED)
        self.row.offset = self.row.offset or found.st_size
        finish_anew(self.writer, self.harness, self.row, sessions, self.keeping)
        checkpoints.identify(self.row, found)
        self._save(stager)

    def _save(self, stager: Stager) -> None:
        row = self.row
        state = orjson.dumps(stager.state())
        if self.masker.needed(state):
            state = orjson.dumps(self.masker.mask_value(orjson.loads(state)))
        row.state = rows.compress(state)
        if self._left_out:
            self._forget_state(stager)
        row.adapter_version = self.harness.version
        row.problem, row.missing, row.seen_at = None, 0, self.now
        self.writer.save_file(row)

    def _forget_state(self, stager: Stager) -> None:
        """What a reader remembers of a forgotten session may be text of it."""
        row = self.row
        native = stager.state()["session"]
        if not self.tally.events and is_forgotten(self.writer, self.harness, self.file.source, native):
            row.erased, row.state = erase.FORGOTTEN, None
        elif erase.remembers(row.state):
            row.erased, row.state = erase.PARTLY, erase.NO_STATE
        else:
            row.erased |= erase.LEFT_OUT

    def _done(self, stream: BinaryIO, found: os.stat_result) -> None:
        """All that can be read is; note the identity so that the next pass need not look."""
        row = self.row
        checkpoints.identify(row, found)
        row.problem = NO_RECORD if row.offset == 0 and found.st_size else None
        row.missing, row.seen_at = 0, self.now
        row.adapter_version = self.harness.version
        with self.writer.transaction():
            self.writer.save_file(row)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _frames_end(stream: BinaryIO) -> bool:
    """Whether a zstd file ends where a frame does; the decompressor takes half a file for a whole one.

    Walks the blocks by their sizes (RFC 8878, 3.1.1) without decompressing. Leaves the stream at its beginning.
    """
    import zstandard

    size = stream.seek(0, os.SEEK_END)
    place = stream.seek(0)
    while place < size:
        stream.seek(place)
        head = stream.read(18)
        if len(head) >= 8 and 0x184D2A50 <= int.from_bytes(head[:4], "little") <= 0x184D2A5F:  # skippable
            place += 8 + int.from_bytes(head[4:8], "little")
            continue
        try:
            place += zstandard.frame_header_size(head)
            checksum = zstandard.get_frame_parameters(head).has_checksum
        except zstandard.ZstdError:
            return False
        last = False
        while not last:
            stream.seek(place)
            if len(block := stream.read(3)) < 3:
                return False
            number = int.from_bytes(block, "little")
            last = bool(number & 1)
            place += 3 + (1 if number >> 1 & 3 == 1 else number >> 3)
        place += 4 if checksum else 0
    stream.seek(0)
    return place == size


class _Anew:
    """The transaction of a file read anew."""

    def __init__(self, reading: FileReading) -> None:
        self._reading = reading
        self._transaction: Any = None

    def __enter__(self) -> None:
        reading = self._reading
        self._before = reading.writer.file(reading.file.source, reading.file.path)
        self._transaction = reading.writer.transaction()
        self._transaction.__enter__()
        if reading.keeps_gone:
            newest = reading.writer.db.execute("SELECT max(id) FROM event").fetchone()[0]
            renamed = bool(reading.row.id) and reading.row.adapter_version != reading.harness.version
            reading.keeping = Keeping(newest or 0, renamed)
        if reading.row.id:
            reading.writer.forget_reading(reading.row.id)
            reading.row.generation += 1
        reading.row.offset = reading.row.line = reading.row.head_size = reading.row.erased = 0
        reading.row.head = reading.row.tail = reading.row.first_time = None

    def __exit__(self, *error: Any) -> Any:
        if error[0] is not None:
            # The rows are rolled back, so must the checkpoint in memory be.
            reading = self._reading
            reading.row = self._before or FileRow(
                0, reading.row.path, reading.row.harness, reading.row.source, reading.row.form, reading.row.role,
                reading.row.native, reading.row.parent,
            )  # fmt: skip
        return self._transaction.__exit__(*error)
