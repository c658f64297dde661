"""Stores of the command line agent's chats, one small database each, and the database of generated summaries.

A chat store holds its messages as JSON blobs under their hash; the newest root blob lists them in order. Of the head,
which also holds a key for encrypted blobs, only the named fields are taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from outcrop.harnesses import jsonl
from outcrop.harnesses.cursor.values import local_path
from outcrop.harnesses.sqlite import columns, open_read_only, wanted

BLOB_LIMIT = 64 << 20
"""Bytes of the largest blob that is read."""
_MESSAGES, _WORKSPACE = 1, 9
"""Fields of the root blob: hashes of the messages, URI of the workspace."""
_HASH = 32


class ChatStore:
    """The `Container` of one `store.db`. Its one session is named by the folder."""

    def __init__(self, path: str, messages: bool) -> None:
        self._native = os.path.basename(os.path.dirname(path))
        self._messages = messages
        self._connection = open_read_only(path)
        try:
            self._meta = {"key", "value"} <= columns(self._connection, "meta")
            self._blobs = {"id", "data"} <= columns(self._connection, "blobs")
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def sessions(self) -> Iterator[tuple[str, str]]:
        head = self._head()
        if head:
            yield self._native, blake2b(repr(sorted(head.items())).encode(), digest_size=8).hexdigest()

    def records(self, native: str) -> Iterator[dict[str, Any]]:
        head = self._head()
        if not head or native != self._native:
            return
        root = head.pop("root", None)
        fields = list(_fields(self._blob(root))) if self._messages and isinstance(root, str) else []
        cwd = next((data for number, data in fields if number == _WORKSPACE), b"").decode("utf-8", "replace")
        yield {"type": "chat" if self._messages else "chat-title", **head, "cwd": local_path(cwd)}
        for number, data in fields:
            if number == _MESSAGES and len(data) == _HASH:
                yield self._message(data.hex())

    def _head(self) -> dict[str, Any]:
        if not self._meta:
            return {}
        row = self._connection.execute("SELECT value FROM meta WHERE key = '0'").fetchone()
        try:
            head = jsonl.document(bytes.fromhex(row["value"])) if row is not None else None
        except (ValueError, TypeError):
            return {}
        if not isinstance(head, dict):
            return {}
        names = {"name": "title", "mode": "mode", "createdAt": "created", "lastUsedModel": "model",
                 "latestRootBlobId": "root"}  # fmt: skip
        return {told: head[name] for name, told in names.items() if isinstance(head.get(name), (str, int, float))}

    def _message(self, id: str) -> dict[str, Any]:
        data = self._blob(id)
        try:
            message = jsonl.document(data)
        except ValueError:
            message = None
        # A blob that is no JSON may be encrypted; its id is all that can be told.
        return message if isinstance(message, dict) else {"type": "blob", "id": id, "bytes": len(data)}

    def _blob(self, id: str) -> bytes:
        if not self._blobs:
            return b""
        row = self._connection.execute(
            "SELECT data FROM blobs WHERE id = ? AND length(data) <= ?", (id, BLOB_LIMIT)
        ).fetchone()
        data = row["data"] if row is not None else b""
        return data.encode() if isinstance(data, str) else data if isinstance(data, bytes) else b""


class Summaries:
    """The `Container` of `ai-code-tracking.db`: titles and summaries that were generated for conversations."""

    def __init__(self, path: str) -> None:
        self._connection = open_read_only(path)
        try:
            self._columns = columns(self._connection, "conversation_summaries")
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def sessions(self) -> Iterator[tuple[str, str]]:
        if "conversationId" in self._columns:
            names = wanted(self._columns, "conversationId", "updatedAt", "title")
            for row in self._connection.execute(f"SELECT {names} FROM conversation_summaries"):
                if isinstance(row["conversationId"], str):
                    yield row["conversationId"], f"{row['updatedAt']} {row['title']}"

    def records(self, native: str) -> Iterator[dict[str, Any]]:
        names = wanted(self._columns, "title", "tldr")
        for row in self._connection.execute(
            f"SELECT {names} FROM conversation_summaries WHERE conversationId = ?", (native,)
        ):
            yield {"title": row["title"], "summary": row["tldr"]}


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a Protocol Buffers message, by number; what is broken ends the message."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        wire = key & 7
        if wire == 2:
            size, place = _varint(data, place)
            if place + size > len(data):
                return
            yield key >> 3, data[place : place + size]
            place += size
        elif wire == 0:
            _, place = _varint(data, place)
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            return


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            break
    return value, place
