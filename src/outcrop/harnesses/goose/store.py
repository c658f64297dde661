"""Goose's database: tables `sessions` and `messages`, the content of a message being a JSON list of blocks.

Versions add columns; a missing one reads as null. A compacted or edited conversation is deleted and inserted anew, so
numbers of rows do not last; newer messages have ids that do. What came from a file of the older versions, which stands
beside the database, is named by its place there, as it was before.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from outcrop.harnesses import jsonl, sqlite
from outcrop.harnesses.json_values import string
from outcrop.harnesses.matching import matches

_SESSION = ("id", "name", "description", "user_set_name", "session_type", "working_dir", "created_at",
            "model_config_json", "parent_session_id")  # fmt: skip
_MESSAGE = ("id", "message_id", "role", "content_json", "created_timestamp", "metadata_json")
_OLD_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest old file whose messages are looked for in the database."""


class GooseDatabase:
    """A database in one consistent state."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._db = connection
        self._folder = folder
        self._sessions = sqlite.columns(connection, "sessions")
        self._messages = sqlite.columns(connection, "messages")

    def sessions(self) -> Iterable[tuple[str, str]]:
        if "id" not in self._sessions or not {"id", "session_id", "content_json"} <= self._messages:
            return
        names = sorted({*_MESSAGE} & self._messages)
        told = sqlite.recent(self._db, "messages", ("session_id",), *names)
        counts = {
            row[0]: f"{row[1]}@{row[2]}+{told.get((row[0],))}"
            for row in self._db.execute("SELECT session_id, count(*), max(id) FROM messages GROUP BY session_id")
        }
        wanted = sqlite.wanted(self._sessions, "id", "name", "updated_at")
        for row in self._db.execute(f"SELECT {wanted} FROM sessions ORDER BY updated_at DESC, id"):
            if isinstance(row["id"], str) and row["id"]:
                yield row["id"], f"{row['updated_at']}|{row['name']}|{counts.get(row['id'], '')}"

    def records(self, native: str) -> Iterable[dict[str, Any]]:
        wanted = sqlite.wanted(self._sessions, *_SESSION)
        row = self._db.execute(f"SELECT {wanted} FROM sessions WHERE id = ?", (native,)).fetchone()
        session = dict(row) if row is not None else {}
        config = _loaded(session.pop("model_config_json", None))
        model = config.get("model_name") if isinstance(config, dict) else None
        yield {**session, "record": "session", "model": model}
        wanted = sqlite.wanted(self._messages, *_MESSAGE)
        order = "created_timestamp, id" if "created_timestamp" in self._messages else "id"
        query = f"SELECT {wanted} FROM messages WHERE session_id = ? ORDER BY {order}"
        messages = [self._message(row) for row in self._db.execute(query, (native,))]
        old = self._old(native)
        same = matches(list(map(_meaning, messages)), list(map(_meaning, old)))
        names: Counter[str] = Counter()
        for place, message in enumerate(messages):
            key = f"#{same[place]}" if place in same else string(message, "key") or f"row{message['row']}"
            names[key] += 1
            yield message | {"key": key if names[key] == 1 else f"{key}.{names[key]}"}

    def _message(self, row: sqlite3.Row) -> dict[str, Any]:
        content = _loaded(row["content_json"])
        return {
            "record": "message",
            "key": row["message_id"],
            "row": row["id"],
            "role": row["role"],
            "created": row["created_timestamp"],
            "content": row["content_json"] if content is None else content,
            "metadata": _loaded(row["metadata_json"]),
        }

    def _old(self, native: str) -> list[dict[str, Any]]:
        """The messages of the session's file from before the database; none where there is no such file."""
        if "/" in native or "\\" in native:
            return []
        try:
            data = (self._folder / f"{native}.jsonl").read_bytes()
        except OSError:
            return []
        if len(data) > _OLD_LIMIT:
            return []
        return [record for line in data.splitlines() for record in jsonl.records(line)[0] if is_message(record)]

    def close(self) -> None:
        self._db.close()


def _loaded(value: Any) -> Any:
    if not isinstance(value, str | bytes):
        return None
    try:
        return jsonl.document(value.encode("utf-8", "replace") if isinstance(value, str) else value)
    except ValueError:
        return None


def is_message(record: dict[str, Any]) -> bool:
    """Whether a record is no head of a session."""
    return bool(string(record, "role")) or not ("working_dir" in record or record.get("record") == "session")


def _meaning(message: dict[str, Any]) -> str:
    return json.dumps([message.get("role"), message.get("content")], sort_keys=True, default=str)
