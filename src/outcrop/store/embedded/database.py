"""Opening `outcrop.db`: where it lies, how it is set up, and its numbered migrations.

Readers open it read-only and leave a newer or older schema alone; the one writer creates and migrates. The file is
0600 in a folder 0700. Errors of the engine become the typed ones, without SQL or paths in their messages (ruling 18).
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from outcrop.errors import BackendFailure, Cancelled, OutcropError, ResourceExhausted, StoreMissing

NAME = "outcrop.db"
SCHEMA = 1
"""Number of the newest migration."""
DISK_FULL = "the disk is full; nothing that was indexed is lost, and the next run goes on from there"
BUSY_MS = 5000
CACHE_KIB = 64 * 1024
MAPPED_BYTES = 1 << 30


def database_path(home: Path) -> Path:
    return home / NAME


def open_for_reading(home: Path) -> sqlite3.Connection:
    """A read-only connection. Raises StoreMissing where there is none, BackendFailure where it cannot be used."""
    path = database_path(home)
    if not path.exists():
        raise StoreMissing("nothing is indexed yet: run `outcrop index`")
    with engine_errors():
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        connection.execute("PRAGMA query_only=1")
        connection.execute(f"PRAGMA mmap_size={MAPPED_BYTES}")
        version = _checked_version(connection)
    if version == 0:
        raise StoreMissing("nothing is indexed yet: run `outcrop index`")
    if version < SCHEMA:
        raise BackendFailure("the history was written by an older outcrop; run `outcrop index` once")
    return connection


def open_for_writing(home: Path) -> sqlite3.Connection:
    """The writer's connection, at the newest schema. The caller holds the writer lock."""
    path = database_path(home)
    with engine_errors():
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        connection.execute("PRAGMA temp_store=MEMORY")
        migrate(connection)
    return connection


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration shipped, in order."""
    folder = files("outcrop.store.embedded") / "migrations"
    found = [(int(item.name[:4]), item.read_text("utf-8")) for item in folder.iterdir() if item.name.endswith(".sql")]
    return sorted(found)


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what is missing, each migration in one transaction with its number."""
    version = _checked_version(connection)
    for number, sql in migrations() if version < SCHEMA else ():
        if number <= version:
            continue
        # executescript commits first, so the transaction is part of the script.
        connection.executescript(f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version={number};\nCOMMIT;")
    connection.execute(
        "INSERT OR IGNORE INTO meta VALUES"
        " ('epoch', ?), ('generation', 0), ('order_rev', 0), ('first_build', 'running')",
        (secrets.token_hex(16),),
    )


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn the engine's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceExhausted(DISK_FULL) from error
        raise


def translated(error: sqlite3.Error) -> OutcropError:
    """The typed error for an engine error."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_INTERRUPT:
        return Cancelled("the request was cancelled")
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM):
        return ResourceExhausted(DISK_FULL if primary == sqlite3.SQLITE_FULL else "memory ran out")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return BackendFailure("the history database is damaged; its file was left as it is")
    if primary == sqlite3.SQLITE_READONLY:
        return BackendFailure("the data folder cannot be written")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return BackendFailure("the history database cannot be opened")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BackendFailure("the history database is busy; try again")
    if primary == sqlite3.SQLITE_IOERR:
        return BackendFailure("the history database cannot be read or written (input/output error)")
    return BackendFailure("the history database failed")


def _checked_version(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA:
        raise BackendFailure("the history was written by a newer outcrop; restart with that version")
    return version
