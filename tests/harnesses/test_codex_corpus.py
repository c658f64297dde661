"""Real Codex rollouts through the adapter alone: what must hold of each record however the reading is cut.

What the sessions say is held to facts by `tests/test_corpus.py`, through the whole product.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from facts import CORPUS, facts, needs_corpus, records
from outcrop.harnesses import SourceFile
from outcrop.harnesses.codex import HARNESS
from outcrop.model import Amend, Event, EventType, Parsed
from reading import NoSide

pytestmark = needs_corpus

FACTS = facts("codex")


def name(told: dict[str, Any]) -> str:
    return str(told["name"])


def source(told: dict[str, Any]) -> SourceFile:
    return SourceFile(str(CORPUS / told["file"]), "codex", native=told["session"])


def read(file: SourceFile, cuts: frozenset[int] = frozenset()) -> list[Parsed]:
    """All records through the reader, which starts anew from its state at each cut."""
    reader, parsed = HARNESS.reader(file, None, NoSide()), []
    for number, record in enumerate(records(Path(file.path))):
        if number in cuts:
            reader = HARNESS.reader(file, json.loads(json.dumps(reader.state())), NoSide())
        parsed.append(reader.feed(record))
    assert reader.session == file.native
    return parsed


@pytest.mark.parametrize("told", FACTS, ids=name)
def test_turns_open_on_the_lines_that_the_facts_name(told: dict[str, Any]) -> None:
    parsed = read(source(told))
    opening = [
        line for line, one in enumerate(parsed, 1) if any(isinstance(item, Event) and item.opens for item in one.items)
    ]
    assert opening == [turn["line"] for turn in told["turns"]]


@pytest.mark.parametrize("told", FACTS, ids=name)
def test_every_record_gives_items_or_a_reason_and_none_is_unknown(told: dict[str, Any]) -> None:
    keys: Counter[str] = Counter()
    for one in read(source(told)):
        assert one.items or one.reason, one.kind
        for item in one.items:
            if isinstance(item, Event):
                keys[item.key] += 1
                assert item.type is not EventType.UNKNOWN, one.kind
            elif isinstance(item, Amend):
                assert item.key in keys, "an amendment follows its event"
    assert max(keys.values()) == 1


@pytest.mark.parametrize("told", FACTS, ids=name)
def test_reading_cut_at_any_place_gives_the_same_items(told: dict[str, Any]) -> None:
    file, chance = source(told), random.Random(7)
    whole = read(file)
    for share in (0.02, 0.5):
        cuts = frozenset(number for number in range(len(whole)) if chance.random() < share)
        assert read(file, cuts) == whole


@pytest.mark.parametrize("told", FACTS, ids=name)
def test_the_state_stays_small(told: dict[str, Any]) -> None:
    file = source(told)
    reader = HARNESS.reader(file, None, NoSide())
    for record in records(Path(file.path)):
        reader.feed(record)
        assert len(reader.state()["calls"]) <= 256
    assert len(json.dumps(reader.state())) < 16_000


@pytest.mark.parametrize("told", [told for told in FACTS if "copied" in told], ids=name)
def test_T18_copied_lines_carry_the_keys_of_the_session_they_come_from(told: dict[str, Any]) -> None:
    first, last = told["copied"]
    parsed = read(source(told))
    copied = {
        item.key: item.origin
        for line, one in enumerate(parsed, 1)
        for item in one.items
        if isinstance(item, Event) and first <= line <= last
    }
    assert copied
    assert set(copied.values()) == {(told["parent"], key) for key in copied}
    own = [item for one in parsed[last:] for item in one.items if isinstance(item, Event)]
    assert own[0].text
    assert all(item.origin is None for item in own)
    assert next(item for item in own if item.opens) is parsed[told["first_own_prompt"] - 1].items[0]
    parent = next(one for one in FACTS if one["session"] == told["parent"])
    original = {item.key for one in read(source(parent)) for item in one.items if isinstance(item, Event)}
    assert set(copied) <= original
