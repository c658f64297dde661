"""The context of a contract call, put together for commands and servers: configuration, store, names of harnesses."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcrop import config
from outcrop.config import Config
from outcrop.contracts.catalog import Catalog, Resume
from outcrop.errors import OutcropError
from outcrop.harnesses import REGISTRY, Environment, all_agents, all_sources, load
from outcrop.store import Rooted, Store, open_store
from outcrop.store.embedded.read import EmbeddedStore

if TYPE_CHECKING:
    from outcrop.contracts.mcp_v1.envelope import Context


def build(
    deadline: float | None = None, settings: Config | None = None, project_only: bool = False, remote: bool = False
) -> Context:
    """`deadline` is on the clock of `time.monotonic`; `remote`: where the client was launched is not known (ruling 30).

    Raises ConfigError; a store that is missing is no error here.
    """
    from outcrop.contracts.mcp_v1.envelope import Context

    settings = settings or load_config()
    store = open_store(settings.home)
    return Context(
        store=store,
        catalog=catalog(settings, store),
        max_results=settings.max_results,
        launch_directory=None if remote else _working_directory(),
        floor=_launch_project() if project_only else None,
        deadline=deadline,
        locate=_locate,
    )


def store(settings: Config) -> EmbeddedStore:
    """The store of the configured folder, for the commands that look at rows themselves."""
    return EmbeddedStore(settings.home)


def attended(patient: bool, deadline: float | None = None) -> Context:
    """As `build`, for a command that reads: before, it sees to it that the index is followed up (`jobs.attend`)."""
    from outcrop.cli import jobs

    settings = load_config()
    jobs.attend(settings, patient)
    return build(deadline, settings)


def load_config() -> Config:
    return config.load(known_sources=all_sources())


def running_indexer(home: Path) -> dict[str, Any] | None:
    """What the running indexer says of itself; None where none runs or answers."""
    from outcrop.servers import local

    try:
        return local.ask(home, "status")
    except OutcropError:
        return None


def crashes(home: Path) -> int:
    """How often an indexer crashed in the last hour."""
    from outcrop.servers import start

    return len(start.crashes(start.read_record(home), time.time()))


def catalog(settings: Config, store: Store | None = None) -> Catalog:
    return Catalog(
        harnesses={name: entry.title for name, entry in REGISTRY.items()},
        sources=tuple(source for source in all_sources() if settings.source(source).enabled),
        agents=all_agents(),
        resume=_resume,
        holding=None if store is None else lambda: _sources_with_data(store),
    )


def _resume(harness: str, source: str, native: str, path: str | None) -> Resume | None:
    """How a session is taken up again; None where its harness cannot, or is not known any more."""
    if harness not in REGISTRY:
        return None
    known = load(harness)
    argv = known.resume_command(native, source)
    if argv is None:
        return None
    return Resume(argv, known.resume_variables(path, Environment.here()) if path is not None else {})


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
