"""Whatever happens to a file is followed by a running indexer, and found by another process, once."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from following import Follower, append, conversation, finds, followed, status, until
from world import Claude, Codex, World

FIXTURES = Path(__file__).parent.parent / "fixtures"
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount, and give up its right to see all")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with followed(tmp_path) as made:
        made.follows = False
        made.write("K")
        yield made


@pytest.fixture
def follower(world: World) -> Iterator[Follower]:
    with Follower(world) as running:
        running.current()
        yield running


def lines(session: Claude | Codex) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in session.lines).encode()


def written(world: World, letter: str, *words: str) -> tuple[Claude, Path]:
    """A session that is followed already."""
    session = conversation(world, letter, *words)
    path = session.path(world.home)
    append(path, *session.lines)
    until(lambda: finds(world, words[-1]), what=words[-1])
    return session, path


def test_a_new_file_and_what_is_appended_to_it(world: World, follower: Follower) -> None:
    session, path = written(world, "A", "avocet")
    append(path, *conversation(world, "A", "avocet", "bittern").lines[1:])
    until(lambda: finds(world, "bittern"))
    assert finds(world, "avocet")
    assert session.session


def test_a_line_is_found_once_it_is_whole(world: World, follower: Follower) -> None:
    _, path = written(world, "A", "avocet")
    line = json.dumps(conversation(world, "A", "avocet", "bittern").lines[1]).encode()
    for at in range(0, len(line), 100):
        with open(path, "ab") as stream:
            stream.write(line[at : at + 100])
        time.sleep(0.05)
    assert not finds(world, "bittern")
    with open(path, "ab") as stream:
        stream.write(b"\n")
    until(lambda: finds(world, "bittern"))


def test_files_in_folders_that_are_made_for_them(world: World, follower: Follower) -> None:
    rollouts = [Codex(f"N{number}", world.places().plain, f"1{number}:00:00") for number in range(5)]
    for number, rollout in enumerate(rollouts):
        rollout.begin(f"1{number}:00:01", f"the word is ousel{number}")
        path = world.home / ".codex" / "sessions" / str(2030 + number) / "01" / "02" / rollout.path(world.home).name
        append(path, *rollout.lines)
    for number in range(5):
        until(lambda number=number: finds(world, f"ousel{number}"))


def test_a_folder_that_is_moved_in_with_files_in_it(world: World, follower: Follower) -> None:
    session = conversation(world, "A", "avocet")
    path = session.path(world.home)
    outside = world.folder / "outside"
    append(outside / path.name, *session.lines)
    os.rename(outside, path.parent.with_name("-moved-in"))
    until(lambda: finds(world, "avocet"))


def test_a_renamed_file_goes_on(world: World, follower: Follower) -> None:
    _, path = written(world, "A", "avocet")
    new = path.parent.with_name("-elsewhere") / path.name
    new.parent.mkdir()
    path.rename(new)
    append(new, *conversation(world, "A", "avocet", "bittern").lines[1:])
    until(lambda: finds(world, "bittern"))
    assert finds(world, "avocet")
    until(lambda: not missing(world), what="one file, not gone")


def test_a_replaced_file_is_read_anew(world: World, follower: Follower) -> None:
    session, path = written(world, "A", "avocet")
    other = Claude("A2", world.places().plain, session.session).user("11:00:00", "the word is bittern")
    new = path.with_suffix(".new")
    new.write_bytes(lines(other))
    os.replace(new, path)
    until(lambda: finds(world, "bittern"))
    assert not finds(world, "avocet")


def test_a_truncated_file_is_read_anew(world: World, follower: Follower) -> None:
    _, path = written(world, "A", "avocet", "bittern", "curlew")
    os.truncate(path, len(json.dumps(conversation(world, "A", "avocet").lines[0])) + 1)
    until(lambda: not finds(world, "curlew"), what="what was cut off is gone")
    assert finds(world, "avocet")


def test_a_deleted_file_keeps_its_history_and_may_come_again(world: World, follower: Follower) -> None:
    _, path = written(world, "A", "avocet")
    content = path.read_bytes()
    path.unlink()
    until(lambda: missing(world) == 1, what="that it is gone")
    assert finds(world, "avocet")
    path.write_bytes(content)
    append(path, *conversation(world, "A", "avocet", "bittern").lines[1:])
    until(lambda: finds(world, "bittern"))
    until(lambda: missing(world) == 0, what="that it is there")


def test_a_file_that_came_went_and_came_again_at_once(world: World, follower: Follower) -> None:
    session = conversation(world, "A", "avocet")
    path = session.path(world.home).with_name("00000000-0000-4000-8000-000000000000.jsonl")
    path.parent.mkdir()
    time.sleep(3)  # the folder itself is seen
    path.write_bytes(b"{}\n")
    path.unlink()
    time.sleep(2)
    append(path, *session.lines)
    until(lambda: finds(world, "avocet"), 20.0)


def test_a_rollout_that_is_compressed_goes_on_as_it_was(world: World, follower: Follower) -> None:
    rollout = Codex("A", world.places().plain, "10:00:00").begin("10:00:01", "the word is avocet")
    rollout.answer("10:00:05", "bittern it is")
    path = rollout.path(world.home)
    append(path, *rollout.lines)
    until(lambda: finds(world, "bittern"))
    rollout.begin("10:00:09", "the word is curlew")
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstandard.compress(lines(rollout)))
    path.unlink()
    until(lambda: finds(world, "curlew"))
    assert finds(world, "avocet")
    assert finds(world, "bittern")


def test_a_root_that_is_a_link(world: World, tmp_path: Path) -> None:
    real = tmp_path / "disk" / "claude"
    real.parent.mkdir()
    shutil.move(world.home / ".claude", real)
    (world.home / ".claude").symlink_to(real)
    with Follower(world) as follower:
        follower.current()
        written(world, "A", "avocet")
        path = conversation(world, "A", "avocet").path(real.parent)
        session = conversation(world, "A", "avocet", "bittern")
        append(real / "projects" / path.parent.name / path.name, *session.lines[1:])
        until(lambda: finds(world, "bittern"))


def test_a_root_that_appears_later(world: World, follower: Follower) -> None:
    rollout = Codex("A", world.places().plain, "10:00:00").begin("10:00:01", "the word is avocet")
    append(rollout.path(world.home), *rollout.lines)
    until(lambda: finds(world, "avocet"))
    rollout.begin("10:00:09", "the word is bittern")
    append(rollout.path(world.home), rollout.lines[-2], rollout.lines[-1])
    until(lambda: finds(world, "bittern"))


def test_a_root_that_is_deleted_and_made_anew(world: World, follower: Follower) -> None:
    shutil.rmtree(world.home / ".claude" / "projects")
    time.sleep(3)
    session = conversation(world, "A", "avocet")
    append(session.path(world.home), *session.lines)
    until(lambda: finds(world, "avocet"), 20.0)
    append(session.path(world.home), *conversation(world, "A", "avocet", "bittern").lines[1:])
    until(lambda: finds(world, "bittern"), 20.0)
    assert finds(world, "lighthouse")  # history is kept


def test_a_root_that_is_replaced_at_once(world: World, follower: Follower) -> None:
    projects = world.home / ".claude" / "projects"
    projects.rename(projects.with_name("old"))
    session = conversation(world, "A", "avocet")
    append(session.path(world.home), *session.lines)
    until(lambda: finds(world, "avocet"), 20.0)
    append(session.path(world.home), *conversation(world, "A", "avocet", "bittern").lines[1:])
    until(lambda: finds(world, "bittern"), 20.0)


def test_a_root_that_is_away_for_a_while_loses_nothing(world: World, follower: Follower) -> None:
    _, path = written(world, "A", "avocet")
    root = world.home / ".claude"
    root.rename(world.home / "away")
    time.sleep(3)
    assert world.index().code == 0
    assert missing(world) == 0
    assert finds(world, "avocet")
    (world.home / "away").rename(root)
    append(path, *conversation(world, "A", "avocet", "bittern").lines[1:])
    until(lambda: finds(world, "bittern"), 20.0)
    assert missing(world) == 0


@AS_ROOT
def test_a_root_that_may_not_be_listed_is_told_of_and_followed_once_it_may(world: World) -> None:
    folder = world.home / ".claude" / "projects"
    ordinary = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    with Follower(world, prefix=ordinary) as follower:
        follower.current()
        session, path = written(world, "A", "avocet")
        folder.chmod(0)
        assert world.index().code == 0
        told = until(lambda: (told := status(world)) and told["degraded_roots"] and told)
        assert (told["phase"], told["degraded_roots"][0]["reason"]) == ("degraded", "permission denied")
        assert missing(world) == 0
        folder.chmod(0o700)
        append(path, *conversation(world, "A", "avocet", "bittern").lines[1:])
        until(lambda: finds(world, "bittern"), 40.0)
        until(lambda: (told := status(world)) and told["phase"] == "current", 40.0, "no complaint any more")
        assert session.session


def test_a_database_that_its_program_holds_open(world: World, follower: Follower) -> None:
    """In WAL mode, mapped into memory: the system tells of no change at all."""
    path = world.home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA mmap_size=268435456")
        database.execute("PRAGMA wal_autocheckpoint=0")
        database.executescript((FIXTURES / "opencode" / "database.sql").read_text(encoding="utf-8"))
        for number in range(3):
            word = f"grebe{number}"
            time.sleep(1.5)
            say(database, number, word)
            until(lambda word=word: finds(world, word), what=word)


def say(database: sqlite3.Connection, number: int, word: str) -> None:
    moment = 1780300800000 + number * 60_000
    if number == 0:
        database.execute(
            "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)"
            " VALUES ('ses_follow', (SELECT id FROM project LIMIT 1), 'f', '/w', 't', '1', ?1, ?1)",
            (moment,),
        )
    database.execute(
        "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?1, 'ses_follow', ?2, ?2, ?3)",
        (f"msg_{number}", moment, json.dumps({"role": "user", "time": {"created": moment}})),
    )
    database.execute(
        "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data)"
        " VALUES (?1, ?2, 'ses_follow', ?3, ?3, ?4)",
        (f"prt_{number}", f"msg_{number}", moment, json.dumps({"type": "text", "text": f"the word is {word}"})),
    )
    database.execute("UPDATE session SET time_updated = ? WHERE id = 'ses_follow'", (moment,))


def test_the_reading_of_others_and_its_own_costs_nothing(world: World) -> None:
    for number in range(200):
        session = conversation(world, f"B{number}", f"stint{number}")
        append(session.path(world.home), *session.lines)
    with Follower(world) as follower:
        follower.current()
        time.sleep(1)
        before = cost(follower)
        for _ in range(10):
            for path in (world.home / ".claude").rglob("*.jsonl"):
                path.read_bytes()
            time.sleep(0.3)
        time.sleep(1)
        after = cost(follower)
        assert after["wchar"] == before["wchar"]
        assert after["cpu"] - before["cpu"] < 0.25


def cost(follower: Follower) -> dict[str, float]:
    """Bytes written and seconds of CPU of the process so far."""
    folder = Path(f"/proc/{follower.process.pid}")
    told = dict(line.split(": ") for line in (folder / "io").read_text(encoding="ascii").splitlines())
    ticks = (folder / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return {"wchar": int(told["wchar"]), "cpu": (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")}


def test_what_is_said_during_the_first_pass_is_found_before_its_end(world: World) -> None:
    """Also in a file that is older than the pass, and in one that is newer."""
    for number in range(60):
        session = conversation(world, f"B{number}", f"stint{number}")
        append(session.path(world.home), *session.lines)
        os.utime(session.path(world.home), (1_790_000_000 + number, 1_790_000_000 + number))
    with Follower(world, OUTCROP_FAULT="slow:file:1000"):
        until(lambda: (told := status(world)) and told["sweep"] and told["sweep"]["bytes_done"], what="the first pass")
        oldest = conversation(world, "B0", "stint0", "bittern")
        append(oldest.path(world.home), oldest.lines[1])
        until(lambda: finds(world, "bittern"), 15.0)
        newest = conversation(world, "A", "avocet")
        append(newest.path(world.home), *newest.lines)
        until(lambda: finds(world, "avocet"), 15.0)
        told = status(world)
        assert told is not None
        assert told["sweep"] is not None
        assert told["last_sweep_completed_at"] is None


def test_a_new_file_is_found_soon_after_a_long_first_pass(world: World) -> None:
    for number in range(5):
        session = conversation(world, f"B{number}", f"stint{number}")
        append(session.path(world.home), *session.lines)
    with Follower(world, OUTCROP_FAULT="slow:file:500") as follower:
        follower.current()
        written(world, "A", "avocet")  # another listing of its source
        session = conversation(world, "C", "bittern")
        append(session.path(world.home), *session.lines)
        until(lambda: finds(world, "bittern"), 10.0)


def test_what_is_written_faster_than_it_can_be_read_is_found_and_nothing_starves(world: World) -> None:
    sessions = [conversation(world, f"B{number}", f"stint{number}") for number in range(5)]
    for session in sessions:
        append(session.path(world.home), *session.lines)
    ended = threading.Event()
    noted: list[str] = []

    def write() -> None:
        for number in itertools.count():
            for session in sessions:
                word = f"{session.letter.lower()}of{number}x"
                session.user("11:00:00", f"the word is {word}")
                append(session.path(world.home), session.lines[-1])
                noted.append(word)
            if ended.wait(0.05):
                return

    with Follower(world, OUTCROP_FAULT="slow:file:150") as follower:
        follower.current()
        writing = threading.Thread(target=write)
        writing.start()
        try:
            for _ in range(3):
                time.sleep(1)
                until(lambda word=noted[-1]: finds(world, word), 20.0, "one of many")
            rollout = Codex("A", world.places().plain, "10:00:00").begin("10:00:01", "the word is avocet")
            append(rollout.path(world.home), *rollout.lines)  # in a root that is new
            until(lambda: finds(world, "avocet"), 20.0)
            assert world.index().code == 0
        finally:
            ended.set()
            writing.join()


@AS_ROOT
@pytest.mark.parametrize("room", [700, 3000])
def test_a_disk_that_fills_up_stops_nothing_for_good(tmp_path: Path, room: int) -> None:
    """`room` in KiB: full in the midst of the first rows, or of what follows them."""
    with followed(tmp_path) as world:
        world.follows = False
        world.write("K")
        world.store.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", str(world.store)], check=True)
        try:
            ballast = world.store / "ballast"
            ballast.write_bytes(b"x" * ((8192 - room) * 1024))
            for number in range(300):
                session = conversation(world, f"B{number}", *(f"stint{number}x{word}" for word in range(20)))
                append(session.path(world.home), *session.lines)
            with Follower(world) as follower:
                told = until(lambda: (told := status(world)) and told["problem"] and told, what="a complaint")
                assert told["phase"] == "degraded"
                assert "disk is full" in told["problem"]
                assert world.run("index").code == 4
                before = cost(follower)
                time.sleep(3)
                assert cost(follower)["cpu"] - before["cpu"] < 1.5  # it does not try all the time
                assert follower.process.poll() is None, follower.said()
                ballast.unlink()
                subprocess.run(["mount", "-o", "remount,size=256m", str(world.store)], check=True)
                until(lambda: (told := status(world)) and told["phase"] == "current", 120.0, "room")
                assert finds(world, "stint299x19")
                assert finds(world, "lighthouse")
                assert follower.end() == 0
        finally:
            world.close()
            subprocess.run(["umount", "-l", str(world.store)], check=True)


def missing(world: World) -> int:
    found = world.run("status", "--json").json
    return sum(source["missing"] for source in found["sources"])
