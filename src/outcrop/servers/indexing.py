"""The methods of the indexer's local door: hello, status, leave, its jobs, and session search.

`hello` comes first; session search needs it only where a token is asked for. A job runs in a slot; its progress is
told as notifications, and it may be cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from typing import Any, Protocol

from outcrop import __version__
from outcrop.errors import Cancelled, OutcropError
from outcrop.servers.door import same
from outcrop.servers.jsonrpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Call,
    Id,
    Message,
    RpcError,
    notification_frame,
)
from outcrop.servers.local import is_newer
from outcrop.servers.vault import METHODS, VaultCall, VaultMethods, cancelled_id

JOB_ERROR = -32000
"""A job that failed; `data` holds the typed error: `code`, `kind`, `details`."""
_TELL_SECONDS = 0.1
"""Between two words on how far a job is, and two looks whether it is still wanted."""


class Indexing(Protocol):
    """The indexer behind the door."""

    @property
    def names(self) -> Sequence[str]:
        """Its jobs."""

    def hello(self, told: Any) -> None: ...

    def status(self) -> dict[str, Any]: ...

    def progress(self) -> tuple[str, int, int, int] | None:
        """(path, bytes done, bytes in all, events) of the pass that it is at."""

    def leave(self, reason: str) -> None: ...

    def begin(
        self, name: str, params: dict[str, Any], tell: Callable[[str, int, int, int], None]
    ) -> Future[dict[str, Any]]: ...


@dataclass(slots=True)
class IndexerMethods:
    """One connection's (`jsonrpc.Handler`). `send` tells the client of progress; `token` is what it must know."""

    indexer: Indexing
    vault: VaultMethods
    send: Callable[[bytes], None]
    token: str | None = None
    greeted: bool = False

    def answer(self, message: Message) -> dict[str, Any]:
        if message.method == "hello":
            return self._hello(message.params)
        self._known()
        match message.method:
            case "status":
                return self.indexer.status()
            case "leave":
                self.indexer.leave("it was asked to leave")
                return {}
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"method not found: {message.method}")

    def begin(self, message: Message, call: Call) -> _JobCall | VaultCall | None:
        if message.method in METHODS:
            if self.token is not None:
                self._known()
            return self.vault.begin(message, call)
        if message.method not in self.indexer.names:
            return None
        self._known()
        return _JobCall(self, message, call)

    def cancels(self, message: Message) -> Id | None:
        return cancelled_id(message)

    def _known(self) -> None:
        if not self.greeted:
            raise RpcError(INVALID_REQUEST, "say hello first")

    def _hello(self, params: dict[str, Any]) -> dict[str, Any]:
        if not same(self.token, params.get("token")):
            raise RpcError(INVALID_REQUEST, "the token is wrong")
        self.greeted = True
        if params.get("environment") is not None:
            try:
                self.indexer.hello(params["environment"])
            except OutcropError as error:
                raise _told(error) from None
        if is_newer(params.get("version"), __version__):
            # The newer one migrates the store; this one cannot read it then.
            self.indexer.leave("a newer version takes over")
        return {"version": __version__}


@dataclass(slots=True)
class _JobCall:
    """A job as a request in flight (`jsonrpc.Work`)."""

    methods: IndexerMethods
    message: Message
    call: Call
    answered: dict[str, Any] | None = None
    heard: tuple[str, int, int, int] | None = None
    told: tuple[str, int, int, int] | None = None

    def run(self) -> dict[str, Any]:
        try:
            done = self.methods.indexer.begin(self.message.method, self.message.params, self._hear)
            while not wait([done], _TELL_SECONDS).done:
                if self.call.cancelled():
                    done.cancel()
                else:
                    self._tell(done)
            self._tell(done)  # a quick job was at no time looked at
            return done.result()
        except CancelledError:
            return self.refuse(Cancelled("the request was cancelled"))
        except OutcropError as error:
            return self.refuse(error)

    def refuse(self, error: OutcropError) -> dict[str, Any]:
        raise _told(error)

    def _hear(self, path: str, done: int, total: int, events: int) -> None:
        """On the indexer's own thread: a client that reads slowly must not hold that up."""
        if self.call.cancelled():
            raise Cancelled("the request was cancelled")
        self.heard = (path, done, total, events)

    def _tell(self, done: Future[dict[str, Any]]) -> None:
        """Of the job, or while that waits of the pass before it."""
        heard = self.heard or (None if done.running() else self.methods.indexer.progress())
        if heard is not None and heard != self.told:
            self.told = heard
            told = dict(zip(("path", "done", "total", "events"), heard, strict=True))
            self.methods.send(notification_frame("progress", told))


def _told(error: OutcropError) -> RpcError:
    data = {"code": error.code, "kind": type(error).__name__, "details": error.details}
    return RpcError(JOB_ERROR, error.message, data)
