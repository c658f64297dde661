"""The Hermes adapter on an invented home with three stores of the same sessions, and on files of the corpus."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reading
from facts import CORPUS, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile, jsonl
from outcrop.harnesses.hermes import HARNESS
from outcrop.harnesses.hermes.messages import content_of, copies, keyed, time_ms
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Parsed, Relation
from reading import events_of, facts_of, read_twice, scalars, sound, turns_of, values

FIXTURES = Path(__file__).parent.parent / "fixtures" / "hermes"
FACTS = sorted((Path(__file__).parent / "facts" / "hermes").glob("*.json"))
PIER, LONG, NEXT = "20260601_080000_pier", "20260601_090000_long", "20260601_090100_next"
SIDE, HELP, ANEW = "20260601_090200_side", "20260601_090300_help", "20260601_090400_anew"
SNAPSHOT, CHAT = "20260403_153620_5a3e", "20260601_100000_chat"


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in UTC, whatever the real one is."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "home", tmp_path / ".hermes")
    database = sqlite3.connect(tmp_path / ".hermes" / "state.db")
    database.executescript((FIXTURES / "state.sql").read_text(encoding="utf-8"))
    database.commit()
    database.close()
    return tmp_path / ".hermes"


def place(root: Path) -> SourceFile:
    return next(file for file in HARNESS.discover("hermes", root) if file.form is Form.CONTAINER)


def listed(root: Path) -> dict[str, str]:
    return reading.listed(HARNESS, place(root))


def records(root: Path, native: str) -> list[dict[str, Any]]:
    return reading.records_of(HARNESS, place(root), native)


def fold(rows: list[dict[str, Any]], file: SourceFile) -> list[Parsed]:
    return read_twice(HARNESS, file, rows)


def read(root: Path, native: str) -> list[Parsed]:
    return fold(records(root, native), SourceFile(f"{root}#{native}", "hermes", Form.CONTAINER, "home", native))


def runs(path: Path) -> list[Parsed]:
    rows: list[dict[str, Any]] = []
    with path.open("rb") as stream:
        for line in jsonl.lines(stream, 0):
            rows += jsonl.records(line.data)[0]
    return fold(rows, SourceFile(str(path), "hermes", Form.LINES, "trajectories"))


def shown(parsed: list[Parsed]) -> list[tuple[str, str]]:
    return [(one.type.value, one.text) for one in events_of(parsed)]


@pytest.mark.parametrize(
    ("platform", "variables", "roots"),
    [
        ("linux", {}, ["/home/gull/.hermes"]),
        ("darwin", {}, ["/home/gull/.hermes"]),
        ("linux", {"HERMES_HOME": "/h"}, ["/h"]),
        ("win32", {}, ["/home/gull/AppData/Local/hermes", "/home/gull/.hermes"]),
        ("win32", {"LOCALAPPDATA": "/local"}, ["/local/hermes", "/home/gull/.hermes"]),
    ],
)
def test_the_home_lies_where_the_platform_says(platform: str, variables: dict[str, str], roots: list[str]) -> None:
    assert HARNESS.roots("hermes", Environment(Path("/home/gull"), variables, platform)) == [
        Path(root) for root in roots
    ]


def test_discover_finds_homes_profiles_and_runs(home: Path, tmp_path: Path) -> None:
    assert list(HARNESS.discover("hermes", tmp_path / "gone")) == []
    (home / "profiles" / "work" / "sessions").mkdir(parents=True)
    (home / "trajectories").mkdir()
    shutil.copy(FIXTURES / "runs.jsonl", home / "trajectories" / "runs.jsonl")
    (home / "other.jsonl").write_text('{"log": 1}\n')
    assert [(file.path, file.role) for file in HARNESS.discover("hermes", home)] == [
        (str(home), "home"),
        (str(home / "profiles" / "work"), "home"),
        (str(home / "trajectories" / "runs.jsonl"), "trajectories"),
    ]
    assert [file.form for file in HARNESS.discover("hermes", home / "trajectories" / "runs.jsonl")] == [Form.LINES]
    sessions = home / "sessions"
    assert [file.path for file in HARNESS.discover("hermes", sessions)] == [str(sessions)]
    assert set(listed(sessions)) == {PIER, SNAPSHOT, CHAT}
    assert set(listed(sessions / f"{CHAT}.jsonl")) == {CHAT}
    assert set(listed(home / "state.db")) == {PIER, LONG, NEXT, SIDE, HELP, ANEW}


def test_T14_a_session_of_three_stores_is_one(home: Path) -> None:
    assert set(listed(home)) == {PIER, LONG, NEXT, SIDE, HELP, ANEW, SNAPSHOT, CHAT}
    parsed = read(home, PIER)
    assert "stale" not in [one.text for one in events_of(parsed)], "the snapshot is older than the database"
    assert facts_of(parsed) == {"created": 1780300800500, "title.generated": "Mend the pier"}
    session = events_of(parsed)[0]
    assert (session.text, session.extra) == ("Be a pier.", {
        "platform": "cli", "model": "vendor/gull-4", "host": "models.example",
        "usage": {"input_tokens": 120, "output_tokens": 30},
    })  # fmt: skip
    assert "never-read-this" not in json.dumps(
        [record for record in records(home, PIER) if record["record"] != "session"]
    )
    assert "never-read-this" not in str([one.extra for one in events_of(parsed)])


def test_T14_a_message_has_the_name_of_its_row_in_every_store(home: Path) -> None:
    told = {one.key: one.text for one in events_of(read(home, PIER))}
    path = home / "sessions" / f"session_{PIER}.json"
    rows = [one["message"] for one in records(home, PIER) if one["record"] == "message"]
    said = [{name: value for name, value in row.items() if name in ("role", "content", "tool_calls", "tool_call_id")}
            for row in rows]  # fmt: skip
    said[4]["content"] = "It needs another rule."
    path.write_text(json.dumps({"session_id": PIER, "messages": [*said, {"role": "user", "content": "and more"}]}))
    fuller = {one.key: one.text for one in events_of(read(home, PIER)) if one.key not in ("saved", "session")}
    assert fuller.pop(next(key for key, text in fuller.items() if text == "and more")), "the snapshot tells"
    assert fuller.keys() <= told.keys()
    changed = {told[key]: text for key, text in fuller.items() if told[key] != text}
    assert changed == {"It needs a rule.": "It needs another rule."}


def test_a_row_that_is_changed_is_the_same_event(home: Path) -> None:
    before, sign = {one.key: one.text for one in events_of(read(home, PIER))}, listed(home)[PIER]
    with closing(sqlite3.connect(home / "state.db")) as database:
        for old, new in (("mend the pier", "mind the pier"), ("It needs a rule.", "It has a rule...")):
            database.execute("UPDATE messages SET content = ? WHERE content = ?", (new, old))
        database.commit()
    after = {one.key: one.text for one in events_of(read(home, PIER))}
    assert after.keys() == before.keys()
    assert {before[key]: after[key] for key in after if before[key] != after[key]} == {
        "mend the pier": "mind the pier",
        "It needs a rule.": "It has a rule...",
    }
    assert listed(home)[PIER] != sign, "of the same length, and no time changed"


def test_a_message_of_a_file_that_is_changed_is_the_same_one(home: Path) -> None:
    path = home / "sessions" / f"{CHAT}.jsonl"
    before = {one.key: one.text for one in events_of(read(home, CHAT))}
    path.write_text(path.read_text("utf-8").replace("Mended.", "Sewn."), "utf-8")
    after = {one.key: one.text for one in events_of(read(home, CHAT))}
    assert after.keys() == before.keys()
    assert {before[key]: after[key] for key in after if before[key] != after[key]} == {"Mended.": "Sewn."}


def test_a_fuller_snapshot_tells_the_session(home: Path) -> None:
    path = home / "sessions" / f"session_{HELP}.json"
    messages = [{"role": "user", "content": "count planks"}, {"role": "assistant", "content": "Nine."}]
    path.write_text(json.dumps({"session_id": HELP, "session_start": "2026-06-01T09:03:20", "messages": messages}))
    parsed = read(home, HELP)
    assert shown(parsed)[1:3] == [("user_input", "count planks"), ("assistant_response", "Nine.")]
    assert facts_of(parsed)["parent"] == PIER


def test_a_conversation_of_the_database_is_read_in_its_order(home: Path) -> None:
    parsed = read(home, PIER)
    assert shown(parsed)[1:] == [
        ("user_input", "mend the pier"),
        ("reasoning", "look first"),
        ("tool_call", ""),
        ("tool_call", ""),
        ("tool_response", "no rule"),
        ("tool_response", '{"error":"no such id"}'),
        ("reasoning", ENCRYPTED_PLACEHOLDER),
        ("assistant_response", "It needs a rule."),
        ("user_input", "like here"),
        ("system", "[image image/png, 3 bytes]"),
        ("assistant_response", "Writing."),
        ("tool_call", ""),
        ("user_input", "stop that"),
        ("compaction", "[CONTEXT COMPACTION — REFERENCE ONLY] The pier was looked at."),
        ("assistant_response", "Stopped."),
        ("user_input", "a prompt that was undone"),
        ("system", "scaffolding"),
        ("user_input", "check the tide"),
        ("system", next(one.text for one in events_of(parsed) if one.key.endswith(":skill"))),
        ("unknown", ""),
    ]
    turns = turns_of(events_of(parsed))
    assert [(turn.prompt, turn.ends) for turn in turns] == [
        ("mend the pier", "final"),
        ("like here", "interrupted"),
        ("stop that", "final"),
        ("a prompt that was undone", None),
        ("check the tide", None),
    ]


def test_values_of_events(home: Path) -> None:
    found = events_of(read(home, PIER))
    by_type = {kind: [one for one in found if one.type is kind] for kind in EventType}
    assert {(one.cwd, one.branch) for one in found} == {("/w/pier", "main")}
    assert by_type[EventType.USER_INPUT][0].time == 1780300801250, "seconds with a fraction"
    first, own, write = by_type[EventType.TOOL_CALL]
    assert (first.tool, first.call_id, first.arguments) == ("terminal", "c1", {"command": "make"})
    assert (own.tool, own.original_tool, own.arguments) == ("open", "mcp_outcrop_open", {"_raw": '{"id":'})
    assert write.arguments == {"path": "Makefile"}
    made, failed = by_type[EventType.TOOL_RESPONSE]
    assert (made.tool, made.exit_code, made.is_error) == ("terminal", 2, True)
    assert (failed.tool, failed.exit_code, failed.is_error) == ("open", None, True)
    assert by_type[EventType.REASONING][1].extra == {"encrypted_content": ["c2VhbGVk"]}
    assert {one.generator for one in by_type[EventType.ASSISTANT_RESPONSE]} == {"vendor/gull-4"}
    assert {one.model for one in found} == {None}
    assert [one.text for one in found if one.superseded] == ["a prompt that was undone"]
    assert by_type[EventType.UNKNOWN][0].raw["content"] == "what is this"


def test_T60_a_naive_time_is_the_machine_s_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    found = events_of(read(home, SNAPSHOT))
    assert found[0].time == 1775223380000, "15:36:20 at UTC+2 is 13:36:20 UTC"
    assert {one.time for one in found[1:-1]} == {None}, "messages of a snapshot have no time"
    assert found[-1].time == 1775223600000
    assert events_of(read(home, CHAT))[1].time == 1780300801250


def test_what_the_program_says_in_the_user_s_name_opens_no_turn(home: Path) -> None:
    parsed = read(home, SNAPSHOT)
    assert [(turn.prompt, turn.ends) for turn in turns_of(events_of(parsed))] == [("hi", "final"), ("/tide", None)]
    said = shown(parsed)
    assert said[1:4] == [("user_input", "hi"), ("reasoning", "greet"), ("assistant_response", "Hello.")]
    assert [kind for kind, _ in said[4:6]] == ["system", "system"], "a review and its reply"
    assert said[8] == ("reasoning", "tides")


def test_a_gateway_transcript_is_read_to_its_last_whole_line(home: Path) -> None:
    parsed = read(home, CHAT)
    assert shown(parsed)[1:] == [("user_input", "mend the sail"), ("assistant_response", "Mended.")]
    assert events_of(parsed)[1].extra == {"platform": "discord"}
    with (home / "sessions" / f"{CHAT}.jsonl").open("a") as stream:
        stream.write('ne", "timestamp": "2026-06-01T10:00:03"}\n')
    assert shown(read(home, CHAT))[3] == ("user_input", "half a line")


def test_T62_a_compressed_session_goes_on(home: Path) -> None:
    parsed = read(home, NEXT)
    assert (facts_of(parsed)["parent"], facts_of(parsed)["relation"]) == (LONG, Relation.CONTINUATION)
    before = {one.key for one in events_of(read(home, LONG))}
    found = events_of(parsed)
    assert [(one.text, one.origin and one.origin[0]) for one in found[1:-1]] == [
        ("What was said before.", None), ("yes", LONG), ("Again.", LONG), ("go on", None),
    ]  # fmt: skip
    assert {one.origin[1] for one in found if one.origin} <= before
    assert next(one.origin[1] for one in found if one.text == "yes" and one.origin) == next(
        reversed([one.key for one in events_of(read(home, LONG)) if one.text == "yes"])
    ), "the second yes"
    assert [turn.ends for turn in turns_of(found)] == ["final", "exited"]
    assert facts_of(read(home, LONG)) == {"created": 1780304400000}
    assert turns_of(events_of(read(home, LONG)))[-1].ends == "final"


def test_one_column_names_parents_of_four_kinds(home: Path) -> None:
    side, helper = read(home, SIDE), read(home, HELP)
    assert (facts_of(side)["relation"], facts_of(side)["title.user"]) == (Relation.FORK, "Side")
    assert [one.origin and one.origin[0] for one in events_of(side)[1:]] == [LONG, LONG, None]
    assert (facts_of(helper)["parent"], facts_of(helper)["relation"]) == (PIER, Relation.SUBAGENT)
    assert "parent" not in facts_of(read(home, ANEW))


def test_T63_a_row_that_compaction_stored_again_is_one(home: Path) -> None:
    assert [one.text for one in events_of(read(home, PIER))].count("stop that") == 1


def test_T64_listed_content_gives_texts_and_attachments() -> None:
    parts = json.dumps([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}])
    assert content_of(f"\0json:{parts}") == content_of(f"\x01json:{parts}") == ("a", ["[image https://x/y.png]"])
    assert content_of("\0json:[") == ("[", [])


def test_T5_a_snapshot_that_is_replaced_gives_the_same_keys(home: Path) -> None:
    path = home / "sessions" / f"session_{SNAPSHOT}.json"
    before, sign, stamp = events_of(read(home, SNAPSHOT)), listed(home)[SNAPSHOT], HARNESS.stamp(place(home))
    told = json.loads(path.read_text())
    told["messages"].append({"role": "user", "content": "hi"})
    (home / "new").write_text(json.dumps(told))
    (home / "new").replace(path)
    after = events_of(read(home, SNAPSHOT))
    assert [one.key for one in after[:-2]] == [one.key for one in before[:-1]]
    assert (after[-2].text, after[-2].key in {one.key for one in before}) == ("hi", False), "the second hi"
    assert listed(home)[SNAPSHOT] != sign
    assert HARNESS.stamp(place(home)) != stamp


def test_a_torn_snapshot_is_reported(home: Path) -> None:
    (home / "sessions" / "session_torn.json").write_text('{"messages": [')
    with pytest.raises(OSError, match="not a whole JSON document"):
        records(home, "torn")


def test_T11_rows_in_the_wal_are_seen(home: Path) -> None:
    writer = sqlite3.connect(home / "state.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    before, stamp = listed(home), HARNESS.stamp(place(home))
    writer.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'more', 1)", (HELP,))
    after = listed(home)
    assert {native for native in after if after[native] != before[native]} == {HELP}
    assert HARNESS.stamp(place(home)) != stamp
    assert shown(read(home, HELP))[-1] == ("user_input", "more")
    writer.close()


def test_T13_missing_columns_are_no_errors(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "state.db")
    database.executescript(
        "CREATE TABLE sessions (id TEXT, started_at REAL);"
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT);"
        "INSERT INTO sessions VALUES ('s', 1780300800);"
        "INSERT INTO messages (session_id, role, content) VALUES ('s', 'user', 'hi'), ('s', 'user', 'hi');"
    )
    database.commit()
    database.close()
    assert list(listed(tmp_path)) == ["s"]
    assert [one.text for one in events_of(read(tmp_path, "s"))] == ["", "hi", "hi"]


def test_resume() -> None:
    assert HARNESS.resume_command(PIER) == ["hermes", "--resume", PIER]
    assert HARNESS.resume_command("run-0123456789abcdef") is None


def sessions_of(parsed: list[Parsed]) -> list[str]:
    return list(dict.fromkeys(str(item.session) for one in parsed for item in one.items))


def test_T61_a_trajectory_is_a_session_with_its_tags_apart() -> None:
    parsed = runs(FIXTURES / "runs.jsonl")
    first, second, third, fourth = sessions_of(parsed)
    found = events_of(parsed, first)
    assert [(one.type.value, one.text) for one in found] == [
        ("system", "Be dry."),
        ("user_input", "weather?"),
        ("reasoning", "call it"),
        ("tool_call", ""),
        ("tool_call", ""),
        ("tool_response", '{"exit_code": 1, "error": "no sky"}'),
        ("assistant_response", 'Rain. <tool_call>{"name": "never ends"'),
        ("runtime", ""),
    ]
    assert {one.time for one in found} == {1780300800123}
    call, torn, answer = found[3], found[4], found[5]
    assert (call.tool, call.call_id, call.arguments) == ("weather", "c1", {"city": "Oslo"})
    assert torn.arguments == {"_raw": "not json"}
    assert (answer.tool, answer.call_id, answer.exit_code, answer.is_error) == ("weather", "c1", 1, True)
    assert [turn.ends for turn in turns_of(found)] == ["final"]
    assert third == f"{second}.2", "of two equal lines each counts"
    assert [turn.ends for turn in turns_of(events_of(parsed, second))] == ["crashed"]
    assert [one.type.value for one in events_of(parsed, fourth)] == ["unknown"]


@needs_corpus
@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_a_session_is_told_as_its_facts_say(path: Path) -> None:
    told = json.loads(path.read_text(encoding="utf-8"))
    file = CORPUS / told["file"]
    if file.suffix == ".jsonl":
        parsed = runs(file)
        session = sessions_of(parsed)[0]
        events, records_ = events_of(parsed, session), parsed
        where = {one.key: int(one.key.split(":")[0]) + 1 for one in events if one.key != "run"}
    else:
        parsed = read(file, told["session"])
        events, records_ = events_of(parsed), [one for one in parsed if one.kind.startswith("message/")]
        where = {item.key: n for n, one in enumerate(records_, 1) for item in one.items if isinstance(item, Event)}
    assert len(records_) == told["records"]
    times = [event.time for event in events if event.time is not None]
    assert (min(times), max(times)) == (told["first_time"], told["last_time"])
    assert facts_of(parsed).get("parent") == told["parent"]
    prompts = [event for event in events if event.opens]
    assert [where[event.key] for event in prompts] == [turn["place"] for turn in told["turns"]]
    assert (hashed(prompts[0].text), hashed(prompts[-1].text)) == (told["first_prompt"], told["last_prompt"])
    for turn, want in zip(turns_of(events), told["turns"], strict=True):
        assert (hashed(turn.prompt), turn.ends, turn.tools) == (want["prompt"], want["ends"], want["tools"])
        final = turn.final and {"place": where[turn.final.key], "text": hashed(turn.final.text)}
        assert final == want["final"]
    assert not any(event.type is EventType.UNKNOWN for event in events)


@needs_corpus
def test_every_file_of_the_corpus_is_read() -> None:
    folders = [CORPUS / "hermes" / "jazzyalex__agent-sessions/Resources/Fixtures/stage0/agents/hermes",
               CORPUS / "misc-fixtures/eric-tramel__moraine/fixtures/hermes"]  # fmt: skip
    there = {path for folder in (CORPUS / "hermes", folders[1]) for path in folder.rglob("*") if path.is_file()}
    read_: set[Path] = set()
    for folder in folders:
        for file in HARNESS.discover("hermes", folder):
            if file.form is Form.LINES:
                read_.add(Path(file.path))
                continue
            names = {native: native for native in listed(folder)}
            read_ |= {path for path in there if path.suffix == ".json" and path.is_relative_to(folder)
                      and json.loads(path.read_text())["session_id"] in names}  # fmt: skip
    assert read_ == there


def test_copies_stop_where_a_session_goes_its_own_way() -> None:
    def said(*texts: str) -> list[tuple[str, dict[str, Any]]]:
        return keyed({"role": "user", "content": text} for text in texts)

    parent = said("a", "b", "a", "c")
    assert copies(said("a", "x", "a"), parent) == {parent[0][0]: parent[0][0]}
    keys = [key for key, _ in parent]
    own = said("a", "[CONTEXT SUMMARY]: before", "a", "c", "d")
    assert list(copies(own, parent).values()) == [keys[0], keys[2], keys[3]]


def test_times_of_every_form() -> None:
    assert time_ms(1780300800) == time_ms(1780300800000) == time_ms("2026-06-01T08:00:00Z") == 1780300800000
    odd: list[object] = [None, True, "soon", 0, -1, 1e18, float("nan"), []]
    assert [time_ms(one) for one in odd] == [None] * 8


NAMES = [
    "role", "content", "type", "text", "tool_calls", "id", "call_id", "function", "name", "arguments", "tool_call_id",
    "finish_reason", "reasoning", "reasoning_details", "codex_reasoning_items", "summary", "data", "timestamp",
    "output", "exit_code", "error", "display_kind", "image_url", "url", "from", "value",
]  # fmt: skip
WORDS = [
    "user", "assistant", "tool", "system", "stop", "hidden", "text", "image_url", "human", "gpt", "\0json:[1]",
    '{"a":1}', "[CONTEXT COMPACTION x", "<think>a</think>", "<tool_call>{}</tool_call>", "2026-06-01T08:00:00",
]  # fmt: skip
VALUE = values(NAMES, scalars(WORDS))
MESSAGE = st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=8)
SAID = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]) | VALUE, "content": VALUE},
    optional={
        "tool_calls": st.lists(MESSAGE, max_size=2) | VALUE,
        **dict.fromkeys(["tool_call_id", "reasoning", "finish_reason", "reasoning_details", "timestamp"], VALUE),
    },
)
ABOUT = ["time", "reason", "title", "parent", "relation", "model_config", "started_at", "usage"]
ROW = st.fixed_dictionaries(
    {"record": st.just("message"), "key": st.text(max_size=2), "message": SAID | VALUE, "copied": VALUE}
) | st.fixed_dictionaries(
    {"record": st.sampled_from(["session", "ended", "saved", "?"])},
    optional={**dict.fromkeys(ABOUT, VALUE), "base_url": VALUE | st.just("http://[x")},
)
RUN = st.dictionaries(st.sampled_from(["conversations", "timestamp", "model", "completed", "partial"]),
                      st.lists(MESSAGE, max_size=4) | VALUE)  # fmt: skip


@given(st.lists(ROW, max_size=6), st.lists(RUN, max_size=3), st.lists(SAID, max_size=4))
def test_wrong_shapes_are_no_errors(rows: list[Any], lines: list[Any], messages: list[Any]) -> None:
    numbered = [{"record": "message", "key": key, "message": one} for key, one in keyed(messages)]
    found = fold([*rows, *numbered], SourceFile("/x#s", "hermes", Form.CONTAINER, "home", "s"))
    found += fold(lines, SourceFile("/x.jsonl", "hermes", Form.LINES, "trajectories"))
    sound(found)


def test_ends_are_told_once(home: Path) -> None:
    ends = [one.ends for one in events_of(read(home, PIER)) if one.ends]
    assert ends == [End.FINAL, End.INTERRUPTED, End.FINAL]
