"""Blocks of types that no adapter knows: counted under their own name, and kept whole, wherever they stand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homes import write_lines
from outcrop.ingest.drift import strange_blocks
from outcrop.model import Event, EventType, Parsed
from outcrop.store.embedded import rows
from world import Claude, World, use

HOLOGRAM = {"type": "hologram", "depth": 3, "key": "sk-ant-api03-" + "a" * 93 + "AA"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def unknown(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.run("status", "--json").json["unknown"]
    return found


def kept(world: World) -> list[Any]:
    """What is kept beside the events of blocks."""
    with closing(sqlite3.connect(world.store / "outcrop.db")) as database:
        found = database.execute("SELECT z FROM kept WHERE reason = 'unknown block' ORDER BY id").fetchall()
    return [json.loads(rows.decompress(data)) for (data,) in found]


def test_a_strange_block_among_others_is_counted_with_the_version(world: World) -> None:
    told = Claude("K", world.folder).user("08:00:00", "light the lamp").answer("08:00:05", "Lit.")
    told.lines[-1]["message"]["content"].insert(0, dict(HOLOGRAM))
    path = write_lines(told.path(world.home), told.lines)
    world.index()
    version = told.lines[-1]["version"]
    assert unknown(world) == [
        {"harness": "claude-code", "version": version, "kind": "assistant/block:hologram", "records": 1, "of": 2}
    ]
    assert world.run("status").out.count("assistant/block:hologram") == 1
    with closing(sqlite3.connect(world.store / "outcrop.db")) as database:
        assert database.execute("SELECT count(*) FROM event WHERE type = 8").fetchone() == (1,)
    assert kept(world) == [], "an event holds it"
    # A copy of it in another session is no news, and neither is a second look.
    world.index("--full")
    write_lines(path, [*told.lines, *Claude("K", world.folder).user("08:01:00", "thanks").lines])
    world.index()
    assert [one["records"] for one in unknown(world)] == [1]


def test_a_strange_block_inside_a_result_is_counted_and_kept(world: World) -> None:
    told = Claude("K", world.folder).user("08:00:00", "light the lamp")
    told.assistant("08:00:01", use("toolu_1", "Read", file_path="/x"), stop="tool_use")
    told.result("08:00:02", ("toolu_1", "seen"))
    (block,) = told.lines[-1]["message"]["content"]
    block["content"] = [{"type": "text", "text": "seen"}, dict(HOLOGRAM), {"type": "tape", "text": "heard"}]
    write_lines(told.path(world.home), told.lines)
    world.index()
    assert {one["kind"].split(":")[1]: one["records"] for one in unknown(world)} == {"hologram": 1, "tape": 1}
    hologram, tape = kept(world)
    assert (hologram["depth"], hologram["key"].startswith("[REDACTED:")) == (3, True)
    assert tape == {"type": "tape", "text": "heard"}
    assert world.data("search_sessions", query="heard", event_types=["tool_response"])["results"]


def test_blocks_of_a_database_are_counted(world: World) -> None:
    path = world.home / ".local/share/goose/sessions/sessions.db"
    path.parent.mkdir(parents=True)
    sql = (Path(__file__).parent.parent / "fixtures" / "goose" / "sessions.sql").read_text("utf-8")
    with closing(sqlite3.connect(path)) as database:
        database.executescript(sql)
    world.index()
    assert {(one["kind"], one["records"]) for one in unknown(world)} == {
        ("message/assistant/block:lighthouse", 1),
        ("message/assistant", 1),
    }


def test_a_record_that_is_unknown_as_a_whole_has_no_block() -> None:
    record = {"type": "new", "content": [{"type": "a"}]}
    whole = Parsed("new", [Event("k", EventType.UNKNOWN, raw=record)])
    assert strange_blocks(whole, record, []) == []
    (one,) = strange_blocks(whole, record, [record["content"][0]])  # type: ignore[list-item]
    assert (one.type, one.held) == ("a", True), "the record is kept, and it with that"


VALUE = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(VALUE)
def test_no_shape_is_an_error(value: Any) -> None:
    record = {"value": value, "list": [value]}
    found = strange_blocks(Parsed("x", [Event("k", EventType.UNKNOWN, raw=value)]), record, [{"kind": value}])
    assert len(found) == (1 if value is None else 2)
    assert all(one.type for one in found)
