"""The text of a stored event as it is searched, and what stands in it."""

from __future__ import annotations

from collections.abc import Sequence

from outcrop import calls
from outcrop.model import Content, EventRow, EventType
from outcrop.store.embedded import analysis


def searched_text(event: EventRow, content: Content) -> str:
    """The text that was searched."""
    if event.type is EventType.TOOL_CALL:
        return calls.searchable_call(event.tool, content.arguments)
    return content.text


def stands_in(phrase: Sequence[str], terms: Sequence[str]) -> bool:
    """Whether the tokens stand side by side, in this order, among the terms of a text."""
    return f" {' '.join(phrase)} " in f" {' '.join(terms)} "


def stands(phrase: Sequence[str], text: str) -> bool:
    """The same of a text. Most are ASCII, in which the tokens are looked for at a tenth of the time of an analysis."""
    if not text.isascii():
        return stands_in(phrase, analysis.exact().analyze(analysis.normal(text)))
    lowered = text.lower()
    if _side_by_side(phrase, lowered):
        return True
    # The index passes over endless words, so that the words around one stand side by side.
    if max(map(len, lowered.split()), default=0) <= analysis.LONGEST_TERM:
        return False
    return stands_in(phrase, analysis.exact().analyze(text))


def _side_by_side(phrase: Sequence[str], lowered: str) -> bool:
    """Whether the tokens stand in this order in a text of lower case letters with no other word between."""
    end, first = len(lowered), phrase[0]
    begin = lowered.find(first)
    while begin >= 0:
        at = begin + len(first)
        if begin == 0 or not lowered[begin - 1].isalnum():
            for token in phrase[1:]:
                gap = at
                while at < end and not lowered[at].isalnum():
                    at += 1
                if at == gap or not lowered.startswith(token, at):
                    break
                at += len(token)
            else:
                if at == end or not lowered[at].isalnum():
                    return True
        begin = lowered.find(first, begin + 1)
    return False
