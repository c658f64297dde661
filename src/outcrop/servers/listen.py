"""Listening for HTTP: the socket, how long a client may take, and how it all ends.

A signal ends it gracefully: nothing new is accepted, running calls answer that they were cancelled, and what is
written is still sent.
"""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from outcrop.errors import EXIT_INTERRUPTED, EXIT_OK

if TYPE_CHECKING:
    from starlette.types import ASGIApp

CONNECTIONS = 128
"""Open at once; further ones are told to come again."""
HEAD_SECONDS = 10.0
"""A request's head must have come after this time."""
IDLE_SECONDS = 30
GRACE_SECONDS = 5
HEAD_LIMIT = 32 * 1024


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError that says why there is none."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(f"cannot listen at {host}, port {port}: {reason}") from None


def is_loopback(listener: socket.socket) -> bool:
    """Whether nothing but this machine reaches a socket."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def serve(app: ASGIApp, listener: socket.socket, ending: Callable[[], None]) -> int:
    """Serve until a signal comes; the exit code. `ending` is called before the last answers. Main thread only."""
    server = _Server(
        uvicorn.Config(
            app,
            http=_Patient,
            ws="none",
            lifespan="off",
            loop="asyncio",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,  # addresses would be told, and nobody reads them
            proxy_headers=False,  # who a client is, it does not say itself
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=HEAD_LIMIT,
        ),
        ending,
    )
    server.run([listener])
    return EXIT_INTERRUPTED if server.signal == signal.SIGINT else EXIT_OK


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self.signal: int | None = None
        self._ending = ending

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals end the server, and are over with that."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        yield

    def _on_signal(self, number: int, frame: Any) -> None:
        self.force_exit = self.signal is not None
        self.signal = self.signal or number
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        await super().shutdown(sockets)


class _Patient(H11Protocol):
    """Waits for the head of a request, but not for ever: an idle connection costs a place."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait()
        else:
            self._enough()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enough()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _enough(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
