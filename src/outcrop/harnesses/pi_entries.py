"""Entries of pi and its relatives that are no messages: settings, titles, summaries, tasks, exits.

What an extension keeps for itself gives no event; the entry is kept whole.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.json_values import string
from outcrop.harnesses.outcomes import Outcome
from outcrop.harnesses.pi_messages import injected, prompt, summary
from outcrop.harnesses.pi_tree import Handler, PiReader, title
from outcrop.harnesses.pi_values import content_text, rest, usage
from outcrop.ids import text_digest
from outcrop.model import End, EventType, Fact, Item

_EXITS = {"fatal": End.CRASHED, "signal": End.EXITED, "process_exit": End.EXITED}


def setting(reader: PiReader, p: dict[str, Any]) -> Outcome:
    """A changed setting or a mark: its kind and what it says."""
    values = rest(p) or {}
    told = " ".join(str(value) for value in values.values() if isinstance(value, (str, int, float)))
    text = f"{string(p, 'type').replace('_', ' ')}: {told}" if told else string(p, "type").replace("_", " ")
    return [reader.event(EventType.SYSTEM, text, extra=values or None)]


def _model(reader: PiReader, p: dict[str, Any]) -> Outcome:
    told = string(p, "modelId") or string(p, "model").rpartition("/")[2]
    if not told:
        return None
    # Roles other than the default one serve side tasks.
    if string(p, "role") in ("", "default"):
        reader.memory.model = told
    return setting(reader, p)


def _info(reader: PiReader, p: dict[str, Any]) -> Outcome:
    name = string(p, "name").strip()
    items: list[Item] = [Fact("title.user", name or None)]
    if name and reader.memory.subagent:
        items.append(Fact("agent", name))
    return items


def _title(reader: PiReader, p: dict[str, Any]) -> Outcome:
    return [title(p)] if string(p, "title").strip() else "an empty title"


def _compaction(reader: PiReader, p: dict[str, Any]) -> Outcome:
    return summary(reader, p, EventType.COMPACTION)


def _branch_summary(reader: PiReader, p: dict[str, Any]) -> Outcome:
    return summary(reader, p, EventType.SYSTEM)


def _side_call(reader: PiReader, p: dict[str, Any]) -> Outcome:
    counts = usage(p.get("usage"))
    extra = rest(p, "usage") or {}
    return [
        reader.event(
            EventType.SYSTEM,
            f"model usage: {string(p, 'purpose')}",
            model=string(p, "model") or None,
            extra=extra | ({"usage": counts} if counts else {}) or None,
        )
    ]


def _task(reader: PiReader, p: dict[str, Any]) -> Outcome:
    """The beginning of an agent's session: the instructions it got, and its task, which a prompt may spell out."""
    instructions = p.get("systemPrompt")
    if isinstance(instructions, list):
        instructions = "\n\n".join(part for part in instructions if isinstance(part, str))
    text = instructions if isinstance(instructions, str) else ""
    items: list[Item] = [reader.event(EventType.SYSTEM, text, 0, extra=rest(p, "systemPrompt", "task"))]
    agent, task = string(p, "agent"), string(p, "task")
    if agent:
        items.append(Fact("agent", agent))
    if task.strip():
        event = prompt(reader, task)
        event.key = f"{reader.base}:1"
        if event.origin is not None:
            event.origin = (event.origin[0], event.key)
        reader.memory.task = [event.key, text_digest(task.strip())]
        items.append(event)
    return items


def _custom(reader: PiReader, p: dict[str, Any]) -> Outcome:
    kind = string(p, "customType")
    if kind == "session_exit":
        return _exit(reader, p)
    if kind == "tool_execution_start":
        return "announces a call"
    reader.keep = p
    return "state of the program or of an extension"


def _exit(reader: PiReader, p: dict[str, Any]) -> Outcome:
    """The program ended: a turn that was still running ended with it."""
    data = p.get("data")
    data = data if isinstance(data, dict) else {}
    kind, m = string(data, "kind"), reader.memory
    ends = _EXITS.get(kind) or (End.EXITED if data.get("pendingToolCalls") else None)
    text = f"session exit: {string(data, 'reason') or kind or 'unknown'}"
    event = reader.event(EventType.RUNTIME, text, extra=rest(data, "recordedAt"))
    if m.open:
        event.ends = ends
        m.open = ends is None
    return [event]


def _account(reader: PiReader, p: dict[str, Any]) -> Outcome:
    return "names an account"


ENTRIES: dict[str, Handler] = {
    "model_change": _model,
    "session_info": _info,
    "title_change": _title,
    "compaction": _compaction,
    "branch_summary": _branch_summary,
    "model_usage": _side_call,
    "session_init": _task,
    "custom": _custom,
    "custom_message": injected,
    "credential_pin": _account,
    **dict.fromkeys(
        (
            "thinking_level_change",
            "service_tier_change",
            "mode_change",
            "label",
            "archive",
            "ttsr_injection",
            "mcp_tool_selection",
            "reset_boundary",
        ),
        setting,
    ),
}


# Entries that only prime-agent writes


def _agent_message(reader: PiReader, p: dict[str, Any]) -> Outcome:
    """Words between agents: those of the parent are a prompt, those of children and siblings are news."""
    if string(p, "customType") != "agent_message" or p.get("display") is False:
        return injected(reader, p)
    text = content_text(p.get("content"))
    if not text.strip():
        return injected(reader, p)
    details = p.get("details")
    if string(details, "fromRelationship") not in ("", "parent"):
        return injected(reader, p)
    return [prompt(reader, text, extra={"details": details} if details else None)]


def _hidden(reader: PiReader, p: dict[str, Any]) -> Outcome:
    reader.keep = p
    return "state of the program or of an extension"


def _state(reader: PiReader, p: dict[str, Any]) -> Outcome:
    state, m = p.get("state"), reader.memory
    status = string(state, "status")
    if not status:
        return None
    event = reader.event(EventType.SYSTEM, f"session {status}", extra=rest(p))
    if status == "crash":
        event.type, event.text = EventType.RUNTIME, "session crashed"
        event.ends = End.CRASHED if m.open else None
        m.open = False
    return [event]


def _status(reader: PiReader, p: dict[str, Any]) -> Outcome:
    if not isinstance(p.get("status"), dict):
        return None
    return [reader.event(EventType.SYSTEM, string(p["status"], "summary"), extra=rest(p))]


def _git(reader: PiReader, p: dict[str, Any]) -> Outcome:
    git = p.get("git")
    if not isinstance(git, dict):
        return None
    reader.memory.branch = string(git, "branch") or None
    text = f"branch {string(git, 'branch')} at {string(git, 'commit')}"
    return [reader.event(EventType.SYSTEM, text, extra=rest(p))]


def _child_usage(reader: PiReader, p: dict[str, Any]) -> Outcome:
    """Tokens that a child's own file holds too: kept under names that nobody adds up."""
    extra = {"child_usage": usage(p.get("childUsage")), "with_children": usage(p.get("aggregateUsage"))}
    return [
        reader.event(
            EventType.SYSTEM, "usage of a child", extra=(rest(p, "childUsage", "aggregateUsage") or {}) | extra
        )
    ]


PRIME_ENTRIES: dict[str, Handler] = {
    **ENTRIES,
    "custom_message": _agent_message,
    "session_state": _state,
    "agent_status": _status,
    "git_state": _git,
    "child_usage_attributed": _child_usage,
}
PRIME_ROLES: dict[str, Handler] = {"custom": _hidden}
