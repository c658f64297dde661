"""The messages of a session of Cline's command line, which have ids, times and models, and the document beside them."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

import orjson

from outcrop.harnesses import Side, SourceFile, toolnames
from outcrop.harnesses.cline.values import object_of, text_of
from outcrop.harnesses.content import content_text
from outcrop.harnesses.documents import FactsReader
from outcrop.harnesses.moments import epoch_ms
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed

META_LIMIT = 1 << 20
"""Bytes of the document beside the messages."""

_ENVELOPE = re.compile(r"^\s*<user_input\b[^>]*>(.*?)</user_input>\s*$", re.DOTALL)
_NOTICE = re.compile(r"<mode_notice\b[^>]*>.*?</mode_notice>", re.DOTALL)
_TASK = re.compile(r"^\s*<task>\s*(.*?)\s*</task>\s*$", re.DOTALL)


class SessionReader:
    """The `Reader` of the messages of a command line session; always folded from its beginning."""

    def __init__(self, file: SourceFile, side: Side) -> None:
        self._native = file.native
        folder = os.path.dirname(file.path)
        meta = object_of(side.text(os.path.join(folder, f"{file.native}.json"), folder, META_LIMIT))
        git = object_of(meta.get("metadata")).get("git")
        self._cwd = text_of(meta.get("cwd")) or text_of(meta.get("workspace_root"))
        self._branch = text_of(object_of(git).get("branch"))
        self._model = text_of(meta.get("model"))
        self._calls: dict[str, Event] = {}
        self._counts: Counter[str] = Counter()

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        role, content = record.get("role"), record.get("content")
        if role not in ("user", "assistant") or not isinstance(content, (str, list)):
            return Parsed("message", [self._unknown(record, 0, record)])
        model = text_of(object_of(record.get("modelInfo")).get("id"))
        self._model = model or self._model
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        items: list[Event] = []
        for place, block in enumerate(blocks):
            event = self._block(record, f"{role}", place, block if isinstance(block, dict) else {"block": block})
            if event is not None:
                event.model = model if role == "assistant" and event.type is not EventType.UNKNOWN else None
                items.append(event)
        opens = not any(item.type is EventType.TOOL_RESPONSE for item in items)
        prompt = next((item for item in items if item.type is EventType.USER_INPUT), None)
        if prompt is not None:
            prompt.opens = prompt.settles = opens
        elif items and role == "assistant" and items[-1].type is EventType.ASSISTANT_RESPONSE:
            # A message that calls nothing is the answer.
            items[-1].ends = End.FINAL
        metrics = object_of(record.get("metrics"))
        usage = {name: value for name, value in metrics.items() if isinstance(value, int) and value}
        if items and usage:
            items[-1].extra = {**(items[-1].extra or {}), "usage": usage}
        return Parsed(f"{role}", items, None if items else "an empty message")

    def _block(self, record: dict[str, Any], role: str, place: int, block: dict[str, Any]) -> Event | None:
        kind = block.get("type")
        if kind == "text":
            text = text_of(block.get("text"))
            if text is None:
                return None
            if role == "assistant":
                return self._event(record, place, EventType.ASSISTANT_RESPONSE, text)
            found = _ENVELOPE.match(text) or _TASK.match(text)
            typed = _NOTICE.sub("", found[1] if found else text).strip()
            said = EventType.USER_INPUT if typed else EventType.SYSTEM
            return self._event(record, place, said, typed or text)
        if kind == "thinking":
            text, sealed = text_of(block.get("thinking")), text_of(block.get("signature"))
            if text is None and sealed is None:
                return None
            event = self._event(record, place, EventType.REASONING, text or ENCRYPTED_PLACEHOLDER)
            event.extra = {"encrypted_content": sealed} if text is None else None
            return event
        if kind == "redacted_thinking":
            event = self._event(record, place, EventType.REASONING, ENCRYPTED_PLACEHOLDER)
            event.extra = {"encrypted_content": block.get("data")}
            return event
        if kind == "tool_use":
            name = text_of(block.get("name")) or "tool"
            event = self._event(record, place, EventType.TOOL_CALL, "")
            event.tool = toolnames.canonical(name)
            event.original_tool = name if event.tool != name else None
            event.arguments = block.get("input")
            event.call_id = text_of(block.get("id")) or event.key
            self._calls[event.call_id] = event
            return event
        if kind == "tool_result":
            content = block.get("content")
            text = content_text(content) or (orjson.dumps(content, default=str).decode() if content else "")
            event = self._event(record, place, EventType.TOOL_RESPONSE, text)
            event.call_id = text_of(block.get("tool_use_id"))
            call = self._calls.get(event.call_id or "")
            event.tool, event.original_tool = (call.tool, call.original_tool) if call else (None, None)
            flag = block.get("is_error")
            event.is_error = flag if isinstance(flag, bool) else None
            return event
        if kind in ("image", "document") and role == "user":
            return self._event(record, place, EventType.SYSTEM, content_text([block]))
        return self._unknown(record, place, block)

    def _unknown(self, record: dict[str, Any], place: int, raw: Any) -> Event:
        event = self._event(record, place, EventType.UNKNOWN, "")
        event.raw = raw
        return event

    def _event(self, record: dict[str, Any], place: int, kind: EventType, text: str) -> Event:
        native = text_of(record.get("id")) or text_digest(f"{record.get('role')} {content_text(record.get('content'))}")
        name = f"{native}:{place}"
        self._counts[name] += 1
        number = self._counts[name]
        event = Event(name if number == 1 else f"{name}:{number}", kind, text, epoch_ms(record.get("ts")))
        event.cwd, event.branch = self._cwd, self._branch
        if kind not in (EventType.USER_INPUT, EventType.SYSTEM):
            event.generator = self._model
        return event


class MetaReader(FactsReader):
    """The `Reader` of the document beside a session's messages."""

    def facts(self, record: dict[str, Any]) -> list[Item]:
        title = text_of(object_of(record.get("metadata")).get("title"))
        return [Fact("title.generated", title)] if title else []
