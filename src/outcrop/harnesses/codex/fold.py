"""What a rollout's reader remembers, and how it names, pairs and makes events.

Codex says most things twice, as a model item and as a message for its screen: whichever comes first gives the event,
the other one is matched inside the turn by its text. Keys hold only what a fork copies (turn ids, call ids, texts).
All memory is plain JSON and bounded, by the turn or by a cap, so that reading may be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from outcrop.harnesses.codex.records import squeezed, string
from outcrop.harnesses.json_values import bound
from outcrop.harnesses.memory import recalled
from outcrop.harnesses.outcomes import GENERATED, Outcome
from outcrop.ids import text_digest
from outcrop.model import Amend, Event, EventType, Item

CAP = 256
"""Entries of any one memory; a turn that needs more loses the oldest matches, never an event."""
POOL = 64
"""Texts of one stream that wait for their mirror."""

_TOKEN = 20
"""Characters from which on a call id is taken to be unique in its session."""

ITEMS, SCREEN = "items", "screen"
"""The two streams: what the model saw, and what the user saw."""


@dataclass(slots=True)
class Memory:
    """All that the next record may need.

    `calls` maps a call id to [tool, original spelling, an end event stood in for the response, output items seen,
    the name that its keys use];
    `items` and `screen` map a mark to the [key, tag] of its events that have no mirror yet; `said` is
    [key, digest, partial] of the latest answer; `late` says that the turn's id came after its prompt, whose events
    then go without it; `lineage` holds [native id, UTC ms of creation], the parent first.
    """

    begun: bool = False
    header: str = ""
    native: str | None = None
    created: int | None = None
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    agent_path: str | None = None
    envelopes: bool = False
    labelled: bool = False
    tasks: bool = False
    tokens: Any = None
    context: str = ""
    first_prompt: str = ""
    after_abort: bool = False
    openers: dict[str, int] = field(default_factory=dict)
    opened_turns: int = 0
    visits: dict[str, int] = field(default_factory=dict)

    lineage: list[list[Any]] = field(default_factory=list)
    copying: bool = False
    origin: str | None = None
    dated: bool = False
    last: int | None = None

    turn: str | None = None
    late: bool = False
    key: str = "head"
    opened: bool = False
    ended: bool = False
    active: bool = False
    failed: bool = False
    answered: bool = False
    said: list[Any] = field(default_factory=list)
    compacted: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    spill: int = 0
    items: dict[str, list[list[str]]] = field(default_factory=dict)
    screen: dict[str, list[list[str]]] = field(default_factory=dict)
    calls: dict[str, list[Any]] = field(default_factory=dict)


class Fold:
    """The memory of one rollout and what every kind of record does with it."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        self.memory = recalled(Memory, state)
        self.keep: Any = None
        """What the present record holds that no event does."""

    def state(self) -> dict[str, Any]:
        return asdict(self.memory)

    # Turns

    def enter(self, turn: str | None, key: str) -> None:
        """Begin a turn: everything that is counted by the turn starts again; unanswered calls go on."""
        m = self.memory
        m.turn, m.key = turn, key
        m.late = m.opened = m.ended = m.active = m.failed = m.answered = False
        m.said, m.compacted, m.counts, m.spill = [], "", {}, 0
        m.items, m.screen = {}, {}
        m.calls = {call: entry for call, entry in m.calls.items() if not entry[3]}

    def name_turn(self, p: dict[str, Any]) -> None:
        """A record names the running turn. A prompt that came just before belongs to it."""
        m = self.memory
        turn = string(p, "turn_id")
        if not turn or turn == m.turn:
            return
        if m.turn is None and m.opened and not m.active and not m.ended:
            m.turn, m.late = turn, True
            return
        visit = m.visits.pop(turn, 0)
        m.visits[turn] = visit + 1
        bound(m.visits, 32)
        self.enter(turn, turn if not visit else f"{turn}~{visit}")

    def act(self) -> None:
        """The model did something: the turn goes on, whatever failed or was compacted before."""
        m = self.memory
        m.active, m.failed, m.compacted = True, False, ""

    # Keys and mirrors

    def key(self, mark: str) -> str:
        """`<turn>:<mark>:<n>`, n counting equal marks of the turn; beyond the cap a plain serial number."""
        m = self.memory
        count = m.counts.get(mark)
        if count is None and len(m.counts) >= CAP:
            m.spill += 1
            return f"{m.key}:{mark}:+{m.spill}"
        m.counts[mark] = (count or 0) + 1
        return f"{m.key}:{mark}:{count or 0}"

    def take(self, stream: str, mark: str) -> list[str] | None:
        """Key and tag of the oldest event that the other stream gave for this mark and that has no mirror yet."""
        pool = self.memory.screen if stream == ITEMS else self.memory.items
        waiting = pool.get(mark)
        if waiting is None:
            return None
        first = waiting.pop(0)
        if not waiting:
            del pool[mark]
        return first

    def wait(self, stream: str, mark: str, key: str, tag: str) -> None:
        """An event of this stream may be said again by the other one."""
        pool = self.memory.items if stream == ITEMS else self.memory.screen
        pool.setdefault(mark, []).append([key, tag])
        bound(pool, POOL)

    def spoken(
        self, stream: str, kind: EventType, parts: list[str], time: int | None, tag: str = ""
    ) -> list[Item] | str:
        """Texts of one record: one event of those that the other stream has not said, else a mirror.

        `tag` is what this record knows besides the text. Where the first record did not know it, an empty Amend for
        the caller to fill comes back for the mirrored event.
        """
        marks = [text_mark(kind, part) for part in parts]
        whole = text_mark(kind, "".join(parts)) if len(parts) > 1 else ""
        partner = self.take(stream, whole) if whole else None
        rest: list[int] = []
        if partner is None:
            for place, mark in enumerate(marks):
                found = self.take(stream, mark)
                if found is None:
                    rest.append(place)
                partner = found or partner
        if not rest:
            if partner is not None and tag and partner[1] != tag:
                return [Amend(partner[0], {})]
            return "mirrors reasoning" if kind is EventType.REASONING else "mirrors a message"
        text = ("\n\n" if kind is EventType.REASONING else "\n").join(parts[place] for place in rest)
        key = self.key(marks[rest[0]] if len(rest) == 1 else text_mark(kind, text))
        for place in rest:
            self.wait(stream, marks[place], key, tag)
        if whole and len(rest) == len(parts):
            self.wait(stream, whole, key, tag)
        return [self.event(key, kind, text, time)]

    # Calls

    def remember(self, call: str, tool: str | None, original: str | None) -> list[Any]:
        """The entry of a new call, or of an output whose call is not known.

        Ids that are no random tokens (`call_0`, `functions.shell:3` of some providers) come again in other turns.
        """
        m = self.memory
        name = call if len(call) >= _TOKEN and ":" not in call else self.key(f"call:{call}")
        m.calls.pop(call, None)
        m.calls[call] = [tool, original, False, 0, name]
        bound(m.calls, CAP)
        return m.calls[call]

    # Events

    def event(self, key: str, kind: EventType, text: str, time: int | None, **more: Any) -> Event:
        m = self.memory
        model = m.model if kind in GENERATED else None
        turn = None if m.late else m.turn
        return Event(key, kind, text, time, turn=turn, cwd=m.cwd, branch=m.branch, generator=model, **more)

    def mark(self, name: str, kind: EventType, text: str, time: int | None, **more: Any) -> Event:
        """An event that is known by its kind and its place among its like in the turn."""
        return self.event(self.key(name), kind, text, time, **more)

    def system(self, text: str, time: int | None) -> Event:
        """Text that the program itself put into the conversation."""
        mark = text_mark(EventType.SYSTEM, text)
        key = self.key(mark)
        self.wait(ITEMS, mark, key, "")
        return self.event(key, EventType.SYSTEM, text, time)


def text_mark(kind: EventType, text: str) -> str:
    """What texts of one kind are compared by: white space apart, but for the long ones that the program injects."""
    return f"{kind}:{text_digest(text if kind is EventType.SYSTEM else squeezed(text))}"


def some(record: dict[str, Any], *names: str) -> dict[str, Any] | None:
    """The named values that are there; None where none is."""
    return {name: record[name] for name in names if record.get(name) is not None} or None


Handler = Callable[[Fold, dict[str, Any], int | None], Outcome]
"""Takes the fold, the record's payload and its time (UTC ms)."""
