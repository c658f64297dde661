"""`outcrop rescrub` as a process: secrets that were stored while masking was off, or before a rule was known."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from erased import pending, remains
from homes import write_lines
from world import Claude, World, at, say, use

TOKENS = (
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghp_26C7e42F292c6912E7710c838347Ae178B4b",
    "ghp_36C7e42F292c6912E7710c838347Ae178B4c",
    "ghp_46C7e42F292c6912E7710c838347Ae178B4d",
    "ghp_56C7e42F292c6912E7710c838347Ae178B4e",
    "ghp_66C7e42F292c6912E7710c838347Ae178B4f",
)
"""In a prompt, the arguments of a call, its result, a title, an unknown record and a broken line."""
MASK = "[REDACTED:github-token]"


def leaking(folder: Path) -> Claude:
    env = str(folder / "env")
    return (
        Claude("leak", folder)
        .user("20:00:00", f"use the token {TOKENS[0]} for the harbour")
        .assistant("20:00:02", say("I try it."), use("toolu_1", "Write", file_path=env, content=TOKENS[1]))
        .result("20:00:04", ("toolu_1", f"wrote {TOKENS[2]}"))
        .record("hologram", at("20:00:05"), beam={"token": TOKENS[4]})
        .answer("20:00:09", "The harbour is open.")
        .bare(type="ai-title", aiTitle=f"Harbour {TOKENS[3]}")
    )


@pytest.fixture
def world(small_world: World) -> World:
    """A history that was indexed with masking switched off, and is to be read by a configuration without a word."""
    small_world.write("K", "X")
    made = leaking(small_world.places().plain)
    path = write_lines(made.path(small_world.home), made.lines)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write('{"type": "user", "broken ' + TOKENS[5] + "\n")
    small_world.store.mkdir()
    config = small_world.store / "config.toml"
    config.write_text("[redaction]\nenabled = false\n", encoding="utf-8")
    small_world.index()
    config.unlink()
    return small_world


def ids(store: Path) -> list[tuple[Any, ...]]:
    """Every id of the history."""
    db = sqlite3.connect(store / "outcrop.db")
    found = []
    for table in ("session", "turn", "event"):
        found += db.execute(f"SELECT '{table}', id, uid FROM {table} ORDER BY id").fetchall()
    db.close()
    return found


def test_every_secret_is_masked_everywhere_and_ids_stay(world: World) -> None:
    assert {token for _, token in remains(world.store, TOKENS)} == set(TOKENS), "the look can fail"
    before = ids(world.store)
    done = world.run("rescrub", "--json")
    assert done.code == 0, done
    told = done.json
    assert told["masked"]["github-token"] >= len(TOKENS)
    assert told["events"] == 4
    assert told["proof"]["status"] == "proven"
    assert told["proof"]["words"] > 0
    assert (told["proof"]["words_left"], told["proof"]["secrets_left"]) == (0, 0)
    assert remains(world.store, TOKENS) == []
    assert ids(world.store) == before
    [session] = [row for row in world.sessions_of_day() if row["session"]["display_label"].startswith("Harbour")]
    assert session["session"]["display_label"] == f"Harbour {MASK}"
    [hit] = world.data("search_sessions", query="use the token for the harbour")["results"][:1]
    assert MASK in hit["snippet"]["text"]
    calls = world.data("search_sessions", query="env", event_types=["tool_call"])["results"]
    opened = world.data("open", id=calls[0]["event"]["id"] if "event" in calls[0] else calls[0]["id"])
    assert MASK in json.dumps(opened)
    assert world.run("touches", "env", "--scope", "all").code == 0


def test_it_is_masked_once_and_reading_again_changes_nothing(world: World) -> None:
    world.run("rescrub")
    before = ids(world.store)
    again = world.run("rescrub", "--json")
    assert (again.code, again.json) == (0, {"masked": {}, "events": 0, "proof": None})
    assert not pending(world)
    world.index("--full")
    assert remains(world.store, TOKENS) == []
    assert ids(world.store) == before
    assert "nothing had to be masked" in world.run("rescrub").out


def test_a_source_that_is_gone_is_no_hindrance(world: World) -> None:
    leaking(world.places().plain).path(world.home).unlink()
    world.index()
    assert world.run("rescrub").code == 0
    assert remains(world.store, TOKENS) == []


@pytest.mark.parametrize(
    "step",
    ["rescrub-begun", "rescrub-session:1", "rescrub-session:3", "purge-text", "purge-renewed", "purge-truncated"],
)
def test_killed_at_any_step_the_next_index_finishes(world: World, step: str) -> None:
    assert world.run("rescrub", OUTCROP_FAULT=f"kill:{step}").code == -9
    assert pending(world)
    assert world.index().err == ""
    assert not pending(world)
    assert remains(world.store, TOKENS) == []


def test_masking_that_is_switched_off_is_still_masking_when_asked_for(world: World) -> None:
    (world.store / "config.toml").write_text("[redaction]\nenabled = false\n", encoding="utf-8")
    assert world.run("rescrub").code == 0
    assert remains(world.store, TOKENS) == []
    world.index()
    assert remains(world.store, TOKENS) == []
