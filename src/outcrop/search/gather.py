"""The sessions that a query matches: of each its one best message, before anything is cut.

The engine knows no groups, so ever more rows are asked for, from the second time on without the sessions that are
found: a session with a thousand matching messages hides no other. Filters decide inside the query where they leave few
sessions, and on its rows where they leave many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import NamedTuple

from tantivy import DocAddress, Query, Searcher, SearchResult

from outcrop.search.columns import inside, outside
from outcrop.search.respell import CODES

ROUNDS = (64, 512, 4096, 32768)
_ROWS_PER_SESSION = 4
"""Rows asked for at first, for each session that is wanted."""
_LEAST = 16
FEW = 2_000
"""Sessions that a query can name."""


class Row(NamedTuple):
    """A message that matches. `score` is the engine's; `id` names the event as it was at `rev`."""

    id: int
    session: int
    score: float
    rev: int


class Gathered(NamedTuple):
    """The best message of each session, by session, best first. `complete`: there are no others.

    `estimate`: how many sessions may match, judged by how the rows that were seen are spread over sessions.
    """

    rows: dict[int, Row]
    complete: bool
    estimate: float


class Gatherer(NamedTuple):
    """Looks for sessions in one state of the index.

    `only`: the sessions that filters leave, None for all. `admits` tells which of some sessions are searched at all.
    `check` raises once nobody waits any more.
    """

    searcher: Searcher
    only: Collection[int] | None
    admits: Callable[[Iterable[int]], set[int]]
    check: Callable[[], None]

    def rows(self, query: Query, want: int, within: Collection[int] | None = None) -> Gathered:
        """The best messages of at least `want` sessions, if so many match."""
        query = self._narrowed(query, "session", within)
        found: dict[int, Row] = {}
        seen: set[int] = set()
        estimate = 0.0
        for most in (size for size in ROUNDS if size >= _ROWS_PER_SESSION * want or size == ROUNDS[-1]):
            self.check()
            answer = self.searcher.search(outside(query, "session", seen), most)
            hits = answer.hits  # each look makes the list anew
            addresses = [address for _, address in hits]
            sessions = self._column("session", addresses)
            codes = self._column("type", addresses)
            best: dict[int, int] = {}
            for at, (session, code) in enumerate(zip(sessions, codes, strict=True)):
                if code in CODES:
                    best.setdefault(session, at)
            estimate = len(seen) + len(best) * _count(answer) / max(1, len(addresses))
            whole = len(addresses) < most
            some = iter(best)
            while len(found) < want and (piece := list(islice(some, max(want - len(found), _LEAST)))):
                seen.update(piece)
                admitted = self._admitted(piece)
                places = [best[session] for session in piece if session in admitted]
                chosen = [addresses[place] for place in places]
                ids, revs = (self._column(name, chosen) for name in ("id", "rev"))
                for place, id, rev in zip(places, ids, revs, strict=True):
                    found[sessions[place]] = Row(id, sessions[place], float(hits[place][0]), rev)
            if len(found) >= want or whole:
                return Gathered(found, whole and next(some, None) is None, estimate)
        return Gathered(found, False, estimate)

    def best_of(self, query: Query, session: int, most: int) -> list[Row]:
        """The best messages of one session, in order."""
        hits = self.searcher.search(inside(query, "session", [session]), most, count=False).hits
        addresses = [address for _, address in hits]
        columns = [self._column(name, addresses) for name in ("id", "rev", "type")]
        return [
            Row(id, session, float(score), rev)
            for (score, _), id, rev, code in zip(hits, *columns, strict=True)
            if code in CODES
        ]

    def wholes(self, query: Query, want: int, within: Collection[int] | None = None) -> tuple[dict[int, float], bool]:
        """The scores of the best whole sessions, by session, and whether there are no others."""
        query = self._narrowed(query, "whole", within)
        self.check()
        most = want if within is not None or self.only is None else _ROWS_PER_SESSION * want
        hits = self.searcher.search(query, most, count=False).hits
        sessions = self._column("whole", [address for _, address in hits])
        scores = {session: float(score) for session, (score, _) in zip(sessions, hits, strict=True)}
        admitted = self._admitted(scores)
        return {session: score for session, score in scores.items() if session in admitted}, len(hits) < most

    def _column(self, name: str, addresses: list[DocAddress]) -> list[int]:
        """A number of each document; -1 for none."""
        return [-1 if value is None else int(value) for value in self.searcher.fast_field_values(name, addresses)]

    def _admitted(self, sessions: Iterable[int]) -> set[int]:
        return self.admits(session for session in sessions if self.only is None or session in self.only)

    def _narrowed(self, query: Query, field: str, within: Collection[int] | None) -> Query:
        if within is None and self.only is not None and len(self.only) <= FEW:
            within = self.only
        return query if within is None else inside(query, field, within)


def _count(answer: SearchResult) -> int:
    """How many documents match; the library's types do not know of it."""
    count: int = answer.count  # type: ignore[attr-defined]
    return count
