"""JSON lines as they are really written: cut at line feeds alone, and forgiving towards what writers leave behind.

A line that does not end yet is waited for, unless it already is a whole object (several writers put the line feed
before the next record). Records glued on one line are taken apart, BOM, CR, NUL padding, NaN, lone surrogates and
invalid UTF-8 are survived, and a record past `RECORD_LIMIT` is passed over without being held in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

RECORD_LIMIT = 16 * 1024 * 1024
"""Bytes of the largest record that is read."""
STUB = 64 * 1024
"""Bytes that are kept of a larger one."""
CHUNK = 1 << 20
DEPTH = 200
"""Levels of nesting that are read; the encoder of the store ends at 254, and masking recurses."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = " \t\r\n\0\ufeff"
_NO_BLANK = re.compile(rf"[^{_BLANK}]|\Z")
_RECORD_KEYS = frozenset(("type", "timestamp", "uuid"))
_ROOM = 254 - DEPTH
_SAMPLE = 80
_EFFORT = 8
"""How many times the length of a torn line may be decoded to find the record behind it."""


@dataclass(slots=True)
class Line:
    """One line of a file. `size` counts all its bytes; `data` lacks leading NULs and, if `oversize`, is cut at STUB."""

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
    """The lines of a stream that stands at `offset`. The last one may not have `ended`.

    NULs at a line's beginning are what a crash left of an unwritten page: however many, they hide no record.
    """
    held: list[bytes] = []
    size = kept = 0  # bytes of the line so far; of them in `held`
    padding = 0
    while chunk := stream.read(CHUNK):
        start = 0
        while start < len(chunk):
            newline = chunk.find(b"\n", start)
            stop = newline + 1 or len(chunk)
            piece = chunk[start:stop]
            size += stop - start
            start = stop
            if not kept and piece[0] == 0:
                piece = piece.lstrip(b"\0")
                padding = size - len(piece)
            if size - padding > RECORD_LIMIT:
                held = [b"".join([*held, piece[:STUB]])[:STUB]]
                kept = len(held[0])
            elif piece:
                held.append(piece)
                kept += len(piece)
            if newline >= 0:
                yield Line(offset, size, b"".join(held), True, size - padding > RECORD_LIMIT)
                offset += size
                held, size, kept, padding = [], 0, 0, 0
    if size:
        yield Line(offset, size, b"".join(held), False, size - padding > RECORD_LIMIT)


def records(data: bytes) -> tuple[list[dict[str, Any]], list[Fault]]:
    """The records of one line, and what in it is none. A blank line or `null` gives neither."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _forgiving(data)
    found: list[dict[str, Any]] = []
    faults: list[Fault] = []
    _sort(value, _flat(data), found, faults, lambda: data[:_SAMPLE].decode("utf-8", "replace"))
    return found, faults


def whole(data: bytes) -> bool:
    """Whether an unended line already is one complete object."""
    found, faults = records(data)
    return bool(found) and not faults


def scalars(value: Any) -> Any:
    """The value with every lone surrogate replaced, in texts and keys."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value) if _SURROGATE.search(value) else value
    if isinstance(value, list):
        return [scalars(item) for item in value]
    if isinstance(value, dict):
        return {scalars(key): scalars(item) for key, item in value.items()}
    return value


def document(data: bytes) -> Any:
    """A whole JSON document, or JSON inside a text. Raises ValueError where it is none, or nests past DEPTH."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data.decode("utf-8", "replace").strip(_BLANK)
        try:
            value = scalars(_DECODER.decode(text))
        except RecursionError:
            raise ValueError("nested too deeply") from None
    if not _flat(data) and _deep(value):
        raise ValueError("nested too deeply")
    return value


def _integer(digits: str) -> int | float:
    """As orjson reads it: a float past 64 bits. A record must not depend on what stands beside it."""
    number = int(digits) if len(digits) <= 20 else 0
    return number if -(1 << 63) <= number < 1 << 64 and len(digits) <= 20 else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=str, strict=False)


def _forgiving(data: bytes) -> tuple[list[dict[str, Any]], list[Fault]]:
    text = data.decode("utf-8", "replace")
    found: list[dict[str, Any]] = []
    faults: list[Fault] = []
    flat = _flat(data)
    position = _next(text, 0)
    while position < len(text):
        start = position
        try:
            value, position = _DECODER.raw_decode(text, position)
            value = scalars(value)
        except RecursionError:
            faults.append(Fault("nested too deeply", text[start : start + _SAMPLE]))
            break
        except ValueError:
            faults.append(Fault("not JSON", text[start : start + _SAMPLE]))
            found += _behind_torn(text, start)
            break
        _sort(value, flat, found, faults, lambda start=start: text[start : start + _SAMPLE])  # type: ignore[misc]
        position = _next(text, position)
    return found, faults


def _behind_torn(text: str, torn: int) -> list[dict[str, Any]]:
    """Whole records that were appended to a torn one: they reach the end of the line and look like records."""
    effort = _EFFORT * len(text)
    position = torn + 1
    while effort > 0 and (position := text.find('{"', position)) >= 0:
        found: list[dict[str, Any]] = []
        end = position
        while end < len(text):
            try:
                value, after = _DECODER.raw_decode(text, end)
                value = scalars(value)
            except (ValueError, RecursionError) as error:
                # Where a string does not end, the decoder ran through all of it; making any error costs its place.
                lost = isinstance(error, json.JSONDecodeError) and not error.msg.startswith("Unterminated")
                effort -= len(text) // 16 if lost else len(text) - end
                break
            effort -= after - end
            if not isinstance(value, dict) or _RECORD_KEYS.isdisjoint(value):
                end = after
                break
            found.append(value)
            end = _next(text, after)
        else:
            return [record for record in found if not _deep(record)]
        position = max(end, position + 1)  # nothing begins inside what is complete
    return []


def _next(text: str, position: int) -> int:
    """Where the next character stands that is no filling between records."""
    match = _NO_BLANK.search(text, position)
    return match.start() if match else len(text)


def _sort(value: Any, flat: bool, found: list[dict[str, Any]], faults: list[Fault], sample: Callable[[], str]) -> None:
    if isinstance(value, dict) and (flat or not _deep(value)):
        found.append(value)
    elif value is not None:
        faults.append(Fault("nested too deeply" if isinstance(value, dict) else "not an object", sample()))


def _flat(data: bytes) -> bool:
    """Whether nothing in it can nest past DEPTH: there are too few brackets. Almost every line is flat."""
    return data.count(b"{") + data.count(b"[") <= DEPTH


def _deep(value: Any) -> bool:
    """Whether a value nests past DEPTH."""
    for _ in range(_ROOM):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False
