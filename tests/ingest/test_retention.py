"""Retention by age, by size and by what the harness deleted, through the command; and that none of it is for good."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from homes import forked, write_lines
from world import Claude, Codex, World

DAY_SECONDS = 86_400
NOW = time.time()
DATABASE = Path(__file__).parent.parent / "fixtures" / "goose" / "sessions.sql"


def configure(world: World, text: str) -> None:
    world.store.mkdir(exist_ok=True)
    (world.store / "config.toml").write_text(text, encoding="utf-8")


def retain(world: World, **settings: Any) -> None:
    lines = [f"{key} = {str(value).lower()}" for key, value in settings.items()]
    configure(world, "[retention]\n" + "\n".join(lines))


def labels(world: World) -> set[str]:
    """The first prompts of all sessions with events."""
    db = sqlite3.connect(world.store / "outcrop.db")
    found = {row[0] for row in db.execute("SELECT first_prompt FROM session WHERE event_count > 0")}
    db.close()
    return found


def tombstones(world: World) -> int:
    return int(world.run("status", "--json").json["forgotten"])


def session(world: World, name: str, days: float, touched: float | None = None) -> Path:
    """A session whose last word is so many days old, in a file that was changed then, or `touched` days ago."""
    when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(NOW - days * DAY_SECONDS))
    made = Claude(name, world.places().plain).user("10:00:00", f"{name} words").answer("10:00:01", f"{name} answered")
    for line in made.lines:
        line["timestamp"] = when
    path = write_lines(made.path(world.home), made.lines)
    age(path, days if touched is None else touched)
    return path


def age(path: Path, days: float) -> None:
    stamp = NOW - days * DAY_SECONDS
    os.utime(path, (stamp, stamp))


# Age


def test_files_that_are_too_old_are_not_read_and_a_wider_setting_reads_them(small_world: World) -> None:
    session(small_world, "old", 40)
    session(small_world, "new", 2)
    retain(small_world, days=30)
    assert small_world.run("index", "--json").json["files"] == 1
    assert labels(small_world) == {"new words"}
    small_world.index("--full")
    assert labels(small_world) == {"new words"}
    retain(small_world, days=60)
    small_world.index()
    assert labels(small_world) == {"old words", "new words"}


def test_stored_sessions_go_when_the_setting_narrows_and_come_back_when_it_widens(small_world: World) -> None:
    for name, days in (("alder", 2), ("birch", 20), ("cedar", 40)):
        session(small_world, name, days)
    small_world.index()
    retain(small_world, days=30)
    told = small_world.run("index", "--json").json
    assert told["removed"] == 1
    assert labels(small_world) == {"alder words", "birch words"}
    assert small_world.run("events", "cedar", "--json").json["data"]["results"] == []
    assert tombstones(small_world) == 0
    retain(small_world, days=10)
    small_world.index()
    assert labels(small_world) == {"alder words"}
    retain(small_world, days=100)
    small_world.index()
    assert labels(small_world) == {"alder words", "birch words", "cedar words"}
    assert len(small_world.run("events", "cedar", "--json").json["data"]["results"]) == 2
    configure(small_world, "")
    small_world.index()
    assert len(labels(small_world)) == 3


def test_a_session_whose_source_is_gone_goes_for_good(small_world: World) -> None:
    path = session(small_world, "gone", 40)
    session(small_world, "there", 2)
    small_world.index()
    path.unlink()
    small_world.index()
    assert labels(small_world) == {"gone words", "there words"}, "deleting the source is no reason"
    retain(small_world, days=30)
    small_world.index()
    retain(small_world, days=300)
    small_world.index()
    assert labels(small_world) == {"there words"}


def test_an_old_session_in_a_file_that_was_just_written_is_read_once(small_world: World) -> None:
    path = session(small_world, "restored", 40, touched=0)
    retain(small_world, days=30)
    assert small_world.run("index", "--json").json["removed"] == 1
    again = small_world.run("index", "--json").json
    assert (again["files_read"], again["removed"]) == (0, 0)
    made = (
        Claude("restored", small_world.places().plain).user("10:00:00", "restored words").answer("10:00:01", "answered")
    )
    made.lines[-1]["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(NOW))
    write_lines(path, made.lines)
    small_world.index()
    assert labels(small_world) == {"restored words"}, "it goes on, so it is not old any more"
    assert small_world.run("events", '"restored words"', "--json").json["data"]["results"]


def test_copies_of_what_went_are_the_originals_from_then_on(small_world: World) -> None:
    first, second, _ = forked(small_world.home, small_world.places().plain)
    days = (NOW - time.mktime((2026, 5, 1, 6, 30, 0, 0, 0, 0))) / DAY_SECONDS
    small_world.index()
    old, kept = first.session, second.session
    retain(small_world, days=max(1, round(days)))
    db = sqlite3.connect(small_world.store / "outcrop.db")
    with db:  # the clock of the test cannot be set: make the first one old instead
        db.execute("UPDATE session SET updated = 1 WHERE native = ?", (old,))
    assert small_world.run("index", "--json").json["removed"] >= 1
    flags = dict(db.execute("SELECT s.native, max(e.flags & 1) FROM session s JOIN turn t ON t.session = s.id"
                            " JOIN event e ON e.turn = t.id GROUP BY 1"))  # fmt: skip
    db.close()
    assert old not in flags
    if kept in flags:
        assert flags[kept] == 0
        assert "chart the bay" in labels(small_world)


def test_killed_while_it_purges_the_next_index_goes_on(small_world: World) -> None:
    for number in range(6):
        session(small_world, f"old {number}", 40 + number)
    session(small_world, "new", 2)
    small_world.index()
    retain(small_world, days=30)
    assert small_world.run("index", OUTCROP_FAULT="kill:retention:3").code == -9
    assert len(labels(small_world)) == 5, "each session is a transaction of its own"
    small_world.index()
    assert labels(small_world) == {"new words"}
    retain(small_world, days=90)
    small_world.index()
    assert len(labels(small_world)) == 7


def test_sessions_of_a_database_age_one_by_one(small_world: World) -> None:
    place = small_world.home / ".local" / "share" / "goose" / "sessions" / "sessions.db"
    place.parent.mkdir(parents=True)
    db = sqlite3.connect(place)
    db.executescript(DATABASE.read_text(encoding="utf-8"))
    db.close()
    small_world.index()
    count = len(labels(small_world))
    assert count
    retain(small_world, days=1)
    small_world.index()
    assert labels(small_world) == set()
    assert small_world.run("index", "--json").json["events"] == 0, "nothing is read again and again"
    retain(small_world, days=3650)
    small_world.index()
    assert len(labels(small_world)) == count


# Size


def test_the_oldest_go_until_the_rest_fits(small_world: World) -> None:
    folder = small_world.places().plain
    noise = [os.urandom(600_000).hex() for _ in range(16)]
    for number, text in enumerate(noise):
        made = Claude(f"big {number}", folder).user("10:00:00", f"big {number}").answer("10:00:01", text)
        for line in made.lines:
            line["timestamp"] = f"2026-05-{number + 1:02}T10:00:00.000Z"
        write_lines(made.path(small_world.home), made.lines)
    retain(small_world, max_bytes=10_000_000)
    told = small_world.run("index", "--json").json
    assert told["removed"] > 0
    assert told["erasure_pending"] is None
    left = sorted(int(label.split()[1]) for label in labels(small_world))
    assert left == list(range(16 - len(left), 16)), "the newest stay"
    assert 4 <= len(left) < 16
    status = small_world.run("status", "--json").json
    assert sum(status["bytes"].values()) <= 10_000_000, "room is made on disk"
    again = small_world.run("index", "--json").json
    assert (again["removed"], again["files_read"]) == (0, 0)
    retain(small_world, max_bytes=1_000_000_000)
    small_world.index()
    assert len(labels(small_world)) == 16


# Mirror


def mirrored(world: World) -> dict[str, Path]:
    retain(world, mirror=True)
    paths = {name: session(world, name, 2) for name in ("one", "two")}
    rollout = (
        Codex("three", world.places().plain, "10:00:00").begin("10:00:01", "three words").answer("10:00:02", "yes")
    )
    paths["three"] = write_lines(rollout.path(world.home), rollout.lines)
    world.index()
    assert labels(world) == {"one words", "two words", "three words"}
    return paths


def test_with_mirror_a_deleted_file_takes_its_history_along(small_world: World) -> None:
    paths = mirrored(small_world)
    paths["one"].unlink()
    told = small_world.run("index", "--json").json
    assert told["removed"] == 1
    assert labels(small_world) == {"two words", "three words"}
    assert tombstones(small_world) == 0
    session(small_world, "one", 2)
    small_world.index()
    assert "one words" in labels(small_world)


def test_without_mirror_history_is_kept(small_world: World) -> None:
    paths = mirrored(small_world)
    configure(small_world, "")
    paths["one"].unlink()
    small_world.index()
    assert "one words" in labels(small_world)
    retain(small_world, mirror=True)
    small_world.index()
    assert "one words" not in labels(small_world), "what was deleted before counts too"


def test_with_mirror_a_file_that_moved_keeps_its_history(small_world: World) -> None:
    paths = mirrored(small_world)
    other = paths["three"].parents[4] / "archived_sessions" / paths["three"].name
    other.parent.mkdir(parents=True)
    paths["three"].rename(other)
    small_world.index()
    assert "three words" in labels(small_world)
    copied = paths["one"].with_name("elsewhere.jsonl")
    copied.write_bytes(paths["one"].read_bytes())
    paths["one"].unlink()
    small_world.index()
    assert "one words" in labels(small_world)


def test_with_mirror_an_unmounted_root_removes_nothing(small_world: World) -> None:
    mirrored(small_world)
    everything = labels(small_world)
    root = small_world.home / ".claude"
    away = small_world.folder / "away"
    root.rename(away)
    for _ in range(3):
        small_world.index()
        assert labels(small_world) == everything, "a root that is not there proves nothing"
    projects = root / "projects"
    projects.mkdir(parents=True)
    small_world.index()
    assert labels(small_world) == everything, "an empty one has a pass of grace"
    shutil.rmtree(root)
    away.rename(root)
    small_world.index()
    assert labels(small_world) == everything
    shutil.rmtree(projects)
    projects.mkdir()
    small_world.index()
    assert labels(small_world) == everything
    small_world.index()
    assert labels(small_world) == {"three words"}, "then it is believed"


@pytest.mark.parametrize("obstacle", ["a file", "a loop"])
def test_with_mirror_a_root_that_cannot_be_listed_removes_nothing(small_world: World, obstacle: str) -> None:
    mirrored(small_world)
    everything = labels(small_world)
    projects = small_world.home / ".claude" / "projects"
    away = projects.rename(small_world.folder / "away")
    if obstacle == "a file":
        projects.write_text("no folder", encoding="utf-8")
    else:
        projects.symlink_to(projects)
    for _ in range(3):
        assert str(projects) in small_world.index().err
        assert labels(small_world) == everything
    projects.unlink()
    away.rename(projects)
    small_world.index()
    assert labels(small_world) == everything


def test_with_mirror_sessions_deleted_from_a_database_go(small_world: World) -> None:
    place = small_world.home / ".local" / "share" / "goose" / "sessions" / "sessions.db"
    place.parent.mkdir(parents=True)
    db = sqlite3.connect(place)
    db.executescript(DATABASE.read_text(encoding="utf-8"))
    retain(small_world, mirror=True)
    small_world.index()
    before = labels(small_world)
    assert len(before) > 1
    with db:
        [(one,)] = db.execute("SELECT id FROM sessions ORDER BY id LIMIT 1").fetchall()
        db.execute("DELETE FROM messages WHERE session_id = ?", (one,))
        db.execute("DELETE FROM sessions WHERE id = ?", (one,))
    small_world.index()
    after = labels(small_world)
    assert after < before
    with db:
        db.execute("DELETE FROM messages")
        db.execute("DELETE FROM sessions")
    db.close()
    for _ in range(2):
        small_world.index()
        assert labels(small_world) == after, "a place that lists nothing at all proves nothing"
    place.unlink()
    small_world.index()
    small_world.index()
    assert labels(small_world) == set()
