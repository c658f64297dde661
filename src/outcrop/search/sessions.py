"""Sessions that match a query: the search behind the session search contract and `outcrop search`.

One hit a session, told by its best message. A ladder of rungs, each looser than the one before, is climbed until one
keeps a session: the words as a phrase, all of them in one message, the same with misspelt words repaired, any of them,
and at last words that are nearly the same. The text index proposes; rows decide what is shown, as they are now.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cache
from itertools import islice
from math import log
from typing import NamedTuple

from outcrop.errors import Cancelled
from outcrop.search import cursor as cursors
from outcrop.search import hashes, operators, plan, rank
from outcrop.search.columns import Columns
from outcrop.search.cursor import PageCursor
from outcrop.search.evidence import Evidence
from outcrop.search.forks import folded
from outcrop.search.found import NEWEST, Refused, Route, SessionHit, SessionPage, SessionSearch
from outcrop.search.gather import Gatherer, Row
from outcrop.search.ladder import Rung, rungs
from outcrop.search.places import Folders
from outcrop.search.query import exactly
from outcrop.search.respell import Speller
from outcrop.search.views import looked_at
from outcrop.store import Snapshot, Store
from outcrop.store.embedded import analysis, cards
from outcrop.store.embedded.cards import Card, Where
from outcrop.store.embedded.text_reader import View

MOST_SESSIONS = 600
"""Sessions that one rung looks at; those behind them are not found, and `candidates` says so."""
FIRST_SESSIONS = 32
NEXT_SESSIONS = (128, MOST_SESSIONS)
"""The best of them, by their messages and as a whole, come before all others: most pages need no more. Then come the
best of more."""
LENGTH_PRIOR = 0.02
_NEWEST_PAGE = 64
_NEWEST_MOST = 4096
_NEWEST_TRIED = 192
"""Newest sessions that are asked at once for words that many messages hold: these fill most pages."""
_OFTEN = 4
"""Messages for each session that hold a word of which that is expected."""
_WALK_PAGE = 256
_WALK_PAGES = 20
"""Times the sessions of a rung that are looked at for operators alone."""
_PHRASES_READ = 48
"""Tool texts that are read to see whether their words stand side by side."""


def search_sessions(
    store: Store, query: SessionSearch, cancelled: Callable[[], bool] | None = None
) -> SessionPage | Refused:
    """One page of the sessions that match. Raises as `views.looked_at` does."""
    started = time.perf_counter()

    def answer(snapshot: Snapshot, view: View, db: sqlite3.Connection) -> SessionPage | Refused:
        found = _Search(snapshot, view, db, query, cancelled).answer()
        if isinstance(found, Refused):
            return found
        return found._replace(milliseconds=(time.perf_counter() - started) * 1000)

    return looked_at(store, answer, lambda snapshot: _nothing(query), cancelled)


def _nothing(query: SessionSearch) -> SessionPage | Refused:
    """The answer of a store without events: no cursor of it can exist."""
    return SessionPage([], None, 0) if query.cursor is None else Refused()


class _Found(NamedTuple):
    """A session that a rung keeps. `row` None: its title matches, no message of it. `whole` is its score as a whole.

    `open`: its message was not looked for yet, and `score` is the most that it can come to.
    """

    card: Card
    score: float
    row: Row | None
    whole: float
    open: bool = False


class _Kept(NamedTuple):
    """What a rung keeps. `complete`: nothing else matches."""

    found: list[_Found]
    complete: bool


class _Search:
    """One search over one state of index and rows."""

    def __init__(
        self,
        snapshot: Snapshot,
        view: View,
        db: sqlite3.Connection,
        query: SessionSearch,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._snapshot = snapshot
        self._view = view
        self._db = db
        self._query = query
        self._cancelled = cancelled
        self._cards: dict[int, Card | None] = {}
        self._sessions = cards.count(db)
        self._columns = Columns(query.scope, cache(view.searcher.doc_freq), view.documents, self._sessions)
        self._asked, made = plan.make(query.text)
        self._plan = made._replace(units=hashes.widened(view.searcher, self._columns.words, made.units))
        self._capped = False
        shown = int(db.execute("SELECT coalesce(max(v), 0) FROM meta WHERE k = 'pages_rev'").fetchone()[0])
        # A merge that drops deleted documents is no commit, and changes all scores.
        self._revision = (shown << 40) + view.documents

    def answer(self) -> SessionPage | Refused:
        offset = self._offset()
        if isinstance(offset, Refused):
            return offset
        gatherer = Gatherer(self._view.searcher, self._only(), self._admitted, self._check)
        self._evidence = Evidence(self._snapshot, gatherer, self._columns)
        end = offset + self._query.limit
        rung = None
        ordered: list[_Found] = []
        if self._plan.units:
            rung, ordered = self._climb(gatherer, end)
        elif self._asked.narrows:
            ordered = self._ordered(self._walk(gatherer, end), newest=True)
        page = ordered[offset:end]
        generation = self._view.marker.generation
        again = PageCursor(generation, self._revision, end, self._query.key)
        terms = rung.plan.terms if rung is not None else self._plan.terms
        return SessionPage(
            self._told(gatherer, page, rung),
            cursors.write_page(again, self._snapshot.epoch) if len(ordered) > end else None,
            generation,
            self._capped,
            self._plan.cut,
            rung.route if rung is not None else Route.OR,
            terms if terms != self._plan.terms else None,
        )

    def _check(self) -> None:
        if self._cancelled is not None and self._cancelled():
            raise Cancelled("the search was cancelled")

    def _offset(self) -> int | Refused:
        """Where the page begins. In this order: whose cursor, which state, which query (ruling 46)."""
        if self._query.cursor is None:
            return 0
        cursor = cursors.read_page(self._query.cursor, self._snapshot.epoch)
        if cursor is None:
            return Refused()
        generation = self._view.marker.generation
        if cursor.generation != generation:
            return Refused(generation, cursor.generation)
        if cursor.revision != self._revision:
            return Refused(generation)
        return cursor.offset if cursor.key == self._query.key else Refused()

    # Which sessions

    def _only(self) -> set[int] | None:
        """The sessions that filters and `repo:` leave; None: all. What `path:` leaves is told session by session."""
        query, asked = self._query, self._asked
        cwds: set[str] | None = None
        if query.paths or asked.repo:
            folders = Folders(query.paths) if query.paths else None
            cwds = {
                cwd
                for cwd in cards.directories(self._db)
                if (folders is None or folders.hold(cwd))
                and all(value in operators.fold(operators.label(cwd)) for value in asked.repo)
            }
            if asked.repo and folders is None and all(value in operators.NOWHERE for value in asked.repo):
                cwds = None  # sessions without any directory count too: asked one by one
        if not query.harnesses and query.since is None and cwds is None:
            return None
        return cards.admitted(self._db, query.harnesses, query.since, cwds)

    def _admitted(self, sessions: Iterable[int]) -> set[int]:
        """Those that are searched, and satisfy the operators."""
        wanted = list(sessions)
        new = [session for session in wanted if session not in self._cards]
        if new:
            fitting = new
            if self._asked.narrows:  # before what is dearer to read
                cwds = cards.directories_of(self._db, new)
                transcripts = cards.transcripts(self._db, new) if self._asked.path else {}
                fitting = [id for id in new if operators.admits(self._asked, cwds.get(id, ()), transcripts.get(id, ""))]
            known: dict[int, Card] = cards.cards(self._db, fitting)
            self._cards.update((session, known.get(session)) for session in new)
        return {session for session in wanted if self._cards[session] is not None}

    # The ladder

    def _climb(self, gatherer: Gatherer, end: int) -> tuple[Rung, list[_Found]]:
        """The first rung that keeps a session, else the last; with what it keeps, in order, `end` and one at least."""
        rung = None
        speller = Speller(self._view.searcher, self._columns, self._check)
        for rung in rungs(self._columns, speller, self._plan):
            if self._query.sort == NEWEST and self._often(rung):
                found = self._newest(gatherer, rung, end, _NEWEST_TRIED)
                if len(found) > end:
                    return rung, found
            kept = self._keep(gatherer, rung, FIRST_SESSIONS, lazily=end < FIRST_SESSIONS)
            if not kept.found:
                continue
            if kept.complete:
                return rung, self._ordered(kept.found)
            if self._query.sort == NEWEST:
                return rung, self._newest(gatherer, rung, end)
            ordered = self._told_apart(gatherer, rung, kept.found, end)
            if len(ordered) > end:
                return rung, ordered
            ordered = self._told_apart(gatherer, rung, kept.found, len(kept.found))
            for most in NEXT_SESSIONS:
                kept = self._keep(gatherer, rung, most)
                ordered += self._others(ordered, kept.found)
                if kept.complete or len(ordered) > end:
                    break
            return rung, ordered
        assert rung is not None, "there always is an `or`"
        return (rung if rung.route is not Route.LOOSE else rung._replace(route=Route.OR, plan=self._plan)), []

    def _told_apart(self, gatherer: Gatherer, rung: Rung, found: list[_Found], end: int) -> list[_Found]:
        """All in order, of which the first `end` are as they will be: messages of open sessions are looked for where
        what they may score brings one so far. Of forks used last at the same time the better one counts, too."""
        times = Counter(item.card.updated for item in found)
        wanted = {item.card.id for item in found if item.open and times[item.card.updated] > 1}
        while True:
            if wanted:
                rows = gatherer.some_rows(rung.rows, wanted)
                found = [
                    self._found(item.card.id, rows.get(item.card.id), item.whole) if item.card.id in wanted else item
                    for item in found
                ]
            ordered = self._ordered(found)
            wanted = {item.card.id for item in ordered[:end] if item.open}
            if not wanted:
                return ordered
            every = {item.card.id for item in found if item.open}
            wanted = every if 2 * len(wanted) > len(every) else wanted  # rather one search than several

    def _others(self, first: list[_Found], every: list[_Found]) -> list[_Found]:
        """What follows the first sessions; no page depends on how long the one before it was."""
        shown = {item.card.id for item in first}
        return self._ordered([item for item in every if item.card.id not in shown], behind=first)

    # One rung

    def _keep(self, gatherer: Gatherer, rung: Rung, most: int, lazily: bool = False) -> _Kept:
        """The best sessions that match: `most` by their best messages, and as many as wholes.

        `lazily`: those that are found as wholes alone may be left open.
        """
        gathered = gatherer.rows(rung.rows, most)
        rows = gathered.rows
        scores: dict[int, float] = {}
        every = True
        if rung.wholes is not None:
            scores, every = gatherer.wholes(rung.wholes, most)
        self._side_by_side(gatherer, rung, rows)
        wholes = gatherer.admitted(islice(scores, most))
        if rung.wholes is not None and not every and (missing := rows.keys() - scores.keys()):
            scores |= gatherer.some_wholes(rung.wholes, missing)
        untold = wholes - rows.keys()
        if untold:  # their words stand in several messages, or in the title
            if rung.loose:
                rows |= {session: gathered.spare[session] for session in untold if session in gathered.spare}
            elif not rung.strict:
                rows |= gatherer.some_rows(rung.rows, untold, gathered.spare)
        left = untold - rows.keys() if rung.loose and gathered.bound else set()  # otherwise there is nothing of them
        if left and not lazily:
            rows |= gatherer.some_rows(rung.rows, left)
            left = set()
        complete = gathered.complete and every and len(scores) <= most
        self._capped = self._capped or (not complete and min(gathered.estimate, self._sessions) > MOST_SESSIONS)
        found = [
            self._found(
                session, rows.get(session), scores.get(session, 0.0), gathered.bound if session in left else 0.0
            )
            for session in rows.keys() | wholes
        ]
        if len(found) > MOST_SESSIONS:
            self._capped = True
            found = self._best_first(found)[:MOST_SESSIONS]
        return _Kept(found, complete)

    def _often(self, rung: Rung) -> bool:
        """Whether so many messages hold a word that most sessions are expected to."""
        if not rung.loose:
            return False
        searcher = self._view.searcher
        words = rung.plan.alternatives
        most = max((sum(searcher.doc_freq(field, word) for field in self._columns.words) for word in words), default=0)
        return most >= _OFTEN * self._sessions

    def _newest(self, gatherer: Gatherer, rung: Rung, end: int, tried: int | None = None) -> list[_Found]:
        """The newest sessions that match, in order, `end` and one at least, if so many do; of the first `tried`."""
        found: list[_Found] = []
        ordered: list[_Found] = []
        seen = 0
        ids = islice(cards.newest(self._db), tried)
        size = _NEWEST_PAGE
        while piece := list(islice(ids, size)):
            seen += len(piece)
            size = min(2 * size, _NEWEST_MOST)  # what matches may be old
            some = gatherer.admitted(piece)
            if some:
                gathered = gatherer.rows(rung.rows, len(some), some)
                rows = gathered.rows
                self._side_by_side(gatherer, rung, rows, some)
                scores = {} if rung.wholes is None else gatherer.some_wholes(rung.wholes, some)
                untold = scores.keys() - rows.keys()
                if untold and not (rung.loose and gathered.complete):
                    rows |= gatherer.some_rows([self._columns.some(rung.plan)], untold)
                found += [
                    self._found(session, rows.get(session), scores.get(session, 0.0)) for session in rows | scores
                ]
            ordered = self._ordered(found)
            if len(ordered) > end or len(found) >= MOST_SESSIONS:
                break
        if tried is not None and len(ordered) > end:  # no ranking tells how many there are
            self._capped = self._capped or len(found) * self._sessions > MOST_SESSIONS * seen
        self._capped = self._capped or len(found) > MOST_SESSIONS
        return ordered[:MOST_SESSIONS]

    def _side_by_side(
        self, gatherer: Gatherer, rung: Rung, rows: dict[int, Row], within: Collection[int] | None = None
    ) -> None:
        """Add the best tool text of each session in which the terms stand side by side; only some can be read."""
        if rung.beside is None:
            return
        gathered = gatherer.rows([exactly(rung.beside)], _PHRASES_READ, within)
        self._capped = self._capped or not gathered.complete
        better = [row for one, row in gathered.rows.items() if one not in rows or rows[one].score < row.score]
        rows |= {row.session: row for row in self._evidence.stands(rung.plan.terms, better)}

    def _found(self, session: int, row: Row | None, whole: float, bound: float = 0.0) -> _Found:
        """`bound`: the most that the message scores which is still to be looked for; 0 where none is."""
        card = self._card(session)
        return _Found(card, (row.score if row else bound) + whole - _prior(card), row, whole, bound > 0.0)

    def _card(self, session: int) -> Card:
        card = self._cards[session]
        assert card is not None, "only admitted sessions are found"
        return card

    def _walk(self, gatherer: Gatherer, end: int) -> list[_Found]:
        """The newest sessions that satisfy filters and operators: there is no text to search. More than `end`, if so
        many do."""
        found: list[_Found] = []
        ids = cards.newest(self._db)
        for _ in range(-(-_WALK_PAGES * MOST_SESSIONS // _WALK_PAGE)):
            self._check()
            piece = list(islice(ids, _WALK_PAGE))
            admitted = gatherer.admitted(piece)
            found += [self._found(id, None, 0.0) for id in piece if id in admitted]
            if len(found) >= MOST_SESSIONS:
                self._capped = len(found) > MOST_SESSIONS or next(ids, None) is not None
                return found[:MOST_SESSIONS]
            if len(piece) < _WALK_PAGE or len(self._ordered(found, newest=True)) > end:
                return found
        self._capped = next(ids, None) is not None
        return found

    # The order

    def _ordered(self, found: list[_Found], newest: bool = False, behind: Iterable[_Found] = ()) -> list[_Found]:
        """Forks folded, in the total order that pages follow. `behind`: those before them, which fold some too."""
        newest_first = sorted(found, key=lambda item: (-item.card.updated, -item.score, item.card.id))
        gone = folded(item.card for item in (*behind, *newest_first))
        return self._best_first([item for item in found if item.card.id not in gone], newest)

    def _best_first(self, found: list[_Found], newest: bool = False) -> list[_Found]:
        if newest or self._query.sort == NEWEST:
            return sorted(found, key=lambda item: (item.card.updated, item.card.uid), reverse=True)  # as `cards.newest`
        return rank.settled(found, lambda item: item.score, lambda item: item.card.id)

    # What is shown

    def _told(self, gatherer: Gatherer, page: list[_Found], rung: Rung | None) -> list[SessionHit]:
        ids = [item.card.id for item in page]
        where = cards.places(self._db, ids)
        origins = cards.origins(self._db, ids)
        rows = [item.row for item in page if item.row is not None]
        if rung is not None and rung.strict and len(rows) < len(page):
            # A message with some of the words tells of a session where they stand in several; it counts for nothing.
            untold = [item.card.id for item in page if item.row is None]
            rows += gatherer.some_rows([self._columns.some(rung.plan)], untold).values()
        shown = self._evidence.shown(rows, rung) if rung is not None else {}
        return [
            SessionHit(
                item.card, where.get(item.card.id, Where(None, None)), origins[item.card.id], item.score,
                shown.get(item.card.id),
            )
            for item in page
            if item.card.id in shown or rung is None or (item.row is None and _titled(item.card, rung))
        ]  # fmt: skip


def _titled(card: Card, rung: Rung) -> bool:
    """Whether the title holds a word. What no message and no title holds any more, an older document told of."""
    words = analysis.exact().analyze(analysis.normal(card.title or ""))
    return not set(words).isdisjoint([*rung.plan.terms, *rung.plan.alternatives])


def _prior(card: Card) -> float:
    return LENGTH_PRIOR * log(1 + card.messages)
