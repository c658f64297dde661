"""Chats of Gemini CLI: one JSON document rewritten whole, later JSON lines that grow. Qwen Code began with the former.

A message has an id and holds the model's thoughts, words and calls together with their results. In lines a message is
written again, whole, whenever it changes: what is new in it gives events, what changed amends them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses import SourceFile, jsonl
from outcrop.harnesses.google_parts import (
    CANCELLED,
    exit_code,
    is_snapshot,
    media,
    part_text,
    parts_of,
    prompt,
    response_text,
    text_of,
    usage,
)
from outcrop.harnesses.json_values import arguments, bound, digest, object_of, objects, rest, some, string, strings
from outcrop.harnesses.memory import kept, recalled
from outcrop.harnesses.moments import time_ms
from outcrop.harnesses.outcomes import GENERATED
from outcrop.harnesses.toolnames import canonical
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Fact, Item, Parsed, Relation

HEADER = "header"
"""Type of the record of our own that carries what a document holds beside its messages."""
CAP = 64
"""Entries of any one memory."""
REWRITTEN = 12
"""Messages that may still be written again: as a rule only the latest is."""

_DONE = frozenset({"success", "error", "cancelled"})
_MODEL = frozenset({"gemini", "model", "qwen", "assistant"})
_SAID_BY = {"user": "user", "gemini": "gemini", "model": "gemini", "qwen": "gemini", "assistant": "gemini"}
_USAGE = "$usage"
"""Under which name the digest of a message's token counts stands among those of its events."""
_FOR_ITSELF = "skill-extraction-"
"""How ids of sessions begin that the program runs to learn from others."""


def records(document: Any) -> Iterable[dict[str, Any]]:
    """Take a document apart: a chat with its messages, or a bare list of contents as a tagged copy holds them.

    A text holds either one document or lines.
    """
    if isinstance(document, str):
        try:
            document = jsonl.document(document.encode("utf-8", "surrogatepass"))
        except ValueError:
            for line in document.encode("utf-8", "surrogatepass").split(b"\n"):
                found, faults = jsonl.records(line)
                yield from found
                yield from ({"fault": fault.reason, "sample": fault.sample} for fault in faults)
            return
    told = document if isinstance(document, dict) else {}
    messages = document if isinstance(document, list) else told.get("messages", told.get("history"))
    if not isinstance(messages, list):
        yield told or {"document": document}
        return
    yield {**rest(told, "messages", "history"), "type": HEADER}
    for message in messages:
        yield message if isinstance(message, dict) else {"message": message}


@dataclass(slots=True)
class Memory:
    """All that the next record may need.

    `told` maps ids of messages to digests of what they said by the rest of the event's key; `turn` is the key of the
    running turn's prompt; `calls` holds the calls without an answer by id, as [tool, original spelling]; `busy` says
    that the agent has not come to an end since the prompt.
    """

    native: str | None = None
    begun: bool = False
    cwd: str | None = None
    model: str | None = None
    turn: str | None = None
    busy: bool = False
    summary: str = ""
    told: dict[str, dict[str, str]] = field(default_factory=dict)
    calls: dict[str, list[Any]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


class ChatReader:
    """The `Reader` of a chat of either form. `cwd` is the project's folder, where the file's place tells it."""

    def __init__(self, file: SourceFile, state: dict[str, Any] | None, cwd: str | None = None) -> None:
        self.memory = recalled(Memory, state)
        self.memory.cwd = self.memory.cwd or cwd
        self._file = file
        self._time: int | None = None
        self._message = ""
        self._keep: Any = None

    @property
    def session(self) -> str | None:
        return self.memory.native

    def state(self) -> dict[str, Any]:
        return kept(self.memory)

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind = string(record, "type") or string(record, "role") or ("" if "id" in record else HEADER)
        self._keep = None
        items: list[Item] = []
        found: list[Item] | str | None
        if "$set" in record:
            kind, found = "$set", self._set(object_of(record, "$set"))
            found = self._compressed(object_of(record, "$set")) + (found if isinstance(found, list) else []) or found
        elif "$rewindTo" in record:
            kind, found = "$rewindTo", self._rewound(record)
        elif kind == HEADER and (kind == record.get("type") or "sessionId" in record or "projectHash" in record):
            items, found = self._identify(record), self._set(record)
        else:
            items, found = self._identify({}), self._read(record, kind)
        if kind == HEADER and isinstance(found, list | str):
            # A whole chat may stand on one line.
            for message in objects(record.get("messages")):
                told = self._read(message, string(message, "type"))
                items += told if isinstance(told, list) else [] if told else [self._unknown(message)]
        if found is None:
            found = [self._unknown(record)]
        reason = found if isinstance(found, str) else None
        items = [*items, *(found if isinstance(found, list) else ())]
        return Parsed(kind or "?", items, None if items else reason or "says nothing", self._keep)

    def _identify(self, record: dict[str, Any]) -> list[Item]:
        """The session's id and its parent, from the header and from the file's place."""
        m, file = self.memory, self._file
        if m.native is None:
            said = string(record, "sessionId")
            if file.parent is not None and said in ("", file.parent):
                said = file.native or ""  # an agent's file that names its parent's session
            m.native = said or file.native
        if m.begun or m.native is None:
            return []
        m.begun = True
        items: list[Item] = []
        if file.parent is not None and file.parent != m.native:
            items += [Fact("parent", file.parent), Fact("relation", Relation.SUBAGENT)]
        if m.native.startswith(_FOR_ITSELF):
            items.append(Fact("machine", True))
        created = time_ms(record.get("startTime", record.get("start_time")))
        return items if created is None else [*items, Fact("created", created)]

    def _set(self, record: dict[str, Any]) -> list[Item] | str:
        """What stands beside the messages."""
        m = self.memory
        items: list[Item] = []
        summary = string(record, "summary").strip()
        if summary and text_digest(summary) != m.summary:
            m.summary = text_digest(summary)
            items += [Fact("title.summary", summary), Fact("summary", summary)]
        m.model = string(object_of(record, "meta"), "model") or m.model
        folders = strings(record.get("directories"))
        if folders and m.cwd is None and string(record, "kind") == "subagent":
            m.cwd = folders[0]
        if isinstance(record.get("memoryScratchpad"), dict):
            self._keep = {"memoryScratchpad": record["memoryScratchpad"]}
        return items or "says nothing about the conversation"

    def _compressed(self, record: dict[str, Any]) -> list[Item]:
        """The summary in history as it went to the model; the rest of it stands in the file."""
        items: list[Item] = []
        for message in objects(record.get("messages")):
            if string(message, "type") == "user" and is_snapshot(text_of(message.get("content"))):
                found = self._turned(message)
                items += found if isinstance(found, list) else []
        return items

    def _rewound(self, record: dict[str, Any]) -> list[Item]:
        self._time, self._message = None, f"rewind:{digest(record)}"
        self.memory.busy = False
        return [self._event("", EventType.SYSTEM, "rewound the conversation", extra={"target": record["$rewindTo"]})]

    # Messages

    def _read(self, record: dict[str, Any], kind: str) -> list[Item] | str | None:
        side = _SAID_BY.get(kind, kind)
        content = record.get("content", record.get("parts"))
        if side not in ("user", "gemini", "info", "error", "warning"):
            return None
        if content is not None and not isinstance(content, (str, list, dict)):
            return None
        if side == "user":
            return self._turned(record)
        self._place(record)
        if side == "gemini":
            return self._model(record, content)
        return self._notice(side, text_of(content))

    def _place(self, record: dict[str, Any]) -> None:
        """Find the message's time and name: its id, else what it says and how often that was said in its turn."""
        m = self.memory
        self._time = time_ms(record.get("timestamp", record.get("ts")))
        native = string(record, "id")
        if not native:
            said = digest(rest(record, "timestamp", "ts", "tokens"))
            m.counts[said] = m.counts.get(said, 0) + 1
            native = f"{m.turn or 'head'}/{said}.{m.counts[said]}"
            bound(m.counts, CAP)
        self._message = native
        if native in m.told:
            m.told[native] = m.told.pop(native)

    def _turned(self, record: dict[str, Any]) -> list[Item] | str:
        """A message on the user's side: a prompt, results of tools, or what the program says in the user's place."""
        m = self.memory
        self._place(record)
        again = self._message in m.told
        parts = parts_of(record.get("content", record.get("parts")))
        items: list[Item] = []
        for answer in (part["functionResponse"] for part in parts if isinstance(part.get("functionResponse"), dict)):
            call = string(answer, "id") or string(answer, "name")
            # A chat holds results with their calls; on the user's side only a bare list of contents does.
            if call in m.calls or "role" in record:
                items += self._answer(string(answer, "id"), string(answer, "name"), [{"functionResponse": answer}], {})
        typed, added = prompt(parts)
        shown = text_of(record.get("displayContent"))
        if is_snapshot(typed):
            items += self._say("snapshot", EventType.COMPACTION, typed)
        elif shown.strip() or typed.strip():
            if shown.strip() and typed.strip() and typed.strip() != shown.strip():
                added.insert(0, typed)
            if not again:
                named = string(record, "id") != ""
                m.turn = self._message if named else f"t{text_digest(self._message)}"
                m.busy, m.counts = True, {}
            items += self._say("user", EventType.USER_INPUT, shown if shown.strip() else typed, opens=True)
        for number, text in enumerate(added):
            items += self._say(f"added{number}", EventType.SYSTEM, text)
        return items or ("repeats a message" if again else "an empty message")

    def _model(self, record: dict[str, Any], content: Any) -> list[Item] | str:
        m = self.memory
        again = self._message in m.told
        model = string(record, "model") or None
        m.model = model or m.model
        counts = usage(record.get("tokens"))
        items: list[Item] = []
        for number, thought in enumerate(objects(record.get("thoughts"))):
            text = "\n".join(filter(None, (string(thought, "subject"), string(thought, "description"))))
            items += self._say(f"thought{number}", EventType.REASONING, text, model=model) if text else []
        calls = [call for call in objects(record.get("toolCalls")) if string(call, "name") or string(call, "id")]
        parts = parts_of(content)
        said = [(number, part) for number, part in enumerate(parts) if "functionCall" not in part]
        calls += [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]
        last: Item | None = None
        for number, part in said:
            found = self._part(number, part, model)
            items += found
            if part_text(part).strip() and part.get("thought") is not True:
                last = found[0] if found else None
        for call in calls:
            items += self._called(call, model)
        if isinstance(last, Event) and not calls:
            last.ends = End.FINAL
        m.busy = bool(calls) or not said or (m.busy and last is None)
        self._count(counts, items)
        return items or ("repeats a message" if again else "an empty message")

    def _count(self, counts: dict[str, int], items: list[Item]) -> None:
        """Token counts stand on the message's first event. Where they come later they amend it."""
        known = self.memory.told.setdefault(self._message, {})
        said = digest(counts)
        if not counts or known.get(_USAGE) == said:
            return
        first = next((item for item in items if isinstance(item, Event)), None)
        names = [name for name in known if name != _USAGE]
        if _USAGE not in known and first is not None and first.key == f"{self._message}:{names[0]}":
            first.extra = {**(first.extra or {}), "usage": counts}
        elif names:
            items.append(Amend(f"{self._message}:{names[0]}", {"extra": {"usage": counts}}))
        else:
            items += self._say("usage", EventType.SYSTEM, "", extra={"usage": counts})
        known[_USAGE] = said

    def _part(self, number: int, part: dict[str, Any], model: str | None) -> list[Item]:
        sealed = string(part, "thoughtSignature")
        extra = {"encrypted_content": sealed} if sealed else None
        text, name = part_text(part), f"part{number}"
        if part.get("thought") is True or (sealed and not text.strip()):
            shown = text if text.strip() else ENCRYPTED_PLACEHOLDER if sealed else ""
            return self._say(name, EventType.REASONING, shown, model=model, extra=extra) if shown else []
        if text.strip():
            return self._say(name, EventType.ASSISTANT_RESPONSE, text, model=model, extra=extra)
        if isinstance(part.get("text"), str) or not part:
            return []
        return self._say(name, EventType.UNKNOWN, "", raw=part)

    # Tools

    def _called(self, call: dict[str, Any], model: str | None) -> list[Item]:
        m = self.memory
        name, native = string(call, "name"), string(call, "id")
        tool = canonical(name) or None
        original = name if tool != name else None
        sealed = string(call, "thoughtSignature")
        extra = some(call, "agentId", "description") | ({"encrypted_content": sealed} if sealed else {})
        key = f"call:{native or name}"
        items = self._say(
            key, EventType.TOOL_CALL, "", tool=tool, original_tool=original, call_id=native or None,
            arguments=arguments(call.get("args", {})), model=model, extra=extra or None,
        )  # fmt: skip
        status = string(call, "status")
        if items and isinstance(items[0], Event):
            m.calls[native or name] = [tool, original]
            bound(m.calls, CAP)
        key = f"out:{native or name}"
        told = bool(items) or native in m.calls or name in m.calls or key in m.told[self._message]
        if (status in _DONE or call.get("result")) and told:
            answered = self._answer(native, name, call.get("result"), call)
            if status == "cancelled":
                for event in answered:
                    if isinstance(event, Event):
                        event.ends = End.CANCELLED  # unless the model goes on
            items += answered
        return items

    def _answer(self, native: str, name: str, result: Any, told: dict[str, Any]) -> list[Item]:
        m = self.memory
        entry = m.calls.pop(native or name, None)
        tool, original = entry or [canonical(name) or None, name if canonical(name) != name else None]
        texts: list[str] = []
        failed = False
        for part in parts_of(result):
            answer = part.get("functionResponse")
            if isinstance(answer, dict):
                texts += [response_text(answer.get("response")), media(answer)]
                failed = failed or "error" in object_of(answer, "response")
            else:
                texts.append(part_text(part))
        text = "\n".join(filter(None, texts))
        display = told.get("resultDisplay")
        if isinstance(display, str):
            text = text or display
            display = None if display.strip() in text else display
        if display:
            self._keep = {"resultDisplay": display}
        status = string(told, "status")
        failed = failed or status in ("error", "cancelled")
        extra = some(told, "agentId") | ({"status": status} if failed and status else {})
        ended = time_ms(told.get("timestamp"))
        before, self._time = self._time, ended if ended is not None else self._time
        items = self._say(
            f"out:{native or name}", EventType.TOOL_RESPONSE, text, tool=tool, original_tool=original,
            call_id=native or None, is_error=True if failed else False if status == "success" else None,
            exit_code=exit_code(tool, text), extra=extra or None,
        )  # fmt: skip
        self._time = before
        return items

    # What the program says

    def _notice(self, side: str, text: str) -> list[Item] | str:
        """Hints, warnings and errors. Those that stop a request end the turn, unless the model goes on."""
        m = self.memory
        if not text.strip():
            return "an empty message"
        ends = End.CANCELLED if text.strip() == CANCELLED else End.CRASHED if side == "error" else None
        kind = EventType.SYSTEM if side == "info" and ends is None else EventType.RUNTIME
        items = self._say(side, kind, text)
        for event in items:
            if isinstance(event, Event) and m.busy:
                event.ends = ends
        m.busy = m.busy and ends is None
        return items or "repeats a message"

    # Events

    def _say(self, name: str, kind: EventType, text: str, **more: Any) -> list[Item]:
        """The event that a message gives under a name: a new one, a change of a known one, or nothing."""
        m = self.memory
        known = m.told.setdefault(self._message, {})
        bound(m.told, REWRITTEN)
        said = digest([text, more.get("arguments"), more.get("is_error"), kind])
        if known.get(name) == said:
            return []
        if name in known:
            known[name] = said
            changes = {"text": text, **some(more, "arguments", "is_error", "exit_code", "extra")}
            return [Amend(f"{self._message}:{name}", changes)]
        known[name] = said
        return [self._event(name, kind, text, **more)]

    def _event(self, name: str, kind: EventType, text: str, **more: Any) -> Event:
        m = self.memory
        key = f"{self._message}:{name}" if name else self._message
        event = Event(key, kind, text, self._time, turn=m.turn, cwd=m.cwd, **more)
        if kind in GENERATED:
            event.generator = more.get("model") or m.model
        return event

    def _unknown(self, record: dict[str, Any]) -> Event:
        self._time = time_ms(record.get("timestamp"))
        self._message = string(record, "id") or digest(record)
        event = self._event("unknown", EventType.UNKNOWN, "")
        m = self.memory
        m.counts[event.key] = m.counts.get(event.key, 0) + 1
        bound(m.counts, CAP)
        if m.counts[event.key] > 1:
            event.key += f".{m.counts[event.key]}"
        event.raw = record
        return event
