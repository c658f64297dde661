"""Making the files of the database forget: free pages and the write-ahead log still hold what rows no longer do."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from outcrop.store.embedded.database import engine_errors

_AGAIN = 0.1
"""Seconds between two tries while a reader holds an older state."""


def vacuum(db: sqlite3.Connection, home: Path) -> None:
    """Write the database anew, without free pages. The copy is made on disk, beside the database.

    Readers go on meanwhile. Raises ResourceExhausted where there is no room for the copy.
    """
    with engine_errors():
        # In memory, as the writer's other temporary tables are, the copy would take as much as the whole history.
        db.execute("PRAGMA temp_store=FILE")
        place = str(home).replace("'", "''")
        db.execute(f"PRAGMA temp_store_directory='{place}'")
        try:
            db.execute("VACUUM")
        finally:
            db.execute("PRAGMA temp_store_directory=''")
            db.execute("PRAGMA temp_store=MEMORY")


def truncate_log(db: sqlite3.Connection, wait: float) -> bool:
    """Copy the write-ahead log into the database and cut it to nothing; False while a reader holds an older state.

    Tries for `wait` seconds.
    """
    deadline = time.monotonic() + wait
    with engine_errors():
        before = db.execute("PRAGMA busy_timeout").fetchone()[0]
        db.execute("PRAGMA busy_timeout=50")
        try:
            while True:
                busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return True
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_AGAIN)
        finally:
            db.execute(f"PRAGMA busy_timeout={before}")


def used_bytes(db: sqlite3.Connection) -> int:
    """Bytes of the pages that hold anything."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int(pages - free) * int(size)
