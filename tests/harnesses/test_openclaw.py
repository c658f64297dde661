"""The OpenClaw adapter: files of each agent, what a reset put aside, the index, and the database of later versions."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from facts import CORPUS, needs_corpus, records
from outcrop.harnesses import Container, Environment, Form, SourceFile
from outcrop.harnesses.openclaw import HARNESS, transcript
from outcrop.model import Event, EventType, Fact, Relation
from pi_reading import hold, known_facts, turns, whole
from reading import FIXTURES, Beside, events, read

ROOT = FIXTURES / "openclaw"
FILES = "5d1c7a60-0001-4b00-8000-000000000001"
RESET = "5d1c7a60-0002-4b00-8000-000000000002"
FACTS = list(known_facts("openclaw"))


def source(native: str) -> SourceFile:
    return next(file for file in HARNESS.discover("openclaw", ROOT) if file.native == native)


def test_the_roots_follow_the_variables_and_the_earlier_names() -> None:
    home = Path("/home/u")
    names = [path.name for path in HARNESS.roots("openclaw", Environment(home))]
    assert names == [".openclaw", ".clawdbot", ".moldbot", ".moltbot"]
    chosen = Environment(home, {"OPENCLAW_STATE_DIR": "~/claw"})
    assert HARNESS.roots("openclaw", chosen) == [home / "claw"]
    assert HARNESS.roots("openclaw", Environment(home, {"CLAWDBOT_STATE_DIR": "/s"})) == [Path("/s")]
    moved = Environment(home, {"OPENCLAW_HOME": "/srv"})
    assert HARNESS.roots("openclaw", moved)[0] == Path("/srv/.openclaw")
    mac = Environment(Path("/Users/u"), {}, "darwin")
    assert HARNESS.roots("openclaw", mac)[0] == Path("/Users/u/.openclaw")


def test_discover_takes_transcripts_and_the_index() -> None:
    found = {os.path.basename(file.path): file for file in HARNESS.discover("openclaw", ROOT)}
    assert {name: (file.role, file.native) for name, file in found.items()} == {
        f"{FILES}.jsonl": ("transcript", FILES),
        f"{RESET}.jsonl.reset.2026-11-01T08-00-00.000Z": ("transcript", RESET),
        "sessions.json": ("index", None),
    }
    assert found["sessions.json"].form is Form.DOCUMENT
    assert list(HARNESS.discover("openclaw", FIXTURES)) == []
    assert len(list(HARNESS.discover("openclaw", ROOT / "agents"))) == 3


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("a.jsonl", True),
        ("a-topic-7.jsonl", True),
        ("my.checkpoint.jsonl", True),
        ("a.checkpoint.aaaaaaaa-0000-4000-8000-000000000001.jsonl", False),
        ("a.trajectory.jsonl", False),
        ("a.jsonl.reset.2026-11-01T08-00-00.000Z", True),
        ("a.jsonl.deleted.2026-11-01T08-00-00.000Z", False),
        ("a.jsonl.bak.2026-11-01T08-00-00.000Z", False),
        ("sessions.json.bak.17", False),
    ],
)
def test_names_of_transcripts(name: str, is_one: bool) -> None:
    assert transcript(name) is is_one


def test_a_session_without_reasons_to_stop_is_settled_by_the_next_prompt() -> None:
    parsed = whole(HARNESS, source(FILES))
    assert [(turn.prompt, turn.final, end) for turn, end in turns(parsed)] == [
        ("List files", "Two files.", "final"),
        ("Thanks", "Any time.", "final"),
    ]
    (response,) = events(parsed, EventType.TOOL_RESPONSE)
    assert (response.tool, response.exit_code, response.is_error, response.turn) == ("exec", 0, False, "c0000004")
    assert [one.text for one in events(parsed, EventType.SYSTEM)][2:] == ["It is Monday."]
    assert parsed[2].keep is not None


def test_the_index_gives_names_and_parents_and_nothing_else() -> None:
    file = next(file for file in HARNESS.discover("openclaw", ROOT) if file.role == "index")
    document = json.loads(Path(file.path).read_text(encoding="utf-8"))
    listed = list(HARNESS.records(file, document))
    assert "+15550100" not in json.dumps(listed)
    assert "work" not in json.dumps(listed)
    parsed = read(HARNESS, file, listed)
    assert [item for one in parsed for item in one.items] == [
        Fact("title.user", "Files", FILES),
        Fact("title.generated", "main", FILES),
        Fact("parent", FILES, RESET),
        Fact("relation", Relation.SUBAGENT, RESET),
    ]
    assert parsed[2].reason == "names no session"
    for odd in ([], None, 7, {"k": 3}, {"k": {"sessionId": 5}}):
        read(HARNESS, file, list(HARNESS.records(file, odd)))


def database(root: Path, packed: bool = False) -> Path:
    folder = root / "agents" / "main" / "agent"
    folder.mkdir(parents=True)
    path = folder / "openclaw-agent.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE auth_profiles (secret TEXT)")
    more = ", event_zstd BLOB" if packed else ""
    db.execute(
        "CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,"
        f" created_at INTEGER NOT NULL{more}, PRIMARY KEY (session_id, seq))"
    )
    for seq, row in reversed(list(enumerate(records(Path(source(FILES).path))))):
        text = json.dumps(row)
        if packed and seq % 2:
            data = zstandard.ZstdCompressor().compress(text.encode())
            db.execute("INSERT INTO transcript_events VALUES (?, ?, NULL, 1, ?)", (FILES, seq, data))
        else:
            db.execute(
                "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?, ?, ?, 1)",
                (FILES, seq, text),
            )
    db.execute("INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES ('broken', 1, '{', 2)")
    db.commit()
    return path


def counted(container: Container) -> list[tuple[str, str]]:
    """Sessions with the counts of their fingerprints; behind those stands a sum of what their newest rows say."""
    return [(native, fingerprint.rpartition(":")[0]) for native, fingerprint in container.sessions()]


@pytest.mark.parametrize("packed", [False, True])
def test_T14_a_session_in_the_database_is_the_one_in_the_file(tmp_path: Path, packed: bool) -> None:
    database(tmp_path, packed)
    (file,) = HARNESS.discover("openclaw", tmp_path)
    assert file.form is Form.CONTAINER
    container = HARNESS.container(file)
    assert counted(container) == [(FILES, "10:9:1"), ("broken", "1:1:2")]
    inner = SourceFile(f"{file.path}#{FILES}", "openclaw", Form.CONTAINER, "session", FILES)
    assert read(HARNESS, inner, list(container.records(FILES))) == whole(HARNESS, source(FILES))
    broken = SourceFile(f"{file.path}#broken", "openclaw", Form.CONTAINER, "session", "broken")
    (one,) = read(HARNESS, broken, list(container.records("broken")))
    assert [item.type for item in one.items if isinstance(item, Event)] == [EventType.UNKNOWN]
    container.close()


def test_T11_new_rows_show_while_the_writer_holds_the_database(tmp_path: Path) -> None:
    path = database(tmp_path)
    (file,) = HARNESS.discover("openclaw", tmp_path)
    writer = sqlite3.connect(path)
    before = HARNESS.stamp(file)
    writer.execute('INSERT INTO transcript_events VALUES (\'late\', 1, \'{"type":"session","id":"late"}\', 3)')
    writer.commit()
    assert HARNESS.stamp(file) != before
    container = HARNESS.container(file)
    assert ("late", "1:1:3") in counted(container)
    container.close()
    writer.close()


def test_T13_a_database_of_a_version_that_keeps_files_holds_no_session(tmp_path: Path) -> None:
    path = tmp_path / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    path.parent.mkdir(parents=True)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE auth_profiles (secret TEXT)")
    db.commit()
    db.close()
    (file,) = HARNESS.discover("openclaw", tmp_path)
    container = HARNESS.container(file)
    assert list(container.sessions()) == []
    container.close()


def test_links_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "state"
    shutil.copytree(ROOT, root)
    sessions = root / "agents" / "main" / "sessions"
    (sessions / "link.jsonl").symlink_to(sessions / f"{FILES}.jsonl")
    (root / "agents" / "other").symlink_to(root / "agents" / "main")
    assert len(list(HARNESS.discover("openclaw", root))) == 3


@settings(max_examples=15)
@given(st.sets(st.integers(0, 12)))
def test_reading_cut_anywhere_gives_the_same_items(cuts: set[int]) -> None:
    file = source(FILES)
    rows: list[dict[str, Any]] = list(records(Path(file.path)))
    assert read(HARNESS, file, rows, frozenset(cuts)) == read(HARNESS, file, rows)


def test_there_is_no_command_that_resumes() -> None:
    assert HARNESS.resume_command(FILES) is None


@needs_corpus
@pytest.mark.parametrize("one", FACTS, ids=lambda one: one["name"])
def test_sessions_of_the_corpus_are_what_their_facts_say(one: dict[str, Any]) -> None:
    hold(HARNESS, one, SourceFile(str(one["path"]), "openclaw", native=one["session"]))


@needs_corpus
def test_every_file_of_the_corpus_is_read_and_what_is_unknown_is_named(tmp_path: Path) -> None:
    sessions = tmp_path / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    files = sorted(path for path in (CORPUS / "openclaw").rglob("*") if path.is_file())
    for path in files:
        shutil.copy(path, sessions / path.name)
    found = list(HARNESS.discover("openclaw", tmp_path))
    assert len(found) == len(files)
    unknown = {
        one.kind
        for file in found
        for one in whole(HARNESS, file)
        for item in one.items
        if isinstance(item, Event) and item.type is EventType.UNKNOWN
    }
    assert unknown == {"compact"}, "a type that only a test of another reader writes"
    assert Beside().text("/nowhere", "/", 1) is None
