"""What the measurements share: the conditions, children and their cost, spreads of latencies.

CPU time is the yardstick, wall time stands beside it. Linux only: /proc is where the kernel counts. A child compiles
its bytecode into a folder of its own whatever PYTHONDONTWRITEBYTECODE says, as an installed program would have it.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import outcrop

Json = dict[str, Any]
SAMPLE_SECONDS = 0.05


def conditions() -> Json:
    """Machine, versions and date, without which no figure means anything."""
    model = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": model[0] if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6,
        "load_1m": round(os.getloadavg()[0], 2),
        "system": platform.platform(terse=True),
        "outcrop": outcrop.__version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in ("tantivy", "orjson", "zstandard")},
    }


def environment(home: Path, store: Path, bytecode: Path) -> dict[str, str]:
    """The whole world of a child: its home, its data folder, and where it finds this source tree."""
    source = Path(outcrop.__file__).parent.parent
    return {
        "HOME": str(home),
        "OUTCROP_HOME": str(store),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(source),
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "OUTCROP_AUTO_INDEX": "0",
    }


@dataclass(slots=True)
class Cost:
    """What a finished child used: seconds of CPU (user and system) and of wall; memory in KiB as sampled."""

    cpu: float
    wall: float
    private: int = 0
    anonymous: int = 0
    output: bytes = b""


def run(command: list[str], env: dict[str, str], *, sample: bool = False) -> Cost:
    """Run a child to its end; with `sample`, look at its memory every 50 ms, so it must print little before its end.

    Raises CalledProcessError, with what the child had to say.
    """
    started = time.monotonic()
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as child,
    ):
        private = anonymous = 0
        while sample and not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            memory = private_memory(child.pid)
            private, anonymous = max(private, memory[0]), max(anonymous, memory[1])
            time.sleep(SAMPLE_SECONDS)
        assert child.stdout
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, command, output, errors.read())
    return Cost(usage.ru_utime + usage.ru_stime, wall, private, anonymous, output)


def private_memory(pid: int) -> tuple[int, int]:
    """(private, anonymous) KiB of a process; zeros when it is gone. Private holds mapped file pages, too."""
    fields = {line.split(":")[0]: line.split()[1] for line in _lines(f"/proc/{pid}/smaps_rollup")[1:]}
    private = int(fields.get("Private_Clean", 0)) + int(fields.get("Private_Dirty", 0))
    return private, int(fields.get("Anonymous", 0))


def io_counters(task: str) -> dict[str, int]:
    """What the kernel counts of a process or thread: `wchar` handed to write, `write_bytes` sent to storage, ..."""
    return {name: int(value) for name, value in (line.split(": ") for line in _lines(f"/proc/{task}/io"))}


def cpu_so_far(pid: int) -> float:
    """Seconds of CPU of the threads that a process has now."""
    spent = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        spent += int((_lines(f"{thread}/schedstat") or ["0"])[0].split()[0])
    return spent / 1e9


@dataclass(slots=True)
class Spread:
    """Samples of one kind of call, in seconds."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def time(self, call: Callable[[], Any]) -> Any:
        """Run `call` in this thread and note what it took."""
        cpu, wall = time.thread_time(), time.perf_counter()
        result = call()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.thread_time() - cpu)
        return result

    def summary(self) -> Json:
        """Percentiles in milliseconds."""
        if not self.wall:
            return {"n": 0}
        found: Json = {"n": len(self.wall)}
        for name, values in (("wall_ms", self.wall), ("cpu_ms", self.cpu)):
            if values:
                found[name] = {f"p{share}": round(percentile(values, share) * 1000, 3) for share in (50, 95, 99)}
        return found


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that `share` percent of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(share) // 100) - 1)]


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def megabytes(size: float) -> float:
    return round(size / 1e6, 2)


def report(document: Json) -> None:
    json.dump(document, sys.stdout, indent=1)
    print()


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []
