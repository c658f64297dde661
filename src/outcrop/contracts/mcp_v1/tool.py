"""What one MCP tool is to its callers: how it describes itself, how it reads arguments, how it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from outcrop.contracts.mcp_v1.envelope import Context


class Request(Protocol):
    """Arguments that have been checked."""

    def canonical(self) -> dict[str, Any]:
        """The request as it is echoed, defaults applied (ruling 2)."""


@dataclass(slots=True, frozen=True)
class Answer:
    data: dict[str, Any]
    warnings: list[str]


@dataclass(slots=True, frozen=True)
class Tool:
    """`parse` raises an OutcropError for arguments at fault and touches no store; `answer` may raise anything."""

    name: str
    title: str
    description: str
    input_schema: Callable[[Context], dict[str, Any]]
    output_schema: dict[str, Any]
    parse: Callable[[Any, Context], Any]
    answer: Callable[[Any, Context], Answer]

    @property
    def annotations(self) -> dict[str, Any]:
        return {"title": self.title, "readOnlyHint": True}
