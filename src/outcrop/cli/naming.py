"""Which session a person means: `session:…`, the id that its harness gave it, or the beginning of that one."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable

from outcrop import ids
from outcrop.cli import output
from outcrop.errors import InvalidId, InvalidRequest
from outcrop.store.embedded import cards, tombstones
from outcrop.store.embedded.cards import Card
from outcrop.store.embedded.tombstones import Tombstone

_TYPED = tuple(f"{kind}:" for kind in ids.Kind)
_LEAST = 4
"""Characters of a session's own id that are enough, where no other begins with them."""


def uid_of(text: str) -> bytes | None:
    """The uid that a typed id names; None for an id of a harness. Raises InvalidRequest where it is no session's."""
    if not text.startswith(_TYPED):
        return None
    try:
        found = ids.parse(text)
    except InvalidId as error:
        raise InvalidRequest(f"{text} is no session id: {(error.details or {}).get('reason')}", "id") from None
    if found.kind is not ids.Kind.SESSION:
        raise InvalidRequest(f"{text} is no session id: it names another thing", "id")
    if found.uid is None:
        raise InvalidRequest(f"{text} is no session id: none has such a one", "id")
    return found.uid


def sessions(db: sqlite3.Connection, text: str) -> list[Card]:
    """The sessions that an id may mean. Raises InvalidRequest."""
    uid = uid_of(text)
    if uid is not None:
        return cards.by_uid(db, uid)
    return cards.by_native(db, text) or (cards.beginning(db, text) if len(text) >= _LEAST else [])


def forgotten(db: sqlite3.Connection, text: str) -> list[Tombstone]:
    """Those that were forgotten and that an id of a harness may mean."""
    found = tombstones.all_tombstones(db)
    exact = [tomb for tomb in found if tomb.native == text]
    return exact or [tomb for tomb in found if len(text) >= _LEAST and tomb.native.startswith(text)]


def uids(texts: Iterable[str], named: Callable[[str], list[Card] | list[Tombstone]], hint: str) -> set[bytes] | None:
    """The sessions that ids mean, those of harnesses by `named`; None where one means none or several: that is told."""
    chosen: set[bytes] = set()
    for text in texts:
        uid = uid_of(text)
        if uid is None:
            found = named(text)
            if not is_one(text, found, hint):
                return None
            uid = found[0].uid
        chosen.add(uid)
    return chosen


def is_one(text: str, found: list[Card] | list[Tombstone], hint: str) -> bool:
    """Whether an id means one session; where it does not, that is told. `hint` says where there are ids."""
    if len(found) == 1:
        return True
    if not found:
        output.error(f"no session has the id {text}", hint)
        return False
    output.error(f"{text} may be any of {len(found)} sessions")
    for one in found:
        title = one.title or one.first_prompt or "untitled session" if isinstance(one, Card) else one.native
        print(f"  {ids.write(ids.Kind.SESSION, one.uid)}  {output.clean(' '.join(title.split()))}", file=sys.stderr)
    return False
