"""`outcrop watch`: follow the agents' files, in the foreground; with `--background` as the indexer of this machine."""

from __future__ import annotations

import signal
import sys
import threading
import time
from argparse import SUPPRESS, ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from outcrop import __version__
from outcrop.errors import EXIT_INTERRUPTED, EXIT_OK, StoreBusy

if TYPE_CHECKING:
    from outcrop.config import Config
    from outcrop.ingest.indexer import Indexer
    from outcrop.servers.vault import VaultMethods

TAKE_OVER_SECONDS = 15.0


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
    indexer = Indexer(config, Environment.here(), linger)
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

    if not args.background:
        _take_over(config.home)
    try:
        reason = indexer.run(ready)
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


class _Signals:
    """SIGTERM and SIGINT end the indexer, from a thread of their own: a handler must not wait for locks."""

    def __init__(self, stop: Any) -> None:
        self.number: int | None = None
        self._stop = stop
        for number in (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
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

        if not self._record or not (self._home / "run").is_dir():
            return
        now = time.time()
        if crashed:
            self._record["crashes"].append(now)
        start.write_record(self._home, {**self._record, "ended": now, "reason": reason})


def _take_over(home: Any) -> None:
    """Ask the indexer in the background to leave: this one takes its place."""
    from outcrop.servers import local

    if local.ask(home, "leave") is None:
        return
    until = time.monotonic() + TAKE_OVER_SECONDS
    while local.connect(home) is not None and time.monotonic() < until:
        time.sleep(0.05)
