"""Decoded blocks of one connection: neighbouring events share a block, so the last ones used are kept."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from outcrop.store.embedded import rows

KEPT_BYTES = 16 * 1024 * 1024
"""Of contents that stay decoded, though the newest block stays whatever its size: one content may have 16 MiB."""


class Blocks:
    """The contents of blocks by number; up to `kept` of them stay decoded. For one thread, as its connection is."""

    def __init__(self, db: sqlite3.Connection, kept: int) -> None:
        self._db = db
        self._kept = kept
        self._blocks: OrderedDict[int, tuple[Sequence[dict[str, Any]], int]] = OrderedDict()
        self._bytes = 0

    def load(self, numbers: Iterable[int]) -> None:
        """Have blocks ready that are about to be asked for: one statement reads as many as are kept."""
        wanted = [number for number in dict.fromkeys(numbers) if number not in self._blocks][: self._kept]
        if len(wanted) > 1:
            marks = ",".join("?" * len(wanted))
            for number, z, size in self._db.execute(f"SELECT id, z, size FROM block WHERE id IN ({marks})", wanted):
                self._keep(number, rows.Block(z), size)

    def block(self, number: int) -> Sequence[dict[str, Any]]:
        """The contents of a block, empty where there is none. Raises BackendFailure where it is damaged."""
        known = self._blocks.get(number)
        if known is not None:
            self._blocks.move_to_end(number)
            return known[0]
        row = self._db.execute("SELECT z, size FROM block WHERE id = ?", (number,)).fetchone()
        contents, size = (rows.Block(row[0]), row[1]) if row else ([], 0)
        self._keep(number, contents, size)
        return contents

    def _keep(self, number: int, contents: Sequence[dict[str, Any]], size: int) -> None:
        self._blocks[number] = contents, size
        self._bytes += size
        while len(self._blocks) > 1 and (len(self._blocks) > self._kept or self._bytes > KEPT_BYTES):
            self._bytes -= self._blocks.popitem(last=False)[1][1]

    def content(self, number: int, slot: int) -> dict[str, Any]:
        """What stands at a place of a block, empty where nothing does."""
        contents = self.block(number)
        return contents[slot] if slot < len(contents) else {}

    def clear(self) -> None:
        """Forget them: rows may have changed."""
        self._blocks.clear()
        self._bytes = 0
