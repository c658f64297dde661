"""`file_attention` through both doors, with real repositories and worktrees, one of them deleted since (C179 to C207).

The sessions K, X, Y, W and M touch `src/beam.py`; the others here have files of their own.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.world import Claude, Places, World, at, use

from outcrop import tails
from outcrop.contracts import mcp_v1
from outcrop.contracts.catalog import Catalog
from outcrop.contracts.mcp_v1 import Context
from outcrop.store import open_store

BEAM = "src/beam.py"
MIRROR = "src/mirror.py"
COUNTS = ("total_touches", "distinct_sessions", "distinct_roots", "distinct_known_roots", "unknown_root_touches")


def gone(places: Places) -> Path:
    return places.repository.parent / "lighthouse-gone"


def deleted(places: Places) -> Claude:
    """Worked in a worktree that is deleted after it was indexed."""
    mirror = str(gone(places) / "src" / "mirror.py")
    return (
        Claude("gone", gone(places))
        .user("20:00:00", "polish")
        .assistant("20:00:01", use("toolu_1", "Edit", file_path=mirror, old_string="a", new_string="b"))
        .answer("20:00:03", "Polished.")
    )


def never_seen(places: Places) -> Claude:
    """Wrote into an agent's worktree that nobody ever saw, and where it cannot be told."""
    unseen = str(places.repository / ".claude" / "worktrees" / "agent-9" / "src" / "mirror.py")
    return (
        Claude("unseen", places.repository)
        .user("20:10:00", "polish elsewhere")
        .assistant("20:10:01", use("toolu_1", "Write", file_path=unseen, content="x"))
        .assistant("20:10:02", use("toolu_2", "Bash", command=f'cd "$PLACE" && cat {MIRROR}'))
        .answer("20:10:03", "Done.")
    )


def shapes(places: Places) -> Claude:
    """Paths in every form, and what looks like one."""
    calls = [
        ("Multi", {"edits": [{"path": "src/nested.py"}]}),
        ("Many", {"paths": ["src/listed.py", "src/listed_too.py"]}),
        ("shell", {"command": ["bash", "-lc", "cat src/array.py"]}),
        ("Bash", {"command": "curl https://h/src/url.py"}),
        ("Bash", {"command": "echo 'look at src/prose.py please'"}),
        ("Bash", {"command": "cat src/longer.pyc"}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/old name.py\n*** Move to: src/new name.py\n"
                                  "@@\n-a\n+b\n*** End Patch\n"}),
        ("Read", {"file_path": "src/many.py"}),
        ("Edit", {"file_path": "src/many.py"}),
        ("Read", {"file_path": str(places.repository / "src" / "SRC.py")}),
    ]  # fmt: skip
    session = Claude("shapes", places.repository).user("20:20:00", "all forms")
    for number, (tool, arguments) in enumerate(calls):
        session.assistant(f"20:20:{number + 1:02}", use(f"toolu_{number}", tool, **arguments))
    return session.answer("20:21:00", "Done.")


def forked(places: Places) -> tuple[Claude, Claude]:
    """A session, and its resumption under another id that begins with a copy of all of it."""
    first = (
        Claude("first", places.repository)
        .user("20:30:00", "trim the sail")
        .assistant("20:30:01", use("toolu_1", "Edit", file_path="src/sail.py"))
        .result("20:30:02", ("toolu_1", "ok"))
        .answer("20:30:03", "Trimmed.")
    )
    second = Claude("second", places.repository)
    second.lines = [{**line, "sessionId": second.session} for line in first.lines]
    second.user("20:40:00", "and again").assistant("20:40:01", use("toolu_9", "Read", file_path="src/sail.py"))
    return first, second.answer("20:40:02", "Again.")


def plain(places: Places) -> Claude:
    return (
        Claude("plain", places.plain)
        .user("20:50:00", "note it")
        .assistant("20:50:01", use("toolu_1", "Write", file_path=str(places.plain / "sub" / "todo.md"), content="x"))
        .assistant("20:50:02", use("toolu_2", "Edit", file_path=str(places.repository / "src" / "visit.py")))
        .answer("20:50:03", "Noted.")
    )


@pytest.fixture(scope="module", params=["call", "mcp"])
def worlds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    made = World(tmp_path_factory.mktemp("attention"), door=request.param)
    made.write("K", "X", "Y", "Z", "W", "M")
    places = made.places()
    made._git(places.repository, "worktree", "add", "-q", "-b", "gone", str(gone(places)))
    first, second = forked(places)
    for session in (deleted(places), never_seen(places), shapes(places), first, second, plain(places)):
        made.sessions[session.letter] = session
        made.save(session.letter)
    made.index()
    shutil.rmtree(gone(places))
    found = Worlds(made)
    yield found
    found.close()


class Worlds:
    """One world, entered from several directories."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.places = world.places()
        self._entered: dict[Path, World] = {}

    def ask(self, path: Any = BEAM, launch: Path | None = None, **arguments: Any) -> dict[str, Any]:
        """The envelope of a call from a directory, the repository by default."""
        where = launch or self.places.repository
        if where not in self._entered:
            self._entered[where] = self.world.at(where)
        return self._entered[where].call("file_attention", path=path, **arguments)

    def data(self, path: str = BEAM, launch: Path | None = None, **arguments: Any) -> dict[str, Any]:
        envelope = self.ask(path, launch, **arguments)
        assert "error" not in envelope, envelope
        return envelope["data"]

    def events(self, path: str = BEAM, launch: Path | None = None, **arguments: Any) -> list[dict[str, Any]]:
        return self.data(path, launch, granularity="events", **arguments)["events"]

    def touched(self, path: str = BEAM, launch: Path | None = None, **arguments: Any) -> list[tuple[str, str]]:
        """(letter of the session, tool), newest first."""
        starts = {self.world.first_time(letter): letter for letter in self.world.sessions if letter != "second"}
        starts[at("20:40:00")] = "second"  # what it copied is not its own
        letters = {row["id"]: starts[row["session"]["started_at"]] for row in self.world.sessions_of_day()}
        rows = self.events(path, launch, **arguments)
        return [(letters[row["event"]["session_id"]], row["event"]["tool_name"]) for row in rows]

    def warned(self, path: str, launch: Path | None = None, **arguments: Any) -> list[str]:
        return [told.partition(":")[0] for told in self.ask(path, launch, **arguments)["warnings"]]

    def close(self) -> None:
        for world in (self.world, *self._entered.values()):
            world.close()


OURS = [("W", "Write"), ("X", "apply_patch"), ("K", "Bash"), ("K", "Edit"), ("K", "Read")]


def test_C179_C203_touches_of_the_project_newest_first(worlds: Worlds) -> None:
    assert worlds.touched() == OURS


def test_C180_scope_all_shows_other_repositories(worlds: Worlds) -> None:
    assert worlds.touched(scope="all") == [OURS[0], ("Y", "exec_command"), *OURS[1:]]
    data = worlds.data(scope="all")
    assert str(worlds.places.other) in {root["root"] for root in data["roots"]}
    assert data["summary"]["ambiguous"] is True


def test_C181_sessions_roll_up(worlds: Worlds) -> None:
    rows = worlds.data()["sessions"]
    assert [row["rank"] for row in rows] == [1, 2, 3]
    by_id = {row["id"]: row for row in rows}
    row = by_id[worlds.world.id("K")]
    assert row["session"] == {
        "id": worlds.world.id("K"),
        "harness": "claude-code",
        "source": "claude",
        "first_touch": "2026-05-01T10:00:05.250Z",
        "last_touch": "2026-05-01T10:00:12.000Z",
        "touch_count": 3,
        "tools": ["Bash", "Edit", "Read"],
        "worktree_roots": [str(worlds.places.repository)],
        "match_kinds": ["path_suffix", "shell_path"],
    }
    assert set(row["open"]) == {"event_id", "session_id", "turn_id"}
    assert set(row) == {"rank", "id", "session", "open"}


def test_C182_worktrees_are_unified(worlds: Worlds) -> None:
    data = worlds.data()
    assert data["tail"] == BEAM
    assert data["summary"]["distinct_known_roots"] == data["summary"]["distinct_roots"] == 3
    places = worlds.places
    assert [(root["root"], root["touch_count"], root["session_count"]) for root in data["roots"]] == [
        (str(places.repository), 3, 1),
        *sorted([(str(places.worktree), 1, 1), (str(places.agent), 1, 1)]),
    ]
    assert data["summary"] | {"first_touch": None} == {
        "total_touches": 5,
        "distinct_sessions": 3,
        "distinct_roots": 3,
        "distinct_known_roots": 3,
        "unknown_root_touches": 0,
        "first_touch": None,
        "last_touch": "2026-05-01T14:00:09.000Z",
        "ambiguous": True,
        "scan_truncated": False,
    }


def test_C183_absolute_paths_of_every_worktree_mean_the_same(worlds: Worlds) -> None:
    places = worlds.places
    for root in (places.repository, places.worktree, places.agent):
        data = worlds.data(str(root / BEAM), granularity="events")
        assert data["tail"] == BEAM
        assert data["tail_is_absolute"] is False
        assert data["stripped_root"] == str(root)
        assert data["events"] == worlds.events()


def test_C184_a_file_that_is_gone_still_works(worlds: Worlds) -> None:
    assert worlds.touched("docs/new note.md") == [("X", "apply_patch")]  # C192
    assert not (worlds.places.repository / "docs").exists()


@pytest.mark.parametrize("path", ["./src/beam.py", "src/../src/beam.py", "src//beam.py", "../lighthouse/src/beam.py"])
def test_C185_paths_are_normalised(worlds: Worlds, path: str) -> None:
    data = worlds.data(path, granularity="events")
    assert (data["path"], data["tail"]) == (path, BEAM)
    assert data["events"] == worlds.events()
    assert ("path_normalized" in worlds.warned(path)) is (".." in path or "//" in path)


def test_C186_a_path_is_seen_from_the_launch_directory(worlds: Worlds) -> None:
    data = worlds.data("beam.py", launch=worlds.places.repository / "src")
    assert data["tail"] == BEAM
    assert data["stripped_root"] == str(worlds.places.repository)
    assert data["sessions"] == worlds.data()["sessions"]
    assert worlds.touched(launch=worlds.places.worktree) == worlds.touched(launch=worlds.places.agent) == OURS
    assert worlds.touched("../lighthouse-feature/src/beam.py") == OURS


@pytest.mark.parametrize(
    "path",
    [" src/beam.py", "src/beam.py ", "src/", "file:///x", "FILE:///x", "", "   ", ".", "..", "src/..", "a\0b", "src\\",
     "x" * 4097, "\ud800"],
)  # fmt: skip
def test_C187_paths_at_fault(worlds: Worlds, path: str) -> None:
    error = worlds.ask(path)["error"]
    assert error["code"] == "invalid_request"
    assert error["details"]["field"] == "path"


def test_C187_a_path_is_needed(worlds: Worlds) -> None:
    for arguments in ({}, {"path": None}, {"path": 5}, {"path": ["x"]}):
        error = worlds.world.call("file_attention", arguments)["error"]
        assert (error["code"], error["details"]["field"]) == ("invalid_request", "path")


def test_C188_match_kinds(worlds: Worlds) -> None:
    kinds = {row["event"]["tool_name"]: row["event"]["match_kind"] for row in worlds.events(scope="all")}
    assert kinds == {
        "Read": "path_suffix",
        "Edit": "path_suffix",
        "Write": "path_suffix",
        "apply_patch": "path_suffix",
        "Bash": "shell_path",
        "exec_command": "shell_path",
    }


def test_C189_a_bare_name_warns(worlds: Worlds) -> None:
    assert worlds.touched("beam.py") == OURS
    assert "generic_tail" in worlds.warned("beam.py")
    assert "generic_tail" not in worlds.warned(BEAM)


@pytest.mark.parametrize("path", ["eam.py", "py", "src", "rc/beam.py", "beam", "SRC/beam.py", "src/Beam.py"])
def test_C190_C206_whole_components_in_their_case(worlds: Worlds, path: str) -> None:
    assert worlds.touched(path, scope="all") == []


@pytest.mark.parametrize("path", ["src/url.py", "src/prose.py", "src/longer.py"])
def test_C191_what_looks_like_a_path_is_no_touch(worlds: Worlds, path: str) -> None:
    assert worlds.touched(path, scope="all") == []


def test_C193_a_rename_is_found_under_both_names(worlds: Worlds) -> None:
    for name in ("src/old name.py", "src/new name.py"):
        assert worlds.touched(name) == [("shapes", "apply_patch")]
        assert worlds.touched(name, mutations_only=True) == [("shapes", "apply_patch")]


def test_C194_a_tool_by_its_name(worlds: Worlds) -> None:
    for tool in ("edit", "EDIT", " Edit "):
        assert worlds.touched(tool=tool) == [("K", "Edit")]
    assert worlds.touched(tool="edi") == []
    error = worlds.ask(tool="  ")["error"]
    assert (error["code"], error["details"]["field"]) == ("invalid_request", "tool")


def test_C195_mutations_alone(worlds: Worlds) -> None:
    assert worlds.touched(mutations_only=True) == [("W", "Write"), ("X", "apply_patch"), ("K", "Edit")]
    assert worlds.touched(mutations_only=True, scope="all") == [("W", "Write"), ("X", "apply_patch"), ("K", "Edit")]


def test_C196_harness_and_source(worlds: Worlds) -> None:
    assert worlds.touched(harness="codex") == [("X", "apply_patch")]
    assert worlds.touched(source="claude") == [touch for touch in OURS if touch[0] != "X"]
    assert worlds.touched(source="claude", harness="codex") == []
    assert worlds.touched(source="Claude") == []
    for row in worlds.events(source="codex"):
        assert (row["event"]["harness"], row["event"]["source"]) == ("codex", "codex")
    for field in ("harness", "source"):
        assert worlds.ask(**{field: " "})["error"]["details"]["field"] == field


def test_C197_bounds_are_inclusive_and_exclusive(worlds: Worlds) -> None:
    assert worlds.touched(start_datetime="2026-05-01T10:00:12.000Z") == OURS[:3]
    assert worlds.touched(start_datetime="2026-05-01T10:00:12.001Z") == OURS[:2]
    assert worlds.touched(end_datetime="2026-05-01T10:00:12Z") == OURS[3:]
    assert worlds.touched(end_datetime="2026-05-01T12:00:12.001+02:00") == OURS[2:]


@pytest.mark.parametrize(
    ("bounds", "field"),
    [
        ({"start_datetime": "2026-05-01T10:00:00.123456Z"}, "start_datetime"),
        ({"end_datetime": "2026-05-01T10:00:00"}, "end_datetime"),
        ({"start_datetime": "yesterday"}, "start_datetime"),
        ({"start_datetime": "2026-05-01T10:00:00Z", "end_datetime": "2026-05-01T10:00:00Z"}, "end_datetime"),
        ({"scope": "x"}, "scope"),
        ({"granularity": "x"}, "granularity"),
        ({"mutations_only": "yes"}, "mutations_only"),
        ({"limit": 0}, "limit"),
        ({"limit": 51}, "limit"),
        ({"limit": 2.0}, "limit"),
        ({"unheard": 1}, "unheard"),
    ],
)
def test_C197_C198_arguments_at_fault(worlds: Worlds, bounds: dict[str, Any], field: str) -> None:
    envelope = worlds.ask(**bounds)
    assert envelope["error"]["code"] == "invalid_request"
    assert envelope["error"]["details"]["field"] == field
    assert envelope["request"] == {"path": BEAM, **bounds}


def test_C199_a_limit_hides_rows_and_says_so(worlds: Worlds) -> None:
    whole = worlds.data(granularity="events")
    data = worlds.data(granularity="events", limit=1)
    assert (data["result_count"], data["limit"], data["truncated"]) == (1, 1, True)
    assert data["summary"] == whole["summary"]
    assert data["roots"] == whole["roots"]
    assert whole["truncated"] is False
    assert worlds.data(limit=2)["truncated"] is True
    assert worlds.data(limit=3)["truncated"] is False


def test_C029_C200_C207_every_handle_opens_and_times_agree(worlds: Worlds) -> None:
    rows = worlds.data(scope="all")["sessions"] + worlds.events(scope="all") + worlds.events(MIRROR)
    for row in rows:
        kinds = {name: worlds.world.data("open", id=id)["kind"] for name, id in row["open"].items()}
        assert kinds == {"event_id": "event", "session_id": "session", "turn_id": "turn"}
        opened = worlds.world.data("open", id=row["open"]["event_id"])
        assert opened["traversal"]["turn_id"] == row["open"]["turn_id"]
        last = row["event"]["timestamp"] if "event" in row else row["session"]["last_touch"]
        assert opened["event"]["timestamp"] == last
        assert not last.startswith("1970")
        if "event" in row:
            assert row["event"]["phase"] == "request"
            assert opened["event"]["type"] == "tool_call"
            assert opened["event"]["tool_name"] == row["event"]["tool_name"]
            assert opened["turn"]["ordinal"] == row["event"]["turn"]


def test_C201_nothing_found_is_a_success(worlds: Worlds) -> None:
    data = worlds.data("src/nobody.py")
    assert [data["summary"][name] for name in COUNTS] == [0] * 5
    assert (data["summary"]["first_touch"], data["summary"]["last_touch"], data["roots"]) == (None, None, [])
    assert (data["summary"]["ambiguous"], data["sessions"], data["truncated"]) == (False, [], False)


@pytest.mark.parametrize("name", ["nested", "listed", "listed_too", "array"])
def test_C202_nested_paths_lists_and_commands_of_words(worlds: Worlds, name: str) -> None:
    assert [letter for letter, _ in worlds.touched(f"src/{name}.py")] == ["shapes"]


def test_C204_C205_what_is_not_of_the_project_is_closed(worlds: Worlds) -> None:
    places = worlds.places
    closed = [
        ("../outside.txt", places.repository),
        (str(places.other / BEAM), places.repository),
        ("/nowhere/at/all.py", places.plain),
        ("/nowhere/at/all.py", places.repository),
        (str(places.repository / BEAM), places.plain),
        (str(places.repository / BEAM), worlds.world.home),
    ]
    for path, launch in closed:
        assert worlds.touched(path, launch) == []
        assert "scope_closed" in worlds.warned(path, launch), path
    assert worlds.touched(str(places.repository / BEAM), places.plain, scope="all") == worlds.touched(scope="all")
    assert worlds.touched(BEAM, places.plain) == []
    assert "scope_directory" in worlds.warned(BEAM, places.plain)
    data = worlds.data("/nowhere/at/all.py")
    assert (data["tail"], data["tail_is_absolute"], data["stripped_root"]) == ("/nowhere/at/all.py", True, None)


def test_a_plain_directory_is_a_project_of_its_own(worlds: Worlds) -> None:
    places = worlds.places
    assert worlds.touched("sub/todo.md", places.plain) == [("plain", "Write")]
    assert worlds.touched(str(places.plain / "sub" / "todo.md"), places.plain) == [("plain", "Write")]
    assert worlds.events("sub/todo.md", places.plain)[0]["event"]["worktree_root"] == str(places.plain)
    assert worlds.touched("plain/sub/todo.md", worlds.world.home) == []
    # What a session of no repository does inside of one belongs to that one.
    assert worlds.touched("src/visit.py") == [("plain", "Edit")]
    assert worlds.touched("src/visit.py", places.plain) == []


def test_deleted_and_unseen_worktrees_stay_attributed(worlds: Worlds) -> None:
    places = worlds.places
    assert worlds.touched(MIRROR) == [("unseen", "Bash"), ("unseen", "Write"), ("gone", "Edit")]
    roots = [row["event"]["worktree_root"] for row in worlds.events(MIRROR)]
    agent = places.repository / ".claude" / "worktrees" / "agent-9"
    assert roots == [None, str(agent), str(gone(places))]
    for path in (gone(places) / MIRROR, agent / MIRROR):
        data = worlds.data(str(path), granularity="events")
        assert (data["tail"], data["events"]) == (MIRROR, worlds.events(MIRROR))
    summary = worlds.data(MIRROR)["summary"]
    assert [summary[name] for name in COUNTS] == [3, 2, 3, 2, 1]
    assert "unknown_roots" in worlds.warned(MIRROR)
    assert "(unknown)" in {root["root"] for root in worlds.data(MIRROR)["roots"]}


def test_copies_do_not_count(worlds: Worlds) -> None:
    assert worlds.touched("src/sail.py") == [("second", "Read"), ("first", "Edit")]


def test_what_a_call_was_given_is_shown_in_short(worlds: Worlds) -> None:
    rows = {row["event"]["tool_name"]: row["event"]["action_preview"] for row in worlds.events()}
    assert json.loads(rows["Read"]) == {"file_path": str(worlds.places.repository / BEAM)}
    assert rows["apply_patch"].startswith('{"input":"*** Begin Patch\\n*** Update File: src/beam.py')
    assert all(len(text) <= 160 for text in rows.values())


def test_rows_have_the_fields_of_the_specification(worlds: Worlds) -> None:
    data = worlds.data(granularity="events")
    assert set(data) == {
        "path", "tail", "tail_is_absolute", "stripped_root", "scope", "granularity", "summary", "roots", "result_count",
        "limit", "truncated", "events",
    }  # fmt: skip
    for rank, row in enumerate(data["events"], 1):
        assert set(row) == {"rank", "id", "event", "open"}
        assert row["rank"] == rank
        assert row["id"] == row["event"]["id"] == row["open"]["event_id"]
        assert row["event"]["session_id"] == row["open"]["session_id"]
        assert set(row["event"]) == {
            "id", "session_id", "harness", "source", "timestamp", "tool_name", "phase", "turn", "match_kind",
            "worktree_root", "action_preview",
        }  # fmt: skip
    assert "sessions" in worlds.data()
    assert "events" not in worlds.data()


def test_the_text_names_every_id(worlds: Worlds) -> None:
    for granularity in ("sessions", "events"):
        envelope = worlds.ask(granularity=granularity)
        told = mcp_v1.text.render(envelope)
        assert "5 touches of src/beam.py in 3 sessions of this project" in told
        for row in envelope["data"][granularity]:
            assert all(id in told for id in row["open"].values())


def test_the_canonical_request_has_every_field(worlds: Worlds) -> None:
    asked = dict.fromkeys(["scope", "granularity", "start_datetime", "end_datetime", "tool", "harness", "source"])
    envelope = worlds.ask(**asked, mutations_only=None, limit=None)
    assert envelope["request"] == {
        **asked,
        "path": BEAM,
        "scope": "project",
        "granularity": "sessions",
        "mutations_only": False,
        "limit": 50,
    }
    assert envelope["data"] == worlds.ask()["data"]


def test_an_appended_call_is_found_and_one_taken_back_is_not(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("Y")
    places = world.places()
    session = (
        Claude("live", places.repository)
        .user("21:00:00", "go on")
        .assistant("21:00:01", use("toolu_1", "Edit", file_path=BEAM))
    )
    world.sessions["live"] = session
    world.save("live")
    world.index()

    def tools() -> list[str]:
        inside = world.at(places.repository)
        data = inside.data("file_attention", path=BEAM, granularity="events")
        inside.close()
        return [row["event"]["tool_name"] for row in data["events"]]

    assert tools() == ["Edit"]
    session.assistant("21:00:03", use("toolu_2", "Write", file_path=BEAM, content="x"))
    world.save("live")
    world.index()
    assert tools() == ["Write", "Edit"]
    del session.lines[1]  # rewritten with another history
    session.lines[1]["parentUuid"] = session.lines[0]["uuid"]
    world.save("live")
    world.index()
    assert tools() == ["Write"]
    world.close()


def test_the_scan_cap_is_told(tmp_path: Path) -> None:
    world = World(tmp_path)
    places = world.places()
    session = Claude("busy", places.repository).user("22:00:00", "look often")
    for minute in range(42):
        uses = [use(f"toolu_{minute}_{number}", "Read", file_path=BEAM) for number in range(50)]
        session.assistant(f"22:{minute:02}:01", *uses)
    world.sessions["busy"] = session
    world.save("busy")
    world.index()
    inside = world.at(places.repository)
    envelope = inside.call("file_attention", path=BEAM)
    summary = envelope["data"]["summary"]
    assert (summary["total_touches"], summary["scan_truncated"], envelope["data"]["truncated"]) == (2000, True, True)
    assert (summary["first_touch"], summary["last_touch"]) == ("2026-05-01T22:02:01.000Z", "2026-05-01T22:41:01.000Z")
    assert [told.partition(":")[0] for told in envelope["warnings"]] == ["scan_truncated"]
    narrowed = inside.data("file_attention", path=BEAM, start_datetime="2026-05-01T22:02:00Z")
    assert narrowed["summary"] == {**summary, "scan_truncated": False}
    assert narrowed["truncated"] is False
    inside.close()
    world.close()


def test_C204_an_unknown_launch_directory_closes_the_project(worlds: Worlds) -> None:
    context = Context(open_store(worlds.world.store), Catalog())
    closed = mcp_v1.call("file_attention", {"path": BEAM}, context)
    assert closed["data"]["summary"]["total_touches"] == 0
    assert [told.partition(":")[0] for told in closed["warnings"]] == ["scope_closed"]
    found = mcp_v1.call("file_attention", {"path": BEAM, "scope": "all"}, context)
    assert found["data"]["summary"]["total_touches"] == 6
    assert (found["data"]["tail"], found["data"]["stripped_root"]) == (BEAM, None)


words = st.text(st.sampled_from("ab./\\"), max_size=12)


@given(words, words)
def test_a_tail_never_ends_inside_a_component(path: str, tail: str) -> None:
    path, tail = tails.unified(path), tails.unified(tail)
    if tail and tails.ends_with(path, tail):
        assert path.split("/")[-len(tail.split("/")) :] == tail.split("/")


@given(st.text())
def test_unified_paths_stay_as_they_are(path: str) -> None:
    once = tails.unified(path)
    assert tails.unified(once) == once
    assert not re.search(r"/\.?/", once[2:])
