"""The whole history: as callers see it, walked through the contract, and as its rows stand there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from outcrop.contracts import mcp_v1
from outcrop.contracts.catalog import Catalog
from outcrop.store import open_store

HISTORY = ("session", "turn", "event", "block", "fact", "place", "kept", "name")
ALWAYS = {"start_datetime": "0001-01-01T00:00:00Z", "end_datetime": "9999-12-31T23:59:59Z"}


def projection(home: Path) -> dict[str, Any]:
    """Session id → its row, turns and events; nothing that depends on when or how it was read."""
    store = open_store(home)
    context = mcp_v1.Context(store=store, catalog=Catalog(harnesses={}, sources=(), agents={}), max_results=50)

    def ask(tool: str, **arguments: Any) -> dict[str, Any]:
        envelope = mcp_v1.call(tool, arguments, context)
        assert "error" not in envelope, envelope
        return envelope["data"]

    def pages(data: dict[str, Any], children: str, tool: str, **same: Any) -> list[dict[str, Any]]:
        found = list(data[children])
        while data["next_cursor"] is not None:
            data = ask(tool, cursor=data["next_cursor"], **same)
            found += data[children]
        return found

    history = {}
    rows = pages(ask("list_sessions", **ALWAYS, limit=50), "sessions", "list_sessions", **ALWAYS)
    for row in rows:
        opened = ask("open", id=row["id"], limit=50)
        turns = pages(opened, "turns", "open")
        events = []
        for turn in turns:
            for event in pages(ask("open", id=turn["id"], limit=50), "events", "open"):
                told = ask("open", id=event["id"])
                events.append((event, told["event"], told["content"]))
        history[row["id"]] = (row["session"], opened["session"], turns, events)
    store.close()
    return history


def stored(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the history by table: where none has changed, callers see the same."""
    with closing(sqlite3.connect(home / "outcrop.db")) as database:
        return {table: database.execute(f"SELECT * FROM {table}").fetchall() for table in HISTORY}
