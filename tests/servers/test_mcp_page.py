"""The examples of `docs/mcp.md` are what the server answers.

`OUTCROP_WRITE_DOCS=1` writes them into the page instead of comparing. What differs from run to run (cursors, times
spent, the home, the last digits of a score) is evened out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.world import WHOLE_DAY, World
from wire import Client

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"
MARK = re.compile(r"<!-- example: ([\w ]+) -->\n\n?(?:```(?:json|text)\n.*?```\n\n?)*", re.DOTALL)
WIDTH = 110


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The text of every example by its name."""
    world = World(tmp_path_factory.mktemp("world"))
    world.write("K", "X", "Z")
    world.index()
    turn = world.turns("K")[0]
    output = next(event for event in world.events("X", 1) if event["type"] == "tool_response")
    asked = {
        "search": ("search_sessions", {"query": "beacon timeout", "n_hits": 1}),
        "event": ("open", {"id": output["id"]}),
        "turn": ("open", {"id": turn["id"], "limit": 2}),
        "session": ("open", {"id": world.id("K")}),
        "list": ("list_sessions", {**WHOLE_DAY, "harness": "claude-code", "limit": 1}),
        "attention": ("file_attention", {"path": "src/beam.py", "granularity": "events", "harness": "codex"}),
        "error": ("open", {"id": "session:mistyped"}),
    }
    found: dict[str, str] = {}
    with Client(world.home, store=world.store, cwd=world.places().repository) as client:
        for name, (tool, arguments) in asked.items():
            result = client.tool(tool, arguments)
            request = fenced("json", written({"name": tool, "arguments": arguments}))
            found[name] = request + fenced("json", written(evened(result["structuredContent"], world)))
            found[f"{name} text"] = fenced("text", evened(result["content"][0]["text"], world))
    yield found
    world.close()


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```\n\n"


def evened(value: Any, world: World) -> Any:
    if isinstance(value, dict):
        fixed = {"elapsed_ms": 3, "next_cursor": "AVx0…"}
        return {
            name: fixed[name] if name in fixed and inner is not None else evened(inner, world)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [evened(item, world) for item in value]
    if isinstance(value, float):
        return round(value, 1)
    return value.replace(str(world.home), "/home/kim") if isinstance(value, str) else value


def written(value: Any, indent: int = 0) -> str:
    """JSON in which whatever fits into a line stays in one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(name)}: {written(item, indent + 2)}" for name, item in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(inner + written(item, indent + 2) for item in value) + "\n" + " " * indent + "]"


def test_the_page_shows_what_the_server_answers(examples: dict[str, str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = MARK.findall(page)
    assert {name for name in examples if " " not in name} <= set(names) <= set(examples)
    made = MARK.sub(lambda match: f"<!-- example: {match[1]} -->\n\n{examples[match[1]]}", page)
    if os.environ.get("OUTCROP_WRITE_DOCS"):
        PAGE.write_text(made, encoding="utf-8")
        return
    assert made == page, "OUTCROP_WRITE_DOCS=1 pytest tests/servers/test_mcp_page.py writes the page anew"
