"""Kiro's older store: a table that holds each conversation as one JSON value, rewritten whole after every turn.

Older still, one conversation a folder without an id of its own in the row. A conversation under several folders is
read from its newest row. What the program showed on the screen (`transcript`) repeats the history.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from outcrop.harnesses import jsonl, sqlite
from outcrop.harnesses.json_values import digest, object_of, objects, shown, string
from outcrop.harnesses.kiro_cli.talk import Talk, model_of
from outcrop.harnesses.moments import time_ms
from outcrop.ids import text_digest
from outcrop.model import End, Event, EventType, Fact, Item, Parsed

_OLDER, _NEWER = "conversations", "conversations_v2"
_ID = "CASE WHEN json_valid(value) THEN json_extract(value, '$.conversation_id') END"


class KiroDatabase:
    """A database in one consistent state."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._columns = {table: sqlite.columns(connection, table) for table in (_OLDER, _NEWER)}
        self._places: dict[str, tuple[str, int]] = {}

    def sessions(self) -> Iterable[tuple[str, str]]:
        found: dict[str, str] = {}
        for table, rowid, native, updated, size in self._rows():
            if native not in found:
                found[native] = f"{updated}|{size}"
                self._places[native] = (table, rowid)
        return list(found.items())

    def _rows(self) -> Iterable[tuple[str, int, str, Any, int]]:
        """Table, row, id, time and size of all conversations, the one to read first."""
        newer = self._columns[_NEWER]
        if {"conversation_id", "value"} <= newer:
            updated = "updated_at" if "updated_at" in newer else "0"
            query = f"SELECT rowid, conversation_id, {updated}, length(value) FROM {_NEWER} ORDER BY 3 DESC, 1 DESC"
            for row in self._db.execute(query):
                if isinstance(row[1], str) and row[1]:
                    yield _NEWER, row[0], row[1], row[2], row[3]
        if {"key", "value"} <= self._columns[_OLDER]:
            query = f"SELECT rowid, {_ID}, key, length(value) FROM {_OLDER} ORDER BY 1 DESC"
            for row in self._db.execute(query):
                native = row[1] if isinstance(row[1], str) and row[1] else f"folder-{text_digest(str(row[2]))}"
                yield _OLDER, row[0], native, None, row[3]

    def records(self, native: str) -> Iterable[dict[str, Any]]:
        if native not in self._places:
            self.sessions()
        place = self._places.get(native)
        if place is None:
            return
        table, rowid = place
        wanted = sqlite.wanted(self._columns[table], "key", "value", "created_at")
        row = self._db.execute(f"SELECT {wanted} FROM {table} WHERE rowid = ?", (rowid,)).fetchone()
        conversation = _loaded(row["value"]) if row is not None else None
        if not isinstance(conversation, dict):
            yield {"record": "broken", "value": row["value"] if row is not None else None}
            return
        yield {
            "record": "conversation",
            "cwd": row["key"],
            "created": row["created_at"],
            "model": model_of(conversation),
            "summary": _summary(conversation.get("latest_summary")),
        }
        history = conversation.get("history")
        for step in history if isinstance(history, list) else ():
            if isinstance(step, list):  # the oldest versions wrote pairs
                step = dict(zip(("user", "assistant"), step, strict=False))
            yield {**step, "record": "step"} if isinstance(step, dict) else {"record": "step", "step": step}

    def close(self) -> None:
        self._db.close()


class ConversationReader:
    """Reads one conversation; `native` is its id."""

    def __init__(self, native: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._native = native
        self._talk = Talk.of(known.get("talk"))
        self._cwd: str | None = known.get("cwd")
        self._model: str | None = known.get("model")
        self._summary: str = known.get("summary", "")
        """Waits for the first prompt: alone it would be a turn where the other store has told of that already."""

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {"talk": self._talk.state(), "cwd": self._cwd, "model": self._model,
                "summary": self._summary}  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind = string(record, "record")
        if kind == "conversation":
            return self._conversation(record)
        if kind == "broken":
            return Parsed("conversation", reason="not a whole JSON document", keep=record.get("value"))
        known = [self._user(object_of(record, "user")), self._assistant(record.get("assistant"), record)]
        if self._summary and known[0]:
            known[0].append(self._event(self._talk.compacted(self._summary), None))
            self._summary = ""
        items: list[Item] = [event for events in known for event in events or ()]
        if None in known or not items:
            items.append(self._event(self._talk.unknown(digest(record), record), None))
        return Parsed("step", items)

    def _conversation(self, record: dict[str, Any]) -> Parsed:
        self._cwd = string(record, "cwd") or None
        self._model = string(record, "model") or None
        items: list[Item] = []
        created = time_ms(record.get("created"))
        if created is not None:
            items.append(Fact("created", created))
        self._summary = string(record, "summary")
        if self._summary:
            self._talk.begin_behind(self._summary)
        return Parsed("conversation", items, None if items else "names the session")

    def _user(self, user: dict[str, Any]) -> list[Event] | None:
        time = time_ms(user.get("timestamp"))
        folder = string(object_of(object_of(user, "env_context"), "env_state"), "current_working_directory")
        self._cwd = folder or self._cwd
        content = object_of(user, "content")
        found: list[Event] = []
        for name in ("ToolUseResults", "CancelledToolUses"):
            for result in objects(object_of(content, name).get("tool_use_results")):
                values = [one.get("Text", one.get("Json", one)) for one in objects(result.get("content"))]
                found.append(self._talk.result(string(result, "tool_use_id"), string(result, "status"), values))
        if "CancelledToolUses" in content:
            found.append(self._talk.cancelled())
        for name in ("CancelledToolUses", "Prompt"):
            if text := string(object_of(content, name), "prompt"):
                found.append(self._talk.prompt(text))
        known = {"Prompt", "ToolUseResults", "CancelledToolUses"} & set(content)
        return [self._event(event, time) for event in found] if known else None

    def _assistant(self, assistant: Any, record: dict[str, Any]) -> list[Event] | None:
        if not assistant:
            return []
        if not isinstance(assistant, dict):
            return None
        metadata = object_of(record, "request_metadata")
        time = time_ms(metadata.get("stream_end_timestamp_ms"))
        kind = next((name for name in ("Response", "ToolUse") if name in assistant), "")
        message = object_of(assistant, kind)
        found: list[Event] = []
        if text := string(message, "content"):
            found.append(self._talk.said(EventType.ASSISTANT_RESPONSE, text, string(message, "message_id")))
            if kind == "Response":
                found[-1].ends = End.FINAL
        if kind == "ToolUse":
            for use in objects(message.get("tool_uses")):
                found.append(self._talk.call(string(use, "id"), string(use, "name"), use.get("args")))
        model = model_of(metadata)
        for event in found:
            event.model, event.generator = model, model or self._model
        return [self._event(event, time) for event in found] if kind else None

    def _event(self, event: Event, time: int | None) -> Event:
        event.time, event.cwd = time, self._cwd
        return event


def _loaded(value: Any) -> Any:
    if not isinstance(value, str | bytes):
        return None
    try:
        return jsonl.document(value.encode("utf-8", "replace") if isinstance(value, str) else value)
    except ValueError:
        return None


def _summary(value: Any) -> str:
    """A summary; some versions put numbers of the request beside it."""
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, str) else shown(value) if value else ""
