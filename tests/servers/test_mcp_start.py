"""What a server loads, and when: every agent starts one of its own, and most of them ask it nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.world import World
from wire import call, request

PROGRAM = """
import sys
sys.argv = ["outcrop", *sys.argv[1:]]
from outcrop.cli import main
code = main()
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""
HELLO = request(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}})
SEARCH = call(2, "search_sessions", query="beacon timeout")
NEVER = {
    *("asyncio", "http", "email", "ssl", "socket", "subprocess", "multiprocessing", "concurrent", "unittest"),
    *("rich", "filelock", "platformdirs", "tomllib", "difflib", "importlib.metadata", "importlib.resources", "secrets"),
}
"""What no answer needs."""
LATER = {"logging", "sqlite3", "tantivy", "orjson", "zstandard", "hashlib", "datetime"}
"""What is loaded with the first call of a tool."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    made.write("K")
    made.index()
    yield made
    made.close()


def serve(world: World, *messages: dict, program: tuple[str, ...] = ("-c", PROGRAM)) -> tuple[list[dict], set[str]]:
    """The answers, and the names of all modules that the process had in the end."""
    done = subprocess.run(
        [sys.executable, *program, "mcp"],
        input="".join(json.dumps(message) + "\n" for message in messages),
        capture_output=True,
        env=world.environment,
        cwd=world.home,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], set(done.stderr.split())


def loaded(modules: set[str], names: set[str]) -> set[str]:
    return {name for name in names if any(f"{module}.".startswith(f"{name}.") for module in modules)}


def test_the_handshake_loads_neither_tools_nor_readers(world: World) -> None:
    [answer], modules = serve(world, HELLO)
    assert answer["result"]["serverInfo"]["name"] == "outcrop"
    assert loaded(modules, NEVER | LATER) == set()
    rooms = {"outcrop.contracts", "outcrop.store", "outcrop.search", "outcrop.ingest"}
    assert loaded(modules, rooms) == set()
    assert loaded(modules, {"outcrop.harnesses.claude_code.reader", "outcrop.harnesses.codex.reader"}) == set()


def test_a_search_loads_what_it_needs_and_no_writer(world: World) -> None:
    answers, modules = serve(world, HELLO, SEARCH)
    assert answers[1]["result"]["structuredContent"]["data"]["results"]
    assert loaded(modules, NEVER) == set()
    assert loaded(modules, {"outcrop.ingest", "outcrop.store.embedded.write", "outcrop.cli.output"}) == set()
