"""What the text index says of one document: whether it is there, which words it holds in which fields, how it ranks.

The query is run once as a search runs it; everything here is asked with its very units, tiers and scores.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any

from tantivy import Occur, Query

from outcrop.model import EventRow, EventType, SessionRow, TurnRow
from outcrop.search import query as queries
from outcrop.search import rank
from outcrop.search.events import EventQuery, Search
from outcrop.search.query import Builder, Scope, Unit
from outcrop.store import Snapshot
from outcrop.store.embedded.text_fields import schema, signed
from outcrop.store.embedded.text_reader import View

DEEPEST = 1_000
"""Hits among which the place of an event is looked for."""
_MOST_EVENTS = 20_000
"""Events of one session that are counted as holding the words."""
_MOST_COPIES = 4_096
_FIELDS = ("user", "assistant", "reasoning", "other", "tool", "tool_more", "ident", "part")


class Evidence:
    """One query over one state of the index and the rows."""

    def __init__(self, db: sqlite3.Connection, snapshot: Snapshot, view: View, query: EventQuery) -> None:
        deep = replace(query, limit=max(query.limit, DEEPEST))
        self.plan = Search(snapshot, view, deep, None).plan()
        self._db = db
        self._snapshot = snapshot
        self._query = query
        self._searcher, self._documents = view.searcher, view.documents
        self._generation = view.marker.generation

    def document(self, event: int) -> dict[str, Any]:
        """The document of an event: `present`, the `rev` of the event that it was made of, the index's generation."""
        found = self._searcher.search(_of(event=event), 1, count=False).hits
        rev = self._searcher.fast_field_values("rev", [address for _, address in found])
        return {"present": bool(found), "rev": rev[0] if rev else None, "generation": self._generation}

    def rank(self, event: int) -> int | None:
        """Its place among the hits, from 1; None where it is not among the first DEEPEST."""
        hits = enumerate(self.plan.hits, 1)
        return next((place for place, (candidate, _) in hits if candidate.id == event), None)

    def matches(self, event: int) -> bool:
        """Whether the index holds it as a match inside the scope, copy or not."""
        plan = self.plan
        return plan.builder is not None and self._any(plan.builder.hits(plan.parsed, [_of(event=event)]))

    def score(self, event: int) -> float | None:
        """The score as a search tells it: of the best tier that the event is in."""
        plan = self.plan
        if plan.builder is None:
            return None
        only = (Occur.Must, queries.silent(_of(event=event)))
        scores = [
            rank.bounded(float(hit[0]) * tier.factor, tier.first)
            for tier in plan.builder.tiers(plan.parsed)
            for hit in self._searcher.search(Query.boolean_query([only, (Occur.Must, tier.query)]), 1, count=False).hits
        ]
        return max(scores, default=None)

    def best(self, **scope: int) -> tuple[EventRow, TurnRow, SessionRow] | None:
        """The event of a `session` or `turn` that the query ranks first; else the one that matches it best."""
        plan = self.plan
        if plan.builder is None:
            return None
        for _, found in plan.hits:
            if scope in ({"session": found.event.session_id}, {"turn": found.event.turn_id}):
                return found.event, found.turn, found.session
        inside = rank.all_hits(self._searcher, plan.builder.hits(plan.parsed, [_of(**scope)]), 1)
        stored = self._snapshot.found([candidate.id for candidate in inside])
        return next(((one.event, one.turn, one.session) for one in stored.values()), None)

    def holding(self, kind: EventType, session: int | None = None, turn: int | None = None) -> int:
        """How many events of a type in a session or turn match the query as it was typed."""
        parsed = queries.parse(self._query.text)
        if not parsed.units:
            return 0
        scope = Scope((kind,), session, turn, self._query.harness, self._query.source)
        builder = Builder(scope, self._searcher.doc_freq, self._documents)
        return len(self._searcher.search(builder.hits(parsed), _MOST_EVENTS, count=False).hits)

    def words(self, **scope: int) -> list[dict[str, Any]]:
        """For each word as it was searched: the fields that hold it in an `event`, `turn` or `session`, of any type."""
        inside = (Occur.Must, _of(**scope))
        return [
            {
                "word": unit.typed,
                "fields": [
                    field
                    for field, term in _terms(unit)
                    if self._any(Query.boolean_query([inside, (Occur.Must, term)]))
                ],
                "events_with_it": max(
                    self._searcher.doc_freq(field, unit.word or unit.name or unit.typed) for field in _FIELDS
                ),
            }
            for unit in (*self.plan.parsed.units, *self.plan.dropped)
        ]

    def original(self, event: EventRow) -> bytes | None:
        """The uid of the event that a copy was made of; None where the index does not hold it."""
        alike = Query.term_query(schema(), "origin", signed(event.origin or event.uid))
        originals = [one.id for one in rank.all_hits(self._searcher, alike, _MOST_COPIES) if not one.copy]
        return next((found.event.uid for found in self._snapshot.found(originals).values()), None)

    def _any(self, query: Query) -> bool:
        return bool(self._searcher.search(query, 1, count=False).hits)


def _of(**scope: int) -> Query:
    """Everything of one event, turn or session."""
    ((name, number),) = scope.items()
    return Query.term_query(schema(), "id" if name == "event" else name, number)


def _terms(unit: Unit) -> list[tuple[str, Query]]:
    """(field, what matches the unit in it)."""

    def term(field: str, text: str) -> Query:
        return Query.term_query(schema(), field, text, "freq")

    found = []
    for field in _FIELDS:
        ways = [term(field, text) for text in (unit.word, unit.name, *unit.forms) if text]
        if unit.parts:
            ways.append(queries.every(term(field, part) for part in unit.parts))
        found.append((field, queries.any_of(ways)))
    if unit.stem:
        found.append(("stem", term("stem", unit.stem)))
    if unit.word:
        found.append(("context", term("context", unit.word)))
    return found
