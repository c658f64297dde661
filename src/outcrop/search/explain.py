"""Why a query does or does not find an event, a turn or a session.

Each reason has a stable code; the first one told is what decides, the others hold as well. What the index says comes
from `indexed`, which asks it as a search does, so that what is told here is what a search does.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, cast

from outcrop import ids
from outcrop.errors import NotFound, TextIndexRebuilding
from outcrop.ids import Kind
from outcrop.model import ENCRYPTED_PLACEHOLDER, EVENT_TYPES, EventRow, EventType, SessionRow, TurnRow
from outcrop.search.events import EventQuery
from outcrop.search.indexed import DEEPEST, Evidence
from outcrop.search.texts import searched_text
from outcrop.search.views import TextStore, looked_at
from outcrop.store import Snapshot, Store
from outcrop.store.embedded import rows, tombstones
from outcrop.store.embedded.text_fields import TOOL_HEAD
from outcrop.store.embedded.tombstones import Tombstone

REASONS = {
    "found": "the query finds it",
    "forgotten": "its session was forgotten: `outcrop forget --undo` lets it be read again where its file is left",
    "below_the_limit": "it is a hit, further down than the hits that were asked for",
    "too_deep": f"it matches, below the first {DEEPEST:,} hits",
    "type_not_searched": "events of its type were not asked for",
    "other_harness": "it belongs to another harness than the search was held to",
    "other_source": "it comes from another source than the search was held to",
    "hidden_turn": "its turn is hidden: history that a subagent copied, or that a better store of the session tells",
    "copy": "it is a copy of an event that counts in its place",
    "unknown_kind": "records of an unknown kind are kept, and never found",
    "encrypted": "its text is encrypted",
    "no_text": "it has no text that can be searched",
    "no_index": "no text index can answer at the moment: `outcrop index` or `outcrop rebuild` builds it",
    "waiting": "it still waits for the text index: `outcrop index` brings it there",
    "not_indexed": "its document is missing from the text index though nothing waits: run `outcrop doctor --fix`",
    "older_text": "the text index holds an older text of it",
    "no_words": "the query holds nothing that can be looked for",
    "no_match": "it holds none of the words",
    "phrase_missing": "it does not hold the quoted phrase",
    "matches_other_types": "events of other types hold words of it: ask for them with --types",
    "beyond_the_head": f"words stand only behind the first {TOOL_HEAD:,} characters of a tool's text, which count less",
    "deleted_by_harness": "the agent has deleted it from its own database; it is kept here",
    "superseded": "the agent itself replaced it later",
    "repaired": "words of the query that nothing holds were replaced by their neighbours",
    "relaxed": "nothing holds the query as it was typed, so its words were searched",
}
"""Code → what it says."""
_WARNED = {"query_repaired": "repaired", "phrase_relaxed": "relaxed", "name_relaxed": "relaxed"}
_COUNTS = """SELECT e.type, count(*), count(q.doc), sum(t.hidden <> 0), sum(e.flags & 1) FROM event e
    JOIN turn t ON t.id = e.turn LEFT JOIN (SELECT DISTINCT doc FROM text_todo WHERE class < 2) q ON q.doc = e.id
    WHERE {} GROUP BY 1"""
_WITHIN = {"turn": "e.turn = ?", "session": "e.turn IN (SELECT id FROM turn WHERE session = ?)"}


@dataclass(slots=True, frozen=True)
class Explanation:
    """What came of it. `reasons` are codes of `REASONS`; `document` is plain JSON with all of it, times in UTC ms."""

    found: bool
    reasons: tuple[str, ...]
    document: dict[str, Any]


def explain(store: Store, target: ids.Id, query: EventQuery) -> Explanation:
    """Ask about one event, or about all of a turn or session; the hits are those of the whole history.

    Of a forgotten session and its events nothing is told but what its tombstone holds. Raises NotFound for other ids
    that are not stored, and what a search raises, but for a missing text index.
    """

    def without(snapshot: Snapshot) -> Explanation:
        return _Asked(cast(TextStore, store).connection(), snapshot, None, query).about(target)

    try:
        return looked_at(
            store,
            lambda snapshot, view, db: _Asked(db, snapshot, Evidence(db, snapshot, view, query), query).about(target),
            without,
        )
    except TextIndexRebuilding:
        with store.snapshot() as snapshot:
            return without(snapshot)


class _Asked:
    """One query over one state; without `evidence` no index can answer."""

    def __init__(
        self, db: sqlite3.Connection, snapshot: Snapshot, evidence: Evidence | None, query: EventQuery
    ) -> None:
        self._db = db
        self._snapshot = snapshot
        self._evidence = evidence
        self._query = query

    def about(self, target: ids.Id) -> Explanation:
        uid = target.uid
        if uid is not None and target.kind is Kind.EVENT:
            event = self._snapshot.event(uid)
            if event is not None:
                return self._event(event, *self._snapshot.parents(event))
        elif uid is not None and target.kind is Kind.TURN:
            turn = self._snapshot.turn(uid)
            session = self._snapshot.session(turn.session_uid) if turn is not None else None
            if turn is not None and session is not None:
                return self._group("turn", turn.id, turn.uid, session)
        elif uid is not None:
            session = self._snapshot.session(uid)
            if session is not None:
                return self._group("session", session.id, session.uid, session)
        if uid is not None and (tombstone := self._tombstone(target.kind, uid)) is not None:
            return self._forgotten(target, tombstone)
        raise NotFound(str(target.kind), target.text)

    # What is not there any more

    def _tombstone(self, kind: Kind, uid: bytes) -> Tombstone | None:
        """The tombstone that tells of an id. None names its turns."""
        if kind is Kind.SESSION:
            return tombstones.of_session(self._db, uid)
        return tombstones.of_event(self._db, uid) if kind is Kind.EVENT else None

    def _forgotten(self, target: ids.Id, tombstone: Tombstone) -> Explanation:
        told = {
            "kind": str(target.kind),
            "id": target.text,
            "harness": tombstone.harness,
            "source": tombstone.source,
            "session": ids.write(Kind.SESSION, tombstone.uid),
            "forgotten_at": tombstone.at,
        }
        return self._told(False, ["forgotten"], told)

    # One event

    def _event(self, event: EventRow, turn: TurnRow, session: SessionRow) -> Explanation:
        text = searched_text(event, self._snapshot.contents([event])[0])
        evidence = self._evidence
        waiting = (
            self._db.execute("SELECT 1 FROM text_todo WHERE doc = ? AND class < 2 LIMIT 1", (event.id,)).fetchone()
            is not None
        )
        document = evidence.document(event.id) if evidence else {"present": False, "rev": None, "generation": None}
        words = evidence.words(event=event.id) if evidence else []
        place = evidence.rank(event.id) if evidence else None
        reasons = self._outside(session, {event.type})
        if turn.ordinal < 1:
            reasons.append("hidden_turn")
        reasons += self._unindexed(event, text, document, waiting)
        if evidence is not None and place is None and not reasons:
            reasons.append(self._unmatched(evidence, event, words))
        original = evidence.original(event) if evidence and event.copy else None
        found = place is not None and place <= self._query.limit
        if place is not None:
            reasons.insert(0, "found" if found else "below_the_limit")
        flags = self._db.execute("SELECT flags FROM event WHERE id = ?", (event.id,)).fetchone()[0]
        reasons += ["deleted_by_harness"] if flags & rows.DELETED else []
        reasons += ["superseded"] if flags & rows.SUPERSEDED else []
        if any(word["fields"] == ["tool_more"] for word in words):
            reasons.append("beyond_the_head")
        told = {
            "kind": "event",
            "id": ids.write(Kind.EVENT, event.uid),
            "type": str(event.type),
            "harness": session.harness,
            "source": session.source,
            "characters": len(text),
            "index": {**document, "row_rev": event.rev, "waiting": waiting},
            "rank": place,
            "score": evidence.score(event.id) if evidence else None,
            "words": words,
            "copy_of": ids.write(Kind.EVENT, original) if original else None,
        }
        return self._told(found, reasons, told)

    def _outside(self, session: SessionRow, types: set[EventType]) -> list[str]:
        """Filters of the search that leave it out."""
        query = self._query
        filters = {
            "type_not_searched": types.isdisjoint(query.types),
            "other_harness": query.harness not in (None, session.harness),
            "other_source": query.source not in (None, session.source),
        }
        return [code for code, outside in filters.items() if outside]

    def _unindexed(self, event: EventRow, text: str, document: dict[str, Any], waiting: bool) -> list[str]:
        """Why the index does not show it as it is."""
        if event.type is EventType.UNKNOWN:
            return ["unknown_kind"]
        if not text or text == ENCRYPTED_PLACEHOLDER:
            return ["encrypted" if text else "no_text"]
        if self._evidence is None:
            return ["no_index", "waiting"] if waiting else ["no_index"]
        if not document["present"]:
            return ["waiting" if waiting else "not_indexed"]
        if document["rev"] != event.rev:
            return ["older_text", "waiting"] if waiting else ["older_text"]
        return []

    @staticmethod
    def _unmatched(evidence: Evidence, event: EventRow, words: list[dict[str, Any]]) -> str:
        """Why an event that the search could have shown is none of its first hits."""
        parsed = evidence.plan.parsed
        if not parsed.units:
            return "no_words"
        if not evidence.matches(event.id):
            return "phrase_missing" if parsed.phrases and any(word["fields"] for word in words) else "no_match"
        if event.copy:
            return "copy"
        return "too_deep" if evidence.plan.more else "phrase_missing"

    # A session or a turn

    def _group(self, kind: str, number: int, uid: bytes, session: SessionRow) -> Explanation:
        counted = {
            EVENT_TYPES[row[0]]: {"stored": row[1], "waiting": row[2], "in_hidden_turns": row[3], "copies": row[4]}
            for row in self._db.execute(_COUNTS.format(_WITHIN[kind]), (number,))
        }
        evidence = self._evidence
        best = evidence.best(**{kind: number}) if evidence else None
        about = self._event(*best) if best is not None else None
        others = [type for type in counted if type not in self._query.types and type is not EventType.UNKNOWN]
        elsewhere = {
            str(type): count
            for type in others
            if evidence is not None and (count := evidence.holding(type, **{kind: number}))
        }
        if about is not None:
            reasons = list(about.reasons)
        else:
            asked = [counts for type, counts in counted.items() if type in self._query.types]
            reasons = self._outside(session, set(counted))
            reasons += [] if evidence else ["no_index"]
            if asked and all(counts["stored"] == counts["in_hidden_turns"] for counts in asked):
                reasons.append("hidden_turn")
            if any(counts["waiting"] for counts in asked):
                reasons.append("waiting")
            if not reasons and evidence is not None:
                reasons.append("no_match" if evidence.plan.parsed.units else "no_words")
        if elsewhere and not (about and about.found):
            reasons.append("matches_other_types")
        told = {
            "kind": kind,
            "id": ids.write(Kind(kind), uid),
            "harness": session.harness,
            "source": session.source,
            "events": {str(type): counts for type, counts in counted.items()},
            "matching_other_types": elsewhere,
            "best": about.document if about else None,
            "words": evidence.words(**{kind: number}) if evidence else [],
        }
        return self._told(about is not None and about.found, reasons, told)

    def _told(self, found: bool, reasons: list[str], told: dict[str, Any]) -> Explanation:
        query: dict[str, Any] = {
            "types": [str(kind) for kind in self._query.types],
            "harness": self._query.harness,
            "source": self._query.source,
            "limit": self._query.limit,
            "words": [],
            "phrases": [],
            "hits": 0,
            "more_hits": False,
            "warnings": [],
        }
        if self._evidence is not None:
            plan = self._evidence.plan
            query["words"] = [unit.typed for unit in (*plan.parsed.units, *plan.dropped)]
            query["phrases"] = [" ".join(tokens) for tokens in plan.parsed.phrases]
            query["hits"], query["more_hits"], query["warnings"] = len(plan.hits), plan.more, list(plan.warnings)
            reasons += [_WARNED[code] for text in plan.warnings if (code := text.partition(":")[0]) in _WARNED]
        unique = tuple(dict.fromkeys(reasons))
        explained = [{"code": code, "text": REASONS[code]} for code in unique]
        return Explanation(found, unique, {"found": found, **told, "query": query, "reasons": explained})
