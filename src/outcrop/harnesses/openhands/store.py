"""A folder of conversations, each a folder with one file for each event, written once and never changed.

The document beside the events holds the agent's settings too: only what is named here is taken from it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import jsonl
from outcrop.harnesses.json_values import string
from outcrop.harnesses.openhands import SERVER_IDS, TRAJECTORY_IDS
from outcrop.harnesses.openhands.values import items, mapping, zone_of
from outcrop.ids import text_digest

LIMIT = 16 * 1024 * 1024
"""Bytes of the largest event that is read."""
_HEAD = 64 * 1024
ABOUT = ("base_state.json", "metadata.json")

_EVENT = re.compile(r"(?:event-)?(\d+)(?:-[0-9a-fA-F-]+)?\.json")


class Store:
    """The `Container` of the conversations below a folder; `server`: in the older server's layout."""

    def __init__(self, root: Path, server: bool) -> None:
        self._server = server
        self._folders: dict[str, tuple[Path, str | None]] = {}
        for folder in _folders(root):
            native = f"{SERVER_IDS}{folder.name}" if server else folder.name
            self._folders[native] = (folder, None)
            for child in _folders(folder / "subagents"):
                self._folders[child.name] = (child, native)

    def stamp(self) -> tuple[int, int]:
        """(number of events and bytes beside them, newest time) of all conversations."""
        size, newest = 0, 0
        for folder, _ in self._folders.values():
            number, signs = _signs(folder)
            size += number + sum(bytes_ for bytes_, _ in signs)
            newest = max([newest, *(time for _, time in signs)])
        return size, newest

    def sessions(self) -> Iterator[tuple[str, str]]:
        for native, (folder, _) in self._folders.items():
            number, signs = _signs(folder)
            if number:
                yield native, f"{number}|{signs}"

    def records(self, native: str) -> Iterator[dict[str, Any]]:
        folder, parent = self._folders.get(native, (None, None))
        if folder is None:
            return
        about = self._about(folder)
        events = [(number, _read(folder / "events" / name)) for number, name in _events(folder)]
        zone = zone_of(event for _, event in events)
        yield about | {"record": "conversation", "id": native, "parent": parent, "zone": zone}
        kept = _branch(about.get("leaf"), [event for _, event in events])
        for number, event in events:
            whole = event if isinstance(event, dict) else {"record": event}
            undone = kept is not None and string(whole, "id") not in kept
            yield {"record": "event", "place": number, "undone": undone, "event": whole}

    def close(self) -> None:
        """Nothing is held open."""

    def _about(self, folder: Path) -> dict[str, Any]:
        if self._server:
            told = mapping(_read(folder / "metadata.json"))
            names = ("title", "created_at", "selected_repository", "selected_branch", "llm_model", "trigger")
            return {name: told.get(name) for name in names}
        told = mapping(_read(folder / "base_state.json"))
        agent = mapping(told.get("agent"))
        return {
            "title": told.get("title"),
            "cwd": mapping(told.get("workspace")).get("working_dir"),
            "llm_model": mapping(agent.get("llm")).get("model"),
            "leaf": told.get("leaf_event_id"),
        }


def is_export(path: Path) -> bool:
    """Whether a file begins like an exported trajectory: a list of events."""
    if path.suffix != ".json" or not path.is_file():
        return False
    head = _head(path)
    return head.startswith(b"[") and (b'"action"' in head or b'"observation"' in head)


def is_output(path: Path) -> bool:
    """Whether a file begins like outputs of the resolver."""
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    head = _head(path)
    return b'"history"' in head and b'"instruction"' in head


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD).lstrip()


def exported(document: Any) -> Iterator[dict[str, Any]]:
    """The records of an exported trajectory, which is a list of events and names no conversation."""
    events = [one if isinstance(one, dict) else {"record": one} for one in items(document)]
    if events:
        native = TRAJECTORY_IDS + text_digest(json.dumps(events[0], sort_keys=True, default=str))
        yield {"record": "conversation", "id": native, "zone": zone_of(events)}
    for place, event in enumerate(events):
        yield {"record": "event", "place": place, "event": event}


def _branch(leaf: Any, events: Iterable[Any]) -> set[str] | None:
    """Ids of the events that lead to the leaf; None where nothing tells of branches."""
    parents = {string(event, "id"): string(event, "parent_id") for event in events if isinstance(event, dict)}
    if not isinstance(leaf, str) or leaf not in parents or not any(parents.values()):
        return None
    found: set[str] = set()
    while leaf in parents and leaf not in found:
        found.add(leaf)
        leaf = parents[leaf]
    return found


def _events(folder: Path) -> list[tuple[int, str]]:
    """(number, name) of the event files, in order."""
    try:
        names = os.listdir(folder / "events")
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((int(found[1]), name) for name in names if (found := _EVENT.fullmatch(name)))


def _signs(folder: Path) -> tuple[int, list[tuple[int, int]]]:
    """Number of events, and (bytes, time) of the newest one and of what stands beside them."""
    events = _events(folder)
    watched = [folder / name for name in ABOUT]
    if events:
        watched.append(folder / "events" / events[-1][1])
    found = []
    for path in watched:
        try:
            stat = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        found.append((stat.st_size, stat.st_mtime_ns))
    return len(events), found


def _read(path: Path) -> Any:
    """The document in a file, what stands there instead as text, or None where there is no file."""
    try:
        with path.open("rb") as stream:
            data = stream.read(LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return jsonl.document(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
