"""A running indexer under test: started as the program starts it, watched from outside, asked over its socket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment
from outcrop.servers import local
from transcripts import Claude
from world import World

PATIENCE = 60.0
"""Seconds until something that must happen is a failure; the machine may be busy."""


def until(condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "") -> Any:
    """The first value of `condition` that is true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {what or condition}"
        time.sleep(0.02)
    return value


class Follower:
    """An `outcrop watch` process on a world."""

    def __init__(
        self,
        world: World,
        *options: str,
        background: bool = True,
        prefix: tuple[str, ...] = (),
        python: tuple[str, ...] = ("-m", "outcrop"),
        **variables: str,
    ) -> None:
        self.world = world
        self.log = world.folder / "follower.log"
        words = ["watch", *(["--background"] if background else []), *options]
        with open(self.log, "ab") as stderr:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, *python, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env={**world.environment, **variables},
            )

    def __enter__(self) -> Follower:
        until(lambda: status(self.world) or self.process.poll() is not None, what="the door")
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def current(self, since: int = 0) -> dict[str, Any]:
        """Its status once a sweep has been completed after `since` (UTC ms) and none is running."""

        def rests() -> dict[str, Any] | None:
            assert self.process.poll() is None, self.said()
            told = status(self.world)
            done = told is not None and (told["last_sweep_completed_at"] or 0) > since and told["sweep"] is None
            return told if done else None

        found: dict[str, Any] = until(rests, what="a sweep")
        return found

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to end; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def status(world: World) -> dict[str, Any] | None:
    """What the indexer of a world says of itself; None where none answers."""
    return local.ask(world.store, "status", timeout=10.0)


def record(world: World) -> dict[str, Any]:
    """What the indexers of a world left of themselves."""
    try:
        found: dict[str, Any] = json.loads((world.store / "run" / "indexer.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def indexers(world: World) -> list[int]:
    """Processes that run as the indexer of a world, found by their command and their environment."""
    found = []
    wanted = f"OUTCROP_HOME={world.store}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if b"watch" in command and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


@contextmanager
def followed(folder: Path) -> Iterator[World]:
    """A world whose processes start indexers; all of those are ended with it."""
    world = World(folder, follows=True)
    world.places()
    try:
        yield world
    finally:
        world.close()
        for pid in indexers(world):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def surroundings(world: World, **variables: str) -> dict[str, Any]:
    """What a process of a world tells of where its sessions lie."""
    return Environment(world.home, variables).told()


def texts(world: World, word: str) -> list[str]:
    """The text of every message with a word in it, asked of another process."""
    data = world.data("search_sessions", query=f'"{word}"', n_hits=50)
    return [world.data("open", id=hit["event"]["id"])["event"]["text"] for hit in data["results"]]


def finds(world: World, word: str) -> bool:
    """Whether another process finds a word, which is in one message alone, once."""
    envelope = world.call("search_sessions", query=f'"{word}"', n_hits=50)
    if "error" in envelope:
        assert envelope["error"]["code"] in ("backend_failure", "internal_error"), envelope
        return False
    count = envelope["data"]["result_count"]
    assert count <= 1, f"{word} is there {count} times"
    return bool(count)


def append(path: Path, *lines: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as stream:
        stream.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())


def conversation(world: World, letter: str, *words: str) -> Claude:
    """A session in the plain folder, one prompt a word; not written yet."""
    made = Claude(letter, world.places().plain)
    for place, word in enumerate(words):
        made.user(f"10:{place // 60:02}:{place % 60:02}", f"the word is {word}")
    return made
