"""Typed ids (case group B): opaque, stable, and every one that is given out can be opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from world import SHARED_ID, World

KINDS = ("session", "turn", "event")


def sample(world: World) -> dict[str, str]:
    """One id of each kind, out of K."""
    opened = world.data("open", id=world.id("K"))
    turn = opened["traversal"]["first_turn_id"]
    event = world.data("open", id=turn)["traversal"]["first_event_id"]
    return {"session": world.id("K"), "turn": turn, "event": event}


def all_ids(world: World) -> dict[str, list[str]]:
    return {
        row["id"]: [turn["id"] for turn in world.children(row["id"], "turns", 10)] for row in world.sessions_of_day()
    }


def test_C026_the_same_files_give_the_same_ids(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        made = World(tmp_path / name)
        made.write("K", "X", "D")
        made.index()
        ids = all_ids(made)
        assert all(key.startswith("session:") for key in ids)
        assert all(turn.startswith("turn:") for turns in ids.values() for turn in turns)
        events = [event["id"] for event in made.events("X", 1)]
        assert all(event.startswith("event:") for event in events)
        found.append((ids, events))
        made.close()
    assert found[0] == found[1]


def test_C028_every_id_of_a_listing_and_of_a_traversal_opens(world: World) -> None:
    for row in world.sessions_of_day():
        opened = world.data("open", id=row["open"]["session_id"])
        assert opened["kind"] == "session"
        for name, target in opened["traversal"].items():
            assert target is None or world.data("open", id=target)["kind"] == _kind(name)
    for letter in ("K", "X"):
        for turn in world.turns(letter):
            opened = world.data("open", id=turn["id"])
            handles = {**opened["traversal"], "terminal_event_id": opened["turn"]["terminal_event_id"]}
            for name, target in handles.items():
                assert target is None or world.data("open", id=target)["kind"] == _kind(name)
        for event in world.contents(letter, 1):
            for name, target in event["traversal"].items():
                assert target is None or world.data("open", id=target)["kind"] == _kind(name)


def _kind(name: str) -> str:
    return next(kind for kind in KINDS if kind in name)


@pytest.mark.parametrize(
    "given", ["not-a-valid-id", "session:", "turn:abc", "event:***", "Session:ses_0000", "event:evt_"]
)
def test_C030_C032_C038_malformed_ids(world: World, given: str) -> None:
    error = world.call("open", id=given)["error"]
    assert error["code"] == "invalid_id"
    assert error["message"] == "id is not a valid Moraine MCP ID"
    assert error["details"]["field"] == "id"
    assert error["details"]["reason"]


@pytest.mark.parametrize("kind", KINDS)
def test_C031_a_well_formed_unknown_id_is_not_found(world: World, kind: str) -> None:
    known = sample(world)[kind]
    for unknown in (known[:-1] + ("0" if known[-1] != "0" else "2"), known[:-3], known + "0"):
        envelope = world.call("open", id=unknown)
        assert envelope["error"]["code"] == "not_found"
        assert envelope["error"]["message"] == f"{kind} not found"
        assert envelope["error"]["details"]["id"] == unknown
        assert envelope["request"] == {"id": unknown}


def test_C033_C038_ids_are_taken_as_they_are(world: World) -> None:
    for known in sample(world).values():
        for changed in (" " + known, known + " ", known.capitalize(), known.lower(), known.upper()):
            if changed != known:
                assert world.call("open", id=changed)["error"]["code"] == "invalid_id"


def test_C034_no_id_leads_to_another_turn(world: World) -> None:
    turn = sample(world)["turn"]
    body = turn.removeprefix("turn:turn_")
    for changed in ("0" + body, body[1:], body.replace(body[5], "O"), f"{turn}:0", "turn:turn_007", "turn:turn_99999"):
        given = changed if changed.startswith("turn:") else f"turn:turn_{changed}"
        if given != turn:
            assert world.call("open", id=given)["error"]["code"] in ("not_found", "invalid_id")


def test_C035_a_raw_id_with_a_blank_and_an_accent(world: World) -> None:
    assert " " in world.sessions["U"].session
    opened = world.data("open", id=world.id("U"))
    assert opened["session"]["turn_count"] == 1
    assert world.contents("U", 1)[0]["content"]["text"] == "hello puffin"


def test_C036_one_raw_id_in_two_harnesses_is_two_sessions(world: World) -> None:
    assert world.sessions["V1"].session == world.sessions["V2"].session == SHARED_ID
    first, second = (world.data("open", id=world.id(letter))["session"] for letter in ("V1", "V2"))
    assert first["id"] != second["id"]
    assert (first["harness"], second["harness"]) == ("claude-code", "codex")
    assert (first["event_count"], first["turn_count"], second["turn_count"]) == (2, 1, 1)


def test_C037_the_same_words_three_times_are_three_turns(world: World) -> None:
    turns = world.turns("D")
    assert [turn["user_input"]["text"] for turn in turns] == ["continue"] * 3
    assert [turn["final_response"]["text"] for turn in turns] == ["alpha one", "alpha two", "alpha three"]
    assert len({turn["user_input"]["event_id"] for turn in turns}) == 3
    assert len({turn["id"] for turn in turns}) == 3


def test_C024_a_refused_request_is_echoed_as_it_was(world: World) -> None:
    given: dict[str, Any] = {"id": "  ", "limit": None}
    assert world.call("open", given)["request"] == given
    assert world.call("search_sessions", {"query": "   "})["request"] == {"query": "   "}


def test_C025_the_same_call_gives_the_same_data(world: World) -> None:
    for letter in ("K", "X"):
        assert world.data("open", id=world.id(letter), limit=5) == world.data("open", id=world.id(letter), limit=5)
