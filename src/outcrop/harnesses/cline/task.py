"""The messages that a task of Cline or Roo Code showed its user, folded into events.

Messages change in place while they are shown, so keys are their place among their kind in the turn. A request that was
cancelled says so where it began; a record of our own carries that to where it ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from outcrop.harnesses import toolnames
from outcrop.harnesses.cline.values import object_of
from outcrop.harnesses.content import parsed_arguments
from outcrop.harnesses.moments import epoch_ms
from outcrop.ids import text_digest
from outcrop.model import Amend, End, Event, EventType, Item, Parsed

_FOLDER = re.compile(r"# Current Work(?:ing|space) Directory \((.+?)\) Files")
_CHANGED = "HAS_CHANGES"
_IDLE = frozenset(
    {"completion_result", "resume_task", "resume_completed_task", "plan_mode_respond", "act_mode_respond",
     "api_req_failed", "mistake_limit_reached", "auto_approval_max_req_reached"}
)  # fmt: skip
"""Questions after which the agent waits, so that what the user says next opens a turn."""
_QUIET = {
    "checkpoint_created": "a checkpoint",
    "checkpoint_saved": "a checkpoint",
    "api_req_finished": "the end of a request",
    "api_req_deleted": "a request that was taken back",
    "deleted_api_reqs": "a request that was taken back",
    "mcp_server_request_started": "progress of a running tool",
    "browser_session_status": "progress of a running tool",
    "hook_status": "progress of a hook",
    "hook_output_stream": "progress of a hook",
    "subagent_usage": "counts of a subagent",
    "load_mcp_documentation": "housekeeping of the harness",
}
_TOLD = frozenset(
    {"task_progress", "info", "shell_integration_warning", "shell_integration_warning_with_suggestion",
     "mcp_notification", "user_feedback_diff", "conditional_rules_applied", "generate_explanation", "subtask_result",
     "codebase_search_result", "user_edit_todos", "condense", "new_task", "report_bug", "image", "subagent"}
)  # fmt: skip
_TROUBLE = frozenset(
    {"error", "error_retry", "diff_error", "clineignore_error", "rooignore_error", "command_permission_denied",
     "api_req_retried", "api_req_retry_delayed", "api_req_rate_limited", "condense_context_error"}
)  # fmt: skip
_CANCELS = {"user_cancelled": End.INTERRUPTED, "streaming_failed": End.CRASHED, "retries_exhausted": End.CRASHED}
_COUNTS = {"tokensIn": "input", "tokensOut": "output", "cacheReads": "cache_read", "cacheWrites": "cache_write"}


def with_cancels(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages, with one of our own where a request ended that was cancelled: that stands at its beginning."""
    waiting: dict[str, Any] | None = None
    for row in rows:
        kind = row.get("say") if row.get("type") == "say" else row.get("ask")
        if waiting is not None and kind in ("api_req_started", "user_feedback", "resume_task", "task"):
            yield waiting
            waiting = None
        yield row
        if kind == "api_req_started":
            reason = object_of(row.get("text")).get("cancelReason")
            if isinstance(reason, str) and reason:
                told = object_of(row.get("text")).get("streamingFailedMessage")
                waiting = {"type": "say", "say": "request_cancelled", "reason": reason, "text": told}
    if waiting is not None:
        yield waiting


class TaskReader:
    """The `Reader` of the messages that a task showed; always folded from its beginning."""

    def __init__(self, native: str | None) -> None:
        self._native = native
        self._turn = "head"
        self._counts: Counter[str] = Counter()
        self._asked: str | None = None
        self._begun = self._ended = False
        self._cwd: str | None = None
        self._model: str | None = None
        self._call: Event | None = None
        self._output: Event | None = None

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        side = record.get("type")
        name = record.get(side) if side in ("say", "ask") else None
        text = record.get("text")
        if not isinstance(name, str) or not isinstance(text, (str, type(None))):
            event = self._event(record, EventType.UNKNOWN, "")
            event.raw = record
            return Parsed(f"{side}"[:20], [event])
        info = record.get("modelInfo")
        model = info.get("modelId") if isinstance(info, dict) else None
        self._model = model if isinstance(model, str) and model else self._model
        items, reason = self._message(record, f"{side}", name, text or "")
        if side == "ask":
            self._asked = name
        return Parsed(f"{side}/{name}", items, None if items else reason)

    def _message(self, record: dict[str, Any], side: str, name: str, text: str) -> tuple[list[Item], str]:
        if name in _QUIET:
            return [], _QUIET[name]
        if name == "api_req_started":
            return self._request(record, text)
        if name in ("task", "user_feedback") or (name == "text" and side == "say" and not self._begun):
            return self._prompt(record, name, text)
        if name in ("text", "completion_result", "plan_mode_respond", "act_mode_respond", "followup"):
            return self._answer(record, side, name, text)
        if name == "reasoning":
            return self._visible(record, EventType.REASONING, text), "an empty message"
        if name in ("command_output", "mcp_server_response", "browser_action_result"):
            return self._result(record, name, text), "an empty output"
        if name in ("tool", "command", "use_mcp_server", "browser_action_launch", "browser_action", "use_subagents"):
            return [self._called(record, name, text)], ""
        if name in ("condense_context", "sliding_window_truncation", "summarize_task"):
            condensed = record.get("contextCondense")
            summary = condensed.get("summary") if isinstance(condensed, dict) else None
            return [self._event(record, EventType.COMPACTION, summary if isinstance(summary, str) else text)], ""
        if name == "request_cancelled":
            reason = record.get("reason")
            event = self._event(record, EventType.RUNTIME, f"request {reason}" + (f": {text}" if text else ""))
            event.ends, self._ended = _CANCELS.get(f"{reason}", End.STOPPED), True
            return [event], ""
        if name in ("api_req_failed", "mistake_limit_reached", "auto_approval_max_req_reached"):
            event = self._event(record, EventType.RUNTIME, text or name)
            event.ends = End.CRASHED if name == "api_req_failed" else End.STOPPED
            return [event], ""
        if name in ("resume_task", "resume_completed_task"):
            event = self._event(record, EventType.RUNTIME, text or name)
            # Asked when a task is opened again: what ran before had stopped.
            event.ends = None if self._ended or name != "resume_task" else End.STOPPED
            return [event], ""
        if name in _TROUBLE or name in _TOLD:
            kind = EventType.RUNTIME if name in _TROUBLE else EventType.SYSTEM
            return self._visible(record, kind, text), "an empty message"
        event = self._event(record, EventType.UNKNOWN, text)
        event.raw = record
        return [event], ""

    def _prompt(self, record: dict[str, Any], name: str, text: str) -> tuple[list[Item], str]:
        pictures = record.get("images")
        notes = ["[image]"] * (len(pictures) if isinstance(pictures, list) else 0)
        typed = "\n".join([text, *notes] if text else notes)
        if not typed.strip():
            return [], "an empty message"
        opens = not self._begun or name == "task" or self._asked in _IDLE
        if opens:
            number = self._counts[f"prompt:{typed}"] = self._counts[f"prompt:{typed}"] + 1
            self._turn = f"{text_digest(typed)}.{number}"
            self._begun, self._ended, self._asked, self._call, self._output = True, False, None, None, None
        event = self._event(record, EventType.USER_INPUT, typed)
        event.opens = event.settles = opens
        return [event], ""

    def _answer(self, record: dict[str, Any], side: str, name: str, text: str) -> tuple[list[Item], str]:
        told = object_of(text)
        words = told.get("response", told.get("question")) if told and name != "text" else text
        words = words.removesuffix(_CHANGED).strip() if isinstance(words, str) else text
        if not words:
            return [], "asks for feedback" if side == "ask" else "an empty message"
        event = self._event(record, EventType.ASSISTANT_RESPONSE, words)
        options = told.get("options")
        event.extra = {"options": options} if isinstance(options, list) and options else None
        event.partial = record.get("partial") is True
        if name in ("completion_result", "plan_mode_respond") and not event.partial:
            event.ends, self._ended = End.FINAL, True
        return [event], ""

    def _visible(self, record: dict[str, Any], kind: EventType, text: str) -> list[Item]:
        return [self._event(record, kind, text)] if text.strip() else []

    def _called(self, record: dict[str, Any], name: str, text: str) -> Event:
        told = object_of(text)
        event = self._event(record, EventType.TOOL_CALL, "")
        event.tool, event.arguments = name, told or {"text": text}
        if name == "tool":
            event.tool = told["tool"] if isinstance(told.get("tool"), str) else "tool"
            event.arguments = {key: value for key, value in told.items() if key != "tool"} if told else event.arguments
        elif name == "command":
            event.tool, event.arguments = "execute_command", {"command": text}
        elif name == "use_mcp_server":
            spelled = f"mcp__{told.get('serverName')}__{told.get('toolName') or told.get('type')}"
            event.tool = toolnames.canonical(spelled)
            event.original_tool = spelled if event.tool != spelled else None
            inner = told.get("arguments")
            event.arguments = parsed_arguments(inner) if isinstance(inner, str) and inner else told
        event.call_id = event.key
        self._call, self._output = event, None
        return event

    def _result(self, record: dict[str, Any], name: str, text: str) -> list[Item]:
        if name == "browser_action_result":
            logs = object_of(text).get("logs")
            text = logs if isinstance(logs, str) else ""
        if not text.strip():
            return []
        if self._output is not None and name == "command_output":
            # Output comes in pieces.
            self._output.text += "\n" + text
            return [Amend(self._output.key, {"text": self._output.text})]
        event = self._event(record, EventType.TOOL_RESPONSE, text)
        if self._call is not None:
            event.tool, event.original_tool, event.call_id = (
                self._call.tool, self._call.original_tool, self._call.call_id,
            )  # fmt: skip
        self._output = Event(event.key, event.type, event.text)
        return [event]

    def _request(self, record: dict[str, Any], text: str) -> tuple[list[Item], str]:
        told = object_of(text)
        request = told.get("request")
        found = _FOLDER.search(request) if isinstance(request, str) else None
        self._cwd = found[1] if found else self._cwd
        usage = {to: told[name] for name, to in _COUNTS.items() if isinstance(told.get(name), int) and told[name]}
        if not usage:
            return [], "the start of a request"
        event = self._event(record, EventType.SYSTEM, "")
        event.extra = {"usage": usage}
        return [event], ""

    def _event(self, record: dict[str, Any], kind: EventType, text: str) -> Event:
        self._counts[f"{self._turn}:{kind}"] += 1
        key = f"{self._turn}:{kind}:{self._counts[f'{self._turn}:{kind}']}"
        event = Event(key, kind, text, epoch_ms(record.get("ts")), cwd=self._cwd)
        if kind not in (EventType.USER_INPUT, EventType.SYSTEM):
            event.generator = self._model
        return event
