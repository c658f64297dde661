"""Sessions that are one conversation: forks and resumed copies count once, as the one that was used last.

Two sessions are forks of each other where they begin with the same messages: all of the shorter one's, two at least,
or the first eight; or the first two, where their records say that one was copied from the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from outcrop.store.embedded.cards import Card
from outcrop.store.embedded.text_rows import DIGEST

LEAST = 2
"""Messages that must be the same."""


def folded(newest_first: Iterable[Card]) -> set[int]:
    """Ids of the sessions that an earlier one of the list stands for."""
    alike: dict[bytes, list[Card]] = {}
    for card in newest_first:
        opening = card.opening or b""
        if len(opening) >= LEAST * DIGEST:  # each digest is of all messages up to its own: these tell the others apart
            alike.setdefault(opening[(LEAST - 1) * DIGEST : LEAST * DIGEST], []).append(card)
    return {id for cards in alike.values() if len(cards) > 1 for id in _folded(cards)}


def _folded(cards: Iterable[Card]) -> Iterator[int]:
    """The same of sessions whose first LEAST messages are the same."""
    within: set[bytes] = set()
    ends: set[bytes] = set()
    copied: set[bytes] = set()
    for card in cards:
        opening = card.opening or b""
        pieces = [opening[at : at + DIGEST] for at in range((LEAST - 1) * DIGEST, len(opening), DIGEST)]
        if pieces[-1] in within or not ends.isdisjoint(pieces) or card.head in copied:
            yield card.id
            continue
        within.update(pieces)
        ends.add(pieces[-1])
        if card.head is not None:
            copied.add(card.head)
