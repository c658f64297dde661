"""Real and published Cursor sessions through the adapter alone, held to facts read without it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from facts import CORPUS, hashed, needs_corpus
from outcrop.harnesses import Form, SourceFile
from outcrop.harnesses.cursor import DATABASE, HARNESS, TRANSCRIPTS
from outcrop.model import EventType, Parsed
from reading import NoSide, events_of, facts_of, turns_of

pytestmark = needs_corpus

FOLDER = Path(__file__).parent / "facts" / "cursor"
FACTS = [{"name": path.stem, **json.loads(path.read_text(encoding="utf-8"))} for path in sorted(FOLDER.glob("*.json"))]
PUBLISHED = "misc-fixtures/eric-tramel__moraine/fixtures/cursor"
UNKNOWN = {"schema_drift": 1}
"""Blocks that no reader of Cursor knows: one was made up by the author of that file."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SourceFile]:
    """The corpus laid out as Cursor lays it out: corpus file → what is discovered of it."""
    home = tmp_path_factory.mktemp("cursor")
    user, agents = home / "User", home / ".cursor"
    places: dict[str, Path] = {}
    for path in files():
        name = str(path.relative_to(CORPUS))
        if path.suffix == ".vscdb":
            places[name] = copy(path, user / "workspaceStorage" / "aa" / "state.vscdb")
        elif path.name == "state-vscdb-kv.jsonl":
            places[name] = database(path, user / "globalStorage" / "state.vscdb")
        else:
            parts = ("parent", "subagents", path.name) if path.parent.name == "subagents" else (path.stem, path.name)
            places[name] = copy(path, agents / "projects" / "w" / "agent-transcripts" / Path(*parts))
    files_found = [*HARNESS.discover(DATABASE, user), *HARNESS.discover(TRANSCRIPTS, agents)]
    by_path = {file.path: file for file in files_found}
    assert set(by_path) == {str(place) for place in places.values()}, "every file of the corpus is a place of sessions"
    return {name: by_path[str(place)] for name, place in places.items()}


def files() -> list[Path]:
    return sorted(path for folder in ("cursor", PUBLISHED) for path in (CORPUS / folder).rglob("*") if path.is_file())


def copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return target


def database(rows: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        for row in map(json.loads, rows.read_text(encoding="utf-8").splitlines()):
            connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (row["key"], json.dumps(row["value"])))
        connection.commit()
    return target


def read(file: SourceFile, native: str) -> list[Parsed]:
    inside = SourceFile(file.path, file.source, file.form, file.role, native, file.parent)
    if file.form is Form.CONTAINER:
        inside = SourceFile(f"{file.path}#{native}", file.source, file.form, "session", native)
        with closing(HARNESS.container(file)) as container:
            rows = list(container.records(native))
    else:
        rows = [json.loads(line) for line in Path(file.path).read_text(encoding="utf-8").split("\n") if line]
    reader = HARNESS.reader(inside, None, NoSide())
    parsed = [reader.feed(row) for row in rows]
    assert reader.session == native
    assert all(one.items or one.reason for one in parsed)
    return parsed


@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_records_say(found: dict[str, SourceFile], told: dict[str, Any]) -> None:
    parsed = read(found[told["file"]], told["session"])
    known, events = facts_of(parsed), events_of(parsed)
    turns = turns_of(events)
    assert [hashed(turn.prompt) for turn in turns] == [turn["prompt"] for turn in told["turns"]]
    assert [turn.tools for turn in turns] == [turn["tools"] for turn in told["turns"]]
    assert [turn.ends for turn in turns] == [turn["ends"] for turn in told["turns"]]
    assert [turn.final and hashed(turn.final.text) for turn in turns] == [
        turn["final"] and turn["final"]["text"] for turn in told["turns"]
    ]
    assert hashed(known.get("title.generated")) == told["title"]
    assert (known.get("parent"), known.get("relation")) == (told["parent"], told["relation"])
    times = [event.time for event in events if event.time is not None]
    assert (min(times, default=None), max(times, default=None)) == (told["first_time"], told["last_time"])
    records = [one for one in parsed if one.kind in ("user", "assistant", "tool", "turn_ended", "bubble")]
    assert len(records) == told["records"]
    opening = [n for n, one in enumerate(records, 1) if any(getattr(item, "opens", False) for item in one.items)]
    assert opening == [turn["line"] for turn in told["turns"]]
    assert sum(event.type is EventType.UNKNOWN for event in events) == UNKNOWN.get(told["name"], 0)


def test_every_conversation_of_the_real_database_is_read_whole(found: dict[str, SourceFile]) -> None:
    file = found["cursor/slevin48__cursor-history/state.vscdb"]
    with closing(HARNESS.container(file)) as container:
        natives = [native for native, _ in container.sessions()]
    assert len(natives) == len(set(natives)) == 31
    counts: Counter[str] = Counter()
    for native in natives:
        parsed = read(file, native)
        counts.update(one.reason or one.kind for one in parsed)
        assert not any(event.type is EventType.UNKNOWN for event in events_of(parsed))
    assert counts == {"composer": 26, "chat": 5, "bubble": 126, "status": 26, "an empty message": 5}
