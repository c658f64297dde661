"""Real Claude Code transcripts through the adapter alone: what must hold of each record however the reading is cut.

What the sessions say is held to facts by `tests/test_corpus.py`, through the whole product.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

from facts import CORPUS, needs_corpus, records
from outcrop.harnesses import Form, SourceFile
from outcrop.harnesses.claude_code import HARNESS
from outcrop.model import Event, EventType, Parsed
from reading import NoSide

KNOWN_UNKNOWN: set[str] = set()
"""Kinds of the corpus that the adapter does not understand: none."""

pytestmark = needs_corpus


def corpus_files() -> list[SourceFile]:
    cowork = CORPUS / "misc-fixtures" / "eric-tramel__moraine" / "fixtures" / "claude-cowork"
    return [*HARNESS.discover("claude", CORPUS / "claude-code"), *HARNESS.discover("claude-cowork", cowork)]


def read(file: SourceFile, cuts: set[int] | None = None) -> list[Parsed]:
    """All records through the reader, which starts anew from its state at each cut."""
    if file.form is Form.DOCUMENT:
        rows = list(HARNESS.records(file, json.loads(Path(file.path).read_bytes())))
    else:
        rows = list(records(Path(file.path)))
    reader, parsed = HARNESS.reader(file, None, NoSide()), []
    for number, record in enumerate(rows):
        if cuts and number in cuts:
            reader = HARNESS.reader(file, json.loads(json.dumps(reader.state())), NoSide())
        parsed.append(reader.feed(record))
    return parsed


def test_every_record_gives_items_or_a_reason_and_unknown_kinds_are_listed() -> None:
    unknown: Counter[str] = Counter()
    for file in corpus_files():
        for one in read(file):
            assert one.items or one.reason, (file.path, one.kind)
            for item in one.items:
                if isinstance(item, Event) and item.type is EventType.UNKNOWN and file.source == "claude":
                    unknown[one.kind] += 1
    assert set(unknown) == KNOWN_UNKNOWN


def test_reading_cut_at_any_place_gives_the_same_items() -> None:
    chance = random.Random(7)
    for file in corpus_files():
        whole = read(file)
        for share in (0.02, 0.3, 1.0):
            cuts = {number for number in range(1, len(whole)) if chance.random() < share}
            # One state a record is dear in a file of thousands: there the ends are enough.
            if len(whole) > 500 and share > 0.1:
                cuts = set(range(len(whole) - 60, len(whole)))
            assert read(file, cuts) == whole, file.path


def test_keys_are_unique_but_for_records_written_twice() -> None:
    for file in corpus_files():
        rows = [] if file.form is Form.DOCUMENT else list(records(Path(file.path)))
        uuids = Counter(row["uuid"] for row in rows if row.get("uuid"))
        counted = Counter(
            (item.session, item.key) for one in read(file) for item in one.items if isinstance(item, Event)
        )
        for (_, key), times in counted.items():
            assert times <= uuids.get(key.split(":")[0], 1), key


def test_T49_progress_with_copied_agent_records_gives_no_events() -> None:
    for file in corpus_files():
        for one in read(file):
            assert not (one.kind == "progress/agent_progress" and one.items)


def test_the_state_stays_small() -> None:
    for file in corpus_files():
        if file.form is Form.LINES:
            reader = HARNESS.reader(file, None, NoSide())
            for record in records(Path(file.path)):
                reader.feed(record)
            assert len(json.dumps(reader.state())) < 16_000, file.path
