"""Bad input through the real command: a clear message, the right exit code, nothing lost, and the rest goes on."""

from __future__ import annotations

import json
import os
import pty
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from homes import many_turns
from limits import can_mount, on_small_disk, plainly
from outcrop.errors import BackendFailure
from outcrop.ingest import pipeline
from outcrop.store.embedded.write import Writer
from projection import projection
from world import WHOLE_DAY, Claude, Run, World


def transcript(world: World, letter: str = "B", *texts: str) -> tuple[Claude, Path]:
    """A transcript with one prompt and answer a text, written and not indexed."""
    made = Claude(letter, world.places().plain)
    for minute, text in enumerate(texts or ("first", "second")):
        made.user(f"10:{minute:02}:00", f"{letter} asks {text}").answer(f"10:{minute:02}:05", f"{letter} says {text}")
    world.sessions[letter] = made
    return made, world.save(letter)


def encoded(made: Claude) -> list[bytes]:
    return [json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in made.lines]


def texts(world: World) -> list[str]:
    """All texts of the history, in order."""
    return [text for _, _, _, events in projection(world.store).values() for text in _texts(events)]


def _texts(events: list[Any]) -> list[str]:
    return [content["text"] for _, _, content in events if content.get("text")]


def status(world: World) -> dict[str, Any]:
    done = world.run("status", "--json")
    assert done.code == 0, done.err
    return done.json


def problems(world: World) -> dict[str, str]:
    """Name of the file → why it cannot be read, as the status tells."""
    return {Path(file["path"]).name: file["reason"] for file in status(world)["files_with_problems"]}


# What stands in lines

ODD_LINES: dict[str, tuple[Callable[[list[bytes]], bytes], list[str]]] = {
    "malformed": (lambda lines: lines[0] + b'{"type": "user", oops}\n' + b"".join(lines[1:]), ["not JSON"]),
    "no_json_at_all": (lambda lines: b"Segmentation fault\n" + b"".join(lines), ["not JSON"]),
    "NUL_padding": (lambda lines: lines[0] + b"\0" * 5000 + b"".join(lines[1:]) + b"\0" * 300, []),
    "NUL_line": (lambda lines: lines[0] + b"\0" * 5000 + b"\n" + b"".join(lines[1:]), []),
    "CRLF": (lambda lines: b"".join(lines).replace(b"\n", b"\r\n"), []),
    "blank_lines": (lambda lines: b"\n\r\n \n" + b"\n\n".join(lines), []),
    "BOM": (lambda lines: b"\xef\xbb\xbf" + b"".join(lines), []),
    "glued": (lambda lines: b"".join(lines).replace(b"\n", b""), []),
    "glued_with_BOM": (lambda lines: b"\xef\xbb\xbf".join(line.rstrip() for line in lines) + b"\n", []),
    "torn_then_whole": (lambda lines: lines[0] + lines[1][:70] + b"".join(lines[1:]), ["not JSON"]),
    "no_object": (
        lambda lines: lines[0] + b'null\n12\n[{"type": "user"}]\n"text"\n' + b"".join(lines[1:]),
        ["not an object"] * 3,
    ),
    "nested_too_deeply": (
        lambda lines: lines[0] + b'{"a":' * 999 + b"1" + b"}" * 999 + b"\n" + b"".join(lines[1:]),
        ["nested too deeply"],
    ),
    "too_deep_for_any_parser": (
        lambda lines: lines[0] + b"[" * 100_000 + b"\n" + b"".join(lines[1:]),
        ["nested too deeply"],
    ),
}


@pytest.mark.parametrize("name", ODD_LINES)
def test_T3_T9_odd_lines_cost_no_record(small_world: World, name: str) -> None:
    made, path = transcript(small_world)
    spoil, reasons = ODD_LINES[name]
    small_world.index()
    clean = projection(small_world.store)
    path.write_bytes(spoil(encoded(made)))
    shutil.rmtree(small_world.store)
    told = small_world.index()
    assert projection(small_world.store) == clean
    aside = status(small_world)["set_aside"]
    assert [record["reason"] for record in aside["records"]] == reasons
    assert aside["count"] == len(reasons)
    assert ("set aside" in told.err) == bool(reasons)
    for record in aside["records"]:
        assert record["path"] == str(path)
        assert path.read_bytes()[record["offset"] :].count(b"\n") + record["line"] - 1 == path.read_bytes().count(b"\n")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"lone \\ud83d surrogate \\udc00", "lone \ufffd surrogate \ufffd"),
        (b"cesu \xed\xa0\xbd end", "cesu \ufffd\ufffd\ufffd end"),
        (b"invalid \xff\xfe UTF-8 \xc3", "invalid \ufffd\ufffd UTF-8 \ufffd"),
        ("separators \u2028 \u2029 \x85 end".encode(), "separators \u2028 \u2029 \x85 end"),
        (b"raw \x0b\x0c\x1c\x1d\x1e control", "raw \x0b\x0c\x1c\x1d\x1e control"),
        (b"nul \0 and \\u0000", "nul \0 and \0"),
    ],
)
def test_T10_odd_characters_stay_in_their_event(small_world: World, written: bytes, read: str) -> None:
    made, path = transcript(small_world, "B", "MARK")
    path.write_bytes(b"".join(encoded(made)).replace(b"MARK", written))
    small_world.index()
    assert texts(small_world) == [f"B asks {read}", f"B says {read}"]
    done = small_world.run("call", "list_sessions", json.dumps(WHOLE_DAY))
    assert done.code == 0
    assert done.json["data"]["sessions"]
    assert status(small_world)["set_aside"]["count"] == 0


def test_hostile_values_in_the_envelope_of_a_record_stop_nothing(small_world: World) -> None:
    made, path = transcript(small_world, "B", "a", "b")
    lines = encoded(made)
    odd = []
    for number, (field, value) in enumerate(
        [("cwd", "/x\0y"), ("cwd", "\\ud800"), ("timestamp", 10**30), ("timestamp", "9" * 500), ("uuid", [1]),
         ("type", {}), ("type", None), ("message", 5), ("message", {"content": {"a": [[]]}}), ("gitBranch", 1e308),
         ("sessionId", ["x"]), ("version", {"v": 1}), ("parentUuid", 3), ("isSidechain", "yes")]
    ):  # fmt: skip
        record = {**made.lines[0], "uuid": f"00000000-0000-4000-8000-{number:012}", field: value}
        odd.append(json.dumps(record).replace("\\\\ud800", "\\ud800").encode() + b"\n")
    path.write_bytes(b"".join([*lines[:2], *odd, *lines[2:]]))
    transcript(small_world, "C", "c")
    small_world.index()
    found = texts(small_world)
    for text in ("B asks a", "B says a", "B asks b", "B says b", "C asks c", "C says c"):
        assert text in found
    assert problems(small_world) == {}


# Files that are being written


def test_T1_a_half_written_line_waits_and_becomes_one_event(small_world: World) -> None:
    made, path = transcript(small_world)
    small_world.index()
    whole = projection(small_world.store)
    data = path.read_bytes()
    shutil.rmtree(small_world.store)
    start = len(b"".join(encoded(made)[:-1]))
    for end in (start + 1, start + 40, len(data) - 2):
        path.write_bytes(data[:end])
        small_world.index()
        assert texts(small_world) == ["B asks first", "B says first", "B asks second"]
        (waiting,) = status(small_world)["unfinished"]
        assert (waiting["path"], waiting["offset"], waiting["bytes"]) == (str(path), start, end - start)
    assert "not ended yet" in small_world.run("status").out
    path.write_bytes(data)
    assert small_world.run("index", "--json").json["events"] == 1
    assert projection(small_world.store) == whole
    assert status(small_world)["unfinished"] == []


def test_T2_a_complete_object_without_its_line_feed_is_read_once(small_world: World) -> None:
    made, path = transcript(small_world)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    small_world.index()
    assert len(texts(small_world)) == 4
    before = projection(small_world.store)
    path.write_bytes(data)
    small_world.index()
    assert projection(small_world.store) == before
    made.user("11:00:00", "B asks third")
    small_world.save("B")
    small_world.index()
    assert texts(small_world)[-1] == "B asks third"
    assert len(texts(small_world)) == 5


def test_T4_truncated_and_written_again_with_the_same_content(small_world: World) -> None:
    _, path = transcript(small_world)
    small_world.index()
    before = projection(small_world.store)
    data = path.read_bytes()
    path.write_bytes(b"")
    small_world.index()
    assert projection(small_world.store) == before
    path.write_bytes(data)
    small_world.index()
    assert projection(small_world.store) == before
    assert problems(small_world) == {}


def test_T5_an_atomic_rename_with_a_longer_content_gives_only_the_tail(small_world: World) -> None:
    made, path = transcript(small_world)
    small_world.index()
    before = next(iter(projection(small_world.store).values()))[3]
    made.user("11:00:00", "B asks third")
    written = path.with_name("new")
    written.write_bytes(b"".join(encoded(made)))
    written.rename(path)
    told = small_world.run("index", "--json").json
    assert (told["records"], told["events"]) == (1, 1)
    after = next(iter(projection(small_world.store).values()))[3]
    assert after[:-1] == before


def test_T6_another_shorter_history_takes_the_place_of_the_old(small_world: World) -> None:
    transcript(small_world, "B", "one", "two", "three")
    small_world.index()
    (session,) = projection(small_world.store)
    other, path = transcript(small_world, "B", "one")
    other.lines[0]["message"]["content"] = "B asks something else"
    other.lines[0]["uuid"] = "11111111-1111-4111-8111-111111111111"
    path.write_bytes(b"".join(encoded(other)))
    small_world.index()
    history = projection(small_world.store)
    assert list(history) == [session]
    assert texts(small_world) == ["B asks something else", "B says one"]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\0" * 100, b"garbage\nmore\n", b'null\n[1]\n{"type": "us'])
def test_an_emptied_file_keeps_its_history_and_counts_as_missing(small_world: World, content: bytes) -> None:
    made, path = transcript(small_world)
    small_world.index()
    before = projection(small_world.store)
    path.write_bytes(content)
    for _ in range(2):
        told = small_world.index()
        assert projection(small_world.store) == before
        assert str(path) in told.err
        (source,) = status(small_world)["sources"]
        assert (source["missing"], source["failed"]) == (1, 1)
    path.write_bytes(encoded(made)[0])
    small_world.index()
    assert texts(small_world) == ["B asks first"]
    (source,) = status(small_world)["sources"]
    assert (source["missing"], source["failed"]) == (0, 0)


def test_T7_moved_compressed_and_both_present_are_one_session(small_world: World) -> None:
    import zstandard

    small_world.write("X", "D")
    small_world.index()
    before = projection(small_world.store)
    plain = small_world.sessions["X"].path(small_world.home)
    archived = small_world.home / ".codex" / "archived_sessions" / plain.name
    archived.parent.mkdir()
    plain.rename(archived)
    assert small_world.run("index", "--json").json["records"] == 0
    assert projection(small_world.store) == before
    packed = archived.with_name(archived.name + ".zst")
    packed.write_bytes(zstandard.ZstdCompressor(write_checksum=True).compress(archived.read_bytes()))
    small_world.index()
    assert projection(small_world.store) == before
    archived.unlink()
    small_world.index()
    assert projection(small_world.store) == before
    shutil.rmtree(small_world.store)
    small_world.index()
    assert projection(small_world.store) == before
    data = packed.read_bytes()
    for damaged in (data[:-1], data[: len(data) // 2], data[:6], data[:200] + bytes(100) + data[300:], b""):
        packed.write_bytes(damaged)
        told = small_world.index()
        assert packed.name in told.err
        assert projection(small_world.store) == before
        assert list(problems(small_world)) == [packed.name]
    packed.write_bytes(data + zstandard.compress(b'{"timestamp":"2026-05-01T20:00:00Z","type":"x","payload":{}}\n'))
    small_world.index()
    assert problems(small_world) == {}


def test_T119_a_vanished_file_keeps_its_history(small_world: World) -> None:
    _, path = transcript(small_world)
    small_world.index()
    before = projection(small_world.store)
    path.unlink()
    small_world.index()
    assert projection(small_world.store) == before
    told = small_world.run("status", "--json").json  # the file system of the root may just not be there
    assert [root["problem"] for root in told["roots"]] == [pipeline.BARE]
    assert "gone, kept here" not in small_world.run("status").out
    small_world.index()
    assert projection(small_world.store) == before
    assert "1 gone, kept here" in small_world.run("status").out
    assert [root["problem"] for root in small_world.run("status", "--json").json["roots"]] == [None]
    shutil.rmtree(path.parent)
    small_world.index()
    assert projection(small_world.store) == before


def test_a_new_file_with_the_number_of_a_vanished_one_does_not_take_its_history(small_world: World) -> None:
    _, old = transcript(small_world)
    small_world.index()
    _, new = transcript(small_world, "C", "one", "two", "three", "four")
    data = new.read_bytes()
    new.unlink()
    # Written in place and renamed: the same inode under another name, as file systems reuse them.
    old.write_bytes(data)
    old.rename(new)
    small_world.index()
    found = texts(small_world)
    assert "B says first" in found
    assert "C says four" in found
    assert len(projection(small_world.store)) == 2


# Files that are none


def test_what_is_no_file_is_named_and_the_rest_is_read(small_world: World) -> None:
    _, path = transcript(small_world)
    folder = path.parent
    names = {name: folder / f"{name}.jsonl" for name in ("pipe", "loop", "dangling", "socket")}
    os.mkfifo(names["pipe"])
    names["loop"].symlink_to(names["loop"])
    names["dangling"].symlink_to(folder / "nowhere")
    (folder / "around").symlink_to(folder, target_is_directory=True)
    small_world.run("status")
    told = small_world.index()
    assert len(texts(small_world)) == 4
    assert problems(small_world) == {
        "pipe.jsonl": "not a regular file",
        "loop.jsonl": "too many levels of symbolic links",
    }
    assert "pipe.jsonl: not a regular file" in told.err
    names["pipe"].unlink()
    names["loop"].unlink()
    small_world.index()
    assert problems(small_world) == {}
    (source,) = status(small_world)["sources"]
    assert (source["files"], source["missing"]) == (1, 0)


def test_a_directory_in_the_place_of_a_file(small_world: World) -> None:
    _, path = transcript(small_world)
    small_world.index()
    before = projection(small_world.store)
    path.unlink()
    path.mkdir()
    told = small_world.index()
    assert f"{path}: a directory stands where a file should be" in told.err
    assert projection(small_world.store) == before
    path.rmdir()
    small_world.index()
    assert problems(small_world) == {}


def test_a_root_that_is_a_file(small_world: World) -> None:
    transcript(small_world)
    codex = small_world.home / ".codex"
    codex.write_text("not a folder")
    told = small_world.index()
    assert f"{codex}: not a directory" in told.err
    assert f"cannot list {codex}: not a directory" in small_world.run("status").out
    assert len(texts(small_world)) == 4


def test_a_name_that_is_no_unicode(small_world: World) -> None:
    _, path = transcript(small_world)
    odd = os.fsencode(path.parent) + b"/\xff\xfe.jsonl"
    shutil.copy(path, odd)
    told = small_world.index()
    assert "\\xff\\xfe.jsonl: its name is no valid Unicode" in told.err
    assert len(texts(small_world)) == 4
    status = small_world.run("status")
    assert "cannot read " in status.out
    assert "cannot be listed" not in status.out, "nothing is the matter with its folder"
    small_world.index()
    [finding] = [one for one in small_world.run("doctor", "--json").json["findings"] if one["level"] == "failed"]
    assert finding["check"] == "files"
    assert finding["facts"] == {"claude: its name is no valid Unicode": 1}
    os.unlink(odd)
    small_world.index()
    assert small_world.run("status").out.startswith("current")
    assert small_world.run("doctor").code == 0


# Sizes


def measured(world: World, *argv: str) -> tuple[Run, int]:
    """A run of the command, and the peak of its memory in bytes."""
    # VmHWM begins anew with a program; ru_maxrss would begin with what the test's own process holds.
    program = (
        "import sys; from outcrop.cli import main; code = main();"
        " peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'));"
        " print(peak.split()[1], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, env=world.environment, check=False
    )
    *rest, peak = done.stderr.splitlines()
    return Run(done.returncode, done.stdout, "\n".join(rest)), int(peak) * 1024


def test_T8_a_line_of_50_MB_costs_no_memory_and_no_following_record(small_world: World) -> None:
    made, path = transcript(small_world)
    lines = encoded(made)
    small_world.index()
    _, small = measured(small_world, "index", "--full")
    long = {**made.lines[1], "uuid": "22222222-2222-4222-8222-222222222222", "huge": "x" * 50_000_000}
    path.write_bytes(b"".join([*lines[:2], json.dumps(long).encode() + b"\n", *lines[2:]]))
    shutil.rmtree(small_world.store)
    done, peak = measured(small_world, "index")
    assert done.code == 0
    assert peak < small + 150_000_000
    assert [text for text in texts(small_world) if len(text) < 100] == [
        "B asks first", "B says first", "B asks second", "B says second"
    ]  # fmt: skip
    (record,) = status(small_world)["set_aside"]["records"]
    assert (record["line"], record["reason"]) == (3, "record too large")
    assert record["offset"] == len(lines[0]) + len(lines[1])


@pytest.mark.slow
def test_a_file_of_2_GB(small_world: World) -> None:
    made, path = transcript(small_world)
    lines = encoded(made)
    with open(path, "wb") as stream:
        stream.write(b"".join(lines[:2]))
        stream.seek(2 << 30)
        stream.write(b"".join(lines[2:]))
    done, peak = measured(small_world, "index")
    assert done.code == 0
    assert peak < 400_000_000
    assert len(texts(small_world)) == 4
    assert measured(small_world, "index", "--json")[0].json["records"] == 0


# Rights


def test_an_unreadable_file_is_named_and_the_rest_is_read(small_world: World) -> None:
    _, path = transcript(small_world)
    _, other = transcript(small_world, "C")
    path.chmod(0)
    told = plainly(small_world, "index")
    assert (told.code, told.err) == (0, f"outcrop: warning: {path}: permission denied\n")
    assert problems(small_world) == {path.name: "permission denied"}
    path.chmod(0o600)
    assert plainly(small_world, "index").code == 0
    assert problems(small_world) == {}
    before = projection(small_world.store)
    assert len(before) == 2
    other.chmod(0)
    told = plainly(small_world, "index", "--full", "--json")
    assert told.json["problems"] == [{"path": str(other), "reason": "permission denied"}]
    assert projection(small_world.store) == before


@pytest.mark.parametrize("mode", [0, 0o400, 0o100])
def test_an_unreadable_root_proves_nothing(small_world: World, mode: int) -> None:
    transcript(small_world)
    small_world.write("X")
    assert plainly(small_world, "index").code == 0
    before = projection(small_world.store)
    for root in (small_world.home / ".codex", small_world.home / ".claude" / "projects"):
        root.chmod(mode)
        told = plainly(small_world, "index")
        assert told.code == 0
        assert "permission denied" in told.err
        assert str(root) in plainly(small_world, "status").out
        assert projection(small_world.store) == before
        assert [source["missing"] for source in status(small_world)["sources"]] == [0, 0]
        root.chmod(0o700)
    assert plainly(small_world, "index").err == ""


def test_a_store_that_may_not_be_written(small_world: World) -> None:
    transcript(small_world)
    small_world.index()
    before = projection(small_world.store)
    small_world.index()  # the last to leave, so that no file of readers stands beside the database
    assert sorted(path.name for path in small_world.store.iterdir()) == ["outcrop.db", "run", "text"]
    everything = [small_world.store, *small_world.store.rglob("*")]
    for path in everything:
        path.chmod(0o500 if path.is_dir() else 0o400)
    told = plainly(small_world, "index")
    assert (told.code, told.out) == (3, ""), told.err
    assert told.err == "outcrop: error: the data folder cannot be written: permission denied\n"
    assert plainly(small_world, "status").err == (
        "outcrop: error: the data folder is read-only, so the history cannot be opened\n"
    )
    refused = plainly(small_world, "call", "list_sessions", json.dumps(WHOLE_DAY))
    assert refused.json["error"]["code"] == "backend_failure"
    assert str(small_world.folder) not in refused.out
    small_world.store.chmod(0)
    told = plainly(small_world, "call", "list_sessions", json.dumps(WHOLE_DAY))
    assert told.code != 0
    assert "permission denied" in (told.out + told.err).lower()
    for path in everything:
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert projection(small_world.store) == before
    assert small_world.index().err == ""


def test_a_store_that_may_not_be_made(small_world: World) -> None:
    small_world.folder.chmod(0o500)
    told = plainly(small_world, "index")
    small_world.folder.chmod(0o700)
    assert (told.code, told.err) == (3, "outcrop: error: the data folder cannot be written: permission denied\n")


def test_a_file_where_the_store_should_be(small_world: World) -> None:
    transcript(small_world)
    small_world.store.write_text("mine")
    told = small_world.run("index")
    assert told.code == 2
    assert "not a directory" in told.err.lower()
    assert small_world.store.read_text() == "mine"


# The disk

FULL = "the disk is full"


def test_a_full_disk_stops_a_run_and_loses_nothing(small_world: World) -> None:
    if not can_mount():
        pytest.skip("no mount namespaces here; the fault hook is tested below")
    transcript(small_world, "A")
    small_world.index()
    noise = random.Random(3)
    for letter in ("big1", "big2", "big3"):
        made = Claude(letter, small_world.places().plain)
        for turn in range(300):
            made.user(f"11:{turn // 60:02}:{turn % 60:02}", f"{letter} {turn} {noise.randbytes(6000).hex()}")
        small_world.sessions[letter] = made
        small_world.save(letter)
    for size in ("1500k", "2500k", "4m", "6m"):
        told = on_small_disk(small_world, size, "index")
        assert told.code == 4, (size, told)
        assert FULL in told.err, size
        assert told.out == ""
        assert len(told.err.splitlines()) == 1
        assert sound(small_world)
        assert "A says second" in texts(small_world)
    assert on_small_disk(small_world, "200m", "index").code == 0
    grown = projection(small_world.store)
    shutil.rmtree(small_world.store)
    small_world.index()
    assert projection(small_world.store) == grown


@pytest.mark.parametrize("passing", [1, 2, 3])
def test_a_write_that_fails_stops_a_run_and_loses_nothing(small_world: World, passing: int) -> None:
    for letter in ("A", "B", "C"):
        transcript(small_world, letter)
    told = small_world.run("index", OUTCROP_FAULT=f"fail:before-commit:{passing}")
    assert (told.code, told.out) == (4, "")
    assert told.err.startswith(f"outcrop: error: {FULL}")
    assert len(texts(small_world)) == 4 * (passing - 1)
    small_world.index()
    assert len(texts(small_world)) == 12


def test_small_files_are_committed_together(small_world: World) -> None:
    for letter in ("A", "B", "C"):
        transcript(small_world, letter)
    told = small_world.run("index", OUTCROP_FAULT="kill:after-commit")
    assert told.code == -9
    assert len(texts(small_world)) == 12


def test_a_transaction_inside_another_is_undone_alone(tmp_path: Path) -> None:
    writer = Writer(tmp_path)

    def failing(key: str) -> None:
        with writer.transaction():
            writer.set_meta(key, 1)
            writer.name("Bash")
            writer.take("event", 7)
            raise BackendFailure(key)

    with pytest.raises(BackendFailure):
        failing("gone")
    with writer.transaction():
        writer.set_meta("kept", 1)
        first = writer.take("event")
        with pytest.raises(BackendFailure):
            failing("undone")
        with writer.transaction():
            writer.set_meta("also kept", 1)
        assert writer.take("event") == first + 1
        assert writer.name("Read") == 1
    assert [writer.meta(key) for key in ("gone", "kept", "undone", "also kept")] == [None, 1, None, 1]
    writer.close()


# The database


def sound(world: World) -> bool:
    connection = sqlite3.connect(world.store / "outcrop.db")
    try:
        return connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()


def overwrite(path: Path, start: int, data: bytes) -> None:
    with open(path, "r+b") as stream:
        stream.seek(start)
        stream.write(data)


@pytest.mark.parametrize("part", ["header", "middle", "all_but_the_header", "cut"])
def test_a_corrupt_database_is_told_and_left_alone(small_world: World, part: str) -> None:
    for letter in ("long1", "long2"):
        many_turns(small_world.home, small_world.places().plain, letter, 60)
    small_world.index()
    path = small_world.store / "outcrop.db"
    size = path.stat().st_size
    noise = random.Random(5).randbytes(size)
    if part == "cut":
        os.truncate(path, size // 2)
    else:
        start, end = {"header": (0, 100), "middle": (size // 3, size), "all_but_the_header": (4096, size)}[part]
        overwrite(path, start, noise[: end - start])
    damaged, identity = path.read_bytes(), path.stat().st_ino
    for argv in (["index", "--full"], ["status"], ["sessions"]):
        told = small_world.run(*argv)
        assert told.code in (3, 4), (argv, told)
        assert "database is damaged" in told.err, (argv, told)
        assert "Traceback" not in told.err
        assert len(told.err.splitlines()) == 1, told.err
    refused = small_world.run("call", "list_sessions", json.dumps(WHOLE_DAY))
    assert refused.json["error"]["code"] == "backend_failure"
    message = refused.json["error"]["message"]
    assert str(small_world.folder) not in message
    assert "SELECT" not in message
    assert path.stat().st_ino == identity
    assert path.stat().st_size >= len(damaged)
    if part != "middle":  # there the run goes on until it meets the damage
        assert path.read_bytes() == damaged


def test_damaged_content_is_a_backend_failure(small_world: World) -> None:
    """SQLite has no checksums: damage inside a value shows only when it is unpacked."""
    transcript(small_world)
    small_world.index()
    ((_, _, _, events),) = projection(small_world.store).values()
    connection = sqlite3.connect(small_world.store / "outcrop.db")
    connection.execute("UPDATE block SET z = CAST(substr(z, 1, 20) || randomblob(length(z) - 20) AS BLOB)")
    connection.commit()
    connection.close()
    told = small_world.run("call", "open", json.dumps({"id": events[0][0]["id"]}))
    assert told.json["error"]["code"] == "backend_failure"
    assert "damaged" in told.json["error"]["message"]


def test_an_empty_database_file_is_no_history_yet(small_world: World) -> None:
    transcript(small_world)
    small_world.store.mkdir()
    (small_world.store / "outcrop.db").touch()
    told = small_world.run("status")
    assert (told.code, told.out) == (3, "")
    assert "outcrop index" in told.err
    small_world.index()
    assert len(texts(small_world)) == 4


def test_a_directory_in_the_place_of_the_database(small_world: World) -> None:
    transcript(small_world)
    (small_world.store / "outcrop.db").mkdir(parents=True)
    for verb in ("index", "status"):
        told = small_world.run(verb)
        assert told.code == 3
        assert told.err.startswith("outcrop: error: outcrop.db in the data folder is no file")


# More than one, and interruptions


def test_two_writers_at_once_one_waits(small_world: World) -> None:
    for letter in "ABC":
        transcript(small_world, letter)
    command = [sys.executable, "-m", "outcrop", "index"]
    both = [
        subprocess.Popen(
            command, env=small_world.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=100) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(out.split()[0] for out, _ in ended) == ["0", "12"]
    assert len(texts(small_world)) == 12


@pytest.mark.slow
def test_a_writer_that_keeps_the_lock_is_named_in_the_end(small_world: World) -> None:
    transcript(small_world)
    small_world.index()
    with FileLock(small_world.store / "run" / "writer.lock"):
        told = small_world.run("index")
    assert (told.code, told.out) == (3, "")
    assert told.err.startswith("outcrop: error: another outcrop process is writing")


def test_a_stale_lock_file_keeps_nobody_out(small_world: World) -> None:
    transcript(small_world)
    (small_world.store / "run").mkdir(parents=True)
    (small_world.store / "run" / "writer.lock").write_text("999999\n")
    small_world.index()
    assert len(texts(small_world)) == 4


def on_terminal(world: World, *argv: str, interrupt: bool = False) -> tuple[int, str]:
    """A run in a terminal of its own: how it ended, and what was shown. `interrupt`: Ctrl-C at the first progress."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(world.home)
        os.execve(sys.executable, [sys.executable, "-m", "outcrop", *argv], {**world.environment, "TERM": "xterm"})
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
            if interrupt and b"indexing" in shown:
                interrupt = False
                os.write(terminal, b"\x03")
    except OSError:
        pass  # the other end is closed: Linux says EIO
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def much(world: World) -> None:
    """Enough for several batches, in files of their own."""
    folder = world.places().plain
    for letter in ("much1", "much2", "much3", "much4"):
        many_turns(world.home, folder, letter, 150)


def test_a_bar_on_a_terminal_and_one_line_in_a_pipe(small_world: World) -> None:
    much(small_world)
    code, shown = on_terminal(small_world, "index")
    assert code == 0
    assert "indexing" in shown
    assert "\x1b[" in shown
    assert "events from" in shown.splitlines()[-1]
    piped = small_world.index("--full")
    assert piped.err == ""
    assert piped.out.count("\n") == 1
    assert "\x1b" not in piped.out


def test_ctrl_c_ends_with_130_and_a_sound_store(small_world: World) -> None:
    much(small_world)
    code, shown = on_terminal(small_world, "index", interrupt=True)
    assert code == 130
    assert "Traceback" not in shown
    assert sound(small_world)
    small_world.index()
    after = projection(small_world.store)
    shutil.rmtree(small_world.store)
    small_world.index()
    assert projection(small_world.store) == after
