"""Whether `outcrop.db` is sound: its version, its pages, and its rows held against each other.

Reads alone, in one transaction. What is found here `salvage` can mend: it copies what can be read.
"""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from outcrop.errors import BackendFailure, OutcropError
from outcrop.findings import Finding, Level, Repair, ok
from outcrop.store.embedded import rows
from outcrop.store.embedded.database import (
    BUSY_MS,
    DAMAGED,
    ELSEWHERE,
    FOREIGN,
    NO_DATABASE,
    NO_FILE,
    SCHEMA,
    database_path,
    engine_errors,
    migrate,
    open_for_reading,
    size_of,
    version_of,
)
from outcrop.store.embedded.salvage import UNSOUND_EVENT

CHECK = "database"
_ERRORS = 20
"""Damaged places that the engine tells before it stops looking."""
_BLOCKS = 200
"""Blocks of contents that are unpacked: the newest, and others at random."""
_SALVAGE = "`outcrop doctor --fix` copies what can be read into a new file and keeps the old one beside it"
_TO_DO = {DAMAGED: _SALVAGE, NO_DATABASE: _SALVAGE, FOREIGN: ELSEWHERE, NO_FILE: ELSEWHERE}
"""Errors that end with what to do, behind a colon → what to do here."""

_ROWS = {
    "events without a turn or session": "SELECT count(*) FROM event e LEFT JOIN turn t ON t.id = e.turn"
    " LEFT JOIN session s ON s.id = e.session WHERE t.id IS NULL OR s.id IS NULL OR t.session <> e.session",
    "events without content": "SELECT count(*) FROM event e LEFT JOIN block b ON b.id = e.block"
    " WHERE b.id IS NULL OR e.slot >= b.events",
    "events of no known file": "SELECT count(*) FROM event WHERE file NOT IN (SELECT id FROM file)",
    "events that nothing can read": f"SELECT count(*) FROM event WHERE {UNSOUND_EVENT}",
    "turns without a session": "SELECT count(*) FROM turn WHERE session NOT IN (SELECT id FROM session)",
    "turns with another number of events": "SELECT count(*) FROM turn t LEFT JOIN"
    " (SELECT turn, count(*) n FROM event GROUP BY turn) c ON c.turn = t.id WHERE t.event_count <> coalesce(c.n, 0)",
    "sessions without a turn": "SELECT count(*) FROM session s WHERE event_count > 0"
    " AND NOT EXISTS (SELECT 1 FROM turn WHERE session = s.id)",
    "touches of no event": "SELECT count(*) FROM touch WHERE event NOT IN (SELECT id FROM event)",
}
"""What must not be there → how many there are."""


def check_database(home: Path) -> list[Finding]:
    """Everything about the file of the rows. An empty store is no flaw."""
    path = database_path(home)
    try:
        if size_of(path) == 0:
            return [Finding(CHECK, Level.NOTE, "nothing is indexed yet", do="run `outcrop index`")]
        version = _version(path)
    except (OSError, OutcropError) as error:
        return [_unusable(error)]
    if version > SCHEMA:
        return [
            Finding(
                CHECK,
                Level.FAILED,
                "the history was written by a newer outcrop",
                "this version does not know its tables, and leaves them alone",
                "restart with the newer version: another, older one stands first in the PATH",
                {"schema": version, "known_schema": SCHEMA},
            )
        ]
    if version < SCHEMA:
        return [
            Finding(
                CHECK,
                Level.FAILED,
                "the history was written by an older outcrop",
                "nothing can be read before it has been brought up to date",
                "run `outcrop index` once",
                {"schema": version, "known_schema": SCHEMA},
            )
        ]
    try:
        connection = open_for_reading(home)
    except OutcropError as error:
        return [_unusable(error)]
    try:
        with engine_errors():
            connection.execute("BEGIN")
            return _pages(connection) or _tables(connection) or _against_each_other(connection)
    except OutcropError as error:
        return [_unusable(error)]
    finally:
        connection.close()


def _version(path: Path) -> int:
    with engine_errors():
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
            return version_of(connection)
        finally:
            connection.close()


def _unusable(error: OSError | OutcropError) -> Finding:
    what = error.message if isinstance(error, OutcropError) else "the history database cannot be opened"
    do = _TO_DO.get(what)
    return Finding(
        CHECK,
        Level.FAILED,
        what.partition(":")[0] if do else what,
        "nothing can be searched or indexed",
        do or "see the findings about places and permissions",
        repair=Repair.DATABASE if do == _SALVAGE else None,
    )


def _pages(connection: sqlite3.Connection) -> list[Finding]:
    told = [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({_ERRORS})")]
    if told == ["ok"]:
        return []
    return [
        Finding(
            CHECK,
            Level.FAILED,
            "the history database is damaged",
            "parts of the history cannot be read, or are wrong",
            _SALVAGE,
            {"damaged_places": len(told)},
            tuple(line for text in told for line in text.splitlines())[:_ERRORS],
            Repair.DATABASE,
        )
    ]


def _tables(connection: sqlite3.Connection) -> list[Finding]:
    """Whether every table, index and trigger of a new store is there."""
    new = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(new)
        lacking = _named(new) - _named(connection)
    finally:
        new.close()
    if not lacking:
        return []
    return [
        Finding(
            CHECK,
            Level.FAILED,
            f"the history database lacks {len(lacking)} of its tables and indexes",
            "parts of the history are lost, or cannot be found or written",
            _SALVAGE,
            {"lacking": len(lacking)},
            tuple(sorted(lacking)),
            Repair.DATABASE,
        )
    ]


def _named(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT type || ' ' || name FROM sqlite_master")}


def _against_each_other(connection: sqlite3.Connection) -> list[Finding]:
    wrong: dict[str, int | str] = {}
    for what, sql in _ROWS.items():
        if count := int(connection.execute(sql).fetchone()[0]):
            wrong[what] = count
    if unreadable := _unreadable_blocks(connection):
        wrong["blocks that cannot be unpacked"] = unreadable
    meta = dict(connection.execute("SELECT k, v FROM meta"))
    lacking = {"epoch", "generation", "order_rev", "first_build"} - meta.keys()
    if lacking:
        wrong["marks that are missing"] = len(lacking)
    if wrong:
        what = ", ".join(f"{count} {name}" for name, count in wrong.items())
        return [
            Finding(
                CHECK,
                Level.FAILED,
                f"rows of the history contradict each other: {what}",
                "some sessions cannot be opened or found as they were",
                _SALVAGE,
                wrong,
                repair=Repair.DATABASE,
            )
        ]
    events, sessions = connection.execute(
        "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM session WHERE event_count > 0)"
    ).fetchone()
    return [ok(CHECK, "the history database is sound", events=events, sessions=sessions, schema=SCHEMA)]


def _unreadable_blocks(connection: sqlite3.Connection) -> int:
    """Of the newest blocks and some others, how many do not hold what their rows say."""
    newest = [row[0] for row in connection.execute("SELECT id FROM block ORDER BY id DESC LIMIT ?", (_BLOCKS // 2,))]
    if not newest:
        return 0
    others = random.sample(range(1, newest[0] + 1), min(newest[0], _BLOCKS // 2))
    wrong = 0
    for number in {*newest, *others}:
        row = connection.execute("SELECT z, events FROM block WHERE id = ?", (number,)).fetchone()
        if row is not None:
            try:
                wrong += len(rows.decode_block(row[0])) != row[1]
            except Exception as error:
                if not isinstance(error, BackendFailure) and type(error).__name__ != "ZstdError":
                    raise
                wrong += 1
    return wrong
