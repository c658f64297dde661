"""The indexer's door: listens at `local.Address`, one thread a connection, each a lease on the indexer.

What the methods mean is the handler's; a connection from another user is closed unheard.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from outcrop.servers.jsonrpc import PARSE_ERROR, Connection, Handler, RpcError, Slots, error_frame
from outcrop.servers.local import Address, checked_folder
from outcrop.servers.stdio import FRAME_LIMIT, Lines

_BACKLOG = 64
_CHUNK = 64 * 1024
_BREATH = 0.1
"""Seconds after which connections are taken again when descriptors or threads ran out."""
SEND_SECONDS = 30.0
"""A client that reads nothing for so long is let go."""


class Door:
    """Open until it is closed. `handler_of` makes the handler of a connection from its way to tell things.

    `lanes` are methods with slots of their own, so that none of them waits for the others.
    """

    def __init__(
        self,
        address: Address,
        handler_of: Callable[[Callable[[bytes], None], str | None], Handler],
        slots: Slots,
        lease: Callable[[bool], None],
        lanes: Mapping[str, Slots],
    ) -> None:
        self._address = address
        self._handler_of = handler_of
        self._slots = slots
        self._lease = lease
        self._lanes = lanes
        self._token = secrets.token_urlsafe(32) if address.port_file else None
        self._made: dict[Path, tuple[int, int]] = {}
        self._closed = False
        for path in (address.path, address.socket or address.path):
            checked_folder(path.parent)
        self._listener = self._listen()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="door", daemon=True).start()

    def close(self) -> None:
        """Listen no more, and end all connections."""
        self._closed = True
        for path, identity in self._made.items():
            with suppress(OSError):
                if _identity(path) == identity:  # where the folder was replaced, it is another indexer's
                    os.unlink(path)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            open_now = list(self._open)
        for connection in open_now:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> socket.socket:
        if self._address.port_file:
            listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
            told = {"port": listener.getsockname()[1], "token": self._token}
            new = self._address.path.with_suffix(".new")
            with suppress(OSError):
                new.unlink()
            with open(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                json.dump(told, file)
            self._put(new, self._address.path)
            return listener
        # Whoever holds the writer lock owns the name: a socket that stands there is of a process that was killed.
        path = self._address.socket or self._address.path
        with suppress(FileNotFoundError):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        self._made[path] = _identity(path)
        listener.listen(_BACKLOG)
        if path != self._address.path:
            new = self._address.path.with_suffix(".new")
            with suppress(FileNotFoundError):
                new.unlink()
            new.symlink_to(path)
            self._put(new, self._address.path)
        return listener

    def _put(self, new: Path, path: Path) -> None:
        os.replace(new, path)
        self._made[path] = _identity(path)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(_BREATH)  # as many connections as descriptors: some will end
                continue
            with self._lock:
                self._open.add(connection)
            try:
                threading.Thread(target=self._serve, args=(connection,), name="connection", daemon=True).start()
            except RuntimeError:  # no more threads
                self._let_go(connection)
                time.sleep(_BREATH)

    def _serve(self, connection: socket.socket) -> None:
        try:
            if not self._is_ours(connection):
                return
            self._lease(True)
            try:
                self._talk(connection)
            finally:
                self._lease(False)
        except OSError:
            pass
        finally:
            self._let_go(connection)

    def _let_go(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def _talk(self, connection: socket.socket) -> None:
        # One side's timeout is both's: reading waits for as long as it takes, by asking again.
        connection.settimeout(SEND_SECONDS)
        sending = threading.Lock()

        def send(frame: bytes) -> None:
            with sending:
                try:
                    connection.sendall(frame + b"\n")
                except OSError:
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)

        rpc = Connection(self._handler_of(send, self._token), self._slots, send, self._lanes)
        lines = Lines()
        try:
            while True:
                try:
                    data = connection.recv(_CHUNK)
                except TimeoutError:
                    continue
                if not data:
                    return
                received = time.monotonic()
                for line in lines.feed(data):
                    if line is None:
                        problem = f"not a JSON message: longer than {FRAME_LIMIT} bytes"
                        send(error_frame(RpcError(PARSE_ERROR, problem)))
                    else:
                        rpc.receive(line, received)
        finally:
            rpc.stop(answer=False)

    def _is_ours(self, connection: socket.socket) -> bool:
        """Whether the other side runs as this user, where the system tells; the file's mode says so everywhere."""
        option = getattr(socket, "SO_PEERCRED", None)
        if option is None or self._address.port_file:
            return True
        size = struct.calcsize("3i")
        _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, size))
        return bool(user in (os.getuid(), 0))


def _identity(path: Path) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def same(token: str | None, given: object) -> bool:
    """Whether a token that was given is the one that is asked for; without one nothing is."""
    return token is None or (isinstance(given, str) and hmac.compare_digest(token.encode(), given.encode()))
