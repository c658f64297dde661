"""The reader of one Copilot CLI log: an envelope with a type for each event, told here one kind at a time.

A user message is a turn of its own unless the model was at work when it came. Subagents write into the log of their
parent; what they did becomes sessions of their own. Keys are the ids of the events and of the tool calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from outcrop.calls import RAW
from outcrop.harnesses import toolnames
from outcrop.harnesses.content import parsed_arguments
from outcrop.harnesses.json_values import bound, objects
from outcrop.harnesses.moments import iso_ms
from outcrop.harnesses.outcomes import Outcome
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Fact, Item, Parsed, Relation

CAP = 128
"""Calls that wait for their result, subagents, and counts of ids that come again."""
PROMPTS, PROMPT_SIZE = 16, 32 * 1024
"""Prompts of subagents that wait for their agent's start, and how much of one is remembered."""


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TOKEN = re.compile(r"[\w-]{20,}")
_EXIT = re.compile(r"<(?:shellId: \S+ completed|exited) with exit code (-?\d{1,10})>\s*\Z")
_PARTIAL = frozenset({"commentary", "thinking"})
_INJECTED = ("skill", "autopilot", "system", "agent-", "hook", "jit-", "thinking", "snippy")
"""Beginnings of the sources of messages that the program itself writes."""


class CopilotReader:
    """Reads one log; `hint` is the session id that the file's place names."""

    def __init__(self, hint: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._hint = hint
        self.native: str | None = known.get("native")
        self.cwd: str | None = known.get("cwd")
        self.branch: str | None = known.get("branch")
        self.model: str | None = known.get("model")
        self.busy: bool = known.get("busy", False)
        """A call of the model is running."""
        self.open: bool = known.get("open", False)
        """The turn has not ended, as far as the log tells."""
        self.thought: str = known.get("thought", "")
        self.calls: dict[str, list[Any]] = dict(known.get("calls", {}))
        """Tool call id → [tool, original spelling]."""
        self.prompts: dict[str, str] = dict(known.get("prompts", {}))
        self.agents: dict[str, str] = dict(known.get("agents", {}))
        """Id of a subagent → the call that started it."""
        self.counts: dict[str, int] = dict(known.get("counts", {}))
        self.child: str | None = None
        self.id = ""
        self.unique = False
        self.time: int | None = None

    @property
    def session(self) -> str | None:
        return self.native

    def state(self) -> dict[str, Any]:
        return {
            "native": self.native, "cwd": self.cwd, "branch": self.branch, "model": self.model, "busy": self.busy,
            "open": self.open, "thought": self.thought, "calls": dict(self.calls), "prompts": dict(self.prompts),
            "agents": dict(self.agents), "counts": dict(self.counts),
        }  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind, data = record.get("type"), record.get("data")
        name = kind if isinstance(kind, str) else "record"
        if self.native is None:
            own = text(data, "sessionId") if name == "session.start" and isinstance(data, dict) else None
            self.native = own or self._hint
        self.time = iso_ms(record.get("timestamp"))
        self.id = self._name(record)
        outcome: Outcome = None
        facts: list[Item] = []
        self.child = None
        if isinstance(data, dict):
            facts = self._place(record, data, name)
            handler = _HANDLERS.get(name)
            outcome = handler(self, data) if handler is not None else _NOISE.get(name)
        if outcome is None:
            unknown = self.event(self.id, EventType.UNKNOWN, "", raw=record, extra={"kind": name})
            return Parsed(name, [*facts, unknown])
        if isinstance(outcome, str):
            return Parsed(name, facts, None if facts else outcome, data if name in _KEPT else None)
        outcome = [*facts, *outcome]
        return Parsed(name, outcome, None if outcome else "adds nothing")

    def event(self, key: str, kind: EventType, words: str, **more: Any) -> Event:
        """An event of the present record, in the session that it belongs to."""
        origin = (None, key) if self.unique else None
        return Event(
            key, kind, words, self.time, session=self.child, origin=origin, cwd=self.cwd, branch=self.branch, **more
        )

    def _name(self, record: dict[str, Any]) -> str:
        """The record's id. One that is no UUID may come again, so it is counted; without any the content names it."""
        id, kind, data = record.get("id"), record.get("type"), record.get("data")
        self.unique = isinstance(id, str) and _UUID.fullmatch(id) is not None
        if self.unique:
            return str(id)
        if not isinstance(id, str) or not id:
            said = [data.get(name) for name in ("content", "message", "toolCallId")] if isinstance(data, dict) else []
            id = text_digest(json.dumps(said, default=str))
        return self._counted(f"{kind}:{id}")

    def _counted(self, mark: str) -> str:
        self.counts[mark] = self.counts.get(mark, 0) + 1
        bound(self.counts, CAP)
        return mark if self.counts[mark] == 1 else f"{mark}#{self.counts[mark]}"

    def _place(self, record: dict[str, Any], data: dict[str, Any], name: str) -> list[Item]:
        """Find the session of a record: the log's own, or that of the subagent whose id or call it carries."""
        agent, call = text(record, "agentId"), text(data, "parentToolCallId")
        if name == "subagent.started" and (started := text(data, "toolCallId")):
            call = started
            if agent:
                self.agents[agent] = started
        elif not call and agent:
            call = self.agents.get(agent, agent)
        if call is None or self.native is None or name.startswith("session."):
            return []
        self.child = f"{self.native}/{call}"
        if call in self.agents:
            return []
        self.agents[call] = call
        bound(self.agents, CAP)
        return [Fact("parent", self.native, self.child), Fact("relation", Relation.SUBAGENT, self.child)]

    # Session

    def start(self, data: dict[str, Any]) -> Outcome:
        self._context(data)
        self.model = text(data, "selectedModel") or self.model
        items: list[Item] = [self.event(self.id, EventType.SYSTEM, "", extra=some(data, "sessionId"))]
        if version := text(data, "copilotVersion"):
            items.append(Fact("version", version))
        created = iso_ms(data.get("startTime"))
        if created is not None:
            items.append(Fact("created", created))
        return items

    def resume(self, data: dict[str, Any]) -> Outcome:
        self._context(data)
        self.model = text(data, "selectedModel") or self.model
        self.busy = False
        return [self.event(self.id, EventType.RUNTIME, "", extra=some(data))]

    def context_changed(self, data: dict[str, Any]) -> Outcome:
        self._context({"context": data})
        return [self.event(self.id, EventType.SYSTEM, "", extra=some(data))]

    def model_change(self, data: dict[str, Any]) -> Outcome:
        self.model = text(data, "newModel") or self.model
        return [self.event(self.id, EventType.SYSTEM, text(data, "newModel") or "", extra=some(data, "newModel"))]

    def shutdown(self, data: dict[str, Any]) -> Outcome:
        crashed = data.get("shutdownType") == "error"
        ends = (End.CRASHED if crashed else End.EXITED) if self.open else None
        self.busy = self.open = False
        words = text(data, "errorReason") or ""
        return [self.event(self.id, EventType.RUNTIME, words, ends=ends, extra=some(data, "errorReason"))]

    def error(self, data: dict[str, Any]) -> Outcome:
        # The session may go on: whatever the model does next takes the end back.
        ends = End.CRASHED if self.open else None
        return [
            self.event(self.id, EventType.RUNTIME, text(data, "message") or "", ends=ends, extra=some(data, "message"))
        ]

    def abort(self, data: dict[str, Any]) -> Outcome:
        reason = text(data, "reason") or ""
        ends = (End.INTERRUPTED if "user" in reason.lower() or not reason else End.CANCELLED) if self.open else None
        self.busy = self.open = False
        return [self.event(self.id, EventType.RUNTIME, reason, ends=ends)]

    def compacted(self, data: dict[str, Any]) -> Outcome:
        words = text(data, "summaryContent") or text(data, "error") or ""
        kind = EventType.RUNTIME if data.get("success") is False else EventType.COMPACTION
        return [self.event(self.id, kind, words, extra=some(data, "summaryContent", "error"))]

    def task_complete(self, data: dict[str, Any]) -> Outcome:
        """The summary is shown as the answer; the tool call that carried it is no answer by itself."""
        self.open = False
        summary = text(data, "summary")
        kind = EventType.ASSISTANT_RESPONSE if summary else EventType.RUNTIME
        ends = End.STOPPED if data.get("success") is False else End.FINAL
        generator = self.model if summary else None
        return [self.event(self.id, kind, summary or "", ends=ends, generator=generator)]

    def titled(self, data: dict[str, Any]) -> Outcome:
        title = text(data, "title")
        return [Fact("title.generated", title)] if title else "names no title"

    def said_by_program(self, data: dict[str, Any]) -> Outcome:
        words = text(data, "content") or text(data, "message") or ""
        return [self.event(self.id, EventType.SYSTEM, words, extra=some(data, "content", "message"))]

    def noted(self, data: dict[str, Any]) -> Outcome:
        return [self.event(self.id, EventType.SYSTEM, "", extra=some(data))]

    # Conversation

    def user(self, data: dict[str, Any]) -> Outcome:
        words, sent = text(data, "content"), text(data, "transformedContent")
        attached = [
            path
            for one in objects(data.get("attachments"))
            if (path := text(one, "path") or text(one, "filePath") or text(one, "displayName"))
        ]
        source = text(data, "source") or ""
        injected = data.get("isAutopilotContinuation") is True or source.startswith(_INJECTED)
        if self.child is not None and source.startswith("agent-"):
            injected = False
        if injected or (words is None and not attached):
            return [self.event(self.id, EventType.SYSTEM, sent or words or "", extra=some(data, *_SAID))]
        delivery = data.get("delivery")
        opens = self.child is not None or delivery in ("idle", "queued") or (delivery != "steering" and not self.busy)
        if self.child is None:
            self.open = True
        extra = some(data, *_SAID) or {}
        if attached:
            extra["attachments"] = attached
        return [self.event(self.id, EventType.USER_INPUT, words or "", opens=opens, settles=opens, extra=extra or None)]

    def assistant(self, data: dict[str, Any]) -> Outcome:
        model = text(data, "model")
        if model and self.child is None:
            self.model = model
        generator = model or (self.model if self.child is None else None)
        items = self._thoughts(data, generator)
        requests = objects(data.get("toolRequests"))
        words = text(data, "content")
        final = not requests and data.get("toolRequests") in (None, [])
        if words is not None:
            partial = data.get("phase") in _PARTIAL
            ends = End.FINAL if final and not partial else None
            said = self.event(f"{self.id}:text", EventType.ASSISTANT_RESPONSE, words, partial=partial, ends=ends)
            said.model, said.generator = model, generator
            items.append(said)
        for place, request in enumerate(requests):
            items += self._call(request, request.get("name"), generator, place)
        if words is None and final and not items:
            items.append(self.event(self.id, EventType.RUNTIME, "", ends=End.FINAL))
        if self.child is None:
            self.open = not final
        tokens = data.get("outputTokens")
        first = next((item for item in items if isinstance(item, Event)), None)
        if first is not None and isinstance(tokens, int) and tokens > 0:
            first.extra = {**(first.extra or {}), "usage": {"output_tokens": tokens}}
        return items or "says nothing"

    def reasoning(self, data: dict[str, Any]) -> Outcome:
        words = text(data, "content")
        if words is None:
            return "says nothing"
        self.thought = text_digest(words)
        return [self.event(self.id, EventType.REASONING, words, generator=self.model if self.child is None else None)]

    def _thoughts(self, data: dict[str, Any], generator: str | None) -> list[Item]:
        words = text(data, "reasoningText")
        sealed = text(data, "reasoningOpaque") or text(data, "encryptedContent")
        told = words is not None and text_digest(words) == self.thought
        self.thought = ""
        if told or (words is None and sealed is None):
            return []
        extra = {"encrypted_content": sealed} if sealed else None
        event = self.event(f"{self.id}:reasoning", EventType.REASONING, words or ENCRYPTED_PLACEHOLDER, extra=extra)
        event.generator = generator
        return [event]

    def turn_start(self, data: dict[str, Any]) -> Outcome:
        if self.child is None:
            self.busy = True
            self.model = text(data, "model") or self.model
        return "start of a call of the model"

    def turn_end(self, data: dict[str, Any]) -> Outcome:
        if self.child is None:
            self.busy = False
        return "end of a call of the model"

    # Tools

    def _call(
        self, request: dict[str, Any], name: Any, generator: str | None, place: int = 0, by_user: bool = False
    ) -> list[Item]:
        call = text(request, "toolCallId")
        if call in self.calls:
            return []
        tool, original = spelled(name, text(request, "mcpServerName"), text(request, "mcpToolName"))
        key = f"{self.id}:call:{place}"
        if call:
            # Some providers count their calls anew in each turn.
            key = f"call:{call}" if _TOKEN.fullmatch(call) else self._counted(f"call:{call}")
        asked = request.get("arguments")
        arguments = parsed_arguments(asked) if isinstance(asked, str) else asked
        if arguments is not None and not isinstance(arguments, dict):
            arguments = {RAW: arguments}
        if call:
            self.calls[call] = [tool, original, key.removeprefix("call:")]
            bound(self.calls, CAP)
            prompt = arguments.get("prompt") if isinstance(arguments, dict) else None
            if isinstance(prompt, str) and tool == "task":
                self.prompts[call] = prompt[:PROMPT_SIZE]
                bound(self.prompts, PROMPTS)
        event = self.event(key, EventType.TOOL_CALL, text(request, "intentionSummary") or "", call_id=call)
        event.tool, event.original_tool, event.arguments = tool, original, arguments
        event.generator, event.by_user = generator, by_user
        return [event]

    def tool_start(self, data: dict[str, Any]) -> Outcome:
        """Mostly mirrors the request of a message, but knows the server and tool of an MCP call apart."""
        entry = self.calls.get(text(data, "toolCallId") or "")
        if entry is None:
            return self._call(data, data.get("toolName"), text(data, "model") or self.model)
        tool, original = spelled(data.get("toolName"), text(data, "mcpServerName"), text(data, "mcpToolName"))
        if tool is None or [tool, original] == entry[:2]:
            return "mirrors a request"
        entry[:2] = [tool, original]
        return [Amend(f"call:{entry[2]}", {"tool": tool, "original_tool": original}, self.child)]

    def tool_by_user(self, data: dict[str, Any]) -> Outcome:
        return self._call(data, data.get("toolName"), None, by_user=True) or "mirrors a request"

    def tool_end(self, data: dict[str, Any]) -> Outcome:
        call = text(data, "toolCallId")
        tool, original, name = self.calls.pop(call or "", (None, None, None))
        result, error = data.get("result"), data.get("error")
        words = result if isinstance(result, str) else ""
        extra: dict[str, Any] = {}
        if isinstance(result, dict):
            words = text(result, "content") or ""
            detailed = text(result, "detailedContent")
            if detailed and detailed != words:
                extra["detailed"] = detailed
        if isinstance(error, dict):
            words = words or text(error, "message") or ""
            extra.update({"code": code} if (code := text(error, "code")) else {})
        found = _EXIT.search(words[-200:])
        exit_code = int(found[1]) if found else None
        success = data.get("success")
        failed = not success if isinstance(success, bool) else None
        key = f"result:{name}" if name else f"{self.id}:result"
        event = self.event(key, EventType.TOOL_RESPONSE, words, call_id=call, exit_code=exit_code, extra=extra or None)
        event.tool, event.original_tool = tool, original
        event.is_error = True if exit_code else failed
        event.by_user = data.get("isUserRequested") is True
        event.model = text(data, "model")
        return [event]

    # Subagents and hooks

    def agent_started(self, data: dict[str, Any]) -> Outcome:
        call = text(data, "toolCallId")
        items: list[Item] = []
        if agent := text(data, "agentName"):
            items.append(Fact("agent", agent, self.child))
        prompt = self.prompts.pop(call or "", None)
        if prompt is not None and self.child is not None:
            items.append(self.event(f"{self.id}:prompt", EventType.USER_INPUT, prompt, opens=True))
        extra = some(data, "toolCallId")
        return [*items, self.event(self.id, EventType.SYSTEM, text(data, "agentDescription") or "", extra=extra)]

    def agent_ended(self, data: dict[str, Any]) -> Outcome:
        words, call = text(data, "error"), text(data, "toolCallId")
        if self.child is None and self.native is not None and call in self.agents:
            self.child = f"{self.native}/{self.agents[call]}"
        ends = End.CRASHED if words else End.FINAL
        return [self.event(self.id, EventType.RUNTIME, words or "", ends=ends, extra=some(data, "error"))]

    def hook_end(self, data: dict[str, Any]) -> Outcome:
        output, error = data.get("output"), data.get("error")
        if not output and not error:
            return "a hook ran"
        words = json.dumps(output or error, ensure_ascii=False, default=str)
        return [self.event(self.id, EventType.SYSTEM, words, extra=some(data, "output", "error"))]

    def _context(self, data: dict[str, Any]) -> None:
        context = data.get("context")
        if isinstance(context, dict):
            self.cwd = text(context, "cwd") or self.cwd
            self.branch = text(context, "branch") or self.branch


def spelled(name: Any, server: str | None, tool: str | None) -> tuple[str | None, str | None]:
    """(stored name, original spelling where it differs). MCP tools are written `server-tool`."""
    if not isinstance(name, str) or not name:
        return None, None
    spelling = f"mcp__{server}__{tool}" if server and tool else name
    own = toolnames.canonical(spelling)
    if own not in toolnames.OWN_TOOLS or own == spelling:
        first, _, rest = name.partition("-")
        spelling = f"mcp__{first}__{rest}" if rest else name
        own = toolnames.canonical(spelling)
    return (own, spelling) if own in toolnames.OWN_TOOLS and own != spelling else (name, None)


def text(record: dict[str, Any], name: str) -> str | None:
    """A text that says something."""
    value = record.get(name)
    return value if isinstance(value, str) and value.strip() else None


def some(data: dict[str, Any], *but: str) -> dict[str, Any] | None:
    """What a record says besides the named fields; None where nothing is left."""
    return {name: value for name, value in data.items() if name not in but and value not in (None, "", [], {})} or None


_SAID = ("content", "transformedContent", "attachments", "supportedNativeDocumentMimeTypes")

_HANDLERS: dict[str, Callable[[CopilotReader, dict[str, Any]], Outcome]] = {
    "session.start": CopilotReader.start,
    "session.resume": CopilotReader.resume,
    "session.context_changed": CopilotReader.context_changed,
    "session.model_change": CopilotReader.model_change,
    "session.shutdown": CopilotReader.shutdown,
    "session.error": CopilotReader.error,
    "session.compaction_complete": CopilotReader.compacted,
    "session.truncation": CopilotReader.compacted,
    "session.task_complete": CopilotReader.task_complete,
    "session.title_changed": CopilotReader.titled,
    "session.info": CopilotReader.said_by_program,
    "session.warning": CopilotReader.said_by_program,
    "session.mode_changed": CopilotReader.noted,
    "session.permissions_changed": CopilotReader.noted,
    "session.session_limits_changed": CopilotReader.noted,
    "system.message": CopilotReader.said_by_program,
    "system.notification": CopilotReader.said_by_program,
    "skill.invoked": CopilotReader.said_by_program,
    "user.message": CopilotReader.user,
    "assistant.message": CopilotReader.assistant,
    "assistant.reasoning": CopilotReader.reasoning,
    "assistant.turn_start": CopilotReader.turn_start,
    "assistant.turn_end": CopilotReader.turn_end,
    "tool.execution_start": CopilotReader.tool_start,
    "tool.user_requested": CopilotReader.tool_by_user,
    "tool.execution_complete": CopilotReader.tool_end,
    "subagent.started": CopilotReader.agent_started,
    "subagent.completed": CopilotReader.agent_ended,
    "subagent.failed": CopilotReader.agent_ended,
    "subagent.selected": CopilotReader.noted,
    "subagent.deselected": CopilotReader.noted,
    "hook.end": CopilotReader.hook_end,
    "abort": CopilotReader.abort,
}

_KEPT = frozenset({"session.usage_checkpoint", "session.auto_mode_resolved"})

_NOISE: dict[str, str] = {
    name: reason
    for reason, names in {
        "a hook begins": "hook.start",
        "context is about to be compacted": "session.compaction_start",
        "token and cost counts": "session.usage_checkpoint session.usage_info assistant.usage",
        "how the program chose the model": "session.auto_mode_resolved",
        "asks for approval": "permission.requested permission.completed",
        "asks the user": "user_input.requested user_input.completed elicitation.requested elicitation.completed "
        "external_tool.requested external_tool.completed",
        "part of a message that follows whole": "assistant.message_delta assistant.reasoning_delta "
        "assistant.streaming_delta assistant.intent tool.execution_partial_result tool.execution_progress",
        "screen state": "session.idle pending_messages.modified",
    }.items()
    for name in names.split()
}
