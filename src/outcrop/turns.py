"""What a turn is, folded from its events in their order: counts, times, tools, and whether and how it ended.

One function decides for search, list and open alike (ruling 6): the ingest folds events as they come, and whoever
needs a turn anew folds the stored ones; both give the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from outcrop.model import END_CODE, TYPE_CODE, End, EventType

_USER = TYPE_CODE[EventType.USER_INPUT]
_ANSWER = TYPE_CODE[EventType.ASSISTANT_RESPONSE]
_ACTIVITY = frozenset(
    TYPE_CODE[kind] for kind in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL)
)
_TOOLS = frozenset(TYPE_CODE[kind] for kind in (EventType.TOOL_CALL, EventType.TOOL_RESPONSE))
_UNKNOWN = TYPE_CODE[EventType.UNKNOWN]
_FINAL = END_CODE[End.FINAL]
_STOPPED = END_CODE[End.STOPPED]

PARTIAL = 512
SUPERSEDED = 32
BY_USER = 1024
"""Bits of an event's flags (`store/embedded/rows.py`): the first two keep an answer from being the final one, what
the user ran is nothing of the agent's."""


@dataclass(slots=True)
class TurnFold:
    """The running state of one turn. Event ids are row ids, `ends` is 0 or a number of `model.END_CODE`."""

    event_count: int = 0
    started: int = 0
    updated: int = 0
    ends: int = 0
    terminal: int | None = None
    user_event: int | None = None
    reply_event: int | None = None
    active: bool = False
    """The last activity is the reply: nothing of the model's came after it."""
    tools: list[int] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    last_event: int = 0

    def add(self, event: int, kind: int, time: int, flags: int, ends: int, tool: int | None) -> None:
        """Take the next event in order."""
        if self.event_count == 0:
            self.started = self.updated = time
        elif time < self.started:
            self.started = time
        elif time > self.updated:
            self.updated = time
        self.event_count += 1
        if event > self.last_event:
            self.last_event = event
        if kind not in self.types:
            self.types.append(kind)
        if tool is not None and kind in _TOOLS and tool not in self.tools:
            self.tools.append(tool)
        if kind == _USER and self.user_event is None:
            self.user_event = event
        if kind in _ACTIVITY and not flags & BY_USER:
            # The agent went on, so whatever seemed to end the turn did not.
            self.ends, self.terminal = 0, None
            if kind == _ANSWER and not flags & (PARTIAL | SUPERSEDED):
                self.reply_event, self.active = event, True
            else:
                self.active = False
        if ends:
            self.end(ends, event)

    def end(self, ends: int, event: int) -> None:
        """The turn ended by `event`; with a final answer that answer is the terminal event."""
        if ends != _FINAL:
            self.ends, self.terminal = ends, event
        elif self.reply_event is not None and self.active:
            self.ends, self.terminal = _FINAL, self.reply_event
        elif not self.ends:
            self.ends, self.terminal = _STOPPED, event

    def settle(self) -> None:
        """A prompt proved that the agent had gone idle: a last visible answer was then the final one."""
        if not self.ends and self.active and self.reply_event is not None:
            self.ends, self.terminal = _FINAL, self.reply_event


def fold_stored(events: Iterable[tuple[Any, ...]], settled: bool = False) -> TurnFold:
    """Fold stored rows of (id, type, time, flags, ends, tool), in the turn's order."""
    turn = TurnFold()
    for event in events:
        turn.add(*event)
    if settled:
        turn.settle()
    return turn
