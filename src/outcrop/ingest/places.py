"""Which paths belong to which known file, which folders to watch for them, and what no event tells of.

Built from a sweep's findings; looking a path up costs the same however many files there are.
"""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from outcrop.config import Config
from outcrop.harnesses import Environment, Form, Harness, SourceFile, all_harnesses
from outcrop.ingest.discover import Discovery, Found, roots_of

BESIDE = ("-wal", "-journal")
"""Files of SQLite that change in place of the database."""
RECENT = 12
"""Newest files of a source that are looked at though no event named them."""
POLLED = 200
"""Of the files that no folder watched tells of, so many are polled, the newest."""
_SOURCES = 8
"""So many sources are in use at once, at most, as far as the newest files go."""


@dataclass(slots=True)
class Spot:
    """A known file or place, and how it stood when it was last looked at."""

    harness: Harness
    file: SourceFile
    stamp: tuple[int, int] = (-1, -1)

    def look(self) -> os.stat_result:
        """The file as it is. Raises OSError."""
        return os.stat(self.file.path)

    def changed(self) -> bool:
        """Whether it looks different from last time, which is noted. A file that is gone is."""
        try:
            if self.file.form is Form.CONTAINER:
                stamp = self.harness.stamp(self.file)
            else:
                found = os.stat(self.file.path)
                stamp = (found.st_size, found.st_mtime_ns)
        except OSError:
            stamp = (-1, 0)
        before, self.stamp = self.stamp, stamp
        return stamp != before


@dataclass(slots=True)
class Places:
    """Everything that is followed."""

    spots: dict[str, Spot] = field(default_factory=dict)
    containers: dict[str, Spot] = field(default_factory=dict)
    watched: list[str] = field(default_factory=list)
    """Folders to watch, with all below; they exist."""
    awaited: list[str] = field(default_factory=list)
    """Folders that would be watched if they existed."""
    identities: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of the folders watched, as they stood: one that takes the place of another is to be watched anew."""
    roots: list[tuple[str, str]] = field(default_factory=list)
    """(source, folder watched, awaited or looked at)."""
    tops: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)
    """Roots of which only some folders are watched: when each was last changed, and the names in it."""
    polled: list[Spot] = field(default_factory=list)
    recent: list[Spot] = field(default_factory=list)
    _real: dict[str, str] = field(default_factory=dict)
    """Folders of files without the links in them, as events name them."""

    @classmethod
    def of(cls, discovery: Discovery, config: Config, environment: Environment, also: dict[str, list[str]]) -> Places:
        places = cls()
        for harness in all_harnesses():
            for source in harness.sources:
                if config.source(source).enabled:
                    for root in roots_of(harness, source, config, environment, also):
                        places._add_root(harness, source, root)
        newest: dict[str, list[tuple[int, str, Found]]] = {}
        for found in discovery.found:
            places.add(found)
            newest.setdefault(found.file.source, []).append((found.stat.st_mtime_ns, found.file.path, found))
        for some in newest.values():
            places.recent += [places.spots[item[1]] for item in heapq.nlargest(RECENT, some)]
        outside = [item for some in newest.values() for item in some if places._unheard(item[2])]
        places.polled = [places.spots[path] for _, path, _ in heapq.nlargest(POLLED, outside)]
        return places

    def find(self, path: str) -> Spot | None:
        """The file that a changed path belongs to: itself, its database, or the tree that it lies in."""
        spot = self.spots.get(path)
        if spot is not None:
            return spot
        for suffix in BESIDE:
            if path.endswith(suffix) and (spot := self.spots.get(path.removesuffix(suffix))) is not None:
                return spot
        if self.containers:
            folder = os.path.dirname(path)
            while folder != (above := os.path.dirname(folder)):
                if (spot := self.containers.get(folder)) is not None:
                    return spot
                folder = above
        return None

    def sources_of(self, path: str) -> set[str]:
        """The sources below whose folders a path lies; the deepest such folder counts, which may be of several."""
        around = [item for item in self.roots if path == item[1] or path.startswith(os.path.join(item[1], ""))]
        deepest = max((len(folder) for _, folder in around), default=0)
        return {source for source, folder in around if len(folder) == deepest}

    def newcomers(self) -> list[str]:
        """What is new in roots that are not watched themselves, since this was last asked."""
        new = []
        for root, (before, names) in self.tops.items():
            time, found = _names(root, before)
            if time != before:
                new += [os.path.join(root, name) for name in found - names]
                self.tops[root] = (time, found)
        return new

    def touched(self, spots: Iterable[Spot]) -> None:
        """These changed just now, so that they are among the newest."""
        for spot in spots:
            if not any(spot is other for other in self.recent):
                self.recent.append(spot)
        del self.recent[: -RECENT * _SOURCES]

    def shifted(self) -> set[str]:
        """The sources of which a folder that was awaited is there, or one that was watched is gone or another."""
        moved = {folder for folder in self.awaited if os.path.isdir(folder)}
        moved |= {folder for folder, identity in self.identities.items() if _identity(folder) != identity}
        return {source for source, folder in self.roots if folder in moved} if moved else set()

    def _add_root(self, harness: Harness, source: str, root: Path) -> None:
        folders = [os.path.realpath(folder) for folder in harness.watched(source, root)]
        top = os.path.realpath(root)
        if top not in folders:
            self.roots.append((source, top))
            if os.path.isdir(top):
                self.tops.setdefault(top, _names(top))
            elif top not in self.awaited:
                self.awaited.append(top)
        for path in folders:
            self.roots.append((source, path))
            if (identity := _identity(path)) is not None:
                if path not in self.watched:
                    self.watched.append(path)
                    self.identities[path] = identity
            elif path not in self.awaited:
                self.awaited.append(path)

    def add(self, found: Found) -> None:
        # How a container stands is not noted, so that it is looked at once more: it may have changed since it was read.
        stands = found.file.form is not Form.CONTAINER
        spot = Spot(found.harness, found.file, (found.stat.st_size, found.stat.st_mtime_ns) if stands else (-1, -1))
        self.spots[found.file.path] = spot
        real = self._without_links(found.file.path)
        self.spots.setdefault(real, spot)
        if found.file.form is Form.CONTAINER and os.path.isdir(real):
            self.containers[found.file.path] = self.containers[real] = spot

    def _without_links(self, path: str) -> str:
        folder, name = os.path.split(path)
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        return os.path.join(self._real[folder], name)

    def _unheard(self, found: Found) -> bool:
        """Whether no event tells of this file: it lies elsewhere, or its writer maps it into memory."""
        path = self._without_links(found.file.path)
        if found.file.form is Form.CONTAINER and path not in self.containers:
            return True
        return not any(path == folder or path.startswith(os.path.join(folder, "")) for folder in self.watched)


def _names(folder: str, unless: int = 0) -> tuple[int, frozenset[str]]:
    """When a folder was last changed, and what it holds: nothing where that was at `unless`, or it cannot be listed."""
    try:
        time = os.stat(folder).st_mtime_ns
        return time, frozenset() if time == unless else frozenset(os.listdir(folder))
    except OSError:
        return unless, frozenset()


def _identity(folder: str) -> tuple[int, int] | None:
    """Of a folder; None where there is none."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def changed(spots: Iterable[Spot]) -> list[Spot]:
    """Those that look different from last time."""
    return [spot for spot in spots if spot.changed()]
