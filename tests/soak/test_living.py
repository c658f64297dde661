"""Long runs of everything at once: agents that write, an indexer that is killed, clients that search, list and page.

`OUTCROP_SOAK_SECONDS` says how long the second one goes on, 180 by default.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from following import Follower, append, followed, until
from servers.wire import Client
from transcripts import Claude
from world import World

pytestmark = pytest.mark.slow

KILLS = 200
SECONDS = float(os.environ.get("OUTCROP_SOAK_SECONDS", "180"))
FILES = 50
CLIENTS = 8
PAUSE = 1.0
"""Seconds between two writes to one file."""
DAY_RANGE = {"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with followed(tmp_path) as made:
        made.follows = False
        yield made


class Agent:
    """Writes one session, prompt and answer in one write each time; now and then the answer's line comes in two."""

    def __init__(self, world: World, number: int) -> None:
        self.number = number
        self.words: list[str] = []
        self._session = Claude(f"S{number}", world.places().plain)
        self.path = self._session.path(world.home)
        self._random = random.Random(number)

    def write(self) -> None:
        turn = len(self.words)
        word = f"word{self.number}x{turn}x"
        clock = f"{turn // 3600:02}:{turn // 60 % 60:02}:{turn % 60:02}"
        self._session.user(clock, f"what of {word}").answer(clock, f"this of {word}")
        lines = self._session.lines[-2:]
        if self._random.random() < 0.1:
            text = "".join(json.dumps(line) + "\n" for line in lines).encode()
            cut = self._random.randrange(1, len(text))
            for part in (text[:cut], text[cut:]):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with open(self.path, "ab") as stream:
                    stream.write(part)
                time.sleep(0.05)
        else:
            append(self.path, *lines)
        self.words.append(word)


class Writing:
    """All agents at work on threads of their own, until it is left."""

    def __init__(self, agents: list[Agent], pause: float) -> None:
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(agent, pause)) for agent in agents]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _work(self, agent: Agent, pause: float) -> None:
        while not self._ended.wait(random.uniform(0, 2 * pause)):
            agent.write()


def data(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = client.tool(tool, arguments)
    assert not result["isError"], (tool, arguments, result["structuredContent"])
    found: dict[str, Any] = result["structuredContent"]["data"]
    return found


def listed(client: Client) -> list[dict[str, Any]]:
    """Every session of the day, page by page; none may come twice."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = data(client, "list_sessions", **DAY_RANGE, limit=7, **cursor)
        found += page["sessions"]
        if page["next_cursor"] is None:
            ids = [session["id"] for session in found]
            assert len(ids) == len(set(ids)), "a session was listed twice"
            return found
        cursor = {"cursor": page["next_cursor"]}


def turns(client: Client, session: str) -> list[dict[str, Any]]:
    """Every turn of a session, page by page; none may be skipped or come twice."""
    page = data(client, "open", id=session, limit=10)
    found = list(page["turns"])
    while page["next_cursor"]:
        page = data(client, "open", cursor=page["next_cursor"])
        found += page["turns"]
    assert [turn["ordinal"] for turn in found] == list(range(1, len(found) + 1))
    return found


def all_is_there(world: World, agents: list[Agent]) -> None:
    """Each whole record was read, once, and each prompt is found, once."""
    with Client(world.home, store=world.store) as client:
        sessions = listed(client)
        assert len(sessions) == len(agents)
        counts = sorted(len(turns(client, session["id"])) for session in sessions)
        assert counts == sorted(len(agent.words) for agent in agents)
        for session in sessions:
            opened = data(client, "open", id=session["id"])["session"]
            assert opened["event_count"] == 2 * opened["turn_count"]
        for word in itertools.chain.from_iterable(agent.words for agent in agents):
            hits = data(client, "search_sessions", query=f'"{word}"', n_hits=5)["results"]
            assert sorted(hit["event"]["type"] for hit in hits) == ["assistant_response", "user_input"], word


def test_killed_200_times_nothing_is_lost_and_nothing_double(world: World) -> None:
    agents = [Agent(world, number) for number in range(10)]
    instants = random.Random(11)
    server: subprocess.Popen[bytes] | None = None
    with Writing(agents, 0.5):
        for kill in range(KILLS):
            follower = Follower(world)
            if kill % 4 == 0:
                command = [sys.executable, "-m", "outcrop", "mcp"]
                server = subprocess.Popen(command, env=world.environment, stdin=subprocess.PIPE,
                                          stdout=subprocess.DEVNULL, cwd=world.home)  # fmt: skip
                assert server.stdin
                call = {"name": "search_sessions", "arguments": {"query": "word"}}
                frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
                server.stdin.write(json.dumps(frame).encode() + b"\n")
                server.stdin.flush()
            # Past the start of the interpreter: what is to be hit is the work.
            time.sleep(instants.uniform(0.2, 1.6))
            assert follower.process.poll() is None, follower.said()
            follower.process.send_signal(signal.SIGKILL)
            follower.process.wait()
            if server is not None:
                server.kill()
                server.wait()
                assert server.stdin
                server.stdin.close()
                server = None
    with Follower(world) as follower:
        follower.current()
        for agent in agents:
            until(lambda agent=agent: finds_both(world, agent.words[-1]))
        all_is_there(world, agents)
        assert world.index("--full").code == 0
        all_is_there(world, agents)


def count(client: Client, word: str) -> int:
    return int(data(client, "search_sessions", query=f'"{word}"')["result_count"])


def finds_both(world: World, word: str) -> bool:
    return bool(world.data("search_sessions", query=f'"{word}"')["result_count"] == 2)


def test_50_files_are_written_while_8_clients_search_list_and_page(world: World) -> None:
    agents = [Agent(world, number) for number in range(FILES)]
    for agent in agents:
        agent.write()
    problems: list[str] = []
    asked = [0] * CLIENTS
    longest = [0.0]
    ended = threading.Event()

    def ask(number: int) -> None:
        order = random.Random(number)
        try:
            with Client(world.home, store=world.store) as client:
                while not ended.is_set():
                    agent = order.choice(agents)
                    written = list(agent.words)
                    match order.randrange(3):
                        case 0:
                            word = order.choice(written)
                            hits = data(client, "search_sessions", query=f'"{word}"')["results"]
                            texts = [hit["event"]["id"] for hit in hits]
                            assert len(texts) == len(set(texts)) <= 2, (word, hits)
                        case 1:
                            assert len(listed(client)) == FILES
                        case _:
                            session = order.choice(listed(client))
                            seen = turns(client, session["id"])
                            assert len(seen) >= session["session"]["turn_count"], "turns were lost"
                    asked[number] += 1
        except BaseException as error:
            problems.append(f"{type(error).__name__}: {error}")

    def watch_freshness() -> None:
        with Client(world.home, store=world.store) as client:
            while not ended.wait(1.0):
                agent = random.choice(agents)
                turn = len(agent.words)
                until(lambda agent=agent, turn=turn: len(agent.words) > turn)
                word, began = agent.words[turn], time.monotonic()
                until(lambda word=word: count(client, word) == 2, what=word)
                longest[0] = max(longest[0], time.monotonic() - began)

    with Follower(world) as follower:
        follower.current()
        until(lambda: finds_both(world, agents[-1].words[0]))
        clients = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
        fresh = threading.Thread(target=watch_freshness)
        with Writing(agents, PAUSE):
            for thread in (*clients, fresh):
                thread.start()
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and not problems:
                time.sleep(0.2)
            ended.set()
            for thread in (*clients, fresh):
                thread.join()
        assert problems == []
        assert min(asked) > 0
        for agent in agents:
            until(lambda agent=agent: finds_both(world, agent.words[-1]))
        all_is_there(world, agents)
        assert "rror" not in follower.said(), follower.said()
        records = 2 * sum(len(agent.words) for agent in agents)
        print(f"{records} records, {sum(asked)} questions, found after {longest[0]:.2f} s at most")
