"""The way to a paired runtime: `outcrop serve` over there, asked over HTTP with the token that it gave.

The token goes to the address that it was stored with and nowhere else: no redirect is followed, no proxy is asked.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from outcrop.contracts.vault.remote import Unreachable
from outcrop.errors import InvalidRequest
from outcrop.servers import answers

CONNECT_SECONDS = 10.0
ANSWER_LIMIT = 16 * 1024 * 1024
_CHUNK = 64 * 1024


def checked_url(url: str) -> str:
    """The URL of a runtime, without `/` at its end. Raises InvalidRequest."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise _no_url(url) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise _no_url(url)
    if "@" in parts.netloc:
        raise InvalidRequest("--url: a password in a URL is for everybody to see; the token is given apart", "url")
    return url.rstrip("/")


def is_open(url: str) -> bool:
    """Whether others on the way can read what is sent there."""
    parts = urlsplit(url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return True


def _no_url(url: str) -> InvalidRequest:
    return InvalidRequest(f"--url: {url!r} is no http or https URL", "url")


class RuntimePeer:
    """One runtime (`remote.Peer`). Keeps its connection. Close it when done."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(checked_url(url))
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)
        self._path = f"{parts.path}/rpc"
        self._token = token
        self._lock = threading.Lock()
        self._last = 0

    def call(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        with self._lock:
            until = time.monotonic() + seconds
            self._last += 1
            body = json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
            try:
                status, data = self._post(body.encode(), until)
            except TimeoutError:
                self.close()
                raise Unreachable("the host did not answer in time") from None
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if time.monotonic() >= until:
                    raise Unreachable("the host did not answer in time") from None
                raise Unreachable(f"the host cannot be reached: {_reason(error)}") from None
            return self._answer(status, data)

    def close(self) -> None:
        self._connection.close()

    def _answer(self, status: int, data: bytes) -> Any:
        if status == 401:
            raise Unreachable("the host does not know the token, or not any more")
        if status not in (200, 400, 404):
            self.close()
            raise Unreachable(f"the host answered with HTTP status {status}")
        answer = answers.object_of(data)
        # Only an answer to this very request; a plain 404 is no word about methods.
        if answer.get("id") != self._last or (answer.get("jsonrpc") != "2.0" and "ok" not in answer):
            raise Unreachable(f"the host answered something else (HTTP status {status})")
        return answers.result(answer)

    def _post(self, body: bytes, until: float) -> tuple[int, bytes]:
        # A kept connection that the far side has closed is found out by using it; then one is made anew, once.
        fresh = self._connection.sock is None
        try:
            return self._once(body, until)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self.close()
            if fresh:
                raise
            return self._once(body, until)

    def _once(self, body: bytes, until: float) -> tuple[int, bytes]:
        connection = self._connection
        if connection.sock is None:
            connection.timeout = max(0.01, min(CONNECT_SECONDS, until - time.monotonic()))
            connection.connect()
        reached = connection.sock
        reached.settimeout(max(0.01, until - time.monotonic()))
        # A far side that sends a byte now and then never runs into the socket's own limit.
        last = threading.Timer(max(0.01, until - time.monotonic()), _cut, [reached])
        last.daemon = True
        last.start()
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
            connection.request("POST", self._path, body, headers)
            with connection.getresponse() as answer:
                held = bytearray()
                while piece := answer.read(_CHUNK):
                    held += piece
                    if len(held) > ANSWER_LIMIT:
                        raise http.client.HTTPException("its answer is too long")
                if answer.length:  # reading piece by piece does not complain of an end that comes too early
                    raise http.client.IncompleteRead(bytes(held), answer.length)
                return answer.status, bytes(held)
        finally:
            last.cancel()


def _cut(reached: socket.socket) -> None:
    try:
        reached.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)[:200] or type(error).__name__
