"""Sessions that match a query: the search behind the session search contract and `outcrop search`.

One hit a session, told by its best message. A ladder of rungs, each looser than the one before, is climbed until one
keeps a session: the words as a phrase, all of them in one message, the same with misspelt words repaired, any of them,
and at last words that are nearly the same. The text index proposes; rows decide what is shown, as they are now.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import islice
from math import log
from typing import NamedTuple

from tantivy import Query

from outcrop.errors import Cancelled
from outcrop.model import EventRow, EventType
from outcrop.search import cursor as cursors
from outcrop.search import operators, plan, rank
from outcrop.search.columns import ALL, CONVERSATION, Columns
from outcrop.search.cursor import PageCursor
from outcrop.search.forks import folded
from outcrop.search.gather import Gatherer, Row
from outcrop.search.marks import Looked, marked
from outcrop.search.places import Folders
from outcrop.search.plan import Plan
from outcrop.search.query import any_of
from outcrop.search.respell import Speller
from outcrop.search.texts import searched_text, stands_in
from outcrop.search.views import looked_at
from outcrop.store import Snapshot, Store
from outcrop.store.embedded import analysis, cards
from outcrop.store.embedded.cards import Card, Origin, Where
from outcrop.store.embedded.text import View
from outcrop.store.embedded.text_fields import TOOL_HEAD

RELEVANCE, NEWEST = "relevance", "newest"
SORTS = (RELEVANCE, NEWEST)
MOST_SESSIONS = 600
"""Sessions that one rung looks at; those behind them are not found, and `candidates` says so."""
FIRST_SESSIONS = 64
"""The best of them, by their messages and as a whole, come before all others: few pages need more."""
LENGTH_PRIOR = 0.02
_WALK_PAGE = 256
_WALK_PAGES = 20
"""Times the sessions of a rung that are looked at for operators alone."""
_MOST_LOOSE = 6
"""Words of a query that is still worth loosening."""
_ROWS_TRIED = 16
_PHRASES_READ = 48
"""Tool texts that are read to see whether their words stand side by side."""
_ROLES = {EventType.USER_INPUT: "user", EventType.ASSISTANT_RESPONSE: "assistant"}


class SessionSearch(NamedTuple):
    """What to look for. `harnesses` holds (harness, source or None) pairs; `since` UTC ms; `paths` None: anywhere.

    `agents` are the tags that the pairs came from: they alone go into the cursor's key.
    """

    text: str
    scope: str = ALL
    sort: str = RELEVANCE
    limit: int = 20
    cursor: str | None = None
    agents: tuple[str, ...] = ()
    harnesses: tuple[tuple[str, str | None], ...] = ()
    paths: tuple[str, ...] = ()
    since: int | None = None

    @property
    def key(self) -> str:
        return cursors.query_key(self.text, self.scope, self.sort, self.since, self.agents, self.paths)


class Route(StrEnum):
    """The rung that found the answer."""

    PHRASE = "phrase"
    AND = "and"
    OR = "or"
    TYPO_PHRASE = "typo+phrase"
    TYPO_AND = "typo+and"
    TYPO_OR = "typo+or"
    LOOSE = "loose"


class Shown(NamedTuple):
    """The message that tells why a session was found. `time` in UTC ms; None: not recorded."""

    role: str
    time: int | None
    snippet: str
    cut: bool


class SessionHit(NamedTuple):
    """`evidence` None: found by operators or by its title alone."""

    card: Card
    where: Where
    origin: Origin
    score: float
    evidence: Shown | None


class SessionPage(NamedTuple):
    """Hits in their total order. `candidates`: sessions that match may be missing; `cut`: part of the query was not
    searched. `repaired`: the words that were searched, where they are not those that were typed."""

    hits: list[SessionHit]
    cursor: str | None
    generation: int
    candidates: bool = False
    cut: bool = False
    route: Route = Route.OR
    repaired: tuple[str, ...] | None = None
    milliseconds: float = 0.0


class Refused(NamedTuple):
    """A cursor that does not go on. `generation`: of now, where the cursor was good once; `expected`: the cursor's,
    where that is what changed (ruling 46)."""

    generation: int | None = None
    expected: int | None = None


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
    """A session that a rung keeps. `row` None: its title matches, no message of it."""

    card: Card
    score: float
    row: Row | None


class _Kept(NamedTuple):
    """What a rung keeps. `complete`: nothing else matches."""

    found: list[_Found]
    complete: bool


class _Rung(NamedTuple):
    """What messages and whole sessions must match. `beside`: tool text in which the terms must stand side by side."""

    route: Route
    plan: Plan
    rows: Query
    wholes: Query | None = None
    beside: Query | None = None


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
        self._asked, self._plan = plan.make(query.text)
        self._columns = Columns(query.scope)
        self._capped = False
        self._revision = int(db.execute("SELECT coalesce(max(v), 0) FROM meta WHERE k = 'pages_rev'").fetchone()[0])

    def answer(self) -> SessionPage | Refused:
        offset = self._offset()
        if isinstance(offset, Refused):
            return offset
        gatherer = Gatherer(self._view.searcher, self._only(), self._admitted, self._check)
        end = offset + self._query.limit
        rung = None
        ordered: list[_Found] = []
        if self._plan.units:
            rung, ordered = self._climb(gatherer, end)
        elif self._asked.narrows:
            ordered = self._ordered(self._walk(gatherer), newest=True)
        page = ordered[offset:end]
        generation = self._view.marker.generation
        again = PageCursor(generation, self._revision, end, self._query.key)
        terms = rung.plan.terms if rung is not None else self._plan.terms
        return SessionPage(
            self._told(page, gatherer, rung),
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
            known: dict[int, Card] = cards.cards(self._db, new)
            if self._asked.narrows:
                ids = list(known)
                cwds = cards.directories_of(self._db, ids)
                transcripts = cards.transcripts(self._db, ids) if self._asked.path else {}
                known = {
                    id: card
                    for id, card in known.items()
                    if operators.admits(self._asked, cwds.get(id, ()), transcripts.get(id, ""))
                }
            self._cards.update((session, known.get(session)) for session in new)
        return {session for session in wanted if self._cards[session] is not None}

    # The ladder

    def _climb(self, gatherer: Gatherer, end: int) -> tuple[_Rung, list[_Found]]:
        """The first rung that keeps a session, else the last; with what it keeps, in order, `end` and one at least."""
        rung = None
        for rung in self._rungs():
            kept = self._keep(gatherer, rung, FIRST_SESSIONS)
            if not kept.found:
                continue
            if kept.complete:
                return rung, self._ordered(kept.found)
            if self._query.sort == NEWEST:
                return rung, self._newest(gatherer, rung, end)
            first = self._ordered(kept.found)
            if len(first) > end:
                return rung, first
            return rung, [*first, *self._others(first, self._keep(gatherer, rung, MOST_SESSIONS).found)]
        assert rung is not None, "there always is an `or`"
        return (rung if rung.route is not Route.LOOSE else rung._replace(route=Route.OR, plan=self._plan)), []

    def _others(self, first: list[_Found], every: list[_Found]) -> list[_Found]:
        """What follows the first sessions; no page depends on how long the one before it was."""
        shown = {item.card.id for item in first}
        return self._ordered([item for item in every if item.card.id not in shown], behind=first)

    def _rungs(self) -> Iterator[_Rung]:
        asked = self._plan
        yield from self._strict(asked, Route.PHRASE, Route.AND)
        speller = Speller(self._view.searcher, self._columns, self._check)
        terms = speller.respelt(asked.terms)
        repaired = asked if terms == asked.terms else asked.instead(terms)
        if repaired is not asked:
            yield from self._strict(repaired, Route.TYPO_PHRASE, Route.TYPO_AND)
        living = speller.lives(repaired.terms)
        yield self._loosely(Route.OR if repaired is asked else Route.TYPO_OR, repaired, living)
        if not living and len(asked.terms) <= _MOST_LOOSE:
            yield self._loosely(Route.LOOSE, asked.instead(speller.loosened(asked.terms)), stems=True)

    def _strict(self, asked: Plan, phrase: Route, every: Route) -> Iterator[_Rung]:
        """The rungs of a literal query."""
        columns, terms = self._columns, asked.terms
        if asked.literal and terms:
            whole = columns.whole_phrase(terms)
            yield _Rung(phrase, asked, columns.phrase(terms), whole, columns.beside(terms))
            if len(terms) > 1:
                yield _Rung(every, asked, columns.together(terms), columns.whole_together(terms))

    def _loosely(self, route: Route, asked: Plan, stems: bool) -> _Rung:
        return _Rung(route, asked, self._columns.either(asked, stems), self._columns.whole_either(asked))

    # One rung

    def _keep(self, gatherer: Gatherer, rung: _Rung, most: int) -> _Kept:
        """The best sessions that match: `most` by their best messages, and as many as wholes."""
        gathered = gatherer.rows(rung.rows, most)
        rows = gathered.rows
        scores: dict[int, float] = {}
        every = True
        if rung.wholes is not None:
            scores, every = gatherer.wholes(rung.wholes, most)
        if rung.beside is not None:
            for session, row in self._side_by_side(gatherer, rung.beside, rung.plan.terms).items():
                if session not in rows or rows[session].score < row.score:
                    rows[session] = row
        wholes = gatherer.admitted(islice(scores, most))
        if rung.wholes is not None and not every and (missing := rows.keys() - scores.keys()):
            scores |= gatherer.some_wholes(rung.wholes, missing)
        if untold := wholes - rows.keys():  # their words stand in several messages, or in the title
            spare = gathered.spare if rung.route.endswith(Route.OR) else {}
            rows |= gatherer.some_rows(self._columns.either(rung.plan), untold, spare)
        complete = gathered.complete and every and len(scores) <= most
        self._capped = self._capped or (not complete and gathered.estimate > MOST_SESSIONS)
        found = [self._found(session, rows.get(session), scores.get(session, 0.0)) for session in rows.keys() | wholes]
        if len(found) > MOST_SESSIONS:
            self._capped = True
            found = self._best_first(found)[:MOST_SESSIONS]
        return _Kept(found, complete)

    def _newest(self, gatherer: Gatherer, rung: _Rung, end: int) -> list[_Found]:
        """The newest sessions that match, in order, `end` and one at least, if so many do."""
        found: list[_Found] = []
        ids = cards.newest(self._db)
        while piece := list(islice(ids, _WALK_PAGE)):
            some = gatherer.admitted(piece)
            if some:
                rows = gatherer.rows(rung.rows, len(some), some).rows
                scores = {} if rung.wholes is None else gatherer.some_wholes(rung.wholes, some)
                if untold := scores.keys() - rows.keys():
                    rows |= gatherer.some_rows(self._columns.either(rung.plan), untold, {})
                found += [
                    self._found(session, rows.get(session), scores.get(session, 0.0)) for session in rows | scores
                ]
            ordered = self._ordered(found)
            if len(ordered) > end or len(found) >= MOST_SESSIONS:
                break
        self._capped = self._capped or len(found) > MOST_SESSIONS
        return self._ordered(found)[:MOST_SESSIONS]

    def _side_by_side(self, gatherer: Gatherer, query: Query, terms: tuple[str, ...]) -> dict[int, Row]:
        """The best tool text of each session, where the terms stand in it side by side; only some can be read."""
        gathered = gatherer.rows(query, _PHRASES_READ)
        self._capped = self._capped or not gathered.complete
        some = list(gathered.rows.values())
        stands: dict[int, Row] = {}
        events = self._snapshot.events_at([row.id for row in some])
        for row in some:
            if row.id in events and stands_in(terms, self._terms(events[row.id])):
                stands[row.session] = row
        return stands

    def _found(self, session: int, row: Row | None, whole: float) -> _Found:
        card = self._card(session)
        return _Found(card, (row.score if row else 0.0) + whole - _prior(card), row)

    def _card(self, session: int) -> Card:
        card = self._cards[session]
        assert card is not None, "only admitted sessions are found"
        return card

    def _walk(self, gatherer: Gatherer) -> list[_Found]:
        """The newest sessions that satisfy filters and operators: there is no text to search."""
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
            if len(piece) < _WALK_PAGE:
                return found
        self._capped = next(ids, None) is not None
        return found

    # The order

    def _ordered(self, found: list[_Found], newest: bool = False, behind: Iterable[_Found] = ()) -> list[_Found]:
        """Forks folded, in the total order that pages follow. `behind`: those before them, which fold some too."""
        newest_first = sorted(found, key=lambda item: (-item.card.updated, -item.score))
        gone = folded(item.card for item in (*behind, *newest_first))
        return self._best_first([item for item in found if item.card.id not in gone], newest)

    def _best_first(self, found: list[_Found], newest: bool = False) -> list[_Found]:
        if newest or self._query.sort == NEWEST:
            return sorted(found, key=lambda item: (-item.card.updated, item.card.id))
        return rank.settled(found, lambda item: item.score, lambda item: item.card.id)

    # What is shown

    def _told(self, page: list[_Found], gatherer: Gatherer, rung: _Rung | None) -> list[SessionHit]:
        ids = [item.card.id for item in page]
        where = cards.places(self._db, ids)
        origins = cards.origins(self._db, ids)
        shown = self._evidence(page, gatherer, rung) if rung is not None else {}
        return [
            SessionHit(
                item.card, where.get(item.card.id, Where(None, None)), origins[item.card.id], item.score,
                shown.get(item.card.id),
            )
            for item in page
            if item.row is None or item.card.id in shown  # its last message that matched is gone
        ]  # fmt: skip

    def _evidence(self, page: list[_Found], gatherer: Gatherer, rung: _Rung) -> dict[int, Shown]:
        """By session, the message that tells why it was found."""
        looked = self._looked(rung)
        rows = [item.row for item in page if item.row is not None]
        events = self._snapshot.events_at([row.id for row in rows])
        chosen = [events[row.id] for row in rows if row.id in events and events[row.id].rev == row.rev]
        settled = {event.session_id for event in chosen}
        for row in rows:  # the row is not any more what the index says
            if row.session not in settled and (event := self._other(gatherer, rung, looked, row.session)) is not None:
                chosen.append(event)
        contents = self._snapshot.contents(chosen)
        found: dict[int, Shown] = {}
        for event, content in zip(chosen, contents, strict=True):
            snippet, cut = marked(self._searched(searched_text(event, content), event), looked)
            role = _ROLES.get(event.type, "tool")
            found[event.session_id] = Shown(role, None if event.inferred else event.time, snippet, cut)
        return found

    def _other(self, gatherer: Gatherer, rung: _Rung, looked: Looked, session: int) -> EventRow | None:
        """The best message of a session that still matches."""
        rows = gatherer.best_of(any_of([rung.rows, self._columns.either(rung.plan)]), session, _ROWS_TRIED)
        events = self._snapshot.events_at([row.id for row in rows])
        for row in rows:
            if row.id not in events:
                continue
            event = events[row.id]
            text = searched_text(event, self._snapshot.contents([event])[0])
            if event.rev == row.rev or looked.spans(self._searched(text, event)):
                return event
        return None

    def _looked(self, rung: _Rung) -> Looked:
        asked = rung.plan
        phrase = rung.route in (Route.PHRASE, Route.TYPO_PHRASE)
        exact = phrase or rung.route in (Route.AND, Route.TYPO_AND)
        words = asked.terms if phrase else tuple(dict.fromkeys([*asked.terms, *(() if exact else asked.alternatives)]))
        stems = frozenset() if exact else frozenset(stem for word in words for stem in analysis.stem().analyze(word))
        pieces: list[str] = []
        for unit in asked.units:
            dense = analysis.is_dense(unit.typed)
            if self._query.scope != CONVERSATION or dense:
                pieces += [*unit.parts, *([unit.word] if unit.word else [])]
            if unit.name is not None and (unit.word is not None or not unit.parts):
                pieces.append(unit.name)
        return Looked(words, stems, tuple(dict.fromkeys(pieces)), phrase)

    def _terms(self, event: EventRow) -> list[str]:
        text = searched_text(event, self._snapshot.contents([event])[0])
        return analysis.exact().analyze(analysis.normal(self._searched(text, event)))

    @staticmethod
    def _searched(text: str, event: EventRow) -> str:
        """What of a message session search can find (ruling 44)."""
        return text if event.type in _ROLES else text[:TOOL_HEAD]


def _prior(card: Card) -> float:
    return LENGTH_PRIOR * log(1 + card.messages)
