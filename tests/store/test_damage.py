"""Damage to the data folder, met through the command: told in one line without content or paths, and healed where the
rows allow it.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homes import many_turns
from world import SOURCE, Claude, Run, World

PAGE = 4096


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.write("K", "X", "D")
    many_turns(made.home, made.places().plain, "long", 300)
    made.index()
    yield made
    made.close()


def spoil_dictionaries(world: World) -> None:
    """The head of every term file, with times that tell nothing."""
    paths = list((world.store / "text").glob("*/*.term"))
    assert paths
    for path in paths:
        with open(path, "r+b") as stream:
            stream.write(b"\xff" * 200)


def texts(run: Run) -> list[str]:
    assert run.code == 0, run
    return [hit["snippet"]["text"] for hit in run.json["data"]["results"]]


def test_an_indexing_finds_damaged_dictionaries_and_builds_them_anew(world: World) -> None:
    before = texts(world.run("events", "beacon", "--json"))
    spoil_dictionaries(world)
    assert world.run("events", "beacon").code == 3
    assert world.index().err == ""
    assert texts(world.run("events", "beacon", "--json")) == before


def test_damage_that_left_the_times_as_they_were_is_found_by_a_full_indexing(world: World) -> None:
    before = texts(world.run("events", "beacon", "--json"))
    world.index()  # has looked at all there is
    stats = {path: path.stat() for path in (world.store / "text").glob("*/*")}
    spoil_dictionaries(world)
    for path, stat in stats.items():
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    world.index("--full")
    assert texts(world.run("events", "beacon", "--json")) == before


@pytest.mark.parametrize("pattern", ["*.term", "*.idx", "*.fast", "*.store", "meta.json"])
def test_R18_a_failing_engine_is_told_in_few_lines(world: World, pattern: str) -> None:
    for path in (world.store / "text").glob(f"*/{pattern}"):
        data = path.read_bytes()
        path.write_bytes(random.Random(1).randbytes(len(data) // 2) + data[len(data) // 2 :])
    told = world.run("call", "search_sessions", '{"query": "beacon timeout"}', RUST_BACKTRACE="full")
    if "error" in told.json:
        reason = told.json["error"].get("details", {}).get("reason")
        assert told.json["error"]["code"] == ("internal_error" if reason == "read_model_refresh" else "backend_failure")
        assert str(world.store) not in told.json["error"]["message"]
        assert told.code == 3
    assert len(told.err.splitlines()) <= 4, told.err
    world.index()
    assert texts(world.run("events", "beacon", "--json"))


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_database_is_a_backend_failure_without_content(world: World, seed: int) -> None:
    chance = random.Random(seed)
    path = world.store / "outcrop.db"
    data = bytearray(path.read_bytes())
    for _ in range(300):
        data[chance.randrange(2 * PAGE, len(data))] ^= chance.randrange(1, 256)
    path.write_bytes(data)
    window = '{"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"}'
    for argv in (
        ["rebuild"],
        ["events", "question"],
        ["status"],
        ["call", "list_sessions", window],
        ["touches", "src/beam.py"],
        ["index"],
        ["index", "--full"],
        ["rebuild"],
    ):
        told = world.run(*argv)
        assert told.code in (0, 1, 3), (argv, told)
        assert "internal" not in told.err + told.out, (argv, told)
        assert len(told.err) < 2000, (argv, told)
        if told.code == 3 and argv[0] != "call":
            assert len(told.err.splitlines()) == 1, (argv, told)
        assert not any(word in told.err for word in ("question", "beacon", "harbour", "Traceback", "sqlite"))
    assert told.code == 3 or texts(world.run("events", "question", "--json"))


@pytest.mark.parametrize(
    ("old", "new", "argv"),
    [
        (b"CREATE TABLE event", b"CREATE TABL\x95 event", ["status"]),
        (b"CREATE TABLE event", b"CREATE TABL\x95 event", ["index"]),
        (b"CREATE TABLE event", b"CREATE TABL\x95 event", ["rebuild"]),
        (b"exec_command", b"exec_comman\xff", ["rebuild"]),
        (b"exec_command", b"exec_comman\xff", ["index", "--full"]),
        (b"fix the lighthouse", b"fix the lighth\xffuse", ["sessions", "--since", "2026-05-01"]),
    ],
)
def test_text_that_is_no_unicode_is_damage_and_not_quoted(
    world: World, old: bytes, new: bytes, argv: list[str]
) -> None:
    path = world.store / "outcrop.db"
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    told = world.run(*argv)
    says = "the history database is damaged; its file was left as it is: `outcrop doctor` tells what to do"
    assert (told.code, told.err) == (3, f"outcrop: error: {says}\n")


def test_an_emptied_database_under_a_running_server_is_begun_anew(world: World) -> None:
    assert world.data("search_sessions", query="beacon")["results"]
    os.truncate(world.store / "outcrop.db", 0)
    assert "error" in world.call("search_sessions", query="beacon")
    world.index()
    assert world.data("search_sessions", query="beacon")["results"]
    world.close()
    assert texts(world.run("events", "beacon", "--json"))
    assert world.index().out.startswith("0 events")


def test_the_text_folder_may_go_while_it_is_written(world: World, tmp_path: Path) -> None:
    program = (
        "import shutil, sys\n"
        "from outcrop.store.embedded import text, text_rows\n"
        "from outcrop.cli import main\n"
        "folder, read, left = sys.argv[1], text_rows.TextRows.read, [folder_is_there := True]\n"
        "def lost(rows, ids):\n"
        "    if left: left.pop(); shutil.rmtree(folder)\n"
        "    return read(rows, ids)\n"
        "text_rows.TextRows.read = lost\n"
        "sys.exit(main(['index']))\n"
    )
    many_turns(world.home, world.places().plain, "more", 40)
    done = subprocess.run(
        [sys.executable, "-c", program, str(world.store / "text")],
        env=world.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert texts(world.run("events", "beacon", "--json"))
    shutil.rmtree(world.store / "text")
    world.index()
    assert texts(world.run("events", "beacon", "--json"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such a path cannot be made")
@pytest.mark.parametrize("argv", [["index"], ["events", "beacon"], ["rebuild"], ["status"], ["mcp"]])
def test_a_home_that_is_no_text_is_refused_before_anything_is_read(tmp_path: Path, argv: list[str]) -> None:
    folder = os.fsencode(tmp_path) + b"/o\xff"
    done = subprocess.run(
        [sys.executable, "-m", "outcrop", *argv],
        env={
            b"HOME": os.fsencode(tmp_path),
            b"OUTCROP_HOME": folder,
            b"PYTHONPATH": os.fsencode(SOURCE),
            b"OUTCROP_AUTO_INDEX": b"0",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "OUTCROP_HOME is not valid UTF-8" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not os.path.exists(folder)


@pytest.mark.parametrize(
    ("size", "query", "found"),
    [
        (100, "容错", True),
        (2900, "容错", True),
        (90_000, "容错", True),
        (100, "gannet rope", True),
        (1900, "gannet rope", True),
        (90_000, "gannet rope", False),
        (90_000, "coilGannetRope", True),
    ],
)
def test_parts_of_runs_and_names_are_found_in_long_outputs(tmp_path: Path, size: int, query: str, found: bool) -> None:
    world = World(tmp_path)
    places = world.places()
    dense = not query.isascii()
    word = "高可用容错机制" if dense else "coilGannetRope"
    output = f"{'ok 1 ' * 8}{word} {'ok 2 ' * (size // 5)}"
    session = Claude("S", places.plain).user("10:00:00", "go")
    session.result("10:00:01", ("toolu_1", output)).answer("10:00:02", "done")
    path = session.path(world.home)
    world.sessions["S"] = session
    world.save("S")
    assert path.exists()
    world.index()
    told = world.run("events", query, "--types", "tool_response", "--json")
    assert bool(told.json["data"]["result_count"]) is found, told.out


NO_SESSION = "session:ses_00000000000000000000000001"


def stand_in(path: Path, what: str) -> None:
    """Put something that is no history where the history should be."""
    path.parent.mkdir(mode=0o700, parents=True)
    if what == "a folder":
        path.mkdir()
        (path / "note").write_text("mine", encoding="utf-8")
    elif what == "a text":
        path.write_text("a shopping list\n", encoding="utf-8")
    else:
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE session (title)")
        other.execute(f"PRAGMA user_version = {what.rpartition(' ')[2]}")
        other.commit()
        other.close()


@pytest.mark.parametrize(
    ("what", "says", "do"),
    [
        ("a folder", "outcrop.db in the data folder is no file", "move it away"),
        ("a text", "the history database is damaged, or outcrop.db is of another program", "`outcrop doctor`"),
        ("tables of version 0", "outcrop.db in the data folder is of another program", "move it away"),
        ("tables of version 4", "outcrop.db in the data folder is of another program", "move it away"),
    ],
)
def test_what_is_no_history_is_named_and_left_alone(tmp_path: Path, what: str, says: str, do: str) -> None:
    world = World(tmp_path)
    world.write("K")
    path = world.store / "outcrop.db"
    stand_in(path, what)

    def bytes_of() -> list[bytes]:
        return [one.read_bytes() for one in ([*path.iterdir()] if path.is_dir() else [path])]

    before = bytes_of()
    for command in (
        *(["events", "beacon"], ["search", "beacon"], ["sessions"], ["status"], ["index"], ["rebuild"], ["rescrub"]),
        *(["touches", "a.py"], ["open", NO_SESSION], ["explain", NO_SESSION, "a"], ["resume", "abcdef"], ["watch"]),
        *(["forget", "--list"], ["forget", "--undo", "all"], ["forget", "--source", "claude", "--yes"]),
    ):
        told = world.run(*command)
        assert (told.code, told.out) == (3, ""), (command, told)
        assert told.err.startswith(f"outcrop: error: {says}"), command
        assert do in told.err
        assert len(told.err.splitlines()) == (2 if command[0] == "search" else 1), told.err
    told = world.run("doctor", "--json")
    [finding] = [one for one in told.json["findings"] if one["check"] == "database"]
    assert finding["what"].startswith(says)
    assert bytes_of() == before
    if do == "move it away":
        assert do in finding["do"]
        assert world.run("doctor", "--fix").code == 1
        assert bytes_of() == before
