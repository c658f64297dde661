"""Touches follow from stored events: in batches that may be cut anywhere, again where an event changed, never twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from outcrop.ingest import touching
from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded import rows
from outcrop.store.embedded.write import Writer
from world import Claude, World, use

BEAM = "src/beam.py"
ROWS = "SELECT x.text, t.time, t.event, t.effects, t.match, r.prefix FROM touch t JOIN path x ON x.id = t.path" \
       " LEFT JOIN root r ON r.id = x.root ORDER BY t.event, x.text"  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.write("K", "X", "Y", "W", "M")
    yield made
    made.close()


def touches(store: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store / "outcrop.db")) as db:
        return db.execute(ROWS).fetchall()


def change(store: Path, *statements: str) -> None:
    with closing(sqlite3.connect(store / "outcrop.db")) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def tools(world: World, path: str = BEAM) -> list[str | None]:
    inside = world.at(world.places().repository)
    data = inside.data("file_attention", path=path, granularity="events")
    inside.close()
    return [row["event"]["tool_name"] for row in data["events"]]


def test_a_store_of_before_gets_its_touches_without_its_sources(world: World) -> None:
    world.index()
    before = touches(world.store)
    assert before
    drop = [f"DROP TRIGGER {name}" for name in ("touch_changed", "touch_gone", "touch_hidden")]
    drop += [f"DROP TABLE {name}" for name in ("root", "path", "touch", "action", "touch_todo")]
    with sqlite3.connect(world.store / "outcrop.db") as db:
        later = ("page_%", "whole_%", "place_cwd", "text_todo_whole", "tombstone%", "purge_mark")
        drop += [
            f"DROP {kind} {name}"
            for pattern in later
            for kind, name in db.execute(
                "SELECT type, name FROM sqlite_master WHERE name LIKE ? AND sql IS NOT NULL", (pattern,)
            )
        ]
    db.close()
    drop += [f"ALTER TABLE session DROP COLUMN {name}" for name in ("messages", "opening", "whole")]
    drop += ["ALTER TABLE file DROP COLUMN erased"]
    change(world.store, *drop, "DELETE FROM meta WHERE k LIKE 'touches%'", "PRAGMA user_version = 1")
    for letter in world.sessions:
        world.sessions[letter].path(world.home).unlink()
    world.index()
    assert touches(world.store) == before
    assert tools(world) == ["Write", "apply_patch", "Bash", "Edit", "Read"]


def test_another_version_derives_everything_again(world: World) -> None:
    world.index()
    before = touches(world.store)
    change(world.store, "UPDATE meta SET v = 0 WHERE k = 'touches_version'", "DELETE FROM touch WHERE event % 2")
    world.index()
    assert touches(world.store) == before


def test_a_drain_that_is_cut_goes_on_where_it_stopped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.index()
    before = touches(world.store)
    change(world.store, "UPDATE meta SET v = 0 WHERE k = 'touches_version'")
    monkeypatch.setattr(touching, "AT_ONCE", 2)
    derive, batches = touching._Deriving._derive, iter(range(100))

    def cut(self: Any, events: Any) -> None:
        derive(self, events)
        if next(batches) == 3:
            raise KeyboardInterrupt

    writer = Writer(world.store)
    with monkeypatch.context() as patched:
        patched.setattr(touching._Deriving, "_derive", cut)
        with pytest.raises(KeyboardInterrupt):
            touching.drain(writer)
    assert 0 < writer.meta("touches_upto") < before[-1][2]
    assert touches(world.store) == [row for row in before if row[2] <= writer.meta("touches_upto")]
    assert touching.drain(writer) > 0
    assert touches(world.store) == before
    assert touching.drain(writer) == 0
    writer.close()


def test_what_changes_is_derived_again(world: World) -> None:
    world.index()
    edit = "(SELECT id FROM event WHERE tool = (SELECT id FROM name WHERE text = 'Edit') AND type = 3)"
    turn = f"(SELECT turn FROM event WHERE id = {edit})"
    changes = [
        (f"UPDATE event SET flags = flags | {rows.COPY}", f"UPDATE event SET flags = flags & ~{rows.COPY}", edit),
        ("UPDATE turn SET hidden = 2", "UPDATE turn SET hidden = 0", turn),
    ]
    everything = ["Write", "apply_patch", "Bash", "Edit", "Read"]
    left = [["Write", "apply_patch", "Bash", "Read"], ["Write", "apply_patch"]]
    for (away, back, which), remaining in zip(changes, left, strict=True):
        change(world.store, f"{away} WHERE id = {which}")
        world.index()
        assert tools(world) == remaining
        change(world.store, f"{back} WHERE id = {which}")
        world.index()
        assert tools(world) == everything
    change(world.store, f"UPDATE event SET time = time + 86400000 WHERE id = {edit}")
    world.index()
    assert tools(world)[0] == "Edit"
    change(world.store, f"DELETE FROM event WHERE id = {edit}")
    assert "Edit" not in tools(world)


def test_what_the_result_alone_knows_counts_and_nothing_twice(world: World) -> None:
    places = world.places()
    hidden = str(places.repository / "src" / "hidden.py")
    plain = str(places.repository / "src" / "plain.py")
    session = Claude("results", places.repository).user("21:00:00", "write")
    session.assistant("21:00:01", use("toolu_1", "Generate", what="a file"))
    session.result("21:00:02", ("toolu_1", "done"))
    session.lines[-1]["toolUseResult"] = {"type": "create", "filePath": hidden}
    session.assistant("21:00:03", use("toolu_2", "Write", file_path="src/plain.py", content="x"))
    session.result("21:00:04", ("toolu_2", "done"))
    session.lines[-1]["toolUseResult"] = {"type": "create", "filePath": plain}
    world.sessions["results"] = session
    world.save("results")
    world.index()
    assert tools(world, hidden) == ["Generate"]
    assert tools(world, plain) == ["Write"]
    inside = world.at(places.repository)
    [row] = inside.data("file_attention", path=hidden, granularity="events")["events"]
    assert row["event"]["phase"] == "response"
    assert world.data("open", id=row["id"])["event"]["type"] == "tool_response"
    inside.close()


def test_a_snapshot_adds_what_no_call_of_its_turn_changed(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    contents = [
        {"arguments": {"file_path": "/w/read.py"}},
        {"arguments": {"file_path": "/w/edited.py"}},
        {"extra": {"hash": "abc", "paths": ["/w/read.py", "/w/edited.py", "/w/alone.py"]}},
    ]
    kinds = (EventType.TOOL_CALL, EventType.TOOL_CALL, EventType.SYSTEM)
    with writer.transaction():
        session = writer.create_session(b"s" * 16, "opencode", "opencode", "s")
        writer.db.execute(
            "INSERT INTO turn (uid, session, file, generation, ord, place, started, updated, event_count)"
            " VALUES (?, ?, 1, 0, 1, 1, 0, 0, 3)", (b"t" * 16, session),
        )  # fmt: skip
        writer.add_block(writer.take("block"), session, [rows.encode_content(content) for content in contents])
        names = [writer.name("read"), writer.name("edit"), None]
        writer.insert_events(
            (writer.take("event"), bytes([place]) * 16, session, 1, place + 1, 1, 0, TYPE_CODE[kind], place, 0, 0, tool,
             None, None, None, None, 1, place)
            for place, (kind, tool) in enumerate(zip(kinds, names, strict=True))
        )  # fmt: skip
    touching.drain(writer)
    writer.close()
    found = [(row[0], row[2]) for row in touches(tmp_path)]
    assert found == [("/w/read.py", 1), ("/w/edited.py", 2), ("/w/alone.py", 3), ("/w/read.py", 3)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"file_path": "a", "content": "x" * 1000}, '{"file_path":"a","content":"' + "x" * 132),
        ({"_raw": "*** Begin\n\n  Patch"}, "*** Begin Patch"),
        ("  two   words ", "two words"),
        (None, ""),
    ],
)
def test_the_head_of_what_a_call_was_given(given: Any, shown: str) -> None:
    assert touching.action(given) == shown
