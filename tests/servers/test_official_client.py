"""The official Python client as an oracle: it speaks to a real server in both eras, and validates what it gets."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from tests.world import WHOLE_DAY, World

SEARCH = {"query": "beacon timeout", "n_hits": 3}
NOT_FOUND = {"id": "session:ses_0000000000000000000000000G"}


def server(world: World) -> StdioServerParameters:
    command = [sys.executable, "-m", "outcrop", "mcp"]
    return StdioServerParameters(command=command[0], args=command[1:], env=world.environment, cwd=world.home)


async def talk(client: Client, version: str) -> None:
    assert client.protocol_version == version
    listed = (await client.list_tools()).tools
    tools = {tool.name: tool for tool in listed}

    async def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        # The client itself holds a success against the tool's output schema; it lets errors pass.
        jsonschema.validate(arguments, tools[name].input_schema)
        result = await client.call_tool(name, arguments)
        jsonschema.validate(result.structured_content, tools[name].output_schema)
        assert result.is_error is ("error" in result.structured_content)
        return result.structured_content

    hit = (await call("search_sessions", SEARCH))["data"]["results"][0]
    for id in hit["open"].values():
        assert (await call("open", {"id": id}))["data"]["kind"] == id.partition(":")[0]
    assert (await call("open", NOT_FOUND))["error"]["code"] in ("not_found", "invalid_id")
    many = await asyncio.gather(*(call("list_sessions", {**WHOLE_DAY, "limit": number}) for number in range(1, 21)))
    assert [answer["request"]["limit"] for answer in many] == list(range(1, 21))


@pytest.mark.parametrize(
    ("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
def test_the_official_client_in_each_era(world: World, mode: str, version: str) -> None:
    async def run() -> None:
        async with Client(server(world), mode=mode) as client:
            if mode != version:  # a client that is told the version asks for no introduction
                assert "search_sessions" in (client.instructions or "")
            await talk(client, version)

    asyncio.run(run())
