"""The way to the indexer of a store on this machine: where it listens, and asking it one thing.

A socket in the data folder that only its owner may open. Where its path would be too long for a socket, a link stands
there and the socket lies in the user's runtime folder. Windows has a port on the loopback address and a file with port
and token, for the owner's eyes.
One JSON-RPC message a line (ruling 52). Whoever connects is on the same machine as the same user (ruling 49).
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcrop import __version__
from outcrop.errors import BackendFailure, IndexerEnded, OutcropError
from outcrop.paths import RUN

NAME = "outcrop.sock"
PORT_FILE = "outcrop.port"
LONGEST = 100
"""Bytes of a socket's path that every system takes."""
CONNECT_SECONDS = 1.0
FRAME_LIMIT = 64 * 1024 * 1024


@dataclass(slots=True, frozen=True)
class Address:
    """Where the indexer of a data folder is found: a socket, or where there are none a file that names a port."""

    path: Path
    port_file: bool = False
    socket: Path | None = None
    """Where it lies in truth, when `path` is too long and but links to it."""

    @classmethod
    def of(cls, home: Path, platform: str = sys.platform) -> Address:
        run = home / RUN
        if platform == "win32" or not hasattr(socket, "AF_UNIX"):
            return cls(run / PORT_FILE, True)
        path = run / NAME
        if not too_long(path):
            return cls(path)
        import hashlib

        name = hashlib.blake2b(os.fsencode(os.path.realpath(home)), digest_size=12).hexdigest()
        return cls(path, socket=_runtime_folder() / f"outcrop-{name}.sock")

    def reached(self) -> Path | None:
        """The socket as it can be connected to: surroundings differ, so the link says where it lies."""
        if self.socket is None:
            return self.path
        with suppress(OSError):
            path = Path(os.readlink(self.path))
            return path if path.is_absolute() and is_private(path.parent) else None
        return None


def too_long(path: Path) -> bool:
    return len(os.fsencode(path)) > LONGEST


def _runtime_folder() -> Path:
    """The user's runtime folder, or one of our own below the temporary folder."""
    named = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if named.is_absolute() and not too_long(named / ("-" * 40)) and is_private(named):
        return named
    import tempfile

    own = f"outcrop-{os.getuid()}"
    folder = Path(tempfile.gettempdir()) / own
    return Path("/tmp") / own if too_long(folder / ("-" * 40)) else folder


def is_private(folder: Path) -> bool:
    """Whether a folder is there, is this user's, and nobody else may write in it."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def checked_folder(folder: Path) -> None:
    """Make the folder of the socket. Raises BackendFailure where it is another user's, or others may write in it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and not is_private(folder):
        raise BackendFailure("the folder of the local socket belongs to somebody else, or is open to others")


class Client:
    """One connection. While it is open the indexer counts it as a lease and does not leave."""

    def __init__(self, connection: socket.socket, token: str | None) -> None:
        self._socket = connection
        self._token = token
        self._held = bytearray()
        self._last = 0

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        timeout: float | None = None,
        notified: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """The result. `notified` gets (method, params) of what is told meanwhile.

        Raises the error that the indexer answered, IndexerEnded where the connection ended, TimeoutError.
        """
        self._last += 1
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}}
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            return self._answer(notified)
        except ConnectionError:
            raise IndexerEnded from None

    def _answer(self, notified: Callable[[str, dict[str, Any]], None] | None) -> dict[str, Any]:
        for frame in self._frames():
            answer = json.loads(frame)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise _error(answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            if notified is not None and "method" in answer:
                notified(answer["method"], answer.get("params") or {})
        raise IndexerEnded

    def greet(self, surroundings: dict[str, Any] | None, timeout: float = CONNECT_SECONDS) -> dict[str, Any]:
        """Say who we are; what the indexer says of itself."""
        params = {"version": __version__, "environment": surroundings, "token": self._token}
        return self.call("hello", params, timeout)

    def is_newer_than(self, told: dict[str, Any]) -> bool:
        """Whether this program is newer than the one that said `told` of itself."""
        return is_newer(__version__, str(told.get("version")))

    def ended(self) -> bool:
        """Whether the other side is gone."""
        try:
            self._socket.setblocking(False)
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()

    def _frames(self) -> Iterator[bytes]:
        while True:
            while (end := self._held.find(b"\n")) >= 0:
                frame = bytes(self._held[:end])
                del self._held[: end + 1]
                yield frame
            data = self._socket.recv(65536)
            if not data or len(self._held) > FRAME_LIMIT:
                return
            self._held += data


def connect(home: Path, platform: str = sys.platform) -> Client | None:
    """A connection to the indexer of a data folder; None where none listens."""
    address = Address.of(home, platform)
    try:
        if address.port_file:
            told = json.loads(address.path.read_text(encoding="ascii"))
            connection = socket.create_connection(("127.0.0.1", int(told["port"])), CONNECT_SECONDS)
            return Client(connection, str(told["token"]))
        path = address.reached()
        if path is None:
            return None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_SECONDS)
            _connect(connection, str(path))
        except OSError:
            connection.close()
            return None
        return Client(connection, None)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _connect(connection: socket.socket, path: str) -> None:
    """Connect; where too many others wait to be let in, wait as well, for a moment. Raises OSError."""
    until = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            return connection.connect(path)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def ask(home: Path, method: str, params: dict[str, Any] | None = None, timeout: float = 2.0) -> dict[str, Any] | None:
    """The indexer's answer; None where none answers in time. Raises the error that it answered."""
    client = connect(home)
    if client is None:
        return None
    try:
        client.greet(None, timeout)
        return client.call(method, params, timeout)
    except (OSError, IndexerEnded):
        return None
    finally:
        client.close()


def is_newer(version: object, than: str) -> bool:
    """Whether `version` is a version above `than`; anything else is not."""
    try:
        return isinstance(version, str) and _numbers(version) > _numbers(than)
    except ValueError:
        return False


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split("."))


def _error(told: Any) -> OutcropError:
    """The typed error of an answer: its code of the specification stands in `data`."""
    data = told.get("data") or {}
    name, message = data.get("code"), str(told.get("message"))
    for kind in _kinds(OutcropError):
        if kind.code == name and kind.__name__ == data.get("kind"):
            error = kind.__new__(kind)
            OutcropError.__init__(error, message, data.get("details"))
            return error
    return BackendFailure(message)


def _kinds(kind: type[OutcropError]) -> Iterator[type[OutcropError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
