"""A damaged `outcrop.db`: what can be read goes into a new file, nothing is invented, the old file keeps its bytes."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from homes import many_turns
from projection import projection
from world import Run, World

PAGE = 4096
FEW = 3
"""Seeds of which it is known which pages they hit."""
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))]
SCRIBBLES = 60
"""Bytes that a scribbling changes."""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An indexed world that is copied, never changed."""
    made = World(tmp_path_factory.mktemp("sample"))
    made.write("K", "X", "D", "M")
    for letter in ("long1", "long2"):
        many_turns(made.home, made.places().plain, letter, 150)
    made.index()
    yield made
    made.close()


@pytest.fixture
def world(sample: World, tmp_path: Path) -> World:
    """A store of its own over the sample's home."""
    shutil.copytree(sample.store, tmp_path / "store")
    (tmp_path / "home").symlink_to(sample.home)
    return Copy(tmp_path, sample.sessions, home_of=sample)


class Copy(World):
    """The store of one folder, the home of another."""

    def __init__(self, folder: Path, sessions: dict[str, Any], home_of: World) -> None:
        super().__init__(folder, sessions)
        self._home = home_of.home

    @property
    def home(self) -> Path:
        return self._home


def scribble(path: Path, seed: int) -> None:
    """Bytes changed anywhere behind the first two pages."""
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(SCRIBBLES):
        data[chance.randrange(2 * PAGE, len(data))] ^= chance.randrange(1, 256)
    path.write_bytes(data)


def lost_pages(path: Path, seed: int) -> None:
    """Whole pages gone, as after a bad disk."""
    chance = random.Random(seed)
    pages = path.stat().st_size // PAGE
    with open(path, "r+b") as stream:
        for _ in range(max(3, pages // 20)):
            stream.seek(chance.randrange(2, pages) * PAGE)
            stream.write(bytes(PAGE))


def cut_short(path: Path, seed: int) -> None:
    os.truncate(path, path.stat().st_size * (9 - seed) // 10)


def broken_schema(path: Path, seed: int) -> None:
    """The page that names the tables."""
    with open(path, "r+b") as stream:
        stream.seek(100 + seed)
        stream.write(random.Random(seed).randbytes(400))


def no_database(path: Path, seed: int) -> None:
    path.write_bytes(b"something else " * (1000 + seed))


DAMAGES = (scribble, lost_pages, cut_short, broken_schema, no_database)


def engine_failures(told: Run) -> list[str]:
    """What is still wrong with the store itself; a name that was hit may belong to no source or agent any more."""
    ours = ("database", "text index", "text backlog", "leftovers", "permissions")
    return [one["what"] for one in told.json["findings"] if one["level"] == "failed" and one["check"] in ours]


def repair(world: World) -> tuple[bytes, Path]:
    """Damage is found and repaired; (the damaged bytes, where they are kept)."""
    path = world.store / "outcrop.db"
    damaged = path.read_bytes()
    found = world.run("doctor", "--json")
    if found.code == 0:
        pytest.skip("this damage hit nothing that is in use")
    told = world.run("doctor", "--fix", "--json")
    assert told.json["mended"][0]["done"], told.json["mended"]
    assert not engine_failures(told)
    kept, *_ = sorted(world.store.glob("outcrop.db.damaged-*"))
    assert kept.read_bytes() == damaged
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not list(world.store.glob("outcrop.db.salvage*"))
    return damaged, kept


def shown(history: dict[str, Any]) -> dict[str, Any]:
    """Event id → its type and content, over all sessions."""
    return {summary["id"]: (summary["type"], content)
            for _, _, _, events in history.values() for summary, _, content in events}  # fmt: skip


def _text(event: tuple[str, dict[str, Any]]) -> tuple[str, Any]:
    """What no name of a tool is part of."""
    return event[0], event[1].get("text") if not event[0].startswith("tool") else None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_the_agents_still_have_is_whole_again(
    sample: World, world: World, damage: Callable[[Path, int], None], seed: int
) -> None:
    damage(world.store / "outcrop.db", seed)
    repair(world)
    world.index()
    before, after = shown(projection(sample.store)), shown(projection(world.store))
    # An event whose id was hit stands there twice, where the row of its file is lost too.
    assert len(after.keys() - before.keys()) <= (SCRIBBLES if damage is scribble else 0)
    assert {id: after.get(id) for id in before} == before
    assert not engine_failures(world.run("doctor", "--json"))
    assert world.run("events", "question 77", "--json").json["data"]["result_count"] > 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("damage", [scribble, lost_pages, cut_short])
def test_nothing_is_invented_where_the_agents_have_nothing_more(
    sample: World, world: World, damage: Callable[[Path, int], None], seed: int
) -> None:
    before = shown(projection(sample.store))
    damage(world.store / "outcrop.db", seed)
    repair(world)
    after = shown(projection(world.store))
    # Nobody can see that a byte changed inside a value: in an id, in a name that many events share.
    strange = SCRIBBLES if damage is scribble else 0
    assert len(after.keys() - before.keys()) <= strange
    changed = [id for id in after.keys() & before.keys() if after[id] != before[id]]
    if seed < FEW:  # else a page of names may be gone, of which one is that of many calls
        assert len(changed) <= max(strange, len(after) // 20), [(before[id], after[id]) for id in changed[:3]]
    assert all(_text(after[id]) == _text(before[id]) for id in changed) or len(changed) <= strange
    if (
        damage is scribble and seed < FEW
    ):  # a page of the table of sessions takes the events of all its sessions with it
        assert len(after) > len(before) // 3


def test_numbers_and_ids_go_on_and_cursors_of_the_old_file_do_not(world: World) -> None:
    path = world.store / "outcrop.db"
    db = sqlite3.connect(path)
    epoch, highest = db.execute("SELECT (SELECT v FROM meta WHERE k = 'epoch'), max(id) FROM event").fetchone()
    with db:
        db.execute("DELETE FROM event WHERE id > ?", (highest - 5,))
    db.close()
    repair(world)
    db = sqlite3.connect(path)
    told = dict(db.execute("SELECT name, seq FROM sqlite_sequence"))
    assert db.execute("SELECT v FROM meta WHERE k = 'epoch'").fetchone()[0] != epoch
    db.close()
    assert told["event"] >= highest


def test_what_stands_in_the_log_alone_is_read_and_the_log_goes_with_the_old_file(world: World) -> None:
    """Another reader keeps the log from being copied back."""
    path = world.store / "outcrop.db"
    reader = sqlite3.connect(path)
    reader.execute("SELECT 1 FROM event").fetchone()
    db = sqlite3.connect(path)
    with db:
        db.execute("INSERT INTO meta VALUES ('probe', 'only in the log')")
    assert path.with_name("outcrop.db-wal").stat().st_size > 0
    with open(path, "r+b") as stream:
        stream.seek(path.stat().st_size - PAGE)
        stream.write(b"\xff" * PAGE)
    told = world.run("doctor", "--fix", "--json")
    if not told.json["mended"]:
        pytest.skip("the last page is not in use")
    assert told.json["mended"][0]["done"]
    db.close()
    reader.close()
    new = sqlite3.connect(path)
    assert new.execute("SELECT v FROM meta WHERE k = 'probe'").fetchone() == ("only in the log",)
    new.close()
