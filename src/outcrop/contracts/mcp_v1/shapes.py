"""Rows of the store as objects of the wire: sessions, turns and events as every tool shows them.

One place, so that a session is titled, timed and completed alike in search, listing and `open`.
"""

from __future__ import annotations

import json
from typing import Any

from outcrop import calls, ids
from outcrop.contracts.catalog import Catalog
from outcrop.contracts.moments import timestamp
from outcrop.ids import Kind
from outcrop.model import ENCRYPTED_PLACEHOLDER, Content, EventRow, EventType, Preview, SessionRow, TurnRow

LABEL = 120
SLUG = 120
SUMMARY = 240
MODES = ("web_search", "mcp_internal", "tool_calling", "chat")
_MODE_WORDS = {
    "web_search": "web search",
    "mcp_internal": "MCP session",
    "tool_calling": "tool session",
    "chat": "chat",
}
_SEALED = "encrypted_content"
"""Name of a payload that only its provider can read, in the store and on the wire."""


def session_id(uid: bytes | None) -> str | None:
    return None if uid is None else ids.write(Kind.SESSION, uid)


def turn_id(uid: bytes | None) -> str | None:
    return None if uid is None else ids.write(Kind.TURN, uid)


def event_id(uid: bytes | None) -> str | None:
    return None if uid is None else ids.write(Kind.EVENT, uid)


def session_brief(session: SessionRow) -> dict[str, Any]:
    """The session of a turn or an event."""
    return {
        "id": session_id(session.uid),
        "title": session.title,
        "source": session.source,
        "harness": session.harness,
    }


def session_hit(session: SessionRow) -> dict[str, Any]:
    """The session of a search hit."""
    return {
        **session_brief(session),
        "started_at": timestamp(session.started),
        "updated_at": timestamp(session.updated),
        "completed": session.completed,
    }


def session_full(session: SessionRow, catalog: Catalog) -> dict[str, Any]:
    """A session with all its metadata, none of its content."""
    return {
        "id": session_id(session.uid),
        "title": session.title,
        "display_label": display_label(session, catalog),
        "source": session.source,
        "harness": session.harness,
        "started_at": timestamp(session.started),
        "updated_at": timestamp(session.updated),
        "completed": session.completed,
        "turn_count": session.turn_count,
        "event_count": session.event_count,
        "mode": session.mode,
        "session_slug": _cut(session.slug, SLUG),
        "session_summary": _cut(session.summary, SUMMARY),
    }


def display_label(session: SessionRow, catalog: Catalog) -> str:
    """Specification, "list_sessions": title, first Codex prompt, summary, slug, else what is known (ruling 28)."""
    if session.title and session.title.strip():
        return session.title
    label = calls.first_line(session.label or "", LABEL)
    recorded = label or _cut(session.summary, SUMMARY) or _cut(session.slug, SLUG)
    if recorded:
        return recorded
    updated = timestamp(session.updated)[:-1].replace("T", " ")
    turns = f"{session.turn_count} turn" + ("" if session.turn_count == 1 else "s")
    return f"{catalog.title(session.harness)}, {_MODE_WORDS.get(session.mode, session.mode)}, {updated}, {turns}"


def turn_brief(turn: TurnRow) -> dict[str, Any]:
    """The turn of an event."""
    return {"id": turn_id(turn.uid), "ordinal": turn.ordinal, "completed": turn.ends is not None}


def turn_core(turn: TurnRow) -> dict[str, Any]:
    """A turn with its metadata."""
    return {
        **turn_brief(turn),
        "terminal_event_id": event_id(turn.terminal_uid),
        "event_count": turn.event_count,
        "started_at": timestamp(turn.started),
        "updated_at": timestamp(turn.updated),
    }


def turn_text(turn: TurnRow) -> dict[str, Any]:
    """What happened in a turn, in short."""
    return {
        "user_input": _preview(turn.user_input),
        "final_response": _preview(turn.final_response),
        "tools_called": list(turn.tools),
        "event_types": [str(kind) for kind in turn.types if kind is not EventType.UNKNOWN],
    }


def turn_summary(turn: TurnRow) -> dict[str, Any]:
    """A turn in the page of a session."""
    opens = {"turn_id": turn_id(turn.uid), "terminal_event_id": event_id(turn.terminal_uid)}
    return {**turn_core(turn), **turn_text(turn), "open": opens}


def event_summary(event: EventRow, content: Content, turn: TurnRow) -> dict[str, Any]:
    """An event in the page of a turn."""
    summary, truncated = calls.fold(_summary_text(event, content))
    return {
        "id": event_id(event.uid),
        "ordinal": event.ordinal,
        "type": str(event.type),
        "timestamp": timestamp(event.time),
        "terminal": event.uid == turn.terminal_uid,
        "tool_name": event.tool,
        "model": event.model,
        "summary": summary,
        "truncated": truncated,
    }


def event_core(event: EventRow, turn: TurnRow, session: SessionRow) -> dict[str, Any]:
    """An opened event without its content (ruling 5 for the models)."""
    return {
        "id": event_id(event.uid),
        "session_id": session_id(session.uid),
        "turn_id": turn_id(turn.uid),
        "ordinal": event.ordinal,
        "type": str(event.type),
        "timestamp": timestamp(event.time),
        "terminal": event.uid == turn.terminal_uid,
        "model": event.model,
        "originating_model": None if event.type is EventType.USER_INPUT else event.generator,
        "tool_name": event.tool,
    }


def event_content(event: EventRow, content: Content) -> dict[str, Any]:
    """The full content of an event, never cut."""
    if event.type is EventType.TOOL_CALL:
        body: dict[str, Any] = {
            "format": "tool_call",
            "tool_name": event.tool,
            "arguments": content.arguments,
            "text": calls.call_text(event.tool, content.arguments),
        }
    elif event.type is EventType.TOOL_RESPONSE:
        body = {"format": "tool_response", "tool_name": event.tool}
        if content.exit_code is not None:
            body["exit_code"] = content.exit_code
        if content.is_error is not None:
            body["is_error"] = content.is_error
        body["text"] = content.text
    else:
        form = "reasoning" if event.type is EventType.REASONING else "text"
        body = {"format": form, "text": _text(content, indent=2)}
    if _SEALED in content.extra:
        body[_SEALED] = content.extra[_SEALED]
    if content.original_tool is not None:
        body["original_tool_name"] = content.original_tool
    body["truncated"] = False
    return body


def _summary_text(event: EventRow, content: Content) -> str:
    if event.type is EventType.TOOL_CALL:
        return calls.call_summary(event.tool, content.arguments)
    if event.type is EventType.TOOL_RESPONSE:
        return content.text
    return _text(content, indent=None)


def _text(content: Content, indent: int | None) -> str:
    """The text of an event; where it has none, what was recorded instead, as JSON."""
    if content.text:
        return content.text
    recorded = content.raw
    if recorded is None:
        recorded = {name: value for name, value in content.extra.items() if name != _SEALED}
        if not recorded:
            return ENCRYPTED_PLACEHOLDER if _SEALED in content.extra else ""
    return json.dumps(recorded, ensure_ascii=False, indent=indent)


def _preview(preview: Preview | None) -> dict[str, Any] | None:
    if preview is None:
        return None
    return {"event_id": event_id(preview.event_uid), "text": preview.text, "truncated": preview.truncated}


def _cut(text: str | None, limit: int) -> str | None:
    return None if text is None else calls.fold(text, limit)[0]
