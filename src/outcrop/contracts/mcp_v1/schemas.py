"""JSON Schemas and descriptions of the tools, as `tools/list` publishes them.

They are read by models with every session, so every byte is paid for: all tools together stay within 9 KB. Whatever a
tool's `parse` accepts its schema allows, so that a client which checks beforehand refuses nothing that is right.
"""

from __future__ import annotations

from typing import Any

from outcrop.contracts.mcp_v1.arguments import MAX_CURSOR
from outcrop.contracts.mcp_v1.envelope import Context, schema_version
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
FILE_ATTENTION = (
    "Which sessions read or changed a file, in the main checkout and every worktree, newest first. Pass "
    "open.event_id, turn_id or session_id to `open`."
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


_COUNTS: Schema = {"result_count": _WHOLE, "limit": _WHOLE, "truncated": {"type": "boolean"}}

SEARCH_SESSIONS_DATA = _exactly(
    "",
    **_COUNTS,
    results=_list(
        _exactly(
            "rank score id snippet open",
            event=_exactly("id type timestamp ordinal terminal"),
            turn=_exactly("id ordinal completed event_count"),
            session=_exactly("id title source harness started_at updated_at completed"),
        )
    ),
)
LIST_SESSIONS_DATA = _exactly(
    "next_cursor",
    **_COUNTS,
    sessions=_list(
        _exactly(
            "rank id session",
            open=_exactly("session_id"),
        )
    ),
)
OPEN_DATA: Schema = {
    "anyOf": [
        _exactly(
            "session turns next_cursor",
            kind={"const": "session"},
            traversal=_exactly("previous_session_id next_session_id first_turn_id last_turn_id"),
        ),
        _exactly(
            "turn session summary events next_cursor",
            kind={"const": "turn"},
            traversal=_exactly("session_id previous_turn_id next_turn_id first_event_id last_event_id"),
        ),
        _exactly(
            "event content session turn",
            kind={"const": "event"},
            traversal=_exactly("session_id turn_id previous_event_id next_event_id previous_turn_id next_turn_id"),
        ),
    ]
}
"""Of what can be opened the three forms and their ways on; the objects inside are the longest of all to describe."""

FILE_ATTENTION_DATA: Schema = {
    "type": "object",
    "required": [
        *("path", "tail", "tail_is_absolute", "stripped_root", "scope", "granularity", "summary", "roots"),
        *_COUNTS,
    ],
    "minProperties": 12,
    "maxProperties": 12,
    "properties": {
        **_COUNTS,
        "sessions": _list(_exactly("rank id session open")),
        "events": _list(_exactly("rank id event open")),
    },
}
"""Either `sessions` or `events` is the twelfth field, as the granularity says."""


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
            **_filters(context, told=True),
            "sort": {**_choice("desc", "asc"), "default": "desc"},
            "limit": _integer(context.max_results, min(20, context.max_results)),
            "cursor": _text("next_cursor, with the same filter and sort.", maxLength=MAX_CURSOR),
        },
        "start_datetime",
        "end_datetime",
    )


def file_attention_input(context: Context) -> Schema:
    return _input(
        {
            "path": {**_TEXT, "description": "A file, absolute or relative to the launch directory."},
            "scope": {**_choice("project", "all"), "default": "project"},
            "granularity": {**_choice("sessions", "events"), "default": "sessions"},
            "start_datetime": _either(_TEXT),
            "end_datetime": _either(_TEXT),
            "tool": _text("A tool's name."),
            **_filters(context, told=True),
            "mutations_only": {**_either({"type": "boolean"}), "description": "Leave out mere reading."},
            "limit": _integer(context.max_results, context.max_results),
        },
        "path",
    )


def output(tool: str, data: Schema) -> Schema:
    """Either a success with this data, or an error. Both have six fields and no more."""
    success: Schema = {"schema_version": {"const": schema_version(tool)}, "data": data}
    # The third field, `details`, is there where there is something to say.
    told: Schema = {"type": "object", "required": ["code", "message"], "maxProperties": 3}
    failure: Schema = {"error": told}
    return {
        "type": "object",
        "required": ["schema_version", "tool", "request", "warnings", "performance"],
        "maxProperties": 6,
        "properties": {"tool": {"const": tool}},
        "oneOf": [
            {"required": ["data"], "properties": success},
            {"required": ["error"], "properties": failure},
        ],
    }


def _input(properties: Schema, *required: str) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _filters(context: Context, *, told: bool = False) -> Schema:
    """`told`: another tool of the list names every harness already."""
    harnesses = ", ".join(sorted(context.catalog.harnesses)) or "none known"
    sources = ", ".join(sorted(set(context.catalog.sources_with_data())))
    return {
        "harness": _text("Exact filter, as in search_sessions." if told else f"Exact filter: {harnesses}."),
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
