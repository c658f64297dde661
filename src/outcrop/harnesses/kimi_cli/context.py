"""The Python program's `context.jsonl`: what the model saw, for sessions from before there were wires.

Without times. System prompts, checkpoints and token counts are no conversation, and neither is text between `<system>`
tags, which the program itself put in.
"""

from __future__ import annotations

import re
from typing import Any

from outcrop.harnesses import Side, SourceFile
from outcrop.harnesses.content import parsed_arguments
from outcrop.harnesses.json_values import in_order, object_of
from outcrop.harnesses.kimi_cli.values import exit_code, part_text, parts, string, thought, told, words
from outcrop.harnesses.kimi_cli.wire import working_directory
from outcrop.harnesses.turn_keys import PromptNames, TurnKeys
from outcrop.ids import text_digest
from outcrop.model import End, Event, EventType, Item, Parsed

_NOISE = {
    "_system_prompt": "the system prompt",
    "_checkpoint": "a checkpoint",
    "_usage": "the size of the context",
}
_INJECTED = re.compile(r"<(system|system-reminder)>.*</\1>\s*", re.DOTALL)
_NOTE = re.compile(r"<system>(.*?)</system>", re.DOTALL)


class ContextReader:
    """Reads one such file."""

    def __init__(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> None:
        known = state or {}
        self._file = file
        self._names = TurnKeys(**known["names"]) if known else TurnKeys()
        self._prompts = PromptNames(**known["prompts"]) if known else PromptNames()
        self._cwd: str | None = known["cwd"] if known else working_directory(file, side)

    @property
    def session(self) -> str | None:
        return self._file.native

    def state(self) -> dict[str, Any]:
        return {"names": self._names.state(), "prompts": self._prompts.state(), "cwd": self._cwd}

    def feed(self, record: dict[str, Any]) -> Parsed:
        role = string(record, "role")
        kind = f"context/{role or '?'}"
        if role in _NOISE:
            return Parsed(kind, reason=_NOISE[role])
        items: list[Item]
        if role == "user":
            items = self._user(told(record.get("content")), words(record.get("content")))
        elif role == "assistant":
            items = self._assistant(record)
        elif role == "tool":
            items = [self._result(record)]
        else:
            mark = text_digest(in_order(record).decode())
            items = [Event(self._names.key(f"unknown:{mark}"), EventType.UNKNOWN, raw=record)]
        for item in items:
            if isinstance(item, Event):
                item.cwd = self._cwd
        return Parsed(kind, items, None if items else "says nothing")

    def _user(self, text: str, name: str) -> list[Item]:
        if not text:
            return []
        if _INJECTED.fullmatch(text):
            return [Event(self._names.said(EventType.SYSTEM, text), EventType.SYSTEM, text)]
        self._names.next_turn(self._prompts.name(name))
        return [Event(self._names.key("prompt"), EventType.USER_INPUT, text, opens=True, settles=True)]

    def _assistant(self, record: dict[str, Any]) -> list[Item]:
        found: list[Item] = []
        last: Event | None = None
        for part in parts(record.get("content")):
            if part.get("type") == "think":
                text, extra = thought(part)
                found.append(Event(self._names.said(EventType.REASONING, text), EventType.REASONING, text, extra=extra))
            elif text := part_text(part):
                key = self._names.said(EventType.ASSISTANT_RESPONSE, text)
                last = Event(key, EventType.ASSISTANT_RESPONSE, text)
                found.append(last)
        calls = record.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = object_of(call, "function")
            if name := string(function, "name"):
                entry = self._names.call(string(call, "id"), name)
                event = Event(entry[0], EventType.TOOL_CALL, tool=entry[1], original_tool=entry[2])
                event.call_id = string(call, "id") or None
                event.arguments = parsed_arguments(string(function, "arguments") or "{}")
                found.append(event)
        if last is not None and not calls:
            last.ends = End.FINAL
        return found

    def _result(self, record: dict[str, Any]) -> Event:
        text = told(record.get("content"))
        event = self._names.response(string(record, "tool_call_id"), text)
        notes = _NOTE.findall(text)
        event.exit_code = exit_code(*notes, text)
        if notes and notes[0].startswith("ERROR"):
            event.is_error = True
        return event
