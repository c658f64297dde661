"""Goose's database: tables `sessions` and `messages`, the content of a message being a JSON list of blocks.

Versions add columns; a missing one reads as null. A compacted or edited conversation is deleted and inserted anew, so
rows have no lasting ids.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from outcrop.harnesses import jsonl, sqlite

_SESSION = ("id", "name", "description", "user_set_name", "session_type", "working_dir", "created_at",
            "model_config_json", "parent_session_id")  # fmt: skip
_MESSAGE = ("role", "content_json", "created_timestamp", "metadata_json")


class GooseDatabase:
    """A database in one consistent state."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._sessions = sqlite.columns(connection, "sessions")
        self._messages = sqlite.columns(connection, "messages")

    def sessions(self) -> Iterable[tuple[str, str]]:
        if "id" not in self._sessions or not {"id", "session_id", "content_json"} <= self._messages:
            return
        # The last message may still grow in place.
        counts = {
            row[0]: f"{row[1]}@{row[2]}+{row[3]}"
            for row in self._db.execute(
                "SELECT session_id, total, newest, length(content_json) FROM messages JOIN (SELECT max(id) AS newest,"
                " count(*) AS total FROM messages GROUP BY session_id) ON id = newest"
            )
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
        for row in self._db.execute(f"SELECT {wanted} FROM messages WHERE session_id = ? ORDER BY {order}", (native,)):
            content, metadata = _loaded(row["content_json"]), _loaded(row["metadata_json"])
            yield {
                "record": "message",
                "role": row["role"],
                "created": row["created_timestamp"],
                "content": row["content_json"] if content is None else content,
                "metadata": metadata,
            }

    def close(self) -> None:
        self._db.close()


def _loaded(value: Any) -> Any:
    if not isinstance(value, str | bytes):
        return None
    try:
        return jsonl.document(value.encode("utf-8", "replace") if isinstance(value, str) else value)
    except ValueError:
        return None
