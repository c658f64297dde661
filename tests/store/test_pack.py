"""Small blocks of live events are packed; nothing that anyone reads changes."""

from __future__ import annotations

import pytest

from outcrop.errors import BackendFailure
from outcrop.store.embedded import pack
from outcrop.store.embedded.database import open_for_reading
from outcrop.store.embedded.write import Writer
from projection import projection
from world import Claude, World


def appended(world: World, turns: int, answered: bool = True) -> Claude:
    """A session that was read after each of its turns."""
    talk = Claude("L", world.places().plain)
    path = talk.path(world.home)
    path.parent.mkdir(parents=True, exist_ok=True)
    for turn in range(turns):
        talk.user(f"10:{turn:02}:00", f"look at lamp {turn}")
        if answered:
            talk.answer(f"10:{turn:02}:05", f"Lamp {turn} is lit.")
        world.sessions["L"] = talk
        world.save("L")
        world.index()
        if turn == 0:
            writer = Writer(world.store)
            assert pack.due(writer) == []  # what was there at first is packed well
            writer.close()
    return talk


def blocks(world: World) -> int:
    connection = open_for_reading(world.store)
    count: int = connection.execute("SELECT count(*) FROM block").fetchone()[0]
    connection.close()
    return count


def test_small_blocks_become_one_and_readers_see_no_difference(small_world: World) -> None:
    appended(small_world, 8)
    before, many = projection(small_world.store), blocks(small_world)
    reader = open_for_reading(small_world.store)
    reader.execute("BEGIN")
    old = reader.execute("SELECT id, z FROM block ORDER BY id").fetchall()
    writer = Writer(small_world.store)
    (session,) = pack.due(writer)
    saved = pack.pack(writer, session)
    pack.done(writer)
    assert pack.due(writer) == []
    assert writer.db.execute("SELECT count(*) FROM touch_todo").fetchone() == (0,)
    assert writer.db.execute("SELECT count(*) FROM text_todo").fetchone() == (0,)
    writer.close()
    assert (many, blocks(small_world)) == (8, 8 - saved)
    assert saved == 7
    assert projection(small_world.store) == before
    assert reader.execute("SELECT id, z FROM block ORDER BY id").fetchall() == old
    reader.close()
    small_world.index()
    assert projection(small_world.store) == before


def test_what_comes_after_is_packed_with_what_was_packed_before(small_world: World) -> None:
    talk = appended(small_world, 6, answered=False)
    writer = Writer(small_world.store)
    for session in pack.due(writer):
        pack.pack(writer, session)
    pack.done(writer)
    writer.close()
    assert blocks(small_world) == 1
    for turn in range(10, 14):
        talk.user(f"11:{turn}:00", f"lamp {turn} again").answer(f"11:{turn}:05", "Still lit.")
        small_world.save("L")
        small_world.index()
    before = projection(small_world.store)
    writer = Writer(small_world.store)
    for session in pack.due(writer):
        pack.pack(writer, session)
    writer.close()
    assert blocks(small_world) == 1
    assert projection(small_world.store) == before


def test_blocks_that_are_half_full_stay_as_they_are(small_world: World) -> None:
    talk = appended(small_world, 5)  # ten events
    writer = Writer(small_world.store)
    (session,) = pack.due(writer)
    assert pack.pack(writer, session) == 4
    pack.done(writer)
    kept = writer.db.execute("SELECT id, z FROM block").fetchall()
    writer.close()
    for turn in range(10, 14):
        talk.user(f"11:{turn}:00", f"lamp {turn} again")
        small_world.save("L")
        small_world.index()
    writer = Writer(small_world.store)
    assert pack.pack(writer, session) == 3
    stored = writer.db.execute("SELECT id, z FROM block").fetchall()
    writer.close()
    assert len(stored) == 2
    assert set(kept) < set(stored)


def test_messages_stand_in_small_blocks_and_tool_events_in_large_ones(small_world: World) -> None:
    talk = Claude("M", small_world.places().plain)
    for turn in range(40):
        use = {"type": "tool_use", "id": f"c{turn}", "name": "Bash", "input": {"command": f"lamp {turn}"}}
        talk.user(f"10:{turn:02}:00", f"look at lamp {turn}").assistant(f"10:{turn:02}:02", use)
        talk.answer(f"10:{turn:02}:05", f"Lamp {turn} is lit.")
    small_world.sessions["M"] = talk
    small_world.save("M")
    small_world.index()
    connection = open_for_reading(small_world.store)
    held = connection.execute(
        "SELECT max(b.events), max(e.type < 2) FROM block b JOIN event e ON e.block = b.id GROUP BY b.id, e.type < 2"
    ).fetchall()
    connection.close()
    assert max(events for events, talks in held if talks) == 16
    assert max(events for events, talks in held if not talks) == 40


def test_a_few_small_blocks_are_left_alone(small_world: World) -> None:
    appended(small_world, 3)
    writer = Writer(small_world.store)
    assert pack.due(writer) == []
    writer.close()


def test_packing_fails_as_a_whole(small_world: World) -> None:
    appended(small_world, 6)
    before, many = projection(small_world.store), blocks(small_world)
    writer = Writer(small_world.store)
    writer.db.execute("CREATE TEMP TRIGGER refuse BEFORE DELETE ON main.block BEGIN SELECT RAISE(ABORT, 'no'); END")
    (session,) = pack.due(writer)
    with pytest.raises(BackendFailure):
        pack.pack(writer, session)
    writer.close()
    assert blocks(small_world) == many
    assert projection(small_world.store) == before
