"""`list_sessions`: which sessions ran in a time (specification, "Tool: list_sessions"; rulings 10, 15, 28, 29).

Pages are pinned by arrival: a session that goes on while a caller turns pages keeps the place that it had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from outcrop.contracts.mcp_v1 import arguments, cursors, schemas, shapes
from outcrop.contracts.mcp_v1.envelope import NOTHING_INDEXED, Context, coverage
from outcrop.contracts.mcp_v1.tool import Answer, Tool
from outcrop.contracts.moments import instant
from outcrop.errors import InvalidRequest, StoreMissing
from outcrop.model import SessionRow
from outcrop.store import SessionQuery, Snapshot

NAME = "list_sessions"
DEFAULT_LIMIT = 20
SORTS = ("desc", "asc")

_FIELDS = {
    "start_datetime": arguments.STRING,
    "end_datetime": arguments.STRING,
    "limit": arguments.INTEGER,
    "cursor": arguments.STRING,
    "mode": arguments.STRING,
    "harness": arguments.STRING,
    "source": arguments.STRING,
    "sort": arguments.STRING,
}
_EXAMPLE = {"start_datetime": "2026-04-30T09:00:00-04:00", "end_datetime": "2026-04-30T13:00:00-04:00"}
_AGAIN = "start the listing again without a cursor"


@dataclass(slots=True, frozen=True)
class Request:
    """`start` and `end` are the two datetimes in UTC ms."""

    start_datetime: str
    end_datetime: str
    start: int
    end: int
    mode: str | None
    harness: str | None
    source: str | None
    sort: str
    limit: int
    cursor: str | None

    def canonical(self) -> dict[str, Any]:
        return {
            "start_datetime": self.start_datetime,
            "end_datetime": self.end_datetime,
            "mode": self.mode,
            "harness": self.harness,
            "source": self.source,
            "sort": self.sort,
            "limit": self.limit,
            "cursor": self.cursor,
        }


def parse(raw: Any, context: Context) -> Request:
    values = arguments.fields(raw, _FIELDS, "list_sessions expects a JSON object with start_datetime and end_datetime")
    mode = arguments.choice("mode", values["mode"], shapes.MODES)
    sort = arguments.choice("sort", values["sort"], SORTS) or SORTS[0]
    default = min(DEFAULT_LIMIT, context.max_results)
    limit = arguments.bounded("limit", values["limit"], default, context.max_results)
    for name in ("start_datetime", "end_datetime"):
        if values[name] is None:
            message = "list_sessions requires start_datetime and end_datetime with explicit timezones"
            raise InvalidRequest(message, name, example=_EXAMPLE)
    start_text, start = instant("start_datetime", values["start_datetime"])
    end_text, end = instant("end_datetime", values["end_datetime"])
    if end <= start:
        raise InvalidRequest("end_datetime must be later than start_datetime", "end_datetime")
    return Request(
        start_datetime=start_text,
        end_datetime=end_text,
        start=start,
        end=end,
        cursor=arguments.cursor_text(values["cursor"]),
        mode=mode,
        harness=arguments.exact_filter("harness", values["harness"]),
        source=arguments.exact_filter("source", values["source"]),
        sort=sort,
        limit=limit,
    )


def answer(request: Request, context: Context) -> Answer:
    try:
        with context.snapshot() as snapshot:
            return Answer(_list(request, snapshot, context), coverage(snapshot))
    except StoreMissing:
        if request.cursor is not None:
            raise cursors.stale(_AGAIN) from None
        return Answer(_page([], request, None, context), [NOTHING_INDEXED])


def _list(request: Request, snapshot: Snapshot, context: Context) -> dict[str, Any]:
    signature = cursors.filter_signature(request.start, request.end, request.mode, request.harness, request.source)
    arrival, after = snapshot.arrival, None
    if request.cursor is not None:
        cursor = cursors.read_list(request.cursor, snapshot.epoch)
        if (cursor.filter, cursor.sort) != (signature, request.sort):
            raise InvalidRequest(f"cursor does not match current list_sessions filter; {_AGAIN}", "cursor")
        if cursor.order_rev != snapshot.order_rev or cursor.arrival > snapshot.arrival:
            raise cursors.stale(_AGAIN)
        arrival, after = cursor.arrival, (cursor.updated, cursor.uid)
    query = SessionQuery(
        start=request.start,
        end=request.end,
        arrival=arrival,
        limit=request.limit + 1,
        mode=request.mode,
        harness=request.harness,
        source=request.source,
        descending=request.sort == "desc",
        after=after,
    )
    rows = snapshot.sessions(query)
    shown = rows[: request.limit]
    following = None
    if len(rows) > len(shown):
        last = shown[-1]
        following = cursors.write_list(
            cursors.ListCursor(signature, request.sort, last.updated, last.uid, arrival, snapshot.order_rev),
            snapshot.epoch,
        )
    return _page(shown, request, following, context)


def _page(rows: list[SessionRow], request: Request, following: str | None, context: Context) -> dict[str, Any]:
    return {
        "result_count": len(rows),
        "limit": request.limit,
        "truncated": following is not None,
        "sessions": [_row(rank, row, context) for rank, row in enumerate(rows, 1)],
        "next_cursor": following,
    }


def _row(rank: int, row: SessionRow, context: Context) -> dict[str, Any]:
    session = shapes.session_full(row, context.catalog)
    return {"rank": rank, "id": session["id"], "session": session, "open": {"session_id": session["id"]}}


TOOL = Tool(
    name=NAME,
    title="List sessions",
    description=schemas.LIST_SESSIONS,
    input_schema=schemas.list_sessions_input,
    output_schema=schemas.output(NAME, schemas.LIST_SESSIONS_DATA),
    parse=parse,
    answer=answer,
)
