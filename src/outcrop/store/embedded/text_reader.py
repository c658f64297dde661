"""Reading the text index in `text/`: any number of readers in any process, while one writer goes on (`text.py`)."""

from __future__ import annotations

import os
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tantivy import Index, Searcher

from outcrop.errors import BackendFailure, OutcropError, ResourceExhausted, TextIndexRebuilding
from outcrop.store.embedded import text_fields, text_merge
from outcrop.store.embedded.database import database_path, engine_errors
from outcrop.store.embedded.text_fields import Marker

FOLDER = "text"
_ATTEMPTS = 3


class TextFailure(BackendFailure):
    """The engine failed (ruling 18)."""

    def __init__(self) -> None:
        super().__init__("the text index could not be used; `outcrop rebuild` makes it anew")


class TextRefused(BackendFailure):
    """The engine takes a lock even to read, and may not write the file of it."""

    def __init__(self) -> None:
        super().__init__("the data folder is read-only, so the text index cannot be opened")


@dataclass(slots=True, frozen=True)
class View:
    """One state of the text index. It stays as it is while commits and merges go on."""

    searcher: Searcher
    marker: Marker
    name: str
    documents: int
    """Of the index, with deleted ones that no merge has dropped yet: the engine's scores count them, so that a merge
    changes scores."""


class TextReader:
    """The text index for searching; safe to use from several threads."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._rows = os.fspath(database_path(home))
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._name: str | None = None
        self._database: tuple[int, int] | None = None
        self._stamp: tuple[int, int] | None = None
        self._seen: tuple[Searcher, Marker | None, int] | None = None

    def view(self, connection: sqlite3.Connection) -> View | None:
        """The newest committed state, or None where the store holds no event at all.

        Raises TextIndexRebuilding where there is no usable index (ruling 18), TextRefused where it may not be opened.
        The caller begins its row transaction after this and asks `current` whether the two still belong together.
        """
        for _ in range(_ATTEMPTS):  # the folder may just have given way to its successor
            with engine_errors():
                meta = stored_meta(connection)
                some = connection.execute("SELECT 1 FROM event LIMIT 1").fetchone()
            if some is None:
                return None
            name = meta.get("text_dir")
            if not name:
                break
            try:
                with self._lock:
                    searcher, marker, documents = self._state(name, self._home / FOLDER / name)
            except BaseException as error:
                if not is_engine_failure(error):
                    raise
                if is_refusal(error):
                    raise TextRefused from error
                continue
            if marker is not None and fits(marker, meta):
                return View(searcher, marker, name, documents)
        raise TextIndexRebuilding

    def current(self, connection: sqlite3.Connection, view: View) -> bool:
        """Whether the rows, as `connection` sees them now, still name this index."""
        meta = stored_meta(connection)
        return meta.get("text_dir") == view.name and fits(view.marker, meta)

    def _state(self, name: str, path: Path) -> tuple[Searcher, Marker | None, int]:
        """The newest searcher, its marker, and how many documents it has. The caller holds the lock."""
        database = os.stat(self._rows)
        identity = (database.st_dev, database.st_ino)
        if self._index is None or name != self._name or identity != self._database:
            self._index = None
            index = text_fields.open_index(path)
            index.config_reader(reload_policy="manual")  # the other policy starts a thread (trap 4)
            self._index, self._name, self._database, self._stamp = index, name, identity, None
        state = os.stat(path / "meta.json")
        stamp = (state.st_mtime_ns, state.st_ino)
        if stamp != self._stamp:
            before = text_merge.documents(path)
            self._index.reload()
            searcher = self._index.searcher()
            # A commit or a merge may have come in between: what no score goes beyond must not be too low.
            self._seen = (searcher, text_fields.read_marker(searcher), max(before, text_merge.documents(path)))
            self._stamp = stamp
        assert self._seen is not None
        return self._seen


def fits(marker: Marker, meta: dict[str, Any]) -> bool:
    return marker.schema == text_fields.SCHEMA and marker.epoch == str(meta.get("epoch", ""))


def is_engine_failure(error: BaseException) -> bool:
    """Whether the text engine raised this; on damaged files it panics, with a class that cannot be imported."""
    return isinstance(error, (ValueError, OSError)) or type(error).__name__ == "PanicException"


def is_refusal(error: BaseException) -> bool:
    """Whether the engine may not write the lock that it takes to read: nothing is damaged then."""
    told = str(error)
    return "Lockfile" in told and ("PermissionDenied" in told or "ReadOnlyFilesystem" in told)


def engine_error(error: BaseException) -> OutcropError:
    """The typed error for a failure of the engine, without its message (ruling 18)."""
    if "No space left" in str(error) or getattr(error, "errno", None) == 28:
        return ResourceExhausted("the disk is full; nothing that was indexed is lost")
    return TextFailure()


def stored_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """All marks of a store, by name."""
    return dict(connection.execute("SELECT k, v FROM meta"))
