"""What a person typed for session search: `repo:` and `path:`, quoted spans, and the text that is left (ruling 42).

Operators narrow, they are never searched as text. Everything else that looks like one (`agent:`, `-word`, `foo*`) is
text. A sign counts at the start of a word alone: `myrepo:x` and the apostrophe of `it's` are text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

NOWHERE = "unknown location"
"""The folder of a session that recorded none."""
_OPERATOR = re.compile(r"(repo|path):", re.IGNORECASE)
_BARE = re.compile(r"\S+")
_QUOTES = "\"'"


class Asked(NamedTuple):
    """`text` is the query without operators and quotation marks; `quoted` the spans that were quoted.

    `repo` and `path` hold folded values; a session must satisfy every one of them.
    """

    text: str
    quoted: tuple[str, ...] = ()
    repo: tuple[str, ...] = ()
    path: tuple[str, ...] = ()

    @property
    def narrows(self) -> bool:
        return bool(self.repo or self.path)


def read(query: str) -> Asked:
    """Take a query apart. Never fails: a quotation mark that nothing closes is a character like others."""
    words: list[str] = []
    quoted: list[str] = []
    values: dict[str, list[str]] = {"repo": [], "path": []}
    at, end = 0, len(query)
    while at < end:
        if query[at].isspace():
            at += 1
            continue
        if operator := _OPERATOR.match(query, at):
            span = _span(query, operator.end())
            if span is None:
                bare = _BARE.match(query, operator.end())
                value, at = (bare[0], bare.end()) if bare else ("", operator.end())
            else:
                value, at = span
            if folded := fold(value.strip()):
                values[operator[1].lower()].append(folded)
            continue
        span = _span(query, at)
        if span is not None:
            quoted.append(span[0])
            words.append(span[0])
            at = span[1]
            continue
        bare = _BARE.match(query, at)
        assert bare is not None, "it is no blank"
        words.append(bare[0])
        at = bare.end()
    return Asked(" ".join(words), tuple(quoted), tuple(values["repo"]), tuple(values["path"]))


def _span(query: str, at: int) -> tuple[str, int] | None:
    """The quoted span that begins at `at`, and where it ends; None where there is none."""
    if at >= len(query) or query[at] not in _QUOTES:
        return None
    close = query.find(query[at], at + 1)
    return None if close < 0 else (query[at + 1 : close], close + 1)


def fold(text: str) -> str:
    """Letters without case and in composed form, so that `path:café` finds `CAFÉ` however either is spelt."""
    return (
        text.casefold()
        if text.isascii()
        else unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    )


def label(cwd: str | None) -> str:
    """What `repo:` looks at: the last two segments of a working directory."""
    if not cwd:
        return NOWHERE
    return "/".join([part for part in cwd.replace("\\", "/").split("/") if part][-2:])


def admits(asked: Asked, cwds: Iterable[str | None], transcript: str) -> bool:
    """Whether a session that ran in one of these folders, recorded in `transcript`, satisfies every operator."""
    for cwd in list(cwds) or [None]:
        if asked.repo and not _all_in(asked.repo, fold(label(cwd))):
            continue
        if not asked.path or _all_in(asked.path, fold(f"{cwd or ''} {transcript}")):
            return True
    return False


def _all_in(values: Iterable[str], text: str) -> bool:
    return all(map(text.__contains__, values))
