"""Pi's family in tests: the turns that its events make, whose ids they bear, and what they are held to.

Shared by the tests of pi, prime-agent and OpenClaw, whose files have one format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from facts import CORPUS, FOLDER, Turn, records
from outcrop.harnesses import Harness, SourceFile
from outcrop.model import END_CODE, ENDS, TYPE_CODE, Event, EventType, Parsed
from outcrop.store.embedded import rows
from outcrop.turns import TurnFold
from reading import FIXTURES, Beside, events, facts_of, read


def whole(harness: Harness, file: SourceFile) -> list[Parsed]:
    return read(harness, file, list(records(Path(file.path))))


def turns(parsed: list[Parsed]) -> list[tuple[Turn, str | None]]:
    """The turns of a session and how they ended."""
    order: list[str] = []
    inside: dict[str, list[Event]] = {}
    settled: set[str] = set()
    for event in events(parsed):
        if event.turn is None:
            continue
        if event.turn not in inside:
            if event.settles and order:
                settled.add(order[-1])
            order.append(event.turn)
        inside.setdefault(event.turn, []).append(event)
    return [_turn(inside[key], key in settled) for key in order]


def _turn(inside: list[Event], settled: bool) -> tuple[Turn, str | None]:
    fold = TurnFold()
    for number, event in enumerate(inside, 1):
        flags = (rows.PARTIAL if event.partial else 0) | (rows.BY_USER if event.by_user else 0)
        ends = END_CODE[event.ends] if event.ends else 0
        fold.add(number, TYPE_CODE[event.type], event.time or 0, flags, ends, None)
    if settled:
        fold.settle()
    said = [event for event in inside if event.type is EventType.USER_INPUT]
    end = ENDS[fold.ends - 1].value if fold.ends else None
    turn = Turn(
        prompt=said[0].text,
        tools=[e.original_tool or e.tool or "" for e in inside if e.type is EventType.TOOL_CALL and not e.by_user],
        completed=bool(fold.ends),
        final=inside[(fold.terminal or 1) - 1].text if end == "final" else None,
        steers=[hashlib.sha256(event.text.encode()).hexdigest()[:16] for event in said[1:]],
    )
    return turn, end


def known_facts(harness: str) -> Iterator[dict[str, Any]]:
    """The fact files of a harness whose sessions are at hand: those of fixtures always, others with the corpus."""
    for path in sorted((FOLDER / harness).glob("*.json")):
        one = json.loads(path.read_text(encoding="utf-8"))
        one["path"] = (CORPUS if one["corpus"] else FIXTURES) / one["file"]
        one["name"] = path.stem
        yield one


def hold(harness: Harness, one: dict[str, Any], file: SourceFile) -> None:
    """Hold a session to its facts: turns with places, prompts, tools and ends; times; parent and title."""
    parsed = whole(harness, file)
    assert len(parsed) == one["records"]
    opening = [n for n, p in enumerate(parsed, 1) if any(isinstance(i, Event) and i.opens for i in p.items)]
    assert opening == [turn["line"] for turn in one["turns"]]
    made = turns(parsed)
    assert len(made) == len(one["turns"])
    for (turn, end), want in zip(made, one["turns"], strict=True):
        place = f"turn that opens on line {want['line']}"
        assert hashlib.sha256(turn.prompt.encode()).hexdigest()[:16] == want["prompt"], place
        assert turn.tools == want["tools"], place
        assert end == want["ends"], place
        final = hashlib.sha256(turn.final.encode()).hexdigest()[:16] if turn.final is not None else None
        assert final == (want["final"] and want["final"]["text"]), place
    times = [event.time for event in events(parsed)]
    known = [time for time in times if time is not None]
    assert len(known) == len(times)
    assert (min(known), max(known)) == (one["first_time"], one["last_time"])
    facts = facts_of(parsed)
    title = facts.get("title.user") or facts.get("title.generated")
    assert (facts.get("parent"), facts.get("relation"), title) == (one["parent"], one["relation"], one["title"])
    reader = harness.reader(file, None, Beside())
    for row in records(Path(file.path)):
        reader.feed(row)
        assert len(json.dumps(reader.state())) < 16_000
    assert reader.session == one["session"]
