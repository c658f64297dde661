"""Measures `outcrop mcp` on stdio as an agent meets it: start, memory, latency, throughput, and short commands.

    python bench/mcp.py --store DIR
    python bench/mcp.py --home DIR

The store is one that `bench/history.py --store DIR` left; with `--home` (a home full of session files) one is made
and thrown away. Prints one JSON document. Every server is a child of its own, as every agent starts one.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from measure import Json, Spread, conditions, cpu_so_far, environment, megabytes, private_memory, report, run
from writer import writing

from outcrop import ids

SEED = 7
STARTS = 20
CALLS = 300
MEMORY_CALLS = 1_000
CLIENTS = 8
CALLS_EACH = 150
HOUR = 3_600_000
INITIALIZE: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Server:
    """One `outcrop mcp` and its client."""

    def __init__(self, env: dict[str, str]) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "outcrop", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        self._asked = 0

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, method: str, params: Json | None = None) -> bytes:
        """The frame that answers a request."""
        assert self.process.stdin
        assert self.process.stdout
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params or {}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def initialize(self) -> Server:
        answer = json.loads(self.ask("initialize", INITIALIZE))
        assert "result" in answer, answer
        assert self.process.stdin
        self.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.process.stdin.flush()
        return self

    def tool(self, call: tuple[str, Json]) -> bytes:
        return self.ask("tools/call", {"name": call[0], "arguments": call[1]})

    @property
    def cpu(self) -> float:
        return cpu_so_far(self.process.pid)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the MCP server on stdio.")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--home", type=Path, help="a home folder full of session files")
    place.add_argument("--store", type=Path, help="a data folder with a finished index")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outcrop-bench-") as work:
        store = (args.store or Path(work) / "store").resolve()
        env = environment((args.home or Path(work)).resolve(), store, Path(work) / "bytecode")
        if args.home:
            run([sys.executable, "-m", "outcrop", "index"], env)
        report(_measure(store, env))
    return 0


def _measure(store: Path, env: dict[str, str]) -> Json:
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        events = db.execute("SELECT count(*) FROM event").fetchone()[0]
        calls = _questions(db)
    everything = [call for kind in zip(*calls.values(), strict=True) for call in kind]
    search = next(iter(calls.values()))[0]
    found: Json = {"conditions": conditions(), "events": events}
    found["start"] = _starts(env, search)
    with Server(env).initialize() as server:
        found["memory"] = _memory(server, everything)
        frame = server.ask("tools/list")
        tools = json.loads(frame)["result"]["tools"]
        found["tools_list_bytes"] = {
            "frame": len(frame),
            "tools": {tool["name"]: len(json.dumps(tool, separators=(",", ":")).encode()) for tool in tools},
        }
        found["latency"] = {kind: _latency(server, sample) for kind, sample in calls.items()}
    found["clients"] = _throughput(env, everything)
    with writing(store, env) as written:
        beside = _throughput(env, everything)
    found["clients_beside_a_writer"] = beside | written
    return found


def _questions(db: sqlite3.Connection) -> dict[str, list[tuple[str, Json]]]:
    """Calls by kind; what is searched for are words of random prompts, in the order in which they stand there."""
    chosen = random.Random(SEED)
    prompts = [text.split() for (text,) in db.execute("SELECT user_text FROM turn WHERE length(user_text) > 60")]
    uids = [uid for (uid,) in db.execute("SELECT uid FROM event WHERE turn IN (SELECT id FROM turn WHERE ord > 0)")]
    times = [when for (when,) in db.execute("SELECT updated FROM session WHERE event_count > 0")]
    if not prompts:
        raise SystemExit("the store holds no prompts to draw words from")

    def words(number: int) -> str:
        prompt = chosen.choice(prompts)
        at = chosen.randrange(max(1, len(prompt) - number + 1))
        return " ".join(prompt[at : at + number])

    def window() -> Json:
        when = chosen.choice(times)
        return {"start_datetime": _instant(when - 12 * HOUR), "end_datetime": _instant(when + 12 * HOUR)}

    kinds: dict[str, Callable[[], tuple[str, Json]]] = {
        "search_sessions(3 words)": lambda: ("search_sessions", {"query": words(3)}),
        "search_sessions(1 word)": lambda: ("search_sessions", {"query": words(1)}),
        "search_sessions(12 words)": lambda: ("search_sessions", {"query": words(12)}),
        "open(event)": lambda: ("open", {"id": ids.write(ids.Kind.EVENT, chosen.choice(uids))}),
        "list_sessions(day)": lambda: ("list_sessions", window()),
    }
    return {kind: [make() for _ in range(CALLS)] for kind, make in kinds.items()}


def _instant(ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms / 1000))


def _starts(env: dict[str, str], search: tuple[str, Json]) -> Json:
    """Medians of 20 starts each, after one that fills the caches."""
    python = sys.executable
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "outcrop --version": [python, "-m", "outcrop", "--version"],
        "outcrop events, piped": [python, "-m", "outcrop", "events", *search[1]["query"].split()],
    }
    found: Json = {}
    for name, command in commands.items():
        run(command, env)
        costs = [run(command, env) for _ in range(STARTS)]
        found[name] = _median([cost.cpu for cost in costs], [cost.wall for cost in costs])

    def first_search(server: Server) -> None:
        assert b"structuredContent" in server.initialize().tool(search)

    for name, act in (("initialize answered", Server.initialize), ("first search answered", first_search)):
        cpu, wall = [], []
        for at in range(STARTS + 1):
            with Server(env) as server:
                act(server)
                if at:
                    wall.append(time.perf_counter() - server.started)
                    cpu.append(server.cpu)
        found[name] = _median(cpu, wall)
    return found


def _median(cpu: list[float], wall: list[float]) -> Json:
    return {
        "cpu_ms": round(statistics.median(cpu) * 1000, 1),
        "wall_ms": round(statistics.median(wall) * 1000, 1),
        "cpu_ms_least": round(min(cpu) * 1000, 1),
    }


def _memory(server: Server, calls: list[tuple[str, Json]]) -> Json:
    """In MB; private counts mapped pages of files that nobody else has mapped, anonymous does not."""

    def now() -> Json:
        private, anonymous = private_memory(server.process.pid)
        return {"private_mb": megabytes(private * 1024), "anonymous_mb": megabytes(anonymous * 1024)}

    found: Json = {"idle": now()}
    for call in calls[:MEMORY_CALLS]:
        server.tool(call)
    found[f"after {MEMORY_CALLS} calls"] = now()
    return found


def _latency(server: Server, calls: list[tuple[str, Json]]) -> Json:
    """Round trips as the client sees them; CPU is the server's."""
    spread = Spread()
    size = 0
    for call in calls:
        cpu, wall = server.cpu, time.perf_counter()
        answer = server.tool(call)
        spread.wall.append(time.perf_counter() - wall)
        spread.cpu.append(server.cpu - cpu)
        size += len(answer)
        assert b'"isError":true' not in answer.replace(b" ", b""), answer[:2000]
    return {**spread.summary(), "answer_bytes_mean": size // len(calls)}


def _throughput(env: dict[str, str], calls: list[tuple[str, Json]]) -> Json:
    """Eight agents at once, each with a server of its own."""
    servers = [Server(env).initialize() for _ in range(CLIENTS)]
    for server in servers:
        server.tool(calls[0])
    errors = 0

    def ask(numbered: tuple[int, Server]) -> list[float]:
        nonlocal errors
        number, server = numbered
        taken = []
        for at in range(CALLS_EACH):
            started = time.perf_counter()
            answer = server.tool(calls[(number * CALLS_EACH + at) % len(calls)])
            taken.append(time.perf_counter() - started)
            errors += b'"isError":true' in answer.replace(b" ", b"") or b'"error"' in answer[:60]
        return taken

    before, started = sum(server.cpu for server in servers), time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        waits: list[Any] = [wait for taken in pool.map(ask, enumerate(servers)) for wait in taken]
    wall, cpu = time.perf_counter() - started, sum(server.cpu for server in servers) - before
    private = sum(private_memory(server.process.pid)[0] for server in servers)
    for server in servers:
        server.__exit__()
    return {
        "clients": CLIENTS,
        "calls": len(waits),
        "errors": errors,
        "calls_per_s": round(len(waits) / wall),
        "server_cpu_ms_per_call": round(cpu / len(waits) * 1000, 2),
        "private_mb_each": megabytes(private * 1024 / CLIENTS),
        **Spread(waits).summary(),
    }


if __name__ == "__main__":
    sys.exit(main())
