"""The database that OpenCode's Go program had and Crush still has: tables `sessions` and `messages`.

A message is one row, rewritten in place, whose `parts` are a JSON list of {type, data}. Times are seconds, in some
databases texts. The folder that the database lies in belongs to the project, which is all that is known of a working
directory. The tables of file contents are not read.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from outcrop.harnesses import jsonl, moments, sqlite
from outcrop.harnesses.content import attachment_note, base64_size, parsed_arguments
from outcrop.harnesses.json_values import string
from outcrop.harnesses.toolnames import canonical
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Fact, Item, Parsed, Relation

_SESSION = ("id", "parent_session_id", "title", "summary_message_id", "created_at", "updated_at")
_MESSAGE = ("id", "role", "parts", "model", "provider", "created_at", "finished_at", "is_summary_message")
_NO_TITLE = frozenset({"New Session", "New Agent Session", "Untitled Session", "Generate a title", "New session"})
_ENDS = {
    "end_turn": End.FINAL,
    "max_tokens": End.FINAL,
    "content_filter": End.FINAL,
    "canceled": End.CANCELLED,
    "permission_denied": End.CANCELLED,
    "error": End.CRASHED,
}
_EXIT = re.compile(r"(?:^|\n)Exit code (-?\d{1,6})\s*(?:<cwd>[^<]*</cwd>\s*)?$")
_SHELLS = frozenset({"bash", "job_output"})


class CharmDatabase:
    """A database in one consistent state. `folder` is the usual name of the data folder inside a project."""

    def __init__(self, connection: sqlite3.Connection, path: str, folder: str) -> None:
        self._db = connection
        self._sessions = sqlite.columns(connection, "sessions")
        self._messages = sqlite.columns(connection, "messages")
        place = PurePath(path).parent
        self._project = str(place.parent) if place.name == folder else None

    def sessions(self) -> Iterable[tuple[str, str]]:
        if not self._sessions or "session_id" not in self._messages:
            return
        # Times have a second's grain: the length of what changed in the newest one tells of a change inside it.
        counts = {
            row[0]: f"{row[1]}@{row[2]}+{row[3]}"
            for row in self._db.execute(
                "SELECT session_id, count(*), newest, sum(CASE WHEN updated_at = newest THEN length(parts) END)"
                " FROM messages JOIN (SELECT session_id, max(updated_at) AS newest FROM messages GROUP BY session_id)"
                " USING (session_id) GROUP BY session_id"
            )
        }
        wanted = sqlite.wanted(self._sessions, "id", "title", "updated_at")
        for row in self._db.execute(f"SELECT {wanted} FROM sessions ORDER BY updated_at DESC, id"):
            if isinstance(row["id"], str) and row["id"]:
                yield row["id"], f"{row['updated_at']}|{row['title']}|{counts.get(row['id'], '')}"

    def records(self, native: str) -> Iterable[dict[str, Any]]:
        wanted = sqlite.wanted(self._sessions, *_SESSION)
        row = self._db.execute(f"SELECT {wanted} FROM sessions WHERE id = ?", (native,)).fetchone()
        yield {**(dict(row) if row is not None else {}), "record": "charm/session", "cwd": self._project}
        wanted = sqlite.wanted(self._messages, *_MESSAGE)
        rows = self._db.execute(
            f"SELECT {wanted} FROM messages WHERE session_id = ? ORDER BY created_at, rowid", (native,)
        )
        yield from in_order({**dict(row), "record": "charm/message", "parts": _parts(row["parts"])} for row in rows)

    def close(self) -> None:
        self._db.close()


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with each one of results right behind the row of its calls: inside a second nothing else tells."""
    ordered: list[dict[str, Any]] = []
    for row in rows:
        answers = {string(one, "tool_call_id") for one in _of_type(row, "tool_result")} - {""}
        place = len(ordered)
        while answers and place and ordered[place - 1].get("created_at") == row.get("created_at"):
            if answers & {string(one, "id") for one in _of_type(ordered[place - 1], "tool_call")}:
                break
            place -= 1
        called = place and answers & {string(one, "id") for one in _of_type(ordered[place - 1], "tool_call")}
        ordered.insert(place if called else len(ordered), row)
    return ordered


class CharmReader:
    """Reads one session; `native` is its id."""

    def __init__(self, native: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._native: str | None = native or known.get("native")
        self._cwd: str | None = known.get("cwd")
        self._summary: str | None = known.get("summary")
        self._calls: dict[str, list[str | None]] = dict(known.get("calls", {}))
        self._ended: bool = known.get("ended", False)
        self._counts: dict[str, int] = {}
        self._model: str | None = None
        self._time: int | None = None

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {"native": self._native, "cwd": self._cwd, "summary": self._summary, "ended": self._ended,
                "calls": dict(self._calls)}  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        if record.get("record") == "charm/session":
            items = self._session(record)
            return Parsed("session", items, None if items else "names the session")
        role, id = string(record, "role"), string(record, "id")
        kind = f"message/{role or '?'}"
        parts = record.get("parts")
        if not isinstance(parts, list) or not id:
            return Parsed(kind, reason="not a whole JSON document", keep=record)
        found, keep = self._message(record, id, role, parts)
        return Parsed(kind, found, None if found else "says nothing yet", keep or None)

    def _session(self, record: dict[str, Any]) -> list[Item]:
        id, parent = string(record, "id"), string(record, "parent_session_id")
        self._native = self._native or id or None
        self._cwd = string(record, "cwd") or None
        self._summary = string(record, "summary_message_id") or None
        found: list[Item] = []
        created = time_ms(record.get("created_at"))
        if created is not None:
            found.append(Fact("created", created))
        title = string(record, "title").strip()
        if title and title not in _NO_TITLE:
            found.append(Fact("title.generated", title))
        if parent:
            found += [Fact("parent", parent), Fact("relation", Relation.SUBAGENT)]
        if id.startswith("title-"):
            found.append(Fact("machine", True))
        return found

    def _message(
        self, record: dict[str, Any], id: str, role: str, parts: list[Any]
    ) -> tuple[list[Item], dict[str, Any]]:
        self._time = time_ms(record.get("created_at"))
        self._model = (string(record, "model") or None) if role == "assistant" else None
        self._counts = {}
        summary = role == "assistant" and (id == self._summary or record.get("is_summary_message") == 1)
        found: list[Item] = []
        keep: dict[str, Any] = {}
        opened = False
        for part in parts:
            kind = string(part, "type") if isinstance(part, dict) else ""
            data = part.get("data") if isinstance(part, dict) else None
            if not isinstance(data, dict):
                kind = ""
            if kind == "text":
                event = self._said(id, role, data, summary)
                if event is not None:
                    if event.type is EventType.USER_INPUT:
                        event.opens, opened, self._ended = not opened, True, False
                    found.append(event)
            elif kind == "reasoning":
                found += self._reasoning(id, data, summary)
            elif kind == "tool_call":
                found.append(self._call(id, data))
            elif kind == "tool_result":
                found.append(self._result(id, data, keep))
            elif kind == "finish":
                found += self._finish(id, record, role, data, summary)
            elif kind in ("binary", "image_url"):
                found.append(self._attachment(id, kind, data))
            elif kind == "shell_command":
                found += self._shell(id, data)
            else:
                found.append(self._event(self._key(id, "unknown"), EventType.UNKNOWN, "", raw=part))
        return found, keep

    def _key(self, id: str, kind: str) -> str:
        count = self._counts.get(kind, 0)
        self._counts[kind] = count + 1
        return f"{id}:{kind}:{count}" if count else f"{id}:{kind}"

    def _event(self, key: str, kind: EventType, said: str, **more: Any) -> Event:
        return Event(key, kind, said, self._time, cwd=self._cwd, generator=self._model, **more)

    def _said(self, id: str, role: str, data: Any, summary: bool) -> Event | None:
        said = string(data, "text")
        if not said:
            return None
        if role == "user":
            kind = EventType.SYSTEM if data.get("hidden") is True else EventType.USER_INPUT
        elif role == "assistant":
            kind = EventType.COMPACTION if summary else EventType.ASSISTANT_RESPONSE
        else:
            kind = EventType.SYSTEM
        return self._event(self._key(id, "text"), kind, said, model=self._model)

    def _reasoning(self, id: str, data: Any, summary: bool) -> list[Item]:
        said = string(data, "thinking")
        sealed = {name: data[name] for name in ("signature", "thought_signature", "responses_data") if data.get(name)}
        if not said and not sealed:
            return []
        kind = EventType.SYSTEM if summary else EventType.REASONING
        event = self._event(self._key(id, "reasoning"), kind, said or ENCRYPTED_PLACEHOLDER, model=self._model)
        event.extra = {"encrypted_content": sealed} if sealed else None
        return [event]

    def _call(self, id: str, data: Any) -> Event:
        name, call = string(data, "name"), string(data, "id")
        tool = canonical(_own(name)) if name else None
        original = name if name and name != tool else None
        key = f"{id}:call:{call}" if call else self._key(id, "call")
        event = self._event(key, EventType.TOOL_CALL, "", model=self._model, tool=tool, original_tool=original)
        given = data.get("input")
        event.call_id = call or None
        event.arguments = (parsed_arguments(given) if given else {}) if isinstance(given, str) else given or {}
        if call:
            self._calls[call] = [tool, original]
        return event

    def _result(self, id: str, data: Any, keep: dict[str, Any]) -> Event:
        call = string(data, "tool_call_id")
        name = string(data, "name")
        known = self._calls.get(call) or [canonical(_own(name)) if name else None, None]
        said = string(data, "content")
        payload = string(data, "data")
        if payload:
            note = f"[{string(data, 'mime_type') or 'data of unknown type'}, {base64_size(payload)} bytes]"
            said = "\n".join(filter(None, (said, note)))
        key = f"{id}:result:{call}" if call else self._key(id, "result")
        event = self._event(key, EventType.TOOL_RESPONSE, said, tool=known[0], original_tool=known[1])
        event.call_id = call or None
        stated = _EXIT.search(said) if known[0] in _SHELLS else None
        event.exit_code = int(stated[1]) if stated else None
        failed = data.get("is_error")
        event.is_error = (failed or bool(event.exit_code)) if isinstance(failed, bool) else None
        metadata = string(data, "metadata")
        if metadata:
            keep[call or key] = metadata
        return event

    def _finish(self, id: str, record: dict[str, Any], role: str, data: Any, summary: bool) -> list[Item]:
        """The end of an answer; those of prompts and results only say that they are whole."""
        if role != "assistant":
            return []
        reason = string(data, "reason")
        said = ": ".join(filter(None, (string(data, "message"), string(data, "details"))))
        event = self._event(f"{id}:finish", EventType.RUNTIME, said)
        event.time = time_ms(data.get("time")) or time_ms(record.get("finished_at")) or self._time
        event.extra = {"finish": reason} | ({"provider": record["provider"]} if record.get("provider") else {})
        event.ends = None if summary else _ENDS.get(reason)
        self._ended = self._ended or event.ends is not None
        return [event]

    def _attachment(self, id: str, kind: str, data: Any) -> Event:
        path, mime = string(data, "Path"), string(data, "MIMEType")
        if kind == "image_url":
            note = attachment_note({"type": "image", "url": data.get("url")})
        else:
            noun = "image" if mime.startswith("image/") else "document"
            note = f"[{noun} {mime or 'of unknown type'}, {base64_size(string(data, 'Data'))} bytes]"
        event = self._event(self._key(id, kind), EventType.SYSTEM, f"{note} {path}".strip())
        event.extra = {"paths": [path]} if path else None
        return event

    def _shell(self, id: str, data: Any) -> list[Item]:
        """A command that the user ran."""
        key, code = self._key(id, "shell"), data.get("exit_code")
        call = self._event(key, EventType.TOOL_CALL, "", tool="shell", by_user=True)
        call.arguments = {"command": string(data, "command")}
        answer = self._event(f"{key}:out", EventType.TOOL_RESPONSE, string(data, "output"), tool="shell", by_user=True)
        answer.exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
        answer.is_error = answer.exit_code != 0 if answer.exit_code is not None else None
        # A turn that had ended before has still ended.
        answer.ends = End.FINAL if self._ended else None
        return [call, answer]


def time_ms(value: Any) -> int | None:
    """UTC ms of seconds, milliseconds or a date in text (UTC where it names no zone), cut; None for what is none."""
    return moments.time_ms(value, int)


def _own(name: str) -> str:
    """`mcp_outcrop_open`, the spelling of these programs, in the form that tells a server from a tool."""
    for server in ("moraine", "outcrop"):
        for prefix in (f"mcp_{server}_", f"{server}_"):
            if name.startswith(prefix):
                return f"{server}__{name[len(prefix) :]}"
    return name


def _parts(value: Any) -> Any:
    if not isinstance(value, str | bytes):
        return None
    try:
        return jsonl.document(value.encode("utf-8", "replace") if isinstance(value, str) else value)
    except ValueError:
        return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _of_type(row: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    parts = row.get("parts")
    if not isinstance(parts, list):
        return []
    return [part["data"] for part in parts
            if isinstance(part, dict) and part.get("type") == kind and isinstance(part.get("data"), dict)]  # fmt: skip
