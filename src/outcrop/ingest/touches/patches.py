"""The files that a patch text names: the `*** Begin Patch` language and unified diffs.

Only header lines count, never what a hunk holds: a line of content begins with a sign of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from outcrop.ingest.touches.touch import Effect

_BEGIN = re.compile(r"^\*\*\* Begin Patch\s*$", re.MULTILINE)
_HEADER = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): ([^\n]+)$", re.MULTILINE)
_HUNK = re.compile(r"@@ -(?:\d+)(?:,(\d+))? \+(?:\d+)(?:,(\d+))? @@")
_EFFECTS = {"Add File": Effect.CREATE, "Update File": Effect.CHANGE, "Delete File": Effect.DELETE}
_NOTHING = "/dev/null"

Named = tuple[str, Effect]


def is_patch(text: str) -> bool:
    """Whether a text holds a patch in the `*** Begin Patch` language."""
    return "*** Begin Patch" in text and _BEGIN.search(text) is not None


def patched(text: str) -> Iterator[Named]:
    """Every path that a patch of either kind names, with its effect; both names of a rename."""
    text = text.replace("\r\n", "\n")
    headers = list(_HEADER.finditer(text))
    if headers:
        yield from _enveloped(headers)
    elif "+++ " in text or "rename to " in text:
        yield from _unified(text)


def _enveloped(headers: list[re.Match[str]]) -> Iterator[Named]:
    for number, found in enumerate(headers):
        kind, path = found[1], found[2].strip()
        after = headers[number + 1][1] if number + 1 < len(headers) else ""
        if kind == "Move to" or (kind == "Update File" and after == "Move to"):
            yield path, Effect.RENAME
        else:
            yield path, _EFFECTS[kind]


def _unified(text: str) -> Iterator[Named]:
    """Header pairs outside of hunks; the line numbers of a hunk say how much of what follows is content."""
    lines = text.split("\n")
    at = 0
    renamed: set[str] = set()
    while at < len(lines):
        line = lines[at]
        if (hunk := _HUNK.match(line)) is not None:
            at = _past(lines, at + 1, int(hunk[1] or 1), int(hunk[2] or 1))
        elif line.startswith(("rename from ", "rename to ")):
            path = _unquoted(line.partition(" ")[2].partition(" ")[2])
            renamed.add(path)
            yield path, Effect.RENAME
            at += 1
        elif line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            old, new = _named(line[4:], "a/"), _named(lines[at + 1][4:], "b/")
            if old is None and new is not None:
                yield new, Effect.CREATE
            elif new is None and old is not None:
                yield old, Effect.DELETE
            elif new is not None and new not in renamed:
                yield new, Effect.CHANGE
            at += 2
        else:
            at += 1


def _past(lines: list[str], at: int, old: int, new: int) -> int:
    """The first line behind a hunk of `old` lines that turn into `new` ones."""
    while at < len(lines) and (old > 0 or new > 0):
        sign = lines[at][:1]
        if sign not in ("", " ", "+", "-", "\\"):
            break
        old -= sign in ("", " ", "-")
        new -= sign in ("", " ", "+")
        at += 1
    return at


def _named(text: str, prefix: str) -> str | None:
    """The path of a header line without its time and its prefix; None for no file."""
    path = _unquoted(text.partition("\t")[0].rstrip())
    if path in (_NOTHING, ""):
        return None
    return path.removeprefix(prefix)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
