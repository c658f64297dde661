"""The reader of one session or of one worker.

Records are named by their rows: a reverted transcript gives a place to a row of its own, a changed row stays the same.
What a worker did is recorded shortened, for show; the event says so.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any
from urllib.parse import urlsplit

from outcrop.calls import RAW
from outcrop.harnesses import jsonl
from outcrop.harnesses.content import attachment_note, block_text, parsed_arguments
from outcrop.harnesses.json_values import string
from outcrop.harnesses.moments import iso_ms
from outcrop.harnesses.toolnames import canonical
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed, Relation

CANCELLED, FAILED = "[run cancelled by user]", "[run failed after this partial assistant response]"
TOOL_CANCELLED = "[tool call cancelled by user]"

_ENDS = {"ok": End.FINAL, "error": End.CRASHED, "timed_out": End.CRASHED, "cancelled": End.CANCELLED}
_FRACTION = re.compile(r"\.(\d{6})\d+$")
_QUIET = {
    "run_started": "marks the start of a run",
    "model_call_started": "marks a call of the model",
    "token_usage_updated": "a running count",
    "thread_started": "names the task, which stands before it",
    "thread_steering_queued": "is delivered later",
    "orchestrator_steering_queued": "is delivered later",
    "run_finished": "the end of the thread follows",
}
_TOLD = {
    "error": EventType.RUNTIME,
    "model_error": EventType.RUNTIME,
    "thread_steering_expired": EventType.RUNTIME,
    "thread_log": EventType.SYSTEM,
    "mcp_server_skipped": EventType.SYSTEM,
}


class NacReader:
    """The `Reader` of one session; `native` is its id."""

    def __init__(self, native: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._native: str | None = native or known.get("native")
        self._model: str | None = known.get("model")
        self._cwd: str | None = known.get("cwd")
        self._calls: dict[str, list[str | None]] = dict(known.get("calls", {}))
        self._asked: bool = known.get("asked", False)
        self._ended: bool = known.get("ended", False)
        self._time: int | None = None
        self._key = ""
        self._branch: str | None = None
        self._copied: tuple[str, str] | None = None
        self._own: str | None = None

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {
            "native": self._native, "model": self._model, "cwd": self._cwd, "calls": dict(self._calls),
            "asked": self._asked, "ended": self._ended,
        }  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind = record.get("record")
        self._time = time_ms(record.get("time"))
        self._branch = self._copied = self._own = None
        if kind == "session":
            return Parsed("session", self._session(record))
        if kind == "message":
            return self._message(record)
        if kind == "compaction":
            self._time, self._key = time_ms(record.get("created_at")), f"compaction{record.get('id')}"
            return Parsed("compaction", [self._event("", EventType.COMPACTION, string(record, "summary"))])
        if kind == "saved":
            # Older versions wrote a whole transcript at once, and its time is all that they tell of it.
            self._key = "saved"
            items = [] if self._time is None else [self._event("", EventType.SYSTEM, "")]
            return Parsed("saved", items, None if items else "has no time")
        if kind == "recovery":
            return self._recovery(record)
        self._key = string(record, "key")
        if kind == "task":
            self._asked, self._ended = True, False
            event = self._event("task", EventType.USER_INPUT, string(record, "action"))
            event.opens = True
            return Parsed("task", [event])
        if kind == "episode":
            return Parsed("episode", self._episode(record))
        if kind == "event":
            return self._worker_event(record)
        return Parsed("?", reason="no record of nac", keep=record)

    # A session

    def _session(self, record: dict[str, Any]) -> list[Item]:
        self._native = self._native or string(record, "id") or None
        self._model = string(record, "model") or None
        self._cwd = string(record, "cwd") or None
        self._key, self._time = "session", time_ms(record.get("created_at"))
        event = self._event("", EventType.SYSTEM, "")
        extra = {name: record.get(name) for name in
                 ("model", "backend", "reasoning_effort", "remote", "usage", "usage_unattributed")}  # fmt: skip
        event.extra = {name: value for name, value in (extra | {"host": _host(record)}).items() if value} or None
        found: list[Item] = [event]
        if self._time is not None:
            found.append(Fact("created", self._time))
        if string(record, "title").strip():
            found.append(Fact("title.generated", string(record, "title").strip()))
        relation = {"fork": Relation.FORK, "subagent": Relation.SUBAGENT}.get(string(record, "relation"))
        if string(record, "parent") and relation is not None:
            found += [Fact("parent", string(record, "parent")), Fact("relation", relation)]
        if string(record, "agent"):
            found.append(Fact("agent", string(record, "agent")))
        return found

    def _message(self, record: dict[str, Any]) -> Parsed:
        message = record.get("message")
        self._key = string(record, "key")
        if not isinstance(message, dict):
            return Parsed("message/?", [self._unknown(message)])
        self._branch = string(record, "branch") or None
        match record.get("copied"):
            case [str(session), str(key)]:
                self._copied = (session, key)
        origin = message.get("model_origin")
        self._own = (string(origin, "model") if isinstance(origin, dict) else "") or None
        role = string(message, "role")
        said = _content(message.get("content"))
        found: list[Item]
        if role == "user":
            event = self._event("", EventType.USER_INPUT, said)
            event.opens, self._asked, self._ended = True, True, False
            found = [event]
        elif role == "assistant":
            found = self._assistant(message, said, record.get("usage"))
        elif role == "tool":
            found = [self._result(string(message, "tool_call_id"), said)]
        elif role in ("system", "developer"):
            found = [self._event("", EventType.SYSTEM, said)]
        else:
            found = [self._unknown(message)]
        return Parsed(f"message/{role or '?'}", found, None if found else "says nothing")

    def _assistant(self, message: dict[str, Any], said: str, usage: Any) -> list[Item]:
        found: list[Item] = []
        thought = string(message, "reasoning_text") or string(message, "reasoning_content")
        details = message.get("reasoning_details")
        listed = details if isinstance(details, list) else [details]
        sealed = [one for item in listed if isinstance(item, dict)
                  if (one := item.get("data") or item.get("encrypted_content"))]  # fmt: skip
        if thought or sealed:
            event = self._event("thought", EventType.REASONING, thought or ENCRYPTED_PLACEHOLDER)
            event.extra = {"encrypted_content": sealed} if sealed else None
            found.append(event)
        given = message.get("tool_calls")
        calls = [call for call in given if isinstance(call, dict)] if isinstance(given, list) else []
        failed = said.rstrip().endswith(FAILED)
        if failed:
            said = said.rstrip().removesuffix(FAILED).rstrip()
        if said.strip() == CANCELLED:
            found.append(self._ending("cancelled", CANCELLED, End.CANCELLED))
        elif said.strip():
            event = self._event("", EventType.ASSISTANT_RESPONSE, said)
            told = {"usage": usage, "duration_ms": message.get("duration_ms")}
            event.extra = {name: value for name, value in told.items() if value} or None
            event.partial = failed
            if not calls and not failed:
                event.ends, self._ended = End.FINAL, True
            found.append(event)
        if failed:
            found.append(self._ending("failed", FAILED, End.CRASHED))
        for place, call in enumerate(calls):
            inner = call.get("function")
            function = inner if isinstance(inner, dict) else call
            event = self._call(f"call{place}", string(function, "name"), string(call, "id"), function.get("arguments"))
            self._ended = False
            found.append(event)
        return found

    def _recovery(self, record: dict[str, Any]) -> Parsed:
        status = string(record, "status")
        self._key = f"recovery:{string(record, 'run_id')}"
        if status not in ("interrupted", "failed"):
            return Parsed("recovery", reason="the run goes on" if status == "active" else "says nothing", keep=record)
        if self._ended or not self._asked:
            return Parsed("recovery", reason="the turn ended by itself", keep=record)
        return Parsed("recovery", [self._ending("", status, End.CRASHED)])

    # A worker

    def _episode(self, record: dict[str, Any]) -> list[Item]:
        status = string(record, "status") or "ok"
        content = string(record, "content")
        if status == "ok" and content.strip():
            event = self._event("answer", EventType.ASSISTANT_RESPONSE, content)
            event.ends = End.FINAL
            return [event]
        return [self._ending("answer", content or status, _ENDS.get(status, End.STOPPED))]

    def _worker_event(self, record: dict[str, Any]) -> Parsed:
        event = record.get("event")
        kind = string(event, "type") if isinstance(event, dict) else "?"
        if kind in _QUIET:
            return Parsed(f"event/{kind}", reason=_QUIET[kind])
        if not isinstance(event, dict):
            return Parsed("event/?", [self._unknown(event)])
        found = self._done(kind, event, record)
        if isinstance(found, str):
            return Parsed(f"event/{kind}", reason=found)
        return Parsed(f"event/{kind or '?'}", [found])

    def _done(self, kind: str, event: dict[str, Any], record: dict[str, Any]) -> Event | str:
        if kind == "tool_call_started":
            given = string(event, "args_detail") or string(event, "args_preview")
            call = self._call("", string(event, "name"), string(event, "call_id"), given)
            call.extra = {"truncated": True} if isinstance(call.arguments, dict) and RAW in call.arguments else None
            return call
        if kind == "tool_call_finished":
            response = self._result(string(event, "call_id"), string(event, "content_preview"), string(event, "name"))
            code, failed = event.get("exit_code"), event.get("is_error")
            response.exit_code = code if isinstance(code, int) and not isinstance(code, bool) else response.exit_code
            response.is_error = (failed or bool(response.exit_code)) if isinstance(failed, bool) else response.is_error
            told = {name: event[name] for name in ("command_status", "completion_status") if event.get(name)}
            response.extra = told | {"truncated": True}
            return response
        if kind == "assistant_message":
            said = string(event, "content")
            if said == record.get("answer"):
                return "the episode repeats it"
            answer = self._event("", EventType.ASSISTANT_RESPONSE, said)
            answer.extra = {"usage": event["usage"]} if event.get("usage") else None
            return answer if said.strip() else "says nothing"
        if kind in ("thread_steering_delivered", "orchestrator_steering_delivered"):
            return self._event("", EventType.USER_INPUT, string(event, "instruction_preview"))
        if kind == "thread_finished":
            ends = (
                End.CRASHED if event.get("timed_out") is True or event.get("exit_code") not in (0, None) else End.FINAL
            )
            told = {
                name: event[name] for name in ("exit_code", "timed_out", "timeout_reason", "usage") if event.get(name)
            }
            finished = self._event("", EventType.RUNTIME, "timed out" if event.get("timed_out") is True else "finished")
            finished.extra = told or None
            finished.ends = None if record.get("done") else ends
            return finished
        if kind in _TOLD:
            parts = ("message", "line", "reason", "instruction_preview")
            return self._event("", _TOLD[kind], next(filter(None, (string(event, part) for part in parts)), kind))
        return self._unknown(event)

    # What events are made with

    def _call(self, part: str, name: str, id: str, given: Any) -> Event:
        event = self._event(part, EventType.TOOL_CALL, "")
        event.tool = canonical(name) if name else None
        event.original_tool = name if name and event.tool != name else None
        event.call_id = id or None
        if isinstance(given, str):
            event.arguments = parsed_arguments(given) if given.strip() else {}
        else:
            event.arguments = given if isinstance(given, dict) else {} if given is None else {RAW: str(given)}
        if id:
            self._calls[id] = [event.tool, event.original_tool]
        return event

    def _result(self, id: str, said: str, name: str = "") -> Event:
        event = self._event("out", EventType.TOOL_RESPONSE, said)
        event.tool, event.original_tool = self._calls.get(id) or [canonical(name) if name else None, None]
        event.call_id = id or None
        if said.strip() == TOOL_CANCELLED:
            event.is_error = True
        elif said.lstrip().startswith("{"):
            try:
                result = jsonl.document(said.encode("utf-8", "replace"))
            except ValueError:
                return event
            code, status = result.get("exit_code"), result.get("status")
            event.exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
            if isinstance(status, str) or event.exit_code is not None or "error" in result:
                wrong = status in ("error", "failed", "timed_out", "cancelled", "spawn_error")
                event.is_error = wrong or bool(event.exit_code) or bool(result.get("error"))
            if isinstance(result.get("output"), str):
                event.text = result.pop("output")
                rest = {name: value for name, value in result.items() if name != "exit_code" and value is not None}
                event.extra = {"result": rest} if rest else None
        return event

    def _ending(self, part: str, said: str, ends: End) -> Event:
        event = self._event(part, EventType.RUNTIME, said)
        event.ends, self._ended = ends, True
        return event

    def _unknown(self, raw: Any) -> Event:
        event = self._event("unknown", EventType.UNKNOWN, "")
        event.raw = raw
        return event

    def _event(self, part: str, kind: EventType, said: str) -> Event:
        end = f":{part}" if part else ""
        key = f"{self._key}{end}"
        event = Event(key, kind, said, self._time, cwd=self._cwd, branch=self._branch)
        if self._copied is not None:
            event.origin = (self._copied[0], f"{self._copied[1]}{end}")
        if kind in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL):
            event.model = self._own
        if kind not in (EventType.USER_INPUT, EventType.SYSTEM, EventType.RUNTIME, EventType.UNKNOWN):
            event.generator = self._own or self._model
        return event


def time_ms(value: Any) -> int | None:
    """UTC ms of `YYYY-MM-DD HH:MM:SS`, with or without a fraction; it names no zone and means UTC."""
    return iso_ms(_FRACTION.sub(r".\1", value.strip()), UTC, int) if isinstance(value, str) else None


def _content(value: Any) -> str:
    """The text of content, with a note for each picture in it."""
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    pictures = ("image_url", "image", "input_image")
    shown = [attachment_note(part) if isinstance(part, dict) and part.get("type") in pictures else block_text(part)
             for part in parts]  # fmt: skip
    return "\n".join(filter(None, shown))


def _host(record: dict[str, Any]) -> str | None:
    try:
        return urlsplit(string(record, "base_url")).hostname
    except ValueError:
        return None
