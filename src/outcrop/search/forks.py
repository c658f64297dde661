"""Sessions that are one conversation: forks and resumed copies count once, as the one that was used last.

Two sessions are forks of each other where they begin with the same messages: all of the shorter one's, two at least,
or the first eight; or the first two, where their records say that one was copied from the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from outcrop.store.embedded.cards import Card
from outcrop.store.embedded.text_rows import DIGEST

LEAST = 2
"""Messages that must be the same."""


def folded(newest_first: Iterable[Card]) -> set[int]:
    """Ids of the sessions that an earlier one of the list stands for."""
    within: set[bytes] = set()
    ends: set[bytes] = set()
    copied: set[tuple[bytes, bytes]] = set()
    gone: set[int] = set()
    for card in newest_first:
        opening = card.opening or b""
        pieces = [opening[at : at + DIGEST] for at in range(0, len(opening), DIGEST)][LEAST - 1 :]
        if not pieces:
            continue
        head = (card.head, pieces[0]) if card.head is not None else None
        if pieces[-1] in within or not ends.isdisjoint(pieces) or head in copied:
            gone.add(card.id)
            continue
        within.update(pieces)
        ends.add(pieces[-1])
        if head is not None:
            copied.add(head)
    return gone
