"""`outcrop status` says "current" only where a look at the disk has just proved it; else what is missing, and why."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from homes import many_turns
from limits import plainly
from world import World


def disk(world: World, *argv: str) -> dict[str, Any]:
    done = world.run("status", "--json", *argv)
    assert done.code == 0, done.err
    return done.json["disk"]


def of(told: dict[str, Any], source: str) -> dict[str, Any]:
    [found] = [each for each in told["sources"] if each["source"] == source]
    return found


def first_line(world: World) -> str:
    return world.run("status").out.splitlines()[0]


@pytest.fixture
def indexed(small_world: World) -> World:
    small_world.write("K", "X")
    small_world.index()
    return small_world


def test_what_was_just_read_is_current(indexed: World) -> None:
    told = disk(indexed)
    assert (told["state"], told["files"], told["indexed"], told["pending"], told["lag_ms"]) == ("current", 2, 2, 0, 0)
    claude = of(told, "claude")
    path = indexed.sessions["K"].path(indexed.home)
    assert claude["newest_on_disk"] == claude["newest_indexed"] == path.stat().st_mtime_ns // 1_000_000
    assert claude["newest_record"] > 1_700_000_000_000
    assert first_line(indexed) == "current: all that the 2 files on disk hold is indexed"


def test_a_time_that_no_calendar_holds_is_shown_at_its_end(indexed: World) -> None:
    with closing(sqlite3.connect(indexed.store / "outcrop.db")) as database, database:
        database.execute("UPDATE session SET updated = 9223372036854775807")
    shown = indexed.run("status")
    assert shown.code == 0, shown.err
    assert "newest record 9999-12-31" in shown.out
    assert indexed.run("forget", "--source", "codex", "--dry-run").code == 0


def test_a_new_file_is_behind_until_it_is_read(indexed: World) -> None:
    indexed.write("Z")
    os.utime(indexed.sessions["Z"].path(indexed.home), (1_700_000_000, 1_700_000_000))
    told = disk(indexed)
    assert (told["state"], told["files"], told["indexed"], told["pending"]) == ("behind", 3, 2, 1)
    claude = of(told, "claude")
    assert claude["pending"]["paths"] == [{"path": str(indexed.sessions["Z"].path(indexed.home)), "why": "new"}]
    assert claude["lag_ms"] == told["lag_ms"] > 10**10, "a file that is skipped shows by how long it waits"
    assert of(told, "codex")["state"] == "current"
    assert first_line(indexed).startswith("behind: 1 of 3 files on disk not read yet, for ")
    assert "current" not in indexed.run("status").out
    indexed.index()
    assert disk(indexed)["state"] == "current"


def test_a_file_that_grew_is_behind_by_what_was_added(indexed: World) -> None:
    path = indexed.sessions["K"].path(indexed.home)
    indexed.sessions["K"].user("10:20:00", "one more thing").answer("10:20:09", "done")
    before = path.stat().st_size
    indexed.save("K")
    told = of(disk(indexed), "claude")
    assert (told["state"], told["pending"]["changed"]) == ("behind", 1)
    assert told["pending"]["bytes"] == path.stat().st_size - before
    assert told["newest_on_disk"] > told["newest_indexed"]


def test_a_file_that_went_shows_before_and_after_it_is_noted(indexed: World) -> None:
    indexed.sessions["K"].path(indexed.home).unlink()
    told = disk(indexed)
    assert (told["state"], told["gone"], told["missing"]) == ("behind", 1, 0)
    indexed.index()
    indexed.index()  # a root that lists nothing at all is believed at the second look
    told = disk(indexed)
    assert (told["state"], told["gone"], told["missing"]) == ("current", 0, 1)
    assert "1 gone, kept here" in indexed.run("status").out


def test_what_cannot_be_read_is_told_with_its_reason(indexed: World) -> None:
    path = indexed.sessions["K"].path(indexed.home)
    path.chmod(0)
    os.utime(path)
    plainly(indexed, "index")
    told = disk(indexed)
    assert (told["state"], told["failed"], told["pending"]) == ("incomplete", 1, 0)
    assert of(told, "claude")["failed"]["files"] == [{"path": str(path), "reason": "permission denied"}]
    shown = indexed.run("status").out
    assert shown.startswith("incomplete: 1 cannot be read\n")
    assert f"  cannot read {path}: permission denied" in shown.splitlines()
    path.chmod(0o600)
    assert disk(indexed)["state"] == "behind", "since its mode changed it is worth another try"
    indexed.index()
    assert disk(indexed)["state"] == "current"


def test_a_folder_that_cannot_be_listed_is_not_current(indexed: World) -> None:
    root = indexed.home / ".codex"
    root.chmod(0)
    told = plainly(indexed, "status", "--json").json["disk"]
    root.chmod(0o700)
    assert of(told, "codex")["state"] in ("not checked", "incomplete")
    assert told["state"] in ("not checked", "incomplete")
    assert told["failed"] == 1
    assert {each["reason"] for each in of(told, "codex")["degraded"]} == {"permission denied"}


def test_without_time_nothing_is_called_current(indexed: World) -> None:
    told = disk(indexed, "--within", "0")
    assert told["state"] == "not checked"
    assert {"claude", "codex"} <= set(told["not_checked"])
    assert all(source["state"] == "not checked" for source in told["sources"])
    shown = indexed.run("status", "--within", "0").out
    assert shown.startswith("not checked: claude, ")
    assert "current" not in shown


def test_a_switched_off_source_is_not_compared(indexed: World) -> None:
    (indexed.store / "config.toml").write_text("[sources.codex]\nenabled = false\n")
    indexed.sessions["X"].begin("11:30:00", "and more")
    indexed.save("X")
    told = disk(indexed)
    assert told["state"] == "current"
    assert [each["source"] for each in told["sources"]] == ["claude"]
    [line] = [line for line in indexed.run("status").out.splitlines() if line.startswith("  codex")]
    assert "disabled, not checked" in line


def spoil_marker(folder: Path) -> None:
    (folder / "meta.json").write_bytes(b"{")


def spoil_terms(folder: Path) -> None:
    for path in folder.glob("*.term"):
        path.write_bytes(path.read_bytes()[:10])


@pytest.mark.parametrize("damage", [shutil.rmtree, spoil_marker, spoil_terms])
def test_a_dead_text_index_is_never_current(indexed: World, damage: Any) -> None:
    [folder] = (indexed.store / "text").glob("text-*")
    damage(folder)
    found = indexed.run("status", "--json").json
    assert (found["searchable"], found["disk"]["state"]) == (False, "behind")
    assert first_line(indexed) == "behind: the text index cannot be searched"
    indexed.index()
    assert disk(indexed)["state"] == "current"


def test_documents_that_wait_for_the_text_index_are_not_current(indexed: World) -> None:
    with sqlite3.connect(indexed.store / "outcrop.db") as db:
        db.execute("INSERT INTO text_todo (doc, class) VALUES (1, 0)")
    db.close()
    assert first_line(indexed) == "behind: the text index is not complete"
    indexed.index()
    assert first_line(indexed).startswith("current: ")


def test_a_place_of_many_sessions_is_compared_by_its_stamp(small_world: World) -> None:
    small_world.write("ZK")
    small_world.index()
    told = disk(small_world)
    assert (told["state"], of(told, "kimi-cli")["indexed"] > 0) == ("current", True)


def test_a_file_that_an_older_version_read_waits_to_be_read_again(indexed: World) -> None:
    with sqlite3.connect(indexed.store / "outcrop.db") as db:
        db.execute("UPDATE file SET adapter_version = adapter_version - 1 WHERE source = 'claude'")
    db.close()
    told = of(disk(indexed), "claude")
    assert (told["state"], told["pending"]["outdated"]) == ("behind", 1)
    assert told["pending"]["paths"][0]["why"] == "read by an older version"


def test_sizes_and_drift_and_masked_secrets_are_told(small_world: World) -> None:
    small_world.write("R")
    small_world.sessions["R"].user("19:40:00", f"the key is ghp_{'Ab1' * 12}")
    small_world.save("R")
    small_world.index()
    found = small_world.run("status", "--json").json
    assert set(found["bytes"]) == {"outcrop.db", "text", "run", "other"}
    assert found["bytes"]["outcrop.db"] > 10_000
    assert found["bytes"]["text"] > 1_000
    assert found["bytes_free"] > 0
    assert found["bytes_read"] == small_world.sessions["R"].path(small_world.home).stat().st_size
    [unknown] = found["unknown"]
    assert (unknown["records"], unknown["of"]) == (1, len(small_world.sessions["R"].lines))
    assert found["masked"] == {"github-token": 1}
    assert found["indexer"] is None
    assert "no indexer runs" in small_world.run("status").out


def test_the_output_stays_short(small_world: World) -> None:
    for letter in range(60):
        many_turns(small_world.home, small_world.places().plain, f"s{letter}", 1)
    for path in sorted((small_world.home / ".claude").rglob("*.jsonl"))[:40]:
        path.write_text("no JSON\n" * 3)
    small_world.index()
    assert len(small_world.run("status").out.splitlines()) < 20
