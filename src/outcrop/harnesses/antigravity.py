"""Antigravity (`antigravity`, agent tag `antigravity`): the transcripts that its agents keep beside their artifacts.

The conversations themselves are encrypted or protobuf without a published schema; the transcript is plain JSON lines,
one for each step, the same for the editor and the command line. Of two transcripts of a conversation the whole one is
read. Steps have a number but no id, and a step that is running may be written again when it is done.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Harness, Reader, Side, SourceFile, toolnames
from outcrop.harnesses.moments import iso_ms
from outcrop.model import Amend, End, Event, EventType, Item, Parsed

EDITOR, COMMAND_LINE = "antigravity", "antigravity-cli"
"""The two sources. A conversation can be handed from one program to the other, so they share their sessions."""

_LOGS = os.path.join(".system_generated", "logs")
_WHOLE, _SHORT, _HISTORY = "transcript_full.jsonl", "transcript.jsonl", "history.jsonl"
_HISTORY_LIMIT = 8 << 20
_PENDING = 32
"""Calls and unfinished steps that are remembered."""

_REQUEST = re.compile(r"<USER_REQUEST>\n?(.*?)\n?(?:</USER_REQUEST>|\Z)", re.DOTALL)
_MODEL = re.compile(r"`Model Selection` from .{0,200}? to (.+?)\.(?:\s|\Z)")
_EXIT = re.compile(r"^(?:The command )?(?:failed|exited|completed) with (?:exit )?code:? (-?\d{1,10})\b", re.MULTILINE)
_CREATED = re.compile(r"^(?:Created|Edited|Modified|Updated|Deleted) file (file://\S+)", re.MULTILINE)
_UNFINISHED = frozenset({"RUNNING", "PENDING", "GENERATING", "WAITING"})
_STOPPED = {"CANCELED": End.CANCELLED, "CANCELLED": End.CANCELLED, "INTERRUPTED": End.INTERRUPTED}
_SUITS = {
    "LIST_DIRECTORY": ("list_dir", "list_directory"),
    "VIEW_FILE": ("view_file", "read_file"),
    "RUN_COMMAND": ("run_command", "run_shell_command"),
    "GREP_SEARCH": ("grep_search",),
    "SEARCH_WEB": ("search_web",),
    "CODE_ACTION": ("write_to_file", "write_file", "replace_file_content", "multi_replace_file_content", "edit_file"),
}
"""Kind of a step → the tools whose result it is. Every other kind takes the oldest call without a result."""


class Antigravity(Harness):
    """The `Harness` of Google's editor and of `agy`, its command line."""

    name = "antigravity"
    title = "Antigravity"
    agent = "antigravity"
    sources: tuple[str, ...] = (EDITOR, COMMAND_LINE)
    version = 1
    folders = ("brain",)

    def group(self, source: str) -> str:
        return "antigravity"

    def roots(self, source: str, environment: Environment) -> list[Path]:
        data = environment.home / ".gemini"
        if source == COMMAND_LINE:
            return [data / "antigravity-cli"]
        return [data / "antigravity", data / "antigravity-ide"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        brain = root / "brain"
        if not brain.is_dir():
            return
        for native in sorted(os.listdir(brain)):
            for name in (_WHOLE, _SHORT):
                path = os.path.join(brain, native, _LOGS, name)
                if os.path.isfile(path):
                    yield SourceFile(path, source, native=native)
                    break

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        folder = None
        if state is None and file.native is not None:
            root = os.path.abspath(os.path.join(os.path.dirname(file.path), *[os.pardir] * 4))
            folder = _workspace(side.text(os.path.join(root, _HISTORY), root, _HISTORY_LIMIT), file.native)
        return StepReader(file.native, folder, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return ["agy", "--conversation", native] if source == COMMAND_LINE else None


class StepReader:
    """Reads one transcript; `native` is the conversation's id, `folder` its workspace as far as that is known."""

    def __init__(self, native: str | None, folder: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._native = native
        self._cwd: str | None = known.get("cwd", folder)
        self._model: str | None = known.get("model")
        self._last: int = known.get("last", -1)
        self._again: int = known.get("again", 0)
        self._seen: dict[str, int] = dict(known.get("seen", {}))
        self._running: dict[str, str] = dict(known.get("running", {}))
        self._calls: list[list[str]] = [list(call) for call in known.get("calls", ())]
        self._time: int | None = None

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {
            "cwd": self._cwd, "model": self._model, "last": self._last, "again": self._again,
            "seen": dict(self._seen), "running": dict(self._running), "calls": [list(call) for call in self._calls],
        }  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind, source, status = (_string(record.get(name)) for name in ("type", "source", "status"))
        self._time = iso_ms(record.get("created_at"))
        place = f"{record.get('step_index')}:{kind}"
        if place in self._running:
            return self._finished(place, kind, status, record)
        key = self._key(record.get("step_index"), kind)
        if status in _UNFINISHED and kind not in ("PLANNER_RESPONSE", "USER_INPUT"):
            self._running[place] = key
            while len(self._running) > _PENDING:
                del self._running[next(iter(self._running))]
        elif status in _UNFINISHED:
            return Parsed(kind, reason="not finished yet")
        if kind == "USER_INPUT" and source not in ("MODEL", "SYSTEM"):
            items = self._prompt(key, record)
        elif kind == "PLANNER_RESPONSE":
            items = self._answer(key, status, record)
        elif kind == "CHECKPOINT":
            items = [self._event(key, EventType.COMPACTION, record)]
        elif kind == "ERROR_MESSAGE":
            items = [self._event(key, EventType.RUNTIME, record, ends=End.CRASHED)]
        elif kind in _ANY_TOOL or (kind and source == "MODEL"):
            items = [self._result(key, kind, status, record)]
        elif kind in _CONTEXT or (kind and source == "SYSTEM" and isinstance(record.get("content"), str)):
            if not _string(record.get("content")):
                return Parsed(kind, reason="a mark without content")
            items = [self._event(key, EventType.SYSTEM, record)]
        else:
            items = [self._event(key, EventType.UNKNOWN, record, raw=record)]
        return Parsed(kind or "record", items, None if items else "says nothing")

    def _key(self, index: Any, kind: str) -> str:
        """Number and kind of a step. A number that goes back begins another branch; an equal one is counted."""
        if type(index) is not int:
            index = self._last
        if index < self._last:
            self._again += 1
        if index != self._last:
            self._last, self._seen = index, {}
        self._seen[kind] = self._seen.get(kind, 0) + 1
        name = f"{self._again}:{index}:{kind}" if self._again else f"{index}:{kind}"
        return name if self._seen[kind] == 1 else f"{name}#{self._seen[kind]}"

    def _prompt(self, key: str, record: dict[str, Any]) -> list[Item]:
        words = _string(record.get("content"))
        typed = _REQUEST.search(words)
        around = _REQUEST.sub("", words).strip() if typed else ""
        if model := _MODEL.search(around):
            self._model = model[1]
        self._calls = []
        event = self._event(key, EventType.USER_INPUT, record, opens=True, settles=True)
        event.text, event.generator = typed[1] if typed else words, None
        if around:
            event.extra = {**(event.extra or {}), "context": around}
        return [event]

    def _answer(self, key: str, status: str, record: dict[str, Any]) -> list[Item]:
        items: list[Item] = []
        thought, words = _string(record.get("thinking")), _string(record.get("content"))
        if thought.strip():
            items.append(self._event(f"{key}:thinking", EventType.REASONING, record, words=thought))
        asked = record.get("tool_calls")
        calls = [call for call in asked if isinstance(call, dict)] if isinstance(asked, list) else []
        ends = _STOPPED.get(status, End.CRASHED if status == "ERROR" else None)
        if words.strip():
            final = End.FINAL if ends is None and not asked else ends
            items.append(self._event(key, EventType.ASSISTANT_RESPONSE, record, ends=final))
        elif ends is not None:
            items.append(self._event(key, EventType.RUNTIME, record, ends=ends))
        for number, call in enumerate(calls):
            name = _string(call.get("name"))
            event = self._event(f"{key}:call:{number}", EventType.TOOL_CALL, record, words="")
            event.arguments = _arguments(call.get("args"))
            event.call_id = event.key
            self._named(event, name or None)
            folder = event.arguments.get("Cwd") if isinstance(event.arguments, dict) else None
            if isinstance(folder, str) and (folder.startswith("/") or folder[1:3] in (":\\", ":/")):
                event.cwd = folder
            items.append(event)
            self._calls = [*self._calls, [name, event.key]][-_PENDING:]
        return items

    def _result(self, key: str, kind: str, status: str, record: dict[str, Any]) -> Event:
        call = self._call_for(kind)
        event = self._event(key, EventType.TOOL_RESPONSE, record)
        event.call_id = call[1] if call else None
        self._named(event, call[0] if call else None if kind in _ANY_TOOL else kind.lower())
        event.exit_code, event.is_error = _outcome(event.text, status)
        paths = [path.removeprefix("file://") for path in _CREATED.findall(event.text)]
        if paths and call is None:
            event.extra = {**(event.extra or {}), "paths": paths}
        return event

    def _finished(self, place: str, kind: str, status: str, record: dict[str, Any]) -> Parsed:
        """A step that was running is written again."""
        key = self._running[place]
        if status not in _UNFINISHED:
            del self._running[place]
        words = _string(record.get("content"))
        exit_code, is_error = _outcome(words, status)
        changes: dict[str, Any] = {"text": words, "exit_code": exit_code, "is_error": is_error}
        if self._time is not None:
            changes["time"] = self._time
        return Parsed(kind, [Amend(key, changes)])

    def _call_for(self, kind: str) -> list[str] | None:
        suits = _SUITS.get(kind)
        for place, call in enumerate(self._calls):
            if suits is None or call[0] in suits:
                return self._calls.pop(place)
        return None

    def _named(self, event: Event, name: str | None) -> None:
        if name is not None:
            event.tool = toolnames.canonical(name)
            event.original_tool = name if event.tool != name else None

    def _event(self, key: str, kind: EventType, record: dict[str, Any], words: str | None = None, **more: Any) -> Event:
        cut = record.get("truncated_fields")
        event = Event(key, kind, _string(record.get("content")) if words is None else words, self._time, **more)
        event.cwd = self._cwd
        event.extra = {"truncated_fields": cut} if cut else None
        if kind in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL, EventType.TOOL_RESPONSE):
            event.generator = self._model
        return event


def _outcome(words: str, status: str) -> tuple[int | None, bool | None]:
    """Exit code and failure of a step, as far as its head states them; a command's own output comes later."""
    head = words.partition("\nOutput:")[0][:2048]
    found = _EXIT.search(head)
    exit_code = int(found[1]) if found else None
    if status == "ERROR" or exit_code:
        return exit_code, True
    return exit_code, False if exit_code == 0 or "completed successfully" in head else None


def _arguments(args: Any) -> Any:
    """Arguments of a call; the transcript writes each text as JSON inside a text."""
    if not isinstance(args, dict):
        return None
    read = {}
    for name, value in args.items():
        if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
            try:
                value = json.loads(value)
            except ValueError:
                pass
        read[name] = value
    return read


def _workspace(history: str | None, native: str) -> str | None:
    """The workspace of a conversation, which the list of prompts names; the newest row wins."""
    found = None
    for line in (history or "").split("\n"):
        if native in line:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict) and row.get("conversationId") == native and isinstance(row.get("workspace"), str):
                found = row["workspace"]
    return found


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


_ANY_TOOL = frozenset({"GENERIC", "TOOL_RESPONSE"})
_CONTEXT = frozenset({"CONVERSATION_HISTORY", "EPHEMERAL_MESSAGE", "SYSTEM_MESSAGE", "USER_INPUT"})

HARNESS: Harness = Antigravity()
