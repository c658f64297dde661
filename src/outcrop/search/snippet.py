"""The part of a text that shows why it was found (ruling 26): at most 320 characters around the best match.

Matches are looked for in a folded copy of the same length, so that places in it are places in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

LENGTH = 320
_BEFORE = 60
_MOST_MATCHES = 1000
_AT_ONCE = 1 << 16
"""Characters whose matches are gathered before they are counted."""
_EDGE = 24
"""How far a cut may move to fall between words."""


_HANGUL = range(0xAC00, 0xD7A4)


class _Folding(dict[int, int]):
    """Each character as one folded character: the engine's folding, where that keeps the length."""

    def __missing__(self, code: int) -> int:
        if code in _HANGUL:  # a syllable is its letters, and the first of them says too little
            return code
        char = unicodedata.normalize("NFKD", chr(code)).lower()[:1]
        self[code] = folded = ord(char) if char else code
        return folded


_FOLDING = _Folding()
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_ALONE = frozenset("\u0130\u03a3\u03f9")
"""Letters that a whole text lowers otherwise than one by one: the dotted I, and the sigma at the end of a word."""
_FEW = 40


def fold(text: str) -> str:
    """Lower case, without accents, of the same length."""
    if text.isascii():
        return text.lower()
    foreign = set(_FOREIGN.findall(text))
    if len(foreign) > _FEW or not foreign.isdisjoint(_ALONE):
        return text.translate(_FOLDING)
    text = text.lower()  # most texts hold few letters that are not ASCII: a table asked for each letter costs tenfold
    for lower in {letter.lower() for letter in foreign}:
        if (folded := _FOLDING[ord(lower)]) != ord(lower):
            text = text.replace(lower, chr(folded))
    return text


def snippet(text: str, words: Iterable[str], phrases: Iterable[Sequence[str]] = ()) -> tuple[str, bool]:
    """The window of `text` that matches best, white space folded; the second value: the text holds more.

    `words` are folded beginnings of words, the parts of names included; `phrases` are looked for first.
    """
    text = text.strip()
    if len(text) <= LENGTH:
        return " ".join(text.split()), False
    start, end = _window(fold(text), list(words), list(phrases))
    begin = max(0, min(start - _BEFORE, len(text) - LENGTH))
    if end - start > LENGTH - 2 * _BEFORE:
        begin = max(0, min(start - _EDGE, len(text) - LENGTH))
    begin = _between_words(text, begin, start)
    stop = min(len(text), begin + LENGTH)
    if stop < len(text):
        space = max((text.rfind(blank, max(end, stop - _EDGE), stop) for blank in " \n\t"), default=-1)
        stop = space if space > begin else stop
    return " ".join(text[begin:stop].split()), True


def _between_words(text: str, begin: int, match: int) -> int:
    if begin == 0 or text[begin - 1].isspace():
        return begin
    for at in range(begin, min(begin + _EDGE, match)):
        if text[at].isspace():
            return at + 1
    return begin


def places(folded: str, words: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """(start, end, word) of the matches from the first on, none over another, the longest of those that begin together;
    no word where it does not begin there. A pattern of all words would cost more to compile than a page of texts to
    search."""
    found = [word for word in dict.fromkeys(words) if word and word in folded]
    last = 0
    for begin in range(0, len(folded), _AT_ONCE):
        here: list[tuple[int, int, str]] = []
        for word in found:
            stop = begin + _AT_ONCE + len(word) - 1  # it begins before the end of the piece
            at = folded.find(word, begin, stop)
            while at >= 0:
                here.append((at, -len(word), word))
                at = folded.find(word, at + 1, stop)
        for start, _, word in sorted(here):
            if start >= last:
                last = start + len(word)
                yield start, last, word if start == 0 or not folded[start - 1].isalnum() else ""


def _window(folded: str, words: list[str], phrases: list[Sequence[str]]) -> tuple[int, int]:
    """The stretch of matches, no longer than a snippet, that holds the most different words; the first of equals."""
    for tokens in phrases:
        if not all(token in folded for token in tokens):
            continue
        found = re.search(r"[\W_]+".join(map(re.escape, tokens)), folded)
        if found and found.end() - found.start() <= LENGTH:
            return found.span()
    matches = list(islice(places(folded, words), _MOST_MATCHES))
    if not matches:
        return 0, 0
    best = (-1.0, 0, 0)
    first = 0
    for last, (_, end, _) in enumerate(matches):
        while end - matches[first][0] > LENGTH - _BEFORE and first < last:
            first += 1
        inside = matches[max(first, last - 40) : last + 1]
        different = {word for _, _, word in inside if word}
        value = len(different) + len(inside) * 0.001
        if value > best[0]:
            best = (value, inside[0][0], end)
    return best[1], best[2]
