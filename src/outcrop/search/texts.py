"""The text of a stored event as it is searched, and what stands in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    for begin, end in side_by_side(lowered, phrase, len(lowered)):
        if not lowered[max(0, begin - 1) : begin].isalnum() and not lowered[end : end + 1].isalnum():
            return True
    # The index passes over endless words, so that the words around one stand side by side.
    if max(map(len, lowered.split()), default=0) <= analysis.LONGEST_TERM:
        return False
    return stands_in(phrase, analysis.exact().analyze(text))


def side_by_side(text: str, tokens: Sequence[str], longest: int) -> Iterator[tuple[int, int]]:
    """(start, end) where the tokens stand in this order with no word between, in at most `longest` characters.

    The first may begin and the last may end inside a word. To compile a pattern costs more.
    """
    begin = text.find(tokens[0])
    while begin >= 0:
        at = begin + len(tokens[0])
        for token in tokens[1:]:
            gap = at
            while at < begin + longest and at < len(text) and not text[at].isalnum():
                at += 1
            if at == gap or not text.startswith(token, at):
                break
            at += len(token)
        else:
            if at - begin <= longest:
                yield begin, at
        begin = text.find(tokens[0], begin + 1)
