"""The official MCP client over real sessions: from a search to the event, its turn, its session, and the days around.

The client itself validates every structured answer against the published schema; `Asked` does so once more, errors
included.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema
from mcp import Client, StdioServerParameters

from facts import CORPUS, facts, needs_corpus
from world import World

pytestmark = needs_corpus

TOLD = max(facts("codex"), key=lambda told: len(told["turns"]))
"""The session that is walked to its end: the one of the most turns."""


@dataclass
class Asked:
    """A connected client that wants data, in answers that keep to their schema."""

    client: Client
    schemas: dict[str, Any]

    async def __call__(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        jsonschema.validate(result.structured_content, self.schemas[tool])
        assert not result.is_error, result.structured_content
        assert result.content[0].text
        data: dict[str, Any] = result.structured_content["data"]
        return data

    async def pages(self, children: str, data: dict[str, Any], tool: str, **same: Any) -> list[dict[str, Any]]:
        found = list(data[children])
        while data["next_cursor"] is not None:
            data = await self(tool, cursor=data["next_cursor"], **same)
            found += data[children]
        return found


def with_client(world: World, ask: Callable[[Asked], Awaitable[None]]) -> None:
    async def run() -> None:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "outcrop", "mcp"], env=world.environment, cwd=world.home
        )
        async with Client(server) as client:
            listed = (await client.list_tools()).tools
            await ask(Asked(client, {tool.name: tool.output_schema for tool in listed}))

    asyncio.run(run())


def own_prompt() -> str:
    """The longest prompt of TOLD that is not copied from its parent, read from its raw line."""
    lines = (CORPUS / TOLD["file"]).read_bytes().split(b"\n")
    own = [turn["line"] for turn in TOLD["turns"] if turn["line"] >= TOLD["first_own_prompt"]]
    # The model's item stands on the line that the facts name, the person's message on the next.
    return max((str(json.loads(lines[line])["payload"]["message"]) for line in own), key=len)


SEARCH = {"event_types": ["user_input"], "harness": "codex", "n_hits": 5}


def test_search_then_open_event_turn_and_session(corpus: World) -> None:
    async def ask(asked: Asked) -> None:
        hit = (await asked("search_sessions", query=own_prompt(), **SEARCH))["results"][0]
        event = await asked("open", id=hit["open"]["event_id"])
        assert event["kind"] == "event"
        assert event["content"]["text"] == own_prompt()
        turn = await asked("open", id=event["traversal"]["turn_id"], limit=5)
        assert (turn["kind"], turn["turn"]["id"]) == ("turn", hit["open"]["turn_id"])
        events = await asked.pages("events", turn, "open")
        assert len(events) == turn["turn"]["event_count"]
        assert hit["id"] in [one["id"] for one in events]
        session = await asked("open", id=turn["traversal"]["session_id"])
        assert (session["kind"], session["session"]["id"]) == ("session", hit["open"]["session_id"])
        assert session["turns"] == []

    with_client(corpus, ask)


def test_the_turns_of_a_session_are_paged_to_the_end(corpus: World) -> None:
    async def ask(asked: Asked) -> None:
        hit = (await asked("search_sessions", query=own_prompt(), **SEARCH))["results"][0]
        session = await asked("open", id=hit["open"]["session_id"], limit=2)
        turns = await asked.pages("turns", session, "open")
        assert [turn["ordinal"] for turn in turns] == list(range(1, len(TOLD["turns"]) + 1))
        assert len({turn["id"] for turn in turns}) == len(turns)
        assert [turn["completed"] for turn in turns] == [turn["ends"] is not None for turn in TOLD["turns"]]
        assert session["traversal"]["first_turn_id"] == turns[0]["id"]
        assert session["traversal"]["last_turn_id"] == turns[-1]["id"]
        for place, turn in enumerate(turns):
            beside = (await asked("open", id=turn["id"]))["traversal"]
            assert beside["previous_turn_id"] == (turns[place - 1]["id"] if place else None)
            assert beside["next_turn_id"] == (turns[place + 1]["id"] if place + 1 < len(turns) else None)

    with_client(corpus, ask)


def test_a_day_is_listed_in_pages(corpus: World) -> None:
    async def ask(asked: Asked) -> None:
        everything = {"start_datetime": "2025-01-01T00:00:00Z", "end_datetime": "2027-01-01T00:00:00Z"}
        rows = await asked.pages(
            "sessions", await asked("list_sessions", **everything, limit=7), "list_sessions", **everything, limit=7
        )
        assert len({row["id"] for row in rows}) == len(rows) == len([*facts("claude"), *facts("codex")])
        latest = datetime.fromisoformat(rows[0]["session"]["updated_at"])
        midnight = latest.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        day = {"start_datetime": midnight.isoformat(), "end_datetime": (midnight + timedelta(days=1)).isoformat()}
        listed = await asked.pages(
            "sessions", await asked("list_sessions", **day, limit=1), "list_sessions", **day, limit=1
        )
        expected = [
            row["id"]
            for row in rows
            if datetime.fromisoformat(row["session"]["started_at"]) < midnight + timedelta(days=1)
            and datetime.fromisoformat(row["session"]["updated_at"]) >= midnight
        ]
        assert [row["id"] for row in listed] == expected
        assert rows[0]["id"] in expected
        for row in listed:
            session = (await asked("open", id=row["open"]["session_id"]))["session"]
            assert row["session"].items() <= session.items()

    with_client(corpus, ask)
