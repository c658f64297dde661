"""A mistyped word that nothing in the asked scope holds is replaced by its nearest neighbour there.

Decided word by word, before ranking, inside the asked scope and types, so that a word that others find elsewhere does
not hide the typing error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tantivy import Occur, Query, Searcher

from outcrop.search.query import Builder, Parsed, Unit, any_of, word_unit

SHORTEST = 4
LONGEST = 40
TWO_ERRORS = 10
"""From this length on, two errors are still the same word."""
_MOST_TERMS = 4000
_MANY = 1000
"""Events that hold a word, counted with those erased since the last merge: so many are never all erased, and never
more than were erased at all."""


class Repaired(NamedTuple):
    """A query with its dead words replaced: (typed, instead) of each in `changes`, and those that nothing replaces,
    which are left out where others are left."""

    parsed: Parsed
    changes: list[tuple[str, str]]
    dead: list[Unit]


def repaired(searcher: Searcher, builder: Builder, parsed: Parsed) -> Repaired:
    """Look at every unit by itself."""
    units: list[Unit] = []
    changes: list[tuple[str, str]] = []
    dead: list[Unit] = []
    for unit in parsed.units:
        if not lives(searcher, builder, unit):
            word = unit.word
            better = None
            if word is not None and _repairable(word):
                better = _nearest(word, _vocabulary(searcher, builder, word, _allowed(word)))
            if better is not None:
                units.append(word_unit(better))
                changes.append((unit.typed, better))
                continue
            dead.append(unit)
        units.append(unit)
    alive = [unit for unit in units if unit not in dead]
    words = dict(changes)
    spelt = replace(
        parsed,
        units=tuple(dict.fromkeys(alive or units)),
        phrases=tuple(tuple(words.get(token, token) for token in tokens) for tokens in parsed.phrases),
        sequence=tuple(words.get(token, token) for token in parsed.sequence),
    )
    return Repaired(spelt, changes, dead)


def lives(searcher: Searcher, builder: Builder, unit: Unit) -> bool:
    """Whether anything in the scope matches the unit."""
    word = unit.word
    if word and not builder.filters:
        most = max(searcher.doc_freq(field, word) for field in builder.words)
        if most > min(_MANY, builder.documents - searcher.num_docs):
            return True
    inside = Query.boolean_query([*builder.filters, (Occur.Must, any_of(builder.unit(unit)))])
    return bool(searcher.search(inside, 1, count=False).hits)


def _repairable(word: str) -> bool:
    return SHORTEST <= len(word) <= LONGEST and word.isalpha() and word.isascii()


def _allowed(word: str) -> int:
    return 2 if len(word) >= TWO_ERRORS else 1


def _vocabulary(searcher: Searcher, builder: Builder, word: str, allowed: int) -> dict[str, int]:
    """Words of the scope that begin alike and may be near, with the number of events that hold them."""
    scope = Query.boolean_query(builder.within) if builder.within else None
    found: dict[str, int] = {}
    letters = set(word)
    lengths = range(len(word) - allowed, len(word) + allowed + 1)
    for prefix in _beginnings(word):
        for field in builder.words:
            for other, n in _terms(searcher, field, prefix, scope):
                # One error makes two letters at most that only one of the words has.
                if len(other) in lengths and len(letters.symmetric_difference(other)) <= 2 * allowed:
                    found[other] = found.get(other, 0) + n
    return found


def _terms(searcher: Searcher, field: str, prefix: str, scope: Query | None) -> list[tuple[str, int]]:
    return searcher.terms_with_prefix(field, prefix, scope, _MOST_TERMS)


def _beginnings(word: str) -> Iterator[str]:
    """Its first two letters, the same swapped, and each of both with one of them missing or doubled."""
    yield word[:2]
    if word[0] != word[1]:
        yield word[1] + word[0]
    yield word[0] + word[2]
    yield word[1:3]


def _nearest(word: str, vocabulary: dict[str, int]) -> str | None:
    allowed = _allowed(word)
    best: tuple[int, int, str] | None = None
    for other, n in vocabulary.items():
        if other == word or not other.isalpha() or len(other) < SHORTEST - 1:
            continue
        errors = distance(word, other, allowed)
        if errors <= allowed and (best is None or (errors, -n, other) < best):
            best = (errors, -n, other)
    return best[2] if best else None


def distance(left: str, right: str, most: int) -> int:
    """Insertions, deletions, changes and swaps of neighbours between two words; `most` + 1 where there are more."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        last, row_before = row, before
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, row_before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before = last
    return min(row[-1], most + 1)
