"""A session of Droid: a header, then messages whose blocks are those of Anthropic's interface, and records of state.

Captured output of a run without a screen (`stream-json`) says the same in records of its own: a text, a call, a
result, and the final answer at the end. Both are read here; they do not mix in one file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses import SourceFile
from outcrop.harnesses.content import content_text
from outcrop.harnesses.json_values import arguments, bound, digest, object_of, rest, shown, some, string, whole_number
from outcrop.harnesses.memory import kept, recalled
from outcrop.harnesses.moments import time_ms
from outcrop.harnesses.outcomes import GENERATED, Outcome
from outcrop.harnesses.toolnames import canonical
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed, Relation

CAP = 64
"""Entries of any one memory."""


_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_EXIT = re.compile(r"Error: Command failed \(exit code: (-?\d{1,9})\)")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_ENVELOPE = ("type", "id", "parentId", "timestamp", "session_id", "sessionId")
_PASSING = ("timestamp", "cwd", "parentId")
_REASONS = {
    "completed": End.FINAL,
    "success": End.FINAL,
    "cancelled": End.CANCELLED,
    "aborted": End.CANCELLED,
    "interrupted": End.INTERRUPTED,
    "error": End.CRASHED,
    "failed": End.CRASHED,
}
_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


@dataclass(slots=True)
class Memory:
    """All that the next record may need.

    `turn` is the key of the running turn's prompt, `busy` says that it has not come to an end; `calls` maps call ids
    to [tool, original spelling]; `made` counts events by the name of their record.
    """

    native: str | None = None
    begun: bool = False
    cwd: str | None = None
    model: str | None = None
    turn: str | None = None
    busy: bool = False
    calls: dict[str, list[Any]] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)


class DroidReader:
    """The `Reader` of a session, or of the captured output of a run."""

    def __init__(self, file: SourceFile, state: dict[str, Any] | None) -> None:
        self.memory = recalled(Memory, state)
        self._file = file
        self._time: int | None = None
        self._base = ""

    @property
    def session(self) -> str | None:
        return self.memory.native

    def state(self) -> dict[str, Any]:
        return kept(self.memory)

    def feed(self, record: dict[str, Any]) -> Parsed:
        m = self.memory
        kind = string(record, "type")
        self._time = time_ms(record.get("timestamp"))
        if m.native is None:
            named = string(record, "id") if kind == "session_start" else ""
            said = named or string(record, "sessionId") or string(record, "session_id")
            m.native = said or self._file.native
        handler = _HANDLERS.get(kind)
        # A call of a stream and its result bear one id.
        self._base = f"result:{string(record, 'id')}" if kind == "tool_result" else string(record, "id")
        if not string(record, "id"):
            self._base = f"{text_digest(m.turn or '')}/{digest(rest(record, *_PASSING))}"
        found = handler(self, record) if handler is not None else None
        if found is None:
            found = [self.event(EventType.UNKNOWN, raw=record)]
        message = record.get("message")
        name = f"message/{string(message, 'role') or '?'}" if kind == "message" and "message" in record else kind or "?"
        return Parsed(name, reason=found) if isinstance(found, str) else Parsed(name, found)

    # Sessions

    def header(self, p: dict[str, Any]) -> Outcome:
        m = self.memory
        if m.begun:
            return "repeats the session's header"
        m.begun = True
        m.cwd = string(p, "cwd") or None
        caller, forked = string(p, "callingSessionId"), string(p, "parent")
        items: list[Item] = []
        extra = rest(p, *_ENVELOPE, "title", "sessionTitle", "cwd", "owner", "hostId", "parent")
        items.append(self.event(EventType.SYSTEM, extra=extra or None))
        title = string(p, "sessionTitle").strip() or string(p, "title").strip()
        if title:
            items.append(Fact("title.generated", title))
        if string(p, "version"):
            items.append(Fact("version", string(p, "version")))
        parent = caller or forked
        if parent and parent != m.native:
            relation = Relation.SUBAGENT if caller else Relation.FORK
            items += [Fact("parent", parent), Fact("relation", relation)]
        return items

    # Messages

    def message(self, p: dict[str, Any]) -> Outcome:
        if "message" not in p and ("text" in p or "role" in p):
            return self._streamed(p)
        message = p.get("message")
        role, content = string(message, "role"), message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(content, (str, list)):
            return None
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if string(message, "hookEventName"):
            extra = rest(message, "role", "content")
            text = content_text(content) or f"hook {string(message, 'hookEventName')}"
            return [self.event(EventType.RUNTIME, text, extra=extra)]
        if role == "assistant":
            return self._assistant(message, blocks)
        if role not in ("user", "system", "tool"):
            return None
        injected = role == "system" or string(message, "visibility") in ("llm_only", "user_only")
        items: list[Item] = []
        for block in blocks:
            items += self._user(block, message, injected)
        return items or "an empty message"

    def _user(self, block: Any, message: dict[str, Any], injected: bool) -> list[Item]:
        kind = string(block, "type")
        if kind == "tool_result":
            return [self._result(block)]
        if kind not in ("text", "image", "document") or not isinstance(block, dict):
            return [self.event(EventType.UNKNOWN, raw=block)]
        text = content_text([block])
        if injected:
            return [self.event(EventType.SYSTEM, text)] if text.strip() else []
        items: list[Item] = []
        reminders = _REMINDER.findall(text) if "<system-reminder>" in text else []
        typed = _REMINDER.sub("", text) if reminders else text
        if typed.strip():
            items.append(self._said(typed, some(message, "userMessageSource") or None))
        return items + [self.event(EventType.SYSTEM, reminder.strip()) for reminder in reminders]

    def _said(self, text: str, extra: dict[str, Any] | None = None) -> Event:
        """A user input. Further blocks of one message belong to the turn that its first one opened."""
        m = self.memory
        event = self.event(EventType.USER_INPUT, text, extra=extra)
        event.opens = m.turn is None or not m.turn.startswith(f"{self._base}:")
        if event.opens:
            event.turn = m.turn = event.key
        m.busy = True
        return event

    def _assistant(self, message: dict[str, Any], blocks: list[Any]) -> Outcome:
        m = self.memory
        model = string(message, "modelId") or None
        m.model = model or m.model
        items: list[Item] = []
        sealed, summary = string(message, "openaiEncryptedContent"), string(message, "openaiReasoningSummary")
        if sealed or summary:
            extra = {"encrypted_content": sealed} if sealed else None
            items.append(self.event(EventType.REASONING, summary or ENCRYPTED_PLACEHOLDER, extra=extra))
        for block in blocks:
            items += self._block(block)
        made = [item for item in items if isinstance(item, Event)]
        for event in made:
            event.model = model
        answers = [event for event in made if event.type is EventType.ASSISTANT_RESPONSE]
        if answers and not any(event.type is EventType.TOOL_CALL for event in made):
            answers[-1].ends, m.busy = End.FINAL, False
        else:
            m.busy = True
        return items or "an empty message"

    def _block(self, block: Any) -> list[Item]:
        kind = string(block, "type")
        if kind in ("text", "image", "document"):
            text = content_text([block])
            return [self.event(EventType.ASSISTANT_RESPONSE, text)] if text.strip() else []
        if kind == "thinking":
            text, sealed = string(block, "thinking"), string(block, "signature")
            if not (text.strip() or sealed):
                return []
            extra = {"encrypted_content": sealed} if sealed else None
            return [self.event(EventType.REASONING, text if text.strip() else ENCRYPTED_PLACEHOLDER, extra=extra)]
        if kind == "redacted_thinking":
            extra = {"encrypted_content": block.get("data")}
            return [self.event(EventType.REASONING, ENCRYPTED_PLACEHOLDER, extra=extra)]
        if kind == "tool_use":
            return [self._call(string(block, "name"), string(block, "id"), block.get("input", {}))]
        if kind == "tool_result":
            return [self._result(block)]
        return [self.event(EventType.UNKNOWN, raw=block)]

    # Tools

    def _call(self, name: str, call: str, given: Any) -> Event:
        event = self.event(EventType.TOOL_CALL)
        event.tool = canonical(name) or None
        event.original_tool = name if event.tool != name and name else None
        event.arguments, event.call_id = arguments(given), call or None
        self.memory.calls[call] = [event.tool, event.original_tool]
        bound(self.memory.calls, CAP)
        self.memory.busy = True
        return event

    def _result(self, block: dict[str, Any]) -> Event:
        text = content_text(block.get("content"))
        failed = block.get("is_error")
        return self._answer(string(block, "tool_use_id"), text, failed if isinstance(failed, bool) else None, None, "")

    def _answer(self, call: str, text: str, failed: bool | None, code: int | None, name: str) -> Event:
        event = self.event(EventType.TOOL_RESPONSE, text)
        event.tool, event.original_tool = self.memory.calls.pop(call, None) or [canonical(name) or None, None]
        event.call_id = call or None
        found = _EXIT.match(text)
        event.exit_code = int(found[1]) if found and code is None else code
        event.is_error = True if found else event.exit_code != 0 if failed is None and code is not None else failed
        return event

    # State

    def compaction(self, p: dict[str, Any]) -> Outcome:
        extra = rest(p, *_ENVELOPE, "summaryText", "systemInfo")
        return [self.event(EventType.COMPACTION, string(p, "summaryText"), extra=extra or None)]

    def todo(self, p: dict[str, Any]) -> Outcome:
        return [self.event(EventType.SYSTEM, "todo list", extra=rest(p, *_ENVELOPE) or None)]

    def outcome(self, p: dict[str, Any]) -> Outcome:
        reason = string(p, "reason")
        ends = _REASONS.get(reason) if self.memory.busy or reason not in ("completed", "success") else End.FINAL
        self.memory.busy = self.memory.busy and ends is None
        extra = rest(p, *_ENVELOPE) or None
        return [self.event(EventType.RUNTIME, f"turn {reason or 'ended'}", ends=ends, extra=extra)]

    # Captured output

    def _streamed(self, p: dict[str, Any]) -> Outcome:
        role, text = string(p, "role"), string(p, "text")
        if role not in ("user", "assistant") or not isinstance(p.get("text", ""), str):
            return None
        if role == "user":
            return self._user({"type": "text", "text": text}, {}, False) or "an empty message"
        self.memory.busy = True
        return [self.event(EventType.ASSISTANT_RESPONSE, text)] if text.strip() else "an empty message"

    def started(self, p: dict[str, Any]) -> Outcome:
        m = self.memory
        m.cwd, m.model = string(p, "cwd") or m.cwd, string(p, "model") or m.model
        return [self.event(EventType.SYSTEM, model=m.model, extra=rest(p, *_ENVELOPE, "cwd", "model") or None)]

    def called(self, p: dict[str, Any]) -> Outcome:
        name = string(p, "toolName") or string(p, "toolId")
        call = string(p, "toolCallId") or string(p, "id")
        return [self._call(name, call, p.get("parameters", {}))] if name or call else None

    def answered(self, p: dict[str, Any]) -> Outcome:
        if "value" not in p and "error" not in p:
            return None
        value = p.get("value", p.get("error"))
        text = shown(value)
        if isinstance(value, dict):
            said = [value[name] for name in ("stdout", "stderr") if isinstance(value.get(name), str)]
            text = "\n".join(filter(None, said)) if said else text
        failed = p.get("isError")
        code = whole_number(value.get("exitCode")) if isinstance(value, dict) else None
        call = string(p, "toolCallId") or string(p, "id")
        name = string(p, "toolName") or string(p, "toolId")
        return [self._answer(call, text, failed if isinstance(failed, bool) else None, code, name)]

    def completed(self, p: dict[str, Any]) -> Outcome:
        text = string(p, "finalText")
        counts = object_of(p, "usage")
        told = {new: counts[old] for new, old in _COUNTS.items() if type(counts.get(old)) is int}
        extra = {"usage": told} if any(told.values()) else None
        self.memory.busy = False
        kind = EventType.ASSISTANT_RESPONSE if text.strip() else EventType.RUNTIME
        return [self.event(kind, text if text.strip() else "turn completed", ends=End.FINAL, extra=extra)]

    def failed(self, p: dict[str, Any]) -> Outcome:
        text = string(p, "message") or string(p, "error") or "error"
        ends = End.CRASHED if self.memory.busy else None
        self.memory.busy = False
        return [self.event(EventType.RUNTIME, text, ends=ends, extra=some(p, "source") or None)]

    # Events

    def event(self, kind: EventType, text: str = "", **more: Any) -> Event:
        m = self.memory
        number = m.made.pop(self._base, 0)
        m.made[self._base] = number + 1
        bound(m.made, CAP)
        key = f"{self._base}:{number}"
        # A fork copies messages with their ids, which are unique where they are random.
        origin = (None, key) if _UUID.fullmatch(self._base) else None
        event = Event(key, kind, text, self._time, origin=origin, turn=m.turn, cwd=m.cwd, **more)
        if kind in GENERATED:
            event.generator = m.model
        return event


_HANDLERS: dict[str, Callable[[DroidReader, dict[str, Any]], Outcome]] = {
    "session_start": DroidReader.header,
    "message": DroidReader.message,
    "compaction_state": DroidReader.compaction,
    "todo_state": DroidReader.todo,
    "agent_turn_outcome": DroidReader.outcome,
    "system": DroidReader.started,
    "tool_call": DroidReader.called,
    "tool_result": DroidReader.answered,
    "completion": DroidReader.completed,
    "error": DroidReader.failed,
}
