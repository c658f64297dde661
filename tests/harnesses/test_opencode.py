"""The OpenCode adapter on invented stores of all its generations.

Numbers in test names are the tricky cases of the format reference. The stores stand in `fixtures/opencode`: a database
as SQL, a tree as files, of which one session is also in the database.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.opencode import HARNESS
from outcrop.harnesses.opencode.entries import HANDLERS as ENTRIES
from outcrop.harnesses.opencode.parts import HANDLERS as PARTS
from outcrop.ingest.containers import ContainerReading
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Parsed, Relation
from outcrop.store.embedded.write import Writer
from reading import NoSide, scalars, sound, values

FIXTURES = Path(__file__).parent.parent / "fixtures" / "opencode"
MAIN, CHILD, UNDO = "ses_main00000001", "ses_child0000001", "ses_undo00000001"
CORE, EMPTY, TREE = "ses_core00000001", "ses_empty0000001", "ses_treeOnly0001"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a database, and the tree that was left behind."""
    folder = tmp_path / "opencode"
    shutil.copytree(FIXTURES / "storage", folder / "storage")
    build(folder / "opencode.db")
    return folder


def build(path: Path) -> None:
    database = sqlite3.connect(path)
    database.executescript((FIXTURES / "database.sql").read_text(encoding="utf-8"))
    database.commit()
    database.close()


def place(data: Path, role: str = "database") -> SourceFile:
    return next(file for file in HARNESS.discover("opencode", data) if file.role == role)


def listed(file: SourceFile) -> dict[str, str]:
    container = HARNESS.container(file)
    try:
        return dict(container.sessions())
    finally:
        container.close()


def records(file: SourceFile, native: str) -> list[dict[str, Any]]:
    container = HARNESS.container(file)
    try:
        list(container.sessions())
        return list(container.records(native))
    finally:
        container.close()


def fold(rows: list[dict[str, Any]], native: str | None = None) -> list[Parsed]:
    """All records through a reader that starts anew from its state at every third one."""
    file = SourceFile("/place#x", "opencode", Form.CONTAINER, "session", native)
    reader, parsed = HARNESS.reader(file, None, NoSide()), []
    for number, row in enumerate(rows):
        if number % 3 == 2:
            reader = HARNESS.reader(file, json.loads(json.dumps(reader.state())), NoSide())
        parsed.append(reader.feed(row))
        assert parsed[-1].items or parsed[-1].reason, row
    assert native is None or reader.session == native
    return parsed


def read(file: SourceFile, native: str) -> list[Parsed]:
    return fold(records(file, native), native)


def events(parsed: list[Parsed], *types: EventType) -> list[Event]:
    found = [item for one in parsed for item in one.items if isinstance(item, Event)]
    assert len({event.key for event in found}) == len(found), "keys are unique"
    return [event for event in found if not types or event.type in types]


def facts(parsed: list[Parsed]) -> dict[str, Any]:
    return {item.name: item.value for one in parsed for item in one.items if isinstance(item, Fact)}


def by_key(parsed: list[Parsed]) -> dict[str, Event]:
    return {event.key: event for event in events(parsed)}


# Places


def test_the_data_folder_is_the_same_on_every_platform() -> None:
    for platform in ("linux", "darwin", "win32"):
        home = Path("/home/gull")
        assert HARNESS.roots("opencode", Environment(home, {}, platform)) == [
            home / ".local" / "share" / "opencode",
            home / ".opencode",
        ]


@pytest.mark.parametrize(
    ("chosen", "extra"),
    [
        (":memory:", []),
        ("opencode-dev.db", []),
        ("/elsewhere/work.db", [Path("/elsewhere/work.db")]),
        ("work.db", [Path("/x/opencode/work.db")]),
    ],
)
def test_the_environment_moves_the_places(chosen: str, extra: list[Path]) -> None:
    variables = {"XDG_DATA_HOME": "/x", "OPENCODE_DB": chosen}
    roots = HARNESS.roots("opencode", Environment(Path("/home/gull"), variables, "linux"))
    assert roots == [Path("/x/opencode"), *extra, Path("/home/gull/.opencode")]


def test_discover_finds_databases_of_all_channels_and_the_tree(data: Path) -> None:
    for name in ("opencode-dev.db", "opencode.db-wal", "auth.json", "other.db", "opencode.db.bak"):
        (data / name).write_bytes(b"")
    found = [(os.path.relpath(file.path, data), file.role) for file in HARNESS.discover("opencode", data)]
    assert found == [("opencode-dev.db", "database"), ("opencode.db", "database"), ("storage", "tree")]
    assert [file.path for file in HARNESS.discover("opencode", data / "opencode.db")] == [str(data / "opencode.db")]
    assert [file.path for file in HARNESS.discover("opencode", data / "storage")] == [str(data / "storage")]
    assert list(HARNESS.discover("opencode", data / "nowhere")) == []


def test_discover_finds_the_first_layout_and_the_go_program(tmp_path: Path) -> None:
    (tmp_path / "project" / "boat" / "storage" / "session" / "info").mkdir(parents=True)
    (tmp_path / ".opencode").mkdir()
    (tmp_path / ".opencode" / "opencode.db").write_bytes(b"")
    found = {os.path.relpath(file.path, tmp_path).replace(os.sep, "/") for file in HARNESS.discover("x", tmp_path)}
    assert found == {".opencode/opencode.db", "project/boat/storage"}


# The database


def test_T76_sessions_are_read_though_the_table_of_events_is_empty(data: Path) -> None:
    assert set(listed(place(data))) == {MAIN, CHILD, UNDO, CORE, EMPTY}
    parsed = read(place(data), MAIN)
    asked = events(parsed, EventType.USER_INPUT)
    assert [(one.text, one.opens, one.turn) for one in asked] == [
        ("Make the beacon lighter", True, "msg_u1"),
        ("Now paint it", True, "msg_u3"),
    ]
    assert asked[0].time == 1780300800123
    told = facts(parsed)
    assert (told["title.generated"], told["slug"], told["version"]) == ("Lighten the beacon", "quiet-harbour", "1.4.0")
    assert "parent" not in told
    answer = by_key(parsed)["prt_12"]
    assert (answer.model, answer.generator, answer.cwd) == ("claude-x", "claude-x", "/w/app")
    assert "never-read-this" not in json.dumps(records(place(data), MAIN))


def test_message_rows_win_over_entries_that_repeat_them(data: Path) -> None:
    assert not [one for one in records(place(data), MAIN) if one["record"] == "entry"]


def test_T80_synthetic_text_is_system(data: Path) -> None:
    found = by_key(read(place(data), MAIN))
    assert found["prt_02"].type is EventType.SYSTEM
    assert found["prt_02"].text.startswith("Called the Read tool")
    assert (found["prt_03"].type, found["prt_03"].extra) == (
        EventType.SYSTEM,
        {"mime": "text/plain", "filename": "beacon.py", "paths": ["beacon.py"]},
    )


def test_T79_a_step_is_counted_once(data: Path) -> None:
    parsed = read(place(data), MAIN)
    assert [one.reason for one in parsed if one.kind == "part/step-finish"] == [
        "repeats what its message says of the step"
    ]
    counted = [one.key for one in events(parsed) if one.extra and "usage" in one.extra]
    assert counted == ["msg_a1", "msg_a2"]


def test_tools_are_joined_to_their_results(data: Path) -> None:
    found = by_key(read(place(data), MAIN))
    call, response = found["prt_07"], found["prt_07:out"]
    assert call.arguments == {"command": "wc -l beacon.py", "workdir": "/w/app"}
    assert (call.time, response.time) == (1780300802000, 1780300803000)
    assert (response.tool, response.text, response.exit_code, response.is_error) == ("bash", "12 beacon.py\n", 2, True)
    assert (found["prt_08"].tool, found["prt_08"].original_tool) == ("open", "outcrop_open")
    assert (found["prt_08:out"].text, found["prt_08:out"].is_error) == ("id is not valid", True)
    assert found["prt_08:out"].exit_code is None
    assert "prt_09:out" not in found, "it runs for ever"
    assert found["prt_11"].extra == {"paths": ["/w/app/beacon.py"], "hash": "0b"}
    assert found["prt_06"].text == ENCRYPTED_PLACEHOLDER
    assert found["prt_06"].extra == {"encrypted_content": {"openai": {"reasoningEncryptedContent": "c2VhbGVk"}}}


def test_turns_end_as_their_last_step_says(data: Path) -> None:
    found = by_key(read(place(data), MAIN))
    assert {key: found[key].ends for key in ("msg_a1", "msg_a2", "msg_a4", "msg_a5")} == {
        "msg_a1": None,
        "msg_a2": End.FINAL,
        "msg_a4": End.CANCELLED,
        "msg_a5": None,
    }
    assert found["msg_a4"].text == "MessageAbortedError: The operation was aborted."


def test_a_command_of_the_user_opens_no_turn(data: Path) -> None:
    found = by_key(read(place(data), MAIN))
    assert found["prt_13"].type is EventType.SYSTEM
    assert {(found[key].turn, found[key].by_user) for key in ("prt_14", "prt_14:out")} == {("msg_u1", True)}
    assert found["msg_a3"].ends is End.FINAL
    assert not found["prt_07"].by_user


def test_a_compaction_stays_in_its_turn_and_is_one_event(data: Path) -> None:
    parsed = read(place(data), MAIN)
    compacted = events(parsed, EventType.COMPACTION)
    assert [(one.text, one.turn) for one in compacted] == [("Summary: the beacon was halved.", "msg_u3")]
    found = by_key(parsed)
    assert (found["prt_17"].type, found["prt_19"].type) == (EventType.RUNTIME, EventType.SYSTEM)
    assert found["prt_21"].turn == "msg_u3"


def test_an_unknown_part_is_kept_whole(data: Path) -> None:
    unknown = events(read(place(data), MAIN), EventType.UNKNOWN)
    assert [(one.key, one.raw) for one in unknown] == [("unknown:prt_20", {"type": "hologram", "beam": 1})]


def test_a_subagent_names_its_parent(data: Path) -> None:
    parsed = read(place(data), CHILD)
    told = facts(parsed)
    assert (told["parent"], told["relation"], told["agent"]) == (MAIN, Relation.SUBAGENT, "explore")
    assert {one.cwd for one in events(parsed)} == {"/w/app"}, "the project's worktree stands in"


def test_T82_what_an_undo_took_back_is_superseded(data: Path) -> None:
    parsed = read(place(data), UNDO)
    assert {one.key: one.superseded for one in events(parsed)} == {
        "prt_r1": False,
        "prt_r2": False,
        "msg_r2": False,
        "prt_r3": True,
        "prt_r4": True,
        "msg_r4": True,
    }
    assert "title.generated" not in facts(parsed)


def test_T82_an_undo_may_begin_inside_a_message(data: Path) -> None:
    change(data, 'UPDATE session SET revert = \'{"messageID": "msg_a1", "partID": "prt_08"}\' WHERE id = ?', MAIN)
    found = by_key(read(place(data), MAIN))
    assert [found[key].superseded for key in ("prt_07", "prt_08", "prt_12")] == [False, True, True]


def test_a_fork_shares_the_origin_of_what_it_copies(data: Path) -> None:
    parsed = read(place(data), UNDO)
    assert (facts(parsed)["parent"], facts(parsed)["relation"]) == (MAIN, Relation.FORK)
    original, copied = by_key(read(place(data), MAIN))["prt_01"], by_key(parsed)["prt_r1"]
    assert copied.origin == original.origin
    assert by_key(parsed)["prt_r3"].origin != original.origin


def test_T103_file_urls_name_paths() -> None:
    def path(url: str) -> Any:
        of = {"id": "m", "role": "user"}
        parsed = fold([{"record": "part", "id": "p", "of": of, "data": {"type": "file", "url": url}}])
        return (events(parsed)[0].extra or {}).get("paths")

    assert path("file:///w/a%20b.ts?start=1&end=9") == ["/w/a b.ts"]
    assert path("file:///C:/w/a.ts") == ["C:/w/a.ts"]
    assert path("data:image/png;base64,AAAA") is None


# The newer core


def test_T81_a_prompt_before_idle_belongs_to_the_running_turn(data: Path) -> None:
    parsed = read(place(data), CORE)
    asked = events(parsed, EventType.USER_INPUT)
    assert [(one.text, one.opens, one.turn) for one in asked] == [
        ("Count the gulls", True, "evt_02"),
        ("and the terns", False, "evt_02"),
        ("Feed them", True, "evt_08"),
    ]
    found = by_key(parsed)
    assert (found["evt_06"].ends, found["evt_12"].ends) == (End.FINAL, End.CANCELLED)
    assert found["evt_12"].type is EventType.RUNTIME
    assert (found["evt_03"].ends, found["evt_05"].ends) == (None, End.FINAL)


def test_entries_hold_tools_shells_and_compactions(data: Path) -> None:
    parsed = read(place(data), CORE)
    found = by_key(parsed)
    assert (found["evt_03:2:out"].text, found["evt_03:2:out"].exit_code) == ("4 gulls", 0)
    assert found["evt_03:2"].time == 1780302003500
    assert found["evt_03:3"].arguments == {"_raw": '{"filePath":'}
    assert (found["evt_07"].by_user, found["evt_07:out"].exit_code, found["evt_07"].turn) == (True, 1, "evt_02")
    assert found["evt_10"].text == "Four gulls were counted."
    assert "replayed words" not in json.dumps([one.text for one in events(parsed)])
    assert found["evt_03:1"].generator == "gpt-z"
    assert found["unknown:evt_13"].raw == {"gull": 4}
    assert found["evt_02:file:0"].extra == {
        "mime": "text/plain",
        "filename": "gulls.txt",
        "paths": ["/w/app/gulls.txt"],
    }


def test_T81_without_idle_rows_the_last_step_tells(data: Path) -> None:
    change(data, "DELETE FROM session_message WHERE type = 'idle' AND session_id = ?", CORE)
    asked = events(read(place(data), CORE), EventType.USER_INPUT)
    assert [(one.text, one.opens) for one in asked] == [
        ("Count the gulls", True),
        ("and the terns", False),
        ("Feed them", True),
    ]


# The tree


def test_T14_a_session_in_the_database_is_not_read_from_the_tree(data: Path) -> None:
    assert set(listed(place(data, "tree"))) == {TREE}
    (data / "opencode.db").unlink()
    assert set(listed(place(data, "tree"))) == {TREE, MAIN}


def test_the_tree_gives_what_its_files_say(data: Path) -> None:
    parsed = read(place(data, "tree"), TREE)
    assert [(one.key, one.type.value, one.turn) for one in events(parsed)] == [
        ("prt_t1", "user_input", "msg_t1"),
        ("prt_t2", "assistant_response", "msg_t1"),
        ("msg_t2", "runtime", "msg_t1"),
    ]
    found = by_key(parsed)
    assert found["msg_t2"].ends is End.FINAL, "without a recorded finish"
    assert found["prt_t1"].cwd == "/w/app"
    assert facts(parsed) == {"version": "0.9.0", "created": 1760000000000, "title.generated": "Mend the net"}


def test_the_first_layout_and_flat_parts(tmp_path: Path) -> None:
    root = tmp_path / "project" / "boat" / "storage" / "session"
    for path, value in {
        "info/ses_old.json": {"id": "ses_old", "title": "Old", "time": {"created": 1750000000000}},
        "message/ses_old/msg_1.json": {"id": "msg_1", "role": "user", "parts": [{"type": "text", "text": "inline"}]},
        "message/ses_old/msg_2.json": {"id": "msg_2", "role": "assistant", "time": {"created": 1750000001000}},
        "part/ses_old/msg_2/prt_1.json": {"id": "prt_1", "type": "text", "text": "apart"},
        "message/ses_old/msg_3.json": {"id": "msg_3", "role": "assistant", "time": {"created": 1750000002000}},
        "part/prt_9.json": {"id": "prt_9", "messageID": "msg_3", "type": "text", "text": "flat"},
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(value))
    found = events(read(place(tmp_path, "tree"), "ses_old"))
    assert [(one.key, one.text) for one in found] == [("msg_1:0", "inline"), ("prt_1", "apart"), ("prt_9", "flat")]
    assert {one.turn for one in found} == {"msg_1"}


def test_a_torn_file_of_the_tree_is_told_and_read_when_it_is_whole(data: Path) -> None:
    tree, file = place(data, "tree"), data / "storage" / "part" / "msg_t2" / "prt_t2.json"
    whole, stamp, signs = file.read_bytes(), HARNESS.stamp(tree), listed(tree)
    file.write_bytes(whole[:40])
    torn = read(tree, TREE)
    assert [one.reason for one in torn if one.kind == "part/?"] == ["not a whole JSON document"]
    assert "prt_t2" not in by_key(torn)
    assert HARNESS.stamp(tree) != stamp
    assert listed(tree)[TREE] != signs[TREE]
    file.write_bytes(whole)
    assert "prt_t2" in by_key(read(tree, TREE))


def test_the_stamp_of_the_tree_follows_its_parts_and_new_messages(data: Path) -> None:
    tree, seen = place(data, "tree"), set()
    part = data / "storage" / "part" / "msg_t2" / "prt_t2.json"
    for step in range(3):
        if step == 1:
            part.write_text(part.read_text().replace("whole", "whole again"))
        if step == 2:
            (data / "storage" / "message" / TREE / "msg_t3.json").write_text('{"id": "msg_t3", "role": "user"}')
        seen.add((HARNESS.stamp(tree), listed(tree)[TREE]))
    assert len(seen) == 3
    assert HARNESS.stamp(tree) == HARNESS.stamp(tree)


# A live database


def change(data: Path, query: str, *values: Any) -> None:
    database = sqlite3.connect(data / "opencode.db")
    database.execute(query, values)
    database.commit()
    database.close()


def test_T13_missing_columns_and_tables_are_no_errors(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "opencode.db")
    database.executescript(
        "CREATE TABLE session (id TEXT PRIMARY KEY, title TEXT);"
        "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
        "INSERT INTO session VALUES ('ses_bare', 'Bare'), (NULL, 'none');"
        "INSERT INTO message VALUES ('msg_1', 'ses_bare', 1780300800, '{\"role\": \"user\"}'),"
        " ('msg_2', 'ses_bare', 1780300801, '{torn'), ('msg_3', 'ses_bare', 1780300802, x'ff'),"
        " ('msg_4', 'ses_bare', 1780300803, 7);"
    )
    database.commit()
    database.close()
    parsed = read(place(tmp_path), "ses_bare")
    assert [one.time for one in events(parsed)] == [1780300800000], "seconds are not read as milliseconds"
    assert [one.reason for one in parsed[2:]] == ["not a whole JSON document"] * 3
    empty = tmp_path / "empty"
    empty.mkdir()
    sqlite3.connect(empty / "opencode.db").close()
    assert listed(place(empty)) == {}


def test_T11_rows_in_the_wal_alone_are_seen(data: Path) -> None:
    writer = sqlite3.connect(data / "opencode.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    before, stamp = listed(place(data)), HARNESS.stamp(place(data))
    writer.execute(
        'UPDATE part SET data = \'{"type":"text","text":"new"}\', time_updated = 1780309999999 WHERE id = \'prt_21\''
    )
    assert HARNESS.stamp(place(data)) != stamp
    after = listed(place(data))
    assert {native for native in after if after[native] != before[native]} == {MAIN}
    assert by_key(read(place(data), MAIN))["prt_21"].text == "new"
    writer.execute("BEGIN IMMEDIATE")
    assert set(listed(place(data))) == set(after), "T12: a writer at work locks nobody out"
    writer.execute("DELETE FROM part WHERE id = 'prt_21'")
    writer.execute("COMMIT")
    assert listed(place(data))[MAIN] != after[MAIN]
    writer.close()


def reading(writer: Writer, data: Path) -> list[tuple[str, int, str]]:
    """(text, flags, id) of all stored events of the main session, after one pass over the database."""
    file = place(data)
    tally = ContainerReading(writer, HARNESS, file, True, 1).read_place(os.stat(file.path))
    assert tally.cause is None
    rows = writer.db.execute("SELECT flags, block, slot, hex(uid) FROM event ORDER BY id").fetchall()
    return [(writer.content(block, slot).get("text", ""), flags, uid) for flags, block, slot, uid in rows]


def test_T77_T78_a_changed_row_keeps_its_event_and_a_pruned_output_stays(data: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    writer = Writer(home)
    first = reading(writer, data)
    assert [text for text, *_ in first].count("12 beacon.py\n") == 1
    assert reading(writer, data) == first
    change(
        data,
        "UPDATE part SET data = replace(data, 'Painting', 'Painting it white'), time_updated = ? WHERE id = 'prt_21'",
        1780300840000,
    )
    pruned = """UPDATE part SET time_updated = ?, data = json_set(data, '$.state.output',
        '[Old tool result content cleared]', '$.state.time.compacted', 1780300850000) WHERE id = 'prt_07'"""
    change(data, pruned, 1780300850000)
    second = reading(writer, data)
    assert {uid for *_, uid in second} == {uid for *_, uid in first}
    painted = {uid: text for text, _, uid in second if text.startswith("Painting")}
    assert list(painted.values()) == ["Painting it white"]
    assert set(painted) == {uid for text, _, uid in first if text == "Painting"}
    assert [text for text, *_ in second].count("12 beacon.py\n") == 1
    assert not [text for text, *_ in second if "cleared" in text]
    writer.close()


# Anything at all

WORDS = [*PARTS, *ENTRIES, "user", "assistant", "completed", "error", "running", "stop", "tool-calls", "x"]
NAMES = [
    "type", "text", "synthetic", "ignored", "metadata", "mime", "filename", "url", "source", "path", "tool",
    "callID", "state", "status", "input", "output", "title", "error", "time", "start", "end", "compacted",
    "created", "completed", "attachments", "files", "hash", "prompt", "agent", "attempt", "auto", "content", "name",
    "id", "structured", "result", "command", "shellID", "exit", "summary", "reason", "outcome", "model",
    "providerID", "tokens", "finish", "cost", "data",
]  # fmt: skip
VALUE = values(NAMES, scalars(WORDS))
OF = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["m1", "m2", None]), "role": st.sampled_from(["user", "assistant", "", "x"]),
        "parent": st.sampled_from(["m1", None]), "prompt": st.booleans(), "shell": st.booleans(),
        "summary": st.booleans(), "created": VALUE, "tools": st.booleans(), "model": st.none() | st.text(max_size=3),
    },
)  # fmt: skip
ODD = st.fixed_dictionaries(
    {"record": st.sampled_from(["session", "part", "message", "entry", "charm/message", "charm/session", "?"])},
    optional={
        "id": st.text(max_size=2) | VALUE, "data": VALUE, "of": OF | VALUE, "type": st.sampled_from(WORDS) | VALUE,
        "created": VALUE, "reverted": VALUE, "title": VALUE, "parent": VALUE, "directory": VALUE, "idles": VALUE,
        "parts": VALUE, "role": VALUE, "created_at": VALUE,
    },
)  # fmt: skip


@given(st.lists(ODD, max_size=8))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        data = row.get("data")
        if row["record"] in ("part", "entry") and isinstance(data, dict) and isinstance(row.get("type"), str):
            data.setdefault("type", row["type"])
    sound(fold(rows))


def test_only_what_can_be_continued_has_a_command() -> None:
    assert HARNESS.resume_command(MAIN) == ["opencode", "--session", MAIN]
    assert HARNESS.resume_command("6e65c317-1a79-4845-8176-1828fb720396") is None
