"""JSON Schemas and descriptions of the tools, as `tools/list` publishes them.

They are read by models with every session, so every byte is paid for: all tools together stay within 9 KB. Whatever a
tool's `parse` accepts its schema allows, so that a client which checks beforehand refuses nothing that is right.
"""

from __future__ import annotations

from typing import Any

from outcrop.contracts.mcp_v1.envelope import ERROR_SCHEMA, Context, schema_version
from outcrop.errors import CODES
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

SEARCH_SESSIONS_DATA: Schema = {
    "result_count": {"type": "integer"},
    "limit": {"type": "integer"},
    "truncated": {"type": "boolean"},
    "results": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["rank", "score", "id", "event", "turn", "session", "snippet", "open"],
        },
    },
}
LIST_SESSIONS_DATA: Schema = {
    "result_count": {"type": "integer"},
    "limit": {"type": "integer"},
    "truncated": {"type": "boolean"},
    "sessions": {"type": "array", "items": {"type": "object", "required": ["rank", "id", "session", "open"]}},
    "next_cursor": {"type": ["string", "null"]},
}
OPEN_DATA: Schema = {
    "kind": {"enum": ["session", "turn", "event"]},
    "session": {"type": "object"},
    "traversal": {"type": "object"},
}


def search_sessions_input(context: Context) -> Schema:
    types = [str(kind) for kind in EVENT_TYPES if kind is not EventType.UNKNOWN]
    return _input(
        {
            "query": {"type": "string", "description": "Words to find, at most 4096 characters."},
            "within_id": _nullable("string", "Search only this session or turn."),
            "event_types": {
                "anyOf": [{"type": "array", "items": {"enum": types}, "minItems": 1}, {"type": "null"}],
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
            "id": _nullable("string", "session:…, turn:… or event:… id, exactly as returned."),
            "limit": _integer(context.max_results, None, "Page size; session and turn ids only."),
            "cursor": {**_nullable("string", "next_cursor of a page, given by itself."), "maxLength": 4096},
        }
    )


def list_sessions_input(context: Context) -> Schema:
    datetime = {"type": "string", "format": "date-time"}
    return _input(
        {
            "start_datetime": {**datetime, "description": "Inclusive; RFC 3339 with offset or Z."},
            "end_datetime": {**datetime, "description": "Exclusive."},
            "mode": _choice("web_search", "mcp_internal", "tool_calling", "chat"),
            **_filters(context),
            "sort": {**_choice("desc", "asc"), "default": "desc"},
            "limit": _integer(context.max_results, min(20, context.max_results)),
            "cursor": {**_nullable("string", "next_cursor, with the same filter and sort."), "maxLength": 4096},
        },
        "start_datetime",
        "end_datetime",
    )


def output(tool: str, data: Schema) -> Schema:
    """Either a success with this data, or an error."""
    return {
        "type": "object",
        "required": ["schema_version", "tool", "request", "warnings", "performance"],
        "properties": {
            "tool": {"const": tool},
            "warnings": {"type": "array", "items": {"type": "string"}},
            "performance": {
                "type": "object",
                "required": ["elapsed_ms"],
                "properties": {"elapsed_ms": {"type": "integer", "minimum": 0}},
            },
        },
        "oneOf": [
            {
                "required": ["data"],
                "properties": {
                    "schema_version": {"const": schema_version(tool)},
                    "request": {"type": "object"},
                    "data": {"type": "object", "required": list(data), "properties": data},
                },
            },
            {
                "required": ["error"],
                "properties": {
                    "schema_version": {"const": ERROR_SCHEMA},
                    "error": {
                        "type": "object",
                        "required": ["code", "message"],
                        "properties": {
                            "code": {"enum": list(CODES)},
                            "message": {"type": "string"},
                            "details": {"type": "object"},
                        },
                    },
                },
            },
        ],
    }


def _input(properties: Schema, *required: str) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _filters(context: Context) -> Schema:
    harnesses = ", ".join(sorted(context.catalog.harnesses))
    sources = ", ".join(sorted(set(context.catalog.sources_with_data())))
    return {
        "harness": _nullable("string", f"Exact filter: {harnesses or 'none known'}."),
        "source": _nullable("string", f"Exact filter; with data: {sources or 'none yet'}."),
    }


def _nullable(kind: str, description: str) -> Schema:
    return {"type": [kind, "null"], "description": description}


def _integer(maximum: int, default: int | None, description: str | None = None) -> Schema:
    schema: Schema = {"type": ["integer", "null"], "minimum": 1, "maximum": maximum}
    if default is not None:
        schema["default"] = default
    return {**schema, "description": description} if description else schema


def _choice(*options: str) -> Schema:
    return {"anyOf": [{"enum": list(options)}, {"type": "null"}]}
