"""The fold over one Cursor transcript, in JSON lines, plain text or the messages of a chat store.

The records have no ids, and in real files no times, no models and often no results. Keys are made of the prompt that
opened the turn and of what the record says, with a counter among equals, so a transcript that is rewritten from an
earlier prompt on keeps the ids of what stayed. Memory is plain JSON and bounded.
"""

from __future__ import annotations

import json
import os
from pathlib import PurePath
from typing import Any

from outcrop.harnesses import Side, SourceFile
from outcrop.harnesses.content import attachment_note, block_text, content_text
from outcrop.harnesses.cursor.titles import title_of
from outcrop.harnesses.cursor.values import (
    arguments_of,
    folder_of,
    model_name,
    moment,
    prompt_of,
    result_of,
    string,
    tool_of,
)
from outcrop.harnesses.json_values import in_order
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed, Relation

SPILL = 512
"""Different events of a turn, or prompts of a session, that are counted together; then a new count begins."""
PENDING = 64
"""Calls that wait for a result."""
NOTE_LIMIT = 64 * 1024
"""Bytes of the small files that name a session's directory."""

REDACTED = "[REDACTED]"
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "model": "assistant", "tool": "tool"}
_CALLS = frozenset({"tool_use", "tool-use", "tool_call", "tool-call", "function_call"})
_RESULTS = frozenset({"tool_result", "tool-result"})
_THINKING = frozenset({"thinking", "reasoning"})
_SEALED = frozenset({"redacted_thinking", "redacted-reasoning"})
_PICTURES = frozenset({"image", "input_image", "document", "file"})
_ENDS = {
    "success": End.FINAL,
    "completed": End.FINAL,
    "cancelled": End.CANCELLED,
    "canceled": End.CANCELLED,
    "aborted": End.INTERRUPTED,
    "interrupted": End.INTERRUPTED,
    "error": End.CRASHED,
    "failed": End.CRASHED,
}
_FAILED = frozenset({"error", "failed", "failure", "cancelled", "rejected"})
_STATE = ("begun", "cwd", "model", "turn", "spill", "prompts", "counts", "pending", "proved")


class TranscriptReader:
    """The `Reader` of one transcript."""

    def __init__(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> None:
        self._native = file.native
        self._parent = file.parent
        self._begun = False
        self._cwd: str | None = None
        self._model: str | None = None
        self._turn = "head"
        self._spill = 0
        self._prompts: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._pending: list[list[Any]] = []
        """[native call id, call id, tool, original spelling] of calls without a result, in order."""
        self._proved = False
        """This build says itself when a turn ends."""
        if state:
            for name in _STATE:
                setattr(self, f"_{name}", json.loads(json.dumps(state[name])))
        else:
            self._cwd = _directory(file.path, side)

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {name: json.loads(json.dumps(getattr(self, f"_{name}"))) for name in _STATE}

    def feed(self, record: dict[str, Any]) -> Parsed:
        parsed = self._feed(record)
        if not self._begun and self._parent is not None:
            facts: list[Item] = [Fact("parent", self._parent), Fact("relation", Relation.SUBAGENT)]
            parsed.items = [*facts, *parsed.items]
            parsed.reason = None
        self._begun = True
        return parsed

    def _feed(self, record: dict[str, Any]) -> Parsed:
        kind = string(record.get("type"))
        if kind == "turn_ended":
            return Parsed(kind, [self._ended(record)])
        if kind in ("chat", "chat-title"):
            return self._chat(record)
        named = record.get("role")
        role = _ROLES.get(named) if isinstance(named, str) else None
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message or record.get("content")
        if role is None or not isinstance(content, (str, list, dict, type(None))):
            if named == "system":
                return self._instructions(record, content)
            return Parsed(kind or str(named or "record")[:60], [self._unknown(record, record)])
        blocks = content if isinstance(content, list) else [] if content in (None, "") else [content]
        blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        if not blocks:
            return Parsed(role, reason="an empty message")
        items = self._blocks(record, blocks) if role != "user" else self._user(record, blocks)
        return Parsed(role, items, None if items else "an empty message")

    # Prompts

    def _user(self, record: dict[str, Any], blocks: list[Any]) -> list[Item]:
        texts, rest = [], []
        for block in blocks:
            kind = string(block.get("type")) if isinstance(block, dict) else None
            if kind == "text":
                texts.append(block_text(block))
            elif kind in _PICTURES:
                texts.append(attachment_note(block))
            else:
                rest.append(block)
        items = self._blocks(record, rest)
        typed, context = prompt_of("\n".join(text for text in texts if text))
        if typed.strip():
            items.append(self._prompt(record, typed, context, opens=not rest))
        elif context:
            items.append(self._event(record, EventType.SYSTEM, context))
        return items

    def _prompt(self, record: dict[str, Any], text: str, context: str, opens: bool) -> Event:
        if opens:
            name = text_digest(text)
            if len(self._prompts) >= SPILL and name not in self._prompts:
                self._prompts = {"": self._prompts.get("", 0) + 1}
            number = self._prompts[name] = self._prompts.get(name, 0) + 1
            epoch = self._prompts.get("", 0)
            self._turn = f"{name}.{number}" + (f".{epoch}" if epoch else "")
            self._counts, self._spill, self._pending = {}, 0, []
        event = self._event(record, EventType.USER_INPUT, text)
        event.opens = event.settles = opens
        event.extra = {"context": context} if context else None
        return event

    # What the agent does

    def _blocks(self, record: dict[str, Any], blocks: list[Any]) -> list[Item]:
        items: list[Item] = []
        for block in blocks:
            kind = block.get("type") if isinstance(block, dict) else None
            if not isinstance(kind, str):
                items.append(self._unknown(record, block))
            elif kind == "text" or kind in _PICTURES:
                items += self._said(record, block_text(block))
            elif kind in _THINKING:
                items += self._thought(record, block)
            elif kind in _SEALED:
                event = self._event(record, EventType.REASONING, ENCRYPTED_PLACEHOLDER, block.get("data"))
                event.extra = {"encrypted_content": block.get("data")}
                items.append(event)
            elif kind in _CALLS:
                items.append(self._call(record, block))
            elif kind in _RESULTS:
                items.append(self._result(record, block))
            else:
                items.append(self._unknown(record, block))
        last = items[-1] if items else None
        if isinstance(last, Event) and last.type is EventType.ASSISTANT_RESPONSE and not self._proved:
            # Builds that do not say when a turn ends: an answer that calls nothing closes it, unless more follows.
            last.ends = End.FINAL
        return items

    def _said(self, record: dict[str, Any], text: str) -> list[Event]:
        kept = text.strip().removesuffix(REDACTED).rstrip() if text.rstrip().endswith(REDACTED) else text
        if not text.strip():
            return []
        if not kept.strip():
            return [self._event(record, EventType.REASONING, ENCRYPTED_PLACEHOLDER, REDACTED)]
        event = self._event(record, EventType.ASSISTANT_RESPONSE, kept)
        event.extra = {"redacted": True} if kept is not text else None
        return [event]

    def _thought(self, record: dict[str, Any], block: dict[str, Any]) -> list[Event]:
        text = string(block.get("thinking")) or string(block.get("text")) or string(block.get("reasoning"))
        sealed = string(block.get("signature")) or string(block.get("data"))
        if text is None and sealed is None:
            return []
        event = self._event(record, EventType.REASONING, text or ENCRYPTED_PLACEHOLDER, text or sealed)
        if text is None:
            event.extra = {"encrypted_content": sealed}
        elif text.strip() == REDACTED:
            event.text = ENCRYPTED_PLACEHOLDER
        return [event]

    def _call(self, record: dict[str, Any], block: dict[str, Any]) -> Event:
        name = string(block.get("name")) or string(block.get("toolName")) or string(block.get("tool")) or "tool"
        arguments = arguments_of(*(block.get(field) for field in ("input", "args", "arguments", "params")))
        tool = tool_of(name, arguments)
        event = self._event(record, EventType.TOOL_CALL, "", [name, arguments])
        native = _call_id(block, "id")
        event.tool, event.original_tool, event.arguments = tool.name, tool.original, arguments
        event.call_id = native or event.key
        event.cwd = folder_of(arguments) or self._cwd
        if tool.server:
            event.extra = {"mcp": list(tool.server)}
        self._pending = [*self._pending, [native, event.call_id, tool.name, tool.original]][-PENDING:]
        return event

    def _result(self, record: dict[str, Any], block: dict[str, Any]) -> Event:
        native = _call_id(block)
        answered = self._answered(native)
        name = string(block.get("name")) or string(block.get("toolName"))
        content = next(
            (block[field] for field in ("content", "result", "output") if block.get(field) is not None), None
        )
        told = result_of(answered[2] if answered else name or "", content, block.get("error"))
        if isinstance(content, dict) and content.get("type") is not None:
            told.text, told.rest = content_text(content) or told.text, {}
        event = self._event(record, EventType.TOOL_RESPONSE, told.text, [native, told.text])
        if answered:
            event.call_id, event.tool, event.original_tool = answered[1:]
        elif name:
            tool = tool_of(name)
            event.tool, event.original_tool, event.call_id = tool.name, tool.original, native
        else:
            event.call_id = native
        event.exit_code = told.exit_code
        event.is_error = self._failed(record, block, told.exit_code)
        event.extra = {"result": told.rest} if told.rest else None
        return event

    def _answered(self, native: str | None) -> list[Any] | None:
        """The call that a result belongs to: that of its id, else the oldest one that has no id."""
        found = next((call for call in self._pending if native is not None and call[0] == native), None)
        found = found or next((call for call in self._pending if native is None or call[0] is None), None)
        if found is not None:
            self._pending.remove(found)
        return found

    @staticmethod
    def _failed(record: dict[str, Any], block: dict[str, Any], code: int | None) -> bool | None:
        flag = block.get("is_error", block.get("isError"))
        if isinstance(flag, bool):
            return flag or bool(code)
        metadata = record.get("metadata")
        status = metadata.get("toolResultStatus") if isinstance(metadata, dict) else None
        if isinstance(status, str):
            return status in _FAILED or bool(code)
        return None if code is None else bool(code)

    # The rest

    def _ended(self, record: dict[str, Any]) -> Event:
        self._proved = True
        status = string(record.get("status")) or "unknown"
        words = string(record.get("error")) or string(record.get("reason"))
        event = self._event(record, EventType.RUNTIME, f"turn ended: {status}" + (f": {words}" if words else ""))
        event.ends = _ENDS.get(status, End.STOPPED)
        return event

    def _chat(self, record: dict[str, Any]) -> Parsed:
        """The head of a chat store: title, creation, directory and model."""
        self._cwd = self._cwd or string(record.get("cwd"))
        self._model = model_name(record.get("model"))
        facts: list[Item] = []
        if title := title_of(record.get("title")):
            facts.append(Fact("title.generated", title))
        event = self._event(record, EventType.SYSTEM, string(record.get("mode")) or "chat", "chat")
        event.time = moment(record.get("created"))
        if event.time is not None:
            facts.append(Fact("created", event.time))
        if record["type"] == "chat-title":
            # A transcript holds the conversation.
            return Parsed("chat-title", facts, None if facts else "says nothing")
        return Parsed("chat", [*facts, event])

    def _instructions(self, record: dict[str, Any], content: Any) -> Parsed:
        text = content_text(content)
        if not text.strip():
            return Parsed("system", reason="an empty message")
        return Parsed("system", [self._event(record, EventType.SYSTEM, text)])

    def _unknown(self, record: dict[str, Any], raw: Any) -> Event:
        event = self._event(record, EventType.UNKNOWN, block_text(raw), raw)
        event.raw = raw
        return event

    def _event(self, record: dict[str, Any], kind: EventType, text: str, meaning: Any = None) -> Event:
        """An event whose key is its turn, its type, what it says, and which of its equals in the turn it is."""
        said = text if meaning is None else meaning
        if not isinstance(said, str):
            said = in_order(said).decode()
        name = f"{kind}:{text_digest(said)}"
        if len(self._counts) >= SPILL and name not in self._counts:
            self._counts, self._spill = {}, self._spill + 1
        number = self._counts[name] = self._counts.get(name, 0) + 1
        key = f"{self._turn}:{name}" + (f":{number}" if number > 1 else "")
        event = Event(key + (f":s{self._spill}" if self._spill else ""), kind, text, moment(record.get("timestamp")))
        event.cwd = self._cwd
        if kind in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL):
            event.model = model_name(record.get("model"))
            self._model = event.model or self._model
        if kind not in (EventType.USER_INPUT, EventType.SYSTEM):
            event.generator = self._model
        return event


def _call_id(block: dict[str, Any], own: str = "tool_use_id") -> str | None:
    """The native id of a call. Some hold a second one behind a line feed."""
    for name in (own, "tool_use_id", "toolCallId", "tool_call_id", "call_id"):
        if found := string(block.get(name)):
            return found.split("\n", 1)[0]
    return None


def _directory(path: str, side: Side) -> str | None:
    """The working directory, from the note on the project's trust or the sidecar of a chat; both are JSON objects."""
    parents = PurePath(path).parents
    project = next((above.parent for above in parents if above.name == "agent-transcripts"), None)
    place, name, field = (
        (project, ".workspace-trusted", "workspacePath") if project else (parents[0], "meta.json", "cwd")
    )
    text = side.text(os.path.join(place, name), str(place), NOTE_LIMIT)
    try:
        note = json.loads(text) if text else None
    except ValueError:
        return None
    return string(note.get(field)) if isinstance(note, dict) else None
