"""One pass over everything: list the files, read what changed, newest first, then derive touches and the text index.

The pass holds the writer lock. A second run reads only what is new since the first; a killed run loses nothing but
the batch that it was in.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from outcrop.config import Config
from outcrop.errors import OutcropError
from outcrop.harnesses import Environment, Form
from outcrop.ingest import purge, retention, touching
from outcrop.ingest.checkpoints import Verdict, judge, proven_gone, untouched
from outcrop.ingest.containers import ContainerReading, is_session
from outcrop.ingest.discover import A_FOLDER, Discovery, Found, discover
from outcrop.ingest.lock import WAIT_SECONDS, writer_lock
from outcrop.ingest.reading import FileReading, Tally
from outcrop.paths import keep_private
from outcrop.store.embedded.database import engine_errors
from outcrop.store.embedded.write import FileRow, Writer

if TYPE_CHECKING:
    from outcrop.store.embedded.text import TextWriter

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # tracebacks are for --debug

FIRST_FILES = 50
"""The newest files are searchable before all others are read."""
DRAIN_EVENTS = 50_000
"""Events between two commits of the text index while much is being read; they bring the conversations alone."""
READER_SECONDS = 1.0
"""How long an erasure waits for readers that hold an older state."""


@dataclass(slots=True)
class Summary:
    """What a pass did. `problems`: (path, reason) of files and roots that could not be read; `set_aside`: records.

    `removed`: sessions that retention let go. `pending`: why an erasure that was begun is not proven yet.
    """

    files: int = 0
    changed: int = 0
    records: int = 0
    events: int = 0
    bytes: int = 0
    set_aside: int = 0
    removed: int = 0
    pending: str | None = None
    seconds: float = 0.0
    problems: list[tuple[str, str]] = field(default_factory=list)


Progress = Callable[[str, int, int, int], None]
"""Called with (path, bytes done, bytes in all, events)."""


def index(
    config: Config,
    environment: Environment | None = None,
    *,
    full: bool = False,
    source: str | None = None,
    progress: Progress | None = None,
    wait: float = WAIT_SECONDS,
) -> Summary:
    """Read all that is new. `full` opens every file, changed or not. Raises StoreBusy and the store's errors."""
    started = time.monotonic()
    keep_private()
    with writer_lock(config.home, wait), engine_errors():
        writer = Writer(config.home)
        try:
            summary = _pass(writer, config, environment or Environment.here(), full, source, progress)
        finally:
            writer.close()
    summary.seconds = time.monotonic() - started
    return summary


def _pass(
    writer: Writer, config: Config, environment: Environment, full: bool, source: str | None, progress: Progress | None
) -> Summary:
    from outcrop.store.embedded.text import TextWriter

    now = time.time_ns() // 1_000_000
    summary = Summary()
    discovery = discover(config, environment, source)
    retention.apply_setting(writer, config)
    known = {(row.source, row.path): row for row in writer.files()}
    _follow_moves(writer, discovery, known)
    # Before reading: what a file that is gone had brought can go over to one that is there.
    summary.problems += _note_missing(writer, discovery, source)
    changed = [found for found in discovery.newest_first() if full or _changed(found, known)]
    summary.files, summary.changed = len(discovery.found), len(changed)
    total = sum(found.stat.st_size for found in changed)
    done = 0
    text = TextWriter(config.home, thorough=full)
    try:
        # First of all: what was to be erased must not wait for hours of reading.
        _finish_purge(writer, text, summary)
        pending = 0
        for number, found in enumerate(changed, 1):
            path = found.file.path

            def tell(size: int, events: int, path: str = path) -> None:
                nonlocal done
                done += size
                if progress is not None:
                    progress(path, done, total, summary.events + events)

            tally = _read(writer, found, config.redaction, now, tell, full)
            summary.records += tally.records
            summary.events += tally.events
            summary.bytes += tally.bytes
            summary.set_aside += tally.set_aside
            if tally.cause is not None:
                summary.problems.append((path, tally.cause))
            pending += tally.events
            if pending >= DRAIN_EVENTS or (number == FIRST_FILES and pending):
                text.drain(writer.db, conversations_only=True)
                pending = 0
        for file, harness, reason in discovery.refused:
            FileReading(writer, harness, file, config.redaction, now).refuse(reason)
            summary.problems.append((file.path, reason))
        summary.problems += [(str(root), reason) for _, root, reason in discovery.degraded]
        _note_roots(writer, discovery, source, now)
        summary.removed = retention.apply_retention(writer, config, discovery, now)
        _drain(text, writer)
        if summary.removed:
            _finish_purge(writer, text, summary)
    finally:
        text.close()
    return summary


def _read(writer: Writer, found: Found, masking: bool, now: int, tell: Callable[[int, int], None], full: bool) -> Tally:
    """Read one file or place."""
    kind = ContainerReading if found.file.form is Form.CONTAINER else FileReading
    reading = kind(writer, found.harness, found.file, masking, now)
    try:
        if isinstance(reading, ContainerReading):
            return reading.read_place(found.stat, tell)
        return reading.read(found.stat, tell, full)
    except (OutcropError, sqlite3.Error, OSError, MemoryError):
        raise
    except Exception as error:
        # A fault of this program in one file must not keep all others from being read.
        log.error("reading %s failed", found.file.path, exc_info=error)
        reading.refuse(f"could not be taken in ({type(error).__name__}: please report it)")
        return reading.tally


def _finish_purge(writer: Writer, text: TextWriter, summary: Summary) -> None:
    """Finish an erasure that was begun. A reader that holds an older state is not waited for long: others read on."""
    proof = purge.finish_purge(writer, text, wait=READER_SECONDS)
    summary.pending = None if proof is None or proof.proven else proof.reason


def _drain(text: TextWriter, writer: Writer) -> None:
    touching.drain(writer)
    text.drain(writer.db)
    if writer.meta("first_build") != "done":
        with writer.transaction():
            writer.set_meta("first_build", "done")


def _changed(found: Found, known: dict[tuple[str, str], FileRow]) -> bool:
    if found.file.form is Form.CONTAINER:
        return True  # it looks at its own stamp
    row = known.get((found.file.source, found.file.path))
    return row is None or bool(row.missing) or not untouched(row, found.stat, found.harness.version)


def _follow_moves(writer: Writer, discovery: Discovery, known: dict[tuple[str, str], FileRow]) -> None:
    """A file that was renamed on its file system keeps its checkpoint.

    File systems give the number of a file that is gone to the next one, so its content must be the same as well: with
    the checkpoint of another file it would take the place of that one's history.
    """
    present = {(found.file.source, found.file.path) for found in (*discovery.found, *discovery.aged)}
    by_identity = {
        (row.source, row.device, row.inode): row
        for key, row in known.items()
        if key not in present and row.offset and not is_session(row) and not os.path.lexists(row.path)
    }
    for found in discovery.found:
        key = (found.file.source, found.file.path)
        if key in known:
            continue
        row = by_identity.pop((found.file.source, found.stat.st_dev, found.stat.st_ino), None)
        if row is None or row.form != found.file.form or not _continues(row, found):
            continue
        del known[row.source, row.path]
        row.path, row.role, row.native, row.parent = (
            found.file.path, found.file.role, found.file.native, found.file.parent,
        )  # fmt: skip
        known[key] = row
        with writer.transaction():
            writer.save_file(row)


def _continues(row: FileRow, found: Found) -> bool:
    """Whether a file begins with all that was read of the one that the row tells of."""
    try:
        with open(found.file.path, "rb") as stream:
            return judge(row, found.stat, stream, row.adapter_version) is not Verdict.OTHER
    except OSError:
        return False


def _note_missing(writer: Writer, discovery: Discovery, source: str | None) -> list[tuple[str, str]]:
    """Mark files that are proven gone: some folder between the file and its root lists, and the next step is absent.

    Their history stays (ruling 41); a row that never had any goes. Returns (path, reason) of the files in whose place
    something else stands.
    """
    present = {(found.file.source, found.file.path) for found in (*discovery.found, *discovery.aged)}
    present |= {(file.source, file.path) for file, _, _ in discovery.refused}
    roots = [(name, str(root)) for name, root in discovery.roots]
    gone: list[FileRow] = []
    usurped: list[tuple[str, str]] = []
    for row in writer.files():
        if (row.source, row.path) in present or is_session(row) or source not in (None, row.source):
            continue
        if row.missing and row.problem is None:
            continue
        if row.form != Form.CONTAINER and os.path.isdir(row.path):
            usurped.append((row.path, A_FOLDER))
        elif any(name == row.source and proven_gone(row.path, root) for name, root in roots):
            gone.append(row)
    with writer.transaction():
        for row in gone:
            if row.state is None and row.form != Form.CONTAINER:
                writer.forget_reading(row.id)
                writer.db.execute("DELETE FROM file WHERE id = ?", (row.id,))
        writer.db.executemany("UPDATE file SET missing = 1, problem = NULL WHERE id = ?", [(row.id,) for row in gone])
        writer.db.executemany("UPDATE file SET problem = ?2 WHERE path = ?1", usurped)
    return usurped


def _note_roots(writer: Writer, discovery: Discovery, source: str | None, now: int) -> None:
    """Leave the roots and their state for `outcrop status`; a pass over one source says nothing of the others."""
    import json

    reasons = {(source, str(root)): reason for source, root, reason in discovery.degraded}
    roots = [
        {"source": name, "root": str(root), "problem": reasons.pop((name, str(root)), None)}
        for name, root in discovery.roots
    ]
    roots += [{"source": name, "root": root, "problem": reason} for (name, root), reason in reasons.items()]
    if source is not None:
        roots += [known for known in json.loads(writer.meta("roots") or "[]") if known["source"] != source]
    with writer.transaction():
        writer.set_meta("roots", json.dumps(roots))
        writer.set_meta("last_pass", now)
