"""Opaque continuations: what a page was, where it ended, and which state of which store it was seen in.

A cursor is base64url of a version byte, an 8 byte checksum and compact JSON; the checksum is keyed with the store's
epoch, so that a changed or an invented cursor is told from a stale one. Cursors are pinned by arrival (rulings 14, 15).
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from outcrop.errors import InvalidRequest

VERSION = 1
"""The first byte. Below 4, it also makes every cursor begin with an A: on a command line none looks like an option."""
_SUM = 8
_MOST = 2**63 - 1


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


def write_open(cursor: OpenCursor, epoch: str) -> str:
    return _write("open", [cursor.target, cursor.limit, cursor.after, cursor.arrival, cursor.shape], epoch)


def read_open(text: str, epoch: str) -> OpenCursor:
    """Raises InvalidRequest that tells to open the id anew."""
    again = "open the typed id again with a limit"
    match _read("open", text, epoch, again):
        case [str(target), int(limit), int(after), int(arrival), int(shape)]:
            return OpenCursor(target, limit, after, arrival, shape)
    raise malformed(again)


def write_list(cursor: ListCursor, epoch: str) -> str:
    last = [cursor.updated, cursor.uid.hex(), cursor.arrival, cursor.order_rev]
    return _write("list_sessions", [cursor.filter, cursor.sort, *last], epoch)


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
    body = json.dumps([epoch, tool, *content], separators=(",", ":")).encode()
    return urlsafe_b64encode(bytes([VERSION]) + _checksum(body, epoch) + body).decode().rstrip("=")


def _read(tool: str, text: str, epoch: str, again: str) -> list[Any]:
    data = _decode(text)
    if not data:
        raise malformed(again)
    checksum, body = data[1 : 1 + _SUM], data[1 + _SUM :]
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        raise malformed(again) from None
    if not isinstance(parsed, list) or len(parsed) < 2 or not isinstance(parsed[0], str):
        raise malformed(again)
    if checksum != _checksum(body, parsed[0]) or any(isinstance(n, int) and abs(n) > _MOST for n in parsed):
        raise malformed(again)
    if data[0] != VERSION or parsed[1] != tool:
        raise InvalidRequest(f"cursor does not belong to this version of {tool}; {again}", "cursor")
    if parsed[0] != epoch:
        raise stale(again)
    return parsed[2:]


def _decode(text: str) -> bytes | None:
    """Bytes of exactly one spelling: bits that carry nothing must be zero, so that no character can change unseen."""
    try:
        data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if urlsafe_b64encode(data).decode().rstrip("=") == text else None


def _checksum(body: bytes, epoch: str) -> bytes:
    return blake2b(body, digest_size=_SUM, key=epoch.encode("utf-8", "replace")[:64]).digest()
