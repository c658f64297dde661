"""What the indexer has seen, for those who ask how far it is: written by its thread, read by any."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

from outcrop import __version__
from outcrop.ingest.pipeline import Pipeline, Summary


@dataclass(slots=True)
class Observed:
    """Times in UTC ms. A value that is replaced whole needs no lock."""

    started_at: int = field(default_factory=lambda: _now())
    begun: bool = False
    """Whether a sweep has begun."""
    closed: bool = False
    """Whether it follows nothing any more."""
    last_reconcile_at: int | None = None
    last_sweep_completed_at: int | None = None
    files_indexed: int = 0
    files_failed: int = 0
    degraded_roots: list[dict[str, str]] = field(default_factory=list)
    sweeping: int = 0
    """Sweeps that are running, one inside another."""
    current: tuple[str, int, int, int] | None = None
    """The running sweep: path, bytes done, bytes in all, events."""
    last_change_at: int | None = None
    watching: str = "events"
    watch_problem: str | None = None
    problem: str | None = None

    def begin(self) -> None:
        self.begun = True
        self.sweeping += 1

    def end(self) -> None:
        self.sweeping -= 1
        if not self.sweeping:
            self.current = None

    def progress(self, path: str, done: int, total: int, events: int) -> None:
        self.current = (path, done, total, events)

    def swept(self, summary: Summary, pipeline: Pipeline, whole: bool) -> None:
        now = _now()
        discovery = pipeline.discovery
        self.files_indexed = len(discovery.found)
        self.files_failed = pipeline.failed()
        self.degraded_roots = [{"root": str(root), "reason": reason} for _, root, reason in discovery.degraded]
        self.last_reconcile_at = now
        if whole:
            self.last_sweep_completed_at = now
        if summary.changed:
            self.last_change_at = now

    def live(self, summary: Summary) -> None:
        if summary.records:
            self.last_change_at = _now()

    def reconciled(self) -> None:
        self.last_reconcile_at = _now()

    def phase(self) -> str:
        """degraded, current or indexing, in the order of the session search contract's status."""
        if self.degraded_roots or self.files_failed or self.problem is not None:
            return "degraded"
        return "current" if self.last_sweep_completed_at is not None and not self.sweeping else "indexing"

    def _sweep(self) -> dict[str, Any] | None:
        names = ("path", "bytes_done", "bytes", "events")
        running = self.current or (("", 0, 0, 0) if self.sweeping else None)
        return None if running is None else dict(zip(names, running, strict=True))

    def told(self) -> dict[str, Any]:
        """All of it, with what the process itself costs."""
        times = os.times()
        return {
            "pid": os.getpid(),
            "version": __version__,
            "started_at": self.started_at,
            "phase": self.phase(),
            "memory_bytes": _private_bytes(),
            "cpu_seconds": round(times.user + times.system, 2),
            "bytes_written": _written_bytes(),
            "sweep": self._sweep(),
            "files_indexed": self.files_indexed,
            "files_failed": self.files_failed,
            "last_reconcile_at": self.last_reconcile_at,
            "last_sweep_completed_at": self.last_sweep_completed_at,
            "last_change_at": self.last_change_at,
            "degraded_roots": self.degraded_roots,
            "watching": self.watching,
            "watch_problem": self.watch_problem,
            "problem": self.problem,
        }


def _private_bytes() -> int | None:
    """Memory that is this process's alone; None where the system does not tell."""
    try:
        with open("/proc/self/smaps_rollup", encoding="ascii") as lines:
            return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
    except OSError:
        return None


def _written_bytes() -> int | None:
    """Bytes handed to the system for writing; None where it does not count."""
    try:
        with open("/proc/self/io", encoding="ascii") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith("wchar")), None)
    except OSError:
        return None


def _now() -> int:
    return time.time_ns() // 1_000_000
