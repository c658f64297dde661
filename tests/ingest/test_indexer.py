"""The indexer's own thread: clocks, jobs and ends, with the surroundings of the process put in its hands."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from following import append, conversation, until
from outcrop.config import Config
from outcrop.errors import IndexerEnded, InvalidRequest, StoreBusy
from outcrop.harnesses import Environment
from outcrop.ingest.discover import discover, discover_at
from outcrop.ingest.indexer import Indexer
from outcrop.ingest.jobs import Jobs
from outcrop.ingest.pipeline import Pipeline
from outcrop.store.embedded.read import EmbeddedStore
from world import World


@dataclass
class Running:
    """An indexer on a thread of this process, and the clock that it believes."""

    world: World
    ahead: float = 0.0
    reason: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        store = self.world.store
        config = Config(store, store / "config.toml")
        self.indexer = Indexer(config, Environment(self.world.home), clock=lambda: time.time() + self.ahead)
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.reason.append(self.indexer.run())

    def sweeps_after(self, moment: int | None) -> int:
        """The time of the first whole sweep after `moment`."""

        def done() -> int | None:
            at = self.indexer.observed.last_sweep_completed_at
            return at if at is not None and at != moment and not self.indexer.observed.sweeping else None

        return int(until(done, what="a sweep"))


@pytest.fixture
def running(small_world: World) -> Iterator[Running]:
    small_world.write("K")
    made = Running(small_world)
    made.thread.start()
    made.sweeps_after(None)
    try:
        yield made
    finally:
        made.indexer.stop("the test is over")
        made.thread.join(30)
        assert not made.thread.is_alive()


@pytest.mark.parametrize("seconds", [3600.0, -3600.0, 6.0])
def test_a_clock_that_was_set_or_a_machine_that_slept_is_followed_by_a_sweep(running: Running, seconds: float) -> None:
    before = running.sweeps_after(None)
    time.sleep(0.01)
    running.ahead = seconds
    after = running.sweeps_after(before)
    time.sleep(2.5)
    assert running.sweeps_after(None) == after  # one is enough


def test_a_clock_that_is_trimmed_a_little_means_nothing(running: Running) -> None:
    before = running.sweeps_after(None)
    running.ahead = 2.0
    time.sleep(2.5)
    assert running.sweeps_after(None) == before


def test_what_a_job_wrote_is_searchable_when_it_is_done(running: Running) -> None:
    session = conversation(running.world, "A", "avocet")
    append(session.path(running.world.home), *session.lines)
    running.indexer.reconcile().result(30)
    with EmbeddedStore(running.world.store).snapshot() as snapshot:
        assert snapshot.sources() == ("claude",)
    assert running.world.data("search_sessions", query="avocet")["result_count"] == 1


def test_a_full_request_is_served_after_the_pass_that_runs(running: Running) -> None:
    gate = threading.Event()
    first = running.indexer.submit(lambda _: gate.wait(30))
    until(first.running)
    some = [running.indexer.reconcile(full=True) for _ in range(3)]
    session = conversation(running.world, "A", "avocet")
    append(session.path(running.world.home), *session.lines)
    gate.set()
    assert [future.result(30).files for future in some] == [2, 2, 2]
    assert running.world.data("search_sessions", query="avocet")["result_count"] == 1


def test_a_job_that_fails_is_its_askers_and_ends_nothing(running: Running) -> None:
    def fail(_: Any) -> None:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        running.indexer.submit(fail).result(30)
    assert running.indexer.reconcile().result(30).problems == []


def test_a_job_that_was_cancelled_while_it_waited_is_not_done(running: Running) -> None:
    gate = threading.Event()
    done: list[int] = []
    first = running.indexer.submit(lambda _: gate.wait(30))
    second = running.indexer.submit(lambda _: done.append(1))
    until(first.running)
    assert second.cancel()
    gate.set()
    first.result(30)
    running.indexer.reconcile().result(30)
    assert done == []
    with pytest.raises(CancelledError):
        second.result(0)


def test_jobs_that_wait_when_it_ends_are_refused_and_so_are_later_ones(running: Running) -> None:
    gate = threading.Event()
    first = running.indexer.submit(lambda _: gate.wait(30))
    until(first.running)
    second = running.indexer.reconcile(full=True)
    running.indexer.stop("it is time")
    gate.set()
    first.result(30)
    with pytest.raises(IndexerEnded):
        second.result(30)
    running.thread.join(30)
    assert running.reason == ["it is time"]
    with pytest.raises(IndexerEnded):
        running.indexer.reconcile()


def test_a_second_one_finds_the_store_held(running: Running) -> None:
    store = running.world.store
    other = Indexer(Config(store, store / "config.toml"), Environment(running.world.home))
    with pytest.raises(StoreBusy):
        other.run()


def test_what_is_told_of_it_is_complete(running: Running) -> None:
    told = Jobs(running.indexer).status()
    assert told["phase"] == "current"
    assert told["files_indexed"] == 1
    assert told["leases"] == 0
    for name in ("memory_bytes", "cpu_seconds", "bytes_written", "started_at", "last_reconcile_at"):
        assert told[name] > 0
    assert (told["problem"], told["watch_problem"], told["degraded_roots"]) == (None, None, [])


def test_where_folders_cannot_be_watched_what_changes_is_found_all_the_same(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    import watchfiles

    def refuse(*_: object, **__: object) -> Iterator[set[Any]]:
        raise OSError("OS file watch limit reached.")

    monkeypatch.setattr(watchfiles, "watch", refuse)
    small_world.write("K")
    running = Running(small_world)
    running.thread.start()
    try:
        running.sweeps_after(None)
        session = conversation(small_world, "K2", "avocet")
        path = small_world.sessions["K"].path(small_world.home)
        append(path, *[{**line, "sessionId": small_world.sessions["K"].session} for line in session.lines])
        until(lambda: small_world.data("search_sessions", query="avocet")["result_count"], 10.0, "a change")
        told = running.indexer.observed.told()
        assert (told["watching"], told["watch_problem"]) == ("polling", "OS file watch limit reached.")
    finally:
        running.indexer.stop("the test is over")
        running.thread.join(30)


def test_its_log_and_its_files_are_for_their_owner_alone(running: Running) -> None:
    for path in Path(running.world.store).rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_new_file_in_a_known_folder_is_read_without_a_listing(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(letter: str, word: str) -> None:
        session = conversation(running.world, letter, word)
        append(session.path(running.world.home), *session.lines)
        until(lambda: running.world.data("search_sessions", query=word)["result_count"] == 1)

    write("A", "avocet")  # its folder is new, which is listed once more a little later
    until(lambda: not running.indexer._listings and not running.indexer._new_folders, what="the listing")
    listed: list[tuple[Any, ...]] = []

    def listing(*asked: Any) -> Any:
        listed.append(asked)
        return discover(*asked)

    for module in ("indexer", "pipeline"):
        monkeypatch.setattr(f"outcrop.ingest.{module}.discover", listing)
    write("B", "bittern")
    session = conversation(running.world, "B", "bittern", "curlew")
    append(session.path(running.world.home), session.lines[-1])
    until(lambda: running.world.data("search_sessions", query="curlew")["result_count"] == 1)
    path = session.path(running.world.home)
    (path.parent / "notes.txt").write_text("no session", encoding="utf-8")
    write("C", "dunlin")
    assert listed == []
    # The next sweep knows them all the same.
    running.indexer.reconcile(full=True).result(30)
    assert len(listed) == 1
    assert running.world.data("search_sessions", query="word")["result_count"] == 4
    path.rename(path.with_name(path.name + ".jsonl"))
    until(lambda: len(listed) > 1, what="a listing after a file went")


def test_what_is_urgent_is_served_in_the_midst_of_a_batch(small_world: World) -> None:
    long = conversation(small_world, "A", *("tide " * 20_000 for _ in range(60)))
    append(long.path(small_world.home), *long.lines)
    other = conversation(small_world, "B", "gull")
    small_world.store.mkdir()
    store = small_world.store
    pipeline = Pipeline(Config(store, store / "config.toml"), Environment(small_world.home))
    counts: list[int] = []

    def breathe() -> bool:
        assert not pipeline.writer.db.in_transaction
        counts.append(pipeline.writer.db.execute("SELECT count(*) FROM event").fetchone()[0])
        if len(counts) == 3:
            path = other.path(small_world.home)
            append(path, *other.lines)
            (file,) = discover_at(pipeline.config, pipeline.environment, "claude", str(path)) or []
            assert pipeline.read([file]).events == 1
        return False

    pipeline.breathe = breathe
    try:
        pipeline.sweep()
        assert counts[:6] == [0, 0, 0, 0, 1, 1]  # the fourth is that of the other file
        assert pipeline.writer.db.execute("SELECT count(*) FROM event").fetchone() == (61,)
        assert pipeline.writer.db.execute("SELECT count(*) FROM turn").fetchone() == (61,)
    finally:
        pipeline.close()


def test_the_log_of_the_rows_is_given_back_after_the_first_build_and_when_all_is_quiet(small_world: World) -> None:
    session = conversation(small_world, "A", *(f"tide{number}" for number in range(100)))
    path = session.path(small_world.home)
    append(path, *session.lines)
    small_world.store.mkdir()
    log = small_world.store / "outcrop.db-wal"
    config = Config(small_world.store, small_world.store / "config.toml")
    pipeline = Pipeline(config, Environment(small_world.home))
    try:
        pipeline.sweep()
        pipeline.settle()
        assert log.stat().st_size == 0
        changes = pipeline.writer.db.total_changes
        pipeline.pack()
        assert pipeline.writer.db.total_changes == changes, "an indexer that nothing happens to writes nothing"
        session.user("23:00:00", "and now it is high")
        append(path, session.lines[-1])
        pipeline.sweep()
        pipeline.settle()
        assert log.stat().st_size > 0
        pipeline.pack()
        assert log.stat().st_size == 0
        with closing(sqlite3.connect(log.with_suffix(".db"), isolation_level=None)) as reader:
            append(path, *conversation(small_world, "A", "tide0", "gull").lines)
            pipeline.sweep()
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM event").fetchone()
            append(path, *conversation(small_world, "A", "tide0", "gull", "reef").lines)
            pipeline.sweep()
            pipeline.pack()  # waits for nobody
    finally:
        pipeline.close()
