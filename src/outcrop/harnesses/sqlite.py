"""Databases of other programs: opened so that their writer never notices, and read in one consistent state.

Read-only, never as immutable (rows may stand in the `-wal` file alone), with a busy timeout, never a checkpoint, one
deferred transaction for everything that must agree. Queries name the columns that they want, because credentials live
next door.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Iterable
from pathlib import Path

BUSY_MS = 3000
ATTEMPTS = 5
RECENT = 512
"""Rows at the end of a table, and as many again at most, whose contents a fingerprint covers."""


def open_read_only(path: str) -> sqlite3.Connection:
    """A connection with a read transaction open; rows come as `sqlite3.Row`. Invalid UTF-8 in texts is replaced.

    Raises sqlite3.Error where it cannot be read; what is only busy is tried again.
    """
    for attempt in range(ATTEMPTS):
        connection = sqlite3.connect(
            f"{Path(os.path.abspath(path)).as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            timeout=BUSY_MS / 1000,
            check_same_thread=False,
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.execute("PRAGMA query_only=1")
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # takes the snapshot now
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            # A reader cannot rebuild the `-shm` file while the writer recreates it: that passes by itself.
            passing = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
            if (error.sqlite_errorcode & 0xFF) not in passing or attempt == ATTEMPTS - 1:
                raise
            time.sleep(0.05 * (attempt + 1))
        except BaseException:
            connection.close()
            raise
    raise AssertionError("the last attempt returns or raises")


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """The columns that a table has; empty where there is no such table."""
    return frozenset(row["name"] for row in connection.execute(f'PRAGMA table_info("{table}")'))


def wanted(present: Iterable[str], *names: str) -> str:
    """A list of columns for a SELECT: those of `names` that are present, the others as NULL under their name."""
    have = set(present)
    return ", ".join(f'"{name}"' if name in have else f'NULL AS "{name}"' for name in names)


def recent_start(connection: sqlite3.Connection, table: str, step: int = RECENT) -> int:
    """The number of the row that the newest ones of a table begin with: one to two steps before the end."""
    newest = connection.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()[0]
    return ((newest or 0) // step - 1) * step


def recent(
    connection: sqlite3.Connection, table: str, groups: tuple[str, ...], *names: str
) -> dict[tuple[str, ...], int]:
    """A sum over the contents of the newest rows of each group, which tells that one of them was changed in place.

    The window moves by whole steps, so that a session whose rows fall out of it is not read anew each time.
    """
    start = recent_start(connection, table)
    wanted = ", ".join(f'"{name}"' for name in (*groups, *names))
    sums: dict[tuple[str, ...], int] = {}
    for row in connection.execute(f'SELECT {wanted} FROM "{table}" WHERE rowid >= ? ORDER BY rowid', (start,)):
        values = tuple(row)
        group = values[: len(groups)]
        sums[group] = zlib.crc32(repr(values).encode("utf-8", "surrogatepass"), sums.get(group, 0))
    return sums
