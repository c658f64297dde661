"""The service of a process that follows the files itself: its status is what its indexer has seen."""

from __future__ import annotations

from typing import Protocol

from outcrop.contracts.vault.local import LocalService
from outcrop.contracts.vault.response import DegradedRoot, Status


class Observations(Protocol):
    """An indexer's own view. Times in UTC ms; `degraded_roots` hold `root` and `reason`."""

    @property
    def closed(self) -> bool: ...
    @property
    def begun(self) -> bool:
        """Whether it has looked at anything yet."""

    @property
    def last_reconcile_at(self) -> int | None: ...
    @property
    def last_sweep_completed_at(self) -> int | None: ...
    @property
    def degraded_roots(self) -> list[dict[str, str]]: ...
    @property
    def problem(self) -> str | None:
        """What keeps it from working at present."""


class WatchedService:
    """Searches as `local` does, and tells what `seen` has seen."""

    def __init__(self, local: LocalService, seen: Observations) -> None:
        self._seen = seen
        self.search = local.search
        self.reconcile = local.reconcile
        self._stored = local.status

    def status(self) -> Status:
        """Counts and generation of the rows, times and phase of the indexer ("Status, freshness, and availability")."""
        stored, seen = self._stored(), self._seen
        if not stored.enabled:
            return stored
        roots = stored.degraded_roots
        if seen.last_sweep_completed_at is not None:
            roots = tuple(DegradedRoot(root["reason"], root["root"]) for root in seen.degraded_roots)
        told = stored._replace(
            degraded_roots=roots,
            last_reconcile_at=seen.last_reconcile_at or stored.last_reconcile_at,
            last_sweep_completed_at=seen.last_sweep_completed_at or stored.last_sweep_completed_at,
        )
        return told._replace(phase=_phase(told, seen))


def _phase(told: Status, seen: Observations) -> str:
    if seen.closed:
        return "closed"
    if not seen.begun:
        return "idle"
    if told.degraded_roots or told.files_failed or seen.problem is not None:
        return "degraded"
    return "current" if not told.files_due and seen.last_sweep_completed_at is not None else "indexing"
