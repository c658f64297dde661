"""The nac adapter on an invented database of today's schema, and on the older one of the corpus."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reading
from facts import CORPUS, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.nac import HARNESS
from outcrop.harnesses.nac.reader import time_ms
from outcrop.model import ENCRYPTED_PLACEHOLDER, Event, EventType, Parsed, Relation
from reading import events_of, facts_of, read_twice, scalars, sound, turns_of, values

SQL = Path(__file__).parent.parent / "fixtures" / "nac" / "store.sql"
FACTS = sorted((Path(__file__).parent / "facts" / "nac").glob("*.json"))
DUNE, FORK, FAR, WORKER = "s-dune", "s-fork", "s-far", "s-dune:worker:w1"


def made(folder: Path, sql: Path) -> Path:
    database = sqlite3.connect(folder / "store.db")
    database.executescript(sql.read_text(encoding="utf-8"))
    database.commit()
    database.close()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return made(tmp_path, SQL)


def place(root: Path) -> SourceFile:
    return next(iter(HARNESS.discover("nac", root)))


def listed(root: Path) -> dict[str, str]:
    return reading.listed(HARNESS, place(root))


def records(root: Path, native: str) -> list[dict[str, Any]]:
    return reading.records_of(HARNESS, place(root), native)


def fold(rows: list[dict[str, Any]], native: str) -> list[Parsed]:
    file = SourceFile("/store.db#x", "nac", Form.CONTAINER, "session", native)
    return read_twice(HARNESS, file, rows)


def read(root: Path, native: str) -> list[Parsed]:
    return fold(records(root, native), native)


@pytest.mark.parametrize(
    ("platform", "variables", "root"),
    [
        ("linux", {}, "/home/gull/.config/nac"),
        ("darwin", {}, "/home/gull/.config/nac"),
        ("win32", {}, "/home/gull/.config/nac"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/nac"),
        ("linux", {"NAC_HOME": "/n", "XDG_CONFIG_HOME": "/x"}, "/n"),
    ],
)
def test_the_home_lies_where_the_environment_says(platform: str, variables: dict[str, str], root: str) -> None:
    assert HARNESS.roots("nac", Environment(Path("/home/gull"), variables, platform)) == [Path(root)]


def test_discover_finds_the_stores_of_all_tracks(home: Path) -> None:
    (home / ".nac").mkdir()
    for name in ("dev.db", "other.db", ".nac/store.db"):
        (home / name).touch()
    assert [file.path for file in HARNESS.discover("nac", home)] == [
        str(home / name) for name in ("store.db", "dev.db", ".nac/store.db")
    ]
    assert [file.path for file in HARNESS.discover("nac", home / "dev.db")] == [str(home / "dev.db")]
    assert list(HARNESS.discover("nac", home / "gone")) == []


def test_a_session_and_each_of_its_workers_are_listed(home: Path) -> None:
    assert set(listed(home)) == {DUNE, WORKER, "s-dune:worker:w2", FORK, FAR}


def test_a_transcript_is_its_head_and_its_rows(home: Path) -> None:
    parsed = read(home, DUNE)
    assert [(one.type.value, one.text) for one in events_of(parsed)] == [
        ("system", ""),
        ("system", "Be a dune."),
        ("user_input", "add tests"),
        ("reasoning", ENCRYPTED_PLACEHOLDER),
        ("tool_call", ""),
        ("tool_call", ""),
        ("tool_response", "ok"),
        ("tool_response", "[tool call cancelled by user]"),
        ("assistant_response", "Tests are there."),
        ("compaction", "Tests were added."),
        ("user_input", "more like\n[image image/png, 3 bytes]"),
        ("runtime", "[run cancelled by user]"),
        ("user_input", "again"),
        ("assistant_response", "Half a dune"),
        ("runtime", "[run failed after this partial assistant response]"),
        ("user_input", "and now"),
        ("unknown", ""),
        ("runtime", "interrupted"),
    ]
    assert [(turn.prompt, turn.ends) for turn in turns_of(events_of(parsed))] == [
        ("add tests", "final"),
        ("more like\n[image image/png, 3 bytes]", "cancelled"),
        ("again", "crashed"),
        ("and now", "crashed"),
    ]
    assert facts_of(parsed) == {"created": 1780300800123, "title.generated": "Tests for dunes"}


def test_values_of_events(home: Path) -> None:
    found = events_of(read(home, DUNE))
    by_type = {kind: [one for one in found if one.type is kind] for kind in EventType}
    assert {one.cwd for one in found} == {"/w/dune"}
    assert [one.branch for one in by_type[EventType.USER_INPUT]] == ["main", "side", "side", None]
    assert by_type[EventType.USER_INPUT][0].time == 1780300801000
    thread, own = by_type[EventType.TOOL_CALL]
    assert (thread.tool, thread.call_id, thread.arguments) == ("thread", "c1", {"name": "w1", "action": "write tests"})
    assert (own.tool, own.original_tool, own.arguments) == ("open", "mcp__moraine__open__2", {"_raw": "{"})
    done, cancelled = by_type[EventType.TOOL_RESPONSE]
    assert (done.tool, done.exit_code, done.is_error) == ("thread", 0, False)
    assert done.extra == {"result": {"status": "completed", "took": 3}}
    assert (cancelled.tool, cancelled.exit_code, cancelled.is_error) == ("open", None, True)
    assert by_type[EventType.REASONING][0].extra == {"encrypted_content": ["c2VhbGVk"]}
    assert (thread.model, thread.generator) == ("gull-5", "gull-5")
    answer, partial = by_type[EventType.ASSISTANT_RESPONSE]
    assert (answer.model, answer.generator, answer.extra["duration_ms"]) == (None, "gull-4", 900)
    assert partial.partial
    assert by_type[EventType.UNKNOWN][0].raw == {"role": "narrator", "content": "?"}


def test_columns_of_keys_and_hosts_are_not_read(home: Path) -> None:
    for native in listed(home):
        for one in read(home, native):
            assert "never-read-this" not in repr(one.items).lower()
            assert "never_read_this" not in repr(one).lower()


def test_T73_a_place_that_is_given_to_another_message_is_another_event(home: Path) -> None:
    before, sign = {one.key for one in events_of(read(home, DUNE))}, listed(home)[DUNE]
    database = sqlite3.connect(home / "store.db")
    database.execute(
        "DELETE FROM thread_events WHERE thread_name = '__orchestrator__' AND event_json LIKE '%\"idx\": 5%'"
    )
    other = {"idx": 5, "kind": "assistant", "message": json.dumps({"role": "assistant", "content": "Otherwise."})}
    database.execute(
        "INSERT INTO thread_events (session_id, thread_name, event_json, created_at) VALUES (?, ?, ?, ?)",
        (DUNE, "__orchestrator__", json.dumps({"nac_transcript_message": other}), "2026-06-01 08:08:00"),
    )
    database.commit()
    database.close()
    after = {one.key for one in events_of(read(home, DUNE))}
    assert len(before - after) == len(after - before) == 1
    assert listed(home)[DUNE] != sign


def test_a_row_that_is_changed_is_the_same_event(home: Path) -> None:
    before = {native: {one.key: one.text for one in events_of(read(home, native))} for native in (DUNE, WORKER)}
    signs = listed(home)
    database = sqlite3.connect(home / "store.db")
    for old, new in (("Tests are there.", "Tests are here!!"), ("more like", "less like"), ("Written.", "Wrote it")):
        for table, column in (("thread_events", "event_json"), ("episodes", "content")):
            database.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (old, new))
    database.commit()
    database.close()
    for native, changed in ((DUNE, 2), (WORKER, 1)):
        after = {one.key: one.text for one in events_of(read(home, native))}
        assert after.keys() == before[native].keys()
        assert sum(after[key] != before[native][key] for key in after) == changed
        assert listed(home)[native] != signs[native]


def test_T74_usage_stands_at_answers_only_where_the_counts_agree(home: Path) -> None:
    dune, far = read(home, DUNE), read(home, FAR)
    assert events_of(dune)[0].extra["usage_unattributed"] == {"input_tokens": 3}
    assert events_of(dune)[0].extra["usage"] == [
        {"input_tokens": 5, "output_tokens": 2},
        {"input_tokens": 7, "output_tokens": 1},
    ]
    assert events_of(far)[0].extra["usage"] == [{"input_tokens": 1}, {"input_tokens": 2}]
    database = sqlite3.connect(home / "store.db")
    database.execute("UPDATE sessions SET token_usages_json = '[{\"input_tokens\": 9}]' WHERE session_id = ?", (FAR,))
    database.commit()
    database.close()
    session, *_, answer = [one for one in events_of(read(home, FAR)) if one.key != "saved"]
    assert "usage" not in session.extra
    assert answer.extra == {"usage": {"input_tokens": 9}}


def test_T75_a_remote_session_has_no_local_folder(home: Path) -> None:
    found = events_of(read(home, FAR))
    assert {one.cwd for one in found} == {None}
    assert found[0].extra["remote"] is True
    assert [one.text for one in found if one.text] == ["far question", "far answer"]


def test_a_fork_marks_what_it_copied(home: Path) -> None:
    parsed = read(home, FORK)
    assert (facts_of(parsed)["parent"], facts_of(parsed)["relation"]) == (DUNE, Relation.FORK)
    found = events_of(parsed)
    copied = [one for one in found if one.origin]
    there = {one.key: (one.type, one.text) for one in events_of(read(home, DUNE))}
    assert [there[one.origin[1]] for one in copied if one.origin and one.origin[0] == DUNE] == [
        (one.type, one.text) for one in copied
    ]
    assert [one.text for one in found if not one.origin] == ["", "my own way"]


def test_a_worker_is_a_session_with_a_turn_for_each_task(home: Path) -> None:
    parsed = read(home, WORKER)
    assert (facts_of(parsed)["parent"], facts_of(parsed)["agent"]) == (DUNE, "w1")
    turns = turns_of(events_of(parsed))
    assert [(turn.prompt, turn.ends, turn.final and turn.final.text) for turn in turns] == [
        ("write tests", "final", "Written."),
        ("run them", "crashed", None),
        ("once more", None, None),
    ]
    assert turns[0].tools == ["exec_command", "read"]
    assert [one.text for one in turns[0].events if one.type is EventType.USER_INPUT] == ["write tests", "faster"]
    first = {one.type: one for one in reversed(turns[0].events)}
    call, response = first[EventType.TOOL_CALL], first[EventType.TOOL_RESPONSE]
    assert (call.arguments, call.extra) == ({"cmd": "pytest"}, None)
    assert (response.tool, response.exit_code, response.is_error) == ("exec_command", 1, True)
    assert response.extra == {"command_status": "completed", "truncated": True}
    cut = next(one for one in turns[0].events if one.tool == "read")
    assert cut.extra == {"truncated": True}
    assert [one.raw for one in turns[1].events if one.type is EventType.UNKNOWN] == [{"type": "sonar", "ping": 1}]
    assert [(turn.prompt, turn.ends) for turn in turns_of(events_of(read(home, "s-dune:worker:w2")))] == [
        ("old task", "final")
    ]


def test_T11_rows_in_the_wal_are_seen(home: Path) -> None:
    writer = sqlite3.connect(home / "store.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    before, stamp = listed(home), HARNESS.stamp(place(home))
    writer.execute("UPDATE session_presentations SET title = 'Dunes'")
    writer.execute("INSERT INTO episodes (thread_name, session_id, action) VALUES ('w9', ?, 'dig')", (FAR,))
    after = listed(home)
    assert {native for native in after if after[native] != before.get(native)} == {DUNE, "s-far:worker:w9"}
    assert HARNESS.stamp(place(home)) != stamp
    assert facts_of(read(home, DUNE))["title.generated"] == "Dunes"
    writer.close()


def test_T13_missing_tables_and_columns_are_no_errors(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "store.db")
    database.executescript(
        "CREATE TABLE sessions (session_id TEXT, messages_json TEXT);"
        "INSERT INTO sessions VALUES ('s', '[{\"role\":\"user\",\"content\":\"hi\"}]'), ('torn', '[{'), ('none', NULL);"
    )
    database.commit()
    database.close()
    assert set(listed(tmp_path)) == {"s", "torn", "none"}
    assert [one.text for one in events_of(read(tmp_path, "s"))] == ["", "hi"]
    assert [one.text for one in events_of(read(tmp_path, "torn"))] == [""]


def test_times_are_utc() -> None:
    assert time_ms("2026-06-01 08:00:00.123456789") == 1780300800123
    assert time_ms("2026-06-01 08:00:00") == time_ms("2026-06-01T10:00:00+02:00") == 1780300800000
    odd: list[object] = [None, 7, "soon", "", []]
    assert [time_ms(one) for one in odd] == [None] * 5


def test_resume() -> None:
    assert HARNESS.resume_command(DUNE) == ["nac", "resume", DUNE]
    assert HARNESS.resume_command(WORKER) is None


@needs_corpus
@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_a_session_is_told_as_its_facts_say(path: Path, tmp_path: Path) -> None:
    told = json.loads(path.read_text(encoding="utf-8"))
    made(tmp_path, CORPUS / told["file"])
    assert told["session"] in listed(tmp_path)
    parsed = read(tmp_path, told["session"])
    raw = [one for one in parsed if one.kind not in ("session", "saved")]
    assert len(raw) == told["records"]
    where = {item.key: n for n, one in enumerate(raw, 1) for item in one.items if isinstance(item, Event)}
    events = events_of(parsed)
    times = [event.time for event in events if event.time is not None]
    assert (min(times), max(times)) == (told["first_time"], told["last_time"])
    assert facts_of(parsed).get("parent") == told["parent"]
    prompts = [event for event in events if event.opens]
    assert [where[event.key] for event in prompts] == [turn["place"] for turn in told["turns"]]
    assert (hashed(prompts[0].text), hashed(prompts[-1].text)) == (told["first_prompt"], told["last_prompt"])
    for turn, want in zip(turns_of(events), told["turns"], strict=True):
        assert (hashed(turn.prompt), turn.ends, turn.tools) == (want["prompt"], want["ends"], want["tools"])
        assert (turn.final and {"place": where[turn.final.key], "text": hashed(turn.final.text)}) == want["final"]
    assert not any(event.type is EventType.UNKNOWN for event in events)


@needs_corpus
def test_every_file_of_the_corpus_is_read_or_named(tmp_path: Path) -> None:
    """The database is there as the SQL that makes it; beside it stands what another program made of it."""
    folder = CORPUS / "misc-fixtures/eric-tramel__moraine/fixtures/nac"
    assert {path.name for path in folder.iterdir()} == {"store.sql", "normalized.jsonl"}
    made(tmp_path, folder / "store.sql")
    for native in listed(tmp_path):
        assert "unknown" not in [one.type.value for one in events_of(read(tmp_path, native))]


NAMES = [
    "role", "content", "type", "text", "tool_calls", "id", "function", "name", "arguments", "tool_call_id",
    "reasoning_text", "reasoning_details", "data", "model_origin", "model", "call_id", "args_preview", "args_detail",
    "content_preview", "is_error", "exit_code", "message", "timed_out", "output", "status", "image_url",
]  # fmt: skip
WORDS = [
    "user", "assistant", "tool", "system", "tool_call_started", "tool_call_finished", "assistant_message", "error",
    "thread_finished", "thread_log", "run_started", '{"status":1,"exit_code":"x"}', "text", "image_url", "interrupted",
    "[run cancelled by user]", "2026-06-01 08:00:00",
]  # fmt: skip
LEAF = scalars(WORDS)
VALUE = values(NAMES, LEAF)
OBJECT = st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=7)
FIELDS = [
    "time", "idx", "usage", "branch", "copied", "task", "action", "status", "run_id", "summary", "created_at",
    "base_url", "parent", "relation", "agent", "title", "model", "answer", "done", "content",
]  # fmt: skip
ROW = st.fixed_dictionaries(
    {
        "record": st.sampled_from(
            ["session", "message", "compaction", "recovery", "task", "episode", "event", "saved", "x"]
        )
    },
    optional={**dict.fromkeys(FIELDS, VALUE), "message": OBJECT | VALUE, "event": OBJECT | VALUE},
)


@given(st.lists(ROW, max_size=6))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]]) -> None:
    sound(fold(rows, "s"))


CELL = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner), max_leaves=6
)


@given(st.lists(st.tuples(CELL, CELL, CELL), max_size=3))
def test_wrong_cells_are_no_errors(tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[Any, Any, Any]]) -> None:
    home = made(tmp_path_factory.mktemp("store"), SQL)
    database = sqlite3.connect(home / "store.db")
    for head, event, usage in cells:
        database.execute(
            "UPDATE sessions SET messages_json = ?, token_usages_json = ? WHERE session_id = ?",
            (json.dumps(head), json.dumps(usage), DUNE),
        )
        for thread in ("w1", "__orchestrator__"):
            database.execute(
                "INSERT INTO thread_events (session_id, thread_name, event_json, created_at) VALUES (?, ?, ?, ?)",
                (DUNE, thread, json.dumps(event), None),
            )
        row = {"nac_transcript_message": {"idx": 20, "message": json.dumps(event)}}
        database.execute("UPDATE thread_events SET event_json = ? WHERE id = 3", (json.dumps(row),))
    database.commit()
    database.close()
    for native in (DUNE, WORKER):
        read(home, native)
