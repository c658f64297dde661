"""Self-examination: every part of an installation is looked at, and what can be repaired safely is repaired.

A check is a function that gives findings. It reads alone; whatever one of them runs into, the others still run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcrop.config import SETTINGS, SOURCES, Config, load
from outcrop.errors import ConfigError, OutcropError
from outcrop.findings import Finding, Level, ok
from outcrop.harnesses import Environment, all_sources
from outcrop.ingest.discover import known_roots
from outcrop.ingest.doctor import mend, places, sources
from outcrop.ingest.survey import SourceSurvey, survey
from outcrop.paths import config_file, data_home
from outcrop.store.embedded.check import check_database
from outcrop.store.embedded.database import engine_errors, open_for_reading
from outcrop.store.embedded.write import FileRow, stored_files

SECONDS = 30.0
"""How long the folders of the agents are listed for at most."""


@dataclass(slots=True)
class Examined:
    """Everything that was looked at, and what came of it. `mended` are (what was done, whether it worked)."""

    findings: list[Finding]
    mended: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(finding.level is Level.FAILED for finding in self.findings)


@dataclass(slots=True, frozen=True)
class Processes:
    """What is known of the indexer of a data folder, from those who can ask it."""

    running: Callable[[Path], dict[str, Any] | None]
    """What the running one says of itself; None: none answers."""
    crashes: Callable[[Path], int]
    """How often one crashed lately."""
    alone: Callable[[Path], AbstractContextManager[None]]
    """A time in which none runs."""


def examine(environment: Environment, processes: Processes) -> Examined:
    """Look at everything.

    Raises ConfigError where even the place of the data is not known.
    """
    home = data_home(environment)
    running = processes.running(home)
    config, findings = _configuration(environment, home)
    findings += places.check_home(home)
    if findings[-1].check == "data folder" and findings[-1].level is Level.FAILED:
        return Examined(findings)  # nothing in it can be looked at
    findings += places.check_places(home)
    findings += places.check_run(home, running, processes.crashes(home))
    findings += _history(config, environment, running)
    return Examined(findings)


def examine_and_mend(environment: Environment, processes: Processes) -> Examined:
    """The same, then repair, then look again: what is told is the state afterwards."""
    before = examine(environment, processes)
    wanted = {finding.repair for finding in before.findings if finding.repair is not None}
    if not wanted:
        return before
    home = data_home(environment)
    config, _ = _configuration(environment, home)
    with processes.alone(home):
        mended = mend.mend(config, environment, wanted)
    return Examined(examine(environment, processes).findings, mended)


def _configuration(environment: Environment, home: Path) -> tuple[Config, list[Finding]]:
    """The settings, or the defaults where they do not hold."""
    try:
        config = load(environment, all_sources())
    except ConfigError as error:
        key = str((error.details or {}).get("key") or "")
        return Config(home, config_file(environment)), [
            Finding(
                "configuration",
                Level.FAILED,
                "the configuration is not valid",
                "no command works until it is; the other checks here go by the defaults",
                "correct the line that is named",
                {"section": key.partition(".")[0]} if key.partition(".")[0] in _SECTIONS else {},
                (error.message,),
            )
        ]
    return config, [
        ok(
            "configuration",
            "the configuration is valid" if config.file.exists() else "there is no configuration: defaults",
            sources_disabled=sum(not config.source(name).enabled for name in all_sources()),
            sources_with_own_roots=sum(config.source(name).roots is not None for name in all_sources()),
        )
    ]


_SECTIONS = (*SETTINGS, SOURCES)


def _history(config: Config, environment: Environment, indexer: dict[str, Any] | None) -> list[Finding]:
    """The database, the text index, and what they hold against what lies on disk."""
    home = config.home
    findings = check_database(home)
    rows: list[FileRow] = []
    noted: list[Finding] = []
    also: dict[str, list[str]] = {}
    if all(finding.level is Level.OK for finding in findings):
        try:
            connection = open_for_reading(home)
            try:
                findings += _text(connection, home)
                with engine_errors():
                    rows = stored_files(connection)
                    also = known_roots(connection)
                    noted = sources.check_rows(connection)
                    noted += places.check_leftovers(home, dict(connection.execute("SELECT k, v FROM meta")))
            finally:
                connection.close()
        except OutcropError as error:
            findings.append(Finding("database", Level.FAILED, error.message, do="look again when nothing writes"))
    found: list[SourceSurvey] = survey(config, environment, rows, SECONDS, also)
    return [*findings, *noted, *sources.check_sources(config, found, rows), *places.check_watching(found, indexer)]


def _text(connection: sqlite3.Connection, home: Path) -> Iterable[Finding]:
    from outcrop.store.embedded.check_text import check_text

    return check_text(connection, home)
