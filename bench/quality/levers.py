"""What each addition to plain BM25 is worth: the same questions with one of them switched off.

A lever names the constants that carry an addition, and the value that takes it away. Fields that are not asked cost
nothing of the result, so that no index is built anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

from outcrop.search import columns, hashes, plan, query, repair, respell


def _none(*_: object) -> None:
    """No word is near."""


def _by_score_alone(*asked: Any) -> list[query.Tier]:
    tiers = [tier._replace(first=False) for tier in _TIERS(*asked)]
    if len(tiers) > 1:
        tiers[-2] = tiers[-2]._replace(factor=query.ALL_FACTOR)
    return tiers


_TIERS = query.Builder.tiers
_EVEN = {"user": 1.0, "assistant": 1.0, "reasoning": 1.0, "other": 1.0, "tool": 1.0, "tool_more": 1.0}
LEVERS: dict[str, list[tuple[ModuleType | type, str, Any]]] = {
    "stems": [(query, "STEM_WEIGHT", 0.0), (columns, "STEM_WEIGHT", 0.0)],
    "stop words": [(query, "STOP_WORDS", frozenset()), (plan, "STOP_WORDS", frozenset())],
    "context": [(query, "CONTEXT_WEIGHT", 0.0)],
    "phrase and nearness": [(query, "PHRASE_FACTOR", 1.0), (query, "NEAR_FACTOR", 1.0)],
    "all words first": [  # they count ALL_FACTOR times then
        (query.Builder, "tiers", _by_score_alone),
        (columns, "ALL_FACTOR", 1.0),
        (columns, "TYPED_FACTOR", 1.0),
    ],
    "whole session": [(columns, "TALK_WEIGHT", 0.0)],
    "title": [(columns, "TITLE_WEIGHT", 0.0)],
    "names and their parts": [(query, "NAME_WEIGHT", 0.0), (query, "PARTS_WEIGHT", 0.0), (columns, "_NAMES", ())],
    "other lengths of hashes": [(hashes, "widened", lambda searcher, fields, units: units)],
    "repair": [(repair, "_nearest", _none), (respell.Speller, "_nearest", _none)],
    "role weights": [(query, "WEIGHT", _EVEN), (columns, "WEIGHT", {"user": 1.0, "assistant": 1.0, "tool": 1.0})],
}


@contextmanager
def without(name: str) -> Iterator[None]:
    """One addition switched off."""
    patches = [patch.object(*change) for change in LEVERS[name]]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
