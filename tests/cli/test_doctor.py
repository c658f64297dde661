"""`outcrop doctor` on an installation that is really damaged: what it tells, what it repairs, what it never touches."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from homes import many_turns
from limits import can_mount, on_small_disk, plainly
from world import Claude, Run, World

ALL = {
    *("configuration", "permissions", "disk", "writer", "indexer", "database", "text index", "text backlog", "clock"),
    *("records", "leftovers", "roots", "files", "adapters", "freshness", "file watching"),
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.write("K", "X")
    made.index()
    yield made
    made.close()


def doctor(world: World, *argv: str) -> tuple[int, dict[str, Any]]:
    done = world.run("doctor", "--json", *argv)
    assert done.code in (0, 1), done
    return done.code, done.json


def failed(world: World) -> dict[str, dict[str, Any]]:
    """Check → its finding, of all that failed; and the exit code says so."""
    code, told = doctor(world)
    found = {finding["check"]: finding for finding in told["findings"] if finding["level"] == "failed"}
    assert code == int(bool(found)) == int(not told["ok"])
    for finding in found.values():
        assert finding["what"]
        assert finding["do"]
    return found


def mended(world: World) -> list[str]:
    """What was repaired; nothing fails afterwards, and a second look finds nothing to repair."""
    code, told = doctor(world, "--fix")
    assert all(each["done"] for each in told["mended"]), told["mended"]
    assert (code, told["ok"]) == (0, True), [one for one in told["findings"] if one["level"] == "failed"]
    assert doctor(world, "--fix")[1]["mended"] == []
    return [each["what"] for each in told["mended"]]


def change(world: World, sql: str, *values: Any) -> None:
    db = sqlite3.connect(world.store / "outcrop.db")
    with db:
        db.execute(sql, values)
    db.close()


def prompt(world: World) -> int:
    """The number of the first prompt."""
    db = sqlite3.connect(world.store / "outcrop.db")
    [(id,)] = db.execute("SELECT min(id) FROM event WHERE type = 0").fetchall()
    db.close()
    return id


def found_by(world: World, query: str) -> int:
    return world.run("events", query, "--json").json["data"]["result_count"]


def test_all_is_well(world: World) -> None:
    code, told = doctor(world)
    assert (code, told["ok"]) == (0, True)
    assert {finding["check"]: finding["level"] for finding in told["findings"]} == dict.fromkeys(ALL, "ok")
    shown = world.run("doctor")
    assert shown.code == 0
    assert shown.out.endswith("\nnothing failed\n")
    assert doctor(world, "--fix")[1]["mended"] == []


def test_before_anything_is_indexed(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.places()
    assert failed(made) == {}
    made.store.mkdir(mode=0o700)
    assert failed(made) == {}
    (made.store / "outcrop.db").touch(0o600)
    _, told = doctor(made)
    assert {"check": "database", "level": "note"}.items() <= next(
        finding for finding in told["findings"] if finding["check"] == "database"
    ).items()


def test_permissions_are_made_private(world: World) -> None:
    opened = [world.store, world.store / "outcrop.db", *(world.store / "text").glob("*/*.term")]
    for path in opened:
        path.chmod(0o755 if path.is_dir() else 0o644)
    finding = failed(world)["permissions"]
    assert finding["facts"] == {"open_to_others": len(opened)}
    assert f"{world.store / 'outcrop.db'} 0644" in finding["details"]
    [done] = mended(world)  # what SQLite keeps beside the database has its mode
    assert done.endswith(" files and folders private")
    assert {path.stat().st_mode & 0o777 for path in opened} == {0o700, 0o600}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user_are_named_and_left_alone(world: World) -> None:
    os.chown(world.store / "outcrop.db", 12345, 12345)
    finding = failed(world)["permissions"]
    assert (finding["facts"]["foreign"], finding["fixable"]) == (1, False)


def test_a_data_folder_that_cannot_be_entered(world: World) -> None:
    world.store.chmod(0)
    told = plainly(world, "doctor", "--json")
    world.store.chmod(0o700)
    assert told.code == 1, told
    levels = {finding["check"]: finding["what"] for finding in told.json["findings"] if finding["level"] == "failed"}
    assert levels["data folder"] == "the data folder cannot be used: permission denied"
    assert plainly(world, "doctor").code == 0


def test_a_file_where_the_data_folder_should_be(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.places()
    made.store.write_text("mine")
    told = made.run("doctor", "--fix")
    assert told.code == 1
    assert "not a directory" in told.out
    assert made.store.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[mcp]\nmax_result = 5\n", "unknown key mcp.max_result; did you mean max_results?"),
        ("[sources.codex]\nroots = ['x']\n", "must hold absolute paths"),
        ("nonsense", "config.toml: "),
    ],
)
def test_a_configuration_that_does_not_hold_stops_no_other_check(world: World, text: str, says: str) -> None:
    (world.store / "config.toml").write_text(text)
    finding = failed(world)["configuration"]
    assert says in finding["details"][0]
    told = doctor(world)[1]
    assert {one["check"] for one in told["findings"]} == ALL
    assert world.run("status").code == 2


def test_a_root_that_went(world: World) -> None:
    (world.home / ".codex").rename(world.home / "elsewhere")
    finding = failed(world)["roots"]
    assert finding["what"] == "a folder of codex is missing, of which 1 files were read"
    assert finding["details"] == [str(world.home / ".codex")]
    (world.store / "config.toml").write_text("[sources.codex]\nenabled = false\n")
    assert failed(world) == {}


def test_a_root_that_is_empty_where_history_was(world: World) -> None:
    shutil.rmtree(world.home / ".codex" / "sessions")
    assert failed(world)["roots"]["what"] == "a folder of codex is empty, of which 1 files were read"


def test_a_root_that_is_a_file_or_named_and_missing(world: World) -> None:
    (world.store / "config.toml").write_text('[sources.codex]\nroots = ["~/nowhere"]\n')
    _, told = doctor(world)
    texts = [finding["what"] for finding in told["findings"] if finding["check"] == "roots"]
    assert texts == [
        "a folder of codex is missing, which the configuration names",
        "1 files were read from folders that are looked in no more",
    ]
    (world.home / "nowhere").write_text("a file")
    assert "not a directory" in failed(world)["roots"]["what"]


def test_a_root_that_may_not_be_listed(world: World) -> None:
    (world.home / ".codex").chmod(0)
    told = plainly(world, "doctor", "--json")
    (world.home / ".codex").chmod(0o700)
    assert told.code == 1
    whats = [finding["what"] for finding in told.json["findings"] if finding["level"] == "failed"]
    assert "a folder of codex cannot be listed: permission denied" in whats


def test_files_that_cannot_be_read_are_counted_by_reason(world: World) -> None:
    path = world.sessions["K"].path(world.home)
    path.chmod(0)
    os.utime(path)
    plainly(world, "index")
    finding = failed(world)["files"]
    assert finding["facts"] == {"claude: permission denied": 1}
    assert finding["details"] == [f"{path}: permission denied"]


def test_records_that_are_not_understood_are_a_note(world: World) -> None:
    with open(world.sessions["K"].path(world.home), "a", encoding="utf-8") as stream:
        stream.write('no JSON\n{"type": "hologram", "sessionId": "x"}\n')
    world.index()
    code, told = doctor(world)
    [finding] = [finding for finding in told["findings"] if finding["check"] == "records"]
    assert (code, finding["level"], finding["facts"]["set_aside"]) == (0, "note", 1)


def test_what_is_not_read_yet_is_a_note(world: World) -> None:
    world.write("Z")
    code, told = doctor(world)
    [finding] = [finding for finding in told["findings"] if finding["check"] == "freshness"]
    assert (code, finding["level"], finding["facts"]) == (0, "note", {"claude": 1})


# The text index


def remove_text(world: World) -> None:
    shutil.rmtree(world.store / "text")


def remove_segments(world: World) -> None:
    for path in (world.store / "text").glob("*/*.store"):
        path.unlink()


def spoil_segments(world: World) -> None:
    for path in (world.store / "text").glob("*/*.term"):
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 255
        stat = path.stat()
        path.write_bytes(data)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def cut_state(world: World) -> None:
    for path in (world.store / "text").glob("*/meta.json"):
        path.write_text("{}")


def of_another_store(world: World) -> None:
    change(world, "UPDATE meta SET v = 'another' WHERE k = 'epoch'")


def older_rows(world: World) -> None:
    change(world, "UPDATE meta SET v = 0 WHERE k = 'generation'")


def lost_document(world: World) -> None:
    """A document that was deleted behind the rows' back."""
    from outcrop.store.embedded import text_fields

    [folder] = (world.store / "text").glob("text-*")
    writer = text_fields.open_index(folder).writer(15_000_000, 1)
    writer.delete_documents_by_term("id", prompt(world))
    writer.commit()
    writer.wait_merging_threads()


def stale_document(world: World) -> None:
    change(world, "UPDATE event SET rev = rev + 1 WHERE id = ?", prompt(world))


def ghost_document(world: World) -> None:
    """A document whose row went without a word."""
    id = prompt(world)
    change(world, "UPDATE turn SET event_count = event_count - 1 WHERE id = (SELECT turn FROM event WHERE id = ?)", id)
    change(world, "DELETE FROM event WHERE id = ?", id)


def no_index_named(world: World) -> None:
    change(world, "DELETE FROM meta WHERE k = 'text_dir'")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (remove_text, "the text index is gone"),
        (remove_segments, "damaged or missing"),
        (spoil_segments, "damaged or missing"),
        (cut_state, "damaged or missing"),
        (of_another_store, "of another history"),
        (older_rows, "younger than the history"),
        (lost_document, "1 events without their document"),
        (stale_document, "1 documents of an older text"),
        (ghost_document, "1 documents of no event"),
        (no_index_named, "there is no text index"),
    ],
)
def test_a_damaged_text_index_is_found_and_built_anew(world: World, damage: Callable[[World], None], says: str) -> None:
    before = found_by(world, "beacon timeout harbour")
    damage(world)
    assert says in failed(world)["text index"]["what"]
    assert any(what.startswith("brought the text index up") for what in mended(world))
    assert found_by(world, "beacon timeout harbour") == before - (damage is ghost_document)


def test_a_backlog_of_the_text_index_is_drained(world: World) -> None:
    change(world, "INSERT INTO text_todo (doc, class) SELECT id, 0 FROM event")
    code, told = doctor(world)
    [finding] = [finding for finding in told["findings"] if finding["check"] == "text backlog"]
    assert (code, finding["level"]) == (0, "note")
    assert mended(world) == ["brought the text index up to the history (" + str(finding["facts"]["waiting"])
                             + " documents)"]  # fmt: skip


def test_events_without_text_are_no_flaw(world: World) -> None:
    _, told = doctor(world)
    [finding] = [finding for finding in told["findings"] if finding["check"] == "text index"]
    facts = finding["facts"]
    assert facts["documents"] == facts["searchable_events"] > 10
    assert facts["events_without_text"] > 0


# The database


@pytest.mark.parametrize(("version", "says"), [(99, "a newer outcrop"), (1, "an older outcrop")])
def test_a_schema_of_another_version(world: World, version: int, says: str) -> None:
    change(world, f"PRAGMA user_version = {version}")
    finding = failed(world)["database"]
    assert says in finding["what"]
    assert finding["facts"]["schema"] == version
    before = (world.store / "outcrop.db").read_bytes()
    assert doctor(world, "--fix")[1]["mended"] == []
    assert (world.store / "outcrop.db").read_bytes() == before


def test_rows_that_contradict_each_other(world: World) -> None:
    before = found_by(world, "beacon")
    change(world, "DELETE FROM turn WHERE id = (SELECT max(id) FROM turn)")
    change(world, "UPDATE block SET z = zeroblob(9) WHERE id = 1")
    finding = failed(world)["database"]
    assert finding["facts"]["events without a turn or session"] > 0
    assert finding["facts"]["blocks that cannot be unpacked"] == 1
    done = mended(world)
    assert "the old one is kept as outcrop.db.damaged-" in done[0]
    world.index()
    assert failed(world) == {}
    assert found_by(world, "beacon") == before


@pytest.mark.parametrize("name", ["TABLE event", "INDEX event_uid", "INDEX turn_session"])
def test_a_missing_table_or_index_is_found_and_made_again(world: World, name: str) -> None:
    change(world, f"DROP {name}")
    assert "lacks" in failed(world)["database"]["what"]
    mended(world)
    world.index()
    assert found_by(world, "beacon") > 0
    assert failed(world) == {}


@pytest.mark.parametrize("damage", ["type = 200", "ends = 77", "uid = x'00'", "time = 9223372036854775807"])
def test_an_event_that_nothing_can_read_is_found_and_read_again(world: World, damage: str) -> None:
    change(world, f"UPDATE event SET {damage} WHERE id = ?", prompt(world))
    assert "1 events that nothing can read" in failed(world)["database"]["what"]
    mended(world)
    world.index()
    assert found_by(world, "lighthouse") > 0
    assert failed(world) == {}


@pytest.mark.parametrize("name", ["run", "text"])
@pytest.mark.parametrize("stands", ["a file", "a link to nothing"])
def test_what_stands_in_the_place_of_a_folder_is_put_aside(world: World, name: str, stands: str) -> None:
    place = world.store / name
    shutil.rmtree(place)
    if stands == "a file":
        place.write_text("something else", encoding="utf-8")
    else:
        place.symlink_to("/nowhere")
    assert "something else bears the name" in failed(world)["data folder"]["what"]
    mended(world)
    assert os.path.lexists(world.store / f"{name}.aside")
    world.index()
    assert found_by(world, "beacon") > 0


def test_leftovers_of_killed_runs_are_removed(world: World) -> None:
    left = [world.store / "text" / "text-99", world.store / "outcrop.db.salvage", world.store / ".doctor-probe-1"]
    left[0].mkdir(mode=0o700)
    for path in (left[0] / "x.term", *left[1:]):
        path.write_bytes(b"x")
        path.chmod(0o600)
    assert failed(world)["leftovers"]["details"] == sorted(map(str, left))
    assert mended(world) == ["removed 3 leftovers"]
    assert not any(path.exists() for path in left)


def test_an_interrupted_erasure_is_told(world: World) -> None:
    change(world, "INSERT OR REPLACE INTO meta VALUES ('purge_pending', 1)")
    assert failed(world)["erasure"]["what"] == "an erasure was interrupted"


def test_a_clock_that_was_set_back(world: World) -> None:
    change(world, "UPDATE meta SET v = v + 7200000 WHERE k = 'last_pass'")
    finding = failed(world)["clock"]
    assert "set back" in finding["what"]
    assert 7000 < finding["facts"]["seconds_ahead"] <= 7200


def test_times_in_the_future(world: World) -> None:
    made = Claude("future", world.places().plain)
    made.user("10:00:00", "from the future").answer("10:00:05", "it is fine")
    for line in made.lines:
        line["timestamp"] = line["timestamp"].replace("2026-", "2126-")
    world.sessions["future"] = made
    world.save("future")
    world.index()
    finding = failed(world)["clock"]
    assert finding["facts"] == {"claude": 2}
    assert "2 events carry times in the future (claude)" in finding["what"]


def test_what_a_newer_version_read(world: World) -> None:
    change(world, "UPDATE file SET adapter_version = adapter_version + 5 WHERE source = 'codex'")
    finding = failed(world)["adapters"]
    assert finding["facts"] == {"codex": 1}
    change(world, "UPDATE file SET adapter_version = 0 WHERE source = 'codex'")
    code, told = doctor(world)
    assert code == 0
    assert [one["level"] for one in told["findings"] if one["check"] == "adapters"] == ["note"]


# Processes


def test_a_socket_without_an_indexer_is_removed(world: World) -> None:
    path = world.store / "run" / "outcrop.sock"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
    path.chmod(0o600)
    assert "no indexer behind it" in failed(world)["indexer"]["what"]
    assert mended(world) == ["removed the stale socket"]
    assert not path.exists()


def test_a_socket_behind_which_nobody_answers_is_left_alone(world: World) -> None:
    path = world.store / "run" / "outcrop.sock"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        path.chmod(0o600)
        door.listen()
        assert "does not answer" in failed(world)["indexer"]["what"]
        assert doctor(world, "--fix")[1]["mended"] == []
        assert path.exists()


def test_nothing_is_repaired_while_another_process_writes(world: World) -> None:
    (world.store / "outcrop.db").chmod(0o644)
    with FileLock(world.store / "run" / "writer.lock"):
        code, told = doctor(world, "--fix")
    assert code == 1
    [entry] = told["mended"]
    assert entry["done"] is False
    assert "another outcrop process is writing" in entry["what"]
    assert (world.store / "outcrop.db").stat().st_mode & 0o777 == 0o644


def test_a_crash_record_is_told(world: World) -> None:
    record = world.store / "run" / "indexer.json"
    record.write_text(json.dumps({"pid": 1, "started": time.time() - 60, "crashes": [time.time() - 30]}))
    record.chmod(0o600)
    code, told = doctor(world)
    assert code == 0
    assert [one["level"] for one in told["findings"] if one["check"] == "crashes"] == ["note"]


# The disk


def test_a_limit_that_lets_nothing_be_written(world: World) -> None:
    def narrow() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run(
        [sys.executable, "-m", "outcrop", "doctor", "--json"],
        env=world.environment, capture_output=True, text=True, preexec_fn=narrow, check=False,
    )  # fmt: skip
    told = Run(done.returncode, done.stdout, done.stderr)
    assert told.code == 1, told
    [finding] = [one for one in told.json["findings"] if one["check"] == "disk"]
    assert finding["what"] == "nothing can be written to the data folder: file too large"
    assert list(world.store.glob(".doctor-probe*")) == []


def test_a_data_folder_that_may_not_be_written_is_called_just_that(world: World) -> None:
    reader = sqlite3.connect(world.store / "outcrop.db")  # without its log the history cannot be read there either
    reader.execute("SELECT count(*) FROM event").fetchone()
    places = [world.store, *world.store.rglob("*")]
    for path in places:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        told = plainly(world, "doctor", "--json")
        found = {one["check"]: one for one in told.json["findings"] if one["level"] == "failed"}
        assert set(found) == {"disk", "writer", "text index"}
        assert "damaged" not in found["text index"]["what"], "it is sound"
        assert not any(word in one["do"] for one in found.values() for word in ("--fix", "rebuild"))
        assert "can be searched" not in found["disk"]["means"]
        for command in (["events", "beacon"], ["search", "beacon"]):
            done = plainly(world, *command)
            assert done.code == 3
            assert "the data folder is read-only, so the text index cannot be opened" in done.err
            assert str(world.store) not in done.err
        done = plainly(world, "call", "search_sessions", '{"query": "beacon"}')
        assert done.json["error"]["code"] == "backend_failure"
        assert plainly(world, "sessions", "--since", "2026-01-01").code == 0
        assert plainly(world, "status").code == 0
    finally:
        for path in places:
            path.chmod(0o700 if path.is_dir() else 0o600)
    assert plainly(world, "events", "beacon").code == 0
    reader.close()


def test_a_disk_that_is_nearly_full(world: World) -> None:
    if not can_mount():
        pytest.skip("no mount namespaces here; a limit of the process is tested above")
    told = on_small_disk(world, "4m", "doctor", "--json")
    assert told.code == 1
    [finding] = [one for one in told.json["findings"] if one["check"] == "disk"]
    assert finding["level"] == "failed"
    assert "are free where" in finding["what"]


def test_a_repair_on_a_full_disk_leaves_the_old_file(world: World) -> None:
    if not can_mount():
        pytest.skip("no mount namespaces here")
    many_turns(world.home, world.places().plain, "long", 2000)
    world.index()
    path = world.store / "outcrop.db"
    with open(path, "r+b") as stream:
        stream.truncate(path.stat().st_size - 50_000)
    before = path.read_bytes()
    size = sum(file.stat().st_size for file in world.store.rglob("*") if file.is_file())
    told = on_small_disk(world, str(size + 300_000), "doctor", "--fix", "--json")
    assert told.code == 1
    assert told.json["mended"][0]["done"] is False
    assert "the disk is full" in told.json["mended"][0]["what"]
    assert path.read_bytes() == before
    assert list(world.store.glob("outcrop.db.*")) == []


# What is said of it


def test_the_report_holds_nothing_private(world: World) -> None:
    path = world.sessions["K"].path(world.home)
    secret = path.with_name("secret-project.jsonl")
    secret.write_text('{"type": "user"')
    with open(path, "a", encoding="utf-8") as stream:
        stream.write('{"type": "my-private-kind", "sessionId": "x"}\n')
    world.index()
    (world.store / "config.toml").write_text("[sources.private-name]\n")
    (world.store / "outcrop.db").chmod(0o644)
    shutil.rmtree(world.home / ".codex")
    told = world.run("doctor", "--report")
    assert told.code == 1
    assert told.out.startswith("outcrop doctor report\noutcrop ")
    for private in (str(world.folder), str(world.home), "secret", "private", "lighthouse", "beacon", ".jsonl", "/"):
        assert private not in told.out, private
    assert "[failed] permissions: " in told.out
    assert "[failed] roots: a folder of codex is missing" in told.out


def test_a_path_cannot_steer_the_terminal(world: World) -> None:
    odd = world.sessions["K"].path(world.home).with_name("\x1b[31mred.jsonl")
    odd.write_bytes(b"[1]\n")
    odd.chmod(0)
    plainly(world, "index")
    told = world.run("doctor")
    assert "\x1b" not in told.out + told.err
    assert "␛[31mred.jsonl" in told.out
