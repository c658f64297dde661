"""Reading places that hold many sessions: databases and trees of files of other programs.

Each session in it has a row of its own in `file` (path `<place>#<native id>`) with the fingerprint that it was last
read at. Nothing is opened while the place's stamp stays the same; of an opened place only the sessions whose
fingerprint changed are read, each anew in one transaction. What a session lost is kept and flagged (ruling 41).
"""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b
from typing import Any

from outcrop.harnesses import Container, Harness, SourceFile
from outcrop.ingest.reading import FileReading, FileSide, Progress, Tally, reason_of
from outcrop.ingest.staging import Stager
from outcrop.store.embedded.write import FileRow, Writer

SESSION = "session"
"""Role of the rows that stand for a session inside a place."""
NAME_MARK = "#"


def is_session(row: FileRow) -> bool:
    """Whether a row stands for a session inside a place, not for a file."""
    return row.role == SESSION


def stands(row: FileRow, stamp: tuple[int, int], adapter_version: int) -> bool:
    """Whether a place needs no opening at all."""
    return (
        row.id != 0
        and not row.missing
        and row.problem is None
        and row.adapter_version == adapter_version
        and (row.size, row.mtime_ns) == stamp
    )


class ContainerReading(FileReading):
    """One place on its way into the history."""

    def read_place(self, found: os.stat_result, progress: Progress | None = None) -> Tally:
        """Read what changed. What is wrong with the place, or with one session of it, goes into the tally."""
        row = self.row
        try:
            stamp = self.harness.stamp(self.file)
            if stands(self.row, stamp, self.harness.version):
                self.tally.stood = True
                return self.tally
            container = self.harness.container(self.file)
        except (OSError, sqlite3.Error) as error:
            self.refuse(reason_of(error))
            return self.tally
        try:
            whole = self._sessions(container, stamp[1], progress)
        except (OSError, sqlite3.Error) as error:
            self.refuse(reason_of(error))
            return self.tally
        finally:
            container.close()
        if whole:
            row.size, row.mtime_ns = stamp
            row.device, row.inode = found.st_dev, found.st_ino
        row.adapter_version = self.harness.version
        row.problem, row.missing, row.seen_at = None, 0, self.now
        with self.writer.transaction():
            self.writer.save_file(row)
        return self.tally

    def _sessions(self, container: Container, time_ns: int, progress: Progress | None) -> bool:
        """Read the sessions that changed; whether all of them could be. `time_ns`: the time of the place's stamp."""
        whole = True
        present = set()
        for native, fingerprint in container.sessions():
            reading = SessionReading(
                self.writer, self.harness, self.file, native, self.masker.enabled, self.now, time_ns
            )
            present.add(reading.row.path)
            if reading.stands(fingerprint):
                continue
            tally = reading.read_session(container, fingerprint, progress)
            whole = whole and tally.cause is None
            self.tally.records += tally.records
            self.tally.events += tally.events
            self.tally.bytes += tally.bytes
            self.tally.cause = self.tally.cause or tally.cause
        self._note_gone(present)
        return whole

    def _note_gone(self, present: set[str]) -> None:
        """Sessions that the complete listing does not hold any more: their history stays."""
        prefix = self.file.path + NAME_MARK
        gone = [
            (row[0],)
            for row in self.writer.db.execute(
                "SELECT id, path FROM file WHERE source = ? AND role = ? AND NOT missing", (self.file.source, SESSION)
            )
            if row[1].startswith(prefix) and row[1] not in present
        ]
        if gone:
            with self.writer.transaction():
                self.writer.db.executemany("UPDATE file SET missing = 1 WHERE id = ?", gone)


class SessionReading(FileReading):
    """One session of a place."""

    keeps_gone = True

    def __init__(
        self, writer: Writer, harness: Harness, place: SourceFile, native: str, masking: bool, now: int, time_ns: int
    ) -> None:
        path = f"{place.path}{NAME_MARK}{native}"
        super().__init__(writer, harness, SourceFile(path, place.source, place.form, place.role, native), masking, now)
        self.row.role = SESSION
        self._place = place
        self._time_ns = time_ns

    def stands(self, fingerprint: str) -> bool:
        row = self.row
        return (
            row.id != 0
            and not row.missing
            and row.problem is None
            and row.adapter_version == self.harness.version
            and row.head == _digest(fingerprint)
        )

    def read_session(self, container: Container, fingerprint: str, progress: Progress | None) -> Tally:
        try:
            # All of it before our own transaction begins: errors of the two databases must not be mixed up.
            records = list(container.records(self.file.native or ""))
            found = os.stat(self._place.path)
        except (OSError, sqlite3.Error) as error:
            self.refuse(reason_of(error))
            return self.tally
        size = 0
        with self._anew():
            stager = self._stager(found, {})
            for number, record in enumerate(records, 1):
                raw = encoded(record)
                size += len(raw)
                stager.feed(record, raw, 0, number)
            self._finish(stager, found, self._put(stager, anew=True))
            self.row.head = _digest(fingerprint)
            self.row.offset, self.row.line = size, len(records)
            self.writer.save_file(self.row)
        self.tally.bytes += size
        if progress is not None:
            progress(size, self.tally.events)
        return self.tally

    def _stager(self, found: os.stat_result, state: dict[str, Any]) -> Stager:
        """What tells no time has that of the place's files: a folder's own tells when a name in it came or went."""
        reader = self.harness.reader(self.file, state.get("reader"), FileSide())
        time = (self._time_ns or found.st_mtime_ns) // 1_000_000
        return Stager(self.harness, self.file.source, reader, state, self.masker, time, self._fallback)


def encoded(record: Any) -> bytes:
    """A record as bytes, to be looked through for secrets; those of a database were never one text."""
    import orjson

    try:
        return orjson.dumps(record, default=repr, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return repr(record).encode("utf-8", "replace")


def _digest(fingerprint: str) -> bytes:
    return blake2b(fingerprint.encode("utf-8", "surrogatepass"), digest_size=8).digest()
