"""The text of a stored event as it is searched, and what stands in it."""

from __future__ import annotations

from collections.abc import Sequence

from outcrop import calls
from outcrop.model import Content, EventRow, EventType


def searched_text(event: EventRow, content: Content) -> str:
    """The text that was searched."""
    if event.type is EventType.TOOL_CALL:
        return calls.searchable_call(event.tool, content.arguments)
    return content.text


def stands_in(phrase: Sequence[str], terms: Sequence[str]) -> bool:
    """Whether the tokens stand side by side, in this order, among the terms of a text."""
    return f" {' '.join(phrase)} " in f" {' '.join(terms)} "
