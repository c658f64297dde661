"""Real Claude Code transcripts against facts that were read from their raw lines, without the adapter.

`facts/claude/*.json` names the opening line of each turn, a hash of its prompt, its tools and how it ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outcrop.harnesses import Form, SourceFile
from outcrop.harnesses.claude_code import HARNESS
from outcrop.model import Amend, End, Event, EventType, Fact, Item, Parsed

CORPUS = Path(os.environ.get("OUTCROP_CORPUS", "/nonexistent"))
FACTS = sorted((Path(__file__).parent / "facts" / "claude").glob("*.json"))
KNOWN_UNKNOWN: set[str] = set()
"""Kinds of the corpus that the adapter does not understand: none."""

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="OUTCROP_CORPUS does not name the corpus")

ACTIVITY = (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL, EventType.TOOL_RESPONSE)


class NoSide:
    """Nothing stands beside the corpus files."""

    def text(self, path: str, inside: str, limit: int) -> str | None:
        return None


def records(path: str) -> list[dict[str, Any]]:
    """Records of a file; two that stand on one line are both taken."""
    decoder, found = json.JSONDecoder(), []
    for raw in Path(path).read_bytes().split(b"\n"):
        line = raw.decode("utf-8", "replace").strip()
        while line:
            record, end = decoder.raw_decode(line)
            found.append(record)
            line = line[end:].lstrip()
    return found


def corpus_files() -> list[SourceFile]:
    cowork = CORPUS / "misc-fixtures" / "eric-tramel__moraine" / "fixtures" / "claude-cowork"
    return [*HARNESS.discover("claude", CORPUS / "claude-code"), *HARNESS.discover("claude-cowork", cowork)]


def read(file: SourceFile, cuts: set[int] | None = None) -> list[Parsed]:
    """All records through the reader, which starts anew from its state at each cut."""
    if file.form is Form.DOCUMENT:
        rows = list(HARNESS.records(file, json.loads(Path(file.path).read_bytes())))
    else:
        rows = records(file.path)
    reader, parsed = HARNESS.reader(file, None, NoSide()), []
    for number, record in enumerate(rows):
        if cuts and number in cuts:
            reader = HARNESS.reader(file, json.loads(json.dumps(reader.state())), NoSide())
        parsed.append(reader.feed(record))
    return parsed


def fold(items: Iterator[Item]) -> list[dict[str, Any]]:
    """Turns of the file's own session: prompt, tools and end of each."""
    turns: list[dict[str, Any]] = []
    seen: dict[str, Event] = {}
    for item in items:
        if isinstance(item, Fact) or item.session is not None:
            continue
        if isinstance(item, Amend):
            event = seen.get(item.key)
            if event is not None:
                for name, value in item.changes.items():
                    setattr(event, name, value)
                if "ends" in item.changes:
                    turns[-1]["ends"] = item.changes["ends"]
            continue
        if item.key in seen:
            continue
        seen[item.key] = item
        if item.opens:
            if item.settles and turns and turns[-1]["ends"] is None and turns[-1]["reply"]:
                turns[-1]["ends"] = End.FINAL
            if not turns or turns[-1]["prompt"] is not None:
                turns.append({"prompt": None, "tools": [], "ends": None, "reply": False})
            turns[-1]["prompt"] = item
            continue
        if not turns:
            turns.append({"prompt": None, "tools": [], "ends": None, "reply": False})
        turn = turns[-1]
        if item.type in ACTIVITY:
            turn["ends"] = None
            turn["reply"] = item.type is EventType.ASSISTANT_RESPONSE
        if item.type is EventType.TOOL_CALL:
            turn["tools"].append(item.original_tool or item.tool)
        if item.ends is not None:
            turn["ends"] = item.ends
    return [
        {"prompt": turn["prompt"].text if turn["prompt"] else None, "tools": turn["tools"], "ends": turn["ends"]}
        for turn in turns
    ]


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check(turns: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    """Hold plain turns (`prompt` text, `tools` names, `ends` or None) to the facts of their session."""
    wanted = facts["turns"]
    assert [hashed(turn["prompt"] or "") for turn in turns] == [turn["prompt"] for turn in wanted]
    for turn, want in zip(turns, wanted, strict=True):
        place = f"turn that opens on line {want['line']}"
        if isinstance(want["tools"], dict):
            assert len(turn["tools"]) == want["tools"]["count"], place
            assert hashed(" ".join(turn["tools"])) == want["tools"]["names"], place
        else:
            assert turn["tools"] == want["tools"], place
        assert turn["ends"] == want["ends"], place


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_a_session_holds_what_its_lines_say(path: Path) -> None:
    facts = json.loads(path.read_text(encoding="utf-8"))
    file = next(file for file in corpus_files() if file.path == str(CORPUS / facts["file"]))
    parsed = read(file)
    items = [item for one in parsed for item in one.items]
    check(fold(iter(items)), facts)
    told = {item.name: item.value for item in items if isinstance(item, Fact) and item.session is None}
    title = told.get("title.user") or told.get("title.generated") or told.get("title.summary")
    assert (hashed(title) if title else None) == facts["title"]
    assert told.get("parent") == facts["parent"]
    reader = HARNESS.reader(file, None, NoSide())
    for record in records(file.path):
        reader.feed(record)
    assert reader.session == facts["session"]


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
        rows = [] if file.form is Form.DOCUMENT else records(file.path)
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
            for record in records(file.path):
                reader.feed(record)
            assert len(json.dumps(reader.state())) < 16_000, file.path
