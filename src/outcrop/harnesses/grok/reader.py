"""A conversation of Grok, as its model sees it: records without ids and times, behind a summary of the session.

A compaction or a rewind writes the file anew, so an event is named by what it says inside its turn and how often that
was said there. What the program puts into the user's mouth is marked, or wrapped in tags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses.content import content_text
from outcrop.harnesses.json_values import arguments, bound, digest, object_of, objects, rest, some, string, whole_number
from outcrop.harnesses.memory import kept, recalled
from outcrop.harnesses.moments import time_ms
from outcrop.harnesses.outcomes import GENERATED, Outcome
from outcrop.harnesses.toolnames import canonical
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed, Relation

SUMMARY = "$summary"
"""Type of the record of our own that carries the summary of a session."""
CAP = 64
"""Entries of any one memory."""


_INTERRUPTED = "The user interrupted the previous turn:"
_WHILE_WORKING = "The user sent a message while you were working:"
_QUERY = re.compile(r"<user_query>\n?(.*?)(?:\n?</user_query>|\Z)", re.DOTALL)
_AROUND = re.compile(
    rf"\s*(?:<image_files>.*?</image_files>\s*|{re.escape(_INTERRUPTED)}\s*|{re.escape(_WHILE_WORKING)}\s*)*"
    r"<user_query>",
    re.DOTALL,
)
_INJECTED = re.compile(r"\s*<(?:user_info|git_status|rules|system-reminder)\b")
_CONTINUED = "This session is being continued"
_COMPACTION = "compaction_meta"


@dataclass(slots=True)
class Memory:
    """All that the next record may need.

    `turn` names the running turn, `busy` says that it has not come to an end; `calls` maps call ids to [tool, original
    spelling]; `counts` counts what was said in the turn; `inherited` is how many records are still copied from the
    parent session.
    """

    native: str | None = None
    cwd: str | None = None
    branch: str | None = None
    parent: str | None = None
    inherited: int = 0
    model: str | None = None
    turn: str | None = None
    busy: bool = False
    calls: dict[str, list[Any]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


class GrokReader:
    """The `Reader` of a session: its summary first, then its conversation."""

    def __init__(self, native: str | None, state: dict[str, Any] | None) -> None:
        self.memory = recalled(Memory, state)
        self.memory.native = self.memory.native or native
        self._copied = False

    @property
    def session(self) -> str | None:
        return self.memory.native

    def state(self) -> dict[str, Any]:
        return kept(self.memory)

    def feed(self, record: dict[str, Any]) -> Parsed:
        m = self.memory
        if string(record, "type") == SUMMARY:
            items = self._summary(record)
            return Parsed(SUMMARY, items, None if items else "says nothing")
        # The oldest records say `role` instead.
        kind = string(record, "type") or string(record, "role")
        self._copied = m.inherited > 0
        m.inherited = max(0, m.inherited - 1)
        found = self._read(record, kind)
        if found is None:
            found = [self._event(EventType.UNKNOWN, "", record, raw=record)]
        return Parsed(kind or "?", reason=found) if isinstance(found, str) else Parsed(kind or "?", found)

    def _summary(self, p: dict[str, Any]) -> list[Item]:
        m = self.memory
        m.cwd = string(object_of(p, "info"), "cwd") or None
        m.branch = string(p, "head_branch") or None
        items: list[Item] = []
        if title := string(p, "generated_title").strip():
            items.append(Fact("title.generated", title))
        if summary := string(p, "session_summary").strip():
            items.append(Fact("summary", summary))
        created = time_ms(p.get("created_at"))
        if created is not None:
            items.append(Fact("created", created))
        child, parent = string(p, "session_kind") == "subagent", string(p, "parent_session_id")
        if parent and parent != m.native:
            items += [Fact("parent", parent), Fact("relation", Relation.SUBAGENT if child else Relation.FORK)]
            m.parent, m.inherited = parent, max(0, whole_number(p.get("inherited_prefix_len")) or 0)
        if child and string(p, "agent_name"):
            items.append(Fact("agent", string(p, "agent_name")))
        return items

    def _read(self, record: dict[str, Any], kind: str) -> Outcome:
        content = record.get("content")
        if kind in ("system", "user", "assistant") and not isinstance(content, (str, list, type(None))):
            return None
        if kind == "system":
            text = content_text(content)
            return [self._event(EventType.SYSTEM, text, text)] if text.strip() else "an empty message"
        if kind == "user":
            return self._user(record, content_text(content))
        if kind == "assistant":
            return self._assistant(record, content_text(content))
        if kind == "reasoning":
            return self._reasoning(record)
        if kind in ("tool_result", "tool"):
            return self._result(record)
        if kind == "backend_tool_call":
            return self._served(object_of(record, "kind"))
        return None

    # What a person said, and what the program said in the user's place

    def _user(self, record: dict[str, Any], text: str) -> Outcome:
        m = self.memory
        why = string(record, "synthetic_reason")
        if not text.strip():
            return "an empty message"
        if why == _COMPACTION and text.lstrip().startswith(_CONTINUED):
            m.busy = True
            return [self._event(EventType.COMPACTION, text, text)]
        if why or _INJECTED.match(text):
            return [self._event(EventType.SYSTEM, text, text, extra={"reason": why} if why else None)]
        if _AROUND.match(text):
            head = text.partition("<user_query>")[0]
            said = "\n".join(_QUERY.findall(text)).strip("\n")
        else:
            head, said = text if text.startswith((_INTERRUPTED, _WHILE_WORKING)) else "", text
        steers = _WHILE_WORKING in head and m.turn is not None
        cut = _INTERRUPTED in head or "prior_turn_interrupt" in record
        items: list[Item] = []
        if cut and m.busy and m.turn is not None and not steers:
            items.append(self._event(EventType.RUNTIME, "the turn was interrupted", "cut", ends=End.INTERRUPTED))
        extra = some(record, "prompt_index", "prior_turn_interrupt") or None
        if not steers:
            index = whole_number(record.get("prompt_index"))
            # The number of the prompt stays when a compaction takes those before it out of the file.
            base = f"{m.turn or 'head'}/{said}" if index is None else f"{index}/{said}"
            m.turn, m.counts = f"t{text_digest(base)}", {}
        items.append(self._event(EventType.USER_INPUT, said, "prompt" if not steers else said, extra=extra))
        items[-1].opens, m.busy = not steers, True  # type: ignore[union-attr]
        return items

    # What the model said

    def _assistant(self, record: dict[str, Any], text: str) -> Outcome:
        m = self.memory
        model = string(record, "model_id") or None
        m.model = model or m.model
        items: list[Item] = []
        # In the oldest records the model's thoughts stand in its message.
        thought = record.get("reasoning_content", record.get("reasoning"))
        if isinstance(thought, str) and thought.strip():
            items.append(self._event(EventType.REASONING, thought, thought, model=model))
        answer = self._event(EventType.ASSISTANT_RESPONSE, text, text, model=model) if text.strip() else None
        if answer is not None:
            items.append(answer)
        calls = objects(record.get("tool_calls"))
        for call in calls:
            inner = object_of(call, "function") or call
            given = arguments(inner.get("arguments", {}))
            items.append(self._call(string(inner, "name"), string(call, "id"), given, model))
        m.busy = answer is None or bool(calls)
        if answer is not None and not calls:
            answer.ends = End.FINAL
        return items or "an empty message"

    def _reasoning(self, record: dict[str, Any]) -> Outcome:
        summary = record.get("summary", record.get("content"))
        text = content_text(summary)
        sealed = string(record, "encrypted_content")
        self.memory.busy = True
        if not text.strip() and not sealed:
            return "empty reasoning" if "summary" in record or "content" in record else None
        extra = {"encrypted_content": sealed} if sealed else None
        shown = text if text.strip() else ENCRYPTED_PLACEHOLDER
        return [self._event(EventType.REASONING, shown, [text, sealed], extra=extra)]

    # Tools

    def _call(self, name: str, call: str, given: Any, model: str | None) -> Event:
        event = self._event(EventType.TOOL_CALL, "", call or [name, given], model=model)
        event.tool = canonical(name) or None
        event.original_tool = name if name and event.tool != name else None
        event.arguments, event.call_id = given, call or None
        self.memory.calls[call] = [event.tool, event.original_tool]
        bound(self.memory.calls, CAP)
        return event

    def _result(self, record: dict[str, Any]) -> Outcome:
        call, content = string(record, "tool_call_id"), record.get("content")
        if not call and not isinstance(content, (str, list)):
            return None
        pictures = content_text(record.get("images"))
        text = "\n".join(filter(None, (content_text(content), pictures)))
        event = self._event(EventType.TOOL_RESPONSE, text, call or text)
        event.tool, event.original_tool = self.memory.calls.pop(call, None) or [None, None]
        event.call_id = call or None
        return [event]

    def _served(self, kind: dict[str, Any]) -> Outcome:
        """A tool that ran where the model runs; its result is not recorded."""
        name, call = string(kind, "tool_type"), string(kind, "id")
        if not name:
            return None
        given = kind.get("action") or rest(kind, "tool_type", "id", "status")
        event = self._call(name, call, arguments(given), None)
        event.extra = some(kind, "status") or None
        self.memory.busy = True
        return [event]

    # Events

    def _event(self, kind: EventType, text: str, meaning: Any, **more: Any) -> Event:
        m = self.memory
        said = f"{kind}:{digest(meaning)}"
        m.counts[said] = m.counts.get(said, 0) + 1
        bound(m.counts, CAP)
        key = f"{m.turn or 'head'}:{said}:{m.counts[said]}"
        event = Event(key, kind, text, turn=m.turn, cwd=m.cwd, branch=m.branch, **more)
        if self._copied and m.parent is not None:
            event.origin = (m.parent, key)
        if kind in GENERATED:
            event.generator = m.model
        return event
