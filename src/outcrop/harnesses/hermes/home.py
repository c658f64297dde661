"""A home as one place: every session of it once, told by whichever of its stores holds most of the session.

The database says best what a session is. Of messages it may lack calls or thoughts that older builds did not store,
and a snapshot may be stale: the store with more messages tells them, then the one with more in them, then the
database. Keys are those of the database, whichever tells them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses.hermes import files, is_home
from outcrop.harnesses.hermes.database import StateDatabase
from outcrop.harnesses.hermes.files import Stored
from outcrop.harnesses.hermes.messages import copies, keyed, richness
from outcrop.model import Relation


class Home:
    """The `Container` of a home, of a folder of session files, or of one such file or database."""

    def __init__(self, path: Path) -> None:
        database = _database(path)
        self._db = StateDatabase(str(database)) if database is not None else None
        self._files: defaultdict[str, list[Path]] = defaultdict(list)
        strict = is_home(path)
        for file in _session_files(path):
            self._files[files.native_of(file, strict)].append(file)

    def sessions(self) -> Iterable[tuple[str, str]]:
        stored = self._db.sessions() if self._db is not None else {}
        for native in dict.fromkeys([*stored, *self._files]):
            signs = [f"{found.st_size}@{found.st_mtime_ns}" for found in _stats(self._files.get(native, []))]
            yield native, "|".join([stored.get(native, ""), *signs])

    def records(self, native: str) -> Iterator[dict[str, Any]]:
        found = self._stored(native)
        if not found:
            return
        about = {name: value for store in reversed(found) for name, value in store.about.items() if value is not None}
        best = max(found, key=lambda store: richness(store.messages))
        messages = keyed(best.messages, _rows(found))
        copied = self._copied(about, messages)
        yield {**about, "record": "session", "id": native}
        for key, message in messages:
            yield {"record": "message", "key": key, "copied": copied.get(key), "message": message}
        if "row" not in best.about:
            yield {"record": "saved", "time": best.about.get("last_updated")}
        yield {"record": "ended", "time": about.get("ended_at"), "reason": about.get("end_reason")}

    def close(self) -> None:
        if self._db is not None:
            self._db.close()

    def _stored(self, native: str) -> list[Stored]:
        """The session in every store that holds it, the database first, snapshots last."""
        found = []
        row = self._db.session(native) if self._db is not None else None
        if row is not None:
            found.append(row)
        failed: OSError | None = None
        for file in sorted(self._files.get(native, []), key=lambda path: path.suffix, reverse=True):
            try:
                found.append(files.read(file))
            except FileNotFoundError:
                continue
            except OSError as error:
                failed = error
        if not found and failed is not None:
            raise failed
        return found

    def _copied(self, about: dict[str, Any], messages: list[tuple[str, dict[str, Any]]]) -> dict[str, list[str]]:
        parent, relation = about.get("parent"), about.get("relation")
        if not isinstance(parent, str) or relation not in (Relation.FORK, Relation.CONTINUATION):
            return {}
        there = self._stored(parent)
        if not there:
            return {}
        told = keyed(max(there, key=lambda store: richness(store.messages)).messages, _rows(there))
        return {key: [parent, same] for key, same in copies(messages, told).items()}


def _rows(found: list[Stored]) -> list[dict[str, Any]]:
    """The messages of the database, where one of the stores is that."""
    return next((store.messages for store in found if "row" in store.about), [])


def stamp(path: Path) -> tuple[int, int]:
    """(bytes, newest time) of the database, its `-wal` and all session files."""
    database = _database(path)
    watched = [] if database is None else [database, Path(f"{database}-wal")]
    found = list(_stats([*watched, *_session_files(path)]))
    return sum(one.st_size for one in found) + len(found), max((one.st_mtime_ns for one in found), default=0)


def _database(path: Path) -> Path | None:
    database = path / "state.db" if path.is_dir() else path
    return database if database.is_file() and database.suffix == ".db" else None


def _session_files(path: Path) -> list[Path]:
    if path.is_file():
        return [] if path.suffix == ".db" else [path]
    strict = is_home(path)
    folder = path / "sessions" if strict else path
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in names if files.is_session_file(folder / name, strict)]


def _stats(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    for path in paths:
        try:
            yield os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
