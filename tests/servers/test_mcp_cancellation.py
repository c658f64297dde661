"""A cancelled call does not only stay silent: the work behind it ends, and its place is free again."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.world import World
from wire import Client, call, cancel, listing, request

from cancelling import ends_at_every_look
from outcrop.errors import Cancelled
from outcrop.model import EventType
from outcrop.search.events import EventQuery, search_events
from outcrop.store.embedded.read import EmbeddedStore

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"

SERVER = f"""
import dataclasses, sys
from outcrop.cli import context
from outcrop.contracts import mcp_v1
from outcrop.servers import stdio
from outcrop.servers.jsonrpc import Slots
from outcrop.servers.mcp import Protocol, Toolbox

def endless(parsed, context):
    with context.snapshot():
        context.store.connection().execute({ENDLESS!r}).fetchone()

tools = dict(mcp_v1.TOOLS)
mcp_v1.TOOLS = tools | {{"endless": dataclasses.replace(tools["list_sessions"], answer=endless)}}
sys.exit(stdio.serve(Protocol(Toolbox(context.build, ())), Slots(running=1, waiting=1)))
"""
"""A server with one tool more, whose statement never ends by itself; one call runs, one waits."""

DAY = {"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    made.write("K", "X", "D", "P")
    made.index()
    yield made
    made.close()


@pytest.fixture
def client(world: World) -> Iterator[Client]:
    with Client(world.home, store=world.store, argv=[sys.executable, "-c", SERVER]) as client:
        yield client


def code(answer: dict) -> str | None:
    return answer["result"]["structuredContent"].get("error", {}).get("code")


def test_a_cancelled_statement_ends_and_its_place_is_free(client: Client) -> None:
    for round in range(3):
        endless, next_ = f"endless {round}", f"next {round}"
        client.send(call(endless, "endless", **DAY), listing(next_), listing("third"))
        refused = client.receive()
        assert (refused["id"], code(refused)) == ("third", "busy")
        client.send(cancel(endless))
        # Only one call runs at a time: this answer shows that the endless one is over.
        answer = client.receive()
        assert (answer["id"], code(answer)) == (next_, None)


def test_a_signal_ends_a_statement_that_runs(client: Client) -> None:
    client.send(call(1, "endless", **DAY), call(2, "endless", **DAY), request(3, "ping"))
    assert client.receive()["id"] == 3
    client.process.send_signal(signal.SIGTERM)
    answers = client.answers(2)
    assert {id: code(answer) for id, answer in answers.items()} == {1: "cancelled", 2: "cancelled"}
    assert client.leave() == 0


def test_a_client_that_is_gone_ends_a_statement_that_runs(client: Client) -> None:
    client.send(call(1, "endless", **DAY), request(2, "ping"))
    assert client.receive()["id"] == 2
    client.stdout.close()
    client.stdin.close()
    client.process.wait(30)


def test_a_snapshot_interrupts_its_statement_and_serves_the_next(world: World) -> None:
    store, stopped, told = EmbeddedStore(world.store), threading.Event(), []

    def run() -> None:
        try:
            with store.snapshot(stopped.is_set):
                began.set()
                store.connection().execute(ENDLESS).fetchone()
        except Cancelled as error:
            told.append(error)
        with store.snapshot() as snapshot:
            told.append(snapshot.arrival)

    began = threading.Event()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert began.wait(30)
    assert not told
    stopped.set()
    thread.join(30)
    assert [type(item) for item in told] == [Cancelled, int]
    store.close()


QUERIES = {
    "common": EventQuery("gull counted", (EventType.USER_INPUT, EventType.ASSISTANT_RESPONSE), 50),
    "tools": EventQuery("count counted", (EventType.TOOL_CALL, EventType.TOOL_RESPONSE), 50),
    "repaired": EventQuery("lighthuose", (EventType.USER_INPUT,), 5),
    "phrase": EventQuery('"no such phrase" gull', (EventType.USER_INPUT,), 5),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_search_ends_at_the_first_look_that_tells_it_to(world: World, name: str) -> None:
    store = EmbeddedStore(world.store)

    def search(cancelled: Callable[[], bool]) -> None:
        assert search_events(store, QUERIES[name], cancelled).hits

    ends_at_every_look(search)
    store.close()


def test_a_deadline_of_a_caller_ends_a_call(tmp_path: Path) -> None:
    world = World(tmp_path, door="call")
    world.write("K")
    world.index()
    done = world.run("call", "search_sessions", '{"query": "beacon"}', "--timeout", "0.000001")
    assert done.json["error"]["code"] == "deadline_exceeded"
    world.close()
