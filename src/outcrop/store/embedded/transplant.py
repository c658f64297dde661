"""Gives a copy of a damaged database file the schema of a fresh one, so that its tables can be reached again.

The engine reads nothing of a file whose list of tables is damaged. The migrations make every table in the same order,
so in every file each begins on the same page as in a new one; only the pages of that list are replaced. Where that is
not so (a file that was vacuumed), the marks that every store has are not found, and nothing is believed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

_HEADER = 100
_INTERIOR = 5
"""Kind of a page whose cells name other pages."""
_WAL_FORMAT = b"\x02\x02"
_TABLES = ("meta", "file", "session", "turn", "event", "block")


def schema_is_readable(path: Path) -> bool:
    """Whether the list of tables can be read whole."""
    return all(_answers(path, f"SELECT * FROM {table} LIMIT 0") is not None for table in _TABLES)


def transplant(copy: Path, fresh: Path) -> bool:
    """Change `copy`, which nobody else uses, in place; whether what then can be read is a store of ours."""
    new = fresh.read_bytes()
    size = int.from_bytes(new[16:18], "big")
    pages = -(-copy.stat().st_size // size)
    log = copy.with_name(copy.name + "-wal")
    with open(copy, "r+b") as stream:
        for number in set(_list_of_tables(new, size, 1)):
            page = bytearray(new[(number - 1) * size : number * size])
            if number == 1:
                page[18:20] = _WAL_FORMAT if log.exists() else page[18:20]
                page[28:32] = pages.to_bytes(4, "big")
                page[32:40] = bytes(8)  # no free pages are known
                page[92:96] = page[24:28]  # or the number of pages would not count
            stream.seek((number - 1) * size)
            stream.write(page)
        stream.truncate(max(pages * size, len(new)))
    epoch = _answers(copy, "SELECT v FROM meta WHERE k = 'epoch'")
    counted = _answers(copy, "SELECT seq FROM sqlite_sequence WHERE name = 'event'")
    return bool(epoch and len(str(epoch[0][0])) == 32) or bool(counted and isinstance(counted[0][0], int))


def _list_of_tables(data: bytes, size: int, number: int) -> Iterator[int]:
    """The pages of the tree that begins on a page."""
    yield number
    page = data[(number - 1) * size : number * size]
    head = _HEADER if number == 1 else 0
    if page[head] != _INTERIOR:
        return
    cells = int.from_bytes(page[head + 3 : head + 5], "big")
    yield from _list_of_tables(data, size, int.from_bytes(page[head + 8 : head + 12], "big"))
    for cell in range(cells):
        place = int.from_bytes(page[head + 12 + 2 * cell : head + 14 + 2 * cell], "big")
        yield from _list_of_tables(data, size, int.from_bytes(page[place : place + 4], "big"))


def _answers(path: Path, sql: str) -> list[tuple[object, ...]] | None:
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return None
