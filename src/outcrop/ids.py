"""Typed, opaque, stable ids: made from what a record means, written as `session:ses_…`, `turn:turn_…`, `event:evt_…`.

The 16 bytes of an id are a BLAKE2b digest of names that do not change when a file moves (ruling 21, "Copies, secrets":
always of the unmasked record). Written in Crockford's base 32, so that the order of texts is the order of bytes
(ruling 27). Callers must not take them apart (specification, "ID Format").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from outcrop.errors import InvalidId

SIZE = 16
SHARED = 3
"""Leading bytes that turns and events have from their session: neighbours in an index, they are written together."""
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 26
_VALUE = {char: value for value, char in enumerate(ALPHABET)}
_LONGEST = 64


class Kind(StrEnum):
    SESSION = "session"
    TURN = "turn"
    EVENT = "event"


_PREFIX = {Kind.SESSION: "session:ses_", Kind.TURN: "turn:turn_", Kind.EVENT: "event:evt_"}


@dataclass(slots=True, frozen=True)
class Id:
    """A parsed id. `uid` is None for a well-formed id that this store can never have made."""

    kind: Kind
    uid: bytes | None
    text: str


def digest(*parts: str | bytes) -> bytes:
    """16 bytes of the parts, each with its length, so that no two lists of parts run together."""
    state = blake2b(digest_size=SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


def text_digest(text: str) -> str:
    """A short name for a text inside one session or turn: 16 hexadecimal digits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def session_uid(harness: str, group: str, native: str) -> bytes:
    """Ruling 21: a session is (harness, identity group, native id)."""
    return digest("session", harness, group, native)


def turn_uid(session: bytes, key: str | bytes) -> bytes:
    return session[:SHARED] + digest("turn", session, key)[SHARED:]


def event_uid(session: bytes, key: str) -> bytes:
    own = blake2b(key.encode("utf-8", "surrogatepass"), key=session, digest_size=SIZE - SHARED)
    return session[:SHARED] + own.digest()


def origin_uid(harness: str, key: str) -> bytes:
    """The origin of an event whose key is unique in its whole harness."""
    return digest("origin", harness, key)


def write(kind: Kind, uid: bytes) -> str:
    """The public text of an id."""
    number = int.from_bytes(uid, "big")
    chars = [ALPHABET[(number >> shift) & 31] for shift in range(5 * (_LENGTH - 1), -1, -5)]
    return _PREFIX[kind] + "".join(chars)


def parse(text: str) -> Id:
    """Read a public id exactly as given, without trimming (ruling 9).

    Raises `InvalidId` whose `details["reason"]` says what is wrong.
    """
    kind = next((kind for kind, prefix in _PREFIX.items() if text.startswith(prefix)), None)
    if kind is None:
        raise InvalidId("it does not begin with session:ses_, turn:turn_ or event:evt_")
    body = text[len(_PREFIX[kind]) :]
    if not body:
        raise InvalidId("nothing follows the prefix")
    if len(body) > _LONGEST:
        raise InvalidId("it is too long")
    if not (body.isascii() and body.isalnum() and body.upper() == body):
        raise InvalidId("only digits and capital letters may follow the prefix")
    return Id(kind, _decode(body), text)


def _decode(body: str) -> bytes | None:
    if len(body) != _LENGTH or body[0] > "7":
        return None
    number = 0
    for char in body:
        value = _VALUE.get(char)
        if value is None:
            return None
        number = number << 5 | value
    return number.to_bytes(SIZE, "big")
