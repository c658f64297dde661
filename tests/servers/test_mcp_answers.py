"""What calls answer over the wire when there is a history: envelopes, texts, repeatability, and no crossed answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from tests.world import WHOLE_DAY, World
from wire import Client, call

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CALLS: dict[str, dict[str, Any]] = {
    "search_sessions": {"query": "beam timeout", "n_hits": 5},
    "list_sessions": {**WHOLE_DAY, "limit": 5},
}


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[Client]:
    with Client(world.home, store=world.store) as client:
        yield client


@pytest.fixture(scope="module")
def schemas(client: Client) -> dict[str, Any]:
    return {tool["name"]: tool["outputSchema"] for tool in client.request("tools/list")["result"]["tools"]}


def ids(value: Any) -> Iterator[str]:
    """Every typed id anywhere in an answer."""
    if isinstance(value, str) and re.match("(session|turn|event):", value):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from ids(inner)


def timestamps(value: Any) -> Iterator[str]:
    for key, inner in value.items() if isinstance(value, dict) else ((None, item) for item in value):
        if isinstance(inner, dict | list):
            yield from timestamps(inner)
        elif inner is not None and key in ("timestamp", "started_at", "updated_at", "ended_at"):
            yield inner


def test_C004_descriptions_name_the_sources_that_hold_data(client: Client) -> None:
    tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
    for name in ("search_sessions", "list_sessions"):
        told = tools[name]["inputSchema"]["properties"]["source"]["description"]
        assert "claude" in told
        assert "codex" in told


@pytest.mark.parametrize("name", CALLS)
def test_C012_C015_C016_C019_successes(client: Client, schemas: dict[str, Any], name: str) -> None:
    result = client.tool(name, CALLS[name])
    envelope = result["structuredContent"]
    assert result["isError"] is False
    assert envelope["schema_version"] == f"moraine.mcp.{name}.v1"
    assert envelope["tool"] == name
    assert envelope["data"]["result_count"] >= 3
    assert envelope["warnings"] == []
    jsonschema.validate(envelope, schemas[name])
    # A model that sees text alone must be able to go on: the ids of all results stand in it.
    text = result["content"][0]["text"]
    shown = envelope["data"]["results" if name == "search_sessions" else "sessions"]
    assert all(row["id"] in text for row in shown)


@pytest.mark.parametrize("name", CALLS)
def test_C012_C017_C019_every_id_opens(client: Client, schemas: dict[str, Any], name: str) -> None:
    found = set(ids(client.tool(name, CALLS[name])["structuredContent"]["data"]))
    assert found
    for id in sorted(found):
        for arguments in ({"id": id}, {"id": id, "limit": 3}):
            if id.startswith("event:") and "limit" in arguments:
                continue
            envelope = client.tool("open", arguments)["structuredContent"]
            assert "error" not in envelope, envelope
            assert envelope["data"]["kind"] == id.partition(":")[0]
            jsonschema.validate(envelope, schemas["open"])
            for moment in timestamps(envelope["data"]):
                assert TIMESTAMP.fullmatch(moment), moment


@pytest.mark.parametrize("name", CALLS)
def test_C025_the_same_call_answers_the_same_bytes(client: Client, name: str) -> None:
    first, second = (json.dumps(client.tool(name, CALLS[name])["structuredContent"]["data"]) for _ in range(2))
    assert first == second


def test_C174_the_text_of_an_opened_event_is_its_text(client: Client) -> None:
    hit = client.tool("search_sessions", CALLS["search_sessions"])["structuredContent"]["data"]["results"][0]
    result = client.tool("open", {"id": hit["id"]})
    full = result["structuredContent"]["data"]["content"]["text"]
    assert full[:1000] in result["content"][0]["text"]


def test_twenty_calls_at_once_answer_each_its_own(client: Client) -> None:
    rows = client.tool("list_sessions", {**WHOLE_DAY, "limit": 50})["structuredContent"]["data"]["sessions"]
    wanted = {number: rows[number % len(rows)]["id"] for number in range(20)}
    client.send(*(call(number, "open", id=id) for number, id in wanted.items()))
    for number, answer in client.answers(len(wanted)).items():
        assert answer["result"]["structuredContent"]["data"]["session"]["id"] == wanted[number]
