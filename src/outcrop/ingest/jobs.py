"""What another process may have the indexer do: each job by its name and its parameters, as they came over the wire."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from outcrop.errors import InvalidRequest
from outcrop.harnesses import Environment, all_sources
from outcrop.ingest.indexer import Indexer
from outcrop.ingest.pipeline import Pipeline, Progress

NAMES = ("reconcile", "rebuild")


class Jobs:
    """The indexer as its local door sees it."""

    names = NAMES

    def __init__(self, indexer: Indexer) -> None:
        self._indexer = indexer

    def hello(self, told: Any) -> None:
        """A process of these surroundings needs the index. Raises InvalidRequest where they are none."""
        try:
            self._indexer.hello(Environment.of(told))
        except ValueError as error:
            raise InvalidRequest(str(error), "environment") from None

    def status(self) -> dict[str, Any]:
        return {**self._indexer.observed.told(), "leases": self._indexer.leases}

    def progress(self) -> tuple[str, int, int, int] | None:
        return self._indexer.observed.current

    def leave(self, reason: str) -> None:
        self._indexer.stop(reason)

    def begin(self, name: str, params: dict[str, Any], tell: Progress) -> Future[dict[str, Any]]:
        """Have a job done: its result as JSON. `tell` hears of progress and may raise to end it.

        `reconcile` reads what is newest; with `sweep` all that changed, with `full` everything, with `source` one
        source. `rebuild` builds the text index anew; it tells of documents in place of bytes, and of no path. Raises
        InvalidRequest for parameters that make no sense.
        """
        return self._indexer.submit(self._work(name, params, tell), quick=name == "reconcile" and not _thorough(params))

    def _work(self, name: str, params: dict[str, Any], tell: Progress) -> Callable[[Pipeline], dict[str, Any]]:
        if name == "rebuild":
            return lambda pipeline: {"settled": pipeline.rebuild(lambda done, total: tell("", done, total, done))}
        source = params.get("source")
        if source is not None and source not in all_sources():
            raise InvalidRequest(f"unknown source: {source}", "source")
        if not _thorough(params):
            return lambda pipeline: asdict(self._indexer.recent())
        return lambda pipeline: asdict(self._indexer.sweep(source, bool(params.get("full")), tell))


def _thorough(params: dict[str, Any]) -> bool:
    return bool(params.get("full") or params.get("sweep") or params.get("source"))
