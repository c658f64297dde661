"""OpenCode's databases: sessions with messages and parts, or with the entries of its newer core; and the Go program's.

A session that has rows in `message` is read from `message` and `part`; only one without is read from
`session_message`, for some versions write both. Rows of `event` exist only with an option that is off by default and
repeat those; queued inputs are not said yet. Credential, account and share tables lie in the same file.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from outcrop.harnesses import Container, sqlite
from outcrop.harnesses.charm import CharmDatabase
from outcrop.harnesses.opencode.records import Message, conversation, loaded

_SESSION = ("id", "project_id", "parent_id", "fork_session_id", "slug", "directory", "title", "version", "revert",
            "time_created", "time_updated")  # fmt: skip


def open_database(path: str) -> Container:
    """The container of a database of either program. Raises sqlite3.Error where it cannot be read."""
    connection = sqlite.open_read_only(path)
    try:
        if sqlite.columns(connection, "messages") and sqlite.columns(connection, "sessions"):
            return CharmDatabase(connection, path, ".opencode")
        return Database(connection)
    except BaseException:
        connection.close()
        raise


class Database:
    """A database of the generations 2 and 3, in one consistent state."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        names = ("session", "message", "part", "session_message", "project")
        self._columns = {name: sqlite.columns(connection, name) for name in names}

    def sessions(self) -> Iterable[tuple[str, str]]:
        if not self._columns["session"]:
            return
        counts = {table: self._counts(table) for table in ("message", "part", "session_message")}
        wanted = sqlite.wanted(self._columns["session"], "id", "time_updated")
        for row in self._db.execute(f"SELECT {wanted} FROM session ORDER BY time_updated DESC, id"):
            if isinstance(row["id"], str) and row["id"]:
                parts = [str(row["time_updated"]), *(counted.get(row["id"], "") for counted in counts.values())]
                yield row["id"], "|".join(parts)

    def records(self, native: str) -> Iterable[dict[str, Any]]:
        row = self._row(native)
        messages = self._messages(native)
        entries = [] if messages else self._entries(native)
        yield {
            "record": "session",
            "id": native,
            "parent": row.get("parent_id"),
            "fork": row.get("fork_session_id"),
            "slug": row.get("slug"),
            "directory": row.get("directory") or self._worktree(row.get("project_id")),
            "title": row.get("title"),
            "version": row.get("version"),
            "created": row.get("time_created"),
            "idles": any(entry["type"] == "idle" for entry in entries),
        }
        yield from conversation(messages, loaded(row.get("revert")))
        yield from entries

    def close(self) -> None:
        self._db.close()

    def _counts(self, table: str) -> dict[str, str]:
        """Number and newest time of a table's rows, by session."""
        columns = self._columns[table]
        if "session_id" not in columns:
            return {}
        newest = "max(time_updated)" if "time_updated" in columns else "max(rowid)"
        rows = self._db.execute(f"SELECT session_id, count(*), {newest} FROM {table} GROUP BY session_id")
        return {row[0]: f"{row[1]}@{row[2]}" for row in rows}

    def _row(self, native: str) -> dict[str, Any]:
        wanted = sqlite.wanted(self._columns["session"], *_SESSION)
        row = self._db.execute(f"SELECT {wanted} FROM session WHERE id = ?", (native,)).fetchone()
        return dict(row) if row is not None else {}

    def _worktree(self, project: Any) -> str | None:
        if not {"id", "worktree"} <= self._columns["project"]:
            return None
        row = self._db.execute("SELECT worktree FROM project WHERE id = ?", (project,)).fetchone()
        return row[0] if row is not None and row[0] != "/" else None

    def _messages(self, native: str) -> list[Message]:
        if "session_id" not in self._columns["message"]:
            return []
        parts: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
        if "session_id" in self._columns["part"]:
            query = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id"
            for row in self._db.execute(query, (native,)):
                parts[row["message_id"]].append((str(row["id"]), loaded(row["data"])))
        query = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        return [
            Message(str(row["id"]), loaded(row["data"]), row["time_created"], parts.pop(row["id"], []))
            for row in self._db.execute(query, (native,))
        ] + [Message(str(message), None, None, left) for message, left in sorted(parts.items(), key=str)]

    def _entries(self, native: str) -> list[dict[str, Any]]:
        return list(self._entry_rows(native))

    def _entry_rows(self, native: str) -> Iterator[dict[str, Any]]:
        columns = self._columns["session_message"]
        if not {"session_id", "type", "data"} <= columns:
            return
        order = "seq" if "seq" in columns else "time_created, id"
        wanted = sqlite.wanted(columns, "id", "type", "time_created", "data")
        for row in self._db.execute(
            f"SELECT {wanted} FROM session_message WHERE session_id = ? ORDER BY {order}", (native,)
        ):
            yield {
                "record": "entry",
                "id": str(row["id"]),
                "type": row["type"],
                "created": row["time_created"],
                "data": loaded(row["data"]),
            }
