"""What every HTTP request must pass: Host and Origin that are ours, and the token of a paired client.

A page in somebody's browser can make requests to this machine, by its own name too (DNS rebinding): such a request has
a Host that nobody gave us, or an Origin, and goes no further. A token is looked up anew for each request and once more
before its answer begins, so a revoked one gets nothing. Wrong tokens are answered later and later.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from outcrop.servers.pairs import Pair, Pairs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "::1")
FREE_TRIES = 3
"""Wrong tokens from one address that are answered at once."""
SLOWEST = 5.0
"""Seconds that the answer to a wrong token waits at most."""
FORGIVEN_SECONDS = 300.0
WAITING = 8
"""Wrong tokens of one address that wait; while so many do, none of its tokens is looked at."""
_ADDRESSES = 1024


class Gate:
    """ASGI middleware. `names` are the host names that this server goes by, lower case."""

    def __init__(self, app: ASGIApp, pairs: Pairs, names: Collection[str]) -> None:
        self._app = app
        self._pairs = pairs
        self._names = frozenset([*names, *LOOPBACK])
        self._tries = Tries()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = self._stray(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        token = _bearer(headers)
        if token is None:
            await _unauthorized("a bearer token is needed")(scope, receive, send)
            return
        address = scope["client"][0] if scope.get("client") else ""
        if self._tries.crowded(address):
            await _refused(429, "too many wrong tokens", {"Retry-After": "5"})(scope, receive, send)
            return
        pair = await self._holder(token)
        if pair is None:
            await self._tries.wait(address)
            await _unauthorized("the token is not known, or not any more")(scope, receive, send)
            return
        self._tries.forget(address)
        await asyncio.to_thread(self._pairs.note_use, pair)
        await self._pass(token, scope, receive, send)

    async def _pass(self, token: str, scope: Scope, receive: Receive, send: Send) -> None:
        revoked = False

        async def checked(message: Message) -> None:
            nonlocal revoked
            if message["type"] == "http.response.start" and await self._holder(token) is None:
                revoked = True
                await _unauthorized("the token is not known any more")(scope, receive, send)
            if not revoked:
                await send(message)

        await self._app(scope, receive, checked)

    async def _holder(self, token: str) -> Pair | None:
        return await asyncio.to_thread(self._pairs.holder, token)

    def _stray(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that was meant for another host, or comes from another's page."""
        if not self._ours(_name(f"//{headers.get('host', '')}"), scope):
            return _refused(421, "this server does not go by that Host")
        if not all(self._ours(_name(origin), scope) for origin in headers.getlist("origin")):
            return _refused(403, "requests from that Origin are refused")
        return None

    def _ours(self, name: str | None, scope: Scope) -> bool:
        if name is None:
            return False
        if name in self._names:
            return True
        # The address that the connection came in at: no other machine's name can stand for it.
        server = scope.get("server")
        try:
            return server is not None and ipaddress.ip_address(name) == ipaddress.ip_address(server[0])
        except ValueError:
            return False


class Tries:
    """Wrong tokens by the address that they came from."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._waiting: dict[str, int] = {}

    def crowded(self, address: str) -> bool:
        return self._waiting.get(address, 0) >= WAITING

    def forget(self, address: str) -> None:
        self._wrong.pop(address, None)

    async def wait(self, address: str) -> None:
        """Note a wrong token, and wait for as long as its answer is to be held back."""
        count, last = self._wrong.pop(address, (0, 0.0))
        now = time.monotonic()
        count = 1 if now - last > FORGIVEN_SECONDS else count + 1
        self._wrong[address] = (count, now)
        while len(self._wrong) > _ADDRESSES:
            self._wrong.popitem(last=False)
        self._waiting[address] = self._waiting.get(address, 0) + 1
        try:
            await asyncio.sleep(delay(count))
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]


def delay(count: int) -> float:
    """Seconds before the answer to the `count`-th wrong token."""
    return 0.0 if count <= FREE_TRIES else float(min(0.1 * 2 ** min(count - FREE_TRIES, 10), SLOWEST))


def _bearer(headers: Headers) -> str | None:
    """The token; None where there is none, or more than one may be meant."""
    given = headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _name(url: str) -> str | None:
    """The host name of a URL, lower case, without port and final dot."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # a port that is none makes the whole no host
    except ValueError:
        return None
    if parts.hostname is None or "@" in parts.netloc:
        return None
    return parts.hostname.lower().removesuffix(".")


def _unauthorized(message: str) -> Response:
    return _refused(401, message, {"WWW-Authenticate": 'Bearer realm="outcrop"'})


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Whoever is refused need not keep the connection."""
    return JSONResponse({"error": message}, status, {**(headers or {}), "Connection": "close"})
