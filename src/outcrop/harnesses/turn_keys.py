"""Keys for the events of formats whose records have no ids of their own.

A key is the turn, what the event says, and a counter of equal ones in that turn: no time, place or line. So a record
that is read again, copied into another store of the same session or moved gives the same event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses.toolnames import canonical
from outcrop.ids import text_digest
from outcrop.model import Event, EventType

CAP = 512
"""Counters of one turn that are remembered; what comes after gets a serial number."""
CALLS = 128
"""Calls that are remembered."""
PROMPTS = 1024
"""Different prompts of a session that are told apart by how often they came; what comes after gets a serial number."""


@dataclass(slots=True)
class TurnKeys:
    """Keys for one session, and the calls that still may be answered. Small: it goes with every checkpoint."""

    turn: str = "0"
    counts: dict[str, int] = field(default_factory=dict)
    spill: int = 0
    calls: dict[str, list[Any]] = field(default_factory=dict)
    """Call id → key, tool, original spelling, number of results."""

    def next_turn(self, name: str) -> None:
        self.turn = name
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
            while len(self.calls) > CALLS:
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


@dataclass(slots=True)
class PromptNames:
    """Names of turns: by their prompt and how often it came before. They hold where the history loses its head."""

    counts: dict[str, int] = field(default_factory=dict)
    spill: int = 0

    def name(self, prompt: str) -> str:
        mark = text_digest(prompt)
        if mark not in self.counts and len(self.counts) >= PROMPTS:
            self.spill += 1
            return f"{mark}.+{self.spill}"
        count = self.counts.get(mark, 0)
        self.counts[mark] = count + 1
        return f"{mark}.{count}"

    def state(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "spill": self.spill}
