"""Opaque continuations: what a page was, where it ended, and which state of which store it was seen in.

How they are written is told by `search.cursor`. Cursors are pinned by arrival (rulings 14, 15).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from outcrop.errors import InvalidRequest
from outcrop.search import cursor


@dataclass(slots=True, frozen=True)
class OpenCursor:
    """The next page of an opened session or turn: children with an ordinal above `after`, as of `arrival`."""

    target: str
    limit: int
    after: int
    arrival: int
    shape: int


@dataclass(slots=True, frozen=True)
class ListCursor:
    """The next page of a listing: after the session (`updated`, `uid`), as of `arrival`."""

    filter: str
    sort: str
    updated: int
    uid: bytes
    arrival: int
    order_rev: int


def filter_signature(start: int, end: int, mode: str | None, harness: str | None, source: str | None) -> str:
    """One short name for a filter; bounds count in UTC ms, however they were written."""
    text = json.dumps([start, end, mode, harness, source])
    return blake2b(text.encode(), digest_size=12).hexdigest()


def write_open(place: OpenCursor, epoch: str) -> str:
    return _write("open", [place.target, place.limit, place.after, place.arrival, place.shape], epoch)


def read_open(text: str, epoch: str) -> OpenCursor:
    """Raises InvalidRequest that tells to open the id anew."""
    again = "open the typed id again with a limit"
    match _read("open", text, epoch, again):
        case [str(target), int(limit), int(after), int(arrival), int(shape)]:
            return OpenCursor(target, limit, after, arrival, shape)
    raise malformed(again)


def write_list(place: ListCursor, epoch: str) -> str:
    last = [place.updated, place.uid.hex(), place.arrival, place.order_rev]
    return _write("list_sessions", [place.filter, place.sort, *last], epoch)


def read_list(text: str, epoch: str) -> ListCursor:
    """Raises InvalidRequest that tells to start the listing anew."""
    again = "start the listing again without a cursor"
    match _read("list_sessions", text, epoch, again):
        case [str(signature), str(sort), int(updated), str(uid), int(arrival), int(order_rev)]:
            try:
                return ListCursor(signature, sort, updated, bytes.fromhex(uid), arrival, order_rev)
            except ValueError:
                pass
    raise malformed(again)


def malformed(again: str) -> InvalidRequest:
    return InvalidRequest(f"cursor is not valid; {again}", "cursor")


def stale(again: str) -> InvalidRequest:
    return InvalidRequest(f"cursor is stale, because the history changed; {again}", "cursor", reason="stale")


def _write(tool: str, content: list[Any], epoch: str) -> str:
    return cursor.write(tool, content, epoch)


def _read(tool: str, text: str, epoch: str, again: str) -> list[Any]:
    told = cursor.read(text)
    if told is None:
        raise malformed(again)
    if told.version != cursor.VERSION or told.kind != tool:
        raise InvalidRequest(f"cursor does not belong to this version of {tool}; {again}", "cursor")
    if told.epoch != epoch:
        raise stale(again)
    return told.content
