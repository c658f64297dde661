"""Work that belongs to the one writer: handed to the indexer where one runs, so that nobody waits for its lock."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from outcrop.config import Config

RECENT_SECONDS = 0.1
"""How long a command that finds no indexer reads what is newest before it answers."""
PATIENCE = 10.0
"""Seconds for the greeting of an indexer that is busy."""
LOOK_SECONDS = 0.25
"""Between two looks who holds the lock: an indexer that starts holds it before it can be asked."""

TOLD_SECONDS = 1.5
"""Who waits for longer is told for whom."""


class Waiting:
    """Says on stderr, once and not at once, that another process is waited for."""

    def __init__(self) -> None:
        self._from = time.monotonic() + TOLD_SECONDS
        self._told = False

    def tell(self) -> None:
        if not self._told and time.monotonic() >= self._from:
            self._told = True
            print(
                "outcrop: waiting for the indexer, or another outcrop process that writes to the history",
                file=sys.stderr,
                flush=True,
            )

    @contextmanager
    def during(self) -> Iterator[None]:
        """The same for what blocks."""
        timer = threading.Timer(max(0.0, self._from - time.monotonic()), self.tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def done(
    config: Config,
    method: str,
    params: dict[str, Any],
    alone: Callable[[float], dict[str, Any]],
    progress: Callable[[str, int, int, int], None] | None = None,
) -> dict[str, Any]:
    """What the indexer made of it, or where none runs `alone`: under the lock, for which it may wait so many seconds.

    Raises the error that the work ended with, StoreBusy where somebody who cannot be asked keeps the lock.
    """
    from outcrop.errors import IndexerEnded, StoreBusy
    from outcrop.ingest.lock import WAIT_SECONDS

    until = time.monotonic() + WAIT_SECONDS
    waiting = Waiting()
    while True:
        try:
            if (told := _handed(config, method, params, progress, waiting)) is not None:
                return told
            return alone(LOOK_SECONDS)
        except IndexerEnded:
            continue
        except StoreBusy:
            if time.monotonic() > until:
                raise
            waiting.tell()


def _handed(
    config: Config,
    method: str,
    params: dict[str, Any],
    progress: Callable[[str, int, int, int], None] | None,
    waiting: Waiting,
) -> dict[str, Any] | None:
    """What the indexer made of it; None where none answers."""
    from outcrop.harnesses import Environment
    from outcrop.servers import start

    with waiting.during():
        client = start.attach(config.home, Environment.here().told(), PATIENCE)
    if client is None:
        return None

    def notified(method: str, told: dict[str, Any]) -> None:
        if progress is not None and method == "progress":
            progress(told["path"], told["done"], told["total"], told["events"])

    try:
        return client.call(method, params, notified=notified)
    finally:
        client.close()


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Have the indexer leave, so that this process can be the writer, and start one again afterwards."""
    from outcrop.servers import local, start

    ran = local.ask(home, "leave") is not None
    try:
        yield
    finally:
        if ran:
            start.spawn(home)


@contextmanager
def writing(home: Path) -> Iterator[None]:
    """Be the writer, under the lock and `alone`. Raises what `writer_lock` raises."""
    from outcrop.ingest.lock import writer_lock

    with ExitStack() as stack:
        with Waiting().during():
            stack.enter_context(alone(home))
            stack.enter_context(writer_lock(home))
        yield


def reconcile(config: Config) -> None:
    """Have the indexer read what is newest (ruling 40); where none may be started this process does, under the lock.

    Whoever asked may stop waiting and end. The indexer needs nobody for that; a pass of this process is ended first.
    """
    from concurrent.futures import ThreadPoolExecutor
    from dataclasses import asdict

    from outcrop.harnesses import Environment
    from outcrop.ingest.pipeline import index
    from outcrop.servers import start

    told = Environment.here().told()
    client = start.attach(config.home, told)
    if client is None and config.auto_index and start.spawn(config.home):
        client = start.awaited(config.home, told)
    if client is not None:
        client.close()

    def alone(wait: float) -> dict[str, Any]:
        with ThreadPoolExecutor(1, "pass") as pool:  # the interpreter ends its threads before it ends itself
            return asdict(pool.submit(index, config, wait=wait).result())

    done(config, "reconcile", {}, alone)


def attend(config: Config, patient: bool) -> None:
    """Have somebody follow the files; where nobody does yet, take in what is newest.

    Raises StoreMissing where there is no history yet and an indexer was started that makes one, unless `patient`:
    whoever waits for what is new, or tells a program what there is, goes on.
    """
    if not config.auto_index:
        return
    from outcrop.errors import StoreMissing
    from outcrop.harnesses import Environment
    from outcrop.servers import start

    client = start.attach(config.home, Environment.here().told())
    if client is not None:
        client.close()
        return
    first = not _read_newest(config)
    if start.spawn(config.home) and first and not patient:
        raise StoreMissing(
            "nothing is indexed yet: an indexer has started, and reads the newest sessions first; ask again in a moment"
        )


def _read_newest(config: Config) -> bool:
    """False where there is no history yet."""
    from outcrop.errors import OutcropError
    from outcrop.store.embedded.database import database_path

    if not database_path(config.home).exists():
        return False
    from outcrop.harnesses import Environment
    from outcrop.ingest.lock import writer_lock
    from outcrop.ingest.pipeline import Pipeline
    from outcrop.paths import keep_private

    keep_private()
    try:
        with writer_lock(config.home, 0):
            pipeline = Pipeline(config, Environment.here())
            try:
                pipeline.recent(RECENT_SECONDS)
            finally:
                pipeline.close()
    except (OutcropError, OSError):
        pass  # what can be read is answered all the same, and the reader tells what is wrong
    return True
