"""Kiro's newest layout: `messages.jsonl` and `session.json` in a folder for each session.

No description by its maker is public; this is what several readers of it agree on. Times are ISO dates. What agents of
the session say comes in between, marked with an id, and makes sessions of its own.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from outcrop.harnesses import Side, SourceFile, jsonl
from outcrop.harnesses.documents import FactsReader
from outcrop.harnesses.json_values import digest, object_of, objects, shown, string, strings
from outcrop.harnesses.kiro_cli.talk import Talk
from outcrop.harnesses.moments import time_ms
from outcrop.model import End, Event, EventType, Fact, Item, Parsed, Relation

_LIMIT = 8 << 20
_NOISE = frozenset(
    {"session_start", "session_metadata", "turn_start", "steering_inclusion", "pending_interaction",
     "interaction_resolved"}
)  # fmt: skip
_ENDS = {"cancelled": End.CANCELLED, "canceled": End.CANCELLED, "aborted": End.CANCELLED, "error": End.CRASHED,
         "failed": End.CRASHED}  # fmt: skip
_ELIDED = "..."


class MessagesReader:
    """Reads one session's messages."""

    def __init__(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> None:
        known = state or {}
        self._file = file
        self._talks = {name: Talk.of(kept) for name, kept in known.get("talks", {"": None}).items()}
        folder = str(PurePath(file.path).parent)
        text = None if known else side.text(str(PurePath(folder) / "session.json"), folder, _LIMIT)
        document = _document(text)
        folders = strings(document.get("workspacePaths"))
        self._cwd: str | None = known.get("cwd") or (folders[0] if folders else None)
        model = string(document, "modelId")
        self._model: str | None = known.get("model") or (model if model != "auto" else None) or None

    @property
    def session(self) -> str | None:
        return self._file.native

    def state(self) -> dict[str, Any]:
        talks = {name: talk.state() for name, talk in self._talks.items()}
        return {"talks": talks, "cwd": self._cwd, "model": self._model}

    def feed(self, record: dict[str, Any]) -> Parsed:
        payload = object_of(record, "payload") or record
        kind = string(payload, "type") or string(payload, "role")
        agent = string(payload, "subExecutionId")
        first: list[Item] = []
        if agent and agent not in self._talks:
            self._talks[agent] = Talk()
            first = [Fact("parent", self._file.native), Fact("relation", Relation.SUBAGENT)]
        found = self._read(self._talks[agent], kind, payload, record)
        if isinstance(found, str):
            return Parsed(kind, reason=found)
        time = time_ms(record.get("timestamp"))
        for item in found:
            item.time, item.cwd = time, self._cwd
            if item.type in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL):
                item.generator = self._model
        items = [*first, *found]
        for one in items:
            one.session = f"{self._file.native}/{agent}" if agent else None
        return Parsed(kind or "?", items, None if items else "says nothing")

    def _read(self, talk: Talk, kind: str, p: dict[str, Any], record: dict[str, Any]) -> list[Event] | str:
        text = _content(p.get("content"))
        if kind in _NOISE:
            return "bookkeeping of the program"
        if kind == "user":
            if object_of(object_of(p, "_meta"), "kiro").get("syntheticUserMessageReason"):
                return [talk.said(EventType.SYSTEM, text)]
            return [talk.prompt(text)] if text else "says nothing"
        if kind == "assistant":
            return self._assistant(talk, p, text, record)
        if kind == "tool_call":
            return [talk.call(string(p, "toolCallId"), string(p, "toolName"), p.get("args"))]
        if kind == "tool_result":
            event = talk.result(string(p, "toolCallId"), "", [text])
            success = p.get("success")
            event.is_error = not success if isinstance(success, bool) else None
            return [event]
        if kind == "usage_summary":
            spent = [one.get("usage") for one in objects(p.get("promptTurnSummaries"))]
            numbers = [value for value in spent if isinstance(value, int | float) and not isinstance(value, bool)]
            extra = {"credits": sum(numbers)} if numbers else None
            return [Event(talk.keys.key("usage"), EventType.SYSTEM, extra=extra)]
        if kind == "turn_end":
            reason = string(p, "stopReason")
            ends = _ENDS.get(reason.lower(), End.FINAL)
            return [
                Event(talk.keys.key("end"), EventType.RUNTIME, ends=ends, extra={"reason": reason} if reason else None)
            ]
        return [talk.unknown(digest({**record, "timestamp": None, "id": None}), record)]

    def _assistant(self, talk: Talk, p: dict[str, Any], text: str, record: dict[str, Any]) -> list[Event] | str:
        operation = string(p, "operationType")
        if not text or (operation == "Reasoning" and text == _ELIDED):
            return "says nothing"
        if operation == "Reasoning":
            return [talk.said(EventType.REASONING, text)]
        if operation in ("", "Say"):
            return [talk.said(EventType.ASSISTANT_RESPONSE, text)]
        return [talk.unknown(digest({**record, "timestamp": None, "id": None}), record)]


class SessionReader(FactsReader):
    """Reads `session.json`."""

    kind = "session"

    def facts(self, record: dict[str, Any]) -> list[Item]:
        items: list[Item] = []
        if title := string(record, "title").strip():
            items.append(Fact("title.generated", title))
        created = time_ms(record.get("createdAt"))
        if created is not None:
            items.append(Fact("created", created))
        return items


def _document(text: str | None) -> dict[str, Any]:
    try:
        document = jsonl.document(text.encode("utf-8", "replace")) if text else None
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _content(value: Any) -> str:
    """The text of a message: a text, or lists of blocks that may hold lists again."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_content, value)))
    if isinstance(value, dict):
        return string(value, "text") or _content(value.get("content")) or ("" if "content" in value else shown(value))
    return value if isinstance(value, str) else ""
