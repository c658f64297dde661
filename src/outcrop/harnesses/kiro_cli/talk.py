"""What the stores of Kiro have in common: the same conversation gives the same events, from whichever it is read.

Users' messages get new ids when a conversation is written out of the database, so a turn is known by its place: behind
the beginning, or behind the latest summary, because a compacted conversation loses its head in one of the stores. What
the model says is known by the id of its message, which stays, or by its place in the turn. So what is said may change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses.json_values import object_of, objects, shown, string
from outcrop.harnesses.turn_keys import TurnKeys
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType

_SHELLS = frozenset({"shell", "execute_bash", "execute_cmd"})
_EXIT = re.compile(r"(?:exit (?:status|code): )?(-?\d{1,6})")


@dataclass(slots=True)
class Talk:
    """The running state of one conversation."""

    keys: TurnKeys = field(default_factory=TurnKeys)
    begin: str = ""
    """What turns are counted from: nothing, or a summary."""
    turns: int = 0

    def state(self) -> dict[str, Any]:
        return {"keys": self.keys.state(), "begin": self.begin, "turns": self.turns}

    @classmethod
    def of(cls, state: dict[str, Any] | None) -> Talk:
        return cls(TurnKeys(**state["keys"]), state["begin"], state["turns"]) if state else cls()

    def prompt(self, text: str, notes: Sequence[str] = ()) -> Event:
        """A turn begins with a text; `notes` stand for pictures, which one of the stores does not name."""
        name = f"{self.begin}{self.turns}"
        self.turns += 1
        self.keys.next_turn(name)
        whole = "\n".join(filter(None, (text, *notes)))
        return Event(f"{name}:prompt", EventType.USER_INPUT, whole, opens=True, settles=True)

    def said(self, kind: EventType, text: str, message: str = "") -> Event:
        """`message` is the id of the message that says it, where it has one."""
        return Event(self.keys.key(f"{kind}:{message}" if message else str(kind)), kind, text)

    def thought(self, data: Any, message: str) -> Event:
        text = string(data, "text") or (data if isinstance(data, str) else "")
        event = self.said(EventType.REASONING, text or ENCRYPTED_PLACEHOLDER, message)
        sealed = {name: data[name] for name in ("signature", "redactedContent")
                  if isinstance(data, dict) and data.get(name)}  # fmt: skip
        event.extra = {"encrypted_content": sealed} if sealed else None
        return event

    def call(self, id: str, name: str, given: Any) -> Event:
        entry = self.keys.call(id, name)
        event = Event(entry[0], EventType.TOOL_CALL, tool=entry[1], original_tool=entry[2], call_id=id or None)
        event.arguments = given if isinstance(given, dict) else {"_raw": given} if given is not None else {}
        return event

    def result(self, id: str, status: str, content: list[Any], name: str = "") -> Event:
        """`content` holds texts and values; what a shell came to is such a value."""
        if name and id not in self.keys.calls:
            self.keys.call(id, name)
        event = self.keys.response(id, "\n".join(filter(None, map(_shown, content))))
        if status:
            event.is_error = status.lower() != "success"
        if event.tool in _SHELLS:
            event.exit_code = next(filter(lambda code: code is not None, map(_exit, content)), None)
            if event.exit_code:
                event.is_error = True
        return event

    def cancelled(self) -> Event:
        return Event(self.keys.key("cancelled"), EventType.RUNTIME, ends=End.CANCELLED, by_user=True)

    def begin_behind(self, summary: str) -> None:
        """Turns that come now stand behind a summary."""
        self.begin, self.turns = f"{text_digest(summary)}.", 0

    def compacted(self, text: str) -> Event:
        return Event(self.keys.key(f"compaction:{text_digest(text)}"), EventType.COMPACTION, text)

    def unknown(self, meaning: str, raw: Any) -> Event:
        return Event(self.keys.key(f"unknown:{meaning}"), EventType.UNKNOWN, raw=raw)


def model_of(document: Any) -> str | None:
    """The model that a record names; `auto` names none."""
    model = string(document, "model_id") or string(object_of(document, "model_info"), "model_id")
    return model if model and model != "auto" else None


def tool_of(entry: Any) -> str:
    """Name of the tool that answered, as the results' own record tells it."""
    kind = object_of(object_of(entry, "tool"), "kind")
    mcp = object_of(kind, "Mcp")
    if mcp:
        server, tool = string(mcp, "serverName"), string(mcp, "toolName")
        return f"@{server}/{tool}" if server and tool else tool
    return next(iter(object_of(kind, "BuiltIn")), "").lower()


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    return objects(message.get("content"))


def _exit(value: Any) -> int | None:
    stated = value.get("exit_status") if isinstance(value, dict) else None
    if isinstance(stated, int) and not isinstance(stated, bool):
        return stated
    found = _EXIT.fullmatch(stated) if isinstance(stated, str) else None
    return int(found[1]) if found else None


def _shown(value: Any) -> str:
    """A result as text; of a shell what it wrote."""
    if isinstance(value, dict) and "exit_status" in value:
        return "\n".join(filter(None, (string(value, "stdout"), string(value, "stderr"))))
    return shown(value) if value is not None else ""
