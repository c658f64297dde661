"""The exact total order of hits: score, newer first, then the public id (ruling 27), over everything that matches.

The engine gives the best K of each tier, in no order among equals. Whatever lies beyond K scores at most the K-th, so
the part above that is exact; where it is too short, K grows (64, 512, 4,096, 32,768).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tantivy import DocAddress, Query, Searcher

from outcrop.search.query import Tier

ROUNDS = (64, 512, 4096, 32768)
NOISE = 2e-6
"""The engine adds single-precision numbers in no fixed order: scores this close, relatively, are the same score."""
_SATURATION = 8.0
Item = TypeVar("Item")
_Hits = list[tuple[Any, DocAddress]]


@dataclass(slots=True, frozen=True)
class Candidate:
    """A document that matches. `score` is its tier's; unbounded."""

    id: int
    score: float
    time: int
    rev: int
    copy: bool
    origin: int


@dataclass(slots=True, frozen=True)
class Round:
    """The best documents so far, in order. `complete`: there are no others. `hit`: which tiers hold any."""

    candidates: list[Candidate]
    complete: bool
    hit: tuple[bool, ...]


def rounds(searcher: Searcher, tiers: Sequence[Tier], want: int, check: Callable[[], None]) -> Iterator[Round]:
    """Ever longer exact beginnings of the ranking; the last one is complete, or all that is worth looking at."""
    for most in (size for size in ROUNDS if size >= 2 * want or size == ROUNDS[-1]):
        best: dict[tuple[int, int], tuple[float, DocAddress]] = {}
        bound = 0.0
        hit: list[bool] = []
        for tier, hits in _looked(searcher, tiers, most, check):
            hit.append(bool(hits))
            for score, address in hits:
                key = (address.segment_ord, address.doc)
                told = tier.score(score)
                if key not in best or best[key][0] < told:
                    best[key] = (told, address)
            if len(hits) == most:
                bound = max(bound, tier.score(hits[-1][0]))
        final = bound == 0.0 or most == ROUNDS[-1]
        floor = 0.0 if final else bound * (1 + 4 * NOISE)
        exact = sorted((item for item in best.values() if item[0] > floor or final), key=_by_score)
        first = 2 * want  # most hits stand, so that a page needs no more; the columns of the rest cost as much again
        while first < len(exact) and _equal(exact[first][0], exact[first - 1][0]):
            first += 1
        if first < len(exact):
            yield Round(_ordered(searcher, exact[:first]), False, tuple(hit))
        yield Round(_ordered(searcher, exact), bound == 0.0, tuple(hit))
        if final:
            return


def _looked(
    searcher: Searcher, tiers: Sequence[Tier], most: int, check: Callable[[], None]
) -> list[tuple[Tier, _Hits]]:
    """Each tier and its best hits. Most queries stand nowhere as they were typed: where few events hold
    every unit, the stricter tiers are found among these, at a fraction of the price of scoring them anew."""

    def look(query: Query) -> _Hits:
        check()
        return searcher.search(query, most, count=False).hits

    last = [look(tier.query) for tier in tiers[-2:]]
    every, known = last[0], len(last) > 1 and len(last[0]) < most
    scores = {(address.segment_ord, address.doc): score for score, address in every} if known else {}
    strict: list[_Hits] = []
    for tier in tiers[:-2]:
        if known and tier.only is not None:
            hits = look(tier.only) if every else []
            if len(hits) < most:  # it is asked of the whole index
                keys = ((address, (address.segment_ord, address.doc)) for _, address in hits)
                strict.append([(scores[key], address) for address, key in keys if key in scores])
                continue
        strict.append(look(tier.query))
    return list(zip(tiers, [*strict, *last], strict=True))


def all_hits(searcher: Searcher, query: Query, most: int) -> list[Candidate]:
    """Up to `most` documents that match, in order."""
    hits = searcher.search(query, most, count=False).hits
    return _ordered(searcher, [(float(score), address) for score, address in hits])


def _ordered(searcher: Searcher, found: list[tuple[float, DocAddress]]) -> list[Candidate]:
    addresses = [address for _, address in found]
    columns = [searcher.fast_field_values(name, addresses) for name in ("time", "order", "id", "rev", "copy", "origin")]
    rows = list(zip((float(score) for score, _ in found), *columns, strict=True))
    ordered: list[Candidate] = []
    for equal in _runs(rows, lambda row: row[0]):
        score = equal[0][0]
        if len(equal) > 1:
            equal.sort(key=lambda row: (-row[1], row[2], row[3]))
        ordered += (
            Candidate(int(id), score, int(time), int(rev), bool(copy), int(origin))
            for _, time, _, id, rev, copy, origin in equal
        )
    return ordered


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


def bounded(score: float) -> float:
    """A score as it is told: in [0, 1), in the same order, the same for the same match whatever else is found."""
    return score / (score + _SATURATION) if score > 0 else 0.0
