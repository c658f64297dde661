"""A session of Qwen Code: records with uuids, each naming the one before it, in the order in which they were written.

Several records may share a uuid, their parts written apart, so an event is named by the uuid and its number under it.
A branched session begins with its parent's records under their own uuids, each marked. A rewind goes on from an
earlier record in the same file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses import Side, SourceFile
from outcrop.harnesses.google_parts import (
    exit_code,
    media,
    part_text,
    parts_of,
    prompt,
    response_text,
    usage,
)
from outcrop.harnesses.json_values import arguments, bound, digest, object_of, rest, some, string
from outcrop.harnesses.memory import kept, recalled
from outcrop.harnesses.moments import time_ms
from outcrop.harnesses.outcomes import GENERATED, Outcome
from outcrop.harnesses.toolnames import canonical
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Fact, Item, Parsed, Relation

AGENT = "agent"
CAP = 64
"""Entries of any one memory."""
TURNS = 32
"""Turns that a rewind can go back to."""
META_LIMIT = 64 * 1024


_MACHINE = frozenset({"notification", "cron", "goal_control", "goal_runtime", "goal_state"})
"""Subtypes and provenances of what the program tells the model in the user's place."""
_TYPED = frozenset({"", "mid_turn_user_message", "agent_launch_prompt"})
_PASSING = ("timestamp", "cwd", "gitBranch", "version", "parentUuid")
_FAILED = frozenset({"error", "cancelled"})


@dataclass(slots=True)
class Memory:
    """All that the next record may need.

    `turn` is the key of the running turn's prompt, `opener` its uuid; `openers` maps uuids of prompts to [turn, key of
    the latest final answer], `tails` uuids of the records before a prompt to the opener of their turn. `made` counts
    events by uuid; `calls` maps call ids to [tool, original spelling]. `idle` says that the agent waits for a prompt;
    `task` is what the first prompt of an agent says.
    """

    native: str | None = None
    begun: bool = False
    parent: str | None = None
    version: str | None = None
    model: str | None = None
    turn: str | None = None
    opener: str = ""
    last: str = ""
    idle: bool = True
    task: str | None = None
    counted: str = ""
    title: str = ""
    made: dict[str, int] = field(default_factory=dict)
    openers: dict[str, list[str]] = field(default_factory=dict)
    tails: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[Any]] = field(default_factory=dict)


class QwenReader:
    """Reads one session. `subtypes` says what becomes of the program's own records."""

    def __init__(
        self, file: SourceFile, state: dict[str, Any] | None, side: Side, subtypes: Mapping[str, Handler]
    ) -> None:
        self.memory = recalled(Memory, state)
        self.keep: Any = None
        """What the present record holds that no event does."""
        self.record: dict[str, Any] = {}
        self._file = file
        self._side = side
        self._subtypes = subtypes
        self._time: int | None = None
        self.origin: str | None = None
        """The session that the present record was copied from."""

    @property
    def session(self) -> str | None:
        return self.memory.native

    def state(self) -> dict[str, Any]:
        return kept(self.memory)

    def feed(self, record: dict[str, Any]) -> Parsed:
        m = self.memory
        kind, subtype = string(record, "type") or "?", string(record, "subtype")
        name = f"{kind}/{subtype}" if subtype else kind
        self.record, self.keep = record, None
        self._time = time_ms(record.get("timestamp"))
        facts = self._identify(record)
        found = self._read(record, kind, subtype)
        if found is None:
            found = [self.event(EventType.UNKNOWN, raw=record, extra={"kind": name})]
        m.last = string(record, "uuid") or m.last
        if isinstance(found, str):
            return Parsed(name, facts, found, self.keep)
        if self.origin is not None:
            found = [item for item in found if not isinstance(item, Fact)]
        items = [*facts, *found]
        return Parsed(name, items, None if items else "copied from the parent session", self.keep)

    def _read(self, record: dict[str, Any], kind: str, subtype: str) -> Outcome:
        if kind == "user":
            return self._user(record, subtype)
        if kind == "assistant":
            return self._assistant(record)
        if kind == "tool_result":
            parts = parts_of(record.get("message"))
            return self._results(record, parts) or ("an empty result" if "message" in record else None)
        handler = self._subtypes.get(subtype) if kind == "system" else None
        return handler(self, object_of(record, "systemPayload")) if handler is not None else None

    # Whose record it is

    def _identify(self, record: dict[str, Any]) -> list[Item]:
        m = self.memory
        items: list[Item] = []
        said, agent = string(record, "sessionId"), string(record, "agentId")
        if m.native is None:
            m.native = self._file.native if self._file.role == AGENT else said or self._file.native
            if self._file.role != AGENT and record.get("isSidechain") is True and agent and said:
                m.native, m.parent = f"{said}/agent-{agent}", said
        if not m.begun and (self._file.role == AGENT or m.parent is not None):
            items += self._child(record, m.parent or self._file.parent or said)
        m.begun = True
        fork = object_of(record, "forkedFrom")
        self.origin = None
        if string(fork, "sessionId") not in ("", m.native):
            self.origin = string(fork, "sessionId")
            if m.parent is None:
                m.parent = self.origin
                items += [Fact("parent", self.origin), Fact("relation", Relation.FORK)]
        version = string(record, "version")
        if version and version != m.version:
            m.version = version
            items.append(Fact("version", version))
        return items

    def _child(self, record: dict[str, Any], parent: str) -> list[Item]:
        """An agent's facts, which its first record and the file beside it tell."""
        path = self._file.path.removesuffix(".jsonl") + ".meta.json"
        try:
            told = json.loads(self._side.text(path, os.path.dirname(path), META_LIMIT) or "{}")
        except (ValueError, RecursionError):
            told = {}
        above = string(told, "parentAgentId")
        self.memory.parent = f"{parent}/agent-{above}" if above else parent
        items: list[Item] = [Fact("parent", self.memory.parent), Fact("relation", Relation.SUBAGENT)]
        name = string(told, "agentType") or string(record, "agentName")
        if name:
            items.append(Fact("agent", name))
        if string(told, "description"):
            items.append(Fact("title.generated", string(told, "description")))
        return items

    # What a person said, and what the program said in the user's place

    def _user(self, record: dict[str, Any], subtype: str) -> Outcome:
        m = self.memory
        parts = parts_of(record.get("message"))
        items = self._results(record, parts)
        typed, added = prompt(parts)
        payload = object_of(record, "systemPayload")
        said = string(payload, "displayText")
        said = said if said.strip() else ""
        machine = {subtype, string(record, "provenance"), string(record, "externalInputKind")} & _MACHINE
        if machine:
            return items + self._notice(record, subtype, said or typed, added, payload)
        if subtype not in _TYPED:
            return items or None
        if not (said or typed):
            items += [self.event(EventType.SYSTEM, text) for text in added]
            return items or ("an empty message" if isinstance(record.get("message"), dict) else None)
        steers = subtype == "mid_turn_user_message" or (string(record, "externalInputKind") != "" and not m.idle)
        items.append(self.said(said or typed, not steers))
        if said and typed.strip() and typed.strip() != said.strip():
            added.insert(0, typed)  # what the model got in place of what was typed
        return items + [self.event(EventType.SYSTEM, text) for text in added]

    def said(self, text: str, opens: bool = True) -> Event:
        """A user input: it opens a turn, or belongs to the one that runs."""
        m = self.memory
        event = self.event(EventType.USER_INPUT, text)
        event.opens = opens or m.turn is None
        if event.opens:
            self._enter(event.key)
            event.turn = event.key
        m.idle, m.task = False, m.task or text_digest(text.strip())
        return event

    def _enter(self, turn: str) -> None:
        m = self.memory
        if m.opener and m.last:
            m.tails[m.last] = m.opener
            bound(m.tails, TURNS)
        m.turn, m.opener = turn, string(self.record, "uuid") or turn
        m.openers[m.opener] = [turn, ""]
        bound(m.openers, TURNS)

    def _notice(
        self, record: dict[str, Any], subtype: str, text: str, added: list[str], payload: dict[str, Any]
    ) -> list[Item]:
        """What the program told the model; it may be all that a turn begins with."""
        m = self.memory
        event = self.event(EventType.SYSTEM, text or "\n".join(added))
        event.extra = some(payload, "backgroundTask") | some(record, "provenance", "goalContext") or None
        if record.get("deliveredTurn") is True or subtype == "cron":
            self._enter(event.key)
            event.turn, m.idle = event.key, False
        return [event]

    # What the model said

    def _assistant(self, record: dict[str, Any]) -> Outcome:
        m = self.memory
        message = record.get("message")
        if not isinstance(message, dict):
            return None
        m.model = string(record, "model") or m.model
        items = [event for part in parts_of(message) if (event := self._part(part)) is not None]
        for event in items:
            event.model = string(record, "model") or None
        self._count(record, items)
        if not items:
            return "an empty message"
        calling = any(event.type is EventType.TOOL_CALL for event in items)
        answers = [event for event in items if event.type is EventType.ASSISTANT_RESPONSE]
        m.idle = bool(answers) and not calling
        if m.idle:
            answers[-1].ends = End.FINAL
            if m.opener in m.openers:
                m.openers[m.opener][1] = answers[-1].key
        return list(items)

    def _count(self, record: dict[str, Any], items: list[Event]) -> None:
        """Token counts stand on the first event of a message, once for records that share a uuid."""
        m = self.memory
        counts, uuid = usage(record.get("usageMetadata")), string(record, "uuid")
        if not counts or not items or (uuid and uuid == m.counted):
            return
        m.counted = uuid
        items[0].extra = {**(items[0].extra or {}), "usage": counts}

    def _part(self, part: dict[str, Any]) -> Event | None:
        sealed = string(part, "thoughtSignature")
        extra = {"encrypted_content": sealed} if sealed else None
        call = part.get("functionCall")
        if isinstance(call, dict):
            return self._call(call, extra)
        text = part_text(part)
        if part.get("thought") is True:
            shown = text if text.strip() else ENCRYPTED_PLACEHOLDER if sealed else ""
            return self.event(EventType.REASONING, shown, extra=extra) if shown else None
        if text.strip():
            return self.event(EventType.ASSISTANT_RESPONSE, text, extra=extra)
        if sealed:
            return self.event(EventType.REASONING, ENCRYPTED_PLACEHOLDER, extra=extra)
        if isinstance(part.get("text"), str) or not part:
            return None
        return self.event(EventType.UNKNOWN, raw=part)

    def _call(self, call: dict[str, Any], extra: dict[str, Any] | None) -> Event:
        name = string(call, "name")
        event = self.event(EventType.TOOL_CALL, extra=extra)
        event.tool = canonical(name)
        event.original_tool = name if event.tool != name else None
        event.arguments = arguments(call.get("args", {}))
        event.call_id = string(call, "id") or None
        # Where calls have no ids a result is known by its tool's name.
        self.memory.calls[event.call_id or name] = [event.tool, event.original_tool]
        bound(self.memory.calls, CAP)
        return event

    # What tools answered

    def _results(self, record: dict[str, Any], parts: list[dict[str, Any]]) -> list[Item]:
        told = object_of(record, "toolCallResult")
        answers = [part["functionResponse"] for part in parts if isinstance(part.get("functionResponse"), dict)]
        beside = "\n".join(filter(None, (part_text(part) for part in parts if "functionResponse" not in part)))
        if not answers and string(record, "type") == "tool_result" and (told or beside):
            answers = [{}]
        items: list[Item] = []
        for answer in answers:
            text = "\n".join(filter(None, (response_text(answer.get("response")), media(answer))))
            if string(record, "type") == "tool_result" and len(answers) == 1:
                text = "\n".join(filter(None, (text, beside)))
            items.append(self._result(answer, told, text, len(answers) == 1))
        return items

    def _result(self, answer: dict[str, Any], told: dict[str, Any], text: str, alone: bool) -> Event:
        m = self.memory
        name, own = string(answer, "name"), string(answer, "id")
        call = (string(told, "callId") or own) if alone else (own or string(told, "callId"))
        entry = m.calls.pop(call, None) or m.calls.pop(name, None) or [canonical(name) or None, None]
        display = told.get("resultDisplay") if alone else None
        if isinstance(display, str):
            text = text or display
            display = None if display.strip() in text else display
        if display:
            self.keep = {"resultDisplay": display}
        event = self.event(EventType.TOOL_RESPONSE, text)
        event.tool, event.original_tool = entry
        event.call_id = call or string(self.record, "uuid") or None
        status = string(told, "status")
        failed = status in _FAILED or "error" in object_of(answer, "response")
        event.is_error = True if failed else False if status == "success" else None
        event.exit_code = exit_code(event.tool, text)
        event.extra = some(told, "durationMs", "errorType") | ({"status": status} if failed and status else {}) or None
        if status == "cancelled":
            event.ends = End.CANCELLED  # unless the model goes on
        return event

    # Going back

    def rewind(self, target: str) -> list[Item]:
        """Go on from an earlier record: in its turn, whose answers after it do not count any more."""
        m = self.memory
        items: list[Item] = []
        opener = m.tails.get(target) or target
        entry = m.openers.get(opener)
        if entry is None:
            return items
        m.opener, m.turn, m.idle = opener, entry[0], True
        if opener == target and entry[1]:
            items.append(Amend(entry[1], {"superseded": True, "ends": None}))
            entry[1] = ""
        return items

    # Events

    def event(self, kind: EventType, text: str = "", **more: Any) -> Event:
        """An event of the present record."""
        m, record = self.memory, self.record
        # An event without a uuid is known by what its record says and the record before it.
        uuid = string(record, "uuid") or f"{m.last}/{digest(rest(record, *_PASSING))}"
        number = m.made.pop(uuid, 0)
        m.made[uuid] = number + 1
        bound(m.made, CAP)
        key = f"{uuid}:{number}"
        event = Event(key, kind, text, self._time, turn=m.turn, **more)
        event.cwd, event.branch = string(record, "cwd") or None, string(record, "gitBranch") or None
        if self.origin is not None:
            event.origin = (self.origin, key)
        if kind in GENERATED:
            event.generator = m.model
        return event


Handler = Callable[[QwenReader, dict[str, Any]], Outcome]
"""Takes the reader and the payload of a record of the program's own."""
