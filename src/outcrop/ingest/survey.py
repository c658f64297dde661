"""What lies on disk against what has been read of it: names, sizes and times alone, nothing is opened.

The answer is about this very moment and bounded in time: a source whose files could not be looked at in time says so,
and only what was compared may be called current. Listing goes on in a thread of its own, because a dead network drive
lets nobody go; what it has not finished when the time is over does not count.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from outcrop.config import Config
from outcrop.harnesses import REGISTRY, Environment, Form, load
from outcrop.ingest.checkpoints import untouched
from outcrop.ingest.containers import is_session, stands
from outcrop.ingest.discover import Discovery, Found, discover, reason_of, roots_of
from outcrop.store.embedded.write import FileRow

SECONDS = 5.0
"""How long a comparison may take by default; five thousand files take a tenth of a second."""
MOST_PATHS = 20
"""Paths that a document names; all are counted."""


class State(StrEnum):
    CURRENT = "current"
    """Everything that lies there has been read."""
    BEHIND = "behind"
    """Something is new, or has changed since it was read."""
    INCOMPLETE = "incomplete"
    """What can be read has been read; something cannot."""
    NOT_CHECKED = "not checked"
    """Time ran out, or the folders cannot be listed."""


@dataclass(slots=True)
class SourceSurvey:
    """One source. Times in UTC ms, None where there is no file; `waits` are (path, why) of what is to be read.

    `unseen`: files that were read and are not there now, though nothing has noted yet that they went. `roots` are the
    folders that exist, `absent` those that do not; `degraded` are (folder, reason) of those that cannot be listed.
    """

    source: str
    harness: str
    checked: bool = False
    files: int = 0
    indexed: int = 0
    new: int = 0
    changed: int = 0
    outdated: int = 0
    unread_bytes: int = 0
    missing: int = 0
    unseen: int = 0
    newest: int | None = None
    newest_indexed: int | None = None
    waits_since: int | None = None
    waits: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    degraded: list[tuple[str, str]] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)

    @property
    def pending(self) -> int:
        return self.new + self.changed + self.outdated

    @property
    def state(self) -> State:
        if not self.checked or (self.degraded and not self.files and not self.indexed):
            return State.NOT_CHECKED
        if self.pending or self.unseen:
            return State.BEHIND
        return State.INCOMPLETE if self.failed or self.degraded else State.CURRENT


def survey(
    config: Config,
    environment: Environment,
    rows: Iterable[FileRow],
    seconds: float = SECONDS,
    also: Mapping[str, Sequence[str]] | None = None,
) -> list[SourceSurvey]:
    """Every enabled source, compared for at most `seconds`; those that it did not come to are not `checked`.

    `also`: roots of other surroundings, by source, that the indexer follows as well.
    """
    known: dict[str, dict[str, FileRow]] = {}
    for row in rows:
        known.setdefault(row.source, {})[row.path] = row
    enabled = [
        (name, source) for name, entry in REGISTRY.items() for source in entry.sources if config.source(source).enabled
    ]
    done: dict[str, SourceSurvey] = {}

    def look() -> None:
        for name, source in enabled:
            discovery = discover(config, environment, source, also)
            roots = [str(root) for root in roots_of(load(name), source, config, environment, also)]
            done[source] = compare(discovery, source, known.get(source, {}), roots)

    if seconds > 0:
        listing = threading.Thread(target=look, daemon=True)
        listing.start()
        listing.join(seconds)
    finished = dict(done)
    return [finished.get(source) or SourceSurvey(source, name) for name, source in enabled]


def overall(surveys: Iterable[SourceSurvey], waiting: int) -> State:
    """The state of all of it; `waiting` documents are stored and not yet searchable."""
    states = {found.state for found in surveys}
    if waiting or State.BEHIND in states:
        return State.BEHIND
    for state in (State.NOT_CHECKED, State.INCOMPLETE):
        if state in states:
            return state
    return State.CURRENT


def compare(discovery: Discovery, source: str, known: dict[str, FileRow], roots: list[str]) -> SourceSurvey:
    """One source that has been listed, against its checkpoints by path."""
    name = next(name for name, entry in REGISTRY.items() if source in entry.sources)
    told = SourceSurvey(source, name, checked=True)
    told.roots = [str(root) for _, root in discovery.roots]
    told.degraded = [(str(root), reason) for _, root, reason in discovery.degraded]
    told.absent = [root for root in roots if not os.path.lexists(root)]
    seen = {found.file.path for found in discovery.found} | {file.path for file, _, _ in discovery.refused}
    for found in discovery.found:
        _judge(told, found, known.get(found.file.path))
    for file, _, reason in discovery.refused:
        told.files += 1
        told.failed.append((file.path, reason))
    for path, row in known.items():
        if is_session(row):
            if row.problem is not None:
                told.failed.append((path, row.problem))
            continue
        if path in seen:
            continue
        if row.missing:
            told.missing += 1
        elif row.problem is not None and os.path.lexists(path):
            told.failed.append((path, row.problem))
        elif any(below(path, root) for root, _ in told.degraded):
            told.failed.append((path, "its folder cannot be listed"))
        elif any(below(path, root) for root in told.roots):
            told.unseen += 1
        else:
            told.missing += 1  # nothing proves it gone: the whole folder is not there
    return told


def _judge(told: SourceSurvey, found: Found, row: FileRow | None) -> None:
    told.files += 1
    told.folders.add(os.path.dirname(found.file.path))
    try:
        place = found.harness.stamp(found.file) if found.file.form is Form.CONTAINER else None
    except OSError as error:
        told.failed.append((found.file.path, reason_of(error)))
        return
    size, time_ns = place or (found.stat.st_size, found.stat.st_mtime_ns)
    at = time_ns // 1_000_000
    told.newest = max(told.newest or at, at)
    version = found.harness.version
    why = None
    if row is not None and row.problem and max(time_ns, found.stat.st_ctime_ns) // 1_000_000 <= row.seen_at:
        told.failed.append((row.path, row.problem))  # nothing changed since it was tried
        return
    if row is None or row.missing:
        told.new += 1
        why = "new"
    elif stands(row, place, version) if place else untouched(row, found.stat, version):
        told.indexed += 1
        told.newest_indexed = max(told.newest_indexed or at, at)
    elif row.adapter_version != version and (row.size, row.mtime_ns) == (size, time_ns):
        told.outdated += 1
        why = "read by an older version" if row.adapter_version < version else "read by a newer version"
    else:
        told.changed += 1
        why = "changed"
        if row.mtime_ns:
            read = row.mtime_ns // 1_000_000
            told.newest_indexed = max(told.newest_indexed or read, read)
    if why is not None:
        told.waits.append((found.file.path, why))
        told.waits_since = min(told.waits_since or at, at)
        told.unread_bytes += max(0, size - row.offset) if row and why == "changed" else size


def below(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, or is it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def as_json(told: SourceSurvey, now: int) -> dict[str, Any]:
    """The document of a source; `lag_ms`: how long the change that waits longest has stood on disk."""
    return {
        "source": told.source,
        "harness": told.harness,
        "state": str(told.state),
        "files": told.files,
        "indexed": told.indexed,
        "pending": {
            "new": told.new,
            "changed": told.changed,
            "outdated": told.outdated,
            "gone": told.unseen,
            "bytes": told.unread_bytes,
            "paths": [{"path": path, "why": why} for path, why in told.waits[:MOST_PATHS]],
        },
        "failed": {
            "count": len(told.failed),
            "files": [{"path": path, "reason": reason} for path, reason in told.failed[:MOST_PATHS]],
        },
        "missing": told.missing,
        "degraded": [{"root": root, "reason": reason} for root, reason in told.degraded],
        "newest_on_disk": told.newest,
        "newest_indexed": told.newest_indexed,
        "lag_ms": 0 if told.waits_since is None else max(0, now - told.waits_since),
    }
