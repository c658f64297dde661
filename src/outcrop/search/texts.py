"""The text of a stored event as it is searched, and what stands in it."""

from __future__ import annotations

from collections.abc import Sequence

from outcrop import calls
from outcrop.model import Content, EventRow, EventType
from outcrop.store.embedded import analysis

_BETWEEN_WORDS = {code: " " for code in range(128) if not chr(code).isalnum()}


def searched_text(event: EventRow, content: Content) -> str:
    """The text that was searched."""
    if event.type is EventType.TOOL_CALL:
        return calls.searchable_call(event.tool, content.arguments)
    return content.text


def stands_in(phrase: Sequence[str], terms: Sequence[str]) -> bool:
    """Whether the tokens stand side by side, in this order, among the terms of a text."""
    return f" {' '.join(phrase)} " in f" {' '.join(terms)} "


def stands(phrase: Sequence[str], text: str) -> bool:
    """The same of a text. Most are ASCII, whose words are known without the analyzer, at a fifth of the time."""
    if text.isascii():
        words = text.lower().translate(_BETWEEN_WORDS).split()
        if len(max(words, key=len, default="")) > analysis.LONGEST_TERM:  # the index passes over them
            words = [word for word in words if len(word) <= analysis.LONGEST_TERM]
        return stands_in(phrase, words)
    return stands_in(phrase, analysis.exact().analyze(analysis.normal(text)))
