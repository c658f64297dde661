"""Parts of known records that an adapter does not know: how formats of other programs tell that they moved on.

An adapter makes an `unknown` event of such a block, or only takes its text (`harnesses.content`). Either way it is
counted beside the records that are unknown as a whole, under its own name, and nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from outcrop.model import Event, EventType, Parsed

NAME = 60
"""Characters of a type that are shown."""
DEPTH = 6
"""Levels of a record that blocks are looked for on."""


@dataclass(slots=True, frozen=True)
class Strange:
    """An unknown block: its type, what it holds, and whether an event keeps that."""

    type: str
    block: Any
    held: bool


def strange_blocks(parsed: Parsed, record: dict[str, Any], noted: Sequence[dict[str, Any]]) -> list[Strange]:
    """The unknown blocks of a record. `noted`: those that were met while their text was taken."""
    raws = [
        item.raw
        for item in parsed.items
        if isinstance(item, Event) and item.type is EventType.UNKNOWN and item.raw is not None
    ]
    found = [Strange(_type(raw), raw, True) for raw in raws if raw is not record and _is_part(raw, record, DEPTH)]
    whole = any(raw is record for raw in raws)
    for block in noted:
        if not any(block is one.block for one in found):
            found.append(Strange(_type(block), block, whole))
    return found


def _is_part(raw: Any, value: Any, depth: int) -> bool:
    """Whether a value stands in one of the lists inside another."""
    return any(raw is item or raw == item for inside in _lists(value, depth) for item in inside)


def _lists(value: Any, depth: int) -> Iterator[list[Any]]:
    if depth == 0:
        return
    if isinstance(value, list):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        if isinstance(one, dict | list):
            yield from _lists(one, depth - 1)


def _type(block: Any) -> str:
    """What a block calls itself; in formats where its first field tells what it is, the name of that."""
    if not isinstance(block, dict):
        return "?"
    names = (block.get("type"), block.get("kind"), next(iter(block), None))
    return next((name[:NAME] for name in names if isinstance(name, str) and name), "?")
