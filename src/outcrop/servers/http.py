"""The HTTP doors: `POST /rpc` for session search, `POST /mcp` for the tools; one JSON-RPC message a request.

Calls run in threads under the same admission as everywhere. A client that closes its connection cancels its call:
there are no sessions, and nothing in one request can name another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from outcrop.servers import mcp_http
from outcrop.servers.jsonrpc import Connection, Handler, Message, RpcError, Slots, error_frame, parse

if TYPE_CHECKING:
    from outcrop.servers.mcp import Protocol

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of the longest request."""
BODY_SECONDS = 15.0
"""A request's body must have come after this time."""
CALL_SECONDS = 60.0
"""A call that takes longer is stopped."""
STOP_SECONDS = 5.0
"""A call that was stopped is given so long to say so."""

Check = Callable[[Message, Request], Callable[[int | None], int]]
"""Holds a message against its request; which HTTP status an answer gets by its error code. Raises RpcError."""


class Calls:
    """The calls of all requests that are in flight."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._open: set[Connection] = set()

    def stop(self) -> None:
        """Have all of them answer that they were cancelled: the server ends."""
        for connection in list(self._open):
            connection.stop(answer=True)

    async def run(self, handler: Handler, frame: bytes, received: float, request: Request) -> bytes | None:
        """The answer to a frame; None where its client is gone. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()

        def answered(frame: bytes) -> None:
            if not answer.done():
                answer.set_result(frame)

        def send(frame: bytes) -> None:
            loop.call_soon_threadsafe(answered, frame)

        connection = Connection(handler, self._slots, send)
        self._open.add(connection)
        gone = asyncio.create_task(_gone(request))
        either: set[asyncio.Future[Any]] = {answer, gone}
        try:
            await asyncio.to_thread(connection.receive, frame, received)
            await asyncio.wait(either, timeout=CALL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and not gone.done():
                connection.stop(answer=True)
                await asyncio.wait(either, timeout=STOP_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            if gone.done():
                return None
            raise TimeoutError
        finally:
            gone.cancel()
            connection.stop(answer=False)
            self._open.discard(connection)


async def _gone(request: Request) -> None:
    """Returns once the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class Door:
    """One path: a handler, and what is checked before it."""

    def __init__(self, handler: Handler, calls: Calls, check: Check) -> None:
        self._handler = handler
        self._calls = calls
        self._check = check

    async def __call__(self, request: Request) -> Response:
        received = time.monotonic()
        if _media(request.headers.get("content-type", "")) != "application/json":
            return _refused(415, "the body must be application/json")
        if request.headers.get("content-encoding", "identity") != "identity":
            return _refused(415, "the body must not be encoded")
        if not _takes_json(request.headers.get("accept")):
            return _refused(406, "the answer is application/json")
        try:
            frame = await asyncio.wait_for(_body(request), BODY_SECONDS)
        except TimeoutError:
            return _refused(408, "the body did not come in time", close=True)
        except ClientDisconnect:
            return Response(status_code=400)
        if frame is None:
            return _refused(413, f"the body is longer than {BODY_LIMIT} bytes", close=True)
        try:
            message = parse(frame)
        except RpcError as error:
            return _json(error_frame(error), 400)
        if message is None:
            return Response(status_code=202)  # an answer, to a question that nobody asked
        try:
            status_of = self._check(message, request)
        except RpcError as error:
            return _json(error_frame(error, message.id), mcp_http.STATUS.get(error.code, 400))
        if message.id is None:
            await asyncio.to_thread(self._handler.cancels, message)
            return Response(status_code=202)
        try:
            answer = await self._calls.run(self._handler, frame, received, request)
        except TimeoutError:
            return _refused(504, "the call took too long")
        return Response(status_code=400) if answer is None else _json(answer, status_of(_code(answer)))


def application(slots: Slots, mcp: Protocol, rpc: Handler | None = None) -> tuple[Starlette, Calls]:
    """The app without its gate, and its calls. Without `rpc` there is no `/rpc`."""
    calls = Calls(slots)
    routes = [Route("/mcp", Door(mcp, calls, _check_mcp).__call__, methods=["POST"])]
    if rpc is not None:
        routes.append(Route("/rpc", Door(rpc, calls, _check_rpc).__call__, methods=["POST"]))
    return Starlette(routes=routes), calls


def _check_mcp(message: Message, request: Request) -> Callable[[int | None], int]:
    stateless = mcp_http.check(message, request.headers.items())
    return _status if stateless else _always_200


def _check_rpc(message: Message, request: Request) -> Callable[[int | None], int]:
    return _always_200


def _status(code: int | None) -> int:
    return 200 if code is None else mcp_http.STATUS.get(code, 200)


def _always_200(code: int | None) -> int:
    return 200


def _code(answer: bytes) -> int | None:
    """The error code of an answer, None for a result."""
    import json

    if b'"error":{"code":' not in answer[:400]:
        return None
    told: Mapping[str, dict[str, int]] = json.loads(answer)
    return told["error"]["code"] if "error" in told else None


async def _body(request: Request) -> bytes | None:
    """None where it is too long."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > BODY_LIMIT:
        return None
    held = bytearray()
    async for chunk in request.stream():
        held += chunk
        if len(held) > BODY_LIMIT:
            return None
    return bytes(held)


def _media(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _takes_json(accept: str | None) -> bool:
    if accept is None:
        return True
    return any(_media(part) in ("application/json", "application/*", "*/*") for part in accept.split(","))


def _json(body: bytes, status: int) -> Response:
    return Response(body, status, {"Cache-Control": "no-store"}, "application/json")


def _refused(status: int, message: str, close: bool = False) -> Response:
    return JSONResponse({"error": message}, status, {"Connection": "close"} if close else None)
