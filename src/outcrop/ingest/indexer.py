"""The indexer: one process per store that follows the files of all sources and keeps the history up to them.

One thread, that of `run`, owns the store. It sweeps everything at the start, now and then, and whenever something was
missed; between sweeps it reads what the system says has changed. What is urgent, a change or a request, is also served
in the midst of a sweep, wherever that breathes. Other threads ask by `submit`, `hello` and `observed`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcrop.config import Config
from outcrop.errors import IndexerEnded, OutcropError, ResourceExhausted
from outcrop.harnesses import Environment, all_sources
from outcrop.ingest.discover import Discovery, Found, discover, discover_at
from outcrop.ingest.lock import writer_lock
from outcrop.ingest.observed import Observed
from outcrop.ingest.pipeline import Pipeline, Progress, Summary
from outcrop.ingest.places import Places, Spot, changed
from outcrop.ingest.told import remember
from outcrop.ingest.watch import Watch
from outcrop.paths import keep_private
from outcrop.store.embedded.database import database_path, engine_errors
from outcrop.store.embedded.text import QUIET_MS

log = logging.getLogger(__name__)

SWEEP_SECONDS = 300.0
"""Between two looks at every file: events may be lost, and some file systems have none."""
SWEEP_WITHOUT_EVENTS = 30.0
RECENT_SECONDS = 20.0
"""Between two looks at the newest files of each source, whether or not an event named them."""
RECENT_WITHOUT_EVENTS = 1.0
CHEAP_SECONDS = 0.5
"""What listing everything may take to be done at every request for what is newest."""
POLL_SECONDS = 1.0
"""Between two looks at databases, whose writers map them into memory."""
LINGER_SECONDS = 600.0
"""An indexer that nobody needs and that nothing happens to ends after this time."""
LISTING_SHARE = 20
"""A source is listed again at the earliest after so many times what the last listing of it took."""
CLOCK_STEP = 5.0
"""Seconds by which the clock and the time that passed may part before something is taken to have happened."""
RETRY_SECONDS = (5.0, 15.0, 60.0)
"""After a full disk."""
QUIET_SECONDS = 60.0
"""After which what came one by one is packed."""
ROUND_SECONDS = 1.0
"""For which what arrives meanwhile is read before a round ends."""
SETTLE_SECONDS = 2.0
"""After which a new folder is listed once more: files may have been made in it before it was watched."""
PEEK_SECONDS = 1.0
"""Between two looks for new files of a source, at least."""
LISTING_SECONDS = 5.0
"""After a look for new files, until all files of a source that has many are listed."""
_UNKNOWN_KEPT = 4_096


@dataclass(slots=True)
class Job:
    """Something that another thread asked for. `work` runs on the indexer's thread."""

    work: Callable[[Pipeline], Any]
    quick: bool
    """Whether it may be served in the midst of a sweep."""
    done: Future[Any] = field(default_factory=Future)


class Indexer:
    """Follows everything for one store. `linger` None: until it is stopped."""

    def __init__(
        self,
        config: Config,
        environment: Environment,
        linger: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.observed = Observed()
        self.leases = 0
        self._clock = clock
        self._environment = environment
        self._linger = linger
        self._changed = threading.Condition()
        self._dirty: set[str] = set()
        self._jobs: deque[Job] = deque()
        self._stopping: str | None = None
        self._needed = time.monotonic()
        """When it was last needed or something last happened."""
        self._told: list[Environment] = []
        """Surroundings of other processes, not yet looked at."""
        self._pipeline: Pipeline
        self._places = Places()
        self._listed: list[str] = []
        self._watch: Watch | None = None
        self._listed_last: dict[str, tuple[float, float]] = {}
        """When each source was last swept, and how long the listing took."""
        self._began = self._cost = 0.0
        self._listings: dict[str, float] = {}
        """Sources to list again, and when."""
        self._new_folders: set[str] = set()
        """Sources to list once more after that."""
        self._irrelevant: dict[str, None] = {}
        """Changed paths that no listing holds."""
        self._unseen: dict[str, float] = {}
        """Sources that may have new files, and when those may be looked for: less than a listing."""
        self._not_before: dict[str, float] = {}
        self._vanished: set[str] = set()
        """Sources of which a file is not where it was."""
        self._unsettled = False
        self._loose: float | None = None
        """When the last contents came one by one, until they are packed."""
        self._breathes_until: float | None = None
        """When a round stops to read more, so that it ends."""
        self._breathing = False
        self._next_breath = 0.0
        self._failures = 0

    # What other threads ask

    def submit(self, work: Callable[[Pipeline], Any], quick: bool = False) -> Future[Any]:
        """Have `work` done on the indexer's thread. Raises IndexerEnded once it is ending."""
        job = Job(work, quick)
        with self._changed:
            if self._stopping is not None:
                raise IndexerEnded
            self._jobs.append(job)
            self._needed = time.monotonic()
            self._changed.notify_all()
        return job.done

    def reconcile(self, full: bool = False) -> Future[Any]:
        """Read what is new: the newest files of each source, or with `full` everything. Done once it is searchable."""
        return self.submit(lambda pipeline: self.sweep() if full else self.recent(), quick=not full)

    def hello(self, environment: Environment) -> None:
        """A process of these surroundings needs the index: their roots are followed as well."""
        with self._changed:
            self._needed = time.monotonic()
            self._told.append(environment)
            self._changed.notify_all()

    def lease(self, opened: bool) -> None:
        with self._changed:
            self.leases += 1 if opened else -1
            self._needed = time.monotonic()

    def stop(self, reason: str) -> None:
        """Have `run` end at the next occasion. Safe in a signal handler's thread, not in the handler."""
        with self._changed:
            self._stopping = self._stopping or reason
            self.observed.closed = True
            self._changed.notify_all()

    # The owner's thread

    def run(self, ready: Callable[[], None] = lambda: None, wait: float = 0.0) -> str:
        """Follow until stopped or not needed; the reason. `ready` is called once the store is held.

        Raises StoreBusy where another process holds it for longer than `wait` seconds, and the store's errors.
        """
        keep_private()
        with writer_lock(self.config.home, wait), engine_errors():
            self._pipeline = Pipeline(self.config, self._environment)
            self._pipeline.breathe = self._breathe
            self._pipeline.listed = self._note_listing
            self._pipeline.text.hurry = lambda: bool(self._dirty)
            self._pipeline.text.quiet_ms = QUIET_MS
            self._home = _identity(self.config.home)
            try:
                self._remember(())
                ready()
                return self._follow()
            finally:
                self._end()

    def _follow(self) -> str:
        now = time.monotonic()
        due = {"sweep": now, "recent": now + RECENT_SECONDS, "poll": now}
        clock = self._clock() - now
        self._watch_folders()
        while self._stopping is None:
            now = time.monotonic()
            if abs(self._clock() - now - clock) > CLOCK_STEP:  # the machine slept, or the clock was set
                clock = self._clock() - now
                due["sweep"] = now
            if not self._hears():
                due["sweep"] = min(due["sweep"], now + SWEEP_WITHOUT_EVENTS)
                due["recent"] = min(due["recent"], now + RECENT_WITHOUT_EVENTS)
            try:
                self._check_home()
                self._meet_needs()
                if now >= due["sweep"]:
                    due["sweep"] = now + SWEEP_SECONDS
                    self.sweep()
                    whole = self._hears() and not self.observed.degraded_roots
                    due["sweep"] = time.monotonic() + (SWEEP_SECONDS if whole else SWEEP_WITHOUT_EVENTS)
                elif now >= due["recent"]:
                    due["recent"] = now + RECENT_SECONDS
                    self._note(changed(self._places.recent))
                if now >= due["poll"]:
                    due["poll"] = now + POLL_SECONDS
                    self._poll()
                self._work()
                if self._loose is not None and time.monotonic() - self._loose > QUIET_SECONDS:
                    self._loose = None
                    self._pipeline.settle()  # documents of whole sessions wait for quiet
                    self._pipeline.pack()
                self._failures = 0
                self.observed.problem = None
            except _Stopped:
                break
            except Exception as error:
                self._suffer(error)
                due["sweep"] = time.monotonic()
            if self._linger is not None and not self.leases and time.monotonic() - self._needed > self._linger:
                self.stop("nobody needs it")
            coming = (*due.values(), *self._listings.values(), *self._unseen.values())
            self._rest(max(0.0, min(coming) - time.monotonic()))
        return self._stopping or ""

    def _suffer(self, error: Exception) -> None:
        """Wait after a failure that may pass; then everything is to be looked at. Raises any other."""
        try:
            self._check_home()
            with engine_errors():
                raise error
        except _Stopped:
            return
        except ResourceExhausted as full:
            self.observed.problem = full.message
            until = time.monotonic() + RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
            self._failures += 1
            while self._stopping is None and (left := until - time.monotonic()) > 0:
                self._refuse_jobs(full)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping is not None or bool(self._jobs), left)

    def _rest(self, seconds: float) -> None:
        """Wait, at most until something is to be done."""
        with self._changed:
            if not self._dirty and not self._jobs and not self._told and self._stopping is None:
                self._changed.wait(seconds)

    def _work(self) -> None:
        """One round: serve what is asked, read what is urgent, bring the index up to it.

        However much keeps coming, the round ends, so that what it read is found and all else has its turn.
        """
        self._list_again()
        while self._stopping is None and (job := self._next_job()) is not None:
            self._serve(job)
        self._read_dirty()
        self._unsettled = self._read_unseen() or self._unsettled
        if self._unsettled:
            self._unsettled = False
            self._breathes_until = time.monotonic() + ROUND_SECONDS
            try:
                self._pipeline.settle()
            finally:
                self._breathes_until = None

    def _breathe(self) -> bool:
        """In the midst of something long: serve what is urgent; true if anything new was read.

        Not from within itself, and not for more than half of the time: what is long goes on.
        """
        if self._stopping is not None:
            raise _Stopped
        now = time.monotonic()
        if self._breathing or now < self._next_breath or not (self._dirty or self._jobs or self._unseen):
            return False
        if self._breathes_until is not None and now > self._breathes_until:
            return False
        self._breathing = True
        try:
            return self._serve_urgent()
        finally:
            self._breathing = False
            ended = time.monotonic()
            self._next_breath = ended + (ended - now)

    def _serve_urgent(self) -> bool:
        self._check_home()
        some = self._read_dirty() | self._read_unseen()
        # Before the first sweep is done nothing is known of what is newest.
        while self.observed.last_sweep_completed_at is not None and (job := self._next_job(quick=True)) is not None:
            self._serve(job)
            some = True
        if some:
            self._pipeline.settle_talk()
        return some

    def _next_job(self, quick: bool = False) -> Job | None:
        with self._changed:
            for job in self._jobs:
                if job.quick or not quick:
                    self._jobs.remove(job)
                    return job
        return None

    def _serve(self, job: Job) -> None:
        if not job.done.set_running_or_notify_cancel():
            return
        try:
            with engine_errors():
                job.done.set_result(job.work(self._pipeline))
        except _Stopped:
            job.done.set_exception(IndexerEnded())
            raise
        except Exception as error:  # it is the asker's
            job.done.set_exception(error)
            if not isinstance(error, OutcropError):
                log.error("a job failed", exc_info=error)

    # Reading

    def sweep(self, source: str | None = None, full: bool = False, tell: Progress | None = None) -> Summary:
        """Look at every file of all sources, or of one. For jobs: on the indexer's thread alone."""
        self._began = time.monotonic()
        for name in [source] if source is not None else all_sources():  # these are listed now
            self._unseen.pop(name, None)
            self._vanished.discard(name)

        def progress(path: str, done: int, total: int, events: int) -> None:
            self.observed.progress(path, done, total, events)
            if tell is not None:
                tell(path, done, total, events)

        self.observed.begin()
        try:
            summary = self._pipeline.sweep(full, source, progress, noted=tell is not None)
        except BaseException:
            self._unsettled = True  # what it had read is still to be brought into the index
            raise
        finally:
            self.observed.end()
        self._listed_last[source or ""] = (time.monotonic(), self._cost)
        self.observed.swept(summary, self._pipeline, whole=source is None)
        if summary.changed:
            self._needed = self._loose = time.monotonic()
        return summary

    def recent(self) -> Summary:
        """The bounded pass of `reconcile`: what is new, as far as that costs little; searchable when it returns.

        For jobs: on the indexer's thread alone.
        """
        if self._listed_last.get("", (0.0, 0.0))[1] < CHEAP_SECONDS and not self.observed.sweeping:
            return self.sweep()
        self._note(changed([*self._places.recent, *self._places.polled]))
        summary = self._take_dirty()
        if self.observed.sweeping:
            self._pipeline.settle_talk()
        else:
            self._pipeline.settle()
        self.observed.reconciled()
        return summary

    def _read_dirty(self) -> bool:
        return bool(self._take_dirty().changed)

    def _take_dirty(self) -> Summary:
        with self._changed:
            paths, self._dirty = self._dirty, set()
        spots: dict[str, Spot] = {}
        unknown: list[str] = []
        for path in paths:
            spot = self._places.find(path)
            if spot is not None:
                spots[spot.file.path] = spot
            elif path not in self._irrelevant:
                unknown.append(path)
        found: list[Found] = []
        for spot in spots.values():
            spot.changed()  # noted before it is read: what is written meanwhile is seen the next time
            try:
                found.append(Found(spot.harness, spot.file, spot.look()))
            except OSError:
                self._list_soon(spot.file.path, spot.file.source)
        for path in unknown:  # last: what is new may be what was at a place where nothing is any more
            new = self._meet(path)
            found += new
            spots |= {each.file.path: self._places.spots[each.file.path] for each in new}
        if not found:
            return Summary()
        summary = self._pipeline.read(found)
        self._dirty.update(summary.left)
        self._places.touched(spots.values())
        self._unsettled = True
        self._loose = time.monotonic()
        self.observed.live(summary)
        self._needed = time.monotonic()
        return summary

    def _poll(self) -> None:
        self._note(changed(self._places.polled))
        with self._changed:
            self._dirty.update(self._places.newcomers())
        if shifted := self._places.shifted():
            self._place(force=True)
            self._watch_folders()
            self._listings.update(dict.fromkeys(shifted, 0.0))

    def _note(self, spots: list[Spot]) -> None:
        with self._changed:
            self._dirty.update(spot.file.path for spot in spots)

    def _meet(self, path: str) -> list[Found]:
        """New files at a path, where its harness tells that without a listing; else that is done soon."""
        sources = self._places.sources_of(path)
        met = [
            None if name in self._vanished
            else discover_at(self.config, self._environment, name, path, self._pipeline.known_roots)
            for name in sources
        ]  # fmt: skip
        if None in met or not os.path.isfile(path):  # in a folder files may have come before it was watched
            self._list_soon(path)
        elif not any(met):
            self._pass_over(path)
        new = [each for some in met if some for each in some if each.file.path not in self._places.spots]
        for each in new:
            self._places.add(each)
        return new

    def _list_soon(self, path: str, source: str | None = None) -> None:
        """A path that is not known, or not there any more, asks for a listing of its source."""
        if source is None:
            self._pass_over(path)
        now = time.monotonic()
        for name in self._places.sources_of(path) if source is None else {source}:
            if source is None:
                self._unseen.setdefault(name, self._not_before.get(name, 0.0))
            else:
                self._vanished.add(name)
            ended, cost = self._listed_last.get(name, (0.0, 0.0))
            soonest = now if source is not None or cost < PEEK_SECONDS / LISTING_SHARE else now + LISTING_SECONDS
            due = max(soonest, ended + min(LISTING_SHARE * cost, SWEEP_WITHOUT_EVENTS))
            self._listings[name] = min(due, self._listings.get(name, due))
            if os.path.isdir(path):
                self._new_folders.add(name)

    def _pass_over(self, path: str) -> None:
        """Not to be asked about again, unless a listing finds it."""
        if len(self._irrelevant) >= _UNKNOWN_KEPT:
            self._irrelevant.clear()
        if os.path.lexists(path):  # one that is gone may come again
            self._irrelevant[path] = None

    def _read_unseen(self) -> bool:
        """Read new files of sources: a listing of all may be dear, and a sweep that runs may take minutes."""
        some = False
        for source in [source for source, due in self._unseen.items() if due <= time.monotonic()]:
            del self._unseen[source]
            if source in self._vanished:
                continue  # what is new may be what was there: the listing follows it
            began = time.monotonic()
            also, known = self._pipeline.known_roots, self._places.spots
            new = discover(self.config, self._environment, source, also, known).found
            ended = time.monotonic()
            self._not_before[source] = ended + max(PEEK_SECONDS, LISTING_SHARE * (ended - began))
            for found in new:
                self._places.add(found)
            summary = self._pipeline.read(new)
            some = some or bool(summary.changed)
        return some

    def _list_again(self) -> None:
        now = time.monotonic()
        for source in [source for source, due in self._listings.items() if due <= now]:
            del self._listings[source]
            self.sweep(source)
            if source in self._new_folders:
                self._new_folders.remove(source)
                self._listings[source] = time.monotonic() + SETTLE_SECONDS

    # Places

    def _note_listing(self) -> None:
        """A sweep knows what there is: so much it takes to list, however long the reading is."""
        self._cost = time.monotonic() - self._began
        self._place()

    def _place(self, force: bool = False) -> None:
        """Follow what the last sweep found."""
        listed = [found.file.path for found in self._pipeline.discovery.found]
        if listed == self._listed and not force:
            return
        self._listed = listed
        self._places = Places.of(self._pipeline.discovery, self.config, self._environment, self._pipeline.known_roots)
        self._irrelevant = {path: None for path in self._irrelevant if self._places.find(path) is None}
        if self._watch is not None and set(self._places.watched) != set(self._watch.folders):
            self._watch_folders()

    def _watch_folders(self) -> None:
        if not self._places.roots:
            self._places = Places.of(Discovery(), self.config, self._environment, self._pipeline.known_roots)
        if self._watch is not None:
            self._watch.close()
        self._watch = Watch(self._places.watched, self._hear)

    def _hear(self, paths: set[str]) -> None:
        with self._changed:
            self._dirty |= paths
            self._changed.notify_all()

    def _hears(self) -> bool:
        problem = self._watch.problem if self._watch is not None else None
        self.observed.watching = "polling" if problem else "events"
        self.observed.watch_problem = problem
        return problem is None

    def _meet_needs(self) -> None:
        """Take the roots of other surroundings along."""
        with self._changed:
            told, self._told = self._told, []
        if told:
            self._remember(told)

    def _remember(self, told: list[Environment] | tuple[()]) -> None:
        pipeline = self._pipeline
        before = pipeline.known_roots
        pipeline.known_roots = remember(pipeline.writer, (self._environment, *told), time.time_ns() // 1_000_000)
        if told and pipeline.known_roots != before:
            self._place(force=True)
            self.sweep()

    def _check_home(self) -> None:
        if _identity(self.config.home) != self._home:
            self.stop("the data folder is gone")
            raise _Stopped

    def _end(self) -> None:
        self.stop("it ended")
        if self._watch is not None:
            self._watch.close()
        self._refuse_jobs(IndexerEnded())
        self._pipeline.close()

    def _refuse_jobs(self, error: OutcropError) -> None:
        with self._changed:
            jobs, self._jobs = list(self._jobs), deque()
        for job in jobs:
            if job.done.set_running_or_notify_cancel():
                job.done.set_exception(error)


class _Stopped(BaseException):
    """Ends a sweep half-way: every batch is committed, and the next sweep goes on from there."""


def _identity(home: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(database_path(home))
    except OSError:
        return None
    return found.st_dev, found.st_ino
