"""The evidence of a session hit: a short piece of the message, with what matched between `[[` and `]]`.

At most 12 words and 512 characters of the text (1.9 of the behaviour of ruling 43); marks and the ellipsis count for
nothing. Matches are places in the text, so that brackets and odd signs that stand in it are never taken for marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from outcrop.search.snippet import Words, fold, places
from outcrop.store.embedded import analysis

WORDS = 12
CHARACTERS = 512
OPEN, CLOSE = "[[", "]]"
_WORDS_BEFORE = 3
_NEAR = 80
"""Characters in which different words that match make a place better."""
_MOST_MATCHES = 1000
_LOOK_BACK = 120
_BEFORE_IN_WORD = 40
"""Characters shown before a match inside one endless word."""
_SOME_WORDS = re.compile(rf"\s*(?:\S+\s+){{0,{WORDS - 1}}}\S+")


class Looked:
    """What was looked for: exact words, stems, pieces of names or of scripts without spaces, and whether the words
    were found as one phrase."""

    def __init__(
        self,
        words: tuple[str, ...] = (),
        stems: frozenset[str] = frozenset(),
        pieces: tuple[str, ...] = (),
        phrase: bool = False,
    ) -> None:
        self._words, self._stems, self._pieces = tuple(map(fold, words)), stems, Words(map(fold, pieces))
        # A word's stem is its beginning but for a last "i" that was a "y".
        self._beginnings = Words([*self._words, *(stem.rstrip("i") for stem in stems if len(stem) > 2)])
        self._known: dict[str, bool] = {}
        """Of the words that were met."""
        self._phrase: re.Pattern[str] | None = None
        if phrase and len(words) > 1:
            side_by_side = r"[\W_]+".join(map(re.escape, self._words))
            self._phrase = re.compile(rf"(?<![^\W_]){side_by_side}(?![^\W_])")

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the text holds it, in order: words that stand alone before pieces of words."""
        folded = fold(text)
        if self._phrase is not None and (found := [match.span() for match in self._phrase.finditer(folded)]):
            return found[:_MOST_MATCHES]
        if found := list(islice(self._standing(folded), _MOST_MATCHES)):
            return found
        return [(start, end) for start, end, _ in islice(places(folded, self._pieces), _MOST_MATCHES)]

    def _standing(self, folded: str) -> Iterator[tuple[int, int]]:
        for start, end, word in places(folded, self._beginnings):
            if not word:
                continue
            stop = end
            while stop < len(folded) and folded[stop].isalnum():
                stop += 1
            standing = folded[start:stop]
            found = self._known.get(standing)
            if found is None:
                found = self._known[standing] = self._is_looked_for(standing)
            if found:
                yield start, stop

    def _is_looked_for(self, word: str) -> bool:
        if word in self._words:
            return True
        return bool(self._stems) and not self._stems.isdisjoint(analysis.stem().analyze(word))


def marked(text: str, looked: Looked) -> tuple[str, bool]:
    """The piece of `text` that shows best what was found, and whether a word of it had to be cut.

    Where nothing of it can be found again, the beginning of the text without a mark.
    """
    spans = looked.spans(text)
    begin, end, cut = _window(text, spans)
    inside = [(start, min(stop, end)) for start, stop in spans if begin <= start < end]
    pieces: list[str] = []
    at = begin
    for start, stop in inside:
        pieces += [text[at:start], OPEN, text[start:stop], CLOSE]
        at = stop
    pieces.append(text[at:end])
    shown = " ".join("".join(pieces).split())
    before = "…" if text[:begin].strip() else ""
    behind = "…" if text[end : end + CHARACTERS].strip() or len(text) > end + CHARACTERS else ""
    return f"{before}{shown}{behind}", cut


def _window(text: str, spans: Sequence[tuple[int, int]]) -> tuple[int, int, bool]:
    first = _best(text, spans)
    begin = first
    while begin > 0 and not text[begin - 1].isspace() and first - begin < _BEFORE_IN_WORD:
        begin -= 1
    if begin == 0 or text[begin - 1].isspace():
        back = max(0, begin - _LOOK_BACK)
        earlier = text[back:begin].split()
        if back:
            del earlier[:1]  # it may have begun before
        for word in reversed(earlier[-_WORDS_BEFORE:]):
            begin = text.rindex(word, back, begin)
    words = _SOME_WORDS.match(text, begin)
    end = words.end() if words else begin
    if end - begin > CHARACTERS:
        return begin, begin + CHARACTERS, True
    return begin, end, False


def _best(text: str, spans: Sequence[tuple[int, int]]) -> int:
    """Where the stretch with the most different matches begins; the first of equals."""
    best, place = 0, 0
    for at, (start, _) in enumerate(spans):
        near: set[str] = set()
        for begin, end in spans[at : at + WORDS]:
            if begin - start > _NEAR:
                break
            near.add(text[begin:end].lower())
        if len(near) > best:
            best, place = len(near), start
    return place
