"""`outcrop rebuild` as a command, and what is answered while no index, a damaged one or a successor is there."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homes import many_turns
from world import World


@pytest.fixture(params=["call", "mcp"])
def indexed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, door=request.param)
    made.write("K", "X", "D")
    many_turns(made.home, made.places().plain, "long", 400)
    made.index()
    yield made
    made.close()


def found(world: World) -> list[list[str]]:
    """Hits of some queries; each must answer."""
    told = []
    for query in ("beacon", "harbour schema", "tide", "question 31", "naive"):
        data = world.data("search_sessions", query=query, n_hits=50)
        told.append([hit["id"] for hit in data["results"]])
    return told


def folders(world: World) -> list[str]:
    return sorted(path.name for path in (world.store / "text").iterdir())


def damage(world: World, pattern: str) -> None:
    paths = list((world.store / "text").glob(f"*/{pattern}"))
    assert paths
    for path in paths:
        data = path.read_bytes()
        path.write_bytes(random.Random(1).randbytes(len(data)))


def is_rebuilding(envelope: dict[str, Any]) -> bool:
    """Ruling 18."""
    error = envelope["error"]
    assert error["code"] == "internal_error"
    assert str(Path.home()) not in error["message"]
    details = error["details"]
    return details["reason"] == "read_model_refresh" and details["retryable"] is True and details["retry_after_ms"] > 0


def test_a_rebuild_changes_nothing_but_the_folder(indexed: World) -> None:
    before = found(indexed)
    assert all(before)
    assert folders(indexed) == ["text-1"]
    done = indexed.run("rebuild")
    assert (done.code, done.err) == (0, "")
    assert "documents indexed anew" in done.out
    assert folders(indexed) == ["text-2"]
    assert found(indexed) == before
    assert indexed.run("rebuild").code == 0
    assert folders(indexed) == ["text-3"]
    assert found(indexed) == before


def test_searches_go_on_whole_while_the_index_is_rebuilt(indexed: World) -> None:
    before = [sorted(ids) for ids in found(indexed)]
    rounds = 0
    for _ in range(2):
        run = subprocess.Popen(
            [sys.executable, "-m", "outcrop", "rebuild"], env=indexed.environment, stdout=subprocess.DEVNULL
        )
        while run.poll() is None:
            assert [sorted(ids) for ids in found(indexed)] == before
            rounds += 1
        assert run.returncode == 0
    assert rounds > 1


def test_a_sound_index_that_is_being_replaced_is_not_called_partial(indexed: World) -> None:
    from outcrop.store.embedded.database import open_for_writing
    from outcrop.store.embedded.text import rebuild

    db = open_for_writing(indexed.store)
    rebuild(db)  # a run that was killed right after it began
    assert db.execute("SELECT count(*) FROM text_todo").fetchone()[0] > 1000
    db.close()
    assert indexed.call("search_sessions", query="beacon")["warnings"] == []
    indexed.index()
    assert folders(indexed) == ["text-2"]


@pytest.mark.parametrize("pattern", ["meta.json", "*.term", "*.idx", "*.fast", "*.pos", "*.store"])
def test_a_damaged_index_is_an_error_without_paths_until_it_is_rebuilt(indexed: World, pattern: str) -> None:
    before = found(indexed)
    indexed.close()
    damage(indexed, pattern)
    envelope = indexed.call("search_sessions", query='"beacon timeout"')
    if "error" in envelope:
        assert envelope["error"]["code"] == "backend_failure" or is_rebuilding(envelope)
        assert str(indexed.store) not in str(envelope)
    done = indexed.run("rebuild")
    assert done.code == 0, done.err
    assert found(indexed) == before
    assert len(folders(indexed)) == 1


@pytest.mark.parametrize("lost", ["text", "meta.json"])
def test_R18_without_a_usable_index_a_search_says_when_to_come_again(indexed: World, lost: str) -> None:
    before = found(indexed)
    if lost == "text":
        shutil.rmtree(indexed.store / "text")
    else:
        damage(indexed, lost)
    assert is_rebuilding(indexed.call("search_sessions", query="beacon"))
    told = indexed.run("call", "search_sessions", '{"query": "beacon"}')
    assert told.code == 3
    assert is_rebuilding(told.json)
    assert indexed.run("events", "beacon").code == 3
    assert "error" not in indexed.call(
        "list_sessions", start_datetime="2026-05-01T00:00:00Z", end_datetime="2026-05-02T00:00:00Z"
    )
    indexed.index()  # it heals itself
    assert found(indexed) == before


def test_nothing_to_rebuild(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.places()
    done = world.run("rebuild")
    assert done.code == 3
    assert "outcrop index" in done.err
    assert done.out == ""
    assert not (world.store / "text").exists()
