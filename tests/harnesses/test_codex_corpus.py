"""Real Codex rollouts against facts that were read from their raw lines, without the adapter.

`facts/codex/*.json` names the line of each turn's opening prompt, how the turn ended, the steering prompts, hashes of
the first and the last prompt, and all tools in runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from outcrop.harnesses import SourceFile
from outcrop.harnesses.codex import HARNESS
from outcrop.model import Amend, End, Event, EventType, Fact, Parsed

CORPUS = Path(os.environ.get("OUTCROP_CORPUS", "/nonexistent"))
FACTS = sorted((Path(__file__).parent / "facts" / "codex").glob("*.json"))

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="OUTCROP_CORPUS does not name the corpus")

ACTIVITY = (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL, EventType.TOOL_RESPONSE)


class NoSide:
    """Nothing stands beside a rollout."""

    def text(self, path: str, inside: str, limit: int) -> str | None:
        return None


def facts_of(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return facts


def source(facts: dict[str, Any]) -> SourceFile:
    return SourceFile(str(CORPUS / facts["file"]), "codex", native=facts["session"])


def records(file: SourceFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file.path).read_bytes().split(b"\n") if line.strip()]


def read(file: SourceFile, cuts: frozenset[int] = frozenset()) -> list[Parsed]:
    """All records through the reader, which starts anew from its state at each cut."""
    reader, parsed = HARNESS.reader(file, None, NoSide()), []
    for number, record in enumerate(records(file)):
        if number in cuts:
            reader = HARNESS.reader(file, json.loads(json.dumps(reader.state())), NoSide())
        parsed.append(reader.feed(record))
    assert reader.session == file.native
    return parsed


def fold(parsed: list[Parsed]) -> list[dict[str, Any]]:
    """Plain turns: `prompt`, `line` of it, `tools`, `ends` (a value of End, or None), `steers`."""
    turns: list[dict[str, Any]] = []

    def begin() -> dict[str, Any]:
        turns.append(
            {"prompt": None, "line": None, "tools": [], "ends": None, "steers": [], "reply": False, "id": None}
        )
        return turns[-1]

    for line, one in enumerate(parsed, 1):
        for item in one.items:
            if not isinstance(item, Event):
                continue
            turn = turns[-1] if turns else begin()
            if item.turn is not None and item.turn != turn["id"]:
                if turn["id"] is not None or (turn["prompt"] is not None and turn["ends"]):
                    turn = begin()
                turn["id"] = item.turn
            if item.opens:
                if item.settles and turn["ends"] is None and turn["reply"]:
                    turn["ends"] = End.FINAL
                if turn["prompt"] is not None:
                    turn = begin()
                turn.update(prompt=item.text, line=line)
            elif item.type is EventType.USER_INPUT:
                turn["steers"].append(line)
            if item.type in ACTIVITY:
                turn["ends"] = None
                turn["reply"] = item.type is EventType.ASSISTANT_RESPONSE and not item.partial
            if item.type is EventType.TOOL_CALL:
                turn["tools"].append(item.original_tool or item.tool)
            turn["ends"] = item.ends or turn["ends"]
    return turns


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check(turns: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    """Hold plain turns (`prompt` text, `tools` names, `ends` or None) to the facts of their session."""
    assert len(turns) == len(facts["turns"])
    assert hashed(turns[0]["prompt"]) == facts["first_prompt"]["sha"]
    assert hashed(turns[-1]["prompt"]) == facts["last_prompt"]["sha"]
    for turn, want in zip(turns, facts["turns"], strict=True):
        assert turn["ends"] == want["end"], f"turn that opens on line {want['line']}"
    tools = [tool for turn in turns for tool in turn["tools"]]
    assert [[name, len(list(run))] for name, run in groupby(tools)] == facts["tools"]


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_a_session_holds_what_its_lines_say(path: Path) -> None:
    facts = facts_of(path)
    parsed = read(source(facts))
    assert len(parsed) == facts["records"]
    turns = fold(parsed)
    check(turns, facts)
    assert [turn["line"] for turn in turns] == [turn["line"] for turn in facts["turns"]]
    assert [line for turn in turns for line in turn["steers"]] == facts["steers"]
    told = {item.name: item.value for one in parsed for item in one.items if isinstance(item, Fact)}
    assert told.get("parent") == facts["parent"]
    assert told.get("relation") == facts["relation"]
    assert told.get("title.generated") == facts["title"]


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_every_record_gives_items_or_a_reason_and_none_is_unknown(path: Path) -> None:
    keys: Counter[str] = Counter()
    for one in read(source(facts_of(path))):
        assert one.items or one.reason, one.kind
        for item in one.items:
            if isinstance(item, Event):
                keys[item.key] += 1
                assert item.type is not EventType.UNKNOWN, one.kind
            elif isinstance(item, Amend):
                assert item.key in keys, "an amendment follows its event"
    assert max(keys.values()) == 1


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_reading_cut_at_any_place_gives_the_same_items(path: Path) -> None:
    file, chance = source(facts_of(path)), random.Random(7)
    whole = read(file)
    for share in (0.02, 0.5):
        cuts = frozenset(number for number in range(len(whole)) if chance.random() < share)
        assert read(file, cuts) == whole


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_the_state_stays_small(path: Path) -> None:
    file = source(facts_of(path))
    reader = HARNESS.reader(file, None, NoSide())
    for record in records(file):
        reader.feed(record)
        assert len(reader.state()["calls"]) <= 256
    assert len(json.dumps(reader.state())) < 16_000


@pytest.mark.parametrize("path", [path for path in FACTS if facts_of(path).get("copied")], ids=lambda path: path.stem)
def test_T18_copied_lines_carry_the_keys_of_the_session_they_come_from(path: Path) -> None:
    facts = facts_of(path)
    first, last = facts["copied"]
    parsed = read(source(facts))
    copied = {
        item.key: item.origin
        for line, one in enumerate(parsed, 1)
        for item in one.items
        if isinstance(item, Event) and first <= line <= last
    }
    assert copied
    assert set(copied.values()) == {(facts["parent"], key) for key in copied}
    own = [item for one in parsed[last:] for item in one.items if isinstance(item, Event)]
    assert own[0].text
    assert all(item.origin is None for item in own)
    assert next(item for item in own if item.opens) is parsed[facts["first_own_prompt"] - 1].items[0]
    parent = next((one for one in FACTS if one.stem == facts["parent"]), None)
    assert parent is not None
    original = {item.key for one in read(source(facts_of(parent))) for item in one.items if isinstance(item, Event)}
    assert set(copied) <= original
