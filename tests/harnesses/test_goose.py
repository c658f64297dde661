"""The Goose adapter on an invented database, and on the files of lines that older versions wrote."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reading
from facts import CORPUS, FOLDER, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.goose import HARNESS
from outcrop.model import ENCRYPTED_PLACEHOLDER, Event, EventType, Parsed, Relation
from reading import Beside, events_of, facts_of, scalars, sound, turns_of, values

FIXTURES = Path(__file__).parent.parent / "fixtures" / "goose"
FACTS = [{"name": path.stem, **json.loads(path.read_text("utf-8"))} for path in sorted((FOLDER / "goose").glob("*"))]
DECK, PLANKS, SAILS, EMPTY = (f"20260601_{number}" for number in range(1, 5))
START = 1780300800000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data folder with its database."""
    (tmp_path / "sessions").mkdir()
    with closing(sqlite3.connect(tmp_path / "sessions" / "sessions.db")) as database:
        database.executescript((FIXTURES / "sessions.sql").read_text("utf-8"))
    return tmp_path


def place(data: Path) -> SourceFile:
    return next(iter(HARNESS.discover("goose", data)))


def records(data: Path, native: str) -> list[dict[str, Any]]:
    return reading.records_of(HARNESS, place(data), native)


def listed(data: Path) -> dict[str, str]:
    return reading.listed(HARNESS, place(data))


def fold(rows: list[dict[str, Any]], native: str, cuts: bool = True) -> list[Parsed]:
    file = SourceFile(f"/place#{native}", "goose", Form.CONTAINER, "session", native)
    reader, parsed = HARNESS.reader(file, None, Beside()), []
    for row in rows:
        parsed.append(reader.feed(row))
        assert parsed[-1].items or parsed[-1].reason, row
        if cuts:
            reader = HARNESS.reader(file, json.loads(json.dumps(reader.state())), Beside())
    assert reader.session == native
    return parsed


def read(data: Path, native: str) -> list[Parsed]:
    return fold(records(data, native), native)


def by_text(parsed: list[Parsed]) -> dict[str, Event]:
    return {event.text: event for event in events_of(parsed)}


@pytest.mark.parametrize(
    ("platform", "variables", "roots"),
    [
        ("linux", {}, ["/home/gull/.local/share/goose"]),
        ("linux", {"XDG_DATA_HOME": "/x"}, ["/x/goose"]),
        ("linux", {"GOOSE_PATH_ROOT": "/g"}, ["/g/data"]),
        ("linux", {"GOOSE_PATH_ROOT": "relative"}, ["/home/gull/.local/share/goose"]),
        (
            "darwin",
            {},
            [
                "/home/gull/Library/Application Support/Block/goose",
                "/home/gull/Library/Application Support/goose",
                "/home/gull/.local/share/goose",
            ],
        ),
        ("win32", {}, ["/home/gull/AppData/Roaming/Block/goose/data"]),
        ("win32", {"APPDATA": "/roaming"}, ["/roaming/Block/goose/data"]),
    ],
)
def test_places_of_every_platform(platform: str, variables: dict[str, str], roots: list[str]) -> None:
    assert HARNESS.roots("goose", Environment(Path("/home/gull"), variables, platform)) == list(map(Path, roots))


def test_discover_finds_the_database_and_old_files(data: Path, tmp_path: Path) -> None:
    shutil.copyfile(FIXTURES / f"{DECK}.jsonl", data / "sessions" / f"{DECK}.jsonl")
    found = list(HARNESS.discover("goose", data))
    assert [(one.form, one.native) for one in found] == [(Form.CONTAINER, None), (Form.LINES, DECK)]
    assert [one.path for one in HARNESS.discover("goose", data / "sessions")] == [one.path for one in found]
    assert next(iter(HARNESS.discover("goose", Path(found[0].path)))).form is Form.CONTAINER
    assert list(HARNESS.discover("goose", data / "nothing")) == []
    assert HARNESS.resume_command(DECK) == ["goose", "session", "--resume", "--session-id", DECK]


def test_a_conversation_is_read_in_its_turns(data: Path) -> None:
    parsed = read(data, DECK)
    events = events_of(parsed)
    assert turns_of(events)[0].final is by_text(parsed)["The deck is tarred."]
    assert {event.cwd for event in events} == {"/w/boat"}
    assert {event.generator for event in events if event.generator} == {"gull-4"}
    assert (events[0].time, events[-1].time) == (START, START + 10_000)
    assert facts_of(parsed) == {"created": START, "title.user": "Tar the deck"}
    thoughts = [event for event in events if event.type is EventType.REASONING]
    assert [(event.text, event.extra) for event in thoughts] == [
        ("Hot tar.", {"encrypted_content": {"signature": "c2ln"}}),
        (ENCRYPTED_PLACEHOLDER, {"encrypted_content": {"data": "c2VhbGVk"}}),
    ]
    own = [event for event in events if event.type is EventType.TOOL_CALL][1]
    assert (own.tool, own.original_tool, own.arguments) == ("open", "outcrop__open", {"id": "x"})
    hot, failed = by_text(parsed)["hot"], by_text(parsed)["no such event"]
    assert (hot.tool, hot.is_error, hot.exit_code) == ("developer__shell", False, None)
    assert (failed.tool, failed.is_error) == ("open", True)
    assert by_text(parsed)["Compacted"].type is EventType.SYSTEM
    assert by_text(parsed)["Summary: the deck is tarred"].type is EventType.SYSTEM
    assert by_text(parsed)["-32602: no such tool"].is_error
    assert [event.raw["type"] for event in events if event.raw] == ["lighthouse"]


def test_columns_with_keys_are_never_read(data: Path) -> None:
    assert "never-read-this" not in json.dumps([records(data, native) for native in listed(data)])


def test_kinds_of_sessions(data: Path) -> None:
    assert facts_of(read(data, PLANKS)) == {
        "created": START + 60_000,
        "parent": DECK,
        "relation": Relation.SUBAGENT,
    }
    assert facts_of(read(data, SAILS))["machine"] is True
    assert events_of(read(data, EMPTY)) == []
    assert facts_of(read(data, EMPTY)) == {"created": START + 7_200_000}
    assert [event.type for event in events_of(read(data, SAILS))][-1] is EventType.UNKNOWN


def test_T14_an_old_file_and_its_copy_in_the_database_are_one_session(data: Path) -> None:
    rows = [json.loads(line) for line in (FIXTURES / f"{DECK}.jsonl").read_text("utf-8").splitlines()]
    parsed = fold(rows, DECK)
    assert facts_of(parsed) == {"title.generated": "Tar the deck"}
    old = events_of(parsed)
    assert len(old) == 9
    shutil.copyfile(FIXTURES / f"{DECK}.jsonl", data / "sessions" / f"{DECK}.jsonl")
    new = {event.key: event for event in events_of(read(data, DECK))}
    assert [(new[event.key].type, new[event.key].text, new[event.key].time) for event in old] == [
        (event.type, event.text, event.time) for event in old
    ]


def test_a_conversation_inserted_anew_has_the_same_keys(data: Path) -> None:
    before = [event.key for event in events_of(read(data, DECK))]
    with closing(sqlite3.connect(place(data).path)) as database:
        database.execute("UPDATE messages SET id = id + 1000 WHERE session_id = ?", (DECK,))
        database.commit()
    assert [event.key for event in events_of(read(data, DECK))] == before


@pytest.mark.parametrize("ids", ["message_id", "NULL"], ids=["named", "numbered"])
def test_a_message_that_is_changed_is_the_same_one(data: Path, ids: str) -> None:
    with closing(sqlite3.connect(place(data).path, isolation_level=None)) as database:
        database.execute(f"UPDATE messages SET message_id = {ids}")
        before, sign = {event.key: event.text for event in events_of(read(data, DECK))}, listed(data)[DECK]
        for old, new in (("And the mast", "Or the mast!"), ("Heating.", "Cooling."), ("hot", "not")):
            database.execute(
                "UPDATE messages SET content_json = replace(content_json, ?, ?) WHERE session_id = ?", (old, new, DECK)
            )
    after = {event.key: event.text for event in events_of(read(data, DECK))}
    assert after.keys() == before.keys()
    assert {before[key]: after[key] for key in after if after[key] != before[key]} == {
        "And the mast": "Or the mast!", "Heating.": "Cooling.", "hot": "not",
    }  # fmt: skip
    assert listed(data)[DECK] != sign, "of the same length, and no time changed"


def test_a_message_of_an_old_file_that_is_changed_in_the_database_is_the_same_one(data: Path) -> None:
    shutil.copyfile(FIXTURES / f"{DECK}.jsonl", data / "sessions" / f"{DECK}.jsonl")
    before = {event.key: event.text for event in events_of(read(data, DECK))}
    with closing(sqlite3.connect(place(data).path)) as database:
        database.execute("UPDATE messages SET content_json = replace(content_json, 'Heating.', 'Cooling.')")
        database.commit()
    after = {event.key: event.text for event in events_of(read(data, DECK))}
    assert after.keys() == before.keys()
    assert {before[key]: after[key] for key in after if after[key] != before[key]} == {"Heating.": "Cooling."}


def test_T11_what_grows_in_the_wal_has_another_fingerprint(data: Path) -> None:
    with closing(sqlite3.connect(place(data).path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("PRAGMA wal_autocheckpoint=0")
        before, stamp = listed(data), HARNESS.stamp(place(data))
        writer.execute("UPDATE messages SET content_json = replace(content_json, 'Forty.', 'Forty-one.')")
        after = listed(data)
        assert {native for native in after if after[native] != before[native]} == {PLANKS}
        assert HARNESS.stamp(place(data)) != stamp
        assert "Forty-one." in by_text(read(data, PLANKS))


def test_T13_missing_columns_are_no_errors(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as database:
        database.executescript(
            "CREATE TABLE sessions (id TEXT, working_dir TEXT);"
            "CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT, content_json TEXT);"
            "INSERT INTO sessions VALUES ('s', '/w');"
            'INSERT INTO messages VALUES (1, \'s\', \'user\', \'[{"type":"text","text":"hi"}]\');'
        )
        database.commit()
    assert list(listed(tmp_path)) == ["s"]
    (event,) = events_of(read(tmp_path, "s"))
    assert (event.text, event.time, event.cwd) == ("hi", None, "/w")


@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_rows_say(data: Path, told: dict[str, Any]) -> None:
    parsed = read(data, told["session"])
    events = events_of(parsed)
    turns = turns_of(events)
    assert len(parsed) == told["records"]
    opening = [n for n, one in enumerate(parsed, 1) if any(getattr(item, "opens", False) for item in one.items)]
    assert opening == [want["record"] for want in told["turns"]]
    assert [hashed(turn.prompt) for turn in turns] == [want["prompt"] for want in told["turns"]]
    assert [turn.ends for turn in turns] == [want["ends"] for want in told["turns"]]
    assert [turn.tools for turn in turns] == [want["tools"] for want in told["turns"]]
    times = [event.time for event in events if event.time is not None]
    assert (min(times), max(times)) == (told["first_time"], told["last_time"])
    assert facts_of(parsed).get("parent") == told["parent"]


@needs_corpus
def test_the_database_of_the_corpus_holds_one_session_without_messages(tmp_path: Path) -> None:
    (found,) = [path for path in sorted((CORPUS / "goose").rglob("*")) if path.is_file()]
    (tmp_path / "sessions").mkdir()
    shutil.copyfile(found, tmp_path / "sessions" / found.name)
    (native,) = listed(tmp_path)
    (parsed,) = read(tmp_path, native)
    assert facts_of([parsed]) == {"created": 1764694735000}


NAMES = [
    "role", "content", "created", "metadata", "userVisible", "type", "text", "id", "toolCall", "toolResult", "status",
    "value", "name", "arguments", "error", "thinking", "signature", "data", "mimeType", "annotations", "audience",
    "resource", "uri", "msg", "working_dir", "record", "isError",
]  # fmt: skip
KINDS = [
    "text", "image", "toolRequest", "toolResponse", "thinking", "redactedThinking", "systemNotification",
    "actionRequired", "user", "assistant", "session", "success", "error",
]  # fmt: skip
VALUE = values(NAMES, scalars(KINDS), 10)
BLOCK = st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=5).flatmap(
    lambda block: st.sampled_from(KINDS).map(lambda kind: {**block, "type": kind})
)
ROW = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]) | VALUE, "content": st.lists(BLOCK | VALUE, max_size=4) | VALUE},
    optional={"created": VALUE, "metadata": VALUE, "record": VALUE, "working_dir": VALUE, "name": VALUE},
)


@given(st.lists(ROW, max_size=6))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]]) -> None:
    parsed = fold(rows, "s")
    sound(parsed)
    assert parsed == fold(rows, "s", cuts=False) or "nan" in repr(rows)
