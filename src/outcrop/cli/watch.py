"""`outcrop watch`: follow the agents' files, in the foreground; with `--background` as the indexer of this machine."""

from __future__ import annotations

import signal
import sys
import threading
import time
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcrop import __version__
from outcrop.errors import EXIT_INTERRUPTED, EXIT_OK, StoreBusy

if TYPE_CHECKING:
    from outcrop.config import Config
    from outcrop.ingest.indexer import Indexer
    from outcrop.servers.vault import VaultMethods

TAKE_OVER_SECONDS = 15.0
"""How long `outcrop watch` waits for whoever holds the store."""
MOMENT = 1.0
"""A command that reads what is newest holds the store for less; a second indexer gives up after that."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--background", action="store_true", help=SUPPRESS)
    parser.add_argument("--linger", type=float, metavar="S", help=SUPPRESS)


def run(args: Namespace) -> int:
    from outcrop.cli.context import load_config
    from outcrop.harnesses import Environment
    from outcrop.ingest.indexer import LINGER_SECONDS, Indexer
    from outcrop.ingest.jobs import Jobs
    from outcrop.servers.door import Door
    from outcrop.servers.indexing import IndexerMethods
    from outcrop.servers.jsonrpc import Slots
    from outcrop.servers.local import Address
    from outcrop.servers.vault import METHODS

    config = load_config()
    linger = args.linger if args.linger is not None else (LINGER_SECONDS if args.background else None)
    environment = Environment.here()
    if args.background:  # started elsewhere than whoever wants it: that tells where it runs
        environment = replace(environment, folder=None)
    indexer = Indexer(config, environment, linger)
    jobs = Jobs(indexer)
    vault = _session_search(config, indexer)
    signals = _Signals(indexer.stop)
    doors: list[Door] = []
    record = _Record(config.home)

    def ready() -> None:
        record.begin()
        searches = Slots(config.parallel, config.queue)
        doors.append(
            Door(
                Address.of(config.home),
                lambda send, token: IndexerMethods(jobs, vault, send, token),
                Slots(running=4, waiting=64),
                indexer.lease,
                dict.fromkeys(METHODS, searches),
            )
        )
        if not args.background:
            print("following the agents' files; Ctrl-C ends it", file=sys.stderr, flush=True)

    try:
        reason = _run(indexer, ready, config.home, take_over=not args.background)
    except StoreBusy:
        if args.background:
            return EXIT_OK  # another one was faster
        raise
    except BaseException as error:
        record.end(f"{type(error).__name__}: {getattr(error, 'message', '')}", crashed=True)
        raise
    finally:
        for door in doors:
            door.close()
    record.end(reason)
    if signals.number == signal.SIGINT:
        return EXIT_INTERRUPTED
    if not args.background:
        print(f"ended: {reason}", file=sys.stderr)
    return EXIT_OK


def _session_search(config: Config, indexer: Indexer) -> VaultMethods:
    """Register the indexer's own service; its methods for processes of this user on this machine (ruling 49)."""
    from outcrop.cli import context
    from outcrop.contracts.vault.exposure import Transport
    from outcrop.contracts.vault.local import LocalService
    from outcrop.contracts.vault.service import set_session_search_service
    from outcrop.contracts.vault.watched import WatchedService
    from outcrop.servers.vault import VaultMethods

    def reconcile() -> None:
        indexer.reconcile().result()

    store = context.store(config)
    catalog = context.catalog(config, store)
    local = LocalService(store, catalog, reconcile, config.search)
    set_session_search_service(WatchedService(local, indexer.observed))
    return VaultMethods(Transport.RUNTIME, catalog.agents)


def _run(indexer: Indexer, ready: Callable[[], None], home: Path, take_over: bool) -> str:
    """Run the indexer, with `take_over` once the one in the background has left; why it ended."""
    from outcrop.cli.jobs import Waiting
    from outcrop.servers import local

    until = time.monotonic() + TAKE_OVER_SECONDS
    waiting = Waiting()
    while True:
        if take_over:
            with waiting.during():
                local.ask(home, "leave")
        try:
            return indexer.run(ready, MOMENT)
        except StoreBusy:
            if not take_over or time.monotonic() > until:
                raise
            waiting.tell()


class _Signals:
    """SIGTERM, SIGINT and SIGHUP end the indexer, from a thread of their own: a handler must not wait for locks.

    One that was ignored when the process started, as `nohup` has it, stays so.
    """

    def __init__(self, stop: Any) -> None:
        self.number: int | None = None
        self._stop = stop
        for number in (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: Any) -> None:
        self.number = self.number or number
        threading.Thread(target=self._stop, args=("it was told to end",), daemon=True).start()


class _Record:
    """What an indexer leaves of itself, so that the next one sees whether it crashed."""

    def __init__(self, home: Any) -> None:
        self._home = home
        self._record: dict[str, Any] = {}

    def begin(self) -> None:
        import os

        from outcrop.servers import start

        now = time.time()
        before = start.read_record(self._home)
        crashes = start.crashes(before, now)
        if before and "ended" not in before:
            crashes.append(now)  # it held the lock and is gone without a word
        self._record = {"pid": os.getpid(), "version": __version__, "started": now, "crashes": crashes}
        start.write_record(self._home, self._record)

    def end(self, reason: str, crashed: bool = False) -> None:
        from outcrop.servers import start

        if not self._record or start.read_record(self._home).get("pid") != self._record["pid"]:
            return  # the folder is gone, or another indexer's by now
        now = time.time()
        if crashed:
            self._record["crashes"].append(now)
        start.write_record(self._home, {**self._record, "ended": now, "reason": reason})
