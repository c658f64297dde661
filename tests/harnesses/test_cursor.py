"""Cursor's stores on invented sessions: transcripts, the key-value databases, chat stores.

Numbers in test names are the tricky cases of the format reference. The rows of the database stand as lines in
`fixtures/cursor/state-vscdb.jsonl` and are written into a real one here.
"""

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

from outcrop.harnesses import Environment, Form, Harness, Reader, SourceFile
from outcrop.harnesses.cursor import DATABASE, HARNESS, TRANSCRIPTS
from outcrop.harnesses.cursor.composer import ComposerReader
from outcrop.harnesses.cursor.values import moment, prompt_of, result_of, rich_text, tool_of
from outcrop.harnesses.toolnames import Category, category
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Parsed, Relation
from reading import Beside, events_of, facts_of, fed, scalars, turns_of, values

FIXTURES = Path(__file__).parent.parent / "fixtures" / "cursor"
HOME = FIXTURES / "home"
ROOT = HOME / ".cursor"
MAIN = "a1a1a1a1-0000-4000-8000-000000000001"
CHILD = "b2b2b2b2-0000-4000-8000-000000000002"
PLAIN = "c3c3c3c3-0000-4000-8000-000000000003"
LIGHTS = "d4d4d4d4-0000-4000-8000-000000000004"
GHOST = "e5e5e5e5-0000-4000-8000-000000000005"
OLD = "f6f6f6f6-0000-4000-8000-000000000006"


def source(native: str) -> SourceFile:
    return next(file for file in HARNESS.discover(TRANSCRIPTS, ROOT) if file.native == native)


def rows_of(file: SourceFile) -> list[dict[str, Any]]:
    text = Path(file.path).read_text(encoding="utf-8")
    if file.form is Form.TEXT:
        return list(HARNESS.records(file, text))
    return [json.loads(line) for line in text.split("\n") if line]


def read(
    rows: list[dict[str, Any]], file: SourceFile | None = None, cuts: frozenset[int] = frozenset()
) -> list[Parsed]:
    file = file or SourceFile("/h/.cursor/projects/p/agent-transcripts/x.jsonl", TRANSCRIPTS, native="x")
    fold: Reader = HARNESS.reader(file, None, Beside())
    parsed = []
    for number, row in enumerate(rows):
        if number in cuts:
            fold = HARNESS.reader(file, json.loads(json.dumps(fold.state())), Beside())
        parsed.append(fold.feed(row))
        assert parsed[-1].items or parsed[-1].reason, row
    assert fold.session == file.native
    return parsed


def session(native: str) -> list[Parsed]:
    file = source(native)
    return read(rows_of(file), file)


def kv_rows() -> dict[str, Any]:
    lines = (FIXTURES / "state-vscdb.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["key"]: row["value"] for row in map(json.loads, lines)}


def write(connection: sqlite3.Connection, key: str, value: Any, table: str = "cursorDiskKV") -> None:
    data = None if value is None else json.dumps(value)
    connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, data))
    connection.commit()


def make_database(path: Path, rows: dict[str, Any], items: dict[str, Any] | None = None) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for table in ("ItemTable", "cursorDiskKV"):
        connection.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    for key, value in rows.items():
        write(connection, key, value)
    for key, value in (items or {}).items():
        write(connection, key, value, "ItemTable")
    return connection


@pytest.fixture
def database(tmp_path: Path) -> Any:
    user = tmp_path / "User"
    with closing(
        make_database(user / "globalStorage" / "state.vscdb", kv_rows(), {"cursorAuth/accessToken": "t"})
    ) as c:
        yield c, next(iter(HARNESS.discover(DATABASE, user)))


def marks(file: SourceFile) -> dict[str, str]:
    with closing(HARNESS.container(file)) as container:
        return dict(container.sessions())


def stored(file: SourceFile, native: str) -> list[Parsed]:
    with closing(HARNESS.container(file)) as container:
        rows = list(container.records(native))
    fold = HARNESS.reader(
        SourceFile(f"{file.path}#{native}", file.source, file.form, "session", native), None, Beside()
    )
    parsed = [fold.feed(row) for row in rows]
    assert all(one.items or one.reason for one in parsed)
    assert fold.session == native
    return parsed


# Where files are


def test_it_is_a_harness() -> None:
    harness: Harness = HARNESS
    assert (harness.name, harness.agent, harness.sources) == ("cursor", "cursor", ("cursor-sqlite", "cursor"))
    assert harness.group(DATABASE) == harness.group(TRANSCRIPTS)
    assert harness.resume_command("x") == ["cursor-agent", "--resume", "x"]


@pytest.mark.parametrize(
    ("platform", "variables", "wanted"),
    [
        ("linux", {}, "/h/.config/Cursor/User"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Cursor/User"),
        ("darwin", {}, "/h/Library/Application Support/Cursor/User"),
        ("win32", {}, "/h/AppData/Roaming/Cursor/User"),
        ("win32", {"APPDATA": "/r"}, "/r/Cursor/User"),
    ],
)
def test_the_editors_folder_on_every_platform(platform: str, variables: dict[str, str], wanted: str) -> None:
    assert HARNESS.roots(DATABASE, Environment(Path("/h"), variables, platform)) == [Path(wanted)]


def test_the_agents_folder_obeys_its_variable() -> None:
    home = Path("/h")
    assert HARNESS.roots(TRANSCRIPTS, Environment(home)) == [home / ".cursor", home / ".config" / "cursor"]
    assert HARNESS.roots(TRANSCRIPTS, Environment(home, {}, "win32")) == [home / ".cursor"]
    assert HARNESS.roots(TRANSCRIPTS, Environment(home, {"CURSOR_DATA_DIR": "/d"})) == [Path("/d")]


def test_discover_lists_transcripts_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / ".cursor"
    shutil.copytree(ROOT, root)
    transcripts = root / "projects" / "w-app" / "agent-transcripts"
    (transcripts / f"{MAIN}.txt").write_text("user:\nhi\n")
    (transcripts / "notes.md").write_text("x")
    (root / "projects" / "w-app" / "mcp-auth.json").write_text("{}")
    found = {(file.native, file.form, file.parent) for file in HARNESS.discover(TRANSCRIPTS, root)}
    assert found == {
        (MAIN, Form.LINES, None),
        (CHILD, Form.LINES, MAIN),
        (PLAIN, Form.TEXT, None),
    }
    assert list(HARNESS.discover(TRANSCRIPTS, tmp_path / "nowhere")) == []


def test_discover_lists_the_databases_without_their_backups(tmp_path: Path) -> None:
    for place in ("globalStorage", "workspaceStorage/aa", "workspaceStorage/bb"):
        make_database(tmp_path / place / "state.vscdb", {}).close()
        (tmp_path / place / "state.vscdb.backup").write_bytes(b"")
    found = list(HARNESS.discover(DATABASE, tmp_path))
    assert [Path(file.path).parent.name for file in found] == ["globalStorage", "aa", "bb"]
    assert {file.form for file in found} == {Form.CONTAINER}


# Transcripts


def test_prompts_answers_and_tools_of_a_transcript() -> None:
    parsed = session(MAIN)
    first, second, third = turns_of(events_of(parsed))
    assert [turn.prompt for turn in (first, second, third)] == [
        "Rename the tide table",
        "Ask somebody to check it",
        "Rename the tide table",
    ]
    assert first.tools == ["Read", "StrReplace", "Shell"]
    assert (first.ends, second.ends, third.ends) == ("final", "interrupted", "crashed")
    assert first.final is not None
    assert first.final.text == "The tide table is renamed."
    opener = first.events[0]
    assert opener.extra == {
        "context": "<open_and_recently_viewed_files>\nsrc/tide.ts\n</open_and_recently_viewed_files>"
    }
    assert {event.cwd for event in first.events} == {"/w/app", "/w/app/web"}
    assert third.events[-1].text == "turn ended: error: connection lost"


def test_redacted_text_is_a_placeholder() -> None:
    said = [event for event in events_of(session(MAIN)) if (event.extra or {}).get("redacted")]
    assert [event.text for event in said] == ["Reading it first."]
    hidden = [event.text for event in events_of(session(MAIN)) if event.type is EventType.REASONING]
    assert hidden == [ENCRYPTED_PLACEHOLDER]


def test_T55_a_transcript_has_no_times_and_keeps_its_order() -> None:
    events = events_of(session(MAIN))
    assert all(event.time is None for event in events)
    assert events[0].type is EventType.USER_INPUT
    assert events[-1].type is EventType.RUNTIME


def test_T55_recorded_times_and_models_are_taken() -> None:
    rows = [
        {"role": "user", "timestamp": "2026-02-16T12:00:10.000Z", "message": {"content": "hi"}},
        {"role": "assistant", "timestamp": 1771243211, "model": "tern-1", "message": {"content": "hello"}},
        {"role": "assistant", "model": "default", "message": {"content": "more"}},
    ]
    prompt, answer, more = events_of(read(rows))
    assert (prompt.time, answer.time, more.time) == (1771243210000, 1771243211000, None)
    assert (prompt.model, answer.model, more.model, more.generator) == (None, "tern-1", None, "tern-1")


def test_T56_a_call_without_id_and_result_is_a_call_alone() -> None:
    rows = [
        {"role": "user", "message": {"content": [{"type": "text", "text": "list"}]}},
        {
            "role": "assistant",
            "message": {"content": [{"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}]},
        },
        {"type": "turn_ended", "status": "success"},
    ]
    (turn,) = turns_of(events_of(read(rows)))
    assert [event.type.value for event in turn.events] == ["user_input", "tool_call", "runtime"]
    assert turn.events[1].call_id == turn.events[1].key
    assert turn.ends == "stopped"


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ("success", End.FINAL),
        ("cancelled", End.CANCELLED),
        ("aborted", End.INTERRUPTED),
        ("error", End.CRASHED),
        ("napping", End.STOPPED),
        (None, End.STOPPED),
    ],
)
def test_how_a_turn_ends(status: Any, end: End) -> None:
    (event,) = events_of(read([{"type": "turn_ended", "status": status}]))
    assert (event.type, event.ends) == (EventType.RUNTIME, end)


def test_without_ends_an_answer_that_calls_nothing_closes_a_turn_and_later_not() -> None:
    user = {"role": "user", "message": {"content": "go"}}
    answer = {"role": "assistant", "message": {"content": "done"}}
    call = {"role": "assistant", "message": {"content": [{"type": "tool_use", "name": "Read", "input": {}}]}}
    ended = {"type": "turn_ended", "status": "success"}
    assert [turn.ends for turn in turns_of(events_of(read([user, answer])))] == ["final"]
    assert [turn.ends for turn in turns_of(events_of(read([user, answer, call])))] == [None]
    assert [turn.ends for turn in turns_of(events_of(read([user, answer, ended, user, answer])))] == ["final", None]


def test_results_find_their_calls_by_id_then_in_order() -> None:
    def use(name: str, id: str | None = None) -> dict[str, Any]:
        return {"type": "tool_use", "name": name, "input": {"n": name}, **({"id": id} if id else {})}

    def result(id: str, text: str, kind: str = "tool_result") -> dict[str, Any]:
        return {"type": kind, "tool_use_id": id, "content": [{"type": "text", "text": text}]}

    rows = [
        {"role": "user", "message": {"content": "go"}},
        {"role": "assistant", "message": {"content": [use("Read"), use("Grep"), use("Shell", "call_9\nfc_9")]}},
        {"role": "tool", "message": {"content": [result("call_9", "Exit code: 3")]}},
        {"role": "user", "message": {"content": [result("t1", "one"), result("t2", "two", "tool-result")]}},
        {"role": "tool", "message": {"content": [{**result("t3", "late"), "is_error": True}]}},
    ]
    parsed = read(rows)
    told = [event for event in events_of(parsed) if event.type is EventType.TOOL_RESPONSE]
    assert [(one.tool, one.text) for one in told] == [
        ("Shell", "Exit code: 3"),
        ("Read", "one"),
        ("Grep", "two"),
        (None, "late"),
    ]
    assert (told[0].exit_code, told[0].is_error, told[1].exit_code, told[3].is_error) == (3, True, None, True)
    assert len(turns_of(events_of(parsed))) == 1, "results in a user record open nothing"


def test_a_subagent_names_its_parent() -> None:
    parsed = session(CHILD)
    assert facts_of(parsed) == {"parent": MAIN, "relation": Relation.SUBAGENT}
    assert [turn.prompt for turn in turns_of(events_of(parsed))] == ["Check the rename"]


def test_plain_text_reads_like_lines() -> None:
    first, second = turns_of(events_of(session(PLAIN)))
    assert first.prompt == "Fix the lamp\nuser: this line is part of the prompt"
    assert [(event.type.value, event.text, event.arguments) for event in first.events[1:]] == [
        ("reasoning", "The lamp is off.\nIt needs a switch.", None),
        ("assistant_response", "I look at the lamp.", None),
        ("tool_call", "", {"path": "/w/old/lamp.py", "limit": "20"}),
        ("tool_response", 'def lamp():\n    return "off"', None),
        (
            "tool_call",
            "",
            {"patch": "*** Begin Patch\n*** Update File: lamp.py\n-off\n+on\n*** End Patch"},
        ),
        ("tool_response", "", None),
        ("assistant_response", "The lamp is on.", None),
    ]
    assert (first.ends, second.prompt, second.ends) == ("final", "Thanks", "final")
    assert [event.tool for event in first.events if event.type is EventType.TOOL_RESPONSE] == ["Read", "ApplyPatch"]


def test_T6_a_transcript_rewritten_from_a_prompt_on_keeps_the_ids_before_it() -> None:
    rows = rows_of(source(MAIN))
    other = [*rows[:5], {"role": "user", "message": {"content": "something else"}}]
    before, after = [event.key for event in events_of(read(rows))], [event.key for event in events_of(read(other))]
    assert after[:-1] == before[: len(after) - 1]
    assert after[-1] not in before


def test_keys_do_not_depend_on_the_place() -> None:
    rows = rows_of(source(MAIN))
    elsewhere = SourceFile("/other/x.jsonl", TRANSCRIPTS, native="y")
    assert [event.key for event in events_of(read(rows))] == [event.key for event in events_of(read(rows, elsewhere))]


def test_what_is_not_known_is_kept_whole() -> None:
    odd = {"role": "assistant", "message": {"content": [{"type": "hologram", "text": "shown"}]}}
    new = {"type": "tide_report", "height": 3}
    block, record = events_of(read([odd, new]))
    assert (block.type, block.raw, block.text) == (EventType.UNKNOWN, odd["message"]["content"][0], "shown")
    assert (record.type, record.raw) == (EventType.UNKNOWN, new)
    assert read([{"role": "assistant", "message": {"content": []}}])[0].reason == "an empty message"


def test_a_long_session_keeps_a_small_state_and_every_event() -> None:
    rows = [{"role": "user", "message": {"content": f"prompt {n % 700}"}} for n in range(900)]
    rows += [{"role": "assistant", "message": {"content": f"step {n % 600}"}} for n in range(1500)]
    file = SourceFile("/p/agent-transcripts/x.jsonl", TRANSCRIPTS, native="x")
    fold = HARNESS.reader(file, None, Beside())
    keys = [item.key for row in rows for item in fold.feed(row).items if isinstance(item, Event)]
    assert len(keys) == len(set(keys)) == 2400
    assert len(json.dumps(fold.state())) < 60_000


@given(st.sampled_from((MAIN, CHILD, PLAIN)), st.sets(st.integers(0, 12)))
def test_reading_cut_anywhere_gives_the_same_items(native: str, cuts: set[int]) -> None:
    file = source(native)
    rows = rows_of(file)
    assert read(rows, file, frozenset(cuts)) == read(rows, file)


# The key-value databases


def test_a_conversation_of_the_global_database(database: Any) -> None:
    _, file = database
    assert set(marks(file)) == {LIGHTS, GHOST, OLD, "null"}
    parsed = stored(file, LIGHTS)
    assert facts_of(parsed) == {
        "title.generated": "Harbour lights",
        "summary": "Edited lights.ts",
        "created": 1777622400000,
        "version": "composer 16",
    }
    head, *events = events_of(parsed)
    assert (head.type, head.time, head.cwd) == (EventType.SYSTEM, 1777622400000, "/w/harbour")
    first, second, third = turns_of([head, *events])
    assert first.prompt == "Light the harbour in @lights.ts\nand test it"
    assert first.tools == ["edit_file_v2", "run_terminal_command_v2", "mcp__outcrop__search_sessions"]
    assert (first.ends, second.ends, third.ends) == ("final", "cancelled", "final")
    assert first.final is not None
    assert (first.final.text, first.final.time) == ("The harbour is lit.", 1777622440000)
    assert third.events[-1].time == 1777622490000
    answers = {event.key: event for event in events}
    assert answers["t1:thinking"].model == "composer-9"
    assert answers["a1:text"].generator == "composer-9"
    assert answers["a1:text"].model is None
    assert answers["a1:text"].extra == {"usage": {"input": 120, "output": 8}, "turn_ms": 39000}


def test_tools_of_the_database(database: Any) -> None:
    _, file = database
    events = {event.key: event for event in events_of(stored(file, LIGHTS))}
    assert events["e1:call"].call_id == events["e1:result"].call_id == "call_e1"
    assert events["e1:call"].arguments == {"relativeWorkspacePath": "lights.ts"}
    shell = events["s1:result"]
    assert (shell.text, shell.exit_code, shell.is_error, shell.tool) == ("1 failed", 1, True, "run_terminal_command_v2")
    assert events["s1:call"].cwd == "/w/harbour/web"
    own = events["m1:call"]
    assert (own.tool, own.original_tool) == ("search_sessions", "mcp__outcrop__search_sessions")
    assert own.arguments == {"query": "lamp"}
    assert category(own.tool or "", own.original_tool) is Category.OWN
    gone = events["c2:result"]
    assert (gone.is_error, gone.ends, gone.text) == (True, End.CANCELLED, "Rejected by the user")


def test_T57_a_call_that_completes_keeps_its_id(database: Any) -> None:
    connection, file = database
    key = f"bubbleId:{LIGHTS}:s1"
    value = kv_rows()[key]
    done = value["toolFormerData"]
    value["toolFormerData"] = {name: part for name, part in done.items() if name != "result"} | {"status": "running"}
    write(connection, key, value)
    before = [event.key for event in events_of(stored(file, LIGHTS)) if event.key.startswith("s1")]
    was = marks(file)
    value["toolFormerData"] = done
    write(connection, key, value)
    after = [event.key for event in events_of(stored(file, LIGHTS)) if event.key.startswith("s1")]
    assert (before, after) == (["s1:call"], ["s1:call", "s1:result"])
    now = marks(file)
    assert {native for native in now if now[native] != was[native]} == {LIGHTS}


def test_T58_an_empty_conversation_comes_when_it_fills(database: Any) -> None:
    connection, file = database
    (ghost,) = stored(file, GHOST)
    assert (ghost.items, ghost.reason) == ((), "an empty conversation without a name")
    was = marks(file)[GHOST]
    head = kv_rows()[f"composerData:{GHOST}"]
    head["fullConversationHeadersOnly"] = [{"bubbleId": "g1", "type": 1}]
    write(connection, f"composerData:{GHOST}", head)
    write(connection, f"bubbleId:{GHOST}:g1", {"type": 1, "bubbleId": "g1", "text": "hello"})
    assert marks(file)[GHOST] != was
    assert [turn.prompt for turn in turns_of(events_of(stored(file, GHOST)))] == ["hello"]


def test_T59_what_is_not_in_the_list_is_not_in_the_conversation(database: Any) -> None:
    _, file = database
    parsed = stored(file, LIGHTS)
    assert not any(event.key.startswith("x9") for event in events_of(parsed))
    assert [one.reason for one in parsed if one.kind == "abandoned"] == [
        "a message that is no longer in the conversation"
    ]


def test_T11_rows_in_the_log_alone_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "globalStorage" / "state.vscdb"
    with closing(make_database(path, kv_rows())) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        file = next(iter(HARNESS.discover(DATABASE, tmp_path)))
        before, was = HARNESS.stamp(file), marks(file)
        write(connection, "composerData:new", {"composerId": "new", "name": "New", "conversation": []})
        assert HARNESS.stamp(file) != before
        assert set(marks(file)) - set(was) == {"new"}


def test_T12_a_writer_that_holds_the_database_blocks_nobody(database: Any) -> None:
    connection, file = database
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM cursorDiskKV WHERE key LIKE 'bubbleId:%:a3'")
    assert any(event.key == "a3:text" for event in events_of(stored(file, LIGHTS)))
    connection.commit()
    assert not any(event.key == "a3:text" for event in events_of(stored(file, LIGHTS)))


def test_a_message_that_is_still_being_made_waits(database: Any) -> None:
    connection, file = database
    head = kv_rows()[f"composerData:{LIGHTS}"] | {"status": "generating"}
    head["fullConversationHeadersOnly"].append({"bubbleId": "z9", "type": 2})
    write(connection, f"composerData:{LIGHTS}", head)
    write(connection, f"bubbleId:{LIGHTS}:z9", {"type": 2, "bubbleId": "z9", "text": "Half a wo"})
    parsed = stored(file, LIGHTS)
    assert not any(event.key.startswith("z9") for event in events_of(parsed))
    assert "a message that is still being made" in [one.reason for one in parsed]
    assert turns_of(events_of(parsed))[-1].ends is None


def test_an_older_conversation_stands_whole_in_its_row(database: Any) -> None:
    _, file = database
    parsed = stored(file, OLD)
    (turn,) = turns_of(events_of(parsed))
    assert (turn.prompt, turn.ends) == ("Paint the pier", "interrupted")
    assert facts_of(parsed)["parent"] == LIGHTS
    assert facts_of(parsed)["relation"] is Relation.SUBAGENT


def test_workspaces_hold_the_oldest_conversations(tmp_path: Path) -> None:
    chat = {
        "tabId": "t-1",
        "chatTitle": "Tides",
        "lastSendTime": 1731800000000,
        "bubbles": [
            {"type": "user", "id": "q1", "text": "when is high water?"},
            {"type": "ai", "id": "r1", "text": "At noon.", "modelType": "gull-2"},
            {"type": "user", "id": "q2", "text": "and low?"},
            {"type": "ai", "id": "r2", "rawText": "At six."},
            {"type": "user", "id": "q3", "text": ""},
        ],
    }
    items = {
        "composer.composerData": {"allComposers": [{"composerId": "head-only"}, kv_rows()[f"composerData:{OLD}"]]},
        "workbench.panel.aichat.view.aichat.chatdata": {"tabs": [chat]},
        "cursorAuth/accessToken": "never read",
    }
    folder = tmp_path / "workspaceStorage" / "aa"
    make_database(folder / "state.vscdb", {}, items).close()
    (folder / "workspace.json").write_text(json.dumps({"folder": "file:///w/my%20pier"}))
    (file,) = HARNESS.discover(DATABASE, tmp_path)
    assert set(marks(file)) == {OLD, "t-1"}
    parsed = stored(file, "t-1")
    first, second = turns_of(events_of(parsed))
    assert [event.key for event in first.events] == ["q1:user", "r1:text"]
    assert (first.ends, first.events[1].model, first.events[0].time) == ("final", "gull-2", None)
    assert (second.ends, second.events[0].time, second.events[1].text) == (None, 1731800000000, "At six.")
    assert {event.cwd for event in events_of(parsed)} == {"/w/my pier"}
    assert facts_of(parsed) == {"title.generated": "Tides"}


def test_T13_tables_that_are_not_there_are_empty(tmp_path: Path) -> None:
    path = tmp_path / "globalStorage" / "state.vscdb"
    path.parent.mkdir()
    sqlite3.connect(path).execute("CREATE TABLE ItemTable (key TEXT)").connection.close()
    (file,) = HARNESS.discover(DATABASE, tmp_path)
    assert marks(file) == {}
    assert stored(file, "x") == []


def test_T14_a_conversation_has_one_id_in_all_stores(database: Any, tmp_path: Path) -> None:
    _, file = database
    make_chat(tmp_path / "chats" / "5f" / LIGHTS, [])
    folder = tmp_path / "projects" / "p" / "agent-transcripts" / LIGHTS
    folder.mkdir(parents=True)
    (folder / f"{LIGHTS}.jsonl").write_text("")
    transcript, store, _ = HARNESS.discover(TRANSCRIPTS, tmp_path)
    assert LIGHTS in marks(file)
    assert LIGHTS in marks(store)
    assert transcript.native == LIGHTS
    assert HARNESS.group(transcript.source) == HARNESS.group(file.source)


# Chats


def varint(value: int) -> bytes:
    data = b""
    while value > 0x7F:
        data, value = data + bytes([value & 0x7F | 0x80]), value >> 7
    return data + bytes([value])


def make_chat(folder: Path, messages: list[Any]) -> None:
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        connection.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
        root = b""
        for number, message in enumerate(messages, 1):
            id = bytes([number]) * 32
            data = message if isinstance(message, bytes) else json.dumps(message).encode()
            connection.execute("INSERT INTO blobs VALUES (?, ?)", (id.hex(), data))
            root += b"\x0a" + varint(32) + id + b"\x28\x07"
        uri = b"file:///w/shore"
        root += b"\x4a" + varint(len(uri)) + uri
        connection.execute("INSERT INTO blobs VALUES (?, ?)", ("ff" * 32, root))
        head = {"agentId": folder.name, "latestRootBlobId": "ff" * 32, "name": "Shells", "mode": "default",
                "createdAt": 1781256145540, "lastUsedModel": "tern-2", "blobEncryptionKey": "k"}  # fmt: skip
        connection.execute("INSERT INTO meta VALUES ('0', ?)", (json.dumps(head).encode().hex(),))
        connection.commit()
    (folder / "meta.json").write_text(
        json.dumps({"title": "Sea shells", "cwd": "/w/shore", "createdAtMs": 1781256145000})
    )


MESSAGES = [
    {"role": "system", "content": "You are an agent"},
    {"role": "user", "content": "<user_info>\nOS\n</user_info>"},
    {"role": "user", "content": [{"type": "text", "text": "<user_query>Count the shells</user_query>"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": "How many?"},
            {"type": "tool-call", "toolCallId": "call_1\nfc", "toolName": "Shell", "args": {"command": "ls"}},
        ],
    },
    {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "call_1\nfc", "toolName": "Shell", "result": "a b c"}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Three."}]},
    b"\x00\x01 encrypted",
]


def test_a_chat_without_transcript_is_read_from_its_store(tmp_path: Path) -> None:
    make_chat(tmp_path / "chats" / "5f" / "chat-1", MESSAGES)
    store, sidecar = HARNESS.discover(TRANSCRIPTS, tmp_path)
    assert (store.role, store.form, sidecar.role, sidecar.form) == (
        "chat",
        Form.CONTAINER,
        "chat-sidecar",
        Form.DOCUMENT,
    )
    assert list(marks(store)) == ["chat-1"]
    parsed = stored(store, "chat-1")
    assert facts_of(parsed) == {"title.generated": "Shells", "created": 1781256145540}
    events = events_of(parsed)
    assert [event.type.value for event in events] == [
        "system", "system", "system", "user_input", "reasoning", "tool_call", "tool_response", "assistant_response",
        "unknown",
    ]  # fmt: skip
    assert {event.cwd for event in events} == {"/w/shore"}
    assert events[6].call_id == events[5].call_id == "call_1"
    assert events[7].generator == "tern-2"
    assert "k" not in json.dumps([event.extra for event in events])


def test_a_chat_with_a_transcript_gives_its_title_alone(tmp_path: Path) -> None:
    root = tmp_path / ".cursor"
    shutil.copytree(ROOT, root)
    make_chat(root / "chats" / "5f" / MAIN, MESSAGES)
    store = next(file for file in HARNESS.discover(TRANSCRIPTS, root) if file.path.endswith("store.db"))
    assert store.role == "chat-title"
    parsed = stored(store, MAIN)
    assert events_of(parsed) == []
    assert facts_of(parsed) == {"title.generated": "Shells", "created": 1781256145540}
    sidecar = next(file for file in HARNESS.discover(TRANSCRIPTS, root) if file.role == "chat-sidecar")
    told = HARNESS.reader(sidecar, None, Beside()).feed({"title": "New Agent", "createdAtMs": 5, "cwd": "/x"})
    assert told.reason == "says nothing"


def test_generated_summaries_are_titles(tmp_path: Path) -> None:
    path = tmp_path / "ai-tracking" / "ai-code-tracking.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE conversation_summaries (conversationId TEXT, title TEXT, tldr TEXT, model TEXT)"
        )
        connection.execute("INSERT INTO conversation_summaries VALUES ('c-1', 'Buoys', 'All painted', 'm')")
        connection.commit()
    (file,) = HARNESS.discover(TRANSCRIPTS, tmp_path)
    assert list(marks(file)) == ["c-1"]
    assert facts_of(stored(file, "c-1")) == {"title.generated": "Buoys", "summary": "All painted"}


# Single values


def test_times() -> None:
    assert moment("2026-05-08T02:04:37.835Z") == moment(1778205877835) == moment(1778205877.835) == 1778205877835
    assert moment("2026-05-08T02:04:37") is moment("soon") is moment(True) is moment(7) is moment(None) is None


def test_prompts() -> None:
    assert prompt_of("plain") == ("plain", "")
    assert prompt_of("<rules>r</rules>\n<user_query>\na\n</user_query>") == ("a", "<rules>r</rules>")
    assert prompt_of("<system_reminder>r</system_reminder>") == ("", "<system_reminder>r</system_reminder>")
    assert prompt_of("see <rules>r</rules>") == ("see <rules>r</rules>", "")
    assert prompt_of("<user_query>cut off") == ("cut off", "")


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "server"),
    [
        ("Read", None, "Read", None),
        ("mcp--outcrop--open", None, "open", ("outcrop", "open")),
        ("mcp_moraine_list_sessions", None, "list_sessions", ("moraine", "list_sessions")),
        ("mcp__outcrop__open", None, "open", ("outcrop", "open")),
        ("mcp_github", {"tools": [{"name": "open", "serverName": "github"}]}, "mcp_github", ("github", "open")),
        ("open", None, "open", None),
    ],
)
def test_names_of_tools(name: str, arguments: Any, tool: str, server: Any) -> None:
    used = tool_of(name, arguments)
    assert (used.name, used.server) == (tool, server)
    assert (used.original is not None) == (tool != name)


def test_exit_codes_stand_only_where_they_are_stated() -> None:
    assert result_of("Shell", "ran fine").exit_code is None
    assert result_of("Shell", {"output": "x", "exitCode": 0}).exit_code == 0
    assert result_of("Read", "exit code 4").exit_code is None
    failed = result_of("run_terminal_cmd", None, '{"clientVisibleErrorMessage":"Command failed with exit code 7"}')
    assert (failed.exit_code, failed.text) == (7, "Command failed with exit code 7")


def test_rich_text_of_both_editors() -> None:
    lexical = {"root": {"children": [{"type": "paragraph", "children": [{"type": "text", "text": "tide"}]}]}}
    assert rich_text(json.dumps(lexical)) == "tide"
    assert rich_text("not json") == rich_text(None) == rich_text([1]) == ""


# Wrong shapes

# fmt: off
WORDS = (
    "type", "role", "content", "text", "message", "name", "input", "id", "tool_use_id", "kind", "bubble", "bubbleId",
    "toolFormerData", "status", "params", "rawArgs", "result", "error", "thinking", "signature", "createdAt", "tools",
    "serverName", "richText", "root", "children", "images", "relevantFiles", "modelInfo", "modelName", "tokenCount",
    "inputTokens", "turnDurationMs", "workspaceIdentifier", "uri", "fsPath", "subagentInfo", "parentComposerId",
    "fullConversationHeadersOnly", "conversation", "metadata", "toolResultStatus", "timestamp", "messages", "last",
    "toolCallId", "time", "data", "is_error", "exitCode",
)
# fmt: on
VALUE = values(
    WORDS,
    scalars(
        ["user", "assistant", "text", "tool_use", "tool_result", "thinking", "completed", "{}", "[1]", "mcp--"],
        nan=False,
    ),
    10,
)
RECORD = st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=7)


@given(st.lists(RECORD, max_size=6), st.sampled_from(["user", "assistant", "tool", "turn_ended"]))
def test_wrong_shapes_in_transcripts_are_no_errors(rows: list[dict[str, Any]], role: str) -> None:
    fold = HARNESS.reader(SourceFile("/p/x.jsonl", TRANSCRIPTS, native="x"), None, Beside())
    for row in rows:
        message = {"role": role, "message": {"content": [row]}}
        fed(fold, [row, {"role": role, "message": row}, message, {"type": role, **row}])


@given(st.lists(RECORD, max_size=6), st.sampled_from(["composer", "bubble", "chat", "chat-bubble", "status"]))
def test_wrong_shapes_in_databases_are_no_errors(rows: list[dict[str, Any]], kind: str) -> None:
    fold = ComposerReader("x")
    for row in rows:
        bubbles = [{**row, "type": 2}, {"type": 2, "toolFormerData": row}, {**row, "type": 1}]
        fed(fold, [{**row, "kind": kind}, *({"kind": kind, "bubble": bubble} for bubble in bubbles)])


@given(VALUE, VALUE, VALUE)
def test_wrong_shapes_of_values_are_no_errors(composer: Any, bubble: Any, items: Any) -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    from outcrop.harnesses.cursor import database as module

    for table in ("ItemTable", "cursorDiskKV"):
        connection.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    head = {"fullConversationHeadersOnly": [{"bubbleId": "b"}, composer], "conversation": [bubble], "name": bubble}
    for native, value in (("a", composer), ("h", head), ("i", {"conversation": [bubble, composer]})):
        write(connection, f"composerData:{native}", value)
        write(connection, f"bubbleId:{native}:b", bubble)
    write(
        connection,
        module.OLD_COMPOSERS,
        {"allComposers": [items, {"composerId": "o", "conversation": [items]}]},
        "ItemTable",
    )
    write(connection, module.OLD_CHATS, {"tabs": [items, {"tabId": "t", "bubbles": [items, bubble]}]}, "ItemTable")
    container = module.StateDatabase.__new__(module.StateDatabase)
    container._connection, container._disk, container._items = connection, True, True
    container._old = None
    natives = [native for native, _ in container.sessions()]
    assert {"a", "h", "i", "o", "t"} <= set(natives)
    for native in natives:
        fed(ComposerReader(native), container.records(native))
    container.close()


def test_a_row_that_is_updated_in_place_is_noticed(database: tuple[sqlite3.Connection, SourceFile]) -> None:
    connection, file = database
    before = marks(file)
    key, value = connection.execute("SELECT key, value FROM cursorDiskKV WHERE key LIKE 'bubbleId:%'").fetchone()
    connection.execute("UPDATE cursorDiskKV SET value = ? WHERE key = ?", (value.swapcase(), key))
    connection.commit()
    after = marks(file)
    assert {native for native in after if after[native] != before[native]} == {key.split(":")[1]}


@given(st.text(st.sampled_from('user:asitn\n []Tolcra=x<>/_query {}"')))
def test_any_plain_text_is_read(text: str) -> None:
    file = SourceFile("/p/x.txt", TRANSCRIPTS, Form.TEXT, native="x")
    for row in HARNESS.records(file, text):
        fed(HARNESS.reader(file, None, Beside()), [row])
