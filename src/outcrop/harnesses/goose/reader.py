"""The reader of Goose's sessions, from rows of the database or from the older files of lines: the same messages.

A message is named as its store says, in a file by its place; what stands in it by its kind and place there. So it may
be changed and stays the same. A turn has no end of its own: an answer without a call ends it. What only the agent sees,
summaries of a compacted conversation above all, is not part of the talk.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from outcrop.harnesses.content import attachment_note, unknown_block
from outcrop.harnesses.goose.store import is_message
from outcrop.harnesses.json_values import object_of, objects, shown, string
from outcrop.harnesses.moments import time_ms
from outcrop.harnesses.turn_keys import TurnKeys
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed, Relation

_NO_TITLE = re.compile(r"(CLI Session|New session ?\d*|New Chat|Untitled)?", re.IGNORECASE)
_INTERRUPTED = re.compile(r"The existing call to .{0,200} was interrupted\. How would you like to proceed\?")
_NOTICES = frozenset({"systemNotification", "contextLengthExceeded", "summarizationRequested", "conversationCompacted"})


class GooseReader:
    """Reads one session; `native` is its id."""

    def __init__(self, native: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._native = native
        self._keys = TurnKeys(**known["keys"]) if known else TurnKeys()
        self._place: int = known.get("place", 0)
        self._name = ""
        self._parts: Counter[str] = Counter()
        self._cwd: str | None = known.get("cwd")
        self._model: str | None = known.get("model")

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {"keys": self._keys.state(), "place": self._place, "cwd": self._cwd, "model": self._model}

    def feed(self, record: dict[str, Any]) -> Parsed:
        role = string(record, "role")
        if not is_message(record):
            items = self._session(record)
            return Parsed("session", items, None if items else "names the session")
        self._name = string(record, "key") or f"#{self._place}"
        self._place += 1
        self._parts.clear()
        content = record.get("content")
        if not isinstance(content, list):
            return Parsed(f"message/{role or '?'}", [self._unknown(record)])
        time = time_ms(record.get("created"))
        found = self._message(role, content, object_of(record, "metadata"))
        for event in found:
            event.time, event.cwd = time, self._cwd
            if event.type in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL):
                event.generator = self._model
        return Parsed(f"message/{role or '?'}", found, None if found else "says nothing")

    def _session(self, record: dict[str, Any]) -> list[Item]:
        self._cwd = string(record, "working_dir") or None
        self._model = string(record, "model") or None
        found: list[Item] = []
        created = time_ms(record.get("created_at"))
        if created is not None:
            found.append(Fact("created", created))
        title = (string(record, "name") or string(record, "description")).strip()
        if title and not _NO_TITLE.fullmatch(title):
            found.append(Fact("title.user" if record.get("user_set_name") == 1 else "title.generated", title))
        parent, kind = string(record, "parent_session_id"), string(record, "session_type")
        if parent:
            found += [Fact("parent", parent), Fact("relation", Relation.SUBAGENT)]
        if kind == "hidden":
            found.append(Fact("machine", True))
        return found

    def _message(self, role: str, content: list[Any], metadata: dict[str, Any]) -> list[Event]:
        hidden = metadata.get("userVisible") is False
        found: list[Event] = []
        said: list[str] = []
        called = False
        for block in content:
            kind = string(block, "type")
            if kind == "text":
                text = string(block, "text")
                if role == "user" and not hidden:
                    said.append(text)
                elif text:
                    found.append(self._said(role, text, hidden))
            elif kind == "image":
                note = attachment_note({"type": "image", "source": {
                    "data": string(block, "data"), "media_type": string(block, "mimeType")}})  # fmt: skip
                if role == "user" and not hidden:
                    said.append(note)
                else:
                    found.append(self._event(EventType.SYSTEM, note))
            elif kind in ("toolRequest", "frontendToolRequest"):
                called = True
                found.append(self._call(block))
            elif kind == "toolResponse":
                found.append(self._result(block))
            elif kind in ("thinking", "redactedThinking"):
                found.append(self._thought(block))
            elif kind in _NOTICES:
                found.append(self._event(EventType.SYSTEM, string(block, "msg")))
            elif kind in ("toolConfirmationRequest", "actionRequired"):
                found.append(Event(self._key("asks"), EventType.RUNTIME, extra=dict(block)))
            else:
                found.append(self._unknown(block))
        prompt = "\n".join(filter(None, said))
        if prompt:
            event = Event(self._key("prompt"), EventType.USER_INPUT, prompt, opens=True, settles=True)
            found.append(event)
        answer = next((event for event in reversed(found) if event.type is EventType.ASSISTANT_RESPONSE), None)
        if answer is not None and not called:
            answer.ends = End.FINAL
        return found

    def _event(self, kind: EventType, text: str) -> Event:
        return Event(self._key(kind), kind, text)

    def _key(self, part: str) -> str:
        """The name of the next part of its kind in the message."""
        place = self._parts[part]
        self._parts[part] += 1
        return f"{self._name}:{part}{place or ''}"

    def _said(self, role: str, text: str, hidden: bool) -> Event:
        """Text that no person typed."""
        if role == "assistant" and not hidden:
            if _INTERRUPTED.fullmatch(text):
                event = self._event(EventType.RUNTIME, text)
                event.ends = End.INTERRUPTED
                return event
            return self._event(EventType.ASSISTANT_RESPONSE, text)
        return self._event(EventType.SYSTEM, text)

    def _thought(self, block: dict[str, Any]) -> Event:
        text = string(block, "thinking")
        sealed = {name: block[name] for name in ("signature", "data") if block.get(name)}
        event = self._event(EventType.REASONING, text or ENCRYPTED_PLACEHOLDER)
        event.extra = {"encrypted_content": sealed} if sealed else None
        return event

    def _call(self, block: dict[str, Any]) -> Event:
        """A call, or what the model wrote instead of one that could be read."""
        call = object_of(block, "toolCall")
        value = object_of(call, "value")
        id = string(block, "id")
        entry = self._keys.call(id, string(value, "name"), self._key("call"))
        event = Event(entry[0], EventType.TOOL_CALL, tool=entry[1], original_tool=entry[2], call_id=id or None)
        given = value.get("arguments")
        event.arguments = given if isinstance(given, dict) else {} if given is None else {"_raw": given}
        if error := string(call, "error"):
            event.is_error, event.text = True, error
        return event

    def _result(self, block: dict[str, Any]) -> Event:
        result = object_of(block, "toolResult")
        value = result.get("value")
        parts = value if isinstance(value, list) else objects(object_of(result, "value").get("content"))
        text = "\n".join(filter(None, map(_part, parts))) or string(result, "error")
        event = self._keys.response(string(block, "id"), text)
        failed = object_of(result, "value").get("isError") is True
        status = string(result, "status")
        event.is_error = failed or status != "success" if status else None
        return event

    def _unknown(self, raw: Any) -> Event:
        return Event(self._key("unknown"), EventType.UNKNOWN, raw=raw)


def _part(part: Any) -> str:
    """A part of a result. What is for the person alone says again what the agent was told."""
    if not isinstance(part, dict):
        return shown(part) if part is not None else ""
    audience = object_of(part, "annotations").get("audience")
    if isinstance(audience, list) and "user" in audience and "assistant" not in audience:
        return ""
    kind = string(part, "type")
    if kind == "image":
        source = {"data": string(part, "data"), "media_type": string(part, "mimeType")}
        return attachment_note({"type": "image", "source": source})
    if kind not in ("text", "resource", "resource_link", "audio", ""):
        unknown_block(part)
    resource = object_of(part, "resource")
    return string(part, "text") or string(resource, "text") or string(resource, "uri") or string(part, "uri")
