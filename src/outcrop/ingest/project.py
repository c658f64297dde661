"""Which project a working directory belongs to: its worktree root and the Git common directory that worktrees share.

Read from the live file system when a session is read, because a worktree may be gone tomorrow; no process is started.
Working directories and `.git` files are other people's data: whatever is broken, remote or hostile has no place, and
nothing here waits for a pipe or a network share.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

_LONGEST_LINK = 8192
"""Bytes of a `.git` or `commondir` file that names a path; a longer one is none."""


@dataclass(slots=True, frozen=True)
class Place:
    """Both absolute, with symbolic links followed. `common_dir` is what a project's worktrees have in common."""

    worktree: str
    common_dir: str


Cache = dict[str, "Place | None"]
"""What was found for each folder in one pass over the files. Drop it afterwards: repositories come and go."""


def locate(cwd: str, home: str | None = None, cache: Cache | None = None) -> Place | None:
    """The place of an absolute, local, existing directory: the nearest ancestor with `.git`, not above `home`.

    `home` None: the user's own. A repository that is `home` itself counts.
    """
    cache = {} if cache is None else cache
    if cwd not in cache:
        cache[cwd] = _walk(cwd, home, cache)
    return cache[cwd]


def project_of(cwd: str, home: str | None = None, cache: Cache | None = None) -> str:
    """Identity of the project that a working directory belongs to (ruling 30): what its worktrees have in common,
    without Git the directory itself, canonical where it exists here."""
    place = locate(cwd, home, cache)
    if place is not None:
        return place.common_dir
    if not os.path.isabs(cwd) or "\0" in cwd or cwd[:2] in ("//", "\\\\"):
        return cwd
    return os.path.realpath(cwd)


def _walk(cwd: str, home: str | None, cache: Cache) -> Place | None:
    # A path with two leading separators is a network share; asking for it can hang for minutes.
    if not os.path.isabs(cwd) or cwd[:2] in ("//", "\\\\") or "\0" in cwd:
        return None
    try:
        folder = os.path.realpath(cwd, strict=True)
        top = os.path.realpath(os.path.expanduser("~") if home is None else home)
        if not os.path.isdir(folder):
            return None
    except (OSError, ValueError):
        return None
    passed = []
    while folder not in cache:
        passed.append(folder)
        git = os.path.join(folder, ".git")
        parent = os.path.dirname(folder)
        if os.path.lexists(git):
            common = _common_dir(git)
            cache[folder] = Place(folder, common) if common is not None else None
        elif folder in (top, parent):
            cache[folder] = None
        else:
            folder = parent
    for below in passed:
        cache[below] = cache[folder]
    return cache[folder]


def _common_dir(git: str) -> str | None:
    """The common directory behind a `.git` directory, or behind the file that a linked worktree or submodule has."""
    try:
        if stat.S_ISDIR(os.stat(git).st_mode):
            return os.path.realpath(git, strict=True)
        named = _read_link(git)
        if named is None or not named.startswith("gitdir: "):
            return None
        own = os.path.realpath(os.path.join(os.path.dirname(git), named[len("gitdir: ") :]), strict=True)
        if not os.path.lexists(os.path.join(own, "HEAD")):
            return None
        shared = os.path.join(own, "commondir")
        if os.path.lexists(shared):
            relative = _read_link(shared)
            if relative is None:
                return None
            own = os.path.realpath(os.path.join(own, relative), strict=True)
        return own if os.path.isdir(own) else None
    except (OSError, ValueError):
        return None


def _read_link(path: str) -> str | None:
    """The one line of a small regular file; anything else (a pipe, a gigabyte, no text) names nothing."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = os.read(descriptor, _LONGEST_LINK + 1)
    finally:
        os.close(descriptor)
    if len(data) > _LONGEST_LINK:
        return None
    line = os.fsdecode(data).removesuffix("\n").removesuffix("\r")
    if not line or "\n" in line or "\0" in line or line.removeprefix("gitdir: ").startswith(("//", "\\\\")):
        return None
    return line
