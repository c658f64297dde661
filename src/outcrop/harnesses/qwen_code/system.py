"""Records that Qwen Code writes for itself: settings, titles, commands, compressions, ends of turns, and its own state.

What only mirrors other records gives no event; what nothing else holds is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from outcrop.harnesses.google_parts import is_snapshot, text_of
from outcrop.harnesses.json_values import objects, rest, some, string, strings
from outcrop.harnesses.outcomes import Outcome
from outcrop.harnesses.qwen_code.reader import Handler, QwenReader
from outcrop.ids import text_digest
from outcrop.model import End, EventType, Fact, Item, Relation

_HEAD = 3
"""Contents at the beginning of compressed history among which its summary stands."""
_ENDS = {"error": End.CRASHED, "cancelled": End.CANCELLED}


def _title(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    title = string(p, "customTitle").strip()
    name = "title.generated" if p.get("titleSource") == "auto" else "title.user"
    if not title:
        return "an empty title" if "customTitle" in p else None
    told = f"{name}:{text_digest(title)}"
    before = reader.memory.title
    if reader.origin is not None:
        return "title of the parent session"
    if told == before:
        return "repeats the title"
    reader.memory.title = told
    # The latest one counts, whoever gave it.
    taken_back: list[Item] = (
        [Fact("title.user", None)] if before.startswith("title.user") and name not in before else []
    )
    return [*taken_back, Fact(name, title)]


def _compression(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    """The summary alone: the rest of the new history repeats what stands in the file."""
    heads = objects(p.get("compressedHistory"))[:_HEAD]
    summary = next((text for text in map(text_of, heads) if is_snapshot(text)), "")
    if not summary:
        reader.keep = some(p, "compressedHistory", "notes") or None
    return [reader.event(EventType.COMPACTION, summary, extra=some(p, "info") or None)]


def _rewind(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    target = string(reader.record, "parentUuid") or string(p, "targetUuid")
    items: list[Item] = list(reader.rewind(target))
    return [reader.event(EventType.SYSTEM, "rewound the conversation", extra=rest(p) or None), *items]


def _command(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    command = string(p, "rawCommand")
    if string(p, "phase") != "result":
        return [reader.event(EventType.SYSTEM, command, extra=some(p, "phase", "sentToModel") or None)]
    shown = [string(item, "text") for item in objects(p.get("outputHistoryItems"))]
    reader.keep = some(p, "outputHistoryItems") or None
    extra = {"command": command} | some(p, "phase")
    return [reader.event(EventType.SYSTEM, "\n".join(filter(None, shown)), extra=extra)]


def _references(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    extra = {"paths": strings(p.get("filesRead"))} | some(p, "status", "message")
    return [reader.event(EventType.SYSTEM, string(p, "userText"), extra=extra)]


def _parent(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    parent = string(p, "parentSessionId")
    if not parent or parent == reader.memory.native:
        return None
    reader.memory.parent = parent
    return [Fact("parent", parent), Fact("relation", Relation.SUBAGENT)]


def _model(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    model = string(p, "modelId")
    if not model:
        return None
    return [reader.event(EventType.SYSTEM, f"model: {model}", model=model)]


def _launch(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    """The task of an agent, which its first prompt says as well."""
    text = string(p, "displayText")
    m = reader.memory
    if not text.strip():
        return None
    if m.task == text_digest(text.strip()):
        return "repeats the prompt"
    if m.task is None:
        return [reader.said(text)]
    return [reader.event(EventType.SYSTEM, text)]


def _ended(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    state, error = string(p, "state"), p.get("error")
    ends = End.CRASHED if error else _ENDS.get(state, End.FINAL)
    said = error if isinstance(error, str) else string(error, "message")
    extra = rest(p, "prompt", "result", "promptText", "resultText", "error") | some({"error": error}, "error")
    reader.memory.idle = True
    return [reader.event(EventType.RUNTIME, said or f"turn {state or 'completed'}", ends=ends, extra=extra or None)]


def _telemetry(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    """An echo of what other records say, but for requests that failed."""
    told = p.get("uiEvent")
    error = string(told, "error_message")
    if not error or not isinstance(told, dict):
        return "echoes other records"
    return [
        reader.event(EventType.RUNTIME, error, extra=some(told, "event.name", "error_type", "status_code", "model"))
    ]


def _setting(reader: QwenReader, p: dict[str, Any]) -> Outcome:
    values = rest(p)
    told = " ".join(str(value) for value in values.values() if isinstance(value, (str, int, float)))
    name = string(reader.record, "subtype").replace("_", " ")
    return [reader.event(EventType.SYSTEM, f"{name}: {told}" if told else name, extra=values or None)]


def _without(reason: str, kept: bool) -> Callable[[QwenReader, dict[str, Any]], Outcome]:
    def handler(reader: QwenReader, p: dict[str, Any]) -> Outcome:
        reader.keep = (p or None) if kept else None
        return reason

    return handler


_STATE = _without("state of the program", True)

SUBTYPES: dict[str, Handler] = {
    "custom_title": _title,
    "chat_compression": _compression,
    "rewind": _rewind,
    "slash_command": _command,
    "at_command": _references,
    "parent_session": _parent,
    "session_model": _model,
    "agent_launch_prompt": _launch,
    "turn_result": _ended,
    "ui_telemetry": _telemetry,
    "agent_bootstrap": _without("history of the parent session", False),
    **dict.fromkeys(
        (
            "session_source",
            "session_approval_mode",
            "goal_state",
            "goal_runtime",
            "goal_turn_end",
            "background_task_completed",
            "realtime_message",
        ),
        _setting,
    ),
    **dict.fromkeys(
        (
            "file_history_snapshot",
            "attribution_snapshot",
            "session_artifact_event",
            "session_artifact_snapshot",
            "session_sources_snapshot",
            "session_execution_engine",
            "branch_checkpoint",
            "user_text_elements",
            "session_notes",
            "agent_retry",
            "agent_session_ready",
            "omni_recall",
            "managed_session_header_v1",
            "managed_session_event_v1",
            "managed_session_commit_v1",
        ),
        _STATE,
    ),
}
"""Subtype of a `system` record → what becomes of it."""
