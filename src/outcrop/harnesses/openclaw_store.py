"""OpenClaw's database of transcripts, and its index of sessions.

A row of the database is an entry of a session's file, as JSON or compressed; `seq` is its place. The index says under
which name and for which other session one was started; nothing else of it is taken.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from outcrop.harnesses import jsonl, sqlite
from outcrop.harnesses.json_values import string
from outcrop.model import Fact, Item, Parsed, Relation

_TABLE = "transcript_events"


class Transcripts:
    """One agent's database (`harnesses.Container`)."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._columns = sqlite.columns(connection, _TABLE)

    def sessions(self) -> Iterator[tuple[str, str]]:
        if not {"session_id", "seq"} <= self._columns:
            return  # versions that keep files have the database for other things
        made = "max(created_at)" if "created_at" in self._columns else "NULL"
        told = sqlite.recent(self._db, _TABLE, ("session_id",), *sorted({"event_json", "event_zstd"} & self._columns))
        for row in self._db.execute(
            f"SELECT session_id, count(*), max(seq), {made} FROM {_TABLE} GROUP BY session_id ORDER BY session_id"
        ):
            if isinstance(row[0], str) and row[0]:
                yield row[0], f"{row[1]}:{row[2]}:{row[3]}:{told.get((row[0],))}"

    def records(self, native: str) -> Iterator[dict[str, Any]]:
        wanted = sqlite.wanted(self._columns, "event_json", "event_zstd")
        for row in self._db.execute(f"SELECT {wanted} FROM {_TABLE} WHERE session_id = ? ORDER BY seq", (native,)):
            data = _unpacked(row["event_json"], row["event_zstd"])
            found, faults = jsonl.records(data)
            yield from found
            for fault in faults:
                yield {"type": "unreadable", "reason": fault.reason, "sample": fault.sample}

    def close(self) -> None:
        self._db.close()


def _unpacked(text: Any, packed: Any) -> bytes:
    if isinstance(text, str) and text:
        return text.encode("utf-8", "replace")
    if not isinstance(packed, bytes):
        return text if isinstance(text, bytes) else b""
    import zstandard

    try:
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=jsonl.RECORD_LIMIT)
    except zstandard.ZstdError:
        return b"(a damaged frame)"


def index_records(document: Any) -> Iterable[dict[str, Any]]:
    """Id, names and parent of each session that the index holds."""
    entries = document if isinstance(document, dict) else {}
    for key, entry in entries.items():
        above = entries.get(string(entry, "spawnedBy") or string(entry, "parentSessionKey"))
        yield {
            "key": key,
            "sessionId": string(entry, "sessionId"),
            "label": string(entry, "label"),
            "displayName": string(entry, "displayName"),
            "parent": string(above, "sessionId"),
            "forked": isinstance(entry, dict) and entry.get("forkedFromParent") is True,
            "spawned": bool(string(entry, "spawnedBy")),
        }


class IndexReader:
    """Reads what `index_records` gives: facts about sessions whose events stand elsewhere."""

    session: str | None = None

    def feed(self, record: dict[str, Any]) -> Parsed:
        native, parent = string(record, "sessionId"), string(record, "parent")
        if not native:
            return Parsed("index", reason="names no session")
        items: list[Item] = []
        for field, fact in (("label", "title.user"), ("displayName", "title.generated")):
            if string(record, field).strip():
                items.append(Fact(fact, string(record, field).strip(), native))
        if parent and parent != native and (record.get("forked") is True or record.get("spawned") is True):
            relation = Relation.FORK if record.get("forked") is True else Relation.SUBAGENT
            items += [Fact("parent", parent, native), Fact("relation", relation, native)]
        return Parsed("index", items, None if items else "neither a name nor a parent")

    def state(self) -> dict[str, Any]:
        return {}
