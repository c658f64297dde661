"""The JSON tree: one file for each session, message and part, rewritten in place.

Left behind by versions that have moved to the database: a session that a database beside the tree holds is not read
from here. Parts change only while their message is the latest one, so a look at the session's file, the folder of its
messages and the latest message with its parts tells whether it changed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import sqlite
from outcrop.harnesses.opencode.records import Message, conversation, loaded, mapping, text, time_ms

_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest single file that is read."""


class Tree:
    """A folder `storage`, in the layout of today or in the first one, below `session`."""

    def __init__(self, root: Path) -> None:
        self._first = (root / "session" / "info").is_dir()
        self._session = root / "session"
        base = self._session if self._first else root
        self._message, self._part = base / "message", base / "part"
        self._project = root / "project"
        self._root = root
        self._files: dict[str, Path] = {}
        self._flat: dict[str, list[tuple[str, Any]]] | None = None

    def sessions(self) -> Iterable[tuple[str, str]]:
        elsewhere = _in_databases(self._root.parent)
        flat = _names(self._part, files=True)
        loose = ":".join(_stats([self._part / name for name in flat])) if flat else ""
        for file in self._session_files():
            native = self._native(file)
            if native and native not in elsewhere and native not in self._files:
                self._files[native] = file
                yield native, "|".join([*self.signs(file, native), loose])

    def records(self, native: str) -> Iterable[dict[str, Any]]:
        file = self._files.get(native)
        session = mapping(_read(file)) if file else {}
        directory = text(session, "directory")
        if not directory:
            directory = text(mapping(_read(self._project / f"{text(session, 'projectID')}.json")), "worktree")
        time = mapping(session.get("time"))
        yield {
            "record": "session",
            "id": native,
            "parent": session.get("parentID"),
            "slug": session.get("slug"),
            "directory": directory,
            "title": session.get("title"),
            "version": session.get("version"),
            "created": time.get("created"),
        }
        yield from conversation(self._messages(native), session.get("revert"))

    def close(self) -> None:
        """Nothing is held open."""

    def signs(self, file: Path, native: str) -> list[str]:
        """Sizes and times of the files that tell whether a session changed."""
        folder = self._message / native
        watched = [file, folder]
        names = _names(folder, files=True)
        if names:
            watched.append(folder / names[-1])
            parts = self._parts_of(native, names[-1].removesuffix(".json"))
            watched += [parts, *(parts / name for name in _names(parts, files=True))]
        return [str(len(names)), *_stats(watched)]

    def session_signs(self) -> Iterator[list[str]]:
        for file in self._session_files():
            yield self.signs(file, self._native(file))

    def _session_files(self) -> Iterator[Path]:
        folders = ["info"] if self._first else _names(self._session, files=False)
        for folder in folders:
            for name in _names(self._session / folder, files=True):
                yield self._session / folder / name

    def _native(self, file: Path) -> str:
        if (self._message / file.stem).is_dir():
            return file.stem
        return text(mapping(_read(file)), "id") or file.stem

    def _parts_of(self, session: str, message: str) -> Path:
        return self._part / session / message if self._first else self._part / message

    def _messages(self, native: str) -> list[Message]:
        found: list[tuple[int, str, Message]] = []
        for name in _names(self._message / native, files=True):
            data = _read(self._message / native / name)
            own = mapping(data)
            id = text(own, "id") or name.removesuffix(".json")
            folder = self._parts_of(native, id)
            parts = [_part(part, _read(folder / part)) for part in _names(folder, files=True)]
            if not parts:
                inline = own.get("parts")
                parts = [
                    (text(mapping(part), "id") or f"{id}:{place}", part)
                    for place, part in enumerate(inline if isinstance(inline, list) else ())
                ] or self._loose().get(id, [])
            created = time_ms(mapping(own.get("time")).get("created"))
            found.append((created or 0, id, Message(id, data, parts=parts)))
        return [message for *_, message in sorted(found, key=lambda one: one[:2])]

    def _loose(self) -> dict[str, list[tuple[str, Any]]]:
        """Parts that lie flat in their folder, by the message that they name."""
        if self._flat is None:
            flat: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
            for name in _names(self._part, files=True):
                data = _read(self._part / name)
                flat[text(mapping(data), "messageID")].append(_part(name, data))
            self._flat = dict(flat)
        return self._flat


def stamp(root: Path) -> tuple[int, int]:
    """(sizes and counts, newest time) of all that `Tree.signs` looks at, and whether a database stands beside it."""
    size, newest = len(_databases(root.parent)), 0
    for signs in Tree(root).session_signs():
        size += int(signs[0])
        for sign in signs[1:]:
            bytes_, _, time = sign.partition("@")
            size += int(bytes_)
            newest = max(newest, int(time))
    return size, newest


def _part(name: str, data: Any) -> tuple[str, Any]:
    return text(mapping(data), "id") or name.removesuffix(".json"), data


def _names(folder: Path, files: bool) -> list[str]:
    """Names of the JSON files, or of the folders, in a folder, in order; none where it does not exist."""
    try:
        with os.scandir(folder) as entries:
            if files:
                return sorted(entry.name for entry in entries if entry.name.endswith(".json"))
            return sorted(entry.name for entry in entries if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stats(paths: Iterable[Path]) -> list[str]:
    found = []
    for path in paths:
        try:
            stat = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        found.append(f"{stat.st_size}@{stat.st_mtime_ns}")
    return found


def _read(path: Path) -> Any:
    """The document in a file, what stands there instead as text, or None where there is none."""
    try:
        with path.open("rb") as stream:
            return loaded(stream.read(_LIMIT))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _databases(folder: Path) -> list[str]:
    return [str(path) for path in sorted(folder.glob("opencode*.db")) if path.is_file()]


def _in_databases(folder: Path) -> set[str]:
    """Ids of the sessions that the databases in a folder hold."""
    found: set[str] = set()
    for path in _databases(folder):
        connection = sqlite.open_read_only(path)
        try:
            if "id" in sqlite.columns(connection, "session"):
                found.update(row["id"] for row in connection.execute("SELECT id FROM session"))
        finally:
            connection.close()
    return found
