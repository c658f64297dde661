"""Whether the text index shows exactly the rows: its files, its marker, and document for document what it holds.

A document is compared by its event and that event's `rev`. Events without text have none, so an event that lacks one
is looked at before it is called lost.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tantivy import FieldType, Query, Searcher

from outcrop.findings import Finding, Level, Repair, ok
from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded import text_fields, text_files
from outcrop.store.embedded.coverage import TRICKLE
from outcrop.store.embedded.database import engine_errors
from outcrop.store.embedded.text_fields import schema
from outcrop.store.embedded.text_reader import FOLDER, fits, is_engine_failure, is_refusal, stored_meta
from outcrop.store.embedded.text_rows import TextRows

CHECK = "text index"
BACKLOG = "text backlog"
_AT_ONCE = 20_000
_LOOKED_AT = 5_000
"""Events without a document whose text is read; more are taken for having none, and the finding says so."""
_SAMPLE = 50
_ATTEMPTS = 3
_PAUSE = 0.3
_REBUILD = "`outcrop doctor --fix`, or `outcrop rebuild`, makes it anew from the history; no history is lost"
_UNKNOWN = TYPE_CODE[EventType.UNKNOWN]


@dataclass(slots=True)
class _Compared:
    """Numbers of documents and events. `lost`: searchable events without a document that nothing waits to write."""

    documents: int = 0
    events: int = 0
    textless: int = 0
    unlooked: int = 0
    lost: int = 0
    stale: int = 0
    doubled: int = 0
    ghosts: int = 0


def check_text(connection: sqlite3.Connection, home: Path) -> list[Finding]:
    """The index against the rows, and what still waits for it. Raises the errors of the database alone."""
    with engine_errors():
        backlog = _backlog(connection)
        if connection.execute("SELECT 1 FROM event LIMIT 1").fetchone() is None:
            return [ok(CHECK, "there is nothing to be searched yet"), backlog]
        for attempt in range(1, _ATTEMPTS + 1):
            finding = _once(connection, home, attempt == _ATTEMPTS)
            if finding is not None:
                return [finding, backlog]
            time.sleep(_PAUSE)
    return [Finding(CHECK, Level.NOTE, "the text index is being written, so it was not compared"), backlog]


def _once(connection: sqlite3.Connection, home: Path, last: bool) -> Finding | None:
    """One look; None where it may have been written meanwhile, unless this is the `last` one."""
    meta = stored_meta(connection)
    name = meta.get("text_dir")
    if not name:
        if meta.get("text_next"):
            return Finding(
                CHECK,
                Level.FAILED,
                "the text index is not built",
                "nothing can be searched",
                "run `outcrop index`: it goes on with the building",
                repair=Repair.TEXT,
            )
        return _broken("there is no text index")
    folder = home / FOLDER / name
    if not folder.is_dir():
        return _broken("the text index is gone")
    try:
        text_files.newest_sound(folder, 0)
        searcher = text_fields.open_index(folder).searcher()
        marker = text_fields.read_marker(searcher)
        if marker is None:
            return _broken("the text index has no marker")
        if not fits(marker, meta):
            what = "of another history" if marker.schema == text_fields.SCHEMA else "of another version"
            return _broken(f"the text index is {what}", schema=marker.schema, known_schema=text_fields.SCHEMA)
        if marker.generation > int(meta.get("generation", 0)):
            return _broken("the text index is younger than the history: an older database was put in its place")
        connection.execute("BEGIN")
        try:
            told = _compare(connection, searcher)
        finally:
            connection.execute("ROLLBACK")
    except BaseException as error:
        if not is_engine_failure(error):
            raise
        if stored_meta(connection).get("text_dir") != name:
            return None
        if is_refusal(error):
            return Finding(
                CHECK,
                Level.FAILED,
                "the text index cannot be opened: its folder is read-only",
                "nothing can be searched; sessions can be listed and opened",
                "make the data folder and all in it writable for you",
            )
        return _broken("files of the text index are damaged or missing")
    if told == _clean(told):
        return _sound(told, marker.generation)
    after = stored_meta(connection)
    now = (after.get("generation"), after.get("text_dir"))
    if now != (meta.get("generation"), name) or (marker.generation != now[0] and not last):
        return None
    return _differs(told)


def _clean(told: _Compared) -> _Compared:
    return _Compared(told.documents, told.events, told.textless, told.unlooked)


def _sound(told: _Compared, generation: int) -> Finding:
    return ok(
        CHECK,
        "the text index shows exactly the history",
        documents=told.documents,
        searchable_events=told.events - told.textless - told.unlooked,
        events_without_text=told.textless,
        not_looked_at=told.unlooked,
        generation=generation,
    )


def _differs(told: _Compared) -> Finding:
    parts: dict[str, int | str] = {
        "events without their document": told.lost,
        "documents of an older text": told.stale,
        "documents that stand twice": told.doubled,
        "documents of no event": told.ghosts,
    }
    parts = {name: count for name, count in parts.items() if count}
    return _broken("the text index differs from the history: " + ", ".join(f"{n} {name}" for name, n in parts.items()),
                   **parts)  # fmt: skip


def _broken(what: str, **facts: int | str) -> Finding:
    return Finding(
        CHECK, Level.FAILED, what, "searches fail, or miss what is there", _REBUILD, facts, repair=Repair.TEXT
    )


def _compare(connection: sqlite3.Connection, searcher: Searcher) -> _Compared:
    told = _Compared()
    queued = {row[0] for row in connection.execute("SELECT DISTINCT doc FROM text_todo WHERE class < 2")}
    last = int(connection.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0])
    sample: list[int] = []
    for start in range(0, last + 1, _AT_ONCE):
        rows = dict(
            connection.execute(
                "SELECT id, rev FROM event WHERE id >= ? AND id < ? AND type <> ?", (start, start + _AT_ONCE, _UNKNOWN)
            )
        )
        documents: dict[int, int] = {}
        for id, rev in _documents(searcher, start, start + _AT_ONCE - 1):
            told.documents += 1
            told.doubled += id in documents and id not in queued
            documents[id] = rev
        told.events += len(rows)
        told.ghosts += len(documents.keys() - rows.keys() - queued)
        told.stale += sum(1 for id in documents.keys() & rows.keys() if id not in queued and documents[id] != rows[id])
        _look(connection, sorted(rows.keys() - documents.keys() - queued), told)
        sample += sorted(documents.keys() - queued)[:: max(1, len(documents) // _SAMPLE)]
    told.ghosts += sum(1 for _ in _documents(searcher, last + 1, None))
    for id in sample[:: max(1, len(sample) // _SAMPLE)]:  # as a search finds it, not by its column
        told.lost += not searcher.search(Query.term_query(schema(), "id", id), 1, count=False).hits
    return told


def _documents(searcher: Searcher, first: int, last: int | None) -> Iterator[tuple[int, int]]:
    """(event, rev) of the documents in a range of events."""
    wanted = Query.range_query(schema(), "id", FieldType.Integer, first, last)
    addresses = [address for _, address in searcher.search(wanted, 2 * _AT_ONCE, count=False).hits]
    if addresses:
        ids: list[Any] = searcher.fast_field_values("id", addresses)
        yield from zip(ids, searcher.fast_field_values("rev", addresses), strict=True)


def _look(connection: sqlite3.Connection, ids: list[int], told: _Compared) -> None:
    """Count which of these events have a text after all."""
    left = max(0, _LOOKED_AT - told.textless - told.lost)
    told.unlooked += len(ids[left:])
    for source, _ in TextRows(connection).read(ids[:left]):
        if source.text:
            told.lost += 1
        else:
            told.textless += 1


def _backlog(connection: sqlite3.Connection) -> Finding:
    waiting = int(connection.execute("SELECT count(DISTINCT doc) FROM text_todo WHERE class < 2").fetchone()[0])
    if not waiting:
        return ok(BACKLOG, "nothing waits for the text index")
    return Finding(
        BACKLOG,
        Level.FAILED if waiting > TRICKLE else Level.NOTE,
        f"{waiting} documents wait for the text index",
        "they are stored and can be opened, and are not found or found by their older text",
        "run `outcrop index`, unless one runs",
        {"waiting": waiting},
        repair=Repair.TEXT,
    )
