"""The way to the indexer of a store on this machine: where it listens, and asking it one thing.

A socket in the data folder that only its owner may open; where the path would be too long for a socket, in the
user's runtime folder. Windows has a port on the loopback address and a file, for the owner's eyes, with port and token.
One JSON-RPC message a line (ruling 52). Whoever connects is on the same machine as the same user (ruling 49).
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcrop import __version__
from outcrop.errors import BackendFailure, OutcropError

NAME = "outcrop.sock"
PORT_FILE = "outcrop.port"
LONGEST = 100
"""Bytes of a socket's path that every system takes."""
CONNECT_SECONDS = 1.0
FRAME_LIMIT = 64 * 1024 * 1024


@dataclass(slots=True, frozen=True)
class Address:
    """Where the indexer of a data folder listens. `port_file` is set where there are no local sockets."""

    path: Path
    port_file: bool = False

    @classmethod
    def of(cls, home: Path, platform: str = sys.platform) -> Address:
        run = home / "run"
        if platform == "win32" or not hasattr(socket, "AF_UNIX"):
            return cls(run / PORT_FILE, True)
        path = run / NAME
        if len(os.fsencode(path)) > LONGEST:
            import hashlib

            name = hashlib.blake2b(os.fsencode(os.path.realpath(home)), digest_size=12).hexdigest()
            path = _runtime_folder() / f"outcrop-{name}.sock"
        return cls(path)


def _runtime_folder() -> Path:
    """The user's runtime folder, or one of our own below the temporary folder."""
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    if named.startswith("/") and os.path.isdir(named) and len(os.fsencode(named)) < LONGEST - 40:
        return Path(named)
    import tempfile

    return Path(tempfile.gettempdir()) / f"outcrop-{os.getuid()}"


def checked_folder(folder: Path) -> None:
    """Make the folder of the socket. Raises BackendFailure where it is another user's, or open to others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid"):
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise BackendFailure("the folder of the local socket belongs to somebody else")


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

        Raises the error that the indexer answered, BackendFailure where the connection ended, OSError on a timeout.
        """
        self._last += 1
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}}
        self._socket.settimeout(timeout)
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        for frame in self._frames():
            answer = json.loads(frame)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise _error(answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            if notified is not None and "method" in answer:
                notified(answer["method"], answer.get("params") or {})
        raise BackendFailure("the indexer ended before it answered; try again")

    def greet(self, surroundings: dict[str, Any] | None, timeout: float = CONNECT_SECONDS) -> dict[str, Any]:
        """Say who we are; what the indexer says of itself."""
        params = {"version": __version__, "environment": surroundings, "token": self._token}
        return self.call("hello", params, timeout)

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
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(str(address.path))
        except OSError:
            connection.close()
            return None
        return Client(connection, None)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ask(home: Path, method: str, params: dict[str, Any] | None = None, timeout: float = 2.0) -> dict[str, Any] | None:
    """The indexer's answer; None where none answers in time. Raises the error that it answered."""
    client = connect(home)
    if client is None:
        return None
    try:
        client.greet(None, timeout)
        return client.call(method, params, timeout)
    except OSError:
        return None
    finally:
        client.close()


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
