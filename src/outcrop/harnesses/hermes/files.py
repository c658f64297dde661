"""The files of a folder `sessions`: a snapshot `session_<id>.json`, and the gateway's transcript `<id>.jsonl`.

Both hold whole messages; a snapshot is rewritten after each turn and keeps no time of a message.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcrop.harnesses import jsonl

_PREFIX = "session_"
_OTHERS = ("sessions.json", "request_dump_")
_HEAD = 64 * 1024
_MESSAGE_LINE = re.compile(rb'\s*\{\s*"role"')
LIMIT = 64 * 1024 * 1024
"""Bytes of the largest snapshot that is read."""


@dataclass(slots=True)
class Stored:
    """A session as one store holds it: what is said of the session, and its messages in order."""

    about: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)


def is_session_file(path: Path, strict: bool) -> bool:
    """Whether a file is a session by its name or, unless `strict`, by how it begins."""
    name = path.name
    if name.startswith(_OTHERS) or not name.endswith((".json", ".jsonl")) or not path.is_file():
        return False
    if strict:
        return name.endswith(".jsonl") or name.startswith(_PREFIX)
    if name.endswith(".jsonl"):
        return is_transcript(path)
    head = _head(path).lstrip()
    return name.startswith(_PREFIX) or (head.startswith(b"{") and b'"session_id"' in head)


def is_transcript(path: Path) -> bool:
    """Whether a file of lines begins with a message."""
    return _MESSAGE_LINE.match(_head(path)) is not None


def is_runs(path: Path) -> bool:
    """Whether a file of lines begins with a run."""
    return path.is_file() and b'"conversations"' in _head(path) and not is_transcript(path)


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD)


def native_of(path: Path, strict: bool) -> str:
    """The session's id: from the name that the program gives, else from the document."""
    if path.suffix == ".jsonl":
        return path.stem
    if path.name.startswith(_PREFIX) or strict:
        return path.stem.removeprefix(_PREFIX)
    try:
        named = _document(path).get("session_id")
    except OSError:
        named = None
    return named if isinstance(named, str) and named else path.stem


def read(path: Path) -> Stored:
    """What a file holds. Raises OSError for one that is no whole document now."""
    if path.suffix == ".jsonl":
        return _transcript(path)
    about = dict(_document(path))
    messages = about.pop("messages", None)
    about.pop("tools", None)
    listed = messages if isinstance(messages, list) else []
    return Stored(about, [one if isinstance(one, dict) else {"record": one} for one in listed])


def _transcript(path: Path) -> Stored:
    found = Stored()
    with path.open("rb") as stream:
        for line in jsonl.lines(stream, 0):
            for record in jsonl.records(line.data)[0]:
                if record.get("role") == "session_meta" and not found.messages and not found.about:
                    found.about = {name: value for name, value in record.items() if name not in ("role", "tools")}
                else:
                    found.messages.append(record)
    return found


def _document(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        data = stream.read(LIMIT)
    try:
        value = jsonl.document(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OSError(errno.EIO, "not a whole JSON document", str(path))
    return value
