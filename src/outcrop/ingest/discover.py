"""Which files there are to read: every enabled source's roots, listed; what cannot be listed is reported, not fatal.

A root that does not exist is simply not there yet. A root that fails to list is degraded: nothing below it is taken
for deleted (the history stays), and `outcrop status` names it with its reason.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from outcrop.config import Config
from outcrop.harnesses import UNLISTED, Environment, Form, Harness, SourceFile, all_harnesses

A_FOLDER = "a directory stands where a file should be"
NO_UNICODE = "its name is no valid Unicode"
"""Such a file is told of by its name with escapes, and not read: the database holds text."""


@dataclass(slots=True)
class Found:
    """A file to read, as it stood when it was listed."""

    harness: Harness
    file: SourceFile
    stat: os.stat_result


@dataclass(slots=True)
class Discovery:
    """Everything that one pass found. `degraded`: (source, root, reason). `refused`: (file, harness, reason).

    `aged`: files that are there, but last changed before `cutoff` (UTC ns): retention has them not read.
    """

    cutoff: int = 0
    found: list[Found] = field(default_factory=list)
    aged: list[Found] = field(default_factory=list)
    roots: list[tuple[str, Path]] = field(default_factory=list)
    degraded: list[tuple[str, Path, str]] = field(default_factory=list)
    refused: list[tuple[SourceFile, Harness, str]] = field(default_factory=list)

    def take(self, other: Discovery, source: str | None) -> None:
        """Hold from now on what `other` found, of one source or of all."""
        for name in ("found", "aged", "roots", "degraded", "refused"):
            kept = [] if source is None else [item for item in getattr(self, name) if _source_of(item) != source]
            setattr(self, name, [*kept, *getattr(other, name)])

    def newest_first(self) -> list[Found]:
        return sorted(self.found, key=lambda found: (-found.stat.st_mtime_ns, found.file.path))


def discover(
    config: Config,
    environment: Environment,
    only: str | None = None,
    also: Mapping[str, Sequence[str]] | None = None,
    known: Container[str] = (),
) -> Discovery:
    """List all files of the enabled sources, or of the source `only`; those whose path is `known` are passed over.

    `also`: more default roots, by source.
    """
    discovery = Discovery(config.retention_cutoff(time.time_ns() // 1_000_000) * 1_000_000)
    for harness in all_harnesses():
        for source in harness.sources:
            settings = config.source(source)
            if not settings.enabled or only not in (None, source):
                continue
            for root in roots_of(harness, source, config, environment, also):
                _list(discovery, harness, source, root, known)
    return discovery


def discover_at(
    config: Config, environment: Environment, source: str, path: str, also: Mapping[str, Sequence[str]] | None = None
) -> list[Found] | None:
    """The files of a source at a path without links, or below it, as `discover` would find them.

    None where only a listing of the whole source tells, also where anything about them is out of the ordinary.
    """
    discovery = Discovery(config.retention_cutoff(time.time_ns() // 1_000_000) * 1_000_000)
    harness = next(harness for harness in all_harnesses() if source in harness.sources)
    for root in roots_of(harness, source, config, environment, also):
        inside = os.path.relpath(path, os.path.realpath(root))
        if inside.split(os.sep)[0] in (os.curdir, os.pardir):
            continue
        try:
            files = harness.discover_at(source, root, root / inside)
            if files is None:
                return None
            for file in files:
                _stat(discovery, harness, file)
        except OSError:
            return None
    if UNLISTED or discovery.refused or discovery.degraded:
        UNLISTED.clear()
        return None
    return discovery.found


def roots_of(
    harness: Harness,
    source: str,
    config: Config,
    environment: Environment,
    also: Mapping[str, Sequence[str]] | None = None,
) -> list[Path]:
    """The folders of a source, existing or not: those configured, else those of the surroundings and `also`."""
    roots: Sequence[Path] | None = config.source(source).roots
    if roots is None:
        roots = [*absolute_roots(harness, source, environment), *(Path(root) for root in (also or {}).get(source, ()))]
    # One folder may be named in several spellings.
    return list({os.path.realpath(root): Path(root) for root in reversed(roots)}.values())


def absolute_roots(harness: Harness, source: str, environment: Environment) -> list[Path]:
    """The default roots; one that a variable names by a relative path lies where the agents of that shell run.

    Where that is not known such a root is left out.
    """
    folder = environment.folder
    roots = harness.roots(source, environment)
    return [root if folder is None else folder / root for root in roots if folder is not None or root.is_absolute()]


def _source_of(item: Found | tuple[Any, ...]) -> str:
    if isinstance(item, Found):
        return item.file.source
    return item[0].source if isinstance(item[0], SourceFile) else str(item[0])


def known_roots(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Roots of all surroundings that the indexer ever heard of, by source."""
    found = connection.execute("SELECT v FROM meta WHERE k = 'known_roots'").fetchone()
    return json.loads(found[0]) if found else {}


def reason_of(error: OSError) -> str:
    """Why the system refused, in words."""
    return (error.strerror or type(error).__name__).lower()


def _list(discovery: Discovery, harness: Harness, source: str, root: Path, known: Container[str]) -> None:
    try:
        found = os.stat(root)
    except FileNotFoundError:
        return
    except OSError as error:
        discovery.degraded.append((source, root, reason_of(error)))
        return
    discovery.roots.append((source, root))
    try:
        if not stat.S_ISREG(found.st_mode):
            # A harness that looks for folders below takes what it may not see for absent.
            with os.scandir(root):
                os.stat(os.path.join(root, os.curdir))
        listed = False
        for file in harness.discover(source, root):
            listed = True
            if file.path not in known:
                _stat(discovery, harness, file)
        if not listed and stat.S_ISREG(found.st_mode):
            discovery.degraded.append((source, root, "not a directory"))
    except OSError as error:
        discovery.degraded.append((source, root, reason_of(error)))
    finally:
        for refusal in UNLISTED:
            place = Path(refusal.filename) if refusal.filename else root
            discovery.degraded.append((source, place, reason_of(refusal)))
        UNLISTED.clear()


def _stat(discovery: Discovery, harness: Harness, file: SourceFile) -> None:
    try:
        file.path.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(file.path).decode("utf-8", "backslashreplace")
        discovery.refused.append((replace(file, path=shown, native=None, parent=None), harness, NO_UNICODE))
        return
    try:
        found = os.stat(file.path)
    except FileNotFoundError:
        return
    except OSError as error:
        discovery.refused.append((file, harness, reason_of(error)))
        return
    if file.form is Form.CONTAINER and stat.S_ISDIR(found.st_mode):
        discovery.found.append(Found(harness, file, found))
    elif stat.S_ISDIR(found.st_mode):
        discovery.refused.append((file, harness, A_FOLDER))
    elif not stat.S_ISREG(found.st_mode):
        discovery.refused.append((file, harness, "not a regular file"))
    elif found.st_mtime_ns < discovery.cutoff:
        discovery.aged.append(Found(harness, file, found))
    else:
        discovery.found.append(Found(harness, file, found))
