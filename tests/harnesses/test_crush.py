"""The Crush adapter, and the tables that Crush has from OpenCode's Go program, on an invented database."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reading
from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.charm import in_order, time_ms
from outcrop.harnesses.crush import HARNESS
from outcrop.harnesses.opencode import HARNESS as OPENCODE
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, Fact, Parsed, Relation
from reading import NoSide, scalars, sound, values

SQL = Path(__file__).parent.parent / "fixtures" / "crush" / "crush.sql"
BOAT = "11111111-0000-4000-8000-000000000001"
AGENT = "m2$$c9"
TITLE = f"title-{BOAT}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a database in its `.crush`."""
    (tmp_path / ".crush").mkdir()
    database = sqlite3.connect(tmp_path / ".crush" / "crush.db")
    database.executescript(SQL.read_text(encoding="utf-8"))
    database.commit()
    database.close()
    return tmp_path


def place(project: Path) -> SourceFile:
    return next(iter(HARNESS.discover("crush", project)))


def records(project: Path, native: str) -> list[dict[str, Any]]:
    return reading.records_of(HARNESS, place(project), native)


def listed(project: Path) -> dict[str, str]:
    return reading.listed(HARNESS, place(project))


def fold(rows: list[dict[str, Any]], native: str | None = None) -> list[Parsed]:
    file = SourceFile("/place#x", "crush", Form.CONTAINER, "session", native)
    return reading.read(HARNESS, file, rows, frozenset(range(len(rows))), NoSide())


def events(parsed: list[Parsed]) -> dict[str, Event]:
    found = [item for one in parsed for item in one.items if isinstance(item, Event)]
    assert len({event.key for event in found}) == len(found), "keys are unique"
    return {event.key: event for event in found}


def facts(parsed: list[Parsed]) -> dict[str, Any]:
    return {item.name: item.value for one in parsed for item in one.items if isinstance(item, Fact)}


@pytest.mark.parametrize(
    ("platform", "variables", "root"),
    [
        ("linux", {}, "/home/gull/.local/share/crush"),
        ("darwin", {}, "/home/gull/.local/share/crush"),
        ("linux", {"XDG_DATA_HOME": "/x"}, "/x/crush"),
        ("win32", {}, "/home/gull/AppData/Local/crush"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/crush"),
        ("win32", {"CRUSH_GLOBAL_DATA": "/g", "LOCALAPPDATA": "/local"}, "/g"),
    ],
)
def test_the_list_of_projects_lies_where_the_platform_says(platform: str, variables: dict[str, str], root: str) -> None:
    assert HARNESS.roots("crush", Environment(Path("/home/gull"), variables, platform)) == [Path(root)]


def test_discover_follows_the_list_of_projects(project: Path) -> None:
    shared = project / "shared"
    shared.mkdir()
    assert list(HARNESS.discover("crush", shared)) == []
    listed_projects = [
        {"path": str(project), "data_dir": ".crush"},
        {"path": str(project), "data_dir": str(project / ".crush")},
        {"path": str(project / "gone"), "data_dir": ".crush"},
        {"path": 7},
        None,
    ]
    (shared / "projects.json").write_text(json.dumps({"projects": listed_projects}))
    assert [file.path for file in HARNESS.discover("crush", shared)] == [str(project / ".crush" / "crush.db")]
    (shared / "projects.json").write_text('{"projects": [')
    assert list(HARNESS.discover("crush", shared)) == []
    assert [file.path for file in HARNESS.discover("crush", project / ".crush")] == [
        str(project / ".crush" / "crush.db")
    ]


def test_a_conversation_is_read_in_its_order(project: Path) -> None:
    parsed = fold(records(project, BOAT), BOAT)
    found = events(parsed)
    assert [(one.key, one.type.value) for one in found.values()] == [
        ("m1:text", "user_input"),
        ("m1:binary", "system"),
        ("m2:reasoning", "reasoning"),
        ("m2:text", "assistant_response"),
        ("m2:call:c1", "tool_call"),
        ("m2:call:c2", "tool_call"),
        ("m2:finish", "runtime"),
        ("m3:result:c1", "tool_response"),
        ("m4:text", "assistant_response"),
        ("m4:finish", "runtime"),
        ("m5:shell", "tool_call"),
        ("m5:shell:out", "tool_response"),
        ("m6:text", "user_input"),
        ("m6:text:1", "system"),
        ("m7:text", "compaction"),
        ("m7:finish", "runtime"),
        ("m8:text", "assistant_response"),
        ("m8:unknown", "unknown"),
        ("m8:finish", "runtime"),
    ]
    assert {key for key, one in found.items() if one.opens} == {"m1:text", "m6:text"}
    assert {key: one.ends for key, one in found.items() if one.ends} == {
        "m4:finish": End.FINAL,
        "m5:shell:out": End.FINAL,
        "m8:finish": End.CANCELLED,
    }
    assert facts(parsed) == {"created": 1780300800000, "title.generated": "Caulk the boat"}
    assert "never-read-this" not in json.dumps(records(project, BOAT))


def test_values_of_events(project: Path) -> None:
    found = events(fold(records(project, BOAT), BOAT))
    assert {one.cwd for one in found.values()} == {str(project)}
    assert found["m1:text"].time == 1780300800000, "seconds"
    assert found["m4:finish"].time == 1780300807000
    assert found["m1:binary"].extra == {"paths": ["/w/boat/hull.png"]}
    assert (found["m2:reasoning"].text, found["m2:reasoning"].extra) == (
        ENCRYPTED_PLACEHOLDER,
        {"encrypted_content": {"signature": "c2VhbGVk"}},
    )
    assert (found["m2:call:c2"].tool, found["m2:call:c2"].original_tool) == ("open", "mcp_outcrop_open")
    assert found["m2:call:c2"].arguments == {"_raw": '{"id":'}
    response = found["m3:result:c1"]
    assert (response.tool, response.exit_code, response.is_error) == ("bash", 2, True)
    assert (found["m5:shell:out"].exit_code, found["m5:shell"].by_user) == (0, True)
    assert (found["m4:text"].model, found["m4:text"].generator) == ("gull-4", "gull-4")
    assert found["m8:unknown"].raw == {"type": "sonar", "data": {"ping": 1}}
    assert found["m8:finish"].text == "Canceled: by the user"


def test_sessions_for_agents_and_titles_name_their_parent(project: Path) -> None:
    agent = facts(fold(records(project, AGENT), AGENT))
    assert (agent["parent"], agent["relation"]) == (BOAT, Relation.SUBAGENT)
    assert "title.generated" not in agent
    assert facts(fold(records(project, TITLE), TITLE))["machine"] is True
    assert HARNESS.resume_command(BOAT) == ["crush", "--session", BOAT]
    assert HARNESS.resume_command(TITLE) is HARNESS.resume_command(AGENT) is None


def test_T11_a_change_inside_the_newest_second_is_seen_in_the_wal(project: Path) -> None:
    writer = sqlite3.connect(project / ".crush" / "crush.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    before, stamp = listed(project), HARNESS.stamp(place(project))
    writer.execute("UPDATE messages SET parts = replace(parts, 'Rowing', 'Rowing on') WHERE id = 'm8'")
    after = listed(project)
    assert {native for native in after if after[native] != before[native]} == {BOAT}
    assert HARNESS.stamp(place(project)) != stamp
    assert events(fold(records(project, BOAT)))["m8:text"].text == "Rowing on"
    writer.close()


def test_T13_missing_columns_are_no_errors(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "crush.db")
    database.executescript(
        "CREATE TABLE sessions (id TEXT, updated_at TEXT);"
        "CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, created_at TEXT, updated_at TEXT);"
        "INSERT INTO sessions VALUES ('s', '2026-06-01T08:00:00Z');"
        'INSERT INTO messages VALUES (\'a\', \'s\', \'user\', \'[{"type":"text","data":{"text":"hi"}}]\','
        " '2026-06-01 08:00:00', NULL), ('b', 's', 'assistant', '[{', '2026-06-01 08:00:01', NULL);"
    )
    database.commit()
    database.close()
    assert list(listed(tmp_path)) == ["s"]
    parsed = fold(records(tmp_path, "s"), "s")
    assert [one.reason for one in parsed] == ["names the session", None, "not a whole JSON document"]
    assert events(parsed)["a:text"].time == 1780300800000
    assert events(parsed)["a:text"].cwd is None


def test_results_follow_their_calls_inside_a_second() -> None:
    def row(id: str, kind: str, name: str, call: str, created: int = 1) -> dict[str, Any]:
        return {"id": id, "created_at": created, "parts": [{"type": kind, "data": {name: call}}]}

    rows = [
        row("a", "tool_call", "id", "1"),
        row("b", "tool_call", "id", "2"),
        row("c", "tool_result", "tool_call_id", "1"),
        row("d", "tool_result", "tool_call_id", "2"),
        row("e", "tool_result", "tool_call_id", "1", 2),
    ]
    assert [one["id"] for one in in_order(rows)] == ["a", "c", "b", "d", "e"]


def test_times_of_every_form() -> None:
    assert time_ms(1780300800) == time_ms(1780300800000) == time_ms("2026-06-01T08:00:00Z") == 1780300800000
    assert time_ms("2026-06-01 10:00:00+02:00") == time_ms("2026-06-01 08:00:00") == 1780300800000
    odd: list[object] = [None, True, "soon", 0, -1, 1e18, float("nan"), []]
    assert [time_ms(one) for one in odd] == [None] * 8


def test_opencode_reads_the_same_tables(project: Path) -> None:
    (project / ".opencode").mkdir()
    os.rename(project / ".crush" / "crush.db", project / ".opencode" / "opencode.db")
    file = next(iter(OPENCODE.discover("opencode", project)))
    container = OPENCODE.container(file)
    assert set(dict(container.sessions())) == {BOAT, AGENT, TITLE}
    reader = OPENCODE.reader(SourceFile(f"{file.path}#{BOAT}", "opencode", file.form, "session", BOAT), None, NoSide())
    parsed = [reader.feed(row) for row in container.records(BOAT)]
    container.close()
    assert events(parsed)["m1:text"].cwd == str(project)
    assert reader.session == BOAT


NAMES = [
    "type", "data", "text", "hidden", "thinking", "signature", "id", "name", "input", "tool_call_id", "content",
    "metadata", "is_error", "mime_type", "reason", "time", "message", "Path", "MIMEType", "Data", "url", "command",
    "output", "exit_code",
]  # fmt: skip
KINDS = ["text", "reasoning", "tool_call", "tool_result", "finish", "binary", "image_url", "shell_command", "bash", "x"]
VALUE = values(NAMES, scalars(KINDS))
PART = st.fixed_dictionaries({"type": st.sampled_from(KINDS), "data": st.dictionaries(st.sampled_from(NAMES), VALUE)})
ROW = st.fixed_dictionaries(
    {"record": st.sampled_from(["charm/session", "charm/message"])},
    optional={
        "id": st.text(min_size=1, max_size=2) | VALUE, "role": st.sampled_from(["user", "assistant", "tool"]) | VALUE,
        "parts": st.lists(PART | VALUE, max_size=4) | VALUE, "created_at": VALUE, "model": VALUE, "title": VALUE,
        "parent_session_id": VALUE, "finished_at": VALUE, "is_summary_message": VALUE, "provider": VALUE,
    },
)  # fmt: skip


@given(st.lists(ROW, max_size=6))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]]) -> None:
    sound(fold(in_order(rows)))
