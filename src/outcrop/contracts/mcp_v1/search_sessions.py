"""`search_sessions`: where in the history to look (specification, "Tool: search_sessions").

Checks its arguments in the contract's order and hands the query on; what matches and how it is ranked is the search
room's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outcrop import ids
from outcrop.contracts.mcp_v1 import arguments, schemas, shapes
from outcrop.contracts.mcp_v1.envelope import NOTHING_INDEXED, Context
from outcrop.contracts.mcp_v1.tool import Answer, Tool
from outcrop.contracts.moments import timestamp
from outcrop.errors import InvalidRequest, NotFound, StoreMissing, UnsupportedEventType
from outcrop.ids import Kind
from outcrop.model import CONVERSATION, EventType

if TYPE_CHECKING:
    from outcrop.search.events import EventHit

NAME = "search_sessions"
MAX_QUERY = 4096
"""Characters after trimming."""
DEFAULT_HITS = 10
MAX_HITS = 50
SEARCHABLE = tuple(kind for kind in EventType if kind is not EventType.UNKNOWN)
"""The types that `event_types` may name, in the normalized order."""

_FIELDS = {
    "query": arguments.STRING,
    "within_id": arguments.STRING,
    "event_types": arguments.STRINGS,
    "harness": arguments.STRING,
    "source": arguments.STRING,
    "n_hits": arguments.INTEGER,
}


@dataclass(slots=True, frozen=True)
class Request:
    query: str
    within: ids.Id | None
    event_types: tuple[EventType, ...]
    harness: str | None
    source: str | None
    n_hits: int

    def canonical(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "within_id": self.within.text if self.within else None,
            "event_types": [str(kind) for kind in self.event_types],
            "harness": self.harness,
            "source": self.source,
            "n_hits": self.n_hits,
        }


def parse(raw: Any, context: Context) -> Request:
    values = arguments.fields(raw, _FIELDS, "search_sessions expects a JSON object with a string query")
    return Request(
        query=_query(values["query"]),
        within=_scope(values["within_id"]),
        event_types=_types(values["event_types"]),
        harness=arguments.exact_filter("harness", values["harness"]),
        source=arguments.exact_filter("source", values["source"]),
        n_hits=arguments.bounded("n_hits", values["n_hits"], DEFAULT_HITS, MAX_HITS),
    )


def answer(request: Request, context: Context) -> Answer:
    from outcrop.search.events import EventQuery, search_events  # the search engine loads with the first search

    try:
        scope = _resolve(request.within, context)
        query = EventQuery(
            request.query,
            request.event_types,
            request.n_hits,
            harness=request.harness,
            source=request.source,
            project=context.floor,
            **scope,
        )
        found = search_events(context.store, query, context.stopped)
    except StoreMissing:
        if request.within is not None:
            raise NotFound(str(request.within.kind), request.within.text) from None
        return Answer(_page([], request, False), [NOTHING_INDEXED])
    return Answer(_page(found.hits, request, found.truncated), list(found.warnings))


def _page(hits: list[EventHit], request: Request, truncated: bool) -> dict[str, Any]:
    return {
        "result_count": len(hits),
        "limit": request.n_hits,
        "truncated": truncated,
        "results": [_hit(rank, hit) for rank, hit in enumerate(hits, 1)],
    }


def _hit(rank: int, hit: EventHit) -> dict[str, Any]:
    event, turn, session = hit.found.event, hit.found.turn, hit.found.session
    event_id = shapes.event_id(event.uid)
    return {
        "rank": rank,
        "score": min(1.0, max(0.0, hit.score)),
        "id": event_id,
        "event": {
            "id": event_id,
            "type": str(event.type),
            "timestamp": timestamp(event.time),
            "ordinal": event.ordinal,
            "terminal": event.uid == turn.terminal_uid,
        },
        "turn": {**shapes.turn_brief(turn), "event_count": turn.event_count},
        "session": shapes.session_hit(session),
        "snippet": {"text": hit.snippet, "truncated": hit.snippet_truncated},
        "open": {
            "event_id": event_id,
            "turn_id": shapes.turn_id(turn.uid),
            "session_id": shapes.session_id(session.uid),
        },
    }


def _resolve(within: ids.Id | None, context: Context) -> dict[str, bytes]:
    """The scope as arguments of the query. Raises NotFound for an id that the store does not hold."""
    if within is None:
        return {}
    if within.uid is not None:
        with context.snapshot() as snapshot:
            if within.kind is Kind.SESSION and snapshot.session(within.uid):
                return {"session": within.uid}
            if within.kind is Kind.TURN and snapshot.turn(within.uid):
                return {"turn": within.uid}
    raise NotFound(str(within.kind), within.text)


def _query(text: str | None) -> str:
    if text is None:
        raise InvalidRequest("query is required and must be a string", "query")
    trimmed = text.strip()
    if not trimmed:
        raise InvalidRequest("query must be a non-empty string", "query")
    if len(trimmed) > MAX_QUERY:
        raise InvalidRequest(f"query must be at most {MAX_QUERY} characters", "query")
    return trimmed


def _scope(text: str | None) -> ids.Id | None:
    if text is None:
        return None
    scope = arguments.typed_id("within_id", text)
    if scope.kind is Kind.EVENT:
        raise InvalidRequest("within_id accepts session and turn IDs, not event IDs", "within_id")
    return scope


def _types(names: list[str] | None) -> tuple[EventType, ...]:
    """Without doubles, in the normalized order."""
    if names is None:
        return CONVERSATION
    if not names:
        raise InvalidRequest("event_types must contain at least one event type", "event_types")
    supported = [str(kind) for kind in SEARCHABLE]
    for name in names:
        if name not in supported:
            raise UnsupportedEventType(name, supported)
    return tuple(kind for kind in SEARCHABLE if str(kind) in names)


TOOL = Tool(
    name=NAME,
    title="Search sessions",
    description=schemas.SEARCH_SESSIONS,
    input_schema=schemas.search_sessions_input,
    output_schema=schemas.output(NAME, schemas.SEARCH_SESSIONS_DATA),
    parse=parse,
    answer=answer,
)
