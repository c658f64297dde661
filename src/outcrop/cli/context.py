"""The context of a contract call, put together for commands and servers: configuration, store, names of harnesses."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from outcrop import config
from outcrop.config import Config
from outcrop.contracts.catalog import Catalog
from outcrop.contracts.mcp_v1.envelope import Context
from outcrop.errors import OutcropError
from outcrop.harnesses import REGISTRY, all_sources
from outcrop.store import Rooted, Store, open_store


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
        locate=_locate,
    )


def load_config() -> Config:
    return config.load(known_sources=all_sources())


def running_indexer(home: Path) -> dict[str, Any] | None:
    """What the running indexer says of itself; None where none runs or answers."""
    # MERGE: until `servers/local.py` is here nothing can answer. Then: `from outcrop.servers import local` alone.
    try:
        local = import_module("outcrop.servers.local")
    except ImportError:
        return None
    told: dict[str, Any] | None = local.ask(home, "status")
    return told


def catalog(settings: Config, store: Store | None = None) -> Catalog:
    return Catalog(
        harnesses={name: entry.title for name, entry in REGISTRY.items()},
        sources=tuple(source for source in all_sources() if settings.source(source).enabled),
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


def _locate(path: str) -> Rooted | None:
    """The working tree around an absolute path; the file and some folders above it may not exist any more."""
    from outcrop.ingest.project import locate

    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder) and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    place = locate(folder)
    if place is None:
        return None
    canonical = os.path.join(os.path.realpath(folder), os.path.relpath(path, folder))
    return Rooted(place.worktree, place.common_dir, os.path.relpath(canonical, place.worktree).replace(os.sep, "/"))


def _working_directory() -> str | None:
    try:
        return str(Path(os.getcwd()))
    except FileNotFoundError:
        return None
