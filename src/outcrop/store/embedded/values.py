"""Every stored value of the history, decoded: what a search for the remains of something has to look through.

Tables are taken from the schema itself, so that one added later is looked through too. Compressed values are unpacked
and JSON is taken apart into its texts. A value is `owned` where a row that lives accounts for it: a place in a block
that an event refers to, a row of a session or an event that exists, a kept record of a file of which nothing was
erased.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from outcrop.store.embedded import erase, rows

_ZSTD = b"\x28\xb5\x2f\xfd"
_PASSED = {"event", "block", "text_todo", "touch_todo", "touch", "census", "redaction", "meta", "purge_mark"}
"""Numbers and digests, names of rules and of kinds of records; blocks are looked through session by session."""
_IDENTITIES = {
    "file": {"path", "native", "parent", "harness", "source", "form", "role", "problem"},
    "session": {"native", "harness", "source", "relation"},
    "tombstone": {"native", "harness", "source"},
    "fact": {"name"},
    "kept": {"reason"},
    "problem": {"reason"},
}
"""Columns that tell which session or file it is, which is kept of what is forgotten, and names of this program."""
_JSON = {("fact", "value")}
_LISTED = "(SELECT value FROM json_each({}))"


class Value(NamedTuple):
    """`at`: (block, slot) of an event's content."""

    owned: bool
    table: str
    texts: list[str]
    at: tuple[int, int] | None = None


def all_values(db: sqlite3.Connection) -> Iterator[Value]:
    """Everything that is stored. Raises BackendFailure where a value is damaged."""
    for (session,) in db.execute("SELECT DISTINCT session FROM block").fetchall():
        used = erase.slots_used(db, session)
        for number, z in db.execute("SELECT id, z FROM block WHERE session = ?", (session,)):
            for slot, content in enumerate(rows.decode_block(z)):
                if content:
                    yield Value(slot in used[number], "block", texts_of(content), (number, slot))
    for table, columns in _tables(db):
        names = _textual(table, columns)
        if names:
            owner = _owner(table, {name for name, _ in columns})
            for owned, *values in db.execute(f"SELECT {owner}, {', '.join(names)} FROM {table} AS t"):
                yield Value(bool(owned), table, _texts(table, names, values))


def values_of(
    db: sqlite3.Connection, sessions: Collection[int], files: Collection[int], events: Iterable[erase.Erased]
) -> Iterator[list[str]]:
    """The texts of some sessions, of what some files left beside the history, and of single events."""
    listed = {"sessions": json.dumps(list(sessions)), "files": json.dumps(list(files))}
    in_sessions, in_files = _LISTED.format(":sessions"), _LISTED.format(":files")
    for (z,) in db.execute(f"SELECT z FROM block WHERE session IN {in_sessions}", listed):
        for content in rows.decode_block(z):
            yield texts_of(content)
    for event in events:
        (z,) = db.execute("SELECT z FROM block WHERE id = ?", (event.block,)).fetchone()
        yield texts_of(rows.decode_block(z)[event.slot])
    for table, columns in _tables(db):
        names = _textual(table, columns)
        known = {name for name, _ in columns}
        clauses = []
        if table in ("session", "file"):
            clauses = [f"id IN {in_sessions if table == 'session' else in_files}"]
        else:
            clauses += [f"session IN {in_sessions}"] * ("session" in known)
            clauses += [f"file IN {in_files}"] * ("file" in known)
        if names and clauses:
            for values in db.execute(f"SELECT {', '.join(names)} FROM {table} WHERE {' OR '.join(clauses)}", listed):
                yield _texts(table, names, values)


def texts_of(value: Any) -> list[str]:
    """All texts in a JSON value, keys too."""
    found: list[str] = []
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            found.append(node)
        elif isinstance(node, dict):
            found += node
            todo += node.values()
        elif isinstance(node, list):
            todo += node
    return found


def _tables(db: sqlite3.Connection) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(table, [(column, type)])."""
    for (table,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
    ).fetchall():
        if table not in _PASSED:
            yield table, [(row[1], row[2]) for row in db.execute(f"PRAGMA table_info({table})").fetchall()]


def _textual(table: str, columns: list[tuple[str, str]]) -> list[str]:
    passed = _IDENTITIES.get(table, set())
    return [name for name, kind in columns if kind != "INTEGER" and name not in passed]


def _owner(table: str, columns: set[str]) -> str:
    """SQL that tells whether a row `t` of the table is accounted for."""
    whole = f"EXISTS (SELECT 1 FROM file f WHERE f.id = t.file AND f.erased & ~{erase.AGED} = 0)"
    if table == "file":
        return f"t.erased & ~{erase.AGED} = 0"
    if table == "path":
        return "EXISTS (SELECT 1 FROM touch WHERE touch.path = t.id)"
    if table == "session":
        return "1"
    if "session" in columns:
        lives = "EXISTS (SELECT 1 FROM session s WHERE s.id = t.session)"
        if "file" in columns:
            return f"CASE WHEN t.session IS NULL THEN {whole} ELSE {lives} END"
        return lives
    if "event" in columns:
        return "EXISTS (SELECT 1 FROM event e WHERE e.id = t.event)"
    return whole if "file" in columns else "1"


def _texts(table: str, names: list[str], values: Iterable[Any]) -> list[str]:
    found: list[str] = []
    for name, value in zip(names, values, strict=True):
        if isinstance(value, bytes):
            if value.startswith(_ZSTD):
                found += texts_of(_loads(rows.decompress(value)))
        elif isinstance(value, str):
            found += texts_of(_loads(value)) if (table, name) in _JSON else [value]
    return found


def _loads(data: bytes | str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return data.decode("utf-8", "replace") if isinstance(data, bytes) else data
