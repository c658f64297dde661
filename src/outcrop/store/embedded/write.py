"""Writing rows: the statements of the one writer, each in the transaction that its caller opened.

What a batch means (which turn, which copy) is the ingest's business; here are only rows. Ids are taken from counters
that never fall back, so an event's id stays its arrival number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded import rows
from outcrop.store.embedded.database import engine_errors, open_for_writing
from outcrop.store.embedded.tombstones import Tombstones

CONVERSATION = 0
OTHER = 1
WHOLE = 2
"""Classes of `text_todo`: conversations are drained first, whole sessions last (there `doc` is the session)."""
ANSWER = TYPE_CODE[EventType.ASSISTANT_RESPONSE]
"""The highest code of a message."""


def text_class(kind: int) -> int:
    """The class of an event's document, by the code of its type."""
    return CONVERSATION if kind <= ANSWER else OTHER


@dataclass(slots=True)
class FileRow:
    """The checkpoint of a file; columns as in the schema."""

    id: int
    path: str
    harness: str
    source: str
    form: str
    role: str
    native: str | None
    parent: str | None
    device: int = 0
    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    line: int = 0
    head: bytes | None = None
    head_size: int = 0
    tail: bytes | None = None
    generation: int = 0
    state: bytes | None = None
    adapter_version: int = 0
    first_time: int | None = None
    problem: str | None = None
    seen_at: int = 0
    missing: int = 0
    erased: int = 0


_FILE = ", ".join(column.name for column in fields(FileRow))


def stored_files(connection: sqlite3.Connection) -> list[FileRow]:
    """The checkpoints of all files."""
    return [FileRow(*row) for row in connection.execute(f"SELECT {_FILE} FROM file")]


TURN_COLUMNS = (
    "id, uid, session, file, generation, native, ord, place, hidden, started, updated, event_count, ends, settled,"
    " terminal, user_event, user_text, user_more, reply_event, reply_text, reply_more, active, tools, types, last_event"
)
EVENT_COLUMNS = (
    "id, uid, session, turn, ord, file, generation, type, time, flags, ends, tool, model, generator, place, origin,"
    " block, slot"
)


class KnownEvent(NamedTuple):
    """Where a stored event stands."""

    id: int
    turn: int
    file: int
    generation: int
    block: int
    slot: int


class Writer:
    """The one writer of a store. The caller holds the writer lock."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.db = open_for_writing(home)
        self.tombstones = Tombstones(self.db)
        self._names: dict[str, int] = {}
        self.learn_names()
        self._next = {
            table: int(self._scalar("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?", table)) + 1
            for table in ("event", "turn", "block")
        }

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; engine errors come out typed. Inside another one: undone alone, committed with that."""
        counters = dict(self._next)
        inside = self.db.in_transaction
        with engine_errors():
            self.db.execute("SAVEPOINT inside" if inside else "BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("RELEASE inside" if inside else "COMMIT")
            except BaseException:
                self._next = counters
                self._names = {}
                if self.db.in_transaction:  # otherwise the engine has undone all of it
                    self.db.execute("ROLLBACK TO inside" if inside else "ROLLBACK")
                    if inside:  # undone, it still is open
                        self.db.execute("RELEASE inside")
                self.tombstones.learn()
                self.learn_names()
                raise

    # Counters and words

    def take(self, table: str, count: int = 1) -> int:
        """The first of `count` fresh ids."""
        first = self._next[table]
        self._next[table] = first + count
        return first

    def learn_names(self) -> None:
        """Read the words anew, after their table was changed."""
        self._names = dict(self.db.execute("SELECT text, id FROM name"))

    def name(self, text: str) -> int:
        """The number of a tool name or model."""
        number = self._names.get(text)
        if number is None:
            number = len(self._names) + 1
            self.db.execute("INSERT INTO name VALUES (?, ?)", (number, text))
            self._names[text] = number
        return number

    def meta(self, key: str) -> Any:
        return self._scalar("SELECT v FROM meta WHERE k = ?", key)

    def set_meta(self, key: str, value: Any) -> None:
        self.db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET v = excluded.v", (key, value))

    def step_meta(self, key: str) -> None:
        self.db.execute("UPDATE meta SET v = v + 1 WHERE k = ?", (key,))

    # Files

    def file(self, source: str, path: str) -> FileRow | None:
        row = self._one(f"SELECT {_FILE} FROM file WHERE source = ? AND path = ?", source, path)
        return FileRow(*row) if row else None

    def files(self) -> list[FileRow]:
        return stored_files(self.db)

    def save_file(self, file: FileRow) -> None:
        """Insert (id 0) or update; sets the id."""
        if file.id == 0:
            values = astuple(file)[1:]
            marks = ", ".join("?" * len(values))
            columns = _FILE.removeprefix("id, ")
            file.id = int(self.db.execute(f"INSERT INTO file ({columns}) VALUES ({marks})", values).lastrowid or 0)
        else:
            columns = ", ".join(f"{column.name} = ?" for column in fields(FileRow)[1:])
            self.db.execute(f"UPDATE file SET {columns} WHERE id = ?", (*astuple(file)[1:], file.id))

    # Sessions

    def session_id(self, uid: bytes) -> int | None:
        row = self._one("SELECT id FROM session WHERE uid = ?", uid)
        return int(row[0]) if row else None

    def create_session(self, uid: bytes, harness: str, source: str, native: str) -> int:
        return int(
            self.db.execute(
                "INSERT INTO session (uid, harness, source, native) VALUES (?, ?, ?, ?)", (uid, harness, source, native)
            ).lastrowid
            or 0
        )

    def place(self, session: int, cwd: str, branch: str) -> tuple[int, bool]:
        """The number of a (cwd, branch) of a session, and whether it is new."""
        row = self._one("SELECT id FROM place WHERE session = ? AND cwd = ? AND branch = ?", session, cwd, branch)
        if row:
            return int(row[0]), False
        added = self.db.execute("INSERT INTO place (session, cwd, branch) VALUES (?, ?, ?)", (session, cwd, branch))
        return int(added.lastrowid or 0), True

    def set_fact(self, session: int, file: int, name: str, value: Any) -> None:
        if value is None:
            self.db.execute("DELETE FROM fact WHERE session = ? AND file = ? AND name = ?", (session, file, name))
        else:
            self.db.execute(
                "INSERT INTO fact VALUES (?, ?, ?, ?)"
                " ON CONFLICT (session, file, name) DO UPDATE SET value = excluded.value",
                (session, file, name, orjson.dumps(value).decode()),
            )

    def facts(self, session: int) -> list[tuple[str, Any]]:
        """Facts of a session, those of later files after those of earlier ones."""
        return [
            (name, orjson.loads(value))
            for name, value in self.db.execute(
                "SELECT fact.name, fact.value FROM fact JOIN file ON file.id = fact.file WHERE fact.session = ?"
                " ORDER BY file.first_time IS NULL, file.first_time, file.path",
                (session,),
            )
        ]

    # Events

    def known_events(self, uids: Sequence[bytes]) -> dict[bytes, KnownEvent]:
        """By uid, those that are stored."""
        found = {}
        for start in range(0, len(uids), 500):
            piece = uids[start : start + 500]
            for row in self.db.execute(
                "SELECT uid, id, turn, file, generation, block, slot FROM event"
                f" WHERE uid IN ({','.join('?' * len(piece))})",
                piece,
            ):
                found[row[0]] = KnownEvent(*row[1:])
        return found

    def missing_files(self, files: set[int]) -> frozenset[int]:
        """Those of the files that are gone."""
        return frozenset(
            row[0] for file in files for row in self.db.execute("SELECT id FROM file WHERE id = ? AND missing", (file,))
        )

    def paths(self, files: set[int]) -> list[tuple[int, str]]:
        """Id and path of each of the files."""
        return [row for file in files for row in self.db.execute("SELECT id, path FROM file WHERE id = ?", (file,))]

    def insert_events(self, events: Iterable[Sequence[Any]]) -> None:
        """Rows in the order of EVENT_COLUMNS."""
        marks = ", ".join("?" * len(EVENT_COLUMNS.split(",")))
        self.db.executemany(f"INSERT INTO event ({EVENT_COLUMNS}) VALUES ({marks})", events)

    def replace_events(self, events: Iterable[Sequence[Any]]) -> None:
        """Rows whose ids exist, read anew; `rev` is stepped by the caller where the meaning changed."""
        columns = [column.strip() for column in EVENT_COLUMNS.split(",")]
        changes = ", ".join(f"{column} = ?{number}" for number, column in enumerate(columns, 1) if number > 1)
        self.db.executemany(f"UPDATE event SET {changes} WHERE id = ?1", events)

    def add_block(self, number: int, session: int, contents: list[bytes]) -> None:
        """Store contents of one session under a number that was taken."""
        z, size = rows.encode_block(contents)
        self.db.execute("INSERT INTO block VALUES (?, ?, ?, ?, ?)", (number, session, len(contents), size, z))

    def content(self, block: int, slot: int) -> dict[str, Any]:
        return rows.decode_block(self._one("SELECT z FROM block WHERE id = ?", block)[0])[slot]

    def replace_content(self, block: int, slot: int, content: bytes) -> None:
        """Rewrite one content inside its block."""
        contents = rows.decode_block(self._one("SELECT z FROM block WHERE id = ?", block)[0])
        encoded = [rows.encode_content(item) for item in contents]
        encoded[slot] = content
        z, size = rows.encode_block(encoded)
        self.db.execute("UPDATE block SET z = ?, size = ? WHERE id = ?", (z, size, block))

    def drop_unused_blocks(self, session: int) -> None:
        self.db.execute(
            "DELETE FROM block WHERE session = ?1 AND id NOT IN"
            " (SELECT block FROM event WHERE turn IN (SELECT id FROM turn WHERE session = ?1))",
            (session,),
        )

    # Turns

    def turn(self, uid: bytes) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._one(f"SELECT {TURN_COLUMNS} FROM turn WHERE uid = ?", uid)
        return row

    def turn_by_id(self, id: int) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._one(f"SELECT {TURN_COLUMNS} FROM turn WHERE id = ?", id)
        return row

    def save_turns(self, turns: Iterable[Sequence[Any]]) -> None:
        """Rows in the order of TURN_COLUMNS, new or known."""
        columns = [column.strip() for column in TURN_COLUMNS.split(",")]
        marks = ", ".join("?" * len(columns))
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
        self.db.executemany(
            f"INSERT INTO turn ({TURN_COLUMNS}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {changes}", turns
        )

    # Beside the history

    def todo(self, documents: Iterable[tuple[int, int]]) -> None:
        """(event id, class) whose text document is stale."""
        self.db.executemany("INSERT INTO text_todo (doc, class) VALUES (?, ?)", documents)

    def count(self, file: int, counts: Iterable[tuple[str, str, str, int]]) -> None:
        """(version, kind, outcome, n) to add to the census of a file."""
        self.db.executemany(
            "INSERT INTO census VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            [(file, *count) for count in counts],
        )

    def count_masked(self, file: int, counts: dict[str, int]) -> None:
        self.db.executemany(
            "INSERT INTO redaction VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            [(file, rule, n) for rule, n in counts.items()],
        )

    def problem(self, file: int, offset: int, line: int, reason: str, detail: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO problem VALUES (?, ?, ?, ?, ?)", (file, offset, line, reason, detail))

    def keep(self, file: int, session: int | None, offset: int, line: int, reason: str, hash: bytes, origin: str | None,
             data: bytes) -> None:  # fmt: skip
        """Keep a record, or what of it no event holds, compressed."""
        self.db.execute(
            "INSERT INTO kept (file, session, offset, line, reason, hash, origin, z) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (file, session, offset, line, reason, hash, origin, rows.compress(data)),
        )

    def forget_reading(self, file: int) -> None:
        """Drop what a reading of a file left beside the history, before it is read anew."""
        for table in ("fact", "kept", "problem", "census", "redaction"):
            self.db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))

    def _one(self, sql: str, *values: Any) -> Any:
        return self.db.execute(sql, values).fetchone()

    def _scalar(self, sql: str, *values: Any) -> Any:
        row: sqlite3.Row | None = self.db.execute(sql, values).fetchone()
        return row[0] if row else None
