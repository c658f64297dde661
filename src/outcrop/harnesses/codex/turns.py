"""The life of a turn, and what is recorded beside the conversation: settings, token counts, compactions, names.

A turn ends where the program says so; files of versions that do not say it leave that to the next prompt.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.codex.fold import SCREEN, Fold, Handler, some
from outcrop.harnesses.codex.messages import assistant
from outcrop.harnesses.codex.records import squeezed, string, usage
from outcrop.harnesses.json_values import objects
from outcrop.harnesses.outcomes import Outcome
from outcrop.ids import text_digest
from outcrop.model import Amend, End, Event, EventType, Fact, Item


def _started(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    if string(p, "turn_id"):
        fold.memory.tasks = True
        fold.name_turn(p)
    return [fold.mark("task_started", EventType.RUNTIME, "turn started", time)]


def _context(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    m = fold.memory
    fold.name_turn(p)
    m.cwd = string(p, "cwd") or m.cwd
    m.model = string(p, "model") or m.model
    extra = {name: value for name, value in p.items() if name != "turn_id" and value is not None}
    digest = text_digest(repr(extra))
    if digest == m.context:
        return "repeats the turn context"
    m.context = digest
    text = string(p, "user_instructions")
    extra.pop("user_instructions", None)
    return [fold.mark("turn_context", EventType.SYSTEM, text, time, model=m.model, extra=extra)]


def _completed(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    m = fold.memory
    m.tasks = True
    here = string(p, "turn_id") in ("", m.turn)
    items: list[Item] = []
    last = string(p, "last_agent_message")
    if last.strip() and here:
        digest = text_digest(squeezed(last))
        if m.said and m.said[1] == digest:
            if m.said[2]:
                items.append(Amend(m.said[0], {"partial": False}))
        elif f"{EventType.ASSISTANT_RESPONSE}:{digest}" not in m.counts:
            spoken = assistant(fold, SCREEN, [last], "", time)
            items += spoken if isinstance(spoken, list) else []
        m.answered = True
    error = p.get("error")
    ends = End.FINAL if m.answered or not here else End.STOPPED
    text = "turn completed"
    if not error and m.failed:
        ends = End.CRASHED
    if error:
        ends = End.CRASHED
        text = error if isinstance(error, str) else string(error, "message") if isinstance(error, dict) else text
    extra = some(p, "duration_ms", "time_to_first_token_ms", "error")
    return [*items, _end(fold, "task_complete", text, ends, p, time, extra)]


def _aborted(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    reason = string(p, "reason") or "unknown"
    ends = End.INTERRUPTED if reason == "interrupted" else End.CANCELLED
    return [_end(fold, "turn_aborted", f"turn aborted: {reason}", ends, p, time, some(p, "duration_ms"))]


def _error(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    return [_end(fold, "error", string(p, "message") or "error", End.CRASHED, p, time, some(p, "codex_error_info"))]


def _end(
    fold: Fold, name: str, text: str, ends: End, p: dict[str, Any], time: int | None, extra: dict[str, Any] | None
) -> Event:
    m = fold.memory
    event = fold.mark(name, EventType.RUNTIME, text, time, ends=ends, extra=extra)
    turn = string(p, "turn_id")
    if turn and m.turn is not None and turn != m.turn:
        event.turn = turn
    elif name == "error":
        m.failed = True
    else:
        m.ended = True
    return event


def _compacted(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    m = fold.memory
    text = string(p, "message")
    cipher = string(p, "encrypted_content")
    summaries = [one for one in objects(p.get("replacement_history")) if "compaction" in string(one, "type")]
    for one in summaries:
        cipher = cipher or string(one, "encrypted_content")
    extra = {"encrypted_content": cipher} if cipher else None
    if m.compacted:
        changes: dict[str, Any] = ({"text": text} if text else {}) | ({"extra": extra} if extra else {})
        return [Amend(m.compacted, changes)] if changes else "mirrors a compaction"
    shown = text or ("[encrypted summary omitted]" if cipher else "")
    event = fold.mark("compaction", EventType.COMPACTION, shown, time, extra=extra)
    m.compacted = event.key
    return [event]


def _tokens(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    m = fold.memory
    found = usage(p.get("info"))
    if found is None:
        return "no token counts"
    if found["usage_total"] == m.tokens:
        return "repeats the token counts"
    m.tokens = found["usage_total"]
    return [fold.mark("token_count", EventType.SYSTEM, "", time, model=m.model, extra=found)]


def _renamed(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    return [Fact("title.generated", string(p, "thread_name").strip() or None)]


def _rolled_back(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    extra = some(p, "num_turns")
    text = f"rolled back {p.get('num_turns')} turns"
    return [fold.mark("thread_rolled_back", EventType.SYSTEM, text, time, extra=extra)]


def _notice(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    name = string(p, "type")
    text = string(p, "message") or string(p, "user_facing_hint") or name.replace("_", " ")
    extra = {key: value for key, value in p.items() if key not in ("type", "message") and value is not None}
    return [fold.mark(name, EventType.RUNTIME, text, time, extra=extra or None)]


_NOTICES = (
    "stream_error",
    "warning",
    "deprecation_notice",
    "entered_review_mode",
    "undo_started",
    "undo_completed",
    "shutdown_complete",
)

HANDLERS: dict[tuple[str, str | None], Handler] = {
    ("turn_context", None): _context,
    ("compacted", None): _compacted,
    ("response_item", "compaction"): _compacted,
    ("response_item", "compaction_summary"): _compacted,
    ("response_item", "context_compaction"): _compacted,
    ("event_msg", "context_compacted"): _compacted,
    ("event_msg", "task_started"): _started,
    ("event_msg", "turn_started"): _started,
    ("event_msg", "task_complete"): _completed,
    ("event_msg", "turn_complete"): _completed,
    ("event_msg", "turn_aborted"): _aborted,
    ("event_msg", "error"): _error,
    ("event_msg", "token_count"): _tokens,
    ("event_msg", "thread_name_updated"): _renamed,
    ("event_msg", "thread_rolled_back"): _rolled_back,
    **{("event_msg", name): _notice for name in _NOTICES},
}
