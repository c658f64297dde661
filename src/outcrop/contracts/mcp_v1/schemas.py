"""JSON Schemas and descriptions of the tools, as `tools/list` publishes them.

They are read by models with every session, so every byte is paid for: all tools together stay within 9 KB. Whatever a
tool's `parse` accepts its schema allows, so that a client which checks beforehand refuses nothing that is right.
"""

from __future__ import annotations

from typing import Any

from outcrop.contracts.mcp_v1.arguments import MAX_CURSOR
from outcrop.contracts.mcp_v1.envelope import ERROR_SCHEMA, Context, schema_version
from outcrop.model import EVENT_TYPES, EventType

Schema = dict[str, Any]

SEARCH_SESSIONS = (
    "Search the history of all coding agents on this machine. Returns ranked events with snippets and ids: pass "
    "open.event_id, turn_id or session_id to `open`. Covers prompts and answers unless event_types names other types."
)
OPEN = (
    "Expand an id. A session or turn alone gives a summary; with limit, a page of its turns or events, continued by "
    "passing next_cursor alone as cursor. An event gives its full content."
)
LIST_SESSIONS = (
    "List sessions that were active in a time range, newest first. Metadata only: pass open.session_id to `open`."
)

_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}


def _exactly(names: str, **typed: Schema) -> Schema:
    """An object of exactly these fields, all of them and no more; the values of the named ones are not described.

    With every field required, the greatest number of fields closes it: half the bytes of naming each one twice.
    """
    fields = [*names.split(), *typed]
    schema: Schema = {"type": "object", "required": fields, "maxProperties": len(fields)}
    return {**schema, "properties": typed} if typed else schema


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _either(schema: Schema) -> Schema:
    """The same or null, in the form that the most clients understand."""
    return {"anyOf": [schema, {"type": "null"}]}


_SESSION = _exactly("id title source harness")
_SESSION_FULL = (
    "id title display_label source harness started_at updated_at completed turn_count event_count mode session_slug"
    " session_summary"
)
_TURN = "id ordinal completed terminal_event_id event_count started_at updated_at"
_SUMMARY = "user_input final_response tools_called event_types"

SEARCH_SESSIONS_DATA = _exactly(
    "result_count limit truncated",
    results=_list(
        _exactly(
            "rank score id",
            event=_exactly("id type timestamp ordinal terminal"),
            turn=_exactly("id ordinal completed event_count"),
            session=_exactly("id title source harness started_at updated_at completed"),
            snippet=_exactly("text truncated"),
            open=_exactly("event_id turn_id session_id"),
        )
    ),
)
LIST_SESSIONS_DATA = _exactly(
    "result_count limit truncated next_cursor",
    sessions=_list(_exactly("rank id", session=_exactly(_SESSION_FULL), open=_exactly("session_id"))),
)
OPEN_DATA: Schema = {
    "anyOf": [
        _exactly(
            "next_cursor",
            kind={"const": "session"},
            # Where it is a subagent's or a fork, two fields more tell its parent.
            session={"type": "object", "required": _SESSION_FULL.split()},
            turns=_list(_exactly(f"{_TURN} {_SUMMARY} open")),
            traversal=_exactly("previous_session_id next_session_id first_turn_id last_turn_id"),
        ),
        _exactly(
            "next_cursor",
            kind={"const": "turn"},
            turn=_exactly(f"session_id {_TURN}"),
            session=_SESSION,
            summary=_exactly(_SUMMARY),
            events=_list(_exactly("id ordinal type timestamp terminal tool_name model summary truncated")),
            traversal=_exactly("session_id previous_turn_id next_turn_id first_event_id last_event_id"),
        ),
        _exactly(
            "",
            kind={"const": "event"},
            event=_exactly("id session_id turn_id ordinal type timestamp terminal model originating_model tool_name"),
            # What else there is depends on the type of the event.
            content={"type": "object", "required": ["format", "text", "truncated"]},
            session=_SESSION,
            turn=_exactly("id ordinal completed"),
            traversal=_exactly("session_id turn_id previous_event_id next_event_id previous_turn_id next_turn_id"),
        ),
    ]
}


def search_sessions_input(context: Context) -> Schema:
    types = [str(kind) for kind in EVENT_TYPES if kind is not EventType.UNKNOWN]
    return _input(
        {
            "query": {**_TEXT, "description": "Words to find, at most 4096 characters."},
            "within_id": _text("Search only this session or turn."),
            "event_types": {
                **_either({**_list({"enum": types}), "minItems": 1}),
                "description": "Default: user_input, assistant_response.",
            },
            **_filters(context),
            "n_hits": _integer(50, 10),
        },
        "query",
    )


def open_input(context: Context) -> Schema:
    return _input(
        {
            "id": _text("session:…, turn:… or event:… id, exactly as returned."),
            "limit": _integer(context.max_results, None, "Page size; session and turn ids only."),
            "cursor": _text("next_cursor of a page, given by itself.", maxLength=MAX_CURSOR),
        }
    )


def list_sessions_input(context: Context) -> Schema:
    datetime = {**_TEXT, "format": "date-time"}
    return _input(
        {
            "start_datetime": {**datetime, "description": "Inclusive; RFC 3339 with offset or Z."},
            "end_datetime": {**datetime, "description": "Exclusive."},
            "mode": _choice("web_search", "mcp_internal", "tool_calling", "chat"),
            **_filters(context),
            "sort": {**_choice("desc", "asc"), "default": "desc"},
            "limit": _integer(context.max_results, min(20, context.max_results)),
            "cursor": _text("next_cursor, with the same filter and sort.", maxLength=MAX_CURSOR),
        },
        "start_datetime",
        "end_datetime",
    )


def output(tool: str, data: Schema) -> Schema:
    """Either a success with this data, or an error.

    Both have six fields and no more; an error's `request` is whatever was sent.
    """
    success: Schema = {"schema_version": {"const": schema_version(tool)}, "request": {"type": "object"}, "data": data}
    told: Schema = {"code": _TEXT, "message": _TEXT, "details": {"type": "object"}}
    failed: Schema = {
        "type": "object",
        "required": ["code", "message"],
        "properties": told,
        "additionalProperties": False,
    }
    error: Schema = {"schema_version": {"const": ERROR_SCHEMA}, "error": failed}
    return {
        "type": "object",
        "required": ["schema_version", "tool", "request", "warnings", "performance"],
        "maxProperties": 6,
        "properties": {
            "tool": {"const": tool},
            "warnings": _list(_TEXT),
            "performance": _exactly("", elapsed_ms={**_WHOLE, "minimum": 0}),
        },
        "oneOf": [
            {"required": ["data"], "properties": success},
            {"required": ["error"], "properties": error},
        ],
    }


def _input(properties: Schema, *required: str) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _filters(context: Context) -> Schema:
    harnesses = ", ".join(sorted(context.catalog.harnesses))
    sources = ", ".join(sorted(set(context.catalog.sources_with_data())))
    return {
        "harness": _text(f"Exact filter: {harnesses or 'none known'}."),
        "source": _text(f"Exact filter; with data: {sources or 'none yet'}."),
    }


def _text(description: str, **limits: int) -> Schema:
    return {**_either({**_TEXT, **limits}), "description": description}


def _integer(maximum: int, default: int | None, description: str | None = None) -> Schema:
    schema = _either({**_WHOLE, "minimum": 1, "maximum": maximum})
    if default is not None:
        schema["default"] = default
    return {**schema, "description": description} if description else schema


def _choice(*options: str) -> Schema:
    return _either({"enum": list(options)})
