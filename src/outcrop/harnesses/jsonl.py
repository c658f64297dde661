"""JSON lines as they are really written: cut at line feeds alone, and forgiving towards what writers leave behind.

A line that does not end yet is waited for, unless it already is a whole object (several writers put the line feed
before the next record). Records glued on one line are taken apart, BOM, CR, NUL padding, NaN, lone surrogates and
invalid UTF-8 are survived, and a record past `RECORD_LIMIT` is passed over without being held in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

RECORD_LIMIT = 16 * 1024 * 1024
"""Bytes of the largest record that is read."""
STUB = 64 * 1024
"""Bytes that are kept of a larger one."""
CHUNK = 1 << 20

_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = b" \t\r\n\0"
_BOM = b"\xef\xbb\xbf"
_RECORD_KEYS = frozenset(("type", "timestamp", "uuid"))
_TRIES = 64


@dataclass(slots=True)
class Line:
    """One line of a file. `size` counts all its bytes; `data` is cut at STUB where `oversize`."""

    offset: int
    size: int
    data: bytes
    ended: bool
    oversize: bool = False

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(slots=True)
class Fault:
    """Part of a line that is no record: why, and a short piece of it."""

    reason: str
    sample: str = ""


def lines(stream: BinaryIO, offset: int) -> Iterator[Line]:
    """The lines of a stream that stands at `offset`. The last one may not have `ended`."""
    held = b""
    dropped = 0
    while chunk := stream.read(CHUNK):
        start = 0
        while (newline := chunk.find(b"\n", start)) >= 0:
            piece = chunk[start : newline + 1]
            start = newline + 1
            if dropped or len(held) + len(piece) > RECORD_LIMIT:
                size = dropped + len(held) + len(piece)
                yield Line(offset, size, (held + piece[:STUB])[:STUB], True, oversize=True)
            else:
                data = held + piece if held else piece
                size = len(data)
                yield Line(offset, size, data, True)
            offset += size
            held, dropped = b"", 0
        rest = chunk[start:]
        if dropped or len(held) + len(rest) > RECORD_LIMIT:
            dropped += len(held) + len(rest) - (kept := min(STUB, len(held) + len(rest)))
            held = (held + rest[:STUB])[:kept]
        elif rest:
            held += rest
    if held:
        yield Line(offset, dropped + len(held), held, False, oversize=dropped > 0)


def records(data: bytes) -> tuple[list[dict[str, Any]], list[Fault]]:
    """The records of one line, and what in it is none. A blank line or `null` gives neither."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _forgiving(data)
    return _sorted_out([value])


def whole(data: bytes) -> bool:
    """Whether an unended line already is one complete object."""
    try:
        return isinstance(orjson.loads(data), dict)
    except orjson.JSONDecodeError:
        found, faults = _forgiving(data)
        return bool(found) and not faults


def scalars(value: Any) -> Any:
    """The value with every lone surrogate replaced, in texts and keys."""
    if isinstance(value, str):
        return _SURROGATE.sub("�", value) if _SURROGATE.search(value) else value
    if isinstance(value, list):
        return [scalars(item) for item in value]
    if isinstance(value, dict):
        return {scalars(key): scalars(item) for key, item in value.items()}
    return value


def document(data: bytes) -> Any:
    """A whole JSON document. Raises ValueError where it is none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data.removeprefix(_BOM).strip(_BLANK).decode("utf-8", "replace")
        try:
            return scalars(_DECODER.decode(text))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _integer(digits: str) -> int | str:
    # Beyond 64 bits no store can hold it as a number; the digits are kept as text.
    return int(digits) if len(digits) < 19 else digits


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=str, strict=False)


def _forgiving(data: bytes) -> tuple[list[dict[str, Any]], list[Fault]]:
    text = data.removeprefix(_BOM).strip(_BLANK).decode("utf-8", "replace").lstrip("﻿")
    values: list[Any] = []
    faults: list[Fault] = []
    position = 0
    while position < len(text):
        try:
            value, position = _DECODER.raw_decode(text, position)
            values.append(scalars(value))
        except RecursionError:
            faults.append(Fault("nested too deeply", text[position : position + 80]))
            break
        except ValueError:
            faults.append(Fault("not JSON", text[position : position + 80]))
            if (record := _behind_torn(text, position)) is not None:
                values.append(record)
            break
        while position < len(text) and text[position] in " \t\r\0":
            position += 1
    found, others = _sorted_out(values)
    return found, faults + others


def _behind_torn(text: str, position: int) -> Any:
    """A whole record that was appended to a torn one: it reaches the end of the line and looks like a record."""
    for _ in range(_TRIES):
        position = text.find('{"', position + 1)
        if position < 0:
            return None
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            continue
        if end == len(text) and isinstance(value, dict) and not _RECORD_KEYS.isdisjoint(value):
            return scalars(value)
    return None


def _sorted_out(values: list[Any]) -> tuple[list[dict[str, Any]], list[Fault]]:
    found = [value for value in values if isinstance(value, dict)]
    if len(found) == len(values):
        return found, []
    faults = [
        Fault("not an object", str(value)[:80]) for value in values if value is not None and not isinstance(value, dict)
    ]
    return found, faults
