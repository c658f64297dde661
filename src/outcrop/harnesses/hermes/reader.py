"""The reader of one session: what becomes of its messages, wherever they were stored.

A prompt opens a turn; a message without calls ends it. What the program writes in the user's name (summaries, notices,
instructions of a skill) opens none.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from outcrop.calls import RAW
from outcrop.harnesses import jsonl
from outcrop.harnesses.content import parsed_arguments
from outcrop.harnesses.hermes.messages import (
    MERGED,
    PRIOR,
    SUMMARY_END,
    calls_of,
    content_of,
    is_summary,
    mapping,
    text,
    time_ms,
)  # fmt: skip
from outcrop.harnesses.toolnames import canonical
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Fact, Item, Parsed, Relation

INTERIM = frozenset({"tool_calls", "incomplete", "verification_required", "verify_hook_continue"})
"""Ends of a message after which the loop goes on."""

_SKILL = re.compile(r"\s*\[(?:SYSTEM|IMPORTANT): The user has invoked the \"([^\"]+)\" skill")
_INSTRUCTION = re.compile(r"The user has provided the following instruction alongside the skill invocation:\s*")
_NOTE = re.compile(r"\n\s*\[Runtime note:")
_NOTICE = re.compile(
    r"\s*(?:\[(?:SYSTEM:|[Ss]ystem note:|ASYNC DELEGATION|IMPORTANT: Background process)"
    r"|Continue from the compressed conversation context above\.)"
)
_REVIEW = re.compile(r"\s*Review the conversation above and (?:update the skill library|consider saving to memory)")
_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_TITLES = {"user": "title.user", "derived": "title.summary"}
_KEPT = ("edits", "files_modified", "files_created", "files_deleted")


class HermesReader:
    """The `Reader` of one session; `native` is its id."""

    def __init__(self, native: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._native: str | None = native or known.get("native")
        self._model: str | None = known.get("model")
        self._cwd: str | None = known.get("cwd")
        self._branch: str | None = known.get("branch")
        self._platform: str | None = known.get("platform")
        self._calls: dict[str, list[str | None]] = dict(known.get("calls", {}))
        self._pending: dict[str, str] = dict(known.get("pending", {}))
        self._ended: bool = known.get("ended", False)
        self._asked: bool = known.get("asked", False)
        self._review: bool = known.get("review", False)
        self._key = ""
        self._copied: list[str] | None = None
        self._time: int | None = None
        self._undone = False

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {
            "native": self._native, "model": self._model, "cwd": self._cwd, "branch": self._branch,
            "platform": self._platform, "calls": dict(self._calls), "pending": dict(self._pending),
            "ended": self._ended, "asked": self._asked, "review": self._review,
        }  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind = record.get("record")
        if kind == "session":
            return Parsed("session", self._session(record))
        if kind == "ended":
            items = self._end(record)
            return Parsed("ended", items, None if items else "has not ended")
        self._at("saved", None, None)
        if kind == "saved":
            self._time = time_ms(record.get("time"))
            items = [] if self._time is None else [self._event("", EventType.SYSTEM, "")]
            return Parsed("saved", items, None if items else "has no time of its own")
        message = record.get("message")
        if kind != "message" or not isinstance(message, dict):
            return Parsed("?", reason="no record of Hermes", keep=record)
        copied = record.get("copied")
        pair = (
            copied
            if isinstance(copied, list) and len(copied) == 2 and all(isinstance(x, str) for x in copied)
            else None
        )
        self._at(text(record, "key"), pair, message)
        role = text(message, "role")
        if role == "session_meta":
            return Parsed("message/session_meta", reason="repeats what is said of the session", keep=message)
        handler = {"user": self._user, "assistant": self._assistant, "tool": self._tool}.get(role, self._other)
        items = handler(message)
        return Parsed(f"message/{role or '?'}", items, None if items else "says nothing")

    # Records

    def _session(self, record: dict[str, Any]) -> list[Item]:
        self._native = self._native or text(record, "id") or None
        config = mapping(record.get("model_config"))
        self._model = text(record, "model") or None
        self._cwd = text(record, "cwd") or text(config, "cwd") or None
        self._branch = text(record, "git_branch") or None
        self._platform = text(record, "source") or text(record, "platform") or None
        self._at("session", None, None)
        started = next((time for name in ("started_at", "session_start", "timestamp")
                        if (time := time_ms(record.get(name))) is not None), None)  # fmt: skip
        self._time = started
        event = self._event("", EventType.SYSTEM, text(record, "system_prompt"))
        extra = {"platform": self._platform, "model": self._model, "host": _host(text(record, "base_url")),
                 "usage": record.get("usage"), "chat": text(record, "display_name") or None}  # fmt: skip
        event.extra = {name: value for name, value in extra.items() if value} or None
        found: list[Item] = [event]
        if started is not None:
            found.append(Fact("created", started))
        if text(record, "title").strip():
            named = _TITLES.get(text(record, "title_source"), "title.generated")
            found.append(Fact(named, text(record, "title").strip()))
        parent, relation = text(record, "parent"), record.get("relation")
        if parent and relation in tuple(Relation):
            found += [Fact("parent", parent), Fact("relation", Relation(relation))]
        return found

    def _end(self, record: dict[str, Any]) -> list[Item]:
        """The end of the session: of its last turn too, unless that ended by itself or goes on elsewhere."""
        reason = text(record, "reason")
        time = time_ms(record.get("time"))
        if time is None and not reason:
            return []
        self._at("ended", None, None)
        self._time = time
        event = self._event("", EventType.RUNTIME, reason)
        if self._asked and not self._ended and reason not in ("compression", "branched"):
            event.ends = End.EXITED
        return [event]

    def _user(self, message: dict[str, Any]) -> list[Item]:
        said, notes = content_of(message.get("content"))
        found: list[Item] = []
        review = _REVIEW.match(said) is not None
        if is_summary(message) or MERGED.search(said):
            prior, summary, after = _summary(said)
            found.append(self._event("summary", EventType.COMPACTION, summary))
            said = prior or after
        elif message.get("display_kind") == "hidden" or review or (_NOTICE.match(said) and not _SKILL.match(said)):
            self._review = review
            return [self._event("", EventType.SYSTEM, said)]
        skill = _SKILL.match(said)
        if skill:
            found.append(self._event("skill", EventType.SYSTEM, said))
            given = _INSTRUCTION.split(said, maxsplit=1)
            typed = _NOTE.split(given[1], maxsplit=1)[0].strip() if len(given) > 1 else ""
            said = typed or f"/{skill[1]}"
        self._review = False
        if said.strip() or notes:
            found = [*self._open(said), *found]
        if notes:
            found.append(self._event("attached", EventType.SYSTEM, "\n".join(notes)))
        return found

    def _open(self, said: str) -> list[Item]:
        found: list[Item] = []
        if self._pending and not self._ended and not self._undone:
            # A prompt right behind calls that nobody answered: the user broke in.
            found.append(Amend(next(reversed(self._pending.values())), {"ends": End.INTERRUPTED}))
        self._pending = {}
        self._ended, self._asked = False, True
        event = self._event("", EventType.USER_INPUT, said)
        event.opens = True
        if self._platform not in (None, "cli", "tui"):
            event.extra = {"platform": self._platform}
        return [*found, event]

    def _assistant(self, message: dict[str, Any]) -> list[Item]:
        said, notes = content_of(message.get("content"))
        self._pending = {}
        if self._review:
            self._review = False
            return [self._event("", EventType.SYSTEM, said)] if said.strip() else []
        if is_summary(message):
            return [self._event("summary", EventType.COMPACTION, said)]
        thought, sealed = _reasoning(message)
        said, inline = _THINK.sub("", said), "\n".join(part.strip() for part in _THINK.findall(said))
        thought = thought or inline
        found: list[Item] = []
        if thought or sealed:
            event = self._event("thought", EventType.REASONING, thought or ENCRYPTED_PLACEHOLDER)
            event.extra = {"encrypted_content": sealed} if sealed else None
            found.append(event)
        calls = calls_of(message)
        finish = text(message, "finish_reason")
        if said.strip():
            event = self._event("", EventType.ASSISTANT_RESPONSE, said)
            told = {"finish": finish or None, "token_count": message.get("token_count")}
            event.extra = {name: value for name, value in told.items() if value} or None
            event.partial = not calls and finish in INTERIM
            if not calls and finish not in INTERIM:
                event.ends = End.CRASHED if finish == "error" else End.FINAL
            found.append(event)
            self._ended = event.ends is not None
        if notes:
            found.append(self._event("attached", EventType.SYSTEM, "\n".join(notes)))
        for place, call in enumerate(calls):
            found.append(self._call(place, call))
        return found

    def _call(self, place: int, call: dict[str, Any]) -> Event:
        name, id, given = call["name"], call["id"], call["arguments"]
        event = self._event(f"call{place}", EventType.TOOL_CALL, "")
        event.tool = canonical(name) if name else None
        event.original_tool = name if name and event.tool != name else None
        event.call_id = id or None
        if isinstance(given, str):
            event.arguments = parsed_arguments(given) if given.strip() else {}
        else:
            event.arguments = given if isinstance(given, dict) else {} if given is None else {RAW: str(given)}
        self._ended = False
        if id:
            self._calls[id] = [event.tool, event.original_tool]
        self._pending[id or event.key] = event.key
        return event

    def _tool(self, message: dict[str, Any]) -> list[Item]:
        id = text(message, "tool_call_id")
        name = text(message, "name") or text(message, "tool_name")
        known = self._calls.get(id) or [canonical(name) if name else None, None]
        self._pending.pop(id if id in self._pending else next(iter(self._pending), ""), None)
        said, notes = content_of(message.get("content"))
        event = self._event("", EventType.TOOL_RESPONSE, said)
        event.tool, event.original_tool = known
        event.call_id = id or None
        _result(event, said)
        if text(message, "finish_reason") == "error":
            event.is_error = True
        if notes:
            event.text = "\n".join(filter(None, [event.text, *notes]))
        return [event]

    def _other(self, message: dict[str, Any]) -> list[Item]:
        said, _ = content_of(message.get("content"))
        if text(message, "role") in ("system", "developer"):
            return [self._event("", EventType.SYSTEM, said)] if said.strip() else []
        event = self._event("", EventType.UNKNOWN, "")
        event.raw = message
        return [event]

    # What events are made with

    def _at(self, key: str, copied: list[str] | None, message: dict[str, Any] | None) -> None:
        self._key, self._copied = key, copied
        self._time = time_ms(message.get("timestamp")) if message is not None else None
        self._undone = message is not None and message.get("undone") is True

    def _event(self, part: str, kind: EventType, said: str) -> Event:
        end = f":{part}" if part else ""
        event = Event(f"{self._key}{end}", kind, said, self._time, cwd=self._cwd, branch=self._branch)
        if self._copied is not None:
            event.origin = (self._copied[0], f"{self._copied[1]}{end}")
        event.superseded = self._undone
        if kind not in (EventType.USER_INPUT, EventType.SYSTEM, EventType.RUNTIME, EventType.UNKNOWN):
            event.generator = self._model
        return event


def _summary(said: str) -> tuple[str, str, str]:
    """(what stood before, the summary, what a person wrote behind it)."""
    prior = ""
    merged = MERGED.search(said)
    if merged:
        prior, said = PRIOR.sub("", said[: merged.start()], count=1).strip(), said[merged.end() :]
    end = SUMMARY_END.search(said)
    return (prior, said[: end.start()].rstrip(), said[end.end() :].strip()) if end else (prior, said, "")


def _reasoning(message: dict[str, Any]) -> tuple[str, Any]:
    """The thoughts of a message, and what of them is sealed."""
    thought = text(message, "reasoning") or text(message, "reasoning_content")
    listed: list[Any] = []
    for name in ("reasoning_details", "codex_reasoning_items"):
        value = message.get(name)
        if isinstance(value, str):
            try:
                value = jsonl.document(value.encode("utf-8", "replace"))
            except ValueError:
                value = None
        listed += value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    items = [item for item in listed if isinstance(item, dict)]
    sealed = [sealed for item in items if (sealed := item.get("encrypted_content") or item.get("data"))]
    if not thought:
        parts = [part for item in items for part in (item, *_dicts(item.get("summary")))]
        thought = "\n".join(filter(None, (text(part, "text") or text(part, "summary") for part in parts)))
    return thought, sealed


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _result(event: Event, said: str) -> None:
    """Take a result that is JSON apart: its output, its exit code, whether it failed, the paths that only it knows."""
    if not said.lstrip().startswith("{"):
        return
    result = mapping(said)
    code, error, done = result.get("exit_code"), result.get("error"), result.get("success")
    if isinstance(code, int) and not isinstance(code, bool):
        event.exit_code = code
    if not {"exit_code", "error", "success"}.isdisjoint(result):
        event.is_error = bool(error) or done is False or bool(event.exit_code)
    extra: dict[str, Any] = {}
    output = result.pop("output", None)
    if isinstance(output, str):
        event.text = output or (error if isinstance(error, str) else "")
        rest = {name: value for name, value in result.items() if name != "exit_code" and value is not None}
        extra = {"result": rest} if rest else {}
    paths = [path for name in _KEPT for path in _texts(result.get(name))]
    if paths:
        extra["paths"] = list(dict.fromkeys(paths))
    event.extra = extra or None


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
