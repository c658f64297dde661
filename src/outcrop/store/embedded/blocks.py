"""Decoded blocks of one connection: neighbouring events share a block, so the last ones used are kept."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from outcrop.store.embedded import rows


class Blocks:
    """The contents of blocks by number; `kept` of them stay decoded. For one thread, as its connection is."""

    def __init__(self, db: sqlite3.Connection, kept: int) -> None:
        self._db = db
        self._kept = kept
        self._blocks: OrderedDict[int, list[dict[str, Any]]] = OrderedDict()

    def load(self, numbers: Iterable[int]) -> None:
        """Have blocks ready that are about to be asked for: one statement reads as many as are kept."""
        wanted = [number for number in dict.fromkeys(numbers) if number not in self._blocks][: self._kept]
        if len(wanted) > 1:
            marks = ",".join("?" * len(wanted))
            for number, z in self._db.execute(f"SELECT id, z FROM block WHERE id IN ({marks})", wanted):
                self._keep(number, rows.decode_block(z))

    def block(self, number: int) -> list[dict[str, Any]]:
        """The contents of a block, empty where there is none. Raises BackendFailure where it is damaged."""
        contents = self._blocks.get(number)
        if contents is not None:
            self._blocks.move_to_end(number)
            return contents
        row = self._db.execute("SELECT z FROM block WHERE id = ?", (number,)).fetchone()
        contents = rows.decode_block(row[0]) if row else []
        self._keep(number, contents)
        return contents

    def _keep(self, number: int, contents: list[dict[str, Any]]) -> None:
        self._blocks[number] = contents
        if len(self._blocks) > self._kept:
            self._blocks.popitem(last=False)

    def content(self, number: int, slot: int) -> dict[str, Any]:
        """What stands at a place of a block, empty where nothing does."""
        contents = self.block(number)
        return contents[slot] if slot < len(contents) else {}

    def clear(self) -> None:
        """Forget them: rows may have changed."""
        self._blocks.clear()
