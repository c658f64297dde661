"""One pass over everything: list the files, read what changed, newest first, then bring the text index up to date.

The pass holds the writer lock. A second run reads only what is new since the first; a killed run loses nothing but
the batch that it was in.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from outcrop.config import Config
from outcrop.harnesses import Environment, Form
from outcrop.ingest.checkpoints import untouched
from outcrop.ingest.containers import ContainerReading, is_session
from outcrop.ingest.discover import Discovery, Found, discover
from outcrop.ingest.lock import WAIT_SECONDS, writer_lock
from outcrop.ingest.reading import FileReading
from outcrop.paths import keep_private, private_folder
from outcrop.store.embedded.write import FileRow, Writer

if TYPE_CHECKING:
    from outcrop.store.embedded.text import TextWriter

DRAIN_EVENTS = 20_000
"""Events between two commits of the text index while much is being read."""


@dataclass(slots=True)
class Summary:
    """What a pass did. `problems`: (path, reason) of files and roots that could not be read."""

    files: int = 0
    changed: int = 0
    records: int = 0
    events: int = 0
    bytes: int = 0
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
    private_folder(config.home)
    with writer_lock(config.home, wait):
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
    known = {(row.source, row.path): row for row in writer.files()}
    _follow_moves(writer, discovery, known)
    changed = [found for found in discovery.newest_first() if full or _changed(found, known)]
    summary.files, summary.changed = len(discovery.found), len(changed)
    total = sum(found.stat.st_size for found in changed)
    done = 0
    text = TextWriter(config.home)
    try:
        pending = 0
        for found in changed:
            path = found.file.path

            def tell(size: int, events: int, path: str = path) -> None:
                nonlocal done
                done += size
                if progress is not None:
                    progress(path, done, total, summary.events + events)

            if found.file.form is Form.CONTAINER:
                place = ContainerReading(writer, found.harness, found.file, config.redaction, now)
                tally = place.read_place(found.stat, tell)
            else:
                tally = FileReading(writer, found.harness, found.file, config.redaction, now).read(found.stat, tell)
            summary.records += tally.records
            summary.events += tally.events
            summary.bytes += tally.bytes
            if tally.cause is not None:
                summary.problems.append((path, tally.cause))
            pending += tally.events
            if pending >= DRAIN_EVENTS:
                text.drain(writer.db)
                pending = 0
        for file, harness, reason in discovery.refused:
            FileReading(writer, harness, file, config.redaction, now).refuse(reason)
            summary.problems.append((file.path, reason))
        summary.problems += [(str(root), reason) for _, root, reason in discovery.degraded]
        _note_missing(writer, discovery, source)
        _note_roots(writer, discovery, now)
        _drain(text, writer)
    finally:
        text.close()
    return summary


def _drain(text: TextWriter, writer: Writer) -> None:
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
    """A file that was renamed on its file system keeps its checkpoint."""
    present = {(found.file.source, found.file.path) for found in discovery.found}
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
        if row is None or row.form != found.file.form or found.stat.st_size < row.offset:
            continue
        del known[row.source, row.path]
        row.path, row.role, row.native, row.parent = (
            found.file.path, found.file.role, found.file.native, found.file.parent,
        )  # fmt: skip
        known[key] = row
        with writer.transaction():
            writer.save_file(row)


def _note_missing(writer: Writer, discovery: Discovery, source: str | None) -> None:
    """Mark files that are proven gone: some folder between the file and its root lists, and the next step is absent."""
    present = {(found.file.source, found.file.path) for found in discovery.found}
    present |= {(file.source, file.path) for file, _, _ in discovery.refused}
    roots = [(name, str(root)) for name, root in discovery.roots]
    gone: list[tuple[int]] = []
    for row in writer.files():
        if (row.source, row.path) in present or row.missing or is_session(row) or source not in (None, row.source):
            continue
        if any(name == row.source and _proven_gone(row.path, root) for name, root in roots):
            gone.append((row.id,))
    if gone:
        with writer.transaction():
            writer.db.executemany("UPDATE file SET missing = 1 WHERE id = ?", gone)


def _proven_gone(path: str, root: str) -> bool:
    parts = Path(path).parts
    top = Path(root).parts
    if parts[: len(top)] != top or len(parts) <= len(top):
        return False
    for depth in range(len(parts) - 1, len(top) - 1, -1):
        folder = Path(*parts[:depth])
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return False
        return parts[depth] not in names
    return False


def _note_roots(writer: Writer, discovery: Discovery, now: int) -> None:
    """Leave the roots and their state for `outcrop status`."""
    import json

    reasons = {(source, str(root)): reason for source, root, reason in discovery.degraded}
    roots = [
        {"source": source, "root": str(root), "problem": reasons.pop((source, str(root)), None)}
        for source, root in discovery.roots
    ]
    roots += [{"source": source, "root": root, "problem": reason} for (source, root), reason in reasons.items()]
    with writer.transaction():
        writer.set_meta("roots", json.dumps(roots))
        writer.set_meta("last_pass", now)
