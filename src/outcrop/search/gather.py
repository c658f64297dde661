"""The sessions that a query matches: of each its one best message, before anything is cut.

The engine knows no groups, so ever more rows are asked for, from the second time on without the sessions that are
found: a session with a thousand matching messages hides no other. Filters decide inside the query where they leave few
sessions, and on its rows where they leave many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from tantivy import DocAddress, Query, Searcher, SearchResult

from outcrop.search.columns import inside, outside
from outcrop.search.query import FEW_NUMBERS, Tier
from outcrop.search.rank import column
from outcrop.search.respell import CODES

ROUNDS = (64, 160, 512, 4096, 32768)
_ROWS_PER_SESSION = 2
_ROWS_PER_FILTERED = 4
"""Rows asked for at first, for each session that is wanted: of those that filters leave, some show too late."""
_WHOLES_PER_SESSION = 2
_LEAST = 16
FEW = 2_000
"""Sessions that a query can name."""


class Row(NamedTuple):
    """A message that matches, as `Gatherer.events` tells it. `score` is the engine's."""

    session: int
    score: float
    address: DocAddress


class Gathered(NamedTuple):
    """The best message of each session, by session, best first. `complete`: there are no others.

    `spare`: messages of further sessions that the engine told of as well. No message of other sessions scores more than
    `bound`. `estimate`: how many sessions may match, judged by how the rows that were seen
    are spread over sessions.
    """

    rows: dict[int, Row]
    complete: bool
    spare: dict[int, Row]
    bound: float
    estimate: float


class _Best(NamedTuple):
    """The best documents by falling score. No other scores more than `bound`; 0: there is no other. About so many match
    as `matching` says."""

    hits: list[tuple[float, DocAddress]]
    bound: float
    matching: int


class Gatherer(NamedTuple):
    """Looks for sessions in one state of the index.

    `only`: the sessions that filters leave, None for all. `admits` tells which of some sessions are searched at all.
    `check` raises once nobody waits any more.
    """

    searcher: Searcher
    only: Collection[int] | None
    admits: Callable[[Iterable[int]], set[int]]
    check: Callable[[], None]

    def rows(self, tiers: Sequence[Tier], want: int, within: Collection[int] | None = None) -> Gathered:
        """The best messages of at least `want` sessions, if so many match. Tiers as for `_best`."""

        def narrowed(query: Query) -> Query:
            return outside(self._narrowed(query, "session", within), "session", seen)

        found: dict[int, Row] = {}
        seen: set[int] = set()
        bound = estimate = 0.0
        least = want * (_ROWS_PER_SESSION if self.only is None else _ROWS_PER_FILTERED)
        for most in (size for size in ROUNDS if size >= least or size == ROUNDS[-1]):
            hits, bound, matching = self._best(tiers, narrowed, most)
            addresses = [address for _, address in hits]
            sessions = column(self.searcher, "session", addresses)
            codes = column(self.searcher, "type", addresses)
            best: dict[int, Row] = {}
            for (score, address), session, code in zip(hits, sessions, codes, strict=True):
                if code in CODES and session not in best:
                    best[session] = Row(session, score, address)
            estimate = len(seen) + len(best) * matching / max(1, len(addresses))
            whole = bound == 0.0
            some = iter(best)
            while len(found) < want and (piece := list(islice(some, max(want - len(found), _LEAST)))):
                seen.update(piece)
                admitted = self.admitted(piece)
                found |= {one: best[one] for one in piece if one in admitted}
            if len(found) >= want or whole:
                spare = {one: best[one] for one in some}
                return Gathered(found, whole and not spare, spare, bound, estimate)
        return Gathered(found, False, {}, bound, estimate)

    def _best(self, tiers: Sequence[Tier], narrowed: Callable[[Query], Query], most: int) -> _Best:
        """The best documents by their best score."""
        scores: dict[tuple[int, int], tuple[float, DocAddress]] = {}
        bound, matching = 0.0, 0
        for tier in tiers:
            if tier.most <= bound:  # what it has besides does not come to the best
                matching = max(matching, tier.matching)
                continue
            query = narrowed(tier.query)
            if tier.inside and bound == 0.0 and len(scores) <= FEW_NUMBERS:  # all of the first are known
                if not scores:
                    continue
                query = inside(tier.query, "id", column(self.searcher, "id", [hit[1] for hit in scores.values()]))
            self.check()
            answer = self.searcher.search(query, most)
            hits = answer.hits  # each look makes the list anew
            for score, address in hits:
                key = (address.segment_ord, address.doc)
                told = float(score) * tier.factor
                if key not in scores or scores[key][0] < told:
                    scores[key] = (told, address)
            if len(hits) == most:
                bound = max(bound, float(hits[-1][0]) * tier.factor)
            matching = max(matching, _count(answer))
        best = sorted((hit for hit in scores.values() if hit[0] >= bound), key=itemgetter(0), reverse=True)
        return _Best(best, bound, matching)

    def some_rows(
        self, tiers: Sequence[Tier], sessions: Collection[int], spare: Mapping[int, Row] | None = None
    ) -> dict[int, Row]:
        """The best message of each of these sessions that has one; `spare`: what is known of them already."""
        known = {session: spare[session] for session in sessions if session in spare} if spare else {}
        unknown = [session for session in sessions if session not in known]
        return known | self.rows(tiers, len(unknown), unknown).rows if unknown else known

    def events(self, rows: Sequence[Row]) -> list[tuple[int, int]]:
        """(id, rev) of the event of each message, as it was when it was indexed."""
        addresses = [row.address for row in rows]
        return list(zip(*(column(self.searcher, name, addresses) for name in ("id", "rev")), strict=True))

    def best_of(self, tiers: Sequence[Tier], session: int, most: int) -> list[Row]:
        """The best messages of one session, in order."""
        hits = self._best(tiers, lambda query: inside(query, "session", [session]), most).hits
        codes = column(self.searcher, "type", [address for _, address in hits])
        return [Row(session, *hit) for hit, code in zip(hits, codes, strict=True) if code in CODES]

    def wholes(self, query: Query, want: int) -> tuple[dict[int, float], bool]:
        """The scores of whole sessions, by session, best first, whether they are searched or not; and whether there
        are no others."""
        self.check()
        most = _WHOLES_PER_SESSION * want
        hits = self.searcher.search(self._narrowed(query, "whole", None), most, count=False).hits
        return self._scores(hits), len(hits) < most

    def some_wholes(self, query: Query, sessions: Collection[int]) -> dict[int, float]:
        """The scores of these sessions that match as a whole."""
        self.check()
        return self._scores(self.searcher.search(inside(query, "whole", sessions), len(sessions), count=False).hits)

    def _scores(self, hits: Sequence[tuple[Any, DocAddress]]) -> dict[int, float]:
        sessions = column(self.searcher, "whole", [address for _, address in hits])
        return {session: float(score) for session, (score, _) in zip(sessions, hits, strict=True)}

    def admitted(self, sessions: Iterable[int]) -> set[int]:
        """Those that filters leave and that are searched at all."""
        return self.admits(session for session in sessions if self.only is None or session in self.only)

    def _narrowed(self, query: Query, field: str, within: Collection[int] | None) -> Query:
        if within is None and self.only is not None and len(self.only) <= FEW:
            within = self.only
        return query if within is None else inside(query, field, within)


def _count(answer: SearchResult) -> int:
    """How many documents match; the library's types do not know of it."""
    count: int = answer.count  # type: ignore[attr-defined]
    return count
