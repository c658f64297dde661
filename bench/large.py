"""Measures the memory of indexing one large file: what a first build of it holds at most, and what it costs.

    python bench/large.py [--gb G] [--kind messages] [--kind mixed] [--work DIR]

The file is one session of Claude Code. In `messages` every record is a long message of 10 KB, the dearest that there
is for the text index; in `mixed` prompts, answers, calls and their outputs take turns, as in real sessions. Words come
from a vocabulary of 30,000 with the frequencies of a natural language. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import orjson
from measure import Json, conditions, environment, folder_bytes, megabytes, report, run

VOCABULARY = 30_000
TEXT_BYTES = 8_000_000
"""Of the text that messages are cut from, each at another place."""
LONG = 10_000
PROMPT, ANSWER, COMMAND = 400, 1_200, 200
OUTPUTS = (300, 1_500, 4_000, 12_000)
SESSION = "1a56e000-0000-4000-8000-000000000001"
STARTED = datetime(2026, 1, 5, tzinfo=UTC)
BUDGET_MB = 300


class Writer:
    """Records of one session, each with the one before it as its parent."""

    def __init__(self) -> None:
        self._random = random.Random(11)
        self._text = self._words()
        self._number = 0
        self._parent: str | None = None

    def messages(self) -> Iterator[Json]:
        for number in count():
            yield self._said("user" if number % 2 == 0 else "assistant", LONG)

    def mixed(self) -> Iterator[Json]:
        for number in count():
            if number % 6 == 0:
                yield self._said("user", PROMPT)
                yield self._said("assistant", ANSWER)
            call = f"toolu_{number:016x}"
            command = {"command": self._piece(COMMAND)}
            yield self._record("assistant", [{"type": "tool_use", "id": call, "name": "Bash", "input": command}])
            output = self._piece(self._random.choice(OUTPUTS))
            yield self._record("user", [{"type": "tool_result", "tool_use_id": call, "content": output}])

    def _said(self, role: str, size: int) -> Json:
        text = self._piece(size)
        return self._record(role, text if role == "user" else [{"type": "text", "text": text}])

    def _record(self, role: str, content: object) -> Json:
        self._number += 1
        name = str(uuid.UUID(int=self._random.getrandbits(128)))
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{self._number:016x}", "model": "m"}
        record = {
            "parentUuid": self._parent, "isSidechain": False, "userType": "external", "cwd": "/w", "sessionId": SESSION,
            "version": "2.1.39", "gitBranch": "main", "type": role, "uuid": name, "message": message,
            "timestamp": (STARTED + timedelta(seconds=self._number)).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        }  # fmt: skip
        self._parent = name
        return record

    def _piece(self, size: int) -> str:
        at = self._random.randrange(len(self._text) - size)
        return f"n{self._number} {self._text[at : at + size]}"

    def _words(self) -> str:
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = ["".join(self._random.choices(letters, k=self._random.randint(2, 11))) for _ in range(VOCABULARY)]
        weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
        return " ".join(self._random.choices(words, weights, k=TEXT_BYTES // 6))


def write(home: Path, kind: str, size: int) -> Path:
    """Make `home` one with a single file of `size` bytes."""
    folder = home / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    path = folder / f"{SESSION}.jsonl"
    records: Callable[[], Iterator[Json]] = getattr(Writer(), kind)
    with path.open("wb") as file:
        for record in records():
            file.write(orjson.dumps(record) + b"\n")
            if file.tell() >= size:
                break
    return path


def measure(work: Path, kind: str, size: int) -> Json:
    path = write(work / "home", kind, size)
    env = environment(work / "home", work / "store", work / "bytecode")
    cost = run([sys.executable, "-m", "outcrop", "index"], env, sample=True)
    read = path.stat().st_size
    return {
        "bytes": read,
        "cpu_seconds": round(cost.cpu, 2),
        "wall_seconds": round(cost.wall, 2),
        "mb_per_cpu_second": round(read / 1e6 / cost.cpu, 2),
        "private_peak_mb": megabytes(cost.private * 1024),
        "anonymous_peak_mb": megabytes(cost.anonymous * 1024),
        "budget_private_mb": BUDGET_MB,
        "store_mb": megabytes(folder_bytes(work / "store")),
        "said": cost.output.decode().strip(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the memory of indexing one large file.")
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--kind", action="append", choices=("messages", "mixed"))
    parser.add_argument("--work", type=Path, help="where homes and stores are made; they are deleted after")
    args = parser.parse_args()
    found: Json = {"conditions": conditions()}
    for kind in args.kind or ("messages", "mixed"):
        with tempfile.TemporaryDirectory(prefix="outcrop-large-", dir=args.work) as work:
            found[kind] = measure(Path(work), kind, int(args.gb * 1e9))
    report(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
