"""Cursor's key-value databases: the global one, with a row a conversation and a row a message, and older workspaces.

Access tokens stand in the same tables, so every query names its keys. Rows are replaced, not updated (the key's
`ON CONFLICT REPLACE`), which gives them a new rowid: the index on the keys tells what changed, in databases of many
gigabytes too. The newest rows are looked at themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import orjson

from outcrop.harnesses import jsonl
from outcrop.harnesses.cursor.values import string
from outcrop.harnesses.sqlite import columns, open_read_only, recent_start

COMPOSER = "composerData:"
BUBBLE = "bubbleId:"
OLD_COMPOSERS = "composer.composerData"
OLD_CHATS = "workbench.panel.aichat.view.aichat.chatdata"
"""The two keys of `ItemTable` that are read; conversations stand whole in them."""

RECENT = 64
"""Rows whose values are looked at for changes, and as many again at most: they may be large."""

COMPOSER_FIELDS = (
    "_v", "composerId", "name", "subtitle", "unifiedMode", "forceMode", "isAgentic", "agentBackend", "status",
    "createdAt", "lastUpdatedAt", "workspaceIdentifier", "modelConfig", "subagentInfo", "contextUsagePercent",
    "totalLinesAdded", "totalLinesRemoved",
)  # fmt: skip


class StateDatabase:
    """The `Container` of one `state.vscdb`.

    Records have a `kind`: `composer` or `chat` (the head), `bubble`, `abandoned` (a message that is not in the
    conversation any more), `missing`, `broken` (no JSON), `status` (how the conversation stands).
    """

    def __init__(self, path: str) -> None:
        self._connection = open_read_only(path)
        try:
            self._disk = {"key", "value"} <= columns(self._connection, "cursorDiskKV")
            self._items = {"key", "value"} <= columns(self._connection, "ItemTable")
        except BaseException:
            self._connection.close()
            raise
        self._old: dict[str, dict[str, Any]] | None = None

    def close(self) -> None:
        self._connection.close()

    def sessions(self) -> Iterator[tuple[str, str]]:
        inside = self._marks()
        for native, item in self._older().items():
            mark = blake2b(orjson.dumps(item, default=str), digest_size=8).hexdigest()
            yield native, f"{mark}-{inside.pop(native, '')}"
        yield from inside.items()

    def _marks(self) -> dict[str, str]:
        """Of every conversation with a row of its own: a digest of the rowids of its rows, and of its newest values."""
        found: dict[str, Any] = {}
        if self._disk:
            for prefix in (COMPOSER, BUBBLE):
                for key, rowid in self._connection.execute(
                    "SELECT key, rowid FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key", _range(prefix)
                ):
                    native = key[len(prefix) :].split(":", 1)[0]
                    if prefix == COMPOSER:
                        found[native] = blake2b(digest_size=8)
                    if native in found:
                        found[native].update(b"%d %s\n" % (rowid, key.encode("utf-8", "replace")))
            start = recent_start(self._connection, "cursorDiskKV", RECENT)
            for key, value in self._connection.execute(
                "SELECT key, value FROM cursorDiskKV WHERE rowid >= ? AND"
                " (+key >= ? AND +key < ? OR +key >= ? AND +key < ?) ORDER BY rowid",
                (start, *_range(COMPOSER), *_range(BUBBLE)),
            ):
                native = key.split(":", 2)[1]
                if native in found:
                    found[native].update(repr(value).encode("utf-8", "surrogatepass"))
        return {native: mark.hexdigest() for native, mark in found.items()}

    def _older(self) -> dict[str, dict[str, Any]]:
        """Conversations that stand whole in one of the two older values, by id."""
        if self._old is None:
            self._old = {}
            for key, list_name, id_name, inside in (
                (OLD_COMPOSERS, "allComposers", "composerId", "conversation"),
                (OLD_CHATS, "tabs", "tabId", "bubbles"),
            ):
                value = self._value("ItemTable", key) if self._items else None
                listed = value.get(list_name) if isinstance(value, dict) else None
                for item in listed if isinstance(listed, list) else ():
                    native = item.get(id_name) if isinstance(item, dict) else None
                    if isinstance(native, str) and native and isinstance(item.get(inside), list) and item[inside]:
                        self._old[native] = item
        return self._old

    def records(self, native: str) -> Iterator[dict[str, Any]]:
        old = self._older().get(native)
        if old is not None and "tabId" in old:
            yield from _chat(old)
            return
        value = self._value("cursorDiskKV", COMPOSER + native) if self._disk else None
        # What was moved to the global table may be left behind in the workspace; the row of its own is the newer one.
        composer = value if isinstance(value, dict) else old
        if composer is None:
            if value is not None:
                yield {"kind": "broken", "key": COMPOSER + native}
            return
        yield from self._composer(native, composer)

    def _composer(self, native: str, composer: dict[str, Any]) -> Iterator[dict[str, Any]]:
        heads = composer.get("fullConversationHeadersOnly")
        order = [head for head in heads if isinstance(head, dict)] if isinstance(heads, list) else []
        inline = composer.get("conversation")
        whole = inline if isinstance(inline, list) and not order else []
        head = {name: composer[name] for name in COMPOSER_FIELDS if name in composer}
        yield {"kind": "composer", **head, "messages": len(order) or len(whole)}
        last: Any = None
        for bubble in whole:
            last = bubble.get("type") if isinstance(bubble, dict) else None
            yield {"kind": "bubble", "bubble": bubble}
        seen = set()
        for place, named in enumerate(order):
            id = named.get("bubbleId")
            if not isinstance(id, str) or id in seen:
                yield {"kind": "missing", "bubbleId": id}
                continue
            seen.add(id)
            bubble = self._value("cursorDiskKV", f"{BUBBLE}{native}:{id}") if self._disk else None
            if not isinstance(bubble, dict):
                yield {"kind": "missing" if bubble is None else "broken", "bubbleId": id}
                continue
            last = bubble.get("type", named.get("type"))
            yield {"kind": "bubble", "id": id, "bubble": bubble, "last": place == len(order) - 1}
        for id in self._ids(native):
            if id not in seen:
                yield {"kind": "abandoned", "bubbleId": id}
        if last is not None:
            yield {"kind": "status", "status": composer.get("status"), "time": composer.get("lastUpdatedAt"),
                   "last": last}  # fmt: skip

    def _ids(self, native: str) -> Iterable[str]:
        if not self._disk:
            return []
        prefix = f"{BUBBLE}{native}:"
        rows = self._connection.execute("SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ?", _range(prefix))
        return [row["key"][len(prefix) :] for row in rows]

    def _value(self, table: str, key: str) -> Any:
        """The JSON value of a key: None where there is none, the text where it does not parse."""
        row = self._connection.execute(f'SELECT value FROM "{table}" WHERE key = ?', (key,)).fetchone()
        value = row["value"] if row is not None else None
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogatepass")
        if not isinstance(value, bytes):
            return None
        try:
            return jsonl.document(value)
        except ValueError:
            return value.decode("utf-8", "replace")


def _chat(tab: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A tab of the first chat panel. The only time is that of the last prompt that was sent."""
    bubbles = tab["bubbles"]
    yield {"kind": "chat", "name": tab.get("chatTitle")}
    prompts = [
        place
        for place, bubble in enumerate(bubbles)
        if isinstance(bubble, dict) and bubble.get("type") == "user" and string(bubble.get("text"))
    ]
    for place, bubble in enumerate(bubbles):
        time = tab.get("lastSendTime") if prompts and place == prompts[-1] else None
        yield {"kind": "chat-bubble", "bubble": bubble, "time": time}


def _range(prefix: str) -> tuple[str, str]:
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)
