"""Opaque continuations: how they are written, and those of session search.

A cursor is base64url of a version byte, an 8 byte checksum and compact JSON; the checksum is keyed with the store's
epoch, so that a changed or an invented cursor is told from a stale one.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

VERSION = 1
"""The first byte. Below 4, it also makes every cursor begin with an A: on a command line none looks like an option."""
_SUM = 8
_MOST = 2**63 - 1
_KIND = "sessions"


def write(kind: str, content: list[Any], epoch: str) -> str:
    """A cursor of some kind that holds plain JSON values."""
    body = json.dumps([epoch, kind, *content], separators=(",", ":")).encode()
    return urlsafe_b64encode(bytes([VERSION]) + _checksum(body, epoch) + body).decode().rstrip("=")


class Read(NamedTuple):
    """An intact cursor: who wrote it, and what it holds."""

    version: int
    epoch: str
    kind: Any
    content: list[Any]


def read(text: str) -> Read | None:
    """What a cursor holds; None for one that nobody wrote, or that was changed."""
    data = _decode(text)
    if not data:
        return None
    checksum, body = data[1 : 1 + _SUM], data[1 + _SUM :]
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, list) or len(parsed) < 2 or not isinstance(parsed[0], str):
        return None
    if checksum != _checksum(body, parsed[0]) or any(isinstance(n, int) and abs(n) > _MOST for n in parsed):
        return None
    return Read(data[0], parsed[0], parsed[1], parsed[2:])


def _decode(text: str) -> bytes | None:
    """Bytes of exactly one spelling: bits that carry nothing must be zero, so that no character can change unseen."""
    try:
        data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if urlsafe_b64encode(data).decode().rstrip("=") == text else None


def _checksum(body: bytes, epoch: str) -> bytes:
    return blake2b(body, digest_size=_SUM, key=epoch.encode("utf-8", "replace")[:64]).digest()


class PageCursor(NamedTuple):
    """The next page of a session search: `offset` hits into the answer to the query with this `key`, as it was in a
    generation of the text index and a revision of what pages show of the rows (ruling 46)."""

    generation: int
    revision: int
    offset: int
    key: str


def query_key(text: str, scope: str, sort: str, since: int | None, agents: Iterable[str], paths: Iterable[str]) -> str:
    """One short name for a query: the order inside lists does not count, and an empty list is none."""
    told = json.dumps([text, scope, sort, since, sorted(set(agents)), sorted(set(paths))])
    return blake2b(told.encode(), digest_size=12).hexdigest()


def write_page(cursor: PageCursor, epoch: str) -> str:
    return write(_KIND, [cursor.generation, cursor.revision, cursor.offset, cursor.key], epoch)


def read_page(text: str, epoch: str) -> PageCursor | None:
    """None for what is no cursor of this store (ruling 46)."""
    told = read(text)
    if told is None or (told.version, told.epoch, told.kind) != (VERSION, epoch, _KIND):
        return None
    match told.content:
        case [int(generation), int(revision), int(offset), str(key)] if min(generation, revision, offset) >= 0:
            return PageCursor(generation, revision, offset, key)
    return None
