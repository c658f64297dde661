"""The indexer as a process: who starts it, that there is one, when it leaves, and who may talk to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from wire import Client

from following import (
    PATIENCE,
    Follower,
    append,
    conversation,
    finds,
    followed,
    indexers,
    record,
    status,
    until,
)
from outcrop.errors import BackendFailure, InvalidRequest
from outcrop.servers import local, start
from outcrop.servers.local import Address
from world import DAY, World

FIXTURES = Path(__file__).parent.parent / "fixtures"
STRANGER = 54321
"""A user id that owns nothing."""
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with followed(tmp_path) as made:
        made.write("K", "X")
        yield made


@pytest.fixture
def quiet(tmp_path: Path) -> Iterator[World]:
    """A world whose processes start no indexer: tests start theirs."""
    with followed(tmp_path) as made:
        made.follows = False
        made.write("K", "X")
        yield made


def only(world: World) -> int:
    """The one indexer of a world, once its door is open."""
    until(lambda: status(world), what="an indexer")
    pids = until(lambda: len(found := indexers(world)) == 1 and found, what="one indexer alone")
    return int(pids[0])


def server(world: World, **variables: str) -> Client:
    client = Client(world.home, store=world.store, argv=[
        "/usr/bin/env", *(f"{name}={text}" for name, text in {**world.environment, "OUTCROP_AUTO_INDEX": "1",
                                                              **variables}.items()),
        sys.executable, "-m", "outcrop", "mcp",
    ])  # fmt: skip
    client.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}})
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return client


# Start


def test_a_command_starts_it_detached_and_finds_what_it_read(world: World) -> None:
    inherited = os.open(world.home, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        assert world.run("sessions").code == 3  # nothing is indexed yet
        pid = only(world)
    finally:
        os.close(inherited)
    assert os.getsid(pid) == pid != os.getsid(0)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    opened = {number: os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)}
    assert opened == {0: "/dev/null", 1: "/dev/null", 2: str(world.store / "run" / "indexer.log")}
    links = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.exists()}
    assert str(world.home) not in links
    until(lambda: finds(world, "lighthouse"))
    assert status(world)["pid"] == record(world)["pid"] == pid  # type: ignore[index]


@pytest.mark.parametrize(
    "words", [["events", "a"], ["search", "a"], ["sessions"], ["touches", "a"], ["open", "a"], ["resume", "abcd"]]
)
def test_the_first_command_says_one_thing(world: World, words: list[str]) -> None:
    told = world.run(*words)
    assert (told.code, told.out) == (3, "")
    says = "an indexer has started, and reads the newest sessions first; ask again in a moment"
    assert told.err == f"outcrop: error: nothing is indexed yet: {says}\n"


def test_the_first_search_may_wait(world: World) -> None:
    told = world.run("search", "lighthouse", "--fresh")
    assert told.code == 0, told
    assert "indexed yet" not in told.err


def test_programs_get_their_document_from_the_first_command(world: World) -> None:
    told = world.run("sessions", "--json")
    assert (told.code, told.json["warnings"], told.err) == (
        3, ["coverage_partial: nothing is indexed yet; run `outcrop index`"], "",
    )  # fmt: skip


def test_a_server_starts_it_after_initialize_and_its_death_by_kill_ends_nothing(world: World) -> None:
    with server(world) as client:
        pid = only(world)
        client.process.send_signal(signal.SIGKILL)
        client.process.wait()
    time.sleep(0.5)
    assert indexers(world) == [pid]
    until(lambda: finds(world, "lighthouse"))


def test_a_server_that_is_not_initialized_starts_nothing(world: World) -> None:
    environment = {**world.environment, "OUTCROP_AUTO_INDEX": "1"}
    process = subprocess.Popen([sys.executable, "-m", "outcrop", "mcp"], env=environment, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, cwd=world.home)  # fmt: skip
    assert process.stdin
    assert process.stdout
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"] == {}
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    process.stdout.close()
    assert indexers(world) == []
    assert not world.store.exists()


@pytest.mark.parametrize("how", ["variable", "file"])
def test_where_it_is_switched_off_nothing_is_started(world: World, how: str) -> None:
    if how == "file":
        world.store.mkdir()
        (world.store / "config.toml").write_text("[index]\nauto = false\n", encoding="utf-8")
    variables = {"OUTCROP_AUTO_INDEX": "0" if how == "variable" else ""}
    assert world.run("sessions", **variables).code == 3
    with server(world, **variables) as client:
        client.tool("list_sessions", {"start_datetime": "2026-05-01", "end_datetime": "2026-05-02"})
    assert indexers(world) == []
    assert not (world.store / "outcrop.db").exists()


def test_of_eight_that_start_at_once_one_indexes_and_none_fails(world: World) -> None:
    world.run("index", OUTCROP_AUTO_INDEX="0")
    command = [sys.executable, "-m", "outcrop", "sessions", "--since", DAY, "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    some = [subprocess.Popen(command, env=world.environment, cwd=world.home, **pipes) for _ in range(8)]
    for process in some:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        assert err == b""
        assert len(json.loads(out)["data"]["sessions"]) == 2
    pid = only(world)
    time.sleep(1.0)
    assert indexers(world) == [pid]
    assert record(world)["crashes"] == []


def test_a_relative_home_of_the_data_is_the_same_folder_for_the_indexer(world: World) -> None:
    relative = os.path.relpath(world.store, world.home)
    assert world.run("sessions", OUTCROP_HOME=relative).code == 3
    until(lambda: status(world), what="an indexer of that folder")


def test_what_a_killed_one_left_is_no_hindrance(quiet: World) -> None:
    with Follower(quiet) as first:
        first.current()
        first.kill()
    assert (quiet.store / "run" / "outcrop.sock").exists()
    assert quiet.run("sessions", "--since", DAY).code == 0
    with Follower(quiet) as second:
        assert second.current()["pid"] == second.process.pid
        assert record(quiet)["pid"] == second.process.pid
        assert len(record(quiet)["crashes"]) == 1


def test_a_file_in_place_of_the_socket_is_no_hindrance(quiet: World) -> None:
    (quiet.store / "run").mkdir(parents=True, mode=0o700)
    (quiet.store / "run" / "outcrop.sock").write_text("not a socket", encoding="utf-8")
    with Follower(quiet) as follower:
        follower.current()


def test_one_that_ended_leaves_no_zombie_in_its_server(world: World) -> None:
    with server(world) as client:
        pid = only(world)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists(), 5.0, "its end")
        assert client.process.poll() is None


# Leaving


def test_it_leaves_when_nobody_needed_it_for_a_while(quiet: World) -> None:
    began = time.monotonic()
    with Follower(quiet, "--linger", "3") as follower:
        assert follower.process.wait(PATIENCE) == 0
        assert time.monotonic() - began > 3
        assert record(quiet)["reason"] == "nobody needs it"
        assert record(quiet)["crashes"] == []


def test_databases_that_stand_still_do_not_keep_it(quiet: World) -> None:
    database = quiet.home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript((FIXTURES / "opencode" / "database.sql").read_text(encoding="utf-8"))
        connection.commit()
    with Follower(quiet, "--linger", "3") as follower:
        follower.current()
        client = local.connect(quiet.store)
        assert client
        client.greet(None)
        summary = client.call("reconcile", {"sweep": True})
        client.close()
        assert (summary["changed"], summary["records"]) == (0, 0)
        assert summary["files"] > 2


def test_it_stays_while_a_server_lives_and_leaves_after(quiet: World) -> None:
    with Follower(quiet, "--linger", "2") as follower:
        follower.current()
        with server(quiet) as client:
            until(lambda: client.process.poll() is None and _leases(quiet) >= 1, what="a lease")
            time.sleep(5)
            assert follower.process.poll() is None
            client.close_input()
            assert client.leave() == 0
        assert follower.process.wait(PATIENCE) == 0
        assert record(quiet)["reason"] == "nobody needs it"


def _leases(world: World) -> int:
    told = status(world)
    assert told
    return int(told["leases"]) - 1  # the asking itself is one


def test_it_leaves_for_a_newer_version(quiet: World) -> None:
    with Follower(quiet) as follower:
        client = local.connect(quiet.store)
        assert client
        client.call("hello", {"version": "99.0.0", "environment": None, "token": None}, 5.0)
        assert follower.process.wait(PATIENCE) == 0
        assert client.ended()
        client.close()
        assert record(quiet)["reason"] == "a newer version takes over"


def test_it_stays_for_an_older_version_and_for_nonsense(quiet: World) -> None:
    with Follower(quiet) as follower:
        follower.current()
        for version in ("0.0.1", "latest", None, [1], ""):
            client = local.connect(quiet.store)
            assert client
            client.call("hello", {"version": version, "environment": None, "token": None}, 5.0)
            client.close()
        assert follower.current()


def test_a_newer_process_waits_for_the_older_one_to_leave_and_starts_its_own(
    quiet: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Follower(quiet) as follower:
        follower.current()
        monkeypatch.setattr(local, "__version__", "99.0.0")
        assert start.attach(quiet.store, None) is None
        assert follower.process.wait(PATIENCE) == 0
        assert not (quiet.store / "run" / "outcrop.sock").exists()


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_it_leaves_when_the_data_folder_is_gone(quiet: World, how: str) -> None:
    with Follower(quiet) as follower:
        follower.current()
        if how == "moved":
            quiet.store.rename(quiet.store.with_name("elsewhere"))
        else:
            shutil.rmtree(quiet.store)
        append(conversation(quiet, "S", "sanderling").path(quiet.home), *conversation(quiet, "S", "sanderling").lines)
        assert follower.process.wait(PATIENCE) == 0, follower.said()
        assert not quiet.store.exists()


def test_one_that_leaves_does_not_touch_what_its_successor_made(quiet: World) -> None:
    with Follower(quiet) as old:
        old.current()
        os.kill(old.process.pid, signal.SIGSTOP)
        quiet.store.rename(quiet.store.with_name("elsewhere"))
        with Follower(quiet) as new:
            new.current()
            os.kill(old.process.pid, signal.SIGCONT)
            assert old.process.wait(PATIENCE) == 0, old.said()
            told = status(quiet)
            assert told is not None
            assert told["pid"] == new.process.pid
            assert record(quiet)["pid"] == new.process.pid
            assert "ended" not in record(quiet)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(quiet: World, number: int) -> None:
    with Follower(quiet) as follower:
        assert follower.end(number) == (130 if number == signal.SIGINT else 0)
        assert record(quiet)["reason"] == "it was told to end"
        assert record(quiet)["crashes"] == []
        assert not (quiet.store / "run" / "outcrop.sock").exists()
    assert quiet.index().code == 0


def test_a_signal_that_was_ignored_when_it_started_stays_ignored(quiet: World) -> None:
    with Follower(quiet, background=False, prefix=("nohup",)) as follower:
        follower.current()
        follower.process.send_signal(signal.SIGHUP)
        time.sleep(1)
        assert follower.process.poll() is None
        assert follower.end() == 0


def test_watch_takes_over_from_the_one_in_the_background(quiet: World) -> None:
    with Follower(quiet) as background, Follower(quiet, background=False) as foreground:
        assert background.process.wait(PATIENCE) == 0
        until(lambda: (told := status(quiet)) and told["pid"] == foreground.process.pid, what="the foreground")
        foreground.current()
        quiet.save("K")
        assert foreground.end(signal.SIGINT) == 130


def test_watch_waits_for_a_pass_that_is_running(quiet: World) -> None:
    from outcrop.ingest.lock import writer_lock

    with writer_lock(quiet.store, 0):
        follower = Follower(quiet, background=False)
        time.sleep(2)
        assert follower.process.poll() is None, follower.said()
    with follower:
        follower.current()


# Crashes


def test_one_that_crashes_again_and_again_is_left_alone_for_a_while(world: World) -> None:
    fault = {"OUTCROP_FAULT": "kill:before-commit"}
    for crash in range(1, start.CRASHES + 1):
        assert world.run("sessions", **fault).code in (0, 1, 3)
        until(lambda: record(world) and not indexers(world), what="a crash")
        assert len(record(world)["crashes"]) == crash - 1  # the next one counts it
    assert world.run("sessions", **fault).code in (0, 1, 3)
    until(lambda: len(record(world)["crashes"]) == start.CRASHES and not indexers(world), what="the last crash")
    before = record(world)
    assert world.run("sessions").code in (0, 1, 3)
    time.sleep(1)
    assert indexers(world) == []
    assert record(world) == before
    assert 0 < start.pause(before, time.time()) <= start.PAUSE_SECONDS
    assert world.index().code == 0  # by hand it goes on


def test_the_pause_grows_with_each_crash_up_to_an_hour_and_a_clock_that_was_set_back_ends_it() -> None:
    now = 1_000_000.0
    assert start.pause({}, now) == 0
    assert start.pause({"crashes": "broken"}, now) == 0
    assert start.pause({"crashes": [now - 1, now]}, now) == 0
    assert start.pause({"crashes": [now - 2, now - 1, now]}, now) == 60
    assert start.pause({"crashes": [now - 3, now - 2, now - 1, now]}, now) == 120
    assert start.pause({"crashes": [now] * 30}, now) == 3600
    assert start.pause({"crashes": [now - 2, now - 1, now]}, now - 10) == 0
    assert start.pause({"crashes": [now - 4000, now - 1, now]}, now) == 0


# Who may talk to it


def as_stranger(work: Any) -> int:
    """Run `work` as another user in a child; its value, or the errno of what it raised."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            code = int(work())
        except OSError as error:
            code = error.errno or 71
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _connects(path: Path) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        connection.settimeout(5)
        connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{}}\n')
        return 1 if connection.recv(100) else 0


@AS_ROOT
def test_another_user_can_neither_connect_nor_read() -> None:
    with tempfile.TemporaryDirectory() as folder, followed(Path(folder) / "w") as world:
        os.chmod(folder, 0o755)
        world.follows = False
        with Follower(world) as follower:
            follower.current()
            os.chmod(world.folder, 0o755)
            assert as_stranger(lambda: len(os.listdir(world.folder))) > 0
            assert as_stranger(lambda: len(os.listdir(world.store))) == 13
            os.chmod(world.store, 0o755)  # even where the user opened the folder itself
            run = world.store / "run"
            assert as_stranger(lambda: len(os.listdir(run))) == 13
            assert as_stranger(lambda: _connects(run / "outcrop.sock")) == 13
            os.chmod(run, 0o711)
            assert as_stranger(lambda: _connects(run / "outcrop.sock")) == 13
            os.chmod(run / "outcrop.sock", 0o666)  # and where all modes are wrong
            assert as_stranger(lambda: _connects(run / "outcrop.sock")) in (0, 104, 32)
            assert stat_modes(run) == {}
            follower.current()


def stat_modes(run: Path) -> dict[str, str]:
    """Files that others may read or write, the socket that the test opened aside."""
    return {
        path.name: oct(path.stat().st_mode)
        for path in run.iterdir()
        if path.stat().st_mode & 0o077 and path.name != "outcrop.sock"
    }


def deep(folder: Path) -> Path:
    return folder / ("a-long-name-" * 8)


def test_a_long_path_moves_the_socket_to_a_folder_of_the_users_own(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short, followed(deep(tmp_path)) as world:
        temporary = Path(short)
        world.follows = False
        world.write("K")
        with Follower(world, TMPDIR=str(temporary), XDG_RUNTIME_DIR="") as follower:
            until(lambda: list(temporary.rglob("*.sock")), what="a socket")
            (folder,) = temporary.iterdir()
            assert folder.stat().st_mode & 0o777 == 0o700
            # Whoever has other surroundings finds it as well.
            assert follower.current()["pid"] == follower.process.pid
            assert world.run("index", TMPDIR="/", XDG_RUNTIME_DIR=str(tmp_path)).code == 0
            assert follower.end() == 0
            assert list(temporary.rglob("*.sock")) == []


@AS_ROOT
def test_a_folder_for_the_socket_that_is_somebody_elses_is_refused(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary, followed(deep(tmp_path)) as world:
        world.follows = False
        theirs = Path(temporary) / f"outcrop-{os.getuid()}"
        theirs.mkdir()
        os.chown(theirs, STRANGER, STRANGER)
        follower = Follower(world, TMPDIR=temporary, XDG_RUNTIME_DIR="")
        assert follower.process.wait(PATIENCE) == 3
        assert "the folder of the local socket belongs to somebody else" in follower.said()
        assert list(theirs.iterdir()) == []
        with pytest.raises(BackendFailure):
            local.checked_folder(theirs)


@AS_ROOT
def test_a_runtime_folder_of_another_user_is_not_taken(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as theirs, followed(deep(tmp_path)) as world:
        world.follows = False
        temporary = tmp_path / "t"
        temporary.mkdir()
        os.chown(theirs, STRANGER, STRANGER)
        with Follower(world, TMPDIR=str(temporary), XDG_RUNTIME_DIR=theirs) as follower:
            follower.current()
            assert os.listdir(theirs) == []


@AS_ROOT
def test_a_socket_in_a_folder_that_became_somebody_elses_is_not_talked_to(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short, followed(deep(tmp_path)) as world:
        temporary = Path(short)
        world.follows = False
        with Follower(world, TMPDIR=str(temporary), XDG_RUNTIME_DIR="") as follower:
            follower.current()
            (folder,) = temporary.iterdir()
            os.chown(folder, STRANGER, STRANGER)
            assert local.connect(world.store) is None


def test_without_local_sockets_it_has_a_port_and_a_token(tmp_path: Path) -> None:
    from outcrop.config import Config
    from outcrop.contracts.vault.exposure import Transport
    from outcrop.harnesses import Environment
    from outcrop.ingest.indexer import Indexer
    from outcrop.ingest.jobs import Jobs
    from outcrop.servers.door import Door
    from outcrop.servers.indexing import IndexerMethods
    from outcrop.servers.jsonrpc import Slots
    from outcrop.servers.vault import VaultMethods

    home = tmp_path / "store"
    indexer = Indexer(Config(home, home / "config.toml"), Environment(tmp_path))
    (home / "run").mkdir(parents=True)
    address = Address.of(home, "win32")
    assert address.port_file
    vault = VaultMethods(Transport.RUNTIME, ())
    door = Door(
        address, lambda send, token: IndexerMethods(Jobs(indexer), vault, send, token), Slots(), indexer.lease, {}
    )
    try:
        assert (home / "run" / "outcrop.port").stat().st_mode & 0o777 == 0o600
        client = local.connect(home, "win32")
        assert client
        assert client.greet(None)["version"]
        assert client.call("status")["phase"] == "indexing"
        client.close()
        told = json.loads((home / "run" / "outcrop.port").read_text(encoding="ascii"))
        for token in ("wrong", "", None, 7, told["token"][:-1], "naïve"):
            with socket.create_connection(("127.0.0.1", told["port"]), 5) as connection:
                stranger = local.Client(connection, token)  # type: ignore[arg-type]
                with pytest.raises(BackendFailure, match="the token is wrong"):
                    stranger.greet(None)
                with pytest.raises(BackendFailure, match="say hello first"):
                    stranger.call("status", timeout=5)
                with pytest.raises(BackendFailure, match="say hello first"):
                    stranger.call("reconcile", timeout=5)
    finally:
        door.close()
    assert not (home / "run" / "outcrop.port").exists()
    assert local.connect(home, "win32") is None


def test_a_client_that_floods_it_or_vanishes_does_no_harm(quiet: World) -> None:
    with Follower(quiet) as follower:
        follower.current()
        path = str(quiet.store / "run" / "outcrop.sock")
        some = []
        for number in range(150):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(10)
            until(lambda c=connection: c.connect_ex(path) == 0, 10.0, "to be let in")
            connection.sendall(
                [b"\xff\xfe{\n", b"[]\n", b'{"jsonrpc":"2.0","id":1,"method":"hello"', b"\n"][number % 4]
            )
            some.append(connection)
        assert follower.current()["pid"] == follower.process.pid
        for connection in some:
            connection.close()
        until(lambda: _leases(quiet) == 0, what="all leases ended")


def test_it_answers_again_after_it_ran_out_of_descriptors(quiet: World) -> None:
    with Follower(quiet, prefix=("prlimit", "--nofile=96")) as follower:
        follower.current()
        path = str(quiet.store / "run" / "outcrop.sock")
        some = []
        for _ in range(120):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(0.5)
            try:
                connection.connect(path)
            except OSError:
                connection.close()
                break
            some.append(connection)
        time.sleep(1)
        for connection in some:
            connection.close()
        until(lambda: status(quiet), what="an answer")


# Work handed over


def test_index_and_rebuild_are_done_by_the_running_indexer(quiet: World) -> None:
    with Follower(quiet) as follower:
        follower.current()
        summary = quiet.index("--full", "--json").json
        assert summary["files"] == summary["files_read"] == 2
        assert summary["seconds"] >= 0
        assert quiet.index("--source", "codex", "--json").json["files"] == 1
        done = quiet.run("rebuild")
        assert done.code == 0, done.err
        assert done.out.endswith("documents indexed anew\n")
        assert finds(quiet, "lighthouse")
        assert follower.process.poll() is None


def test_the_progress_of_a_job_is_told_to_who_asked_for_it(quiet: World) -> None:
    many = conversation(quiet, "B", "stint")
    append(many.path(quiet.home), *many.lines)
    told: list[dict[str, Any]] = []
    with Follower(quiet, OUTCROP_FAULT="slow:file:300") as follower:
        follower.current()
        client = local.connect(quiet.store)
        assert client
        client.greet(None)
        client.call("reconcile", {"full": True}, PATIENCE, lambda method, params: told.append({method: params}))
        client.close()
    assert {method for item in told for method in item} == {"progress"}
    shares = [item["progress"] for item in told]
    assert shares
    assert all(0 <= share["done"] <= share["total"] for share in shares)
    assert any(share["path"].endswith(f"{many.session}.jsonl") for share in shares)


def test_a_job_whose_asker_stopped_reading_holds_nothing_up(quiet: World) -> None:
    for number in range(600):
        some = conversation(quiet, f"B{number}", f"stint{number}")
        append(some.path(quiet.home), *some.lines)
    with Follower(quiet) as follower:
        follower.current()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            deaf.connect(str(quiet.store / "run" / "outcrop.sock"))
            hello = {"jsonrpc": "2.0", "id": 0, "method": "hello", "params": {}}
            jobs = [{"jsonrpc": "2.0", "id": n, "method": "reconcile", "params": {"full": True}} for n in range(1, 5)]
            deaf.sendall(b"".join(json.dumps(frame).encode() + b"\n" for frame in (hello, *jobs)))
            time.sleep(1)
            began = time.monotonic()
            late = conversation(quiet, "C", "phalarope")
            append(late.path(quiet.home), *late.lines)
            until(lambda: finds(quiet, "phalarope"), 20.0, "a message beside a deaf client")
            assert time.monotonic() - began < 20


def test_ctrl_c_ends_the_asking_and_the_pass_but_not_the_indexer(quiet: World) -> None:
    for number in range(10):
        some = conversation(quiet, f"B{number}", f"stint{number}")
        append(some.path(quiet.home), *some.lines)
    with Follower(quiet, OUTCROP_FAULT="slow:file:200") as follower:
        before = follower.current()["last_sweep_completed_at"]
        command = [sys.executable, "-m", "outcrop", "index", "--full"]
        asker = subprocess.Popen(command, env=quiet.environment, cwd=quiet.home, stderr=subprocess.PIPE)
        until(lambda: (told := status(quiet)) and told["sweep"], what="the pass")
        asker.send_signal(signal.SIGINT)
        _, err = asker.communicate(timeout=PATIENCE)
        assert asker.returncode == 130, err
        until(lambda: (told := status(quiet)) and told["sweep"] is None, what="the end of the pass")
        assert status(quiet)["last_sweep_completed_at"] == before  # type: ignore[index]
        late = conversation(quiet, "C", "phalarope")
        append(late.path(quiet.home), *late.lines)
        until(lambda: finds(quiet, "phalarope"))
        assert quiet.index().code == 0


def test_index_that_meets_a_starting_indexer_hands_its_work_over(quiet: World) -> None:
    """The lock is held before the door is open: whoever comes in between must not wait for the lock alone."""
    from outcrop.ingest.lock import writer_lock

    with writer_lock(quiet.store, 0):
        command = [sys.executable, "-m", "outcrop", "index", "--json"]
        asker = subprocess.Popen(command, env=quiet.environment, cwd=quiet.home, stdout=subprocess.PIPE)
        time.sleep(1)
    with Follower(quiet):
        out, _ = asker.communicate(timeout=PATIENCE)
        assert asker.returncode == 0
        assert json.loads(out)["files"] == 2


def test_index_whose_indexer_dies_meanwhile_does_it_itself(quiet: World) -> None:
    for number in range(10):
        some = conversation(quiet, f"B{number}", f"stint{number}")
        append(some.path(quiet.home), *some.lines)
    with Follower(quiet, OUTCROP_FAULT="slow:file:500") as follower:
        command = [sys.executable, "-m", "outcrop", "index", "--full", "--json"]
        asker = subprocess.Popen(command, env=quiet.environment, cwd=quiet.home, stdout=subprocess.PIPE)
        until(lambda: (told := status(quiet)) and told["leases"] > 1, what="the asker")
        follower.kill()
        out, _ = asker.communicate(timeout=PATIENCE)
        assert asker.returncode == 0
        assert json.loads(out)["files"] == 12
    assert finds(quiet, "stint9")


@pytest.mark.parametrize("words", [["index"], ["rebuild"], ["forget", "--undo", "all"], ["watch"]])
def test_who_waits_for_an_indexer_that_does_not_answer_is_told_so_soon(quiet: World, words: list[str]) -> None:
    quiet.index()
    with Follower(quiet) as follower:
        follower.current()
        follower.process.send_signal(signal.SIGSTOP)
        asking = subprocess.Popen([sys.executable, "-m", "outcrop", *words], env=quiet.environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        try:
            assert asking.stderr
            assert asking.stderr.readline().startswith("outcrop: waiting for the indexer"), "before it gave up"
            assert asking.poll() is None
            follower.process.send_signal(signal.SIGCONT)
            if words in (["index"], ["rebuild"]):
                out, err = asking.communicate(timeout=PATIENCE)
                assert (asking.returncode, err) == (0, ""), "and then it was done"
                assert out
        finally:
            asking.kill()
            asking.communicate()


def test_a_job_with_senseless_parameters_is_refused(quiet: World) -> None:
    with Follower(quiet):
        client = local.connect(quiet.store)
        assert client
        client.greet(None)
        with pytest.raises(InvalidRequest, match="unknown source"):
            client.call("reconcile", {"source": "nobody"}, 10.0)
        with pytest.raises(BackendFailure, match="method not found"):
            client.call("destroy", {}, 10.0)
        with pytest.raises(InvalidRequest):
            client.call("hello", {"environment": {"home": 7}, "token": None}, 10.0)
        client.close()


# Surroundings


def test_the_roots_of_all_surroundings_are_followed_together(quiet: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    one, two = conversation(quiet, "S1", "dunlin"), conversation(quiet, "S2", "whimbrel")
    for made, folder in ((one, "one"), (two, "two")):
        append(elsewhere / folder / "projects" / "p" / f"{made.session}.jsonl", *made.lines)
    with Follower(quiet) as follower:
        follower.current()
        assert not finds(quiet, "dunlin")
        assert quiet.run("index", CLAUDE_CONFIG_DIR=str(elsewhere / "one")).code == 0
        assert quiet.run("index", CLAUDE_CONFIG_DIR=str(elsewhere / "two")).code == 0
        assert finds(quiet, "dunlin")
        assert finds(quiet, "whimbrel")
        assert finds(quiet, "lighthouse")
        follower.end()
    with Follower(quiet) as again:  # which knows none of these variables
        again.current()
        late = conversation(quiet, "S1", "dunlin", "curlew").lines[1:]
        append(elsewhere / "one" / "projects" / "p" / f"{one.session}.jsonl", *late)
        until(lambda: finds(quiet, "curlew"))
        found = quiet.run("status", "--json").json
        assert [source["missing"] for source in found["sources"]] == [0, 0]


def test_a_rebuild_that_is_handed_over_shows_how_far_it_is(quiet: World) -> None:
    long = conversation(quiet, "A", *(f"tide{number}" for number in range(3_000)))
    append(long.path(quiet.home), *long.lines)
    with Follower(quiet) as follower:
        follower.current()
        events = quiet.data("search_sessions", query="word")["result_count"]
        assert events
        primary, secondary = os.openpty()
        child = subprocess.Popen(
            [sys.executable, "-m", "outcrop", "rebuild"],
            env={**quiet.environment, "TERM": "xterm", "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=secondary,
        )
        os.close(secondary)
        seen = b""
        with suppress(OSError):  # the other end is closed
            while piece := os.read(primary, 65_536):
                seen += piece
        os.close(primary)
        out, _ = child.communicate(timeout=PATIENCE)
        assert child.returncode == 0
        assert b"documents indexed anew" in out
        assert re.search(rb"[0-9,]+ of 3,[0-9]{3} documents", seen), seen
        assert follower.process.poll() is None


@AS_ROOT
def test_two_users_have_an_indexer_each_and_none_can_use_the_others_folder() -> None:
    with tempfile.TemporaryDirectory() as folder, followed(Path(folder) / "mine") as mine:
        os.chmod(folder, 0o777)
        mine.follows = False
        mine.write("K")
        theirs = World(Path(folder) / "theirs")
        theirs.write("K")
        for path in (theirs.folder, *theirs.folder.rglob("*")):
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        user = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups")
        with Follower(mine) as my, Follower(theirs, prefix=user) as their:
            my.current()
            their.current()
            assert theirs.store.stat().st_uid == STRANGER
            assert len({my.process.pid, their.process.pid}) == 2
            before = sorted((path, path.stat().st_mtime_ns) for path in mine.store.rglob("*"))
            os.chmod(mine.folder, 0o755)
            for words in (
                ["index"],
                ["status"],
                ["events", "beam"],
                ["rebuild"],
                ["watch"],
                ["search", "beam"],
                ["mcp"],
            ):
                told = subprocess.run(
                    [*user, sys.executable, "-m", "outcrop", *words],
                    env={**theirs.environment, "OUTCROP_HOME": str(mine.store)},
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, cwd="/",
                )  # fmt: skip
                # The settings of a data folder lie in it: they are what is missed first.
                assert told.returncode == 2, (words, told)
                assert told.stderr == f"outcrop: error: {mine.store}/config.toml: cannot be read: Permission denied\n"
            assert sorted((path, path.stat().st_mtime_ns) for path in mine.store.rglob("*")) == before
            # What one reads only the other wrote: each finds its own all the same.
            session = conversation(mine, "A", "avocet")
            append(session.path(mine.home), *session.lines)
            until(lambda: finds(mine, "avocet"), what="a message in the one")
            my.current()
            their.current()


def test_an_indexer_that_does_not_answer_is_not_told_as_none(quiet: World) -> None:
    quiet.index()
    with Follower(quiet) as follower:
        follower.current()
        follower.process.send_signal(signal.SIGSTOP)
        command = [sys.executable, "-m", "outcrop", "status"]
        told = subprocess.run(command, env=quiet.environment, capture_output=True, text=True, timeout=PATIENCE)
        assert told.returncode == 0
        assert "no indexer runs" not in told.stdout
        assert "another outcrop process writes to the history; no indexer answers" in told.stdout
        follower.process.send_signal(signal.SIGCONT)
