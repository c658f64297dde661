"""The Model Context Protocol over any transport: handshake, tool list, tool calls.

Two eras are served side by side, each request by its own: up to 2025-11-25 a client begins with `initialize`; from
2026-07-28 on there is no session, and every request names its version in `_meta`. The tools themselves are the
contract's; it and the store are imported and opened with the first request that needs them, so that a server which
is only started costs next to nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from outcrop import __version__, faults
from outcrop.errors import Cancelled, OutcropError
from outcrop.servers.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Call, Id, Message, RpcError

if TYPE_CHECKING:
    from outcrop.contracts import mcp_v1
    from outcrop.contracts.mcp_v1.envelope import Context

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)
UNSUPPORTED_VERSION = -32022

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = f"{_PREFIX}protocolVersion"
CAPABILITIES_KEY = f"{_PREFIX}clientCapabilities"
SERVER_KEY = f"{_PREFIX}serverInfo"

SERVER = {"name": "outcrop", "title": "Outcrop", "version": __version__}
CAPABILITIES = {"tools": {"listChanged": False}}
LIST_LIFETIME_MS = 60_000
"""How long a client may keep the tool list: it changes only with the sources that hold data."""

INSTRUCTIONS = """\
Outcrop is the searchable memory of the coding agents on this machine: what users asked, what agents answered and did, \
in every past session. Look here before redoing work, and whenever the user refers to something that was said, tried \
or decided earlier.

1. search_sessions finds events by words and returns handles with snippets, not contents. It searches user input and \
assistant responses; name tool_call, tool_response or reasoning in event_types to search those.
2. open a hit's event id to read it in full.
3. open its turn id for the course of events around it, then open the events that matter.
4. open its session id for an overview. Session and turn answers are summaries: pass limit, then next_cursor, to page \
through them.
list_sessions shows which sessions were active in a time window.
file_attention tells which sessions read or changed a file, in every worktree: ask it before you change a file that \
others may have worked on.
Every id in an answer can be given to open. within_id narrows a search to one session or turn.

"""


def instructions(sources: Sequence[str]) -> str:
    """What a model should know beforehand, with every configured source in full (ruling 7)."""
    named = (
        f"Configured sources (the values of `source`): {', '.join(sources)}." if sources else "No source is configured."
    )
    return INSTRUCTIONS + named


class Toolbox:
    """The contract's tools, made ready on first use by whichever thread comes first.

    `open_context` gives the context that all calls share; each call adds its own way to be cancelled.
    """

    def __init__(self, open_context: Callable[[], Context], sources: Sequence[str]) -> None:
        self.sources = sources
        self._open_context = open_context
        self._context: Context | None = None
        self._lock = threading.Lock()

    def list(self) -> list[dict[str, Any]]:
        """The entries of `tools/list`, in a stable order."""
        from outcrop.contracts.mcp_v1 import TOOLS

        context = self.context()
        return [
            {
                "name": name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input_schema(context),
                "outputSchema": tool.output_schema,
                "annotations": {"readOnlyHint": True, "openWorldHint": False},
            }
            for name, tool in TOOLS.items()
        ]

    def begin(self, name: str, arguments: Any, call: Call) -> mcp_v1.Call:
        """Read the arguments of a call. Touches no store."""
        from outcrop.contracts.mcp_v1 import begin

        context = replace(self.context(), cancelled=call.cancelled)
        return begin(name, arguments, context, call.received)

    def context(self) -> Context:
        with self._lock:
            if self._context is None:
                self._context = self._open_context()
            return self._context


@dataclass(slots=True)
class ToolCall:
    """One `tools/call` (`jsonrpc.Work`)."""

    begun: mcp_v1.Call
    call: Call
    stateless: bool
    answered: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.begun.rejected is not None:
            self.answered = self._wrap(self.begun.rejected)

    def run(self) -> dict[str, Any]:
        if faults.ACTIVE and self.call.wait(faults.delay(self.begun.name)):
            return self.refuse(Cancelled("the request was cancelled"))
        return self._wrap(self.begun.run())

    def refuse(self, error: OutcropError) -> dict[str, Any]:
        return self._wrap(self.begun.refuse(error))

    def _wrap(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """The result around an envelope: rulings 17 (`isError`) and 19 (text for a model that sees text alone)."""
        from outcrop.contracts.mcp_v1 import text

        result = {
            "content": [{"type": "text", "text": text.render(envelope)}],
            "structuredContent": envelope,
            "isError": "error" in envelope,
        }
        return _complete(result) if self.stateless else result


class Protocol:
    """MCP's methods over a toolbox (`jsonrpc.Handler`). `needed` is called once a client is there and at each call."""

    def __init__(self, toolbox: Toolbox, needed: Callable[[], None] | None = None) -> None:
        self.toolbox = toolbox
        self._needed = needed or _nothing

    def answer(self, message: Message) -> dict[str, Any]:
        if _stateless(message):
            return _complete(self._answer_stateless(message.method))
        match message.method:
            case "initialize":
                asked = message.params.get("protocolVersion")
                return {
                    "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
                    **self._introduction(),
                    "serverInfo": SERVER,
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": self.toolbox.list()}
            case _:
                raise _unknown(message.method)

    def begin(self, message: Message, call: Call) -> ToolCall | None:
        if message.method != "tools/call":
            return None
        self._needed()
        stateless = _stateless(message)
        name = message.params.get("name")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "invalid params: name must be a string")
        return ToolCall(self.toolbox.begin(name, message.params.get("arguments"), call), call, stateless)

    def cancels(self, message: Message) -> Id | None:
        if message.method == "notifications/initialized":
            self._needed()
        target = message.params.get("requestId")
        is_id = isinstance(target, str | int | float) and not isinstance(target, bool)
        return target if message.method == "notifications/cancelled" and is_id else None

    def _answer_stateless(self, method: str) -> dict[str, Any]:
        fresh = {"ttlMs": LIST_LIFETIME_MS, "cacheScope": "private"}
        match method:
            case "server/discover":
                return {"supportedVersions": list(STATELESS_VERSIONS), **self._introduction(), **fresh}
            case "tools/list":
                return {"tools": self.toolbox.list(), **fresh}
            case _:
                raise _unknown(method)

    def _introduction(self) -> dict[str, Any]:
        return {"capabilities": CAPABILITIES, "instructions": instructions(self.toolbox.sources)}


def _stateless(message: Message) -> bool:
    """Whether a request is of the era without handshakes. Raises RpcError if it says so and lacks what that takes."""
    meta = message.params.get("_meta")
    named = isinstance(meta, dict) and VERSION_KEY in meta
    if not named and message.method != "server/discover":
        return False
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if not isinstance(meta, dict) or key not in meta]
    if missing:
        raise RpcError(INVALID_PARAMS, f"invalid params: _meta lacks {', '.join(missing)}")
    assert isinstance(meta, dict)
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"invalid params: _meta {VERSION_KEY} must be a string")
    if version not in STATELESS_VERSIONS:
        supported = {"supported": list(STATELESS_VERSIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", supported)
    if not isinstance(meta[CAPABILITIES_KEY], dict):
        raise RpcError(INVALID_PARAMS, f"invalid params: _meta {CAPABILITIES_KEY} must be an object")
    return True


def _complete(result: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "complete", **result, "_meta": {SERVER_KEY: SERVER}}


def _nothing() -> None:
    return None


def _unknown(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"method not found: {method}")
