"""Events that match a query: the one search behind `search_sessions` and `outcrop events`.

The text index proposes, the rows decide: a hit is shown only as its row is now. Of copied history one event counts, the
original inside the asked scope, else the oldest copy ("Copies" of the rulings).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from outcrop.errors import Cancelled
from outcrop.model import EventType
from outcrop.search import hashes, rank, repair
from outcrop.search import query as queries
from outcrop.search.query import Builder, Parsed, Scope
from outcrop.search.snippet import Words, snippet
from outcrop.search.texts import searched_text, stands_in
from outcrop.search.views import looked_at
from outcrop.store import Found, Snapshot, Store
from outcrop.store.embedded import analysis
from outcrop.store.embedded.coverage import extent
from outcrop.store.embedded.text_fields import TOOL_TYPES
from outcrop.store.embedded.text_reader import View

_AT_ONCE = 64
_MOST_COPIES = 4096


@dataclass(slots=True, frozen=True)
class EventQuery:
    """What to look for. `session` and `turn` are uids; `limit` is the number of hits wanted."""

    text: str
    types: tuple[EventType, ...]
    limit: int
    session: bytes | None = None
    turn: bytes | None = None
    harness: str | None = None
    source: str | None = None
    project: str | None = None
    """The project that the caller is held to (`Store.snapshot`)."""


@dataclass(slots=True, frozen=True)
class EventHit:
    """`score` is in [0, 1]; `snippet_truncated`: the event's text holds more than the snippet."""

    found: Found
    score: float
    snippet: str
    snippet_truncated: bool


@dataclass(slots=True, frozen=True)
class EventHits:
    """Hits in their total order. `truncated`: there are more. Warnings begin with a stable code (ruling 23)."""

    hits: list[EventHit]
    truncated: bool
    warnings: list[str]


@dataclass(slots=True, frozen=True)
class Plan:
    """A search before its hits are told. `builder` None: the scope names nothing, or the query has no words.

    `dropped`: units that nothing in the scope holds.
    """

    builder: Builder | None
    parsed: Parsed
    hits: list[tuple[rank.Candidate, Found]]
    more: bool
    warnings: list[str]
    dropped: tuple[queries.Unit, ...] = ()


def search_events(store: Store, query: EventQuery, cancelled: Callable[[], bool] | None = None) -> EventHits:
    """The best `query.limit` events.

    Raises TextIndexRebuilding where no index can answer, Cancelled once `cancelled` says so, and the store's errors.
    """
    return looked_at(
        store,
        lambda snapshot, view, db: Search(snapshot, view, query, cancelled).answer(snapshot.coverage(), db),
        lambda snapshot: EventHits([], False, _partial(snapshot.coverage())),
        cancelled,
        query.project,
    )


class Search:
    """One search over one state of index and rows."""

    def __init__(self, snapshot: Snapshot, view: View, query: EventQuery, cancelled: Callable[[], bool] | None) -> None:
        self._snapshot = snapshot
        self._searcher, self._documents = view.searcher, view.documents
        self._query = query
        self._cancelled = cancelled
        self._warnings: list[str] = []

    def answer(self, covered: float | None, db: sqlite3.Connection) -> EventHits:
        self._warnings += _partial(covered)
        plan = self.plan()
        if not plan.hits:
            events, sessions = extent(db, self._snapshot.admitted)
            told = f"{_counted(events, 'event')} of {_counted(sessions, 'session')}"
            self._warnings.append(f"nothing_found: searched {told}")
        return EventHits(self._told(plan.hits, plan.parsed), plan.more, plan.warnings)

    def plan(self) -> Plan:
        """Search: what is looked for in the end, repaired and relaxed where nothing else is found, and the hits."""
        scope = self._scope()
        parsed = queries.parse_excluding(self._query.text)
        if scope is None or not parsed.units:
            return Plan(None, parsed, [], False, self._warnings)
        builder = Builder(scope, cache(self._searcher.doc_freq), self._documents)
        parsed = self._fitted(builder, parsed)
        parsed = replace(parsed, units=hashes.widened(self._searcher, builder.words, parsed.units))
        found, more, whole = self._hits(builder, parsed)
        dropped = [f"-{word}" for word in parsed.excluded]
        dead: list[queries.Unit] = []
        if not whole:  # otherwise every word lives, and asking each would cost as much again
            before = parsed
            parsed, changes, dead = repair.repaired(self._searcher, builder, parsed)
            dropped += (unit.typed for unit in dead)
            if changes:
                told = ", ".join(f"{typed} -> {instead}" for typed, instead in changes)
                self._warnings.append(f"query_repaired: {told}")
            if parsed != before:
                found, more, _ = self._hits(builder, parsed)
        if not found and (parsed.phrases or any(unit.parts for unit in parsed.units)):
            if parsed.phrases:
                self._warnings.append("phrase_relaxed: no event holds the quoted phrase; searched its words")
            named = not parsed.phrases
            parsed = self._fitted(builder, queries.relaxed(parsed))
            found, more, _ = self._hits(builder, parsed)
            if found and named:
                self._warnings.append("name_relaxed: no event holds the whole name; searched its parts")
        if found and dropped:
            self._warnings.append(f"words_dropped: {', '.join(dropped)}")
        gone = tuple(unit for unit in dead if unit not in parsed.units)
        return Plan(builder, parsed, found, more, self._warnings, gone)

    def _check(self) -> None:
        if self._cancelled is not None and self._cancelled():
            raise Cancelled("the search was cancelled")

    def _scope(self) -> Scope | None:
        """The asked scope in row ids; None where it names nothing that is stored."""
        query = self._query
        session = self._snapshot.session(query.session) if query.session is not None else None
        turn = self._snapshot.turn(query.turn) if query.turn is not None else None
        if (query.session is not None and session is None) or (query.turn is not None and turn is None):
            return None
        types = tuple(kind for kind in dict.fromkeys(query.types) if kind is not EventType.UNKNOWN)
        if not types:
            return None
        return Scope(
            types,
            session.id if session else None,
            turn.id if turn else None,
            query.harness,
            query.source,
            self._snapshot.admitted,
        )

    def _fitted(self, builder: Builder, parsed: Parsed) -> Parsed:
        """At most `MOST_UNITS` units: of a longer query those that the fewest events hold, as they say the most."""
        if len(parsed.units) <= queries.MOST_UNITS:
            return parsed

        def rarity(unit: queries.Unit) -> tuple[bool, int]:
            word = unit.word or unit.name or ""
            n = sum(self._searcher.doc_freq(field, word) for field in (*builder.words, *builder.names))
            return n == 0, n

        kept = set(sorted(parsed.units, key=rarity)[: queries.MOST_UNITS])
        self._warnings.append(f"query_cut: searched the {queries.MOST_UNITS} rarest of {len(parsed.units)} words")
        return replace(parsed, units=tuple(unit for unit in parsed.units if unit in kept))

    def _hits(self, builder: Builder, parsed: Parsed) -> tuple[list[tuple[rank.Candidate, Found]], bool, bool]:
        """The first hits in order, whether there are more, and whether the index holds one with every unit."""
        limit = self._query.limit
        judged: dict[int, Found | None] = {}
        hits: list[tuple[rank.Candidate, Found]] = []
        tiers = builder.tiers(parsed)
        whole = False
        for part in rank.rounds(self._searcher, tiers, limit + 1, self._check):
            hits = []
            at = 0
            whole = part.whole
            while at < len(part.candidates):
                # Most stand: a page's worth at a time, and longer runs once copies or lost rows thin them out.
                some = part.candidates[at : at + max(limit + 1 - len(hits), at and _AT_ONCE)]
                at += len(some)
                new = [candidate for candidate in some if candidate.id not in judged]
                judged.update(self._judge(builder, parsed, new))
                hits += [(candidate, found) for candidate in some if (found := judged[candidate.id]) is not None]
                if len(hits) > limit:
                    return hits[:limit], True, whole
            if part.complete:
                return hits, False, whole
        return hits, True, whole

    def _judge(self, builder: Builder, parsed: Parsed, candidates: list[rank.Candidate]) -> dict[int, Found | None]:
        """Which candidates are hits: the row stands, still matches, and no original or older copy counts instead."""
        self._check()
        rivals = self._rivals(builder, parsed, candidates)
        every = {candidate.id: candidate for candidate in (*candidates, *rivals)}
        rows = self._snapshot.found(list(every))
        standing = {id: row for id, row in rows.items() if self._stands(builder, parsed, every[id], row)}
        best: dict[int, int] = {}
        living = [rival for rival in rivals if rival.id in standing]
        for rival in sorted(living, key=lambda rival: (rival.copy, standing[rival.id].event.time, rival.id)):
            best.setdefault(rival.origin, rival.id)
        return {
            candidate.id: standing.get(candidate.id)
            if not candidate.copy or best.get(candidate.origin, candidate.id) == candidate.id
            else None
            for candidate in candidates
        }

    def _rivals(self, builder: Builder, parsed: Parsed, candidates: Iterable[rank.Candidate]) -> list[rank.Candidate]:
        """All hits of the scope with the origin of a copied candidate."""
        origins = {candidate.origin for candidate in candidates if candidate.copy}
        if not origins:
            return []
        same = queries.among("origin", origins)
        return rank.all_hits(self._searcher, builder.hits(parsed, [same]), _MOST_COPIES)

    def _stands(self, builder: Builder, parsed: Parsed, candidate: rank.Candidate, found: Found) -> bool:
        event, scope = found.event, builder.scope
        if found.turn.ordinal < 1:  # the copied head of a subagent is not among its turns
            return False
        changed = event.rev != candidate.rev
        demands = parsed.phrases if event.type in TOOL_TYPES or changed else ()
        if not changed and not demands:
            return True
        if event.type not in scope.types or scope.session not in (None, event.session_id):
            return False
        if scope.turn not in (None, event.turn_id):
            return False
        terms = analysis.exact().analyze(analysis.normal(searched_text(event, self._snapshot.contents([event])[0])))
        if not all(stands_in(tokens, terms) for tokens in demands):
            return False
        return not changed or self._matches(parsed, terms)

    @staticmethod
    def _matches(parsed: Parsed, terms: list[str]) -> bool:
        """Whether a changed text still holds a unit: its exact words, its stem, or all its parts as beginnings."""
        have = set(terms)
        stems = set(map(analysis.stem_of, have))
        joined = " ".join(terms)
        return any(
            (unit.word is not None and (unit.word in have or unit.stem in stems))
            or not have.isdisjoint(unit.forms)
            or (bool(unit.parts) and all(part in joined for part in unit.parts))
            for unit in parsed.units
        )

    def _told(self, hits: list[tuple[rank.Candidate, Found]], parsed: Parsed) -> list[EventHit]:
        words: list[str] = []
        for unit in parsed.units:
            words += [unit.word] if unit.word else []
            # "stories" and "story" have the stem "stori": what both begin with is a letter shorter.
            words += [unit.stem.rstrip("i")] if unit.stem and len(unit.stem) > 3 else []
            words += [*unit.parts, *unit.forms]
            words += [unit.name] if unit.name and not unit.parts else []
        beginnings = Words(words)
        phrases = [*parsed.phrases, *([parsed.sequence] if len(parsed.sequence) > 1 else [])]
        contents = self._snapshot.contents([found.event for _, found in hits])
        told: list[EventHit] = []
        for (candidate, found), content in zip(hits, contents, strict=True):
            shown, more = snippet(searched_text(found.event, content), beginnings, phrases)
            told.append(EventHit(found, rank.bounded(candidate.score, candidate.first), shown, more))
        return told


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _partial(covered: float | None) -> list[str]:
    return [] if covered is None else [f"coverage_partial: {covered:.0%} of the history is searchable so far"]
