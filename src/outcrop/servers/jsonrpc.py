"""JSON-RPC 2.0 without a transport: messages, the calls in flight, and how many of them may run.

A transport hands every frame to a `Connection` and gets frames back through `send`. What the methods mean is the
`Handler`'s. Each request gets exactly one answer, except one that its client cancelled, which gets none (ruling 25).
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from outcrop.errors import Busy, Cancelled, OutcropError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id = str | int | float


class RpcError(Exception):
    """An error of the protocol itself; what goes wrong inside a tool is no such error but a result (ruling 17)."""

    def __init__(self, code: int, message: str, data: Any = None, id: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class UnknownVersion(RpcError):
    """A message that does not say that it is JSON-RPC 2.0."""


@dataclass(slots=True, frozen=True)
class Message:
    """A request, or with `id` None a notification."""

    method: str
    params: dict[str, Any]
    id: Id | None


def parse(frame: bytes) -> Message | None:
    """The message of one frame; None for a response, which no server asked for.

    Raises RpcError, with the id of the request where it could be read.
    """
    try:
        value = json.loads(frame.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        # An int of more than 4,300 digits is a ValueError too.
        raise RpcError(PARSE_ERROR, f"not a JSON message: {_reason(error)}") from None
    if isinstance(value, list):
        raise RpcError(INVALID_REQUEST, "batches are not supported: send one message a line")
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "a message is a JSON object")
    id = value.get("id")
    if "method" not in value and ("result" in value or "error" in value):
        return None
    if not _is_id(id) and "id" in value:
        raise RpcError(INVALID_REQUEST, "id must be a string or a number")
    if value.get("jsonrpc") != "2.0":
        raise UnknownVersion(INVALID_REQUEST, 'jsonrpc must be "2.0"', id=id)
    method = value.get("method")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string", id=id)
    params = value.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "invalid params: must be an object", id=id)
    return Message(method, params, id)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "a number has too many digits" if "digits" in str(error) else str(error)[:100]


def _is_id(value: Any) -> bool:
    # A float that overflowed to infinity could not be echoed as JSON.
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value not in (_INFINITE, -_INFINITE)


_INFINITE = float("inf")


def result_frame(id: Id, result: dict[str, Any]) -> bytes:
    """One line without its line end."""
    return _frame({"jsonrpc": "2.0", "id": id, "result": result})


def error_frame(error: RpcError, id: Id | None = None) -> bytes:
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return _frame({"jsonrpc": "2.0", "id": error.id if id is None else id, "error": told})


def notification_frame(method: str, params: dict[str, Any]) -> bytes:
    return _frame({"jsonrpc": "2.0", "method": method, "params": params})


def _frame(value: dict[str, Any]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, echoed from a request: only its escape can be sent
        return json.dumps(value, separators=(",", ":")).encode("ascii")


class Call:
    """One request in flight, and the way to stop it."""

    def __init__(self, id: Id | None, received: float) -> None:
        self.id = id
        self.received = received
        """`time.monotonic()` of the frame's arrival (ruling 31)."""
        self.wanted = True
        """Whether the client still waits for an answer."""
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def cancelled(self) -> bool:
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, at most until the call is stopped; True if it was."""
        return self._stopped.wait(seconds)


class Work(Protocol):
    """A request that was found valid and may take a while."""

    answered: dict[str, Any] | None
    """The result already, where there is nothing to be done."""

    def run(self) -> dict[str, Any]:
        """The result."""

    def refuse(self, error: OutcropError) -> dict[str, Any]:
        """The result that tells why it was not done."""


class Handler(Protocol):
    """The methods behind a connection. Everything but `Work.run` must be quick: it holds up the reader."""

    def answer(self, message: Message) -> dict[str, Any]:
        """The result of a quick request. Raises RpcError."""

    def begin(self, message: Message, call: Call) -> Work | None:
        """The work that a request asks for, None if it is a quick one. Raises RpcError."""

    def cancels(self, message: Message) -> Id | None:
        """The id of the request that a notification cancels."""


class Slots:
    """Admission: so many calls run, so many wait in order, the next is refused (ruling 24).

    One `Slots` serves all connections of a process. Threads start with the first calls and then stay.
    """

    def __init__(self, running: int = 4, waiting: int = 16) -> None:
        self.running = running
        self.waiting = waiting
        self._jobs: deque[Callable[[], None]] = deque()
        self._busy = 0
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._changed = threading.Condition()

    def submit(self, job: Callable[[], None]) -> bool:
        """Run `job` as soon as there is a place; False where even the queue is full. A job must not raise."""
        with self._changed:
            taken = self._busy + len(self._jobs)
            if taken >= self.running + self.waiting:
                return False
            self._jobs.append(job)
            if len(self._threads) < min(taken + 1, self.running):
                thread = threading.Thread(target=self._work, name=f"call-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
            return True

    def withdraw(self, job: Callable[[], None]) -> None:
        """Free the place of a job that still waits."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)

    def idle(self) -> bool:
        with self._changed:
            return not self._busy and not self._jobs

    def close(self, seconds: float) -> bool:
        """Let the threads end when nothing waits any more, and wait for them; True if all ended in time."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs:
                    if self._closed:
                        return
                    self._changed.wait()
                job = self._jobs.popleft()
                self._busy += 1
            try:
                job()
            finally:
                with self._changed:
                    self._busy -= 1


@dataclass(slots=True)
class _Flight:
    call: Call
    job: Callable[[], None]
    slots: Slots


@dataclass(slots=True, eq=False)
class Connection:
    """One client: takes its frames, sends each answer, knows what it has in flight."""

    handler: Handler
    slots: Slots
    send: Callable[[bytes], None]
    """Takes one frame; called from any thread."""
    lanes: Mapping[str, Slots] = field(default_factory=dict)
    """Methods that have slots of their own."""
    ignores_other_versions: bool = False
    """Whether a message of another JSON-RPC gets no answer, as the relay's do."""
    _flights: dict[str, _Flight] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def receive(self, frame: bytes, received: float) -> None:
        """Handle one frame. Never raises: what is wrong with it is answered."""
        try:
            message = parse(frame)
        except RpcError as error:
            if not (self.ignores_other_versions and isinstance(error, UnknownVersion)):
                self.send(error_frame(error))
            return
        if message is None:
            return
        if message.id is None:
            target = self.handler.cancels(message)
            if target is not None:
                self._cancel(target)
            return
        try:
            answer = self._request(message, message.id, received)
        except Exception as error:  # the outermost border of a request: whatever went wrong is answered
            answer = error_frame(_told(error), message.id)
        if answer is not None:
            self.send(answer)

    def stop(self, answer: bool) -> None:
        """Stop all that is in flight: at a shutdown it answers `cancelled`, to a client that is gone nothing."""
        with self._lock:
            flights = list(self._flights.values())
            for flight in flights:
                flight.call.wanted = answer
        for flight in flights:
            flight.call.stop()
            if not answer:
                flight.slots.withdraw(flight.job)

    def _request(self, message: Message, id: Id, received: float) -> bytes | None:
        """The answer to a request; None where it comes later, from a slot."""
        key = json.dumps(id)
        with self._lock:
            if key in self._flights:
                raise RpcError(INVALID_REQUEST, "duplicate request id is already in flight")
        call = Call(id, received)
        work = self.handler.begin(message, call)
        if work is None:
            return result_frame(id, self.handler.answer(message))
        if work.answered is not None:
            return result_frame(id, work.answered)

        def job() -> None:
            self._run(key, work, call, id)

        slots = self.lanes.get(message.method, self.slots)
        with self._lock:
            self._flights[key] = _Flight(call, job, slots)
        if slots.submit(job):
            return None
        self._landed(key, call)
        full = {"reason": "queue_full", "max_executing": slots.running, "max_queued": slots.waiting}
        return result_frame(id, work.refuse(Busy("the queue of calls is full; try again later", full)))

    def _run(self, key: str, work: Work, call: Call, id: Id) -> None:
        try:
            stopped = call.cancelled()
            result = work.refuse(Cancelled("the request was cancelled")) if stopped else work.run()
            answer = result_frame(id, result)
        except Exception as error:  # the outermost border of a call: its slot and its id must come free
            answer = error_frame(_told(error), id)
        if self._landed(key, call):
            self.send(answer)

    def _landed(self, key: str, call: Call) -> bool:
        """Take a call out of flight; whether its answer is still wanted."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None and flight.call is call:
                del self._flights[key]
            return call.wanted

    def _cancel(self, id: Id) -> None:
        with self._lock:
            flight = self._flights.pop(json.dumps(id), None)
            if flight is None:
                return
            flight.call.wanted = False
        flight.call.stop()
        flight.slots.withdraw(flight.job)


def _told(error: Exception) -> RpcError:
    if isinstance(error, RpcError):
        return error
    import logging

    logging.getLogger(__name__).error("a request failed", exc_info=error)
    return RpcError(INTERNAL_ERROR, "request failed")
