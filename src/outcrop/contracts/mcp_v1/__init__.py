"""The MCP retrieval contract, version 1: four tools as functions from arguments to envelope.

`call` is all that a command needs. A server that admits calls uses `begin` first: bad arguments are answered at once,
without a place in the queue (ruling 24).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from outcrop.contracts.mcp_v1 import text
from outcrop.contracts.mcp_v1.envelope import Context, classify, failure, success
from outcrop.contracts.mcp_v1.tool import Tool
from outcrop.errors import Cancelled, DeadlineExceeded, InvalidRequest, OutcropError

__all__ = ["TOOLS", "Call", "Context", "Tool", "begin", "call", "text"]


class _Tools(Mapping[str, Tool]):
    """Each tool is the module of its name, imported when it is asked for: a command needs one of them."""

    _names = ("search_sessions", "open", "list_sessions", "file_attention")

    def __getitem__(self, name: str) -> Tool:
        if name not in self._names:
            raise KeyError(name)
        tool: Tool = import_module(f"{__name__}.{name}").TOOL
        return tool

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


TOOLS: Mapping[str, Tool] = _Tools()
"""In the order of `tools/list`."""


@dataclass(slots=True)
class Call:
    """A call whose arguments have been read. `rejected` is the answer already, where they were at fault."""

    name: str
    tool: Tool | None
    parsed: Any
    request: Any
    context: Context
    received: float
    rejected: dict[str, Any] | None = None

    def run(self) -> dict[str, Any]:
        """The complete envelope; never raises."""
        if self.rejected is not None or self.tool is None:
            return self.rejected or self.refuse(InvalidRequest(f"unknown tool: {self.name}"))
        try:
            self.context.check()
            answer = self.tool.answer(self.parsed, self.context)
        except Cancelled as error:
            # Whoever works for a call knows only that it should stop, not why.
            late = self.context.late()
            return self.refuse(DeadlineExceeded("the deadline of the request has passed") if late else error)
        except Exception as error:  # the outermost border of a call: whatever it is becomes an envelope
            return self.refuse(classify(error))
        return success(self.name, self.request, answer.data, answer.warnings, self.received)

    def refuse(self, error: OutcropError) -> dict[str, Any]:
        """The error envelope for a reason that arose outside the call, such as a full queue."""
        return failure(self.name, self.request, error, self.received)


def begin(tool: str, arguments: Any, context: Context, received: float) -> Call:
    """Read the arguments of a call; touches no store. `received` is `time.monotonic()` of the frame (ruling 31)."""
    known = TOOLS.get(tool)
    started = Call(tool, known, None, arguments, context, received)
    if known is None:
        started.rejected = started.refuse(InvalidRequest(f"unknown tool: {tool}", tools=list(TOOLS)))
        return started
    try:
        started.parsed = known.parse(arguments, context)
        started.request = started.parsed.canonical()
    except Exception as error:  # hostile arguments must not end a server
        started.rejected = started.refuse(classify(error))
    return started


def call(tool: str, arguments: Any, context: Context, received: float | None = None) -> dict[str, Any]:
    """Run one tool: the complete success or error envelope; never raises."""
    return begin(tool, arguments, context, time.monotonic() if received is None else received).run()
