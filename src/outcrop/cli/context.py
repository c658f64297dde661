"""The context of a contract call, put together for commands and servers: configuration, store, names of harnesses."""

from __future__ import annotations

import os
from pathlib import Path

from outcrop import config
from outcrop.config import Config
from outcrop.contracts.catalog import Catalog
from outcrop.contracts.mcp_v1.envelope import Context
from outcrop.errors import OutcropError
from outcrop.harnesses import all_harnesses
from outcrop.store import Store, open_store


def build(deadline: float | None = None, settings: Config | None = None, project_only: bool = False) -> Context:
    """`deadline` is on the clock of `time.monotonic`. Raises ConfigError; a store that is missing is no error here."""
    settings = settings or load_config()
    store = open_store(settings.home)
    return Context(
        store=store,
        catalog=catalog(settings, store),
        max_results=settings.max_results,
        launch_directory=_working_directory(),
        floor=_launch_project() if project_only else None,
        deadline=deadline,
    )


def load_config() -> Config:
    return config.load(known_sources=[source for harness in all_harnesses() for source in harness.sources])


def catalog(settings: Config, store: Store | None = None) -> Catalog:
    harnesses = all_harnesses()
    return Catalog(
        harnesses={harness.name: harness.title for harness in harnesses},
        sources=tuple(source for harness in harnesses for source in harness.sources if settings.source(source).enabled),
        agents={harness.agent_of(source): harness.name for harness in harnesses for source in harness.sources},
        holding=None if store is None else lambda: _sources_with_data(store),
    )


def _sources_with_data(store: Store) -> tuple[str, ...]:
    """Empty where there is no store yet, or none that can be read: descriptions must not fail."""
    try:
        with store.snapshot() as snapshot:
            return snapshot.sources()
    except OutcropError:
        return ()


def _launch_project() -> str:
    """The project of the launch directory. Where that is gone no session is admitted, rather than all."""
    from outcrop.ingest.project import project_of

    directory = _working_directory()
    return "" if directory is None else project_of(directory)


def _working_directory() -> str | None:
    try:
        return str(Path(os.getcwd()))
    except FileNotFoundError:
        return None
