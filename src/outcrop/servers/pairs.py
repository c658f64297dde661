"""The tokens of paired clients: who may ask over the network, under which name, until when.

One file a pair, so that adding and revoking need no lock: revoking is deleting the file, and holds from the next
moment on, also for connections that are open. A file holds the token's SHA-256 alone; its time of change says when the
token was last used.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from outcrop.errors import InvalidRequest
from outcrop.paths import folder_errors, private_folder

FOLDER = "pairs"
PREFIX = "outcrop_"
"""So that masking and secret scanners know a token when they see one."""
USE_SECONDS = 60.0
"""Uses are noted no finer than this."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class Pair(NamedTuple):
    """Times are UTC s; `expires` None: never; `used` None: not yet."""

    name: str
    digest: str
    created: float
    expires: float | None
    used: float | None

    def expired(self, now: float) -> bool:
        return self.expires is not None and now >= self.expires


class Pairs:
    """The pairs of one data folder."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def add(self, name: str, expires: float | None = None) -> str:
        """Pair a client; its token, which is kept nowhere.

        Raises InvalidRequest for a name that is taken or odd, BackendFailure where it cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise InvalidRequest(f"{name!r} is no name: up to 64 letters, digits, dots, dashes and underscores", "name")
        token = PREFIX + secrets.token_urlsafe(32)
        told = {"name": name, "digest": _digest(token), "created": time.time(), "expires": expires}
        with folder_errors():
            path = private_folder(self._folder) / f"{name}.json"
            try:
                with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                    json.dump(told, file)
            except FileExistsError:
                raise InvalidRequest(f"{name!r} is paired already; revoke it first", "name") from None
            os.utime(path, (0, 0))
        return token

    def all(self) -> list[Pair]:
        """By name. A file that is no pair is none."""
        try:
            with folder_errors("read"):
                names = sorted(name for name in os.listdir(self._folder) if name.endswith(".json"))
        except FileNotFoundError:
            return []
        return [pair for name in names if (pair := _read(self._folder / name)) is not None]

    def revoke(self, name: str) -> bool:
        """Whether there was such a pair."""
        if not _NAME.fullmatch(name):
            return False
        try:
            with folder_errors():
                (self._folder / f"{name}.json").unlink()
        except FileNotFoundError:
            return False
        return True

    def holder(self, token: str) -> Pair | None:
        """Whose token this is, at this moment. Every pair is looked at, whichever it is: time tells nothing."""
        digest, found, now = _digest(token), None, time.time()
        for pair in self.all():
            if hmac.compare_digest(pair.digest, digest) and not pair.expired(now):
                found = pair
        return found

    def note_use(self, pair: Pair) -> None:
        now = time.time()
        if pair.used is None or now - pair.used >= USE_SECONDS:
            with suppress(OSError):
                os.utime(self._folder / f"{pair.name}.json", (now, now))


def _digest(token: str) -> str:
    """Tokens are 256 random bits: nothing slower is needed to keep them from being guessed from it."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _read(path: Path) -> Pair | None:
    try:
        with path.open(encoding="utf-8") as file:
            told = json.load(file)
            used = os.fstat(file.fileno()).st_mtime
        expires = told["expires"]
        return Pair(
            path.name.removesuffix(".json"),
            str(told["digest"]),
            float(told["created"]),
            None if expires is None else float(expires),
            used or None,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
