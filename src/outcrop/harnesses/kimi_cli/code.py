"""Kimi Code's `agents/<agent>/wire.jsonl`: every change of an agent's state, one record a line, times in ms.

A prompt is recorded twice, by its turn and as a message of the context: the first one counts. What was taken over from
the older program stands at the head under one single time, and is read only where the original is gone.
"""

from __future__ import annotations

from hashlib import md5
from pathlib import PurePath
from typing import Any

from outcrop.harnesses import Side, SourceFile
from outcrop.harnesses.content import parsed_arguments
from outcrop.harnesses.json_values import in_order, object_of
from outcrop.harnesses.kimi_cli import CODE_AGENT, CODE_IMPORTED
from outcrop.harnesses.kimi_cli.values import (
    exit_code,
    part_text,
    parts,
    string,
    thought,
    time_ms,
    told,
    usage,
    words,
)
from outcrop.harnesses.kimi_cli.wire import read_document
from outcrop.harnesses.outcomes import Outcome
from outcrop.harnesses.turn_keys import PromptNames, TurnKeys
from outcrop.ids import text_digest
from outcrop.model import Amend, End, Event, EventType, Fact, Item, Parsed, Relation

_OWN = "code"
"""Before the number of a turn: the older program has no such names."""
_WAITING = 64
_UNDOABLE = 16
_ANSWERS = 128
_KEPT = ("spine.", "goal.", "task.", "plan_mode.", "swarm_mode.", "cron.", "background.")
_NOISE = ("llm.", "mcp.", "tools.", "permission.", "token_counting.", "context_size.", "plugin.", "runtime.",
          "full_compaction.", "micro_compaction.", *_KEPT)  # fmt: skip
_LAST_STEPS = frozenset({"end_turn", "max_tokens"})
_ENDS = {"completed": End.FINAL, "cancelled": End.CANCELLED, "failed": End.CRASHED, "blocked": End.CRASHED}
_GENERATED = frozenset({EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL})


class CodeReader:
    """Reads the records of one agent: of the session's main one, or of another, which is a session of its own."""

    def __init__(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> None:
        known = state or {}
        self._file = file
        self._side = side
        self._names = TurnKeys(**known["names"]) if known else TurnKeys(_OWN)
        self._prompts = PromptNames(**known["prompts"]) if known else PromptNames()
        """Turns that were taken over have the names that they have in the older program."""
        self._count: int = known.get("count", 0)
        """Turns that were not."""
        self._waiting: list[str] = list(known.get("waiting", ()))
        """Digests of prompts that were not said by the context yet."""
        self._undoable: list[list[str]] = [list(keys) for keys in known.get("undoable", ())]
        """Keys of the answers of the latest turns."""
        self._active: bool = known.get("active", False)
        self._billed: dict[str, int] | None = known.get("billed")
        self._model: str | None = known.get("model")
        self._begun: bool = known.get("begun", False)
        self._taken: int | None = known.get("taken")
        """The time that all taken over records have; None once they have ended."""
        folder = PurePath(file.path).parent.parent.parent
        document = None if known else read_document(side, str(folder / "state.json"), str(folder))
        self._cwd: str | None = known["cwd"] if known else string(document, "workDir", "cwd") or None
        self._original: bool = known["original"] if known else self._stands(document)

    @property
    def session(self) -> str | None:
        return self._file.native

    def state(self) -> dict[str, Any]:
        return {
            "names": self._names.state(),
            "prompts": self._prompts.state(),
            "count": self._count,
            "waiting": list(self._waiting),
            "undoable": [list(keys) for keys in self._undoable],
            "active": self._active,
            "billed": self._billed,
            "model": self._model,
            "begun": self._begun,
            "taken": self._taken,
            "cwd": self._cwd,
            "original": self._original,
        }

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind, name = self._kind(record)
        time = time_ms(record.get("time"))
        first: list[Item] = []
        if not self._begun and self._file.role == CODE_AGENT:
            first = [Fact("parent", self._file.parent), Fact("relation", Relation.SUBAGENT)]
        self._begun = True
        if self._taken is not None and time not in (None, self._taken):
            self._taken = None
            self._names.next_turn(_OWN)
        taken = self._taken is not None and kind != "metadata"
        keep = record if kind.startswith(_KEPT) else None
        outcome = self._outcome(kind, record)
        if taken and self._original:
            outcome = "taken over from a session that is still there"
        if outcome is None:
            meaning = {key: value for key, value in record.items() if key != "time"}
            mark = text_digest(in_order(meaning).decode())
            outcome = [Event(self._names.key(f"unknown:{mark}"), EventType.UNKNOWN, raw=record)]
        if isinstance(outcome, str):
            return Parsed(name, first, outcome, keep)
        # A copied record is the same line; those without a time say too little to be known again.
        line = text_digest(in_order(record).decode()) if time is not None else ""
        for place, item in enumerate(outcome):
            if isinstance(item, Event):
                item.time, item.cwd = time, item.cwd or self._cwd
                item.origin = (None, f"{line}:{place}") if line else None
                if item.type in _GENERATED:
                    item.generator = self._model
                if item.type is EventType.ASSISTANT_RESPONSE and self._undoable and len(self._undoable[-1]) < _ANSWERS:
                    self._undoable[-1].append(item.key)
        return Parsed(name, [*first, *outcome], None if first or outcome else "says nothing", keep)

    def _kind(self, record: dict[str, Any]) -> tuple[str, str]:
        """Kind of a record and its name for the census."""
        kind = string(record, "type")
        if kind == "context.append_loop_event":
            inner = string(object_of(record, "event"), "type")
            return f"loop/{inner}", f"loop/{inner or '?'}"
        if kind == "context.append_message":
            return kind, f"{kind}/{string(object_of(record, 'message'), 'role') or '?'}"
        return kind, kind or "?"

    def _outcome(self, kind: str, record: dict[str, Any]) -> Outcome:
        handler = _HANDLERS.get(kind)
        if handler is not None:
            return handler(self, object_of(record, "event") if kind.startswith("loop/") else record)
        if kind == "llm.request":
            self._model = string(record, "model", "modelAlias") or self._model
            return "a request to a model"
        if kind.startswith(_NOISE):
            return "bookkeeping of the program"
        return None

    def _stands(self, document: Any) -> bool:
        """Whether the session that this one was taken over from is still in its own place, or in the usual one."""
        if self._file.role != CODE_IMPORTED:
            return False
        bucket = md5(string(document, "workDir").encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        home = PurePath(self._file.path).parents[6] if len(PurePath(self._file.path).parents) > 6 else PurePath()
        named = string(object_of(document, "custom"), "kimi_cli_source_path")
        folders = [home / ".kimi" / "sessions" / bucket / (self._file.native or "")]
        if named:
            folders.insert(0, PurePath(named))
        return any(
            self._side.text(str(folder / name), str(folder), 1) is not None
            for folder in folders
            for name in ("wire.jsonl", "context.jsonl")
        )

    # The session

    def metadata(self, r: dict[str, Any]) -> Outcome:
        created = time_ms(r.get("created_at"))
        found: list[Item] = []
        if self._file.role == CODE_IMPORTED:
            self._taken = created
        elif created is not None:
            found.append(Fact("created", created))
        if version := string(r, "protocol_version"):
            found.append(Fact("version", f"code {version}"))
        return found or "names no version"

    def configured(self, r: dict[str, Any]) -> Outcome:
        model = string(r, "modelAlias")
        cwd = string(r, "cwd") or string(object_of(r, "environmentDisclosure"), "cwd")
        self._model = model or self._model
        self._cwd = cwd or self._cwd
        if not model and not cwd:
            return "settings without a model"
        return [Event(self._names.key("config"), EventType.SYSTEM, extra={"model": model} if model else None)]

    def forked(self, r: dict[str, Any]) -> Outcome:
        return "ends the copied history"

    # Prompts

    def prompt(self, r: dict[str, Any]) -> Outcome:
        text, origin = told(r.get("input")), string(object_of(r, "origin"), "kind")
        if not text:
            return "begins a turn without a text"
        if self._by_user(origin):
            return [self._opening(text, words(r.get("input")))]
        self._wait(text)
        self._active = True
        return [self._system(text, origin)]

    def steer(self, r: dict[str, Any]) -> Outcome:
        text, origin = told(r.get("input")), string(object_of(r, "origin"), "kind")
        if not text:
            return "says nothing"
        self._wait(text)
        if origin not in ("", "user"):
            return [self._system(text, origin)]
        return [Event(self._names.key("steer"), EventType.USER_INPUT, text)]

    def _by_user(self, origin: str) -> bool:
        """Whether a person speaks, or whoever plays one: the parent that gives an agent its task."""
        return origin in ("", "user") or (self._file.role == CODE_AGENT and origin in ("system_trigger", "subagent"))

    def _opening(self, text: str, name: str, key: str | None = None, waits: bool = True) -> Event:
        if self._taken is not None:
            self._names.next_turn(self._prompts.name(name))
        else:
            self._count += 1
            self._names.next_turn(f"{_OWN}{self._count}")
        self._undoable = [*self._undoable[1 - _UNDOABLE :], []]
        self._active = True
        if waits:
            self._wait(text)
        return Event(key or self._names.key("prompt"), EventType.USER_INPUT, text, opens=True, settles=True)

    def _system(self, text: str, origin: str) -> Event:
        kind = EventType.COMPACTION if origin == "compaction_summary" else EventType.SYSTEM
        return Event(self._names.said(kind, text), kind, text, extra={"origin": origin})

    def _wait(self, text: str) -> None:
        self._waiting = [*self._waiting[1 - _WAITING :], text_digest(text)]

    def message(self, r: dict[str, Any]) -> Outcome:
        """A message of the context; of those by the user most were said by their turn already."""
        message = object_of(r, "message")
        role, id, text = string(message, "role"), string(message, "id"), told(message.get("content"))
        if role == "user":
            mark = text_digest(text)
            if mark in self._waiting:
                self._waiting.remove(mark)
                return "mirrors a prompt"
            origin = string(object_of(message, "origin"), "kind")
            if not text:
                return "says nothing"
            if not self._by_user(origin):
                return [self._system(text, origin)]
            name = words(message.get("content"))
            return [self._opening(text, name, f"msg:{id}" if id else None, waits=False)]
        if role == "assistant":
            return self._answer(message, id)
        if role == "tool":
            event = self._names.response(string(message, "toolCallId"), text)
            failed = message.get("isError")
            return [self._judged(event, failed if isinstance(failed, bool) else None)]
        if role == "system":
            return [self._system(text, "system")] if text else "says nothing"
        return None

    def _answer(self, message: dict[str, Any], id: str) -> list[Item]:
        found: list[Item] = []
        last: Event | None = None
        for place, part in enumerate(parts(message.get("content"))):
            event = self._said(part, f"msg:{id}:{place}" if id else None)
            if event is not None:
                found.append(event)
                last = event if event.type is EventType.ASSISTANT_RESPONSE else last
        calls = message.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            function = object_of(call, "function")
            name = string(call, "name") or string(function, "name")
            if name:
                given = call.get("arguments", function.get("arguments"))
                key = f"call:{id}:{string(call, 'id')}" if id and string(call, "id") else None
                found.append(self._called(string(call, "id"), name, given, key))
        if last is not None and not calls:
            last.ends, self._active = End.FINAL, False
        return found

    # The loop

    def step(self, e: dict[str, Any]) -> Outcome:
        self._active, self._billed = True, None
        return "begins a step"

    def part(self, e: dict[str, Any]) -> Outcome:
        uuid = string(e, "uuid")
        part = object_of(e, "part")
        event = self._said(part, f"part:{uuid}" if uuid else None)
        if event is not None:
            return [event]
        return "says nothing" if part.get("type") in ("text", "think") else None

    def _said(self, part: dict[str, Any], key: str | None) -> Event | None:
        if part.get("type") == "think":
            text, extra = thought(part)
            kind = EventType.REASONING
        else:
            text, extra, kind = part_text(part), None, EventType.ASSISTANT_RESPONSE
        return Event(key or self._names.said(kind, text), kind, text, extra=extra) if text else None

    def call(self, e: dict[str, Any]) -> Outcome:
        name, id, step = string(e, "name"), string(e, "toolCallId"), string(e, "stepUuid")
        if not name:
            return None
        return [self._called(id, name, e.get("args"), f"call:{step}:{id}" if step and id else None)]

    def _called(self, id: str, name: str, given: Any, key: str | None) -> Event:
        entry = self._names.call(id, name, key)
        event = Event(entry[0], EventType.TOOL_CALL, tool=entry[1], original_tool=entry[2], call_id=id or None)
        event.arguments = parsed_arguments(given) if isinstance(given, str) else given if given is not None else {}
        return event

    def result(self, e: dict[str, Any]) -> Outcome:
        result = object_of(e, "result")
        output, note = told(result.get("output")), string(result, "message", "note")
        event = self._names.response(string(e, "toolCallId"), output or note)
        event.extra = {"message": note} if output and note else None
        failed = result.get("isError")
        return [self._judged(event, failed if isinstance(failed, bool) else None, note)]

    def _judged(self, event: Event, failed: bool | None, note: str = "") -> Event:
        event.exit_code = exit_code(event.text, note)
        event.is_error = failed if failed is not None else True if event.exit_code else None
        return event

    def step_end(self, e: dict[str, Any]) -> Outcome:
        reason, counts = string(e, "finishReason"), usage(e.get("usage"))
        ended = reason in _LAST_STEPS
        uuid = string(e, "uuid")
        extra: dict[str, Any] = {"finish": reason} if reason else {}
        if counts is not None and counts != self._billed:
            extra["usage"] = self._billed = counts
        if ended:
            self._active = False
        kind = EventType.RUNTIME if ended else EventType.SYSTEM
        return [Event(f"step:{uuid}" if uuid else self._names.key("step"), kind, extra=extra or None,
                      ends=End.FINAL if ended else None)]  # fmt: skip

    def billed(self, r: dict[str, Any]) -> Outcome:
        """The tokens of a request again, unless its step was cut short or it was none of a step."""
        counts = usage(r.get("usage"))
        if counts is None:
            return "no tokens were counted"
        if counts == self._billed:
            return "mirrors the tokens of a step"
        self._billed = counts
        return [Event(self._names.key("usage"), EventType.SYSTEM, extra={"usage": counts})]

    # Ends and changes of the past

    def cancel(self, r: dict[str, Any]) -> Outcome:
        ends = End.CANCELLED if self._active else None
        self._active = False
        return [Event(self._names.key("cancel"), EventType.RUNTIME, ends=ends, by_user=True)]

    def ended(self, r: dict[str, Any]) -> Outcome:
        reason = string(r, "reason")
        self._active = False
        text = string(r, "error", "message") or string(object_of(r, "error"), "message")
        return [Event(self._names.key("end"), EventType.RUNTIME, text, ends=_ENDS.get(reason),
                      extra={"reason": reason} if reason else None)]  # fmt: skip

    def compacted(self, r: dict[str, Any]) -> Outcome:
        text = string(r, "summary", "contextSummary")
        extra: dict[str, Any] = {
            name: r[name] for name in ("compactedCount", "tokensBefore", "tokensAfter") if name in r
        }
        return [Event(self._names.key("compaction"), EventType.COMPACTION, text, extra=extra or None)]

    def cleared(self, r: dict[str, Any]) -> Outcome:
        self._undoable, self._active = [], False
        return [Event(self._names.key("clear"), EventType.SYSTEM, "context cleared", by_user=True)]

    def undone(self, r: dict[str, Any]) -> Outcome:
        """The latest prompts are taken back, with all that came of them."""
        count = r.get("count")
        turns = count if isinstance(count, int) and count > 0 else 1
        gone = [key for keys in self._undoable[-turns:] for key in keys]
        self._undoable, self._active = self._undoable[:-turns], False
        event = Event(self._names.key("undo"), EventType.SYSTEM, "prompt undone", by_user=True, extra={"count": turns})
        return [event, *(Amend(key, {"superseded": True}) for key in gone)]


_HANDLERS = {
    "metadata": CodeReader.metadata,
    "forked": CodeReader.forked,
    "config.update": CodeReader.configured,
    "profile.bind": CodeReader.configured,
    "turn.prompt": CodeReader.prompt,
    "turn.steer": CodeReader.steer,
    "turn.cancel": CodeReader.cancel,
    "turn.ended": CodeReader.ended,
    "context.append_message": CodeReader.message,
    "loop/step.begin": CodeReader.step,
    "loop/content.part": CodeReader.part,
    "loop/tool.call": CodeReader.call,
    "loop/tool.result": CodeReader.result,
    "loop/step.end": CodeReader.step_end,
    "usage.record": CodeReader.billed,
    "context.apply_compaction": CodeReader.compacted,
    "context.clear": CodeReader.cleared,
    "context.undo": CodeReader.undone,
}
