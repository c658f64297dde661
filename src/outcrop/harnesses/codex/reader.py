"""The reader of one rollout: finds each record's place, whose session it tells of, and hands it to its handler.

Three generations: envelopes with `type` and `payload`; bare items with one header; one document of such items. The
first header names the session for good. A header of another session proves that the records after it are copied.
"""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

from outcrop.harnesses.codex import messages, tools, turns
from outcrop.harnesses.codex.fold import Fold, Handler, some
from outcrop.harnesses.codex.records import file_name_ms, string, uuid7_ms
from outcrop.harnesses.moments import iso_ms
from outcrop.harnesses.outcomes import Outcome
from outcrop.ids import text_digest
from outcrop.model import Event, EventType, Fact, Item, Parsed, Relation

GAP = 1000
"""ms without a record that end a burst of copied history (its lines are written within some ms)."""

_NESTED = 16
"""Sessions of one line of copies that are told apart."""
_MACHINE = frozenset({"review", "compact", "memory_consolidation"})
_OWN_SIGNS = frozenset({"inter_agent_communication", "thread_settings_applied"})


class CodexReader:
    """Reads one rollout. `hint` is the thread id in the file's name, `name` the file's name."""

    def __init__(self, hint: str | None, name: str, state: dict[str, Any] | None) -> None:
        self._fold = Fold(state)
        self._hint = hint
        self._name = name

    @property
    def session(self) -> str | None:
        return self._fold.memory.native

    def state(self) -> dict[str, Any]:
        return self._fold.state()

    def feed(self, record: dict[str, Any]) -> Parsed:
        fold, m = self._fold, self._fold.memory
        kind, payload = record.get("type"), record.get("payload")
        time = iso_ms(record.get("timestamp"), UTC)
        if isinstance(payload, dict) and isinstance(kind, str):
            m.envelopes = True
            place, name = _enveloped(kind, payload)
        else:
            payload = record
            place, name = _bare(record, kind)
        handler = _HANDLERS.get(place)
        if not m.begun:
            m.begun = True
            if handler is not _meta:
                m.native = self._hint
            if time is None:
                time = file_name_ms(self._name)
        if m.copying:
            _gate(fold, place, payload, time)
        if time is not None:
            m.last = time

        copied, aborted = m.copying, m.after_abort
        outcome: Outcome
        if handler is not None:
            outcome = handler(fold, payload, time)
        elif place in _RAW_ONLY:
            fold.keep, outcome = payload, _RAW_ONLY[place]
        else:
            outcome = _NOISE.get(place)
        if aborted and place[1] != "turn_aborted":
            m.after_abort = False
        keep, fold.keep = fold.keep, None

        if outcome is None:
            outcome = [_unknown(fold, record, name, time)]
        if isinstance(outcome, str):
            return Parsed(name, reason=outcome, keep=keep)
        if copied:
            outcome = [item for item in outcome if not isinstance(item, Fact)]
            for item in outcome:
                if isinstance(item, Event):
                    item.origin = (m.origin, item.key)
        return Parsed(name, outcome, None if outcome else "adds nothing", keep)


class IndexReader:
    """Reads `session_index.jsonl`: names of threads; the newest row of an id wins, an empty name takes it back."""

    session: str | None = None

    def feed(self, record: dict[str, Any]) -> Parsed:
        native, name = record.get("id"), record.get("thread_name")
        if not isinstance(native, str) or not native:
            return Parsed("index", reason="names no thread", keep=record)
        title = name.strip() if isinstance(name, str) else ""
        return Parsed("index", [Fact("title.generated", title or None, session=native)])

    def state(self) -> dict[str, Any]:
        return {}


def _enveloped(kind: str, payload: dict[str, Any]) -> tuple[tuple[str, str | None], str]:
    """Place and census name of a record in an envelope."""
    if kind not in ("response_item", "event_msg"):
        return (kind, None), kind
    sub = payload.get("type")
    return ((kind, sub), f"{kind}/{sub}") if isinstance(sub, str) else ((kind, ""), f"{kind}/?")


def _bare(record: dict[str, Any], kind: Any) -> tuple[tuple[str, str | None], str]:
    """The same for a record without an envelope."""
    if isinstance(kind, str):
        return ("response_item", kind), f"bare/{kind}"
    if "record_type" in record:
        return ("bare", "record_type"), "bare/record_type"
    if isinstance(record.get("id"), str) and ("timestamp" in record or "instructions" in record):
        return ("session_meta", None), "bare/header"
    return ("bare", None), "bare/?"


def _gate(fold: Fold, place: tuple[str, str | None], payload: dict[str, Any], time: int | None) -> None:
    """Close the copied part at the child's first own record; until then find whose history is being copied.

    UUIDv7 turn ids tell when their turn began, and so which session of the line ran it. Without them the burst of
    copied lines ends at the first gap; with them a gap counts only in front of a prompt, which older versions write
    before the turn's own id.
    """
    m = fold.memory
    began = uuid7_ms(payload.get("turn_id"))
    if began is not None and m.created is not None:
        if began < m.created:
            m.dated = True
            m.origin = next((native for native, created in m.lineage if created <= began), m.lineage[-1][0])
            return
    elif place[0] not in _OWN_SIGNS and place[1] not in _OWN_SIGNS:
        if time is None or m.last is None or time - m.last <= GAP:
            return
        prompt = place[1] == "user_message" or (place[1] == "message" and payload.get("role") == "user")
        if m.dated and not prompt:
            return
    m.copying = False
    m.ended = True


def _meta(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    """A header: the session's own, that of a resumed run, or that of a session whose history follows."""
    m = fold.memory
    native = string(p, "id")
    if not native:
        return None
    created = iso_ms(p.get("timestamp"), UTC)
    if m.header and native != m.header:
        return _foreign(fold, native, created)
    version = string(p, "cli_version")
    facts: list[Item] = [Fact("version", version)] if version else []
    if m.header:
        return facts or "repeats the session's header"
    m.header = native
    m.native = m.native or native
    began = uuid7_ms(native)
    start = created if created is not None else time
    m.created = began if began is not None else start
    m.cwd = string(p, "cwd") or None
    git = p.get("git")
    m.branch = (string(git, "branch") if isinstance(git, dict) else "") or None
    if start is not None:
        facts.append(Fact("created", start))
    facts += _ancestry(fold, p)
    base = p.get("base_instructions")
    text = string(base, "text") if isinstance(base, dict) else string(p, "instructions")
    extra = some(p, *(name for name in p if name not in ("base_instructions", "instructions", "type")))
    return [
        fold.event(f"meta:{native}", EventType.SYSTEM, text, time if time is not None else created, extra=extra),
        *facts,
    ]


def _ancestry(fold: Fold, p: dict[str, Any]) -> list[Item]:
    """What the header tells of the session's parent and of the agent that runs it."""
    m = fold.memory
    source = p.get("source")
    subagent = source.get("subagent") if isinstance(source, dict) else None
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    spawn = spawn if isinstance(spawn, dict) else {}
    m.agent_path = string(p, "agent_path") or string(spawn, "agent_path") or None
    parent, forked = string(spawn, "parent_thread_id"), string(p, "forked_from_id")
    if not parent and (p.get("thread_source") == "subagent" or subagent is not None):
        parent = string(p, "parent_thread_id")
    found: list[Item] = []
    if parent or forked:
        m.lineage = [[parent or forked, None]]
        found = [Fact("parent", parent or forked), Fact("relation", Relation.SUBAGENT if parent else Relation.FORK)]
    names = [string(where, name) for name in ("agent_nickname", "agent_role") for where in (p, spawn)]
    agent = next(filter(None, names), subagent if isinstance(subagent, str) else "")
    if agent:
        found.append(Fact("agent", agent))
    if isinstance(subagent, str) and subagent in _MACHINE:
        found.append(Fact("machine", True))
    return found


def _foreign(fold: Fold, native: str, created: int | None) -> Outcome:
    """Another session's header: what follows is copied from there. Only a resumed old version does not declare it."""
    m = fold.memory
    declared = bool(m.lineage)
    began = uuid7_ms(native)
    line = [entry for entry in m.lineage if entry[1] is not None and entry[0] != native]
    m.lineage = [*line[: _NESTED - 1], [native, began if began is not None else created or 0]]
    m.origin = m.lineage[0][0]
    m.copying = True
    if declared:
        return "header of copied history"
    return [Fact("parent", native), Fact("relation", Relation.CONTINUATION)]


def _unknown(fold: Fold, record: dict[str, Any], name: str, time: int | None) -> Event:
    meaning = {key: value for key, value in record.items() if key not in ("timestamp", "ordinal")}
    mark = f"unknown:{text_digest(json.dumps(meaning, sort_keys=True))}"
    return fold.mark(mark, EventType.UNKNOWN, "", time, raw=record, extra={"kind": name})


_HANDLERS: dict[tuple[str, str | None], Handler] = {
    ("session_meta", None): _meta,
    **messages.HANDLERS,
    **tools.HANDLERS,
    **turns.HANDLERS,
}

_NOISE: dict[tuple[str, str | None], str] = {
    ("bare", "record_type"): "separator",
    ("token_usage_record", None): "mirrors the token counts",
    ("inter_agent_communication_metadata", None): "bookkeeping of agent messages",
} | {
    ("event_msg", name): reason
    for reason, names in {
        "announces a call": "exec_command_begin patch_apply_begin mcp_tool_call_begin web_search_begin item_started "
        "dynamic_tool_call_request image_generation_begin collab_agent_spawn_begin collab_agent_interaction_begin "
        "collab_waiting_begin collab_close_begin collab_resume_begin",
        "part of a message that follows whole": "agent_message_delta agent_reasoning_delta "
        "agent_reasoning_raw_content_delta agent_message_content_delta reasoning_content_delta "
        "agent_reasoning_section_break exec_command_output_delta plan_delta",
        "mirrors a response item": "plan_update turn_diff raw_response_item",
        "screen state": "session_configured background_event mcp_startup_update mcp_startup_complete",
    }.items()
    for name in names.split()
}

_RAW_ONLY: dict[tuple[str, str | None], str] = {
    ("response_item", "ghost_snapshot"): "snapshot of the working tree",
    ("response_item", "additional_tools"): "tool definitions",
    ("response_item", "other"): "not named by its writer",
    ("world_state", None): "state of the surroundings",
    ("retained_context", None): "context bookkeeping",
    ("security_risk_score", None): "risk score",
    ("realtime_item", None): "realtime bookkeeping",
    ("event_msg", "thread_goal_updated"): "goal bookkeeping",
    ("event_msg", "thread_settings_applied"): "settings",
    ("event_msg", "guardian_assessment"): "risk assessment",
    ("event_msg", "exec_approval_request"): "asks for approval",
    ("event_msg", "apply_patch_approval_request"): "asks for approval",
}
