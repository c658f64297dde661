"""The reader of one conversation, or of one exported trajectory, in either generation of events.

Newer events name their `kind` and carry ids of their own. The agent's message without a call, and the tool `finish`,
end a turn.
"""

from __future__ import annotations

import re
from typing import Any

from outcrop.calls import RAW
from outcrop.harnesses.content import parsed_arguments
from outcrop.harnesses.json_values import string
from outcrop.harnesses.openhands.classic import Classic
from outcrop.harnesses.openhands.values import code_of, items, mapping, shown, time_ms
from outcrop.harnesses.toolnames import canonical
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed, Relation

_NO_TITLE = re.compile(r"Conversation [0-9a-f]{5}$")
_STATUS_ENDS = {"finished": End.FINAL, "error": End.CRASHED, "stuck": End.STOPPED}


class OpenHandsReader:
    """The `Reader` of one conversation; `native` is its id, None for an export."""

    def __init__(self, native: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._native: str | None = native or known.get("native")
        self._classic = Classic(known.get("classic"))
        self._cwd: str | None = known.get("cwd")
        self._model: str | None = known.get("model")
        self._branch: str | None = known.get("branch")
        self._calls: dict[str, list[str | None]] = dict(known.get("calls", {}))
        self._asked: bool = known.get("asked", False)
        self._ended: bool = known.get("ended", False)
        self._place: int = known.get("place", 0)
        self._zone: int | None = known.get("zone")
        self._key = ""
        self._time: int | None = None
        self._undone = False

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {
            "native": self._native, "classic": self._classic.state(), "cwd": self._cwd, "model": self._model,
            "branch": self._branch, "calls": dict(self._calls), "asked": self._asked, "ended": self._ended,
            "place": self._place, "zone": self._zone,
        }  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        if record.get("record") == "conversation":
            items = self._conversation(record)
            return Parsed("conversation", items, None if items else "names the conversation")
        event, place = record, self._place
        if record.get("record") == "event" and isinstance(record.get("event"), dict):
            event = record["event"]
            number = record.get("place")
            place = number if isinstance(number, int) else place
            self._undone = record.get("undone") is True
        self._place = place + 1
        kind = string(event, "kind")
        if not kind:
            self._classic.cwd, self._classic.branch = self._cwd, self._branch
            self._classic.model, self._classic.zone = self._model, self._zone
            return self._classic.feed(event, place)
        self._key = string(event, "id") or f"at{place}"
        self._time = time_ms(event.get("timestamp"))
        found = self._event_of(kind, event)
        if isinstance(found, str):
            return Parsed(kind, reason=found)
        return Parsed(kind, found, None if found else "says nothing")

    def _conversation(self, record: dict[str, Any]) -> list[Item]:
        self._native = self._native or string(record, "id") or None
        self._cwd = string(record, "cwd") or None
        self._model = string(record, "llm_model") or None
        self._branch = string(record, "selected_branch") or None
        zone = record.get("zone")
        self._zone = zone if isinstance(zone, int) and abs(zone) < 86400 else None
        self._key, self._time = "conversation", time_ms(record.get("created_at"))
        told = {"model": self._model, "repository": record.get("selected_repository"), "trigger": record.get("trigger")}
        found: list[Item] = []
        if any(told.values()) or self._time is not None:
            event = self._event("", EventType.SYSTEM, "")
            event.extra = {name: value for name, value in told.items() if value} or None
            found.append(event)
        if self._time is not None:
            found.append(Fact("created", self._time))
        title = string(record, "title").strip()
        if title and not _NO_TITLE.match(title):
            found.append(Fact("title.generated", title))
        if string(record, "parent"):
            found += [Fact("parent", string(record, "parent")), Fact("relation", Relation.SUBAGENT)]
        return found

    # Newer events

    def _event_of(self, kind: str, event: dict[str, Any]) -> list[Event] | str:
        if kind == "MessageEvent":
            return self._message(event)
        if kind == "ActionEvent":
            return self._action(event)
        if kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            return self._result(kind, event)
        if kind == "SystemPromptEvent":
            return [self._event("", EventType.SYSTEM, shown(event.get("system_prompt")))]
        if kind in ("Condensation", "CondensationSummaryEvent"):
            return [self._event("", EventType.COMPACTION, string(event, "summary"))]
        if kind == "CondensationRequest":
            return [self._event("", EventType.RUNTIME, "condensation requested")]
        if kind in ("PauseEvent", "InterruptEvent"):
            return [self._ending(string(event, "reason") or "paused by the user", End.INTERRUPTED)]
        if kind in ("ConversationErrorEvent", "ServerErrorEvent"):
            return [
                self._ending(": ".join(filter(None, (string(event, "code"), string(event, "detail")))), End.CRASHED)
            ]
        if kind == "ConversationStateUpdateEvent":
            status = string(event, "value")
            if string(event, "key") not in ("execution_status", "agent_status"):
                return "a state of the program, which holds its settings"
            return [self._ending(status, _STATUS_ENDS[status])] if status in _STATUS_ENDS else [
                self._event("", EventType.RUNTIME, status)
            ]  # fmt: skip
        if kind in ("TokenEvent", "StreamingDeltaEvent", "LLMCompletionLogEvent"):
            return "tokens of a message that is recorded whole"
        unknown = self._event("", EventType.UNKNOWN, "")
        unknown.raw = event
        return [unknown]

    def _message(self, event: dict[str, Any]) -> list[Event]:
        message = mapping(event.get("llm_message"))
        said = shown(message.get("content"))
        found: list[Event] = []
        if string(event, "source") == "user":
            prompt = self._event("", EventType.USER_INPUT, said)
            prompt.opens, self._asked, self._ended = True, True, False
            found.append(prompt)
        elif string(event, "source") == "agent":
            found += self._thoughts(message)
            if said.strip():
                answer = self._event("", EventType.ASSISTANT_RESPONSE, said)
                answer.ends, self._ended = End.FINAL, True
                found.append(answer)
        elif said.strip():
            found.append(self._event("", EventType.SYSTEM, said))
        injected = shown(event.get("extended_content"))
        if injected.strip():
            found.append(self._event("context", EventType.SYSTEM, injected))
        return found

    def _action(self, event: dict[str, Any]) -> list[Event]:
        call, action = mapping(event.get("tool_call")), mapping(event.get("action"))
        name = string(event, "tool_name") or string(call, "name") or string(mapping(call.get("function")), "name")
        found = self._thoughts(event)
        thought = shown(event.get("thought"))
        if thought.strip():
            found.append(self._event("thought", EventType.ASSISTANT_RESPONSE, thought))
        id = string(event, "tool_call_id") or string(call, "id")
        if id:
            tool = canonical(name) if name else None
            self._calls[id] = [tool, name if name != tool else None]
        if name == "finish" and string(action, "message").strip():
            answer = self._event("", EventType.ASSISTANT_RESPONSE, string(action, "message"))
            answer.ends, self._ended = End.FINAL, True
            return [*found, answer]
        if name == "think" and string(action, "thought").strip():
            return [*found, self._event("", EventType.REASONING, string(action, "thought"))]
        made = self._event("", EventType.TOOL_CALL, "")
        made.tool = canonical(name) if name else None
        made.original_tool = name if name and made.tool != name else None
        made.call_id = id or None
        given = call.get("arguments", mapping(call.get("function")).get("arguments"))
        if isinstance(given, str) and given.strip():
            made.arguments = parsed_arguments(given)
        else:
            made.arguments = given if isinstance(given, dict) else {
                key: value for key, value in action.items() if key != "kind" and value is not None
            }  # fmt: skip
            if isinstance(given, list):
                made.arguments = {RAW: str(given)}
        told = {"summary": event.get("summary"), "risk": event.get("security_risk")}
        made.extra = {
            key: value for key, value in told.items() if isinstance(value, str) and value != "UNKNOWN"
        } or None
        self._ended = False
        return [*found, made]

    def _thoughts(self, holder: dict[str, Any]) -> list[Event]:
        blocks = [mapping(block) for block in items(holder.get("thinking_blocks"))]
        item = mapping(holder.get("responses_reasoning_item"))
        parts = [*(string(block, "thinking") for block in blocks)]
        parts += [part if isinstance(part, str) else string(part, "text") for part in items(item.get("summary"))]
        thought = string(holder, "reasoning_content") or "\n".join(filter(None, parts))
        holders = [*blocks, item, *map(mapping, items(holder.get("reasoning_details")))]
        names = ("signature", "data", "encrypted_content")
        sealed = [one[name] for one in holders for name in names if one.get(name)]
        if not thought and not sealed:
            return []
        event = self._event("reasoning", EventType.REASONING, thought or ENCRYPTED_PLACEHOLDER)
        event.extra = {"encrypted_content": sealed} if sealed else None
        return [event]

    def _result(self, kind: str, event: dict[str, Any]) -> list[Event] | str:
        observation = mapping(event.get("observation"))
        id = string(event, "tool_call_id")
        name = string(event, "tool_name")
        if kind == "ObservationEvent" and name in ("finish", "think"):
            return "repeats what was said"
        inner = mapping(observation.get("metadata"))
        content = observation.get("content")
        said = shown(content if content is not None else observation.get("output") or observation.get("text"))
        said = said or string(event, "rejection_reason") or string(event, "error") or string(observation, "error")
        response = self._event("", EventType.TOOL_RESPONSE, said)
        response.tool, response.original_tool = self._calls.get(id) or [canonical(name) if name else None, None]
        response.call_id = id or None
        response.exit_code = code_of(observation.get("exit_code", inner.get("exit_code")))
        failed = observation.get("is_error", observation.get("error"))
        if kind != "ObservationEvent":
            response.is_error = True
        elif isinstance(failed, bool):
            response.is_error = failed or bool(response.exit_code)
        elif response.exit_code is not None:
            response.is_error = response.exit_code != 0
        response.cwd = string(inner, "working_dir") or self._cwd
        injected = shown(event.get("extended_content"))
        return [response, *([self._event("context", EventType.SYSTEM, injected)] if injected.strip() else [])]

    # What events are made with

    def _ending(self, said: str, ends: End) -> Event:
        """A record that ends a turn, unless it ended before; without a prompt there is none to end."""
        event = self._event("", EventType.RUNTIME, said)
        if self._asked and not self._ended:
            event.ends, self._ended = ends, True
        return event

    def _event(self, part: str, kind: EventType, said: str) -> Event:
        key = f"{self._key}:{part}" if part else self._key
        event = Event(key, kind, said, self._time, cwd=self._cwd, branch=self._branch)
        event.superseded = self._undone
        if kind not in (EventType.USER_INPUT, EventType.SYSTEM, EventType.RUNTIME, EventType.UNKNOWN):
            event.generator = self._model
        return event
