"""Trajectories: one whole run a line, in the form that models are trained on, with tags inside the texts.

A run has no id: it is named by its content, so that the same run in two files is one session; of equal lines in a file
each counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from outcrop.calls import RAW
from outcrop.harnesses.hermes import RUN
from outcrop.harnesses.hermes.messages import content_of, mapping, text, time_ms
from outcrop.harnesses.runs import RunsReader
from outcrop.harnesses.toolnames import canonical
from outcrop.model import End, Event, EventType, Fact, Item, Parsed

_TAGS = re.compile(r"<(think|tool_call)>(.*?)</\1>", re.DOTALL)
_RESPONSES = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)
_TOLD = ("completed", "partial", "api_calls", "toolsets_used", "prompt_index", "tool_stats", "tool_error_counts")


class TrajectoriesReader(RunsReader):
    """The `Reader` of a file of trajectories."""

    prefix = RUN
    history = "conversations"

    def run(self, session: str, record: dict[str, Any], listed: list[Any]) -> Parsed:
        return Parsed("run", [*_Run(session, record).items(listed)])


class _Run:
    """One run on its way into events."""

    def __init__(self, session: str, record: dict[str, Any]) -> None:
        self._session, self._record = session, record
        self._time = time_ms(record.get("timestamp"))
        self._model = text(record, "model") or None
        self._calls: list[Event] = []

    def items(self, listed: list[Any]) -> Iterator[Item]:
        if self._time is not None:
            yield Fact("created", self._time, self._session)
        for place, one in enumerate(listed):
            said = content_of(one.get("value"))[0] if isinstance(one, dict) else ""
            role = text(one, "from") if isinstance(one, dict) else ""
            if role == "human":
                event = self._event(f"{place}", EventType.USER_INPUT, said)
                event.opens, self._calls = True, []
                yield event
            elif role == "gpt":
                yield from self._answer(place, said)
            elif role == "tool":
                yield from self._responses(place, said)
            elif role == "system":
                yield self._event(f"{place}", EventType.SYSTEM, said)
            else:
                event = self._event(f"{place}", EventType.UNKNOWN, "")
                event.raw = one
                yield event
        yield self._end()

    def _answer(self, place: int, said: str) -> Iterator[Event]:
        """Texts and tags in their order; a tag that does not end is text."""
        at, part = 0, 0
        for tag in _TAGS.finditer(said):
            yield from self._visible(f"{place}:{part}", said[at : tag.start()])
            at, part = tag.end(), part + 2
            inner = tag[2].strip()
            if tag[1] == "think":
                if inner:
                    yield self._event(f"{place}:{part - 1}", EventType.REASONING, inner)
            else:
                yield self._call(f"{place}:{part - 1}", inner)
        yield from self._visible(f"{place}:{part}", said[at:])

    def _visible(self, key: str, said: str) -> Iterator[Event]:
        if said.strip():
            event = self._event(key, EventType.ASSISTANT_RESPONSE, said.strip())
            event.model = self._model
            yield event

    def _call(self, key: str, inner: str) -> Event:
        call = mapping(inner)
        name = text(call, "name")
        event = self._event(key, EventType.TOOL_CALL, "")
        event.tool = canonical(name) if name else None
        event.original_tool = name if name and event.tool != name else None
        given = call.get("arguments")
        event.arguments = given if isinstance(given, dict) else {RAW: inner}
        event.model = self._model
        self._calls.append(event)
        return event

    def _responses(self, place: int, said: str) -> Iterator[Event]:
        for part, inner in enumerate(_RESPONSES.findall(said) or [said]):
            result = mapping(inner.strip())
            name, id = text(result, "name"), text(result, "tool_call_id")
            event = self._event(f"{place}:{part}", EventType.TOOL_RESPONSE, inner.strip())
            if result and "content" in result:
                content = result["content"]
                event.text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
                inside = content if isinstance(content, dict) else mapping(content)
                code = inside.get("exit_code")
                event.exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
                if not {"exit_code", "error", "success"}.isdisjoint(inside):
                    failed = bool(inside.get("error")) or inside.get("success") is False
                    event.is_error = failed or bool(event.exit_code)
            call = next((one for one in self._calls if not name or name in (one.tool, one.original_tool)), None)
            if call is not None:
                # The call has no id of its own: the first open one of that name is answered.
                self._calls.remove(call)
                event.tool, event.original_tool = call.tool, call.original_tool
                call.call_id = event.call_id = id or call.key
            else:
                event.tool, event.call_id = (canonical(name) if name else None), id or None
            yield event

    def _end(self) -> Event:
        event = self._event("run", EventType.RUNTIME, "")
        event.extra = {name: self._record[name] for name in _TOLD if self._record.get(name) is not None} or None
        completed, partial = self._record.get("completed"), self._record.get("partial")
        if partial is True:
            event.ends = End.STOPPED
        elif completed is False:
            event.ends = End.CRASHED
        elif completed is True:
            event.ends = End.FINAL
        return event

    def _event(self, key: str, kind: EventType, said: str) -> Event:
        event = Event(key, kind, said, self._time, session=self._session)
        if kind not in (EventType.USER_INPUT, EventType.SYSTEM, EventType.RUNTIME, EventType.UNKNOWN):
            event.generator = self._model
        return event
