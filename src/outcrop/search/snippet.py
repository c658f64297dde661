"""The part of a text that shows why it was found (ruling 26): at most 320 characters around the best match.

Matches are looked for in a folded copy of the same length, so that places in it are places in the text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from outcrop.search.texts import side_by_side

LENGTH = 320
_BEFORE = 60
_MOST_MATCHES = 1000
_MOST_INSIDE = 40
"""Matches of a stretch, but for one: more of a word say no more."""
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
_ASCII = bytes(range(128))
_ALONE = frozenset("\u0130\u03a3\u03f9")
"""Letters that a whole text lowers otherwise than one by one: the dotted I, and the sigma at the end of a word."""
_FEW = 40


def fold(text: str) -> str:
    """Lower case, without accents, of the same length."""
    if text.isascii():
        return text.lower()
    foreign = set(text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass"))
    if len(foreign) > _FEW or not foreign.isdisjoint(_ALONE):
        return text.translate(_FOLDING)
    # Most texts hold few letters that are not ASCII: a table asked for each letter of the text costs tenfold.
    for letter in foreign:
        if (folded := chr(_FOLDING[ord(letter)])) != letter:
            text = text.replace(letter, folded)
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")  # the rest, at once


def snippet(text: str, words: Words, phrases: Sequence[Sequence[str]] = ()) -> tuple[str, bool]:
    """The window of `text` that matches best, white space folded; the second value: the text holds more.

    `words` are folded beginnings of words, the parts of names included; `phrases` are looked for first.
    """
    text = text.strip()
    if len(text) <= LENGTH:
        return " ".join(text.split()), False
    start, end = _window(fold(text), words, phrases)
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


class Words:
    """Words to look for in many texts, those together that begin alike. A pattern of all of them would cost more to
    compile than a page of texts to search."""

    def __init__(self, words: Iterable[str]) -> None:
        self.longer: dict[str, list[str]] = {}
        """By the shortest of those that begin so, all of them, the longest first."""
        for word in sorted(filter(None, set(words)), key=len):
            shorter = next((known for known in self.longer if word.startswith(known)), word)
            self.longer.setdefault(shorter, []).insert(0, word)


def places(folded: str, words: Words) -> Iterator[tuple[int, int, str]]:
    """(start, end, word) of the matches from the first on, none over another, the longest of those that begin together;
    no word where it does not begin there."""
    ahead = {shortest: at for shortest in words.longer if (at := folded.find(shortest)) >= 0}  # where each stands next
    last = 0
    for begin in range(0, len(folded) if ahead else 0, _AT_ONCE):
        here: list[tuple[int, int, str]] = []
        for shortest, at in ahead.items():
            longer = words.longer[shortest]
            word = shortest
            while 0 <= at < begin + _AT_ONCE:
                if len(longer) > 1:
                    word = next(word for word in longer if folded.startswith(word, at))
                here.append((at, -len(word), word))
                at = folded.find(shortest, at + 1)
            ahead[shortest] = at
        for start, _, word in sorted(here):
            if start >= last:
                last = start + len(word)
                yield start, last, word if start == 0 or not folded[start - 1].isalnum() else ""


def _sequence(folded: str, tokens: Sequence[str]) -> tuple[int, int] | None:
    """Where the tokens stand first in this order with no word between."""
    if not all(token in folded for token in tokens):
        return None
    return next(side_by_side(folded, tokens, LENGTH), None)


def _window(folded: str, words: Words, phrases: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The stretch of matches, no longer than a snippet, that holds the most different words; the first of equals."""
    for tokens in phrases:
        if (found := _sequence(folded, tokens)) is not None:
            return found
    matches = list(islice(places(folded, words), _MOST_MATCHES))
    if not matches:
        return 0, 0
    inside: Counter[str] = Counter()
    best = (-1, 0, 0, 0)
    first = 0
    for last, (_, end, word) in enumerate(matches):
        inside[word] += 1
        while first < last and (end - matches[first][0] > LENGTH - _BEFORE or last - first > _MOST_INSIDE):
            gone = matches[first][2]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            first += 1
        different = len(inside) - ("" in inside)
        if (different, last - first) > best[:2]:
            best = (different, last - first, matches[first][0], end)
    return best[2], best[3]
