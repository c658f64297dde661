"""Opening `outcrop.db`: where it lies, how it is set up, and its numbered migrations.

Readers open it read-only and leave a newer or older schema alone; the one writer creates and migrates. The file is
0600 in a folder 0700. Errors of the engine become the typed ones, without SQL or paths in their messages (ruling 18).
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outcrop.errors import BackendFailure, Cancelled, OutcropError, ResourceExhausted, StoreMissing

NAME = "outcrop.db"
SCHEMA = 4
"""Number of the newest migration."""
DISK_FULL = "the disk is full; nothing that was indexed is lost, and the next run goes on from there"
FULL = (errno.ENOSPC, errno.EDQUOT)
_DOCTOR = "its file was left as it is: `outcrop doctor` tells what to do"
DAMAGED = f"the history database is damaged; {_DOCTOR}"
NO_DATABASE = f"the history database is damaged, or outcrop.db is of another program; {_DOCTOR}"
ELSEWHERE = "move it away, or let OUTCROP_HOME name another folder"
FOREIGN = f"outcrop.db in the data folder is of another program, and was left as it is: {ELSEWHERE}"
NO_FILE = f"outcrop.db in the data folder is no file, and was left as it is: {ELSEWHERE}"
BUSY_MS = 5000
CACHE_KIB = 32 * 1024
CHECKPOINT_PAGES = 4000
"""Pages of the write-ahead log between two checkpoints: a page that changes often is copied back once."""
_OWN = frozenset({"meta", "session", "turn", "event", "block"})
"""Tables of the first migration. Another program may have one or two of that name, a damaged history may lack some."""


def database_path(home: Path) -> Path:
    return home / NAME


def open_for_reading(home: Path) -> sqlite3.Connection:
    """A read-only connection. Raises StoreMissing where there is none, BackendFailure where it cannot be used."""
    path = database_path(home)
    with engine_errors():
        try:
            size = size_of(path)
        except PermissionError as error:
            raise BackendFailure("the data folder cannot be read: permission denied") from error
        if size == 0:
            raise StoreMissing
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        connection.execute("PRAGMA query_only=1")
        try:
            version = _checked_version(connection)
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                # Even readers share a file beside a database with a write-ahead log.
                raise BackendFailure("the data folder is read-only, so the history cannot be opened") from error
            raise
    if version == 0:
        raise StoreMissing
    if version < SCHEMA:
        raise BackendFailure("the history was written by an older outcrop; run `outcrop index` once")
    return connection


def open_for_writing(home: Path) -> sqlite3.Connection:
    """The writer's connection, at the newest schema. The caller holds the writer lock."""
    path = database_path(home)
    with engine_errors():
        if size_of(path) == 0 and path.exists():
            # It was emptied: nothing is left to keep. Whoever still has it open would hold its lock for ever, and
            # turns to the new file by itself.
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        _checked_version(connection)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
        migrate(connection)
    return connection


def size_of(path: Path) -> int:
    """Bytes of the database file, 0 where there is none. Raises BackendFailure for what is no file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return 0
    if not stat.S_ISREG(found.st_mode):
        raise BackendFailure(NO_FILE)
    return found.st_size


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last migration. Raises BackendFailure for the database of another program."""
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except UnicodeDecodeError as error:  # what the engine says of a damaged schema quotes it
        raise BackendFailure(DAMAGED) from error
    if tables and len(_OWN & tables) <= len(_OWN) // 2:
        raise BackendFailure(FOREIGN)
    return version


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration shipped, in order."""
    from importlib.resources import files

    folder = files("outcrop.store.embedded") / "migrations"
    found = [(int(item.name[:4]), item.read_text("utf-8")) for item in folder.iterdir() if item.name.endswith(".sql")]
    return sorted(found)


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what is missing, each migration in one transaction with its number."""
    import secrets

    version = _checked_version(connection)
    for number, sql in migrations() if version < SCHEMA else ():
        if number <= version:
            continue
        # executescript commits first, so the transaction is part of the script.
        connection.executescript(f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version={number};\nCOMMIT;")
    connection.execute(
        "INSERT OR IGNORE INTO meta VALUES"
        " ('epoch', ?), ('generation', 0), ('order_rev', 0), ('pages_rev', 0), ('first_build', 'running')",
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
        if error.errno in FULL:
            raise ResourceExhausted(DISK_FULL) from error
        raise
    except Exception as error:
        # Asked by name: whoever reads no content must not pay for the import.
        if type(error).__name__ == "ZstdError":
            raise BackendFailure(DAMAGED) from error
        raise


def translated(error: sqlite3.Error) -> OutcropError:
    """The typed error for an engine error."""
    primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    earlier = error.__context__
    if primary == sqlite3.SQLITE_ERROR and isinstance(earlier, sqlite3.Error):
        # Rolling back what the engine had rolled back by itself hides why it did.
        return translated(earlier)
    if primary == sqlite3.SQLITE_INTERRUPT:
        return Cancelled("the request was cancelled")
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM):
        return ResourceExhausted(DISK_FULL if primary == sqlite3.SQLITE_FULL else "memory ran out")
    # Text that is no UTF-8 is an error without a code, and quoted in its message.
    if primary == sqlite3.SQLITE_NOTADB:
        return BackendFailure(NO_DATABASE)
    if primary == sqlite3.SQLITE_CORRUPT or (not primary and "decode" in str(error)):
        return BackendFailure(DAMAGED)
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
    version = version_of(connection)
    if version > SCHEMA:
        raise BackendFailure("the history was written by a newer outcrop; restart with that version")
    return version
