"""Words that nothing in the asked scope holds, spelt anew from its vocabulary (1.6 of the behaviour of ruling 43).

No table of the vocabulary is kept. A mistake is near the beginning of a word or it is not: words that begin with the
same letters are listed by the index, and mistakes before that are made by hand and looked up, a microsecond each. The
first letter must be right, or have changed places with the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from tantivy import Searcher

from outcrop.model import TYPE_CODE, EventType
from outcrop.search.columns import Columns
from outcrop.search.query import any_of, term
from outcrop.store.embedded import analysis

SHORTEST = 4
LONGEST = 40
SIMILAR = 0.82
"""Twice the letters that two words have in common, in order, of all their letters."""
LIVE_ROWS = 2
"""Messages that must hold a word before it is suggested."""
CODES = frozenset(
    TYPE_CODE[kind]
    for kind in (EventType.USER_INPUT, EventType.ASSISTANT_RESPONSE, EventType.TOOL_CALL, EventType.TOOL_RESPONSE)
)
"""Types of the events that session search looks at."""
_LENGTHS = 2
_SHORTEST_FOUND = 3
_BEST = 8
_MOST_ROWS = 64
_MOST_TERMS = 1000
_MANY = 100
"""Documents that hold a word, counted with those erased since the last merge: so many are hardly all erased, and never
more than were erased at all."""
_EVERYWHERE = ("user", "assistant", "tool", "tool_more", "reasoning", "other")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LOOSE_FORMS = 4
_SHORTEST_PREFIX = 3


class Speller:
    """Spells words as one scope of one state of the index does. `check` raises once nobody waits any more."""

    def __init__(self, searcher: Searcher, columns: Columns, check: Callable[[], None]) -> None:
        self.searcher, self.columns, self.check = searcher, columns, check
        self._known: dict[str, bool] = {}

    def respelt(self, terms: tuple[str, ...]) -> tuple[str, ...]:
        """The terms, those that nothing holds replaced by their nearest neighbours where there are any."""
        instead = {word: self._nearest(word) for word in dict.fromkeys(terms) if self._dead(word)}
        return tuple(instead.get(word) or word for word in terms)

    def lives(self, terms: tuple[str, ...]) -> bool:
        """Whether anything in the scope holds one of the terms, or may, because such a word is never spelt anew."""
        return not all(self._dead(word) for word in terms)

    def loosened(self, terms: tuple[str, ...]) -> tuple[str, ...]:
        """The terms, those that nothing holds replaced by words that begin with them or differ in one letter.

        A word that stands anywhere outside the scope is no mistake: it is left alone.
        """
        found: dict[str, None] = {}
        for word in dict.fromkeys(terms):
            wrong = self._dead(word, _SHORTEST_PREFIX) and not any(
                self.searcher.doc_freq(field, word) for field in _EVERYWHERE
            )
            found.update(dict.fromkeys((self._loose(word) if wrong else []) or [word]))
        return tuple(found)

    def _dead(self, word: str, shortest: int = SHORTEST) -> bool:
        """Whether a word can be spelt anew and nothing in the scope holds it."""
        if not (shortest <= len(word) <= LONGEST and word.isalpha()) or analysis.is_dense(word):
            return False
        if word not in self._known:
            self._known[word] = self._nowhere(word)
        return self._known[word]

    def _nowhere(self, word: str) -> bool:
        self.check()
        fields = (*self.columns.all, *(field for field, _ in self.columns.wholes))
        counts = [self.searcher.doc_freq(field, word) for field in fields]
        if not any(counts):
            return True
        if max(counts[: len(self.columns.words)]) > min(_MANY, self.columns.documents - self.searcher.num_docs):
            return False
        hits = self.searcher.search(any_of(term(field, word) for field in fields), _MOST_ROWS, count=False).hits
        codes = self.searcher.fast_field_values("type", [address for _, address in hits])
        return not any(code is None or code in CODES for code in codes)  # a whole session has no type

    def _nearest(self, word: str) -> str | None:
        ranked = sorted(((-likeness, other) for other, likeness in self._like(word)))[:_BEST]
        alive = [(likeness, -rows, other) for likeness, other in ranked if (rows := self._rows(other)) >= LIVE_ROWS]
        return min(alive)[2] if alive else None

    def _rows(self, word: str) -> int:
        query = any_of(term(field, word) for field in self.columns.words)
        return len(self.searcher.search(query, _MOST_ROWS, count=False).hits)

    def _like(self, word: str) -> Iterator[tuple[str, float]]:
        """Words of the scope that are similar enough, and how similar."""
        kept = 4 if len(word) > 5 else 3
        found = self._beginning(word[:kept], self.columns.words)
        for other in set(_variants(word, 1, kept + 1)):
            if other not in found and (n := self._frequency(other, self.columns.words)):
                found[other] = n
        for other, n in found.items():
            if n >= LIVE_ROWS and len(other) >= _SHORTEST_FOUND and abs(len(other) - len(word)) <= _LENGTHS:
                likeness = similarity(word, other)
                if SIMILAR <= likeness < 1:
                    yield other, likeness

    def _loose(self, word: str) -> list[str]:
        fields = self.columns.words if self.columns.talk else (*self.columns.words, "title")
        found = self._beginning(word, fields)
        if len(word) >= SHORTEST:
            for other in set(_variants(word, 0, len(word) + 1)):
                if other not in found and (n := self._frequency(other, fields)):
                    found[other] = n
        return [other for other, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_LOOSE_FORMS]]

    def _beginning(self, prefix: str, fields: tuple[str, ...]) -> Counter[str]:
        found: Counter[str] = Counter()
        for field in fields:
            found.update(dict(self.searcher.terms_with_prefix(field, prefix, None, _MOST_TERMS)))
        return found

    def _frequency(self, word: str, fields: tuple[str, ...]) -> int:
        return sum(self.searcher.doc_freq(field, word) for field in fields)


def _variants(word: str, first: int, end: int) -> Iterator[str]:
    """The words that one missing, further, other or exchanged letter makes, from `first` on and before `end`."""
    if first == 1 and len(word) > 1:
        yield word[1] + word[0] + word[2:]
    for at in range(first, min(end, len(word) + 1)):
        head, tail = word[:at], word[at:]
        yield from (head + letter + tail for letter in _LETTERS)
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in _LETTERS)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]


def similarity(left: str, right: str) -> float:
    """Twice the length of the longest common subsequence, of both lengths together: 1 for equal words."""
    both = len(left) + len(right)
    common = 0
    while left and right and left[0] == right[0]:
        left, right, common = left[1:], right[1:], common + 1
    while left and right and left[-1] == right[-1]:
        left, right, common = left[:-1], right[:-1], common + 1
    if 2 * (common + min(len(left), len(right))) < SIMILAR * both:
        return 0.0
    row = [0] * (len(right) + 1)
    for a in left:
        before = 0
        for at, b in enumerate(right, 1):
            before, row[at] = row[at], before + 1 if a == b else max(row[at], row[at - 1])
    return 2 * (common + row[-1]) / both
