"""The specification's own examples as shapes: which fields there are, no more and no fewer, and of what type.

A shape is a tree: a mapping of names to shapes, a list of one shape for a list of any length, or the word for a value.
`text?` may be null too; a name with a question mark may be missing. Where the rulings give an object more than its
example (2, 3), the shape has both. Answers come from the real command, through both doors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.world import WHOLE_DAY, World

Shape = dict[str, Any] | list[Any] | str

WORDS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "words": lambda value: isinstance(value, str) and value.strip() != "",
    "flag": lambda value: isinstance(value, bool),
    "count": lambda value: type(value) is int and value >= 0,
    "place": lambda value: type(value) is int and value >= 1,
    "score": lambda value: isinstance(value, int | float) and 0 <= value <= 1,
    "time": lambda value: bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value)),
    "session": lambda value: bool(re.fullmatch(r"session:\S+", value)),
    "turn": lambda value: bool(re.fullmatch(r"turn:\S+", value)),
    "event": lambda value: bool(re.fullmatch(r"event:\S+", value)),
    "object": lambda value: isinstance(value, dict),
    "any": lambda value: True,
}


def check(value: Any, shape: Shape, at: str = "$") -> None:
    """Hold a value against a shape; the message says where it differs."""
    if isinstance(shape, str):
        if shape.startswith("="):
            assert value == shape[1:], at
        elif not (shape.endswith("?") and value is None):
            assert WORDS[shape.removesuffix("?")](value), f"{at}: {value!r} is no {shape}"
    elif isinstance(shape, list):
        assert isinstance(value, list), at
        for place, item in enumerate(value):
            check(item, shape[0], f"{at}[{place}]")
    elif "?" in shape:
        if value is not None:
            check(value, {name: inner for name, inner in shape.items() if name != "?"}, at)
    else:
        assert isinstance(value, dict), at
        needed = {name for name in shape if not name.endswith("?")}
        allowed = {name.removesuffix("?") for name in shape}
        assert needed <= set(value) <= allowed, f"{at}: {needed ^ set(value)}"
        for name, inner in value.items():
            check(inner, shape.get(name, shape.get(f"{name}?")), f"{at}.{name}")


def envelope(tool: str, request: Shape, data: Shape) -> Shape:
    return {
        "schema_version": f"=moraine.mcp.{tool}.v1",
        "tool": f"={tool}",
        "request": request,
        "data": data,
        "warnings": ["words"],
        "performance": {"elapsed_ms": "count"},
    }


def error(tool: str, request: Shape, code: str, details: Shape) -> Shape:
    return {
        "schema_version": "=moraine.mcp.error.v1",
        "tool": f"={tool}",
        "request": request,
        "error": {"code": f"={code}", "message": "words", "details": details},
        "warnings": ["words"],
        "performance": {"elapsed_ms": "count"},
    }


SEARCH_REQUEST = {
    "query": "words",
    "within_id": "text?",
    "event_types": ["words"],
    "harness": "text?",
    "source": "text?",
    "n_hits": "place",
}
HIT = {
    "rank": "place",
    "score": "score",
    "id": "event",
    "event": {"id": "event", "type": "words", "timestamp": "time", "ordinal": "place", "terminal": "flag"},
    "turn": {"id": "turn", "ordinal": "place", "completed": "flag", "event_count": "place"},
    "session": {
        "id": "session",
        "title": "text?",
        "source": "words",
        "harness": "words",
        "started_at": "time",
        "updated_at": "time",
        "completed": "flag",
    },
    "snippet": {"text": "words", "truncated": "flag"},
    "open": {"event_id": "event", "turn_id": "turn", "session_id": "session"},
}
SEARCH = envelope(
    "search_sessions",
    SEARCH_REQUEST,
    {"result_count": "count", "limit": "place", "truncated": "flag", "results": [HIT]},
)
SESSION = {
    "id": "session",
    "title": "text?",
    "display_label": "words",
    "source": "words",
    "harness": "words",
    "started_at": "time",
    "updated_at": "time",
    "completed": "flag",
    "turn_count": "count",
    "event_count": "place",
    "mode": "words",
    "session_slug": "text?",
    "session_summary": "text?",
}
LIST = envelope(
    "list_sessions",
    {
        "start_datetime": "words",
        "end_datetime": "words",
        "limit": "place",
        "cursor": "text?",
        "mode": "text?",
        "harness": "text?",
        "source": "text?",
        "sort": "words",
    },
    {
        "result_count": "count",
        "limit": "place",
        "truncated": "flag",
        "sessions": [{"rank": "place", "id": "session", "session": SESSION, "open": {"session_id": "session"}}],
        "next_cursor": "text?",
    },
)
PREVIEW = {"?": True, "event_id": "event", "text": "words", "truncated": "flag"}
SUMMARY = {"user_input": PREVIEW, "final_response": PREVIEW, "tools_called": ["words"], "event_types": ["words"]}
TURN = {
    "ordinal": "place",
    "completed": "flag",
    "terminal_event_id": "event?",
    "event_count": "place",
    "started_at": "time",
    "updated_at": "time",
}
OPEN_SESSION = envelope(
    "open",
    {"id?": "session", "limit?": "place", "cursor?": "words"},
    {
        "kind": "=session",
        "session": {**SESSION, "relation?": "words", "parent_session_id?": "session?"},
        "turns": [{"id": "turn", **TURN, **SUMMARY, "open": {"turn_id": "turn", "terminal_event_id": "event?"}}],
        "next_cursor": "text?",
        "traversal": {
            "previous_session_id": "session?",
            "next_session_id": "session?",
            "first_turn_id": "turn?",
            "last_turn_id": "turn?",
        },
    },
)
BRIEF = {"id": "session", "title": "text?", "source": "words", "harness": "words"}
OPEN_TURN = envelope(
    "open",
    {"id?": "turn", "limit?": "place", "cursor?": "words"},
    {
        "kind": "=turn",
        "turn": {"id": "turn", "session_id": "session", **TURN},
        "session": BRIEF,
        "summary": SUMMARY,
        "events": [
            {
                "id": "event",
                "ordinal": "place",
                "type": "words",
                "timestamp": "time",
                "terminal": "flag",
                "tool_name": "text?",
                "model": "text?",
                "summary": "text",
                "truncated": "flag",
            }
        ],
        "next_cursor": "text?",
        "traversal": {
            "session_id": "session",
            "previous_turn_id": "turn?",
            "next_turn_id": "turn?",
            "first_event_id": "event?",
            "last_event_id": "event?",
        },
    },
)
CONTENT: dict[str, Shape] = {
    "user_input": {"format": "=text", "text": "words", "truncated": "flag"},
    "assistant_response": {"format": "=text", "text": "words", "truncated": "flag"},
    "tool_call": {
        "format": "=tool_call",
        "tool_name": "words",
        "arguments": "object",
        "text": "words",
        "original_tool_name?": "words",
        "truncated": "flag",
    },
    "tool_response": {
        "format": "=tool_response",
        "tool_name": "words",
        "exit_code?": "count",
        "is_error?": "flag",
        "text": "text",
        "original_tool_name?": "words",
        "truncated": "flag",
    },
    "reasoning": {"format": "=reasoning", "text": "words", "encrypted_content?": "words", "truncated": "flag"},
}


def open_event(content: Shape) -> Shape:
    return envelope(
        "open",
        {"id": "event"},
        {
            "kind": "=event",
            "event": {
                "id": "event",
                "session_id": "session",
                "turn_id": "turn",
                "ordinal": "place",
                "type": "words",
                "timestamp": "time",
                "terminal": "flag",
                "model": "text?",
                "originating_model": "text?",
                "tool_name": "text?",
            },
            "content": content,
            "session": BRIEF,
            "turn": {"id": "turn", "ordinal": "place", "completed": "flag"},
            "traversal": {
                "session_id": "session",
                "turn_id": "turn",
                "previous_event_id": "event?",
                "next_event_id": "event?",
                "previous_turn_id": "turn?",
                "next_turn_id": "turn?",
            },
        },
    )


def test_a_default_search(world: World) -> None:
    answer = world.call("search_sessions", query="beacon timeout")
    check(answer, SEARCH)
    assert answer["request"]["event_types"] == ["user_input", "assistant_response"]
    assert answer["request"]["n_hits"] == answer["data"]["limit"] == 10
    results = answer["data"]["results"]
    assert [hit["rank"] for hit in results] == list(range(1, answer["data"]["result_count"] + 1))
    assert results
    for hit in results:
        assert hit["id"] == hit["event"]["id"] == hit["open"]["event_id"]
        assert hit["turn"]["id"] == hit["open"]["turn_id"]
        assert hit["session"]["id"] == hit["open"]["session_id"]


def test_a_search_within_a_turn(world: World) -> None:
    turn = world.turns("K")[0]["id"]
    answer = world.call("search_sessions", query="quasar", within_id=turn, event_types=["tool_response"], n_hits=3)
    check(answer, SEARCH)
    assert answer["request"]["within_id"] == turn
    [hit] = answer["data"]["results"]
    assert hit["turn"]["id"] == turn
    assert hit["event"]["type"] == "tool_response"


def test_a_search_without_hits(world: World) -> None:
    answer = world.call("search_sessions", query="qqqxyzzy", n_hits=5)
    check(answer, SEARCH)
    data = {"result_count": 0, "limit": 5, "truncated": False, "results": []}
    assert answer["data"] == data


def test_a_listing(world: World) -> None:
    answer = world.call("list_sessions", **WHOLE_DAY)
    check(answer, LIST)
    assert answer["data"]["result_count"] == 19
    assert (answer["request"]["sort"], answer["request"]["limit"]) == ("desc", 20)
    page = world.call("list_sessions", **WHOLE_DAY, limit=3, mode="chat")
    check(page, LIST)
    assert page["data"]["next_cursor"]


@pytest.mark.parametrize("letter", ["K", "X", "Y", "N", "R", "C"])
def test_an_opened_session_alone_and_with_a_page_of_turns(world: World, letter: str) -> None:
    alone = world.call("open", id=world.id(letter))
    check(alone, OPEN_SESSION)
    assert alone["data"]["turns"] == []
    assert alone["data"]["next_cursor"] is None
    page = world.call("open", id=world.id(letter), limit=2)
    check(page, OPEN_SESSION)
    assert page["data"]["turns"]


def test_a_continued_session(world: World) -> None:
    first = world.call("open", id=world.id("D"), limit=2)
    check(first, OPEN_SESSION)
    rest = world.call("open", cursor=first["data"]["next_cursor"])
    check(rest, OPEN_SESSION)
    assert list(rest["request"]) == ["cursor"]


@pytest.mark.parametrize(("letter", "turn", "completed"), [("K", 1, True), ("X", 2, True), ("Y", 1, False)])
def test_an_opened_turn(world: World, letter: str, turn: int, completed: bool) -> None:
    id = world.turns(letter)[turn - 1]["id"]
    for arguments in ({"id": id}, {"id": id, "limit": 4}):
        answer = world.call("open", arguments)
        check(answer, OPEN_TURN)
        data = answer["data"]
        assert len(data["events"]) == min(data["turn"]["event_count"], arguments.get("limit", 0))
        assert data["turn"]["completed"] is completed
        if not completed:
            assert data["turn"]["terminal_event_id"] is None
            assert data["summary"]["final_response"] is None


@pytest.mark.parametrize("kind", CONTENT)
def test_an_opened_event(world: World, kind: str) -> None:
    checked = 0
    for letter, turn in (("K", 1), ("X", 1), ("M", 1), ("G", 1)):
        for event in world.events(letter, turn):
            if event["type"] == kind:
                answer = world.call("open", id=event["id"])
                check(answer, open_event(CONTENT[kind]))
                assert answer["data"]["content"]["truncated"] is False
                assert answer["data"]["event"]["id"] == answer["request"]["id"]
                checked += 1
    assert checked


def test_what_a_failed_command_tells(world: World) -> None:
    [response] = [
        event["content"]
        for event in world.contents("X", 1)
        if event["content"]["format"] == "tool_response" and "exit_code" in event["content"]
    ][:1]
    assert response["exit_code"] == 101


FIELD: Shape = {"field": "words"}
ERRORS: dict[str, tuple[str, dict[str, Any], str, Shape]] = {
    "a blank query": ("search_sessions", {"query": "   "}, "invalid_request", FIELD),
    "an event type that there is not": (
        "search_sessions",
        {"query": "migration", "event_types": ["user_input", "debug_trace"]},
        "unsupported_event_type",
        {"field": "=event_types", "supported": ["words"]},
    ),
    "a malformed id": ("open", {"id": "not-a-valid-id"}, "invalid_id", {"field": "=id", "reason": "words"}),
    "a missing object": (
        "open",
        {"id": "event:evt_01J9DOESNOTEXIST000000000000"},
        "not_found",
        {"kind": "=event", "id": "event"},
    ),
    "a page of an event": (
        "open",
        {"id": "event:evt_01J9DOESNOTEXIST000000000000", "limit": 3},
        "invalid_request",
        FIELD,
    ),
    "a datetime without its zone": (
        "list_sessions",
        {"start_datetime": "2026-05-01T00:00:00", "end_datetime": "2026-05-02T00:00:00Z"},
        "invalid_request",
        FIELD,
    ),
    "an unknown field": ("open", {"id": "x", "depth": 2}, "invalid_request", FIELD),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error(world: World, name: str) -> None:
    tool, arguments, code, details = ERRORS[name]
    answer = world.call(tool, arguments)
    check(answer, error(tool, dict.fromkeys(arguments, "any"), code, details))
    assert answer["request"] == arguments
