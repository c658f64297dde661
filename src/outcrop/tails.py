"""Paths of files as they stand in histories: told apart and compared by their ends, component by component.

Everything is lexical, for what was touched may be gone or lie on another machine. `beam.py` is no end of
`my_beam.py`. Windows paths are compared with forward slashes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_AGENTS = ".claude/worktrees/"
"""Below a working tree: where agents are given isolated ones of their own."""


def unified(path: str) -> str:
    """A path as it is compared: forward slashes, without `.`, `..` and doubled separators inside."""
    if "\\" in path and ("/" not in path or _WINDOWS.match(path)):
        path = path.replace("\\", "/")
    return posixpath.normpath(path) if path else ""


def is_absolute(path: str) -> bool:
    """Of a unified path."""
    return path.startswith("/") or _WINDOWS.match(path) is not None


def name_of(path: str) -> str:
    """The last component of a unified path."""
    return path.rpartition("/")[2]


def ends_with(path: str, tail: str) -> bool:
    """Whether the last components of a unified path are those of `tail`; an absolute tail is one path alone."""
    return path == tail or (path.endswith("/" + tail) and not is_absolute(tail))


def above(path: str) -> Iterator[str]:
    """The folders that contain a unified path, deepest first, without the root of the file system."""
    at = path.rfind("/")
    while at > 0:
        path = path[:at]
        yield path
        at = path.rfind("/")


def isolated(tail: str) -> str | None:
    """The part of a path below a working tree that is an agent's own tree in it: `.claude/worktrees/agent-1`."""
    name, slash, rest = tail.removeprefix(_AGENTS).partition("/")
    return _AGENTS + name if tail.startswith(_AGENTS) and name and slash and rest else None
