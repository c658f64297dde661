"""The Python program's `wire.jsonl`: what its screen was told, one message a line, times in seconds.

A wire names neither its session nor its folder nor a model; its place does. Agents of the session have wires of their
own; in old versions theirs stand only inside the parent's wire, and become sessions from there, event for event under
the same keys. `/fork` and `/undo` copy lines, times and all, into a new session: the line itself is the origin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import md5
from pathlib import PurePath
from typing import Any

from outcrop.harnesses import Side, SourceFile, jsonl
from outcrop.harnesses.content import parsed_arguments
from outcrop.harnesses.json_values import in_order, object_of
from outcrop.harnesses.kimi_cli import AGENT
from outcrop.harnesses.kimi_cli.values import (
    exit_code,
    part_text,
    string,
    thought,
    time_ms,
    told,
    usage,
    words,
)
from outcrop.harnesses.outcomes import Outcome
from outcrop.harnesses.turn_keys import PromptNames, TurnKeys
from outcrop.ids import text_digest
from outcrop.model import Amend, End, Event, EventType, Fact, Item, Parsed, Relation

_LIMIT = 4 << 20
_NOISE = {
    "StepBegin": "begins a step",
    "CompactionBegin": "announces a compaction",
    "MCPLoadingBegin": "bookkeeping of servers",
    "MCPLoadingEnd": "bookkeeping of servers",
    "HookTriggered": "announces a hook",
    "HookRequest": "announces a hook",
    "ApprovalRequest": "asks about a call",
    "QuestionRequest": "shows the questions of a call",
    "QuestionResponse": "stands in the call's result",
    "ToolCallRequest": "mirrors a call",
}
_CLOSES = frozenset({"TurnBegin", "SteerInput", "TurnEnd", "StepInterrupted", "ContentPart", "ToolCall", "ToolResult"})
"""What can only come when the call before it was written to its end."""
_INSIDE = "stands in the agent's own wire"


@dataclass(slots=True)
class Fold:
    """The running state of one wire, or of an agent's part of its parent's."""

    names: TurnKeys = field(default_factory=TurnKeys)
    prompts: PromptNames = field(default_factory=PromptNames)
    open: list[str] | None = None
    """Key and arguments so far of the call that further parts belong to."""
    interrupted: bool = False

    def state(self) -> dict[str, Any]:
        return {
            "names": self.names.state(),
            "prompts": self.prompts.state(),
            "open": self.open,
            "interrupted": self.interrupted,
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Fold:
        keys, prompts = TurnKeys(**state["names"]), PromptNames(**state["prompts"])
        return cls(keys, prompts, state["open"], state["interrupted"])

    def take(self, kind: str, payload: dict[str, Any]) -> Outcome:
        """What one message says. None: it is not known."""
        if kind == "ToolCallPart":
            return self._part(payload)
        handler = _HANDLERS.get(kind)
        if handler is None:
            return _NOISE.get(kind)
        open, closed = self.open, self._close() if kind in _CLOSES else []
        found = handler(self, payload)
        if found is None:
            self.open = open
        return found if found is None or not closed else [*closed, *(found if isinstance(found, list) else ())]

    # Turns

    def begin(self, p: dict[str, Any]) -> Outcome:
        self.names.next_turn(self.prompts.name(words(p.get("user_input"))))
        self.interrupted = False
        return self._typed(p, opens=True)

    def steer(self, p: dict[str, Any]) -> Outcome:
        return self._typed(p, opens=False)

    def _typed(self, p: dict[str, Any], opens: bool) -> Outcome:
        text = told(p.get("user_input"))
        if not text and not opens:
            return "says nothing"
        event = Event(self.names.key("prompt" if opens else "steer"), EventType.USER_INPUT, text)
        event.opens = event.settles = opens
        return [event]

    def end(self, p: dict[str, Any]) -> Outcome:
        if self.interrupted:
            return "ends a turn that was interrupted"
        return [Event(self.names.key("end"), EventType.RUNTIME, ends=End.FINAL)]

    def interrupt(self, p: dict[str, Any]) -> Outcome:
        self.interrupted = True
        return [Event(self.names.key("interrupt"), EventType.RUNTIME, ends=End.CANCELLED)]

    # What the model says

    def content(self, p: dict[str, Any]) -> Outcome:
        if p.get("type") == "think":
            text, extra = thought(p)
            return [Event(self.names.said(EventType.REASONING, text), EventType.REASONING, text, extra=extra)]
        text = part_text(p)
        if not text:
            return "says nothing" if p.get("type") == "text" else None
        return [Event(self.names.said(EventType.ASSISTANT_RESPONSE, text), EventType.ASSISTANT_RESPONSE, text)]

    def call(self, p: dict[str, Any]) -> Outcome:
        function = object_of(p, "function")
        name, id = string(function, "name"), string(p, "id")
        if not name:
            return None
        entry = self.names.call(id, name)
        event = Event(entry[0], EventType.TOOL_CALL, tool=entry[1], original_tool=entry[2], call_id=id or None)
        given = function.get("arguments")
        written = given if isinstance(given, str) else ""
        event.arguments = (parsed_arguments(written) if written else {}) if not isinstance(given, dict) else given
        if not isinstance(given, dict) and not _whole(written):
            self.open = [entry[0], written]
        return [event]

    def _part(self, p: dict[str, Any]) -> Outcome:
        """A further piece of a call's arguments; the call learns of them when they are whole."""
        if self.open is None:
            return "part of no call that is open"
        self.open[1] += string(p, "arguments_part")
        if not _whole(self.open[1]):
            return "part of a call's arguments"
        (key, written), self.open = self.open, None
        return [Amend(key, {"arguments": parsed_arguments(written)})]

    def _close(self) -> list[Item]:
        """What follows shows that no more arguments come."""
        if self.open is None:
            return []
        (key, written), self.open = self.open, None
        return [Amend(key, {"arguments": parsed_arguments(written)})] if written else []

    def result(self, p: dict[str, Any]) -> Outcome:
        returned = object_of(p, "return_value") or object_of(p, "result")
        output, note = told(returned.get("output")), string(returned, "message")
        event = self.names.response(string(p, "tool_call_id"), output or note)
        event.exit_code = exit_code(note, output)
        failed = returned.get("is_error")
        event.is_error = failed if isinstance(failed, bool) else None
        event.extra = {"message": note} if output and note else None
        return [event]

    # The rest

    def status(self, p: dict[str, Any]) -> Outcome:
        counts = usage(p.get("token_usage"))
        if counts is None:
            return "no tokens were counted"
        extra: dict[str, Any] = {"usage": counts}
        if message := string(p, "message_id"):
            extra["message_id"] = message
        return [Event(self.names.key("usage"), EventType.SYSTEM, extra=extra)]

    def compacted(self, p: dict[str, Any]) -> Outcome:
        return [Event(self.names.key("compaction"), EventType.COMPACTION)]

    def retried(self, p: dict[str, Any]) -> Outcome:
        return [Event(self.names.key("retry"), EventType.RUNTIME, string(p, "error", "reason"), extra=dict(p) or None)]

    def hook(self, p: dict[str, Any]) -> Outcome:
        if p.get("action") != "block":
            return "a hook that let the agent go on"
        return [Event(self.names.key("hook"), EventType.RUNTIME, string(p, "reason"), extra=dict(p))]

    def approval(self, p: dict[str, Any]) -> Outcome:
        if p.get("response") != "reject":
            return "a call was approved"
        return [Event(self.names.key("reject"), EventType.RUNTIME, string(p, "feedback"), by_user=True)]

    def notification(self, p: dict[str, Any]) -> Outcome:
        text = "\n".join(filter(None, (string(p, "title"), string(p, "body"))))
        return [Event(self.names.said(EventType.SYSTEM, text), EventType.SYSTEM, text)]

    def plan(self, p: dict[str, Any]) -> Outcome:
        text, path = string(p, "content"), string(p, "file_path")
        return [Event(self.names.said(EventType.SYSTEM, text), EventType.SYSTEM, text,
                      extra={"paths": [path]} if path else None)]  # fmt: skip

    def aside(self, p: dict[str, Any]) -> Outcome:
        """A question beside the main thread: neither it nor its answer is part of what the turn comes to."""
        text = string(p, "question")
        return [Event(self.names.key("aside"), EventType.USER_INPUT, text, by_user=True)] if text else "says nothing"

    def aside_answered(self, p: dict[str, Any]) -> Outcome:
        text = string(p, "response", "answer", "error")
        if not text:
            return "says nothing"
        return [Event(self.names.key("aside-answer"), EventType.ASSISTANT_RESPONSE, text, partial=True, by_user=True)]


_HANDLERS = {
    "TurnBegin": Fold.begin,
    "SteerInput": Fold.steer,
    "TurnEnd": Fold.end,
    "StepInterrupted": Fold.interrupt,
    "StepRetry": Fold.retried,
    "ContentPart": Fold.content,
    "ToolCall": Fold.call,
    "ToolResult": Fold.result,
    "StatusUpdate": Fold.status,
    "CompactionEnd": Fold.compacted,
    "HookResolved": Fold.hook,
    "ApprovalResponse": Fold.approval,
    "ApprovalRequestResolved": Fold.approval,
    "Notification": Fold.notification,
    "PlanDisplay": Fold.plan,
    "BtwBegin": Fold.aside,
    "BtwEnd": Fold.aside_answered,
}


class WireReader:
    """Reads the wire of a session or of one of its agents."""

    def __init__(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> None:
        known = state or {}
        self._file = file
        self._side = side
        self._fold = Fold.of(known["fold"]) if known else Fold()
        self._agents: dict[str, Any] = {name: kept and Fold.of(kept) for name, kept in known.get("agents", {}).items()}
        """Agents told of in this wire; None for those that have their own."""
        self._begun: bool = known.get("begun", False)
        self._cwd: str | None = known["cwd"] if known else working_directory(file, side)
        self._model: str | None = known["model"] if known else self._agent_model()

    @property
    def session(self) -> str | None:
        return self._file.native

    def state(self) -> dict[str, Any]:
        agents = {name: fold and fold.state() for name, fold in self._agents.items()}
        return {"fold": self._fold.state(), "agents": agents, "begun": self._begun, "cwd": self._cwd,
                "model": self._model}  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        first: list[Item] = []
        if not self._begun and self._file.role == AGENT:
            first = [Fact("parent", self._file.parent), Fact("relation", Relation.SUBAGENT)]
        self._begun = True
        if record.get("type") == "metadata":
            version = string(record, "protocol_version")
            found = [*first, *([Fact("version", f"wire {version}")] if version else [])]
            return Parsed("metadata", found, None if found else "names no version")
        message = object_of(record, "message")
        kind, payload = string(message, "type"), object_of(message, "payload")
        if kind == "SubagentEvent":
            name, outcome, child = self._subagent(payload, self._file.native or "")
        else:
            name, outcome, child = kind or "?", self._fold.take(kind, payload), None
        model = self._model if child is None else None
        return _parsed(name, first, self._dated(outcome, record, child, model), payload)

    def _dated(self, outcome: Outcome, record: dict[str, Any], child: str | None, model: str | None) -> Outcome:
        """Events with what the line around them tells."""
        names = (self._agents[child] if child else self._fold).names
        if outcome is None:
            meaning = {name: value for name, value in record.items() if name != "timestamp"}
            mark = text_digest(in_order(meaning).decode())
            outcome = [Event(names.key(f"unknown:{mark}"), EventType.UNKNOWN, raw=record)]
        if isinstance(outcome, str):
            return outcome
        time = time_ms(record.get("timestamp"))
        line = text_digest(in_order(record).decode()) if time is not None else ""
        for place, item in enumerate(outcome):
            if child is not None:
                item.session = f"{self._file.native}/{child}"
            if isinstance(item, Event):
                item.time, item.cwd = time, self._cwd
                item.origin = (None, f"{line}:{place}") if line else None
                if item.type in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL):
                    item.generator = model
        return outcome

    def _subagent(self, p: dict[str, Any], parent: str) -> tuple[str, Outcome, str | None]:
        inner = object_of(p, "event")
        kind = string(inner, "type")
        name = f"SubagentEvent/{kind or '?'}"
        child = string(p, "agent_id", "parent_tool_call_id", "task_tool_call_id")
        if not child or not kind:
            return name, None, None
        first: list[Item] = []
        if child not in self._agents:
            own = self._file.role != AGENT and self._has_wire(child)
            self._agents[child] = None if own else Fold()
            if not own:
                first = [Fact("parent", parent), Fact("relation", Relation.SUBAGENT)]
                if agent := string(p, "subagent_type"):
                    first.append(Fact("agent", agent))
        fold = self._agents[child]
        if fold is None:
            return name, _INSIDE, None
        found = "an agent's agent" if kind == "SubagentEvent" else fold.take(kind, object_of(inner, "payload"))
        if found is None or not first:
            return name, found, child
        return name, [*first, *(found if isinstance(found, list) else ())], child

    def _has_wire(self, agent: str) -> bool:
        folder = PurePath(self._file.path).parent
        return self._side.text(str(folder / "subagents" / agent / "wire.jsonl"), str(folder), 1) is not None

    def _agent_model(self) -> str | None:
        """The model of an agent, which its own document names; that of a session is not recorded."""
        if self._file.role != AGENT:
            return None
        folder = PurePath(self._file.path).parent
        meta = read_document(self._side, str(folder / "meta.json"), str(folder))
        return string(object_of(meta, "launch_spec"), "effective_model") or None


def working_directory(file: SourceFile, side: Side) -> str | None:
    """The folder that a session worked in: the one in `kimi.json` whose MD5 names the session's bucket.

    None for sessions on other machines, whose buckets have the machine's name in front.
    """
    places = list(PurePath(file.path).parents)
    above = next((n for n, place in enumerate(places) if place.name == "sessions"), None)
    if not above:
        return None
    root, bucket = places[above + 1], places[above - 1].name
    for entry in _list(read_document(side, str(root / "kimi.json"), str(root)), "work_dirs"):
        path = string(entry, "path")
        if path and md5(path.encode("utf-8", "replace"), usedforsecurity=False).hexdigest() == bucket:
            return path
    return None


def read_document(side: Side, path: str, inside: str) -> Any:
    """A small JSON document beside a session; None where there is none."""
    text = side.text(path, inside, _LIMIT)
    try:
        return None if text is None else jsonl.document(text.encode("utf-8", "replace"))
    except ValueError:
        return None


def _list(record: Any, name: str) -> list[Any]:
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, list) else []


def _whole(written: str) -> bool:
    """Whether arguments are a complete object: only then they can end with a brace."""
    return written.rstrip().endswith("}") and "_raw" not in (parsed_arguments(written) or {"_raw": ""})


def _parsed(name: str, first: list[Item], outcome: Outcome, payload: dict[str, Any]) -> Parsed:
    shown = object_of(payload, "return_value").get("display")
    keep = {"display": shown} if isinstance(shown, list) and any(_more(one) for one in shown) else None
    if isinstance(outcome, list):
        return Parsed(name, [*first, *outcome], None if first or outcome else "adds nothing", keep)
    return Parsed(name, first, outcome, keep)


def _more(shown: Any) -> bool:
    """Whether a block of a result's display says more than the result: a change of a file, with both its texts."""
    return isinstance(shown, dict) and shown.get("type") not in ("brief", "shell", "todo", "unknown")
