"""Turns of a session folded from a reader's items alone, the way the ingest cuts them, to hold readers to facts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from outcrop.model import ENDS, TYPE_CODE, Amend, Event, EventType, Fact, Parsed
from outcrop.turns import TurnFold

_FLAGS = {"partial": 512, "superseded": 32}


@dataclass
class Told:
    """One turn: its events, its prompt's text, how it ended and with which answer."""

    events: list[Event] = field(default_factory=list)
    fold: TurnFold = field(default_factory=TurnFold)

    @property
    def prompt(self) -> str | None:
        return next((event.text for event in self.events if event.type is EventType.USER_INPUT), None)

    @property
    def ends(self) -> str | None:
        return ENDS[self.fold.ends - 1].value if self.fold.ends else None

    @property
    def final(self) -> Event | None:
        return self.events[self.fold.terminal - 1] if self.ends == "final" and self.fold.terminal else None

    @property
    def tools(self) -> list[str]:
        return [str(event.original_tool or event.tool) for event in self.events if event.type is EventType.TOOL_CALL]


def events_of(parsed: Iterable[Parsed], session: str | None = None) -> list[Event]:
    """The events of a session as they stand in the end, with later amendments in them; keys are unique."""
    found: dict[str, Event] = {}
    for one in parsed:
        for item in one.items:
            if isinstance(item, Event) and item.session == session:
                assert item.key not in found, f"keys are unique: {item.key}"
                found[item.key] = item
            elif isinstance(item, Amend) and item.session == session:
                for name, value in item.changes.items():
                    old = getattr(found[item.key], name)
                    setattr(found[item.key], name, {**(old or {}), **value} if name == "extra" else value)
    return list(found.values())


def facts_of(parsed: Iterable[Parsed], session: str | None = None) -> dict[str, Any]:
    return {
        item.name: item.value
        for one in parsed
        for item in one.items
        if isinstance(item, Fact) and item.session == session
    }


def turns_of(events: list[Event]) -> list[Told]:
    turns: list[Told] = []
    for event in events:
        opened = event.opens and turns and turns[-1].fold.user_event is not None
        if opened and event.settles:
            turns[-1].fold.settle()
        if opened or not turns:
            turns.append(Told())
        turn = turns[-1]
        turn.events.append(event)
        flags = sum(bit for name, bit in _FLAGS.items() if getattr(event, name))
        ends = ENDS.index(event.ends) + 1 if event.ends is not None else 0
        turn.fold.add(len(turn.events), TYPE_CODE[event.type], event.time or 0, flags, ends, None)
    return turns
