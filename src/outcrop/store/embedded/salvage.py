"""Copies what can be read of a damaged `outcrop.db` into a new file, and puts that in its place.

The old file is never changed or deleted: it stays beside the new one as `outcrop.db.damaged-<time>`. Rows are read in
the order of their numbers, and where reading stops it goes on behind the gap. Rows whose
parents or contents are lost go, since nothing could show them. What is derived (touches, text index) is derived again.
The new file has an epoch of its own, so that no cursor and no text index of the old one is taken for its own.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcrop.errors import BackendFailure
from outcrop.model import ENDS, EVENT_TYPES
from outcrop.store.embedded import rows
from outcrop.store.embedded.database import database_path, engine_errors, migrate
from outcrop.store.embedded.text_reader import FOLDER
from outcrop.store.embedded.transplant import schema_is_readable, transplant

NEW = ".salvage"
DAMAGED = ".damaged-"
LOST = "lost#"
"""Stands before the number of a file whose row is lost, where its path would be."""
_NUMBERED = ("name", "file", "session", "place", "turn", "event", "block", "kept", "root")
"""Tables whose rows have a number."""
_KEYED = {
    "meta": "k",
    "fact": "session, file, name",
    "problem": "file, offset, reason",
    "census": "file, version, kind, outcome",
    "redaction": "file, rule",
}
"""Tables without one, and their keys."""
_COUNTED = ("file", "session", "turn", "event", "block")
"""Tables whose numbers are never given twice."""
_OWN = ("epoch", "first_build", "last_pass", "touches_upto", "touches_version")
"""Marks that the new file makes for itself; those of the text index too."""
_FIELDS = frozenset(rows.CONTENT_FIELDS)
_HEAD = 100
"""Bytes of the file's header."""
_LONGEST = 1 << 42
_KINDS: dict[str, type] = {"INTEGER": int, "TEXT": str, "BLOB": bytes}
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading damage raises; what the engine says of a damaged schema may quote it."""
_STEP = 8
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_BEYOND = 100_000
"""Numbers that are tried after the last one that can be read, where nothing tells the highest."""
UNSOUND_EVENT = (
    "length(uid) <> 16 OR length(origin) <> 16"
    f" OR type NOT BETWEEN 0 AND {len(EVENT_TYPES) - 1} OR ends NOT BETWEEN 0 AND {len(ENDS)}"
    f" OR time NOT BETWEEN 0 AND {LATEST} OR slot < 0"
)
"""SQL: an event that nothing can read."""
_UNSOUND = (
    "DELETE FROM session WHERE length(uid) <> 16",
    "DELETE FROM turn WHERE length(uid) <> 16",
    f"DELETE FROM event WHERE {UNSOUND_EVENT}",
    "DELETE FROM fact WHERE NOT json_valid(value)",
    "UPDATE turn SET tools = '', types = ''",  # turns are folded anew
)
"""What damage made of rows that nothing could read."""
_NO_PARENT = (
    "DELETE FROM turn WHERE session NOT IN (SELECT id FROM session)",
    "DELETE FROM event WHERE turn NOT IN (SELECT id FROM turn)",
    # A file whose row is lost is one that is gone: whatever file holds its events as well may take them over.
    f"INSERT INTO file (id, path, harness, source, form, role, missing) SELECT e.file, '{LOST}' || e.file, s.harness,"
    " s.source, 'jsonl', 'session', 1 FROM event e JOIN session s ON s.id = e.session"
    " WHERE e.file NOT IN (SELECT id FROM file) AND e.file > 0 GROUP BY e.file",
    "DELETE FROM event WHERE file NOT IN (SELECT id FROM file)",
    "DELETE FROM event WHERE NOT EXISTS (SELECT 1 FROM block WHERE block.id = event.block AND event.slot < events)",
    "DELETE FROM event WHERE session <> (SELECT session FROM turn WHERE turn.id = event.turn)",
    # Read anew, its events would be looked for in another file than its own.
    "UPDATE turn SET (file, generation) = (SELECT file, max(generation) FROM event WHERE turn = turn.id GROUP BY file"
    " ORDER BY count(*) DESC LIMIT 1) WHERE EXISTS (SELECT 1 FROM event WHERE turn = turn.id)"
    " AND NOT EXISTS (SELECT 1 FROM event WHERE turn = turn.id AND file = turn.file)",
    "DELETE FROM place WHERE session NOT IN (SELECT id FROM session)",
    "DELETE FROM fact WHERE session NOT IN (SELECT id FROM session)",
)


@dataclass(slots=True)
class Salvaged:
    """What came of it: rows by table, how many readings failed, the sessions that have lost something."""

    kept: str
    copied: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    hurt: list[int] = field(default_factory=list)


class Salvage:
    """A new file beside the old one. The caller holds the writer lock, and ends it by `replace` or `discard`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._old = database_path(home)
        self._new = self._old.with_name(self._old.name + NEW)
        self._cut = self._old.with_name(self._old.name + NEW + "-copy")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self.done = Salvaged(f"{self._old.name}{DAMAGED}{stamp}")
        self.discard()

    def copy(self) -> Salvaged:
        """Fill the new file. Raises what writing it raises (a full disk), never what reading the old one does."""
        with engine_errors():
            os.close(os.open(self._new, os.O_CREAT | os.O_RDWR, 0o600))
            new = sqlite3.connect(self._new, isolation_level=None)
            try:
                migrate(new)
                new.execute("PRAGMA journal_mode=OFF")  # it is thrown away whole, or it is whole
                new.execute("PRAGMA synchronous=OFF")
                old = self._readable()
                new.execute("BEGIN")
                self._fill(new, old)
                new.execute("COMMIT")
                new.execute("PRAGMA synchronous=FULL")
            finally:
                new.close()
            _flush(self._new)
        return self.done

    def replace(self) -> None:
        """Put the new file in the place of the old one, which keeps its bytes under another name."""
        kept = self._old.with_name(self.done.kept)
        if self._old.exists():
            try:
                os.link(self._old, kept)
            except OSError:
                shutil.copyfile(self._old, kept)
            kept.chmod(0o600)
        # A log of the old file beside the new one would be read into that.
        for suffix in ("-wal", "-shm"):
            beside = self._old.with_name(self._old.name + suffix)
            if beside.exists():
                os.replace(beside, kept.with_name(kept.name + suffix))
        os.replace(self._new, self._old)

    def discard(self) -> None:
        for path in (self._new, self._cut):
            for suffix in ("", "-journal", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)

    def _readable(self) -> Path:
        """The old file, or where the engine would read nothing of it a copy, of its full length and with a sound list
        of tables."""
        if schema_is_readable(self._old):
            return self._old
        for suffix in ("", "-wal"):
            source = self._old.with_name(self._old.name + suffix)
            if source.exists():
                shutil.copyfile(source, self._cut.with_name(self._cut.name + suffix))
        with open(self._old, "rb") as stream:
            head = stream.read(_HEAD)
        page = int.from_bytes(head[16:18], "big")
        length = (0x10000 if page == 1 else page) * int.from_bytes(head[28:32], "big")
        if self._old.stat().st_size < length < _LONGEST:  # it was cut short
            os.truncate(self._cut, length)
        if schema_is_readable(self._cut) or transplant(self._cut, self._new):
            return self._cut
        return self._old

    def _fill(self, new: sqlite3.Connection, path: Path) -> None:
        old = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            old.text_factory = _text
            for table in _NUMBERED:
                self._table(new, table, _by_number(old, table, self.done))
            for table, key in _KEYED.items():
                self._table(new, table, _by_key(old, table, key, self.done))
            self._sequences(old, new)
            _fill_names(new)
        finally:
            old.close()
        self._drop_unreadable(new)
        for statement in _UNSOUND:
            new.execute(statement)
        self._note_hurt(new)
        for statement in _NO_PARENT:
            new.execute(statement)
        # Files are read again where they still are; what is found equal keeps its id.
        new.execute("UPDATE file SET adapter_version = -1 WHERE NOT missing")
        new.execute("DELETE FROM meta WHERE k LIKE 'text%'")
        for table in ("session", "event"):
            self.done.copied[table] = new.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        folders = [path.name.rpartition("-")[2] for path in (self._home / FOLDER).glob("text-*")]
        used = max((int(number) for number in folders if number.isdecimal()), default=0)
        new.execute("INSERT INTO meta VALUES ('text_count', ?)", (used,))  # none of them is taken for the new one

    def _table(self, new: sqlite3.Connection, table: str, found: Iterator[tuple[Any, ...]]) -> None:
        columns = [_KINDS.get(row[2], object) for row in new.execute(f"PRAGMA table_info({table})")]
        insert = f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(columns))})"
        copied = 0
        for row in found:
            if table == "meta" and row[0] in _OWN:
                continue
            if len(row) == len(columns) and all(
                value is None or isinstance(value, kind) for value, kind in zip(row, columns, strict=True)
            ):
                copied += new.execute(insert, row).rowcount
            else:
                self.done.unreadable += 1  # what damage left in it is no row
        self.done.copied[table] = copied

    def _sequences(self, old: sqlite3.Connection, new: sqlite3.Connection) -> None:
        """Numbers go on where they were, so that none is given twice."""
        try:
            before = dict(old.execute("SELECT name, seq FROM sqlite_sequence"))
        except _UNREADABLE:
            before = {}
        for table in _COUNTED:
            highest = new.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
            told = before.get(table)
            new.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            new.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)",
                (table, max(highest, told) if isinstance(told, int) else highest),
            )

    def _drop_unreadable(self, new: sqlite3.Connection) -> None:
        """Blocks that do not unpack to what their rows say."""
        bad = []
        for number, z, events in new.execute("SELECT id, z, events FROM block"):
            try:
                contents = rows.decode_block(z)
                sound = len(contents) == events and all(_FIELDS.issuperset(content) for content in contents)
            except Exception as error:
                if (
                    not isinstance(error, (BackendFailure, TypeError, MemoryError))
                    and type(error).__name__ != "ZstdError"
                ):
                    raise
                sound = False
            if not sound:
                bad.append((number,))
        self.done.unreadable += len(bad)
        new.executemany("DELETE FROM block WHERE id = ?", bad)

    def _note_hurt(self, new: sqlite3.Connection) -> None:
        """The sessions that lack a turn, an event or a content, by what their other rows say."""
        found = new.execute(
            "SELECT t.session FROM turn t LEFT JOIN (SELECT turn, count(*) n FROM event"
            " JOIN block b ON b.id = event.block AND event.slot < b.events GROUP BY turn) c ON c.turn = t.id"
            " WHERE t.event_count <> coalesce(c.n, 0)"
            " UNION SELECT id FROM session s WHERE turn_count <>"
            " (SELECT count(*) FROM turn WHERE session = s.id AND NOT hidden)"
            " UNION SELECT session FROM event WHERE turn NOT IN (SELECT id FROM turn)"
            " UNION SELECT session FROM event WHERE file NOT IN (SELECT id FROM file)"
        ).fetchall()
        alive = {row[0] for row in new.execute("SELECT id FROM session")}
        self.done.hurt = sorted(row[0] for row in found if row[0] in alive)


def _by_number(old: sqlite3.Connection, table: str, done: Salvaged) -> Iterator[tuple[Any, ...]]:
    """All rows that can be read, in order; where reading stops it goes on behind the gap."""
    try:
        old.execute(f"SELECT * FROM {table} LIMIT 0")
    except _UNREADABLE:  # the schema itself: no row of it is ever reached
        done.unreadable += 1
        return
    top = _highest(old, table)
    at = 0
    while at <= top:
        last = at - 1
        try:
            for number, *row in old.execute(
                f"SELECT rowid, * FROM {table} WHERE rowid >= ? AND rowid <= ? ORDER BY rowid", (at, top)
            ):
                if number <= last:
                    break  # a page that stands in the wrong place would be read for ever
                last = number
                yield tuple(row)
            else:
                return
        except _UNREADABLE:
            pass
        done.unreadable += 1
        at = _behind(old, table, last + 1, top)


def _behind(old: sqlite3.Connection, table: str, first: int, top: int) -> int:
    """The first number behind a gap, found by steps: a page holds more rows than one step."""
    for step in range(first, top + 1, _STEP):
        if _reads(old, table, step + _STEP):
            return next(number for number in range(step + 1, step + _STEP + 1) if _reads(old, table, number))
    return top + 1


def _reads(old: sqlite3.Connection, table: str, number: int) -> bool:
    try:
        old.execute(f"SELECT * FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT 1", (number,)).fetchone()
    except _UNREADABLE:
        return False
    return True


def _highest(old: sqlite3.Connection, table: str) -> int:
    """The highest number that a row may have; by several ways, as any may be damaged."""
    tops = [0]
    for sql in (
        f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
        f"SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT 1",
    ):
        try:
            row = old.execute(sql).fetchone()
        except _UNREADABLE:
            continue
        if row and isinstance(row[0], int):
            tops.append(row[0])
    if len(tops) < 2:
        last = 0
        try:
            for row in old.execute(f"SELECT rowid FROM {table} ORDER BY rowid"):
                last = row[0]
        except _UNREADABLE:
            tops.append(last + _BEYOND)
        tops.append(last)
    # No table has more rows than the file has bytes: a higher number is damage.
    size = os.stat(old.execute("PRAGMA database_list").fetchone()[2]).st_size
    return min(max(tops), max(size, _BEYOND))


def _fill_names(new: sqlite3.Connection) -> None:
    """A name that was lost keeps its number: the next new one is numbered by how many there are."""
    have = {row[0] for row in new.execute("SELECT id FROM name")}
    used = new.execute(
        "SELECT max(coalesce(max(tool), 0), coalesce(max(model), 0), coalesce(max(generator), 0)) FROM event"
    ).fetchone()[0]
    lost = set(range(1, max(used or 0, max(have, default=0)) + 1)) - have
    new.executemany("INSERT INTO name VALUES (?, ?)", [(number, f"?{number}") for number in lost])


def _by_key(old: sqlite3.Connection, table: str, key: str, done: Salvaged) -> Iterator[tuple[Any, ...]]:
    """From both ends up to where reading fails; rows in between are lost."""
    descending = ", ".join(f"{part.strip()} DESC" for part in key.split(","))
    for order in (key, descending):
        failed = False
        cursor = None
        try:
            cursor = old.execute(f"SELECT * FROM {table} ORDER BY {order}")
            while (row := cursor.fetchone()) is not None:
                yield row
        except _UNREADABLE:
            failed = True
        if not failed:
            return
        done.unreadable += 1


def _text(data: bytes) -> str:
    """Text that damage has made no UTF-8 any more is kept as far as it goes."""
    return data.decode("utf-8", "replace")


def _flush(path: Path) -> None:
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())
