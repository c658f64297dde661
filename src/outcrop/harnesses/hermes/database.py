"""`state.db`: sessions and messages, the truth of newer versions. Tables and columns not named here stay unread.

A message that compaction replaced is still history. One that it stored again under a new number is the same message,
known by the number that it had first; one that was undone is marked.
"""

from __future__ import annotations

import json
from typing import Any

from outcrop.harnesses import sqlite
from outcrop.harnesses.hermes.files import Stored
from outcrop.harnesses.hermes.messages import mapping, text
from outcrop.model import Relation

_SESSION = (
    "id", "source", "model", "model_config", "parent_session_id", "started_at", "ended_at", "end_reason", "cwd",
    "git_branch", "title", "title_source", "display_name", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd", "api_call_count",
)  # fmt: skip
_MESSAGE = (
    "id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "token_count", "finish_reason",
    "reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items", "active", "compacted",
    "_compressed_summary", "display_kind", "display_identity",
)  # fmt: skip
_USAGE = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
    "estimated_cost_usd", "actual_cost_usd", "api_call_count",
)  # fmt: skip
_SIGNS = ("parent_session_id", "title", "title_source", "ended_at", "end_reason", "model", "cwd", "git_branch")
_RESETS = frozenset({"session_reset", "session_switch", "idle", "daily", "suspended", "resume_pending_expired"})
"""Ends after which the next session is another conversation."""


class StateDatabase:
    """The database in one consistent state. Raises sqlite3.Error where it cannot be read."""

    def __init__(self, path: str) -> None:
        self._db = sqlite.open_read_only(path)
        try:
            self._sessions = sqlite.columns(self._db, "sessions")
            self._messages = sqlite.columns(self._db, "messages")
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    def sessions(self) -> dict[str, str]:
        """The fingerprint of every session that holds a message, the newest first."""
        if "id" not in self._sessions or "session_id" not in self._messages:
            return {}
        told = sqlite.recent(self._db, "messages", ("session_id",), *sorted({*_MESSAGE} & self._messages))
        active = "sum(active = 1)" if "active" in self._messages else "0"
        gone = "sum(compacted = 1)" if "compacted" in self._messages else "0"
        counts = {
            row[0]: "@".join(map(str, (*row[1:], told.get((row[0],)))))
            for row in self._db.execute(
                f"SELECT session_id, count(*), min(id), max(id), {active}, {gone} FROM messages GROUP BY session_id"
            )
        }
        wanted = sqlite.wanted(self._sessions, "id", "started_at", *_SIGNS)
        rows = self._db.execute(f"SELECT {wanted} FROM sessions ORDER BY started_at DESC, id").fetchall()
        ends = {row["id"]: row["end_reason"] for row in rows}
        return {
            row["id"]: "|".join(
                str(sign)
                for sign in (counts[row["id"]], *(row[name] for name in _SIGNS), ends.get(row["parent_session_id"]))
            )
            for row in rows
            if isinstance(row["id"], str) and row["id"] in counts
        }

    def session(self, native: str) -> Stored | None:
        """A session as the database holds it; None where it does not."""
        if "id" not in self._sessions or "session_id" not in self._messages:
            return None
        wanted = sqlite.wanted(self._sessions, *_SESSION)
        row = self._db.execute(f"SELECT {wanted} FROM sessions WHERE id = ?", (native,)).fetchone()
        if row is None:
            return None
        about = {name: row[name] for name in _SESSION if name not in (*_USAGE, "id", "model_config")}
        usage = {name: row[name] for name in _USAGE if row[name]}
        parent, relation = self._parent(dict(row))
        about |= {"row": True, "usage": usage or None, "parent": parent, "relation": relation}
        return Stored(about, self._rows(native))

    def _parent(self, row: dict[str, Any]) -> tuple[str | None, Relation | None]:
        """One column names a session that was compressed, branched, reset, or delegated from."""
        parent = text(row, "parent_session_id")
        if not parent:
            return None, None
        config = mapping(row.get("model_config"))
        # A session that goes on after a compression inherits the marks of the one before it.
        if config.get("_branched_from") == parent:
            return parent, Relation.FORK
        if config.get("_reset_from") == parent:
            return None, None
        if config.get("_delegate_from") == parent:
            return parent, Relation.SUBAGENT
        wanted = sqlite.wanted(self._sessions, "end_reason")
        found = self._db.execute(f"SELECT {wanted} FROM sessions WHERE id = ?", (parent,)).fetchone()
        ended = found[0] if found is not None else None
        if ended == "compression":
            return parent, Relation.CONTINUATION
        if ended == "branched":
            return parent, Relation.FORK
        if ended in _RESETS:
            return None, None
        return parent, Relation.SUBAGENT

    def _rows(self, native: str) -> list[dict[str, Any]]:
        wanted = sqlite.wanted(self._messages, *_MESSAGE)
        rows = [
            {name: value for name, value in dict(row).items() if value is not None}
            for row in self._db.execute(f"SELECT {wanted} FROM messages WHERE session_id = ? ORDER BY id", (native,))
        ]
        found: dict[str, dict[str, Any]] = {}
        for row in rows:
            same = _same(row)
            undone = row.get("active") == 0 and row.get("compacted") != 1
            if same in found:
                found[same]["undone"] = found[same]["undone"] and undone
            else:
                found[same] = {**row, "row": row.get("id"), "undone": undone, "name": row.get("tool_name")}
        return list(found.values())


def _same(row: dict[str, Any]) -> str:
    """What tells that a row was stored again."""
    if row.get("display_identity"):
        return f"identity:{row['display_identity']}"
    told = [row.get(name) for name in ("role", "content", "tool_call_id", "tool_calls", "timestamp")]
    return json.dumps(told if told[-1] is not None else [*told, row.get("id")], default=repr)
