"""What the readers of Kimi's files have in common: parts made into text, times, usage, and names for what has none."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses.content import attachment_note
from outcrop.harnesses.toolnames import canonical
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, Event, EventType

CAP = 512
"""Calls and counters of one turn that are remembered."""

_MEDIA = {"image_url": "image", "audio_url": "audio", "video_url": "video"}
_EXIT = re.compile(r"(?:^|\n)Command failed with exit code: (-?\d{1,6})\.\s*$")
_USAGE = {
    "input": ("input_other", "inputOther"),
    "cache_read": ("input_cache_read", "inputCacheRead"),
    "cache_write": ("input_cache_creation", "inputCacheCreation"),
    "output": ("output", "output"),
}


@dataclass(slots=True)
class Names:
    """Keys of the events of one session: by its turns, and inside a turn by what they say and a counter."""

    turn: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    spill: int = 0
    calls: dict[str, list[Any]] = field(default_factory=dict)
    """Call id → key, tool, original spelling, number of results."""

    def next_turn(self) -> None:
        self.turn += 1
        self.counts.clear()
        self.spill = 0

    def key(self, mark: str) -> str:
        count = self.counts.get(mark)
        if count is None and len(self.counts) >= CAP:
            self.spill += 1
            return f"{self.turn}:{mark}:+{self.spill}"
        self.counts[mark] = (count or 0) + 1
        return f"{self.turn}:{mark}:{count or 0}"

    def said(self, kind: EventType, text: str) -> str:
        return self.key(f"{kind}:{text_digest(text)}")

    def call(self, id: str, name: str, key: str | None = None) -> list[Any]:
        """The entry of a new call, or of one that only its result tells of."""
        tool = canonical(name) if name else None
        entry = [key or self.key(f"call:{id}"), tool, name if tool != name and name else None, 0]
        if id:
            self.calls.pop(id, None)
            self.calls[id] = entry
            while len(self.calls) > CAP:
                del self.calls[next(iter(self.calls))]
        return entry

    def response(self, id: str, text: str) -> Event:
        """The response to a call, which may not be known."""
        entry = self.calls.get(id) or self.call(id, "")
        count, entry[3] = entry[3], entry[3] + 1
        key = f"out:{entry[0]}:{count}" if count else f"out:{entry[0]}"
        return Event(key, EventType.TOOL_RESPONSE, text, tool=entry[1], original_tool=entry[2], call_id=id or None)

    def state(self) -> dict[str, Any]:
        return {"turn": self.turn, "counts": dict(self.counts), "spill": self.spill,
                "calls": {id: list(entry) for id, entry in self.calls.items()}}  # fmt: skip


def string(record: Any, *names: str) -> str:
    """The first of the named values that is a text and not empty."""
    for name in names:
        value = record.get(name) if isinstance(record, dict) else None
        if isinstance(value, str) and value:
            return value
    return ""


def mapping(record: Any, name: str) -> dict[str, Any]:
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, dict) else {}


def parts(content: Any) -> list[dict[str, Any]]:
    """Content as a list of parts: a text is one, and what is no part is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def part_text(part: dict[str, Any]) -> str:
    """The text of a visible part; a note for a picture, a sound or a film."""
    kind = part.get("type")
    noun = _MEDIA.get(kind) if isinstance(kind, str) else None
    if noun is None:
        return string(part, "text")
    source = part.get(str(kind)) or part.get(f"{noun}Url")
    url = string(source, "url") if isinstance(source, dict) else source
    return attachment_note({"type": "image", "url": url}).replace("[image", f"[{noun}", 1)


def told(content: Any) -> str:
    """The text of a whole content."""
    return "\n".join(text for text in map(part_text, parts(content)) if text)


def thought(part: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Text and extra of a part of reasoning; sealed or empty reasoning reads as the placeholder."""
    sealed = part.get("encrypted")
    text = string(part, "think")
    return text or ENCRYPTED_PLACEHOLDER, {"encrypted_content": sealed} if sealed else None


def exit_code(*texts: str) -> int | None:
    """The exit code that a result states; it states none for success."""
    found = next(filter(None, map(_EXIT.search, texts)), None)
    return int(found[1]) if found else None


def usage(counts: Any) -> dict[str, int] | None:
    """Tokens of one step, apart: Kimi does not count the cache inside the input."""
    if not isinstance(counts, dict):
        return None
    found = {}
    for name, spellings in _USAGE.items():
        value = next((counts[one] for one in spellings if type(counts.get(one)) is int), None)
        if value is not None:
            found[name] = value
    return found or None


def time_ms(value: Any) -> int | None:
    """UTC ms of a number of seconds (the older program) or of ms (Kimi Code)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    return round(value * 1000) if value < 1e11 else int(value)
