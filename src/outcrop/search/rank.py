"""The exact total order of hits: score, newer first, then the public id (ruling 27), over everything that matches.

The engine gives the best K of each tier, in no order among equals. Whatever lies beyond K scores at most the K-th, so
the part above that is exact; where it is too short, K grows (64, 512, 4,096, 32,768).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from tantivy import DocAddress, Query, Searcher

from outcrop.search.query import Tier, among, every

ROUNDS = (64, 512, 4096, 32768)
NOISE = 2e-6
"""The engine adds single-precision numbers in no fixed order: scores this close, relatively, are the same score."""
_SATURATION = 8.0
Item = TypeVar("Item")
_Hits = list[tuple[Any, DocAddress]]


class Candidate(NamedTuple):
    """A document that matches. `score` is the engine's, times the factor of its tier, unbounded; `first`: it is of a
    tier that comes first. `origin` names, where a copy is among them, what it may be a copy of."""

    id: int
    score: float
    first: bool
    rev: int
    origin: int
    copy: bool


@dataclass(slots=True, frozen=True)
class Round:
    """The best documents so far, in order. `complete`: there are no others. `whole`: one holds every unit."""

    candidates: list[Candidate]
    complete: bool
    whole: bool


def rounds(searcher: Searcher, tiers: Sequence[Tier], want: int, check: Callable[[], None]) -> Iterator[Round]:
    """Ever longer exact beginnings of the ranking; the last one is complete, or all that is worth looking at.

    What holds every unit comes first, so that the others are looked for only where these do not fill a page.
    """
    first = [tier for tier in tiers if tier.first]
    others = tiers[len(first) :]
    for most in (size for size in ROUNDS if size >= 2 * want or size == ROUNDS[-1]):
        last = most == ROUNDS[-1]
        best = _Best(most, last)
        for tier, hits in _looked(searcher, first, -1, most, check):
            best.add(tier, hits)
        whole = bool(best.scores)
        before: list[Candidate] = []
        for some in best.beginnings(2 * want) if whole else ():
            before = _ordered(searcher, some, True)
            if len(before) >= want:
                yield Round(before, False, whole)
        if best.open:
            continue  # what comes first is not told apart from the rest yet
        rest = _Best(most, last)
        for tier, hits in _looked(searcher, others, max(0, len(others) - 2), most, check):
            rest.add(tier, hits, best.scores)
            whole = whole or (not first and bool(hits) and tier is not tiers[-1])
        for some in rest.beginnings(2 * want):
            complete = not rest.open and len(some) == len(rest.scores)
            yield Round([*before, *_held(searcher, tiers[-1], _ordered(searcher, some, False))], complete, whole)
        if not rest.open:
            return


class _Best:
    """The best scores of documents, of which the engine told `most` a tier."""

    def __init__(self, most: int, last: bool) -> None:
        self._most, self._last = most, last
        self.scores: dict[tuple[int, int], tuple[float, DocAddress]] = {}
        self._bound = 0.0

    def add(self, tier: Tier, hits: _Hits, known: Collection[tuple[int, int]] = ()) -> None:
        for score, address in hits:
            key = (address.segment_ord, address.doc)
            told = score * tier.factor
            if key not in known and (key not in self.scores or self.scores[key][0] < told):
                self.scores[key] = (told, address)
        if len(hits) == self._most:
            self._bound = max(self._bound, hits[-1][0] * tier.factor)

    @property
    def open(self) -> bool:
        """Whether there may be more, and they are worth looking at."""
        return self._bound > 0.0 and not self._last

    def beginnings(self, first: int) -> Iterator[list[tuple[float, DocAddress]]]:
        """About `first` of them in order, if there are more, then all whose place is certain."""
        floor = self._bound * (1 + 4 * NOISE) if self.open else 0.0
        exact = sorted((item for item in self.scores.values() if item[0] > floor or not self.open), key=_by_score)
        while first < len(exact) and _equal(exact[first][0], exact[first - 1][0]):
            first += 1
        if first < len(exact):  # most hits stand, so that a page needs no more; the columns of the rest cost as much
            yield exact[:first]
        yield exact


def _looked(
    searcher: Searcher, tiers: Sequence[Tier], every: int, most: int, check: Callable[[], None]
) -> Iterator[tuple[Tier, _Hits]]:
    """Each tier and its best hits; the tier at `every` holds every unit. Most queries stand nowhere as they were typed:
    where few events hold every unit, the stricter tiers are found among these, at a fraction of the price of scoring
    them anew."""

    def look(query: Query) -> _Hits:
        check()
        return searcher.search(query, most, count=False).hits

    if not tiers:
        return
    held = look(tiers[every].query)
    known = len(held) < most
    scores = {(address.segment_ord, address.doc): score for score, address in held} if known else {}
    for tier in tiers:
        if tier is tiers[every]:
            yield tier, held
            continue
        if known and tier.only is not None:
            hits = look(tier.only) if held else []
            if len(hits) < most:  # it is asked of the whole index
                keys = ((address, (address.segment_ord, address.doc)) for _, address in hits)
                yield tier, [(scores[key], address) for address, key in keys if key in scores]
                continue
        yield tier, look(tier.query)


def _held(searcher: Searcher, loosest: Tier, ordered: list[Candidate]) -> list[Candidate]:
    """Without those that the loosest tier has for another's words."""
    unsure = [candidate.id for candidate in ordered if candidate.score <= loosest.doubt]
    if loosest.held is None or not unsure:
        return ordered
    hits = searcher.search(every([among("id", unsure), loosest.held]), len(unsure), count=False).hits
    held = set(column(searcher, "id", [address for _, address in hits]))
    return [candidate for candidate in ordered if candidate.score > loosest.doubt or candidate.id in held]


def all_hits(searcher: Searcher, query: Query, most: int) -> list[Candidate]:
    """Up to `most` documents that match, in order."""
    hits = searcher.search(query, most, count=False).hits
    return _ordered(searcher, [(float(score), address) for score, address in hits], False, origins=True)


def _ordered(
    searcher: Searcher, found: list[tuple[float, DocAddress]], first: bool, origins: bool = False
) -> list[Candidate]:
    """The documents in order. A column costs the same for one document as for a page, so that few columns are asked."""
    runs = list(_runs(found, itemgetter(0)))
    addresses = [address for run in runs for _, address in run]
    columns = ["id", "rev", "copy", *(["time", "order"] if len(runs) < len(found) else [])]
    ids, revs, copies, *places = (column(searcher, name, addresses) for name in columns)
    sources = column(searcher, "origin", addresses) if origins or any(copies) else [0] * len(found)
    ordered: list[Candidate] = []
    for run in runs:
        here: Sequence[int] = range(len(ordered), len(ordered) + len(run))
        if len(run) > 1:
            times, order = places
            here = sorted(here, key=lambda at: (-times[at], order[at], ids[at]))
        score = float(run[0][0])
        ordered += (Candidate(ids[at], score, first, revs[at], sources[at], bool(copies[at])) for at in here)
    return ordered


def column(searcher: Searcher, name: str, addresses: list[DocAddress]) -> list[int]:
    """A number of each document; -1 for none."""
    return [-1 if value is None else int(value) for value in searcher.fast_field_values(name, addresses)]


def settled(items: Iterable[Item], score: Callable[[Item], float], then: Callable[[Item], Any]) -> list[Item]:
    """Items by falling score; scores that are equal but for the engine's noise by `then`."""
    return [item for equal in _runs(items, score) for item in sorted(equal, key=then)]


def _runs(items: Iterable[Item], score: Callable[[Item], float]) -> Iterator[list[Item]]:
    """Items by falling score, those of equal scores together."""
    rows = sorted(items, key=score, reverse=True)
    at = 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and _equal(score(rows[end]), score(rows[end - 1])):
            end += 1
        yield rows[at:end]
        at = end


def _by_score(row: Sequence[Any]) -> float:
    return -float(row[0])


def _equal(lower: float, higher: float) -> bool:
    return lower >= higher * (1 - NOISE)


def bounded(score: float, first: bool) -> float:
    """A score as it is told: in [0, 1), in the same order, the same for the same match whatever else is found. What
    comes first has a half and more."""
    told = score / (score + _SATURATION) if score > 0 else 0.0
    return (1 + told) / 2 if first else told / 2
