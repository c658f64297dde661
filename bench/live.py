"""Measures the running indexer: from an append to its being found by another process, and what following costs.

    python bench/live.py [--appends N] [--busy HOME] [--week HOME] [--big-gb G] [--only PART]... [--work DIR]

Every home is made here, of sessions of Claude Code with records of some 2.3 KB; `--busy` names a home full of session
files that is indexed from nothing while appends are measured, `--week` one whose files are written anew, record by
record, several at a time, as agents write them. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp import Server
from measure import Json, Spread, conditions, cpu_so_far, environment, io_counters, megabytes, private_memory, report

from outcrop.servers import local

RECORD_BYTES = 2_300
IDLE_SECONDS = 60
IDLE_FILES = 5_000
RECONCILE_FILES = 2_000
RECONCILES = 5
MANY_FILES = 20_000
LONG_TURNS = 5_000
PER_SECOND = 10
STEADY_SECONDS = 30
QUIET = 0.6
"""Seconds between two single appends, at most: they must not fall in with the steps of the watcher."""
WORDS = [
    f"{head}{tail}" for head in ("tide", "gull", "buoy", "sail", "reef") for tail in ("s", "ing", "er", "ward", "")
]
BUDGETS: Json = {
    "append_p95_s": 1.0, "idle_cpu_ms": 100, "idle_bytes_written": 0, "reconcile_cpu_ms": 50,
    "written_per_byte_single": 100, "written_per_byte_ten_a_second": 25, "private_mb": 300,
}  # fmt: skip
PARTS = ("single", "steady", "busy", "idle", "reconcile", "long", "many", "big", "week")
WEEK_SECONDS = 240
"""In which the records of the home given by `--week` are written, evenly."""
WEEK_AGENTS = 4
"""Sessions that are written at the same time."""
PACKED_SECONDS = 75
"""After which an indexer that nothing happened to has packed what came one by one."""


_TIME = re.compile(rb'"timestamp": ?"[^"]*"')


class Follower:
    """One indexer on a home."""

    def __init__(self, env: dict[str, str], *, wait: bool = True) -> None:
        self.home = Path(env["OUTCROP_HOME"])
        command = [sys.executable, "-m", "outcrop", "watch", "--background", "--linger", "1000000"]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.peak = (0, 0)
        while wait and not self.current():
            self.sample()
            time.sleep(0.1)

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def current(self) -> bool:
        assert self.process.poll() is None, "the indexer has ended"
        told = local.ask(self.home, "status")
        return told is not None and told["last_sweep_completed_at"] is not None and told["sweep"] is None

    def sample(self) -> None:
        private, anonymous = private_memory(self.process.pid)
        self.peak = (max(self.peak[0], private), max(self.peak[1], anonymous))

    @contextmanager
    def cost(self, into: Json, times: int = 1, read: int = 0) -> Iterator[None]:
        """Note what it uses meanwhile: CPU and bytes written, of `times` doings of `read` bytes in all."""
        pid = self.process.pid
        before, cpu = io_counters(str(pid)), cpu_so_far(pid)
        yield
        after = io_counters(str(pid))
        into["cpu_ms"] = round((cpu_so_far(pid) - cpu) * 1000 / times, 2)
        into["bytes_written"] = after["wchar"] - before["wchar"]
        if read:
            into["written_per_byte"] = round(into["bytes_written"] / read, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the running indexer.")
    parser.add_argument("--appends", type=int, default=500)
    parser.add_argument("--busy", type=Path, help="a home full of session files")
    parser.add_argument("--week", type=Path, help="a home whose sessions are written anew, record by record")
    parser.add_argument("--big-gb", type=float, default=1.0, help="size of the single file of the part `big`")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure these parts alone")
    parser.add_argument("--work", type=Path, help="where homes and stores are made; they are deleted after")
    args = parser.parse_args()
    found: Json = {"conditions": conditions(), "budgets": BUDGETS, "baseline": baseline()}
    for part in args.only or PARTS:
        if part in ("busy", "week") and getattr(args, part) is None:
            continue
        with tempfile.TemporaryDirectory(prefix="outcrop-live-", dir=args.work) as work:
            print(f"measuring {part}", file=sys.stderr, flush=True)
            found[part] = globals()[part](Place(Path(work)), args)
    report(found)
    return 0


class Place:
    """A home that is filled here, and its store."""

    def __init__(self, work: Path) -> None:
        self.home = work / "home"
        self.env = environment(self.home, work / "store", work / "bytecode")
        self.folder = self.home / ".claude" / "projects" / "-w"
        self.folder.mkdir(parents=True)
        self._random = random.Random(7)

    def record(self, session: str, word: str, kind: str = "user") -> bytes:
        text = f"the word is {word} " + " ".join(self._random.choices(WORDS, k=310))
        content = text[:1_900] if kind == "user" else [{"type": "text", "text": text[:1_900]}]
        name = str(uuid.UUID(int=self._random.getrandbits(128)))
        return json.dumps({
            "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/w", "sessionId": session,
            "version": "2.1.39", "gitBranch": "main", "type": kind, "uuid": name,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
            "message": {"role": kind, "content": content, **({"id": word, "model": "m"} if kind != "user" else {})},
        }).encode() + b"\n"  # fmt: skip

    def session(self, records: int = 2, size: int = 0) -> Path:
        """A new file of so many records, or of so many bytes."""
        name = str(uuid.UUID(int=self._random.getrandbits(128)))
        path = self.folder / f"{name}.jsonl"
        with open(path, "wb") as stream:
            number = 0
            while number < records or stream.tell() < size:
                stream.write(self.record(name, f"w{number}", "user" if number % 2 == 0 else "assistant"))
                number += 1
        return path

    def append(self, path: Path, word: str) -> int:
        line = self.record(path.stem, word)
        with open(path, "ab") as stream:
            stream.write(line)
        return len(line)


def found_after(server: Server, word: str) -> float:
    """Seconds until another process finds a word."""
    began = time.perf_counter()
    while True:
        envelope = json.loads(server.tool(("search_sessions", {"query": word})))["result"]["structuredContent"]
        if "data" in envelope and envelope["data"]["result_count"]:
            return time.perf_counter() - began
        time.sleep(0.01)


def appends(place: Place, follower: Follower, path: Path, count: int) -> Json:
    """`count` single records, each sought by another process until it is found."""
    told: Json = {"appends": count}
    spread = Spread()
    size = 0
    with Server(place.env) as server:
        server.initialize()
        found_after(server, "tides")
        with follower.cost(told, count):
            for number in range(count):
                time.sleep(random.uniform(0, QUIET))
                word = f"quokka{number}x{path.stem[:6]}"
                size += place.append(path, word)
                spread.wall.append(found_after(server, word))
    told |= {"bytes_each": size // count, "written_per_byte": round(told["bytes_written"] / size, 1)}
    return told | spread.summary()


def single(place: Place, args: argparse.Namespace) -> Json:
    path = place.session()
    for _ in range(100):
        place.session()
    with Follower(place.env) as follower:
        return appends(place, follower, path, args.appends)


def steady(place: Place, args: argparse.Namespace) -> Json:
    """Ten records a second into three files."""
    paths = [place.session() for _ in range(3)]
    told: Json = {"per_second": PER_SECOND, "seconds": STEADY_SECONDS}
    with Follower(place.env) as follower:
        size = 0
        with follower.cost(told, STEADY_SECONDS * PER_SECOND):
            for number in range(STEADY_SECONDS * PER_SECOND):
                size += place.append(paths[number % 3], f"steady{number}")
                time.sleep(1 / PER_SECOND)
            time.sleep(2)
        told["written_per_byte"] = round(told["bytes_written"] / size, 1)
    return told


def busy(place: Place, args: argparse.Namespace) -> Json:
    """Appends while a home is indexed from nothing: to a file that the pass reads last, and to new ones."""
    shutil.rmtree(place.home)
    shutil.copytree(args.busy, place.home)
    place.folder.mkdir(parents=True, exist_ok=True)
    path = place.session()
    os.utime(path, (1, 1))
    spread = Spread()
    fresh = Spread()
    with Follower(place.env, wait=False) as follower, Server(place.env) as server:
        server.initialize()
        found_after(server, "the")
        number = 0
        while not follower.current():
            place.append(path, f"wombat{number}")
            spread.wall.append(found_after(server, f"wombat{number}"))
            if number % 5 == 0:
                place.append(place.session(), f"numbat{number}")
                fresh.wall.append(found_after(server, f"numbat{number}"))
            number += 1
    return {"appends": spread.summary(), "new_files": fresh.summary()}


def idle(place: Place, args: argparse.Namespace) -> Json:
    for _ in range(IDLE_FILES):
        place.session()
    told: Json = {"files": IDLE_FILES, "seconds": IDLE_SECONDS}
    with Follower(place.env) as follower:
        time.sleep(5)
        with follower.cost(told):
            time.sleep(IDLE_SECONDS)
        follower.sample()
        told["private_mb"] = megabytes(follower.peak[0] * 1024)
    return told


def reconcile(place: Place, args: argparse.Namespace) -> Json:
    for _ in range(RECONCILE_FILES):
        place.session()
    told: Json = {"files": RECONCILE_FILES}
    with Follower(place.env) as follower:
        client = local.connect(follower.home)
        assert client
        client.greet(None)
        client.call("reconcile", {"sweep": True})
        with follower.cost(told, RECONCILES):
            for _ in range(RECONCILES):
                client.call("reconcile", {"sweep": True})
        client.close()
    told["plain_stat_ms"] = plain_listing(place.home)
    return told


def long(place: Place, args: argparse.Namespace) -> Json:
    """Appends to a session of many turns, beside one that is new."""
    short, path = place.session(), place.session(2 * LONG_TURNS)
    with Follower(place.env) as follower:
        count = min(args.appends, 60)
        return {"turns": LONG_TURNS, "long": appends(place, follower, path, count),
                "short": appends(place, follower, short, count)}  # fmt: skip


def many(place: Place, args: argparse.Namespace) -> Json:
    """A home of many files: memory of its first build, and an append after."""
    for _ in range(MANY_FILES):
        place.session()
    with Follower(place.env) as follower:
        path = place.session()
        time.sleep(3)
        told = appends(place, follower, path, min(args.appends, 60))
        new = Spread()
        with Server(place.env) as server:
            server.initialize()
            for number in range(10):
                time.sleep(3)
                place.append(place.session(), f"bilby{number}")
                new.wall.append(found_after(server, f"bilby{number}"))
        follower.sample()
        return {"files": MANY_FILES, "private_peak_mb": megabytes(follower.peak[0] * 1024),
                "anonymous_peak_mb": megabytes(follower.peak[1] * 1024), "append": told,
                "new_file": new.summary()}  # fmt: skip


def big(place: Place, args: argparse.Namespace) -> Json:
    """One file of a gigabyte: memory while it is read, and an append after."""
    path = place.session(size=int(args.big_gb * 1e9))
    began = time.perf_counter()
    with Follower(place.env) as follower:
        built = time.perf_counter() - began
        told = appends(place, follower, path, min(args.appends, 20))
        follower.sample()
        return {"bytes": path.stat().st_size, "seconds": round(built, 1),
                "private_peak_mb": megabytes(follower.peak[0] * 1024),
                "anonymous_peak_mb": megabytes(follower.peak[1] * 1024), "append": told}  # fmt: skip


def week(place: Place, args: argparse.Namespace) -> Json:
    """Sessions as agents write them: what the store grows by, beside one that is indexed at once."""
    queues = [iter(_replayed(args.week, place.home, part, WEEK_AGENTS)) for part in range(WEEK_AGENTS)]
    total = sum(path.read_bytes().count(b"\n") for path in args.week.rglob("*.jsonl") if ".claude" in path.parts)
    pace = total / WEEK_SECONDS
    told: Json = {"records": total, "seconds": WEEK_SECONDS, "agents": WEEK_AGENTS}
    began = time.perf_counter()
    with Follower(place.env) as follower:
        written = done = 0
        with follower.cost(told):
            while queues:
                for queue in list(queues):
                    path, line = next(queue, (None, b""))
                    if path is None:
                        queues.remove(queue)
                        continue
                    path.parent.mkdir(parents=True, exist_ok=True)
                    now = time.strftime('"timestamp":"%Y-%m-%dT%H:%M:%S.000Z"', time.gmtime()).encode()
                    line = _TIME.sub(now, line)
                    with open(path, "ab") as stream:
                        stream.write(line)
                    written += len(line)
                    done += 1
                ahead = done / pace - (time.perf_counter() - began)
                if ahead > 0:
                    time.sleep(ahead)
                follower.sample()
            time.sleep(2)
        told["bytes"] = written
        told["written_per_byte"] = round(told["bytes_written"] / written, 1)
        told["store_mb"] = megabytes(_store_bytes(place))
        time.sleep(PACKED_SECONDS)
        told["store_packed_mb"] = megabytes(_store_bytes(place))
        told["private_peak_mb"] = megabytes(follower.peak[0] * 1024)
    shutil.rmtree(place.env["OUTCROP_HOME"])
    subprocess.run([sys.executable, "-m", "outcrop", "index"], env=place.env, check=True, capture_output=True)
    told["store_at_once_mb"] = megabytes(_store_bytes(place))
    return told


def _replayed(source: Path, home: Path, part: int, parts: int) -> Iterator[tuple[Path, bytes]]:
    """The records of every `parts`-th session of a home, with the places where they are to be written anew."""
    paths = sorted(path for path in source.rglob("*.jsonl") if ".claude" in path.parts)
    for path in paths[part::parts]:
        with open(path, "rb") as stream:
            for line in stream:
                yield home / path.relative_to(source), line


def _store_bytes(place: Place) -> int:
    return sum(path.stat().st_size for path in Path(place.env["OUTCROP_HOME"]).rglob("*") if path.is_file())


def baseline() -> Json:
    """What a loop costs that parses each record and puts it into one table, in a transaction of its own."""
    with tempfile.TemporaryDirectory() as work:
        place = Place(Path(work))
        lines = [place.record("s", f"w{number}") for number in range(200)]
        before = io_counters("self")["wchar"]
        spread = Spread()
        with sqlite3.connect(Path(work) / "plain.db", isolation_level=None) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, text TEXT)")
            for line in lines:
                spread.time(lambda line=line: db.execute("INSERT INTO record (text) VALUES (?)",
                                                         (json.loads(line)["message"]["content"],)))  # fmt: skip
        written = io_counters("self")["wchar"] - before
        db.close()
        return {"records": len(lines), "written_per_byte": round(written / sum(map(len, lines)), 1)} | spread.summary()


def plain_listing(home: Path) -> float:
    """Milliseconds of CPU of a loop that lists all folders and looks at every file once."""
    began = time.thread_time()
    for folder, _, names in os.walk(home):
        for name in names:
            os.stat(os.path.join(folder, name))
    return round((time.thread_time() - began) * 1000, 2)


if __name__ == "__main__":
    sys.exit(main())
