"""A small history written straight into the rows, as the ingest would, for tests of the text index and of search."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcrop import ids
from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded import rows
from outcrop.store.embedded.database import open_for_writing
from outcrop.store.embedded.text import TextWriter


@dataclass
class Line:
    """One event to write. A new user_input opens a new turn."""

    type: EventType
    text: str = ""
    time: int = 0
    tool: str | None = None
    arguments: Any = None
    origin: bytes | None = None
    copy: bool = False


@dataclass
class History:
    """A store being written; `drain` brings the text index up to it."""

    home: Path
    db: sqlite3.Connection = field(init=False)
    writer: TextWriter = field(init=False)
    last: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.db = open_for_writing(self.home)
        self.db.execute("UPDATE meta SET v = 'done' WHERE k = 'first_build'")
        self.writer = TextWriter(self.home)

    def add(self, session: str, lines: list[Line], harness: str = "codex", source: str = "codex") -> list[int]:
        """Append events to a session, one block for all; returns their ids."""
        uid = ids.session_uid(harness, source, session)
        start = min(line.time for line in lines)
        end = max(line.time for line in lines)
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.execute(
                "INSERT OR IGNORE INTO session (uid, harness, source, native, started) VALUES (?, ?, ?, ?, ?)",
                (uid, harness, source, session, start),
            )
            number, before, turns = self.db.execute(
                "SELECT id, event_count, turn_count FROM session WHERE uid = ?", (uid,)
            ).fetchone()
            contents = [rows.encode_content(self._content(line)) for line in lines]
            z, size = rows.encode_block(contents)
            block = self.db.execute(
                "INSERT INTO block (session, events, size, z) VALUES (?, ?, ?, ?)", (number, len(lines), size, z)
            ).lastrowid
            turn, ordinal = self._last_turn(number)
            made: list[int] = []
            for slot, line in enumerate(lines):
                if line.type is EventType.USER_INPUT or turn is None:
                    turns += 1
                    turn, ordinal = self._turn(number, uid, turns, line.time), 0
                ordinal += 1
                made.append(self._event(line, number, uid, turn, ordinal, before + slot, block, slot))
                self.db.execute(
                    "UPDATE turn SET event_count = ?, updated = ?, last_event = ? WHERE id = ?",
                    (ordinal, line.time, made[-1], turn),
                )
            self.db.execute(
                "UPDATE session SET event_count = ?, turn_count = ?, updated = ?, last_event = ? WHERE id = ?",
                (before + len(lines), turns, end, made[-1], number),
            )
            self.db.execute("COMMIT")
        return made

    def change(self, event: int, text: str, queue: bool = True) -> None:
        """Give an event another text."""
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            block, slot, kind = self.db.execute("SELECT block, slot, type FROM event WHERE id = ?", (event,)).fetchone()
            contents = rows.decode_block(self.db.execute("SELECT z FROM block WHERE id = ?", (block,)).fetchone()[0])
            contents[slot]["text"] = text
            z, size = rows.encode_block([rows.encode_content(content) for content in contents])
            self.db.execute("UPDATE block SET z = ?, size = ? WHERE id = ?", (z, size, block))
            self.db.execute("UPDATE event SET rev = rev + 1 WHERE id = ?", (event,))
            if queue:
                self.db.execute("INSERT INTO text_todo (doc, class) VALUES (?, ?)", (event, int(kind > 1)))
            self.db.execute("COMMIT")

    def remove(self, event: int, queue: bool = True) -> None:
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.execute("DELETE FROM event WHERE id = ?", (event,))
            if queue:
                self.db.execute("INSERT INTO text_todo (doc, class) VALUES (?, 0)", (event,))
            self.db.execute("COMMIT")

    def drain(self) -> int:
        return self.writer.drain(self.db)

    def close(self) -> None:
        self.writer.close()
        self.db.close()

    def _last_turn(self, session: int) -> tuple[int | None, int]:
        row = self.db.execute(
            "SELECT id, event_count FROM turn WHERE session = ? ORDER BY ord DESC LIMIT 1", (session,)
        ).fetchone()
        return (row[0], row[1]) if row else (None, 0)

    def _turn(self, session: int, uid: bytes, ordinal: int, time: int) -> int:
        columns = {row[1] for row in self.db.execute("PRAGMA table_info(turn)")}
        values: dict[str, Any] = {
            "uid": ids.turn_uid(uid, str(ordinal)), "session": session, "file": 1, "ord": ordinal, "place": ordinal,
            "started": time, "updated": time, "event_count": 0, "generation": 0,
        }  # fmt: skip
        return self._insert("turn", {name: value for name, value in values.items() if name in columns})

    def _event(
        self, line: Line, session: int, uid: bytes, turn: int, ordinal: int, place: int, block: int | None, slot: int
    ) -> int:
        tool = None
        if line.tool:
            self.db.execute("INSERT OR IGNORE INTO name (text) VALUES (?)", (line.tool,))
            tool = self.db.execute("SELECT id FROM name WHERE text = ?", (line.tool,)).fetchone()[0]
        code = TYPE_CODE[line.type]
        event = self._insert(
            "event",
            {
                "uid": ids.event_uid(uid, str(place)), "session": session, "turn": turn, "ord": ordinal, "file": 1,
                "generation": 0, "type": code, "time": line.time, "flags": rows.COPY if line.copy else 0, "ends": 0,
                "tool": tool, "origin": line.origin, "block": block, "slot": slot,
            },
        )  # fmt: skip
        self.db.execute("INSERT INTO text_todo (doc, class) VALUES (?, ?)", (event, int(code > 1)))
        return event

    def _insert(self, table: str, values: dict[str, Any]) -> int:
        marks = ", ".join("?" * len(values))
        cursor = self.db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    @staticmethod
    def _content(line: Line) -> dict[str, Any]:
        content: dict[str, Any] = {}
        if line.text:
            content["text"] = line.text
        if line.arguments is not None:
            content["arguments"] = line.arguments
        return content


def user(text: str, time: int = 0, **more: Any) -> Line:
    return Line(EventType.USER_INPUT, text, time, **more)


def assistant(text: str, time: int = 0, **more: Any) -> Line:
    return Line(EventType.ASSISTANT_RESPONSE, text, time, **more)
