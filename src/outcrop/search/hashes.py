"""Commit hashes and digests stand here in full and there by their first digits: either finds the other.

Decided by the whole index, whatever the scope, so that a scoped search ranks as the global one does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tantivy import Searcher

from outcrop.search.query import Unit

SHORTEST = 7
LONGEST_SHORT = 12
"""Digits of an abbreviated hash, as version control writes them."""
_MOST = 32
_HASH = re.compile(r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,64}")


def widened(searcher: Searcher, fields: Iterable[str], units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """The units with the other lengths of their hashes, as `fields` hold them, as further forms."""
    words = tuple(fields)
    return tuple(
        replace(unit, forms=tuple(dict.fromkeys(_forms(searcher, words, unit.word))))
        if unit.word and _HASH.fullmatch(unit.word)
        else unit
        for unit in units
    )


def _forms(searcher: Searcher, fields: tuple[str, ...], word: str) -> Iterator[str]:
    for length in range(SHORTEST, min(len(word), LONGEST_SHORT + 1)):
        if any(searcher.doc_freq(field, word[:length]) for field in fields):
            yield word[:length]
    for field in fields:
        for term, _ in searcher.terms_with_prefix(field, word, None, _MOST):
            if term != word and _HASH.fullmatch(term):
                yield term
