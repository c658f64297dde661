"""How rows hold things: the bits of an event, blocks of contents, and rows as the words of `model`.

One place for encodings, so that the reader, the writer and the text index cannot disagree. A block is zstd of a JSON
array with an element a line; each holds the non-empty fields of `model.Content` of one event.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson

from outcrop.errors import BackendFailure
from outcrop.model import Content
from outcrop.store.embedded.database import DAMAGED

COPY = 1
"""Copied history: another session holds the original."""
OPENS = 2
"""A prompt that starts a turn."""
WEB = 4
"""A web search or fetch (ruling 29)."""
OWN = 8
"""A call of this product's own tools (ruling 11)."""
ERROR = 16
SUPERSEDED = 32
DELETED = 64
"""Gone from the harness's database, kept here (ruling 41)."""
INFERRED = 128
"""The time is not the record's own (ruling 22)."""
GUESSED = 256
"""The time is the file's, until the first recorded one arrives."""
PARTIAL = 512
"""Visible text that is never the final answer."""
BY_USER = 1024
SETTLES = 2048
"""Its coming proves that the agent had gone idle."""

LEVEL = 3
DEPTH = 200
"""Levels of nesting that are kept as they are; the encoder ends at 254."""

CONTENT_FIELDS = ("text", "arguments", "original_tool", "call_id", "exit_code", "is_error", "extra", "raw")


class BlockSize(NamedTuple):
    """What a block holds at most: events, and bytes of contents unless one alone is larger."""

    events: int
    bytes: int

    def full(self, count: int, size: int) -> bool:
        """Whether a block of `count` contents takes no other, with which it would have `size` bytes."""
        return count > 0 and (count >= self.events or size > self.bytes)


BLOCK_SIZE = (BlockSize(16, 16 * 1024), BlockSize(64, 48 * 1024))
"""By `write.text_class`. A search shows one event of many blocks each, mostly messages: small blocks are quickly
unpacked, and take a sixteenth more room than blocks of 64 events and 256 KiB."""


class _Codec(threading.local):
    """The compressor and decompressor of one thread: a context in two threads at once garbles what both get."""

    def __init__(self) -> None:
        # Imported at the first content: most commands that only list never need it.
        import zstandard

        self.compressor = zstandard.ZstdCompressor(level=LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


@cache
def _codec() -> _Codec:
    return _Codec()


def compress(data: bytes) -> bytes:
    return _codec().compressor.compress(data)


def decompress(data: bytes) -> bytes:
    return _codec().decompressor.decompress(data)


def encode_content(content: Any) -> bytes:
    """A JSON value as bytes, whatever a harness put into it: what JSON or UTF-8 cannot hold becomes text."""
    try:
        return orjson.dumps(content)
    except TypeError:
        return orjson.dumps(_plain(content, 0))


def _plain(value: Any, depth: int) -> Any:
    """The value without lone surrogates, keys that are no text, numbers past 64 bits and nesting past DEPTH."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 1 << 63):
        return value
    if depth >= DEPTH or not isinstance(value, dict | list | tuple):
        return str(value).encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(str(key), 0): _plain(item, depth + 1) for key, item in value.items()}
    return [_plain(item, depth + 1) for item in value]


def encode_block(contents: list[bytes]) -> tuple[bytes, int]:
    """A block of encoded contents, and its size before compression."""
    plain = b"[\n" + b"\n,".join(contents) + b"\n]"
    return compress(plain), len(plain)


def decode_block(z: bytes) -> list[dict[str, Any]]:
    """The contents of a block, or BackendFailure."""
    return list(Block(z))


class Block(Sequence[dict[str, Any]]):
    """The contents of a block, each parsed when it is asked for: who searches wants one of dozens.

    Raises BackendFailure where it is damaged.
    """

    def __init__(self, z: bytes) -> None:
        self._data = decompress(z)
        self._slots: list[Any] | None = None
        self._asked = False

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, slot: Any) -> Any:
        if self._slots is None and not self._asked:
            self._asked = True
            if (line := self._line(slot)) is not None:
                return _parsed(line)
        slots = self._all()
        held = slots[slot]
        if isinstance(held, bytes):
            held = slots[slot] = _parsed(held.removeprefix(b","))
        return held

    def _all(self) -> list[Any]:
        if self._slots is None:
            lines: list[Any] = self._data.split(b"\n")
            # Blocks of before had one line.
            self._slots = lines[1:-1] if len(lines) > 1 else _parsed(lines[0])
            self._data = b""
        return self._slots

    def _line(self, slot: int) -> bytes | None:
        """One content alone: to take all lines apart costs half as much as to unpack them."""
        begin = self._data.find(b"\n")
        while slot > 0 and begin >= 0:
            begin = self._data.find(b"\n", begin + 1)
            slot -= 1
        end = self._data.find(b"\n", begin + 1)
        return self._data[begin + 1 : end].removeprefix(b",") if slot == 0 and 0 <= begin < end else None


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise BackendFailure(DAMAGED) from None


def content(stored: dict[str, Any]) -> Content:
    return Content(**stored)


def numbers(text: str) -> list[int]:
    """A comma separated list of numbers, as turns keep their types and tools."""
    return [int(part) for part in text.split(",")] if text else []
