"""The published schemas: closed where a shape is fixed, and written in forms that every client understands."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from tests.world import WHOLE_DAY, World
from wire import Client

NOT_DESCRIBED = {
    "": {"request", "details", "performance"},
    "search_sessions": {"snippet", "open"},
    "list_sessions": {"session"},
    "file_attention": {"session", "event", "open", "summary", "roots"},
    "open": {"session", "turn", "event", "content", "summary", "turns", "events"},
}
"""Names of what an output schema leaves to the goldens: what was sent, and the longest of the objects inside."""


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[Client]:
    with Client(world.home, store=world.store) as client:
        yield client


@pytest.fixture(scope="module")
def tools(client: Client) -> dict[str, Any]:
    return {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}


@pytest.fixture(scope="module")
def answers(world: World, client: Client) -> dict[str, dict[str, Any]]:
    """An envelope of each shape, by a name that begins with its tool."""
    turn = world.turns("K")[0]["id"]
    event = world.events("K", 1)[3]["id"]
    asked = {
        "search_sessions": {"query": "beacon"},
        "list_sessions": WHOLE_DAY,
        "file_attention sessions": {"path": "src/beam.py", "scope": "all"},
        "file_attention events": {"path": "src/beam.py", "scope": "all", "granularity": "events"},
        "open session": {"id": world.id("K"), "limit": 1},
        "open turn": {"id": turn, "limit": 3},
        "open event": {"id": event},
        "open error": {"id": "nonsense"},
    }
    return {name: client.tool(name.split()[0], arguments)["structuredContent"] for name, arguments in asked.items()}


def schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from schemas(inner)


def objects(tool: str, value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names that lead to every object of an answer that its schema describes."""
    if isinstance(value, dict):
        yield path
        for name, inner in value.items():
            if name not in NOT_DESCRIBED[""] | NOT_DESCRIBED.get(tool, set()):
                yield from objects(tool, inner, (*path, name))
    elif isinstance(value, list):
        for item in value[:1]:
            yield from objects(tool, item, path)


def test_nullable_fields_are_spelt_with_any_of(tools: dict[str, Any]) -> None:
    for schema in schemas([[tool["inputSchema"], tool["outputSchema"]] for tool in tools.values()]):
        assert not isinstance(schema.get("type"), list)


def test_every_argument_may_be_null_or_left_out_unless_it_is_required(tools: dict[str, Any]) -> None:
    for tool in tools.values():
        schema = tool["inputSchema"]
        needed = {
            name: "2026-05-01T00:00:00Z" if "datetime" in name else "words" for name in schema.get("required", [])
        }
        jsonschema.validate(needed, schema)
        jsonschema.validate({**dict.fromkeys(schema["properties"]), **needed}, schema)


def test_no_object_of_a_fixed_shape_takes_a_field_more_or_less(
    tools: dict[str, Any], answers: dict[str, dict[str, Any]]
) -> None:
    checked = set()
    for name, envelope in answers.items():
        tool = name.split()[0]
        validator = jsonschema.Draft202012Validator(tools[tool]["outputSchema"])
        validator.validate(envelope)
        for path in objects(tool, envelope):
            for change in ("more", "less"):
                changed = copy.deepcopy(envelope)
                place = changed
                for step in path:
                    place = place[step]
                    place = place[0] if isinstance(place, list) else place
                if change == "more":
                    place["unheard_of"] = 1
                else:
                    place.pop(next(iter(place)))
                assert not validator.is_valid(changed), (name, path, change)
            checked.add((name, path))
    assert {("open turn", ("data", "traversal")), ("search_sessions", ("data", "results", "session"))} <= checked


def test_types_are_held(tools: dict[str, Any], answers: dict[str, dict[str, Any]]) -> None:
    for name in ("search_sessions", "list_sessions"):
        for field, wrong in (("result_count", "1"), ("truncated", 0), ("limit", None), ("result_count", 1.5)):
            changed = copy.deepcopy(answers[name])
            changed["data"][field] = wrong
            assert not jsonschema.Draft202012Validator(tools[name]["outputSchema"]).is_valid(changed)
