"""`open`: a typed id becomes structured context (specification, "Tool: open"; rulings 4 to 9, 14).

An id alone loads no children. Pages of children are pinned by arrival; a cursor dies only when the session's shape
changes, that is when something went or moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from outcrop import ids
from outcrop.contracts.mcp_v1 import arguments, cursors, schemas, shapes
from outcrop.contracts.mcp_v1.cursors import OpenCursor
from outcrop.contracts.mcp_v1.envelope import Context, coverage
from outcrop.contracts.mcp_v1.tool import Answer, Tool
from outcrop.errors import InvalidId, InvalidRequest, NotFound
from outcrop.ids import Kind
from outcrop.model import EventRow, SessionRow, TurnRow
from outcrop.store import Snapshot

NAME = "open"
Row = TypeVar("Row", TurnRow, EventRow)
_FIELDS = {"id": arguments.STRING, "limit": arguments.INTEGER, "cursor": arguments.STRING}


@dataclass(slots=True, frozen=True)
class Request:
    """Either an id, with a limit or without, or a cursor."""

    id: ids.Id | None
    limit: int | None
    cursor: str | None

    def canonical(self) -> dict[str, Any]:
        """Just what was given (ruling 2)."""
        given = {"id": self.id.text if self.id else None, "limit": self.limit, "cursor": self.cursor}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(slots=True, frozen=True)
class Window:
    """The page of children that was asked for: how many, after which ordinal, as of which arrival."""

    limit: int
    after: int
    arrival: int


def parse(raw: Any, context: Context) -> Request:
    values = arguments.fields(raw, _FIELDS, "open expects a JSON object with an id, an id and a limit, or a cursor")
    if values["cursor"] is not None:
        if values["id"] is not None or values["limit"] is not None:
            raise InvalidRequest("cursor must be provided without id or limit", "cursor")
        return Request(None, None, arguments.cursor_text(values["cursor"]))
    if values["id"] is None:
        raise InvalidRequest("id is required", "id")
    if not values["id"].strip():
        raise InvalidRequest("id must be a non-empty string", "id")
    target = arguments.typed_id("id", values["id"])
    limit = values["limit"]
    if limit is not None:
        limit = arguments.bounded("limit", limit, limit, context.max_results)
        if target.kind is Kind.EVENT:
            raise InvalidRequest("limit is only supported for session and turn IDs", "limit")
    return Request(target, limit, None)


def answer(request: Request, context: Context) -> Answer:
    with context.snapshot() as snapshot:
        if request.cursor is not None:
            return Answer(_continue(request.cursor, snapshot, context), coverage(snapshot))
        target = request.id
        assert target is not None
        window = None if request.limit is None else Window(request.limit, 0, snapshot.arrival)
        data = _open(target, window, snapshot, context)
        if data is None:
            raise NotFound(str(target.kind), target.text)
        return Answer(data, coverage(snapshot))


def _continue(text: str, snapshot: Snapshot, context: Context) -> dict[str, Any]:
    cursor = cursors.read_open(text, snapshot.epoch)
    again = f"open {cursor.target} again with a limit"
    try:
        target = ids.parse(cursor.target)
    except InvalidId:
        raise cursors.malformed("open the typed id again with a limit") from None
    if target.kind is Kind.EVENT or not 1 <= cursor.limit <= context.max_results or cursor.after < 1:
        raise cursors.malformed(again)
    if cursor.arrival > snapshot.arrival or _shape(target, snapshot) != cursor.shape:
        raise cursors.stale(again)
    data = _open(target, Window(cursor.limit, cursor.after, cursor.arrival), snapshot, context)
    if data is None:
        raise cursors.stale(again)
    return data


def _open(target: ids.Id, window: Window | None, snapshot: Snapshot, context: Context) -> dict[str, Any] | None:
    """The data of a target, or None where the store does not hold it."""
    if target.uid is None:
        return None
    if target.kind is Kind.SESSION:
        session = snapshot.session(target.uid)
        return None if session is None else _session(session, window, snapshot, context)
    if target.kind is Kind.TURN:
        turn = snapshot.turn(target.uid)
        return None if turn is None else _turn(turn, window, snapshot, context)
    return _event(target.uid, snapshot)


def _session(session: SessionRow, window: Window | None, snapshot: Snapshot, context: Context) -> dict[str, Any]:
    turns: list[TurnRow] = []
    following = None
    if window is not None:
        turns = snapshot.turns(session.id, window.after, window.limit + 1, window.arrival)
        turns, following = _page(turns, window, ids.write(Kind.SESSION, session.uid), session, snapshot)
    before, after = snapshot.around_session(session)
    first, last = snapshot.edges(session)
    return {
        "kind": "session",
        "session": {**shapes.session_full(session, context.catalog), **_parent(session, snapshot)},
        "turns": [shapes.turn_summary(turn) for turn in turns],
        "next_cursor": following,
        "traversal": {
            "previous_session_id": shapes.session_id(before),
            "next_session_id": shapes.session_id(after),
            "first_turn_id": shapes.turn_id(first),
            "last_turn_id": shapes.turn_id(last),
        },
    }


def _parent(session: SessionRow, snapshot: Snapshot) -> dict[str, Any]:
    """Where a subagent, a fork or a continuation came from; the id only where it can be opened."""
    if session.relation is None:
        return {}
    known = session.parent_uid is not None and snapshot.session(session.parent_uid) is not None
    return {
        "relation": session.relation,
        "parent_session_id": shapes.session_id(session.parent_uid) if known else None,
    }


def _turn(turn: TurnRow, window: Window | None, snapshot: Snapshot, context: Context) -> dict[str, Any] | None:
    session = snapshot.session(turn.session_uid)
    if session is None:
        return None
    summaries: list[dict[str, Any]] = []
    following = None
    if window is not None:
        events = snapshot.events(turn.id, window.after, window.limit + 1, window.arrival)
        events, following = _page(events, window, ids.write(Kind.TURN, turn.uid), session, snapshot)
        context.check()
        contents = snapshot.contents(events)
        summaries = [shapes.event_summary(event, body, turn) for event, body in zip(events, contents, strict=True)]
    before, after = snapshot.around_turn(turn)
    first, last = snapshot.edges(turn)
    core = shapes.turn_core(turn)
    return {
        "kind": "turn",
        "turn": {"id": core.pop("id"), "session_id": shapes.session_id(session.uid), **core},
        "session": shapes.session_brief(session),
        "summary": shapes.turn_text(turn),
        "events": summaries,
        "next_cursor": following,
        "traversal": {
            "session_id": shapes.session_id(session.uid),
            "previous_turn_id": shapes.turn_id(before),
            "next_turn_id": shapes.turn_id(after),
            "first_event_id": shapes.event_id(first),
            "last_event_id": shapes.event_id(last),
        },
    }


def _event(uid: bytes, snapshot: Snapshot) -> dict[str, Any] | None:
    event = snapshot.event(uid)
    if event is None:
        return None
    turn, session = snapshot.parents(event)
    [content] = snapshot.contents([event])
    before, after = snapshot.around_event(event)
    turn_before, turn_after = snapshot.around_turn(turn)
    return {
        "kind": "event",
        "event": shapes.event_core(event, turn, session),
        "content": shapes.event_content(event, content),
        "session": shapes.session_brief(session),
        "turn": shapes.turn_brief(turn),
        "traversal": {
            "session_id": shapes.session_id(session.uid),
            "turn_id": shapes.turn_id(turn.uid),
            "previous_event_id": shapes.event_id(before),
            "next_event_id": shapes.event_id(after),
            "previous_turn_id": shapes.turn_id(turn_before),
            "next_turn_id": shapes.turn_id(turn_after),
        },
    }


def _page(
    rows: list[Row], window: Window, target: str, session: SessionRow, snapshot: Snapshot
) -> tuple[list[Row], str | None]:
    """One row more than the page was asked for: cut it off, and write the cursor that goes on from there."""
    if len(rows) <= window.limit:
        return rows, None
    shown = rows[: window.limit]
    cursor = OpenCursor(target, window.limit, shown[-1].ordinal, window.arrival, session.shape)
    return shown, cursors.write_open(cursor, snapshot.epoch)


def _shape(target: ids.Id, snapshot: Snapshot) -> int | None:
    """The present shape of the session that a cursor walks in."""
    if target.uid is None:
        return None
    if target.kind is Kind.SESSION:
        session = snapshot.session(target.uid)
    else:
        turn = snapshot.turn(target.uid)
        session = snapshot.session(turn.session_uid) if turn else None
    return session.shape if session else None


TOOL = Tool(
    name=NAME,
    title="Open session, turn or event",
    description=schemas.OPEN,
    input_schema=schemas.open_input,
    output_schema=schemas.output(NAME, schemas.OPEN_DATA),
    parse=parse,
    answer=answer,
)
