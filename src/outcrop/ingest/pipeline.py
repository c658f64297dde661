"""One pass over everything: list the files, read what changed, newest first, then derive touches and the text index.

The pass holds the writer lock. A second run reads only what is new since the first; a killed run loses nothing but
the batch that it was in.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from outcrop import faults
from outcrop.config import Config
from outcrop.errors import OutcropError
from outcrop.harnesses import Environment, Form, SourceFile, load
from outcrop.ingest import purge, retention, touching
from outcrop.ingest.checkpoints import Verdict, judge, proven_gone, untouched
from outcrop.ingest.containers import SESSION, ContainerReading, is_session
from outcrop.ingest.discover import A_FOLDER, Discovery, Found, discover, known_roots
from outcrop.ingest.lock import WAIT_SECONDS, writer_lock
from outcrop.ingest.reading import TOLD_BYTES, FileReading, Tally
from outcrop.paths import keep_private
from outcrop.store.embedded import pack
from outcrop.store.embedded.compact import truncate_log
from outcrop.store.embedded.database import engine_errors
from outcrop.store.embedded.write import FileRow, Writer

if TYPE_CHECKING:
    from outcrop.store.embedded.text import TextWriter

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # tracebacks are for --debug

RECENT_FILES = 12
"""Newest files of each source that a short look takes in."""
FIRST_FILES = 50
"""The newest files are searchable before all others are read."""
URGENT_DOCUMENTS = 300
"""Of a commit in the midst of a pass, the newest: with 2,000 a message waits twice as long."""
SIGN_OF_LIFE_MS = 600_000
BARE = "lists nothing where sessions were; it is looked at once more before that is believed"
GROUP_BYTES = TOLD_BYTES
GROUP_SECONDS = 0.2
"""Of files whose rows are committed together. A commit writes the last page of every table and index, which costs more
than the rows of a small file; what is urgent waits for it no longer than for a piece of a large one."""
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
    left: list[str] = field(default_factory=list)
    """Files that were being read already."""


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
    keep_private()
    with writer_lock(config.home, wait), engine_errors():
        pipeline = Pipeline(config, environment or Environment.here())
        try:
            return pipeline.sweep(full, source, progress)
        finally:
            pipeline.close()


class Pipeline:
    """The one writer of a store at its work. Its process holds the writer lock.

    `breathe` is called wherever no transaction is open while much is being read or indexed: what is more urgent can be
    read there; true if something was.
    """

    def __init__(self, config: Config, environment: Environment) -> None:
        from outcrop.store.embedded.text import TextWriter

        self.config = config
        self.environment = environment
        self.writer = Writer(config.home)
        self.text: TextWriter = TextWriter(config.home)
        self.breathe: Callable[[], bool] = _nothing
        self.known_roots: dict[str, list[str]] = known_roots(self.writer.db)
        """Roots of all surroundings ever told of, by source: what this process does not see is not gone for that."""
        self.discovery = Discovery()
        """What the last sweep found, source by source."""
        self.listed: Callable[[], object] = _nothing
        """Called by a sweep once it knows what there is, before it reads."""
        self._reading: set[str] = set()

    def close(self) -> None:
        self.text.close()
        self.writer.close()

    def sweep(
        self,
        full: bool = False,
        source: str | None = None,
        progress: Progress | None = None,
        noted: bool = True,
    ) -> Summary:
        """List all files of all sources, or of one, and read what changed, newest first.

        `full` opens every file and looks at all files of the text index. Not `noted`: a pass that finds nothing new
        writes nothing.
        """
        started = time.monotonic()
        if full:
            self.text.doubt()
        summary = Summary()
        discovery = discover(self.config, self.environment, source, self.known_roots)
        self.discovery.take(discovery, source)
        retention.apply_setting(self.writer, self.config)
        known = {(row.source, row.path): row for row in self.writer.files()}
        _follow_moves(self.writer, discovery, known)
        # Before reading: what a file that is gone had brought can go over to one that is there.
        summary.problems += _note_missing(self.writer, discovery, known.values(), source)
        self.listed()
        changed = [found for found in discovery.newest_first() if full or _changed(found, known)]
        summary.files = len(discovery.found)
        total = sum(found.stat.st_size for found in changed)
        done = within = 0

        def tell(path: str, size: int, events: int) -> None:
            nonlocal within
            within += size
            if progress is not None:
                progress(path, min(done + within, total), total, summary.events + events)

        # First of all: what was to be erased must not wait for hours of reading.
        self._finish_purge(summary)
        number, pending, many = 0, 0, False
        for group in _groups(changed):
            while group:
                until = time.monotonic() + GROUP_SECONDS
                with self._together(group):
                    while group and time.monotonic() < until:
                        found = group.popleft()
                        within = 0
                        pending += self._take(found, summary, full, tell)
                        number += 1
                        done += found.stat.st_size
                        if progress is not None:
                            progress(found.file.path, done, total, summary.events)
                if pending >= DRAIN_EVENTS or (number == FIRST_FILES and pending):
                    self._settle_conversations()
                    pending, many = 0, True
                self.breathe()
        if many:
            self._settle_conversations()
        for file, harness, reason in discovery.refused:
            if (row := known.get((file.source, file.path))) is None or row.problem != reason:
                FileReading(self.writer, harness, file, self.config.redaction, _now()).refuse(reason)
            summary.problems.append((file.path, reason))
        summary.problems += [(str(root), reason) for _, root, reason in discovery.degraded]
        _note_roots(self.writer, discovery, source, _now(), changed=noted or bool(summary.records))
        if source is None:
            summary.removed = retention.apply_retention(self.writer, self.config, discovery, _now())
        self.settle()
        self.text.merge(self.writer.db)
        if summary.removed:
            self._finish_purge(summary)
        summary.seconds = time.monotonic() - started
        return summary

    def read(self, some: Iterable[Found]) -> Summary:
        """Read on in these files, but not in one that is being read just now. Nothing is derived yet: `settle`."""
        summary = Summary()
        for found in some:
            if found.file.path in self._reading:
                summary.left.append(found.file.path)
            else:
                self._take(found, summary)
        return summary

    def recent(self, seconds: float) -> Summary:
        """Read on in the newest files that are known, for about so long, and make what they say searchable."""
        until = time.monotonic() + seconds
        summary = Summary()
        rows = self.writer.db.execute(
            "SELECT source, path FROM (SELECT source, path, row_number() OVER (PARTITION BY source"
            " ORDER BY mtime_ns DESC) AS place FROM file WHERE NOT missing AND role <> ?) WHERE place <= ?",
            (SESSION, RECENT_FILES),
        ).fetchall()
        for source, path in rows:
            row = self.writer.file(source, path)
            if row is None or time.monotonic() > until:
                break
            harness = load(row.harness)
            file = SourceFile(path, source, Form(row.form), row.role, row.native, row.parent)
            with suppress(OSError):
                found = Found(harness, file, os.stat(path))
                if _changed(found, {(source, path): row}):
                    self._take(found, summary)
        if summary.events:
            self.settle_talk()
        return summary

    def failed(self) -> int:
        """How many files could not be read to their end."""
        found = self.writer.db.execute("SELECT count(*) FROM file WHERE problem IS NOT NULL AND NOT missing")
        return int(found.fetchone()[0])

    def settle(self) -> None:
        """Derive touches and the text index from all that was read. Raises the store's errors."""
        touching.drain(self.writer, self.breathe)
        self.text.drain(self.writer.db, breathe=self.breathe)
        if self.writer.meta("first_build") != "done":
            with self.writer.transaction():
                self.writer.set_meta("first_build", "done")
            self.text.merge(self.writer.db, everything=True)
            self._packed()

    def _settle_conversations(self) -> None:
        """Bring what was said into the text index, before all that follows from tools."""
        self.text.drain(self.writer.db, conversations_only=True, breathe=self.breathe)

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the text index anew from the rows; how many documents it took. `progress`: (documents done, all)."""
        from outcrop.store.embedded.text import rebuild

        rebuild(self.writer.db)
        return self.text.drain(self.writer.db, progress, breathe=self.breathe)

    def pack(self) -> None:
        """Write the contents that came one by one together, session by session; the log that they left is cut."""
        for session in pack.due(self.writer):
            pack.pack(self.writer, session)
            self.breathe()
        self.text.merge(self.writer.db)
        self._packed()

    def _packed(self) -> None:
        pack.done(self.writer)
        truncate_log(self.writer.db, 0.0)

    def settle_talk(self) -> None:
        """Bring the newest of what was said into the text index, in one short commit; the rest waits."""
        self.text.drain(self.writer.db, conversations_only=True, most=URGENT_DOCUMENTS)

    def _take(
        self, found: Found, summary: Summary, full: bool = False, tell: Callable[[str, int, int], None] | None = None
    ) -> int:
        """Read one file or place into the rows; how many events it brought."""
        path = found.file.path

        def heard(size: int, events: int) -> None:
            if tell is not None:
                tell(path, size, events)
            if not self.writer.db.in_transaction:
                self.breathe()

        self._reading.add(path)
        if faults.ACTIVE:
            time.sleep(faults.delay("file"))
        try:
            tally = _read(self.writer, found, self.config.redaction, _now(), heard, full)
        finally:
            self._reading.discard(path)
        summary.changed += not tally.stood
        summary.records += tally.records
        summary.events += tally.events
        summary.bytes += tally.bytes
        summary.set_aside += tally.set_aside
        if tally.cause is not None:
            summary.problems.append((path, tally.cause))
        return tally.events

    @contextmanager
    def _together(self, group: Collection[Found]) -> Iterator[None]:
        """Commit what several files bring at once; what they brought before one of them failed, too."""
        if len(group) == 1:
            yield
            return
        failure: Exception | None = None
        with self.writer.transaction():
            try:
                yield
            except Exception as error:
                if not self.writer.db.in_transaction:
                    raise
                failure = error
        faults.at("after-commit")
        if failure is not None:
            raise failure

    def _finish_purge(self, summary: Summary) -> None:
        """Finish an erasure that was begun. Readers that hold an older state are not waited for long."""
        proof = purge.finish_purge(self.writer, self.text, wait=READER_SECONDS)
        summary.pending = None if proof is None or proof.proven else proof.reason


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


def _nothing() -> bool:
    return False


def _now() -> int:
    return time.time_ns() // 1_000_000


def _changed(found: Found, known: dict[tuple[str, str], FileRow]) -> bool:
    if found.file.form is Form.CONTAINER:
        return True  # it looks at its own stamp
    row = known.get((found.file.source, found.file.path))
    return row is None or bool(row.missing) or not untouched(row, found.stat, found.harness.version)


def _groups(changed: Iterable[Found]) -> Iterator[deque[Found]]:
    """The files in order, small ones together, of which one ends with the first FIRST_FILES. Places stand alone."""
    group: deque[Found] = deque()
    size = 0
    for number, found in enumerate(changed, 1):
        alone = found.file.form is Form.CONTAINER
        if group and (alone or size + found.stat.st_size > GROUP_BYTES):
            yield group
            group, size = deque(), 0
        group.append(found)
        size += found.stat.st_size
        if alone or number == FIRST_FILES:
            yield group
            group, size = deque(), 0
    if group:
        yield group


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


def _note_missing(
    writer: Writer, discovery: Discovery, known: Iterable[FileRow], source: str | None
) -> list[tuple[str, str]]:
    """Mark files that are proven gone: some folder between the file and its root lists, and the next step is absent.

    Their history stays (ruling 41); a row that never had any goes. A root that lists nothing where there were files
    may have lost its file system: it is degraded once, and believed the next time. Returns (path, reason) of the files
    in whose place something else stands.
    """
    present = {(found.file.source, found.file.path) for found in (*discovery.found, *discovery.aged)}
    present |= {(file.source, file.path) for file, _, _ in discovery.refused}
    roots = _believed(writer, discovery, known)
    gone: list[FileRow] = []
    usurped: list[tuple[str, str]] = []
    for row in known:
        if (row.source, row.path) in present or is_session(row) or source not in (None, row.source):
            continue
        if row.missing and row.problem is None:
            continue
        if row.form != Form.CONTAINER and os.path.isdir(row.path):
            usurped.append((row.path, A_FOLDER))
        elif any(name == row.source and proven_gone(row.path, root) for name, root in roots):
            gone.append(row)
    if gone or usurped:
        with writer.transaction():
            for row in gone:
                if row.state is None and row.form != Form.CONTAINER:
                    writer.forget_reading(row.id)
                    writer.db.execute("DELETE FROM file WHERE id = ?", (row.id,))
            writer.db.executemany(
                "UPDATE file SET missing = 1, problem = NULL WHERE id = ?", [(row.id,) for row in gone]
            )
            writer.db.executemany("UPDATE file SET problem = ?2 WHERE path = ?1 AND problem IS NOT ?2", usurped)
    return usurped


def _believed(writer: Writer, discovery: Discovery, known: Iterable[FileRow]) -> list[tuple[str, str]]:
    """(source, root) of the roots whose listing proves that a file is gone."""
    doubted = {
        (root["source"], root["root"]) for root in json.loads(writer.meta("roots") or "[]") if root["problem"] == BARE
    }
    held = {(row.source, row.path) for row in known if not row.missing and not is_session(row)}
    believed: list[tuple[str, str]] = []
    for name, path in discovery.roots:
        root = str(path)
        below = os.path.join(root, "")

        def under(source: str, place: str, name: str = name, root: str = root, below: str = below) -> bool:
            return source == name and (place == root or place.startswith(below))

        bare = not any(under(found.file.source, found.file.path) for found in (*discovery.found, *discovery.aged))
        if bare and (name, root) not in doubted and any(under(*row) for row in held):
            discovery.degraded.append((name, path, BARE))
        else:
            believed.append((name, root))
    return believed


def _note_roots(writer: Writer, discovery: Discovery, source: str | None, now: int, changed: bool) -> None:
    """Leave the roots and their state for `outcrop status`; a pass over one source says nothing of the others.

    A pass that found nothing new writes nothing either, but for a sign of life now and then.
    """
    reasons = {(source, str(root)): reason for source, root, reason in discovery.degraded}
    roots = [
        {"source": name, "root": str(root), "problem": reasons.pop((name, str(root)), None)}
        for name, root in discovery.roots
    ]
    roots += [{"source": name, "root": root, "problem": reason} for (name, root), reason in reasons.items()]
    before = writer.meta("roots") or "[]"
    if source is not None:
        roots += [known for known in json.loads(before) if known["source"] != source]
    told = json.dumps(roots)
    if changed or told != before or now - int(writer.meta("last_pass") or 0) >= SIGN_OF_LIFE_MS:
        with writer.transaction():
            writer.set_meta("roots", told)
            writer.set_meta("last_pass", now)
