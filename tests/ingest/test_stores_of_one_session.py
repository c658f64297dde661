"""One session in several stores, or in one that puts its rows in anew: told once, whatever is read first."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from outcrop.harnesses import load
from outcrop.harnesses.kiro_cli import HARNESS as KIRO
from outcrop.store.embedded.rows import DELETED
from world import World

FIXTURES = Path(__file__).parent.parent / "fixtures"
DATA = ".local/share"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[], World]]:
    made: list[World] = []

    def another() -> World:
        made.append(World(tmp_path / str(len(made))))
        made[-1].store.mkdir(parents=True)
        (made[-1].store / "config.toml").write_text("[index]\nauto = false\n", encoding="utf-8")
        return made[-1]

    yield another
    for world in made:
        world.close()


def story(world: World) -> list[tuple[Any, ...]]:
    """All that is told: turns with their events, by id, type, text and whether the store still has it."""
    from outcrop.store.embedded import rows

    with closing(sqlite3.connect(world.store / "outcrop.db")) as database:
        packed = dict(database.execute("SELECT id, z FROM block"))
        found = database.execute(
            "SELECT session.native, turn.ord, event.ord, hex(event.uid), event.type, event.block, event.slot,"
            f" event.flags & {DELETED} FROM event JOIN turn ON turn.id = event.turn"
            " JOIN session ON session.id = event.session ORDER BY 1, 2, 3"
        ).fetchall()
    return [(*row[:5], rows.decode_block(packed[row[5]])[row[6]].get("text", ""), bool(row[7])) for row in found]


def texts(world: World) -> list[tuple[str, bool]]:
    return [(row[5], row[6]) for row in story(world) if row[5]]


def kiro(world: World, program: str, *said: tuple[str, str, str]) -> None:
    """A database of Kiro or of its ancestor with one conversation: prompts, ids of answers, answers."""
    path = world.home / DATA / program / "data.sqlite3"
    path.parent.mkdir(parents=True)
    steps = [
        {"user": {"content": {"Prompt": {"prompt": prompt}}}, "assistant": {"Response": {"message_id": id,
                                                                                      "content": answer}}}
        for prompt, id, answer in said
    ]  # fmt: skip
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FIXTURES / "kiro-cli" / "data.sql").read_text("utf-8"))
        for table in ("conversations", "conversations_v2"):
            database.execute(f"DELETE FROM {table}")
        value = json.dumps({"conversation_id": "both", "history": steps})
        database.execute(
            "INSERT INTO conversations_v2 VALUES ('/w', 'both', ?, 1780300800000, 1780300900000)", (value,)
        )
        database.commit()


def kiro_pair(world: World, *said: tuple[str, str, str]) -> None:
    folder = world.home / ".kiro" / "sessions" / "cli"
    folder.mkdir(parents=True)
    lines = []
    for number, (prompt, id, answer) in enumerate(said):
        meta = {"timestamp": 1780300800 + number}
        blocks = [{"kind": "text", "data": prompt}]
        lines.append({"kind": "Prompt", "data": {"message_id": f"u{number}", "content": blocks, "meta": meta}})
        lines.append({"kind": "AssistantMessage", "data": {"message_id": id, "content": [
            {"kind": "text", "data": answer}]}})  # fmt: skip
    (folder / "both.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


OLDER = [("moor the boat", "m1", "Moored."), ("and the raft", "m2", "Raft moored.")]
NEWER = [("moor the ship", "m1", "Moored well."), ("and the raft", "m2", "Raft moored."), ("rest", "m3", "Resting.")]
STORES: dict[str, Callable[[World], None]] = {
    "pair": lambda world: kiro_pair(world, *NEWER),
    "kiro": lambda world: kiro(world, "kiro-cli", *(NEWER if "pair" not in world.folder.name else OLDER)),
    "amazon": lambda world: kiro(world, "amazon-q", *OLDER),
}


@pytest.mark.parametrize("names", [("kiro", "amazon"), ("pair", "amazon"), ("amazon", "pair"), ("amazon", "kiro")])
def test_stores_of_one_conversation_are_ranked_and_not_raced(make: Callable[[], World], names: tuple[str, str]) -> None:
    one, other = make(), make()
    for name in names:
        STORES[name](one)
        one.index()
    for name in names:
        STORES[name](other)
    other.index()
    assert story(one) == story(other)
    assert [text for text, gone in texts(one) if not gone] == [part for said in NEWER for part in (said[0], said[2])]
    assert {text for text, _ in texts(one)} & {"moor the boat", "Moored."} == set(), "the other store tells it better"
    for world in (one, other):
        assert world.data("search_sessions", query="boat")["results"] == []
        assert len(world.data("search_sessions", query="ship")["results"]) == 1
        assert world.index("--full", "--json").json["problems"] == []
    assert story(one) == story(other)


def test_the_order_of_rank_is_total() -> None:
    paths = [
        "/h/.kiro/sessions/cli/both.jsonl", "/h/kiro-cli/data.sqlite3#both", "/h/other/data.sqlite3#both",
        "/h/amazon-q/data.sqlite3#both",
    ]  # fmt: skip
    for place, path in enumerate(paths):
        assert [KIRO.outranks(path, other) for other in paths] == [place < number for number in range(len(paths))]


def test_a_home_of_hermes_that_loses_its_database_tells_nothing_twice(make: Callable[[], World]) -> None:
    world = make()
    home = world.home / ".hermes"
    shutil.copytree(FIXTURES / "hermes" / "home", home)
    with closing(sqlite3.connect(home / "state.db")) as database:
        database.executescript((FIXTURES / "hermes" / "state.sql").read_text("utf-8"))
    world.index()
    before = texts(world)
    (home / "state.db").rename(home / "state.away")
    world.index()
    after = texts(world)
    assert [text for text, _ in after].count("mend the pier") == 1
    assert {text for text, _ in before} <= {text for text, _ in after}, "what the database alone held is kept"
    assert ("Stopped.", True) in after
    (home / "state.away").rename(home / "state.db")
    world.index()
    again = [text for text, gone in texts(world) if not gone]
    assert sorted(again) == sorted(text for text, _ in before)


def goose(world: World) -> Path:
    path = world.home / DATA / "goose" / "sessions" / "sessions.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FIXTURES / "goose" / "sessions.sql").read_text("utf-8"))
        database.execute("UPDATE messages SET message_id = NULL")
        database.commit()
    return path


def test_rows_that_are_put_in_anew_under_other_numbers_are_told_once(make: Callable[[], World]) -> None:
    world = make()
    path = goose(world)
    world.index()
    before = texts(world)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE messages SET id = id + 1000 WHERE session_id = '20260601_1'")
        database.execute("DELETE FROM messages WHERE id = 1004")
        database.commit()
    world.index()
    assert [text for text, _ in texts(world)] == [text for text, _ in before]
    assert [text for text, gone in texts(world) if gone] == ["The deck is tarred."]
    # What is gone stays so, even where the same is said again.
    with closing(sqlite3.connect(path)) as database:
        said = json.dumps([{"type": "text", "text": "The deck is tarred."}])
        database.execute("INSERT INTO messages (session_id, role, content_json, created_timestamp)"
                         " VALUES ('20260601_1', 'assistant', ?, 1780300900)", (said,))  # fmt: skip
        database.commit()
    world.index()
    assert [gone for text, gone in texts(world) if text == "The deck is tarred."] == [True, False]


def test_an_old_file_and_the_database_it_went_into_are_one_in_either_order(make: Callable[[], World]) -> None:
    worlds = [make(), make()]
    for number, world in enumerate(worlds):
        folder = world.home / DATA / "goose" / "sessions"
        if number == 0:
            folder.mkdir(parents=True)
            shutil.copyfile(FIXTURES / "goose" / "20260601_1.jsonl", folder / "20260601_1.jsonl")
            world.index()
            assert texts(world)
            (folder / "20260601_1.jsonl").rename(world.folder / "away")
            folder.rmdir()
        path = goose(world)
        if number == 0:
            (world.folder / "away").rename(folder / "20260601_1.jsonl")
        else:
            shutil.copyfile(FIXTURES / "goose" / "20260601_1.jsonl", folder / "20260601_1.jsonl")
        with closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE messages SET content_json = replace(content_json, 'Heating.', 'Cooling.')")
            database.commit()
        world.index()
    assert story(worlds[0]) == story(worlds[1])
    found = [text for text, _ in texts(worlds[0])]
    assert (found.count("Cooling."), found.count("Heating."), found.count("Hot tar.")) == (1, 0, 1)


def test_a_newer_adapter_renames_and_flags_nothing(make: Callable[[], World]) -> None:
    world = make()
    path = goose(world)
    world.index()
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM messages WHERE id = 5")
        database.commit()
    world.index()
    before = story(world)
    assert [row[5] for row in before if row[6]] == ["And the mast"]
    with closing(sqlite3.connect(world.store / "outcrop.db")) as database:
        # As an adapter left it that named its events in another way.
        database.execute("UPDATE event SET uid = randomblob(16) WHERE NOT flags & ?", (DELETED,))
        database.execute("UPDATE file SET adapter_version = ? WHERE source = 'goose'", (load("goose").version - 1,))
        database.commit()
    world.index()
    assert story(world) == before
