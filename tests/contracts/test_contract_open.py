"""`open` (case group F): sessions, turns, events, and the pages between them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from world import DAY, LONG_TEXT, World

EVENT_KEYS = {"id", "ordinal", "type", "timestamp", "terminal", "tool_name", "model", "summary", "truncated"}


def only(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"]["type"] == kind]


def types(world: World, letter: str, turn: int) -> list[str]:
    return [event["type"] for event in world.events(letter, turn)]


# Sessions


def test_C133_a_session_by_its_id_alone(world: World) -> None:
    envelope = world.call("open", id=world.id("K"))
    data = envelope["data"]
    assert envelope["request"] == {"id": world.id("K")}
    assert (data["kind"], data["turns"], data["next_cursor"]) == ("session", [], None)
    session = data["session"]
    assert (session["turn_count"], session["title"], session["source"]) == (2, "Beacon timeout", "claude")
    turns = world.turns("K")
    assert data["traversal"]["first_turn_id"] == turns[0]["id"]
    assert data["traversal"]["last_turn_id"] == turns[-1]["id"]


def test_C134_sessions_are_a_chain_in_order_of_their_last_activity(world: World) -> None:
    rows = world.sessions_of_day(sort="asc")
    place = rows[0]["id"]
    assert world.data("open", id=place)["traversal"]["previous_session_id"] is None
    visited = [place]
    while (following := world.data("open", id=place)["traversal"]["next_session_id"]) is not None:
        assert world.data("open", id=following)["traversal"]["previous_session_id"] == place
        visited.append(following)
        place = following
    assert visited == [found["id"] for found in rows]


def test_C135_C136_a_session_turn_by_turn(world: World) -> None:
    first = world.call("open", id=world.id("K"), limit=1)
    assert first["request"] == {"id": world.id("K"), "limit": 1}
    assert [turn["ordinal"] for turn in first["data"]["turns"]] == [1]
    cursor = first["data"]["next_cursor"]
    second = world.call("open", cursor=cursor)
    assert second["request"] == {"cursor": cursor}
    assert [turn["ordinal"] for turn in second["data"]["turns"]] == [2]
    assert second["data"]["next_cursor"] is None


def test_C137_C138_the_summary_of_a_turn(world: World) -> None:
    turn = world.turns("K")[0]
    events = {event["id"]: event for event in world.events("K", 1)}
    assert turn["user_input"]["text"] == "Please fix the lighthouse beacon timeout in src/beam.py"
    assert turn["user_input"]["truncated"] is False
    assert turn["final_response"]["text"] == "Raised the beacon timeout to thirty seconds."
    assert turn["tools_called"] == ["Read", "Edit", "Bash"]
    assert turn["event_types"] == ["user_input", "reasoning", "assistant_response", "tool_call", "tool_response"]
    assert turn["completed"] is True
    assert turn["terminal_event_id"] == turn["final_response"]["event_id"]
    assert events[turn["terminal_event_id"]]["terminal"] is True
    assert sum(event["terminal"] for event in events.values()) == 1
    assert turn["event_count"] == len(events) == 10
    assert turn["open"] == {"turn_id": turn["id"], "terminal_event_id": turn["terminal_event_id"]}
    assert (turn["started_at"], turn["updated_at"]) == (f"{DAY}T10:00:00.000Z", f"{DAY}T10:00:30.000Z")


def test_C139_a_codex_turn(world: World) -> None:
    turn = world.turns("X")[0]
    assert turn["tools_called"] == ["exec_command", "apply_patch"]
    assert turn["final_response"]["text"] == "Harbour schema migrated."
    assert turn["completed"] is True
    assert [event["type"] for event in world.events("X", 1)].count("assistant_response") == 1
    assert [event["type"] for event in world.events("X", 1)].count("user_input") == 1


def test_C140_an_interrupted_turn_is_complete_without_an_answer(world: World) -> None:
    turn = world.turns("X")[1]
    assert (turn["completed"], turn["final_response"]) == (True, None)
    [terminal] = [event for event in world.events("X", 2) if event["terminal"]]
    assert terminal["id"] == turn["terminal_event_id"]
    assert terminal["type"] == "runtime"


def test_C141_a_turn_that_came_to_no_end(world: World) -> None:
    [turn] = world.turns("Y")
    assert (turn["completed"], turn["terminal_event_id"], turn["final_response"]) == (False, None, None)
    assert not any(event["terminal"] for event in world.events("Y", 1))


def test_C142_an_interim_answer_is_no_final_one(world: World) -> None:
    [turn] = world.turns("N")
    assert "assistant_response" in turn["event_types"]
    assert (turn["completed"], turn["terminal_event_id"], turn["final_response"]) == (False, None, None)


# Turns


def test_C143_a_turn_by_its_id_alone(world: World) -> None:
    turns = world.turns("K")
    for place, turn in enumerate(turns):
        data = world.data("open", id=turn["id"])
        assert (data["kind"], data["events"], data["next_cursor"]) == ("turn", [], None)
        assert data["turn"]["session_id"] == data["session"]["id"] == world.id("K")
        summary = {name: turn[name] for name in ("user_input", "final_response", "tools_called", "event_types")}
        assert data["summary"] == summary
        around = data["traversal"]
        assert around["session_id"] == world.id("K")
        assert around["previous_turn_id"] == (turns[place - 1]["id"] if place else None)
        assert around["next_turn_id"] == (turns[place + 1]["id"] if place + 1 < len(turns) else None)


def test_C144_a_turn_event_by_event(world: World) -> None:
    turn = world.turns("K")[0]
    page = world.data("open", id=turn["id"], limit=4)
    assert [event["ordinal"] for event in page["events"]] == [1, 2, 3, 4]
    assert [event["ordinal"] for event in world.children(turn["id"], "events", 4)] == list(range(1, 11))


def test_C144_events_of_one_and_the_same_time_are_paged_once_each(world: World) -> None:
    turn = world.turns("P")[6]
    assert turn["event_count"] >= 118
    events = world.children(turn["id"], "events", 7)
    assert [event["ordinal"] for event in events] == list(range(1, turn["event_count"] + 1))
    assert len({event["id"] for event in events}) == turn["event_count"]
    assert len({event["timestamp"] for event in events}) == 1


def test_C145_C147_event_summaries(world: World) -> None:
    for letter in ("K", "X"):
        for event in world.events(letter, 1):
            assert set(event) == EVENT_KEYS
            assert event["summary"]
            assert not event["truncated"] or 200 < len(event["summary"]) <= 240
    assert not any(event["truncated"] for event in world.events("K", 1))
    interim = world.events("N", 1)[1]
    assert (interim["summary"], interim["truncated"]) == ("I will look at the sail...", False)
    answer = world.events("L", 1)[1]
    assert answer["truncated"] is True
    assert len(answer["summary"]) <= 240


def test_C146_blocks_of_one_record_keep_their_order(world: World) -> None:
    events = world.events("K", 1)
    assert [event["type"] for event in events[:5]] == [
        "user_input",
        "reasoning",
        "assistant_response",
        "tool_call",
        "tool_response",
    ]
    assert {event["timestamp"] for event in events[1:4]} == {f"{DAY}T10:00:05.250Z"}


def test_tool_calls_are_summarised_by_what_they_do(world: World) -> None:
    calls = [event for event in world.events("K", 1) if event["type"] == "tool_call"]
    assert [call["tool_name"] for call in calls] == ["Read", "Edit", "Bash"]
    assert calls[2]["summary"] == "pytest -q tests/test_beam.py && cat src/beam.py"
    assert calls[0]["summary"].endswith("src/beam.py")


def test_C148_encrypted_reasoning(world: World) -> None:
    [summary] = [event for event in world.events("X", 1) if event["type"] == "reasoning"]
    assert (summary["summary"], summary["truncated"]) == ("[encrypted reasoning omitted]", False)
    content = world.data("open", id=summary["id"])["content"]
    assert content["format"] == "reasoning"
    assert content["encrypted_content"].startswith("gAAAAB")
    assert content["truncated"] is False


# Events


def test_C149_a_prompt(world: World) -> None:
    event = world.contents("K", 1)[0]
    assert event["content"] == {
        "format": "text",
        "text": "Please fix the lighthouse beacon timeout in src/beam.py",
        "truncated": False,
    }
    for name in ("model", "originating_model", "tool_name"):
        assert event["event"][name] is None


@pytest.mark.parametrize(("letter", "model"), [("K", "claude-x"), ("X", "gpt-x")])
def test_C150_C156_models(world: World, letter: str, model: str) -> None:
    events = world.contents(letter, 1)
    for event in only(events, "assistant_response"):
        assert event["event"]["originating_model"] == model
    assert only(events, "assistant_response")[-1]["event"]["model"] == model
    for kind in ("tool_call", "tool_response"):
        assert {event["event"]["originating_model"] for event in only(events, kind)} == {model}


def test_C151_C152_tool_calls(world: World) -> None:
    bash = only(world.contents("K", 1), "tool_call")[2]
    command = "pytest -q tests/test_beam.py && cat src/beam.py"
    assert bash["event"]["tool_name"] == bash["content"]["tool_name"] == "Bash"
    assert bash["content"]["format"] == "tool_call"
    assert bash["content"]["arguments"] == {"command": command}
    assert bash["content"]["text"] == f'Bash(command="{command}")'
    call, patch = only(world.contents("X", 1), "tool_call")
    assert call["content"]["arguments"]["cmd"] == "cargo test --workspace"
    assert "cargo test --workspace" in call["content"]["text"]
    assert "docs/new note.md" in json.dumps(patch["content"]["arguments"])


def test_C153_C154_C155_tool_responses(world: World) -> None:
    read, edit, bash = only(world.contents("K", 1), "tool_response")
    assert [event["content"]["tool_name"] for event in (read, edit, bash)] == ["Read", "Edit", "Bash"]
    assert read["content"]["text"] == "def beam(): timeout=5"
    assert bash["content"]["text"] == "1 failed AssertionError quasar"
    assert bash["content"]["is_error"] is True
    assert read["content"].get("is_error") is not True
    failed, patched = only(world.contents("X", 1), "tool_response")
    assert (failed["content"]["tool_name"], failed["content"]["exit_code"]) == ("exec_command", 101)
    assert (patched["content"]["tool_name"], patched["content"]["exit_code"]) == ("apply_patch", 0)


def test_C157_a_long_text_is_whole(world: World) -> None:
    content = world.contents("L", 1)[1]["content"]
    assert len(content["text"]) == 300_000
    assert content["text"] == LONG_TEXT
    assert content["truncated"] is False


def test_C158_parents(world: World) -> None:
    turns = world.turns("K")
    for place, turn in enumerate(turns, 1):
        for event in world.contents("K", place):
            assert event["event"]["session_id"] == event["traversal"]["session_id"] == world.id("K")
            assert event["event"]["turn_id"] == event["traversal"]["turn_id"] == turn["id"]
            assert event["turn"] == {"id": turn["id"], "ordinal": place, "completed": True}
            assert event["session"]["id"] == world.id("K")
            assert (event["session"]["title"], event["session"]["source"]) == ("Beacon timeout", "claude")


@pytest.mark.parametrize(("letter", "turn"), [("K", 1), ("X", 2)])
def test_C159_C160_events_are_a_chain_inside_their_turn(world: World, letter: str, turn: int) -> None:
    events = [event["id"] for event in world.events(letter, turn)]
    opened = world.contents(letter, turn)
    assert [event["traversal"]["previous_event_id"] for event in opened] == [None, *events[:-1]]
    assert [event["traversal"]["next_event_id"] for event in opened] == [*events[1:], None]


def test_C161_turns_are_a_chain_inside_their_session(world: World) -> None:
    turns = [turn["id"] for turn in world.turns("D")]
    for place, turn in enumerate(turns):
        opened = world.data("open", id=turn)["traversal"]
        event = world.data("open", id=opened["last_event_id"])["traversal"]
        for traversal in (opened, event):
            assert traversal["previous_turn_id"] == (turns[place - 1] if place else None)
            assert traversal["next_turn_id"] == (turns[place + 1] if place + 1 < len(turns) else None)


# Arguments and cursors


def test_C162_to_C168_arguments_at_fault(world: World) -> None:
    session, event = world.id("K"), world.events("K", 1)[0]["id"]
    for given in (
        {},
        {"id": ""},
        {"id": "  "},
        {"id": None},
        {"limit": 2},
        {"id": event, "limit": 2},
        {"id": session, "limit": 0},
        {"id": session, "limit": 51},
        {"id": session, "cursor": "x"},
        {"limit": 1, "cursor": "x"},
        {"id": session, "x": 1},
        {"id": 5},
    ):
        envelope = world.call("open", given)
        assert envelope["error"]["code"] == "invalid_request"
        assert envelope["error"]["details"]["field"]
        assert envelope["request"] == given


def test_C169_C172_cursors_that_are_none(world: World) -> None:
    good = world.data("open", id=world.id("P"), limit=1)["next_cursor"]
    other = world.data("list_sessions", start_datetime=f"{DAY}T00:00:00Z", end_datetime="2026-05-02T00:00:00Z", limit=1)
    changed = good[:-1] + ("A" if good[-1] != "A" else "B")
    for cursor in (changed, good[:-5], good[10:], other["next_cursor"], "x", "x" * 5000):
        error = world.call("open", cursor=cursor)["error"]
        assert (error["code"], error["details"]["field"]) == ("invalid_request", "cursor")
        assert "open" in error["message"] or "4096" in error["message"]


def test_C170_a_cursor_dies_with_the_history_that_it_walked_in(small_world: World) -> None:
    small_world.write("P")
    small_world.index()
    cursor = small_world.data("open", id=small_world.id("P"), limit=5)["next_cursor"]
    path = small_world.save("P")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not re.search(r"gull number [1-9]\"|Counted [1-9]\.", line)))
    small_world.index()
    envelope = small_world.call("open", cursor=cursor)
    assert envelope["error"]["code"] == "invalid_request"
    assert "again" in envelope["error"]["message"]


def test_C171_pages_go_on_while_the_session_does(small_world: World) -> None:
    small_world.write("D")
    small_world.index()
    session = small_world.id("D")
    turns = [turn["id"] for turn in small_world.turns("D")]
    first = small_world.data("open", id=session, limit=1)
    rollout = small_world.sessions["D"]
    rollout.begin("16:00:00", "continue").answer("16:00:05", "alpha four")  # type: ignore[union-attr]
    small_world.save("D")
    small_world.index()
    paged, page = [turn["id"] for turn in first["turns"]], first
    while page["next_cursor"]:
        page = small_world.data("open", cursor=page["next_cursor"])
        paged += [turn["id"] for turn in page["turns"]]
    assert paged == turns
    assert [turn["id"] for turn in small_world.turns("D")][:3] == turns
    assert len(small_world.turns("D")) == 4


def test_C173_a_session_by_its_id_alone_is_small(world: World) -> None:
    assert len(json.dumps(world.call("open", id=world.id("P")))) < 8_000
    for letter in ("K", "L"):
        assert "tide" not in json.dumps(world.data("open", id=world.id(letter)))


def test_C174_the_text_block_holds_the_text_of_an_event(world: World) -> None:
    for event in world.contents("K", 1):
        shown = world._ask("tools/call", {"name": "open", "arguments": {"id": event["event"]["id"]}})
        assert event["content"]["text"] in shown["content"][0]["text"]
    long = world.events("L", 1)[1]["id"]
    shown = world._ask("tools/call", {"name": "open", "arguments": {"id": long}})["content"][0]["text"]
    assert "more characters" in shown
    assert len(shown) < 18_000


def test_R8_what_is_not_understood_can_be_opened_as_it_stands(world: World) -> None:
    [turn] = world.turns("R")
    assert "unknown" not in turn["event_types"]
    [summary] = [event for event in world.events("R", 1) if event["type"] == "unknown"]
    assert summary["summary"].startswith('{"')
    content = world.data("open", id=summary["id"])["content"]
    assert json.loads(content["text"])["beam"] == {"angle": 30, "colour": "grün"}


def test_text_blocks_carry_every_id_of_a_next_step(world: World) -> None:
    session, turns = world.id("K"), world.turns("K")
    for arguments, wanted in (
        ({"id": session}, [session, turns[0]["id"], turns[1]["id"], "Beacon timeout"]),
        ({"id": session, "limit": 1}, [turns[0]["id"], "next_cursor: ", "Raised the beacon timeout"]),
        ({"id": turns[0]["id"]}, [session, turns[1]["id"], "Read, Edit, Bash", "lighthouse beacon"]),
        ({"id": turns[0]["id"], "limit": 9}, [*[event["id"] for event in world.events("K", 1)[:9]], "pytest -q"]),
    ):
        shown = world._ask("tools/call", {"name": "open", "arguments": arguments})["content"][0]["text"]
        for word in wanted:
            assert word in shown


# What harnesses write under the user's name


def test_C176_a_compaction_opens_no_turn(world: World) -> None:
    [turn] = world.turns("C")
    assert turn["user_input"]["text"] == "Sort the nets"
    assert turn["final_response"]["text"] == "Nets sorted."
    found = types(world, "C", 1)
    assert found.count("compaction") == 1
    assert found.count("user_input") == 1


@pytest.mark.parametrize(("letter", "prompt"), [("I1", "🪝"), ("I2", "count the oars")])
def test_C177_injected_context_opens_no_turn(world: World, letter: str, prompt: str) -> None:
    [turn] = world.turns(letter)
    assert turn["user_input"]["text"].startswith(prompt)
    assert types(world, letter, 1).count("user_input") == 1


def test_C178_parallel_calls_are_answered_under_their_own_names(world: World) -> None:
    events = world.contents("G", 1)
    assert [event["content"]["tool_name"] for event in only(events, "tool_call")] == ["Read", "Grep", "Bash"]
    answers = {event["content"]["text"]: event["content"]["tool_name"] for event in only(events, "tool_response")}
    assert answers == {"a": "Read", "b": "Grep", "c": "Bash"}


def test_R11_own_tools_have_one_name_and_keep_the_other(world: World) -> None:
    call, other = only(world.contents("M", 1), "tool_call")
    assert (call["content"]["tool_name"], other["content"]["tool_name"]) == ("search_sessions", "file_attention")
    assert call["content"]["original_tool_name"] == "mcp__moraine__search_sessions"
