"""A touch, and what of a text is a path: the words that structured arguments, patches and shell commands share.

Everything here is lexical: no file system is asked, for what was touched may be gone or may lie on another machine.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

LONGEST = 1024
"""Characters of a path; what is longer is a text."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/|(?:data|mailto|javascript|urn|blob):", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\/]")
_FILE = re.compile(r"file:(?://(?:localhost)?)?(/.*)", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOWHERE = frozenset({"", ".", "..", "~", "-", "/", "\\", "{}", "NUL", "nul"})


class Effect(StrEnum):
    """What a call does to a file. CHANGE: its content is written, whether or not it was there before."""

    READ = "read"
    CHANGE = "change"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"
    UNKNOWN = "unknown"


class Match(StrEnum):
    """How a path was found: named by a field or a patch, or an operand of a shell command (specification)."""

    PATH = "path_suffix"
    SHELL = "shell_path"


@dataclass(slots=True, frozen=True)
class Touch:
    """One path of one call.

    `path` as written (a file URI decoded), never a URL. `absolute`: normalised, with forward slashes, where the call's
    directory, the record's or the path itself proves it; None where not.
    """

    path: str
    absolute: str | None
    effect: Effect
    match: Match


def path_of(text: str) -> str | None:
    """The path that a text is, with a file URI decoded; None for URLs, globs, directories by their look, and prose."""
    if len(text) > LONGEST or text in _NOWHERE or _CONTROL.search(text) or not text.strip():
        return None
    if _SCHEME.match(text):
        found = _FILE.fullmatch(text)
        if found is None:
            return None
        text = unquote(found[1], errors="replace")
        text = text[1:] if _DRIVE.match(text, 1) else text
        if _CONTROL.search(text):
            return None
    if any(sign in text for sign in "*?") or text.endswith(("/", "\\", "/.", "/..")):
        return None
    if text.startswith(("/dev/", "/proc/", "//")) and not text.startswith("/dev/shm/"):
        return None
    return text


def is_absolute(path: str) -> bool:
    """Whether a path begins at a root, of whichever system."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def joined(base: str | None, path: str, home: str | None = None) -> str | None:
    """`path` as seen from `base`, which may itself be relative; None where a part of it is not known."""
    if path == "~" or path.startswith("~/"):
        return posixpath.join(home, path[2:]) if home else None
    if path.startswith("~"):
        return None
    if is_absolute(path) or base == "":
        return path
    return None if base is None or len(base) > 4 * LONGEST else posixpath.join(base, path)


def absolute(base: str | None, path: str, home: str | None = None) -> str | None:
    """The normalised absolute path, with forward slashes and a capital drive letter; None where nothing proves it."""
    whole = joined(base, path, home)
    if whole is None or not is_absolute(whole):
        return None
    if _DRIVE.match(whole):
        drive, rest = ntpath.splitdrive(ntpath.normpath(whole.replace("/", "\\")))
        return (drive.upper() if drive[1:] == ":" else drive).replace("\\", "/") + rest.replace("\\", "/")
    return "/" + posixpath.normpath(whole).lstrip("/")
