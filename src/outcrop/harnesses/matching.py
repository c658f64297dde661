"""Which message of one store is which of another, where only one of the two has ids."""

from __future__ import annotations

from collections.abc import Sequence


def matches(own: Sequence[str], there: Sequence[str]) -> dict[int, int]:
    """Places in `own` → places in `there`, by what stands in them, in order.

    Between two that say the same, as many others on either side are the same ones, said otherwise.
    """
    if not own or not there:
        return {}
    from difflib import SequenceMatcher  # here: most sessions stand in one store alone

    found: dict[int, int] = {}
    for kind, start, end, first, last in SequenceMatcher(None, own, there, autojunk=False).get_opcodes():
        if kind in ("equal", "replace") and end - start == last - first:
            found.update(zip(range(start, end), range(first, last), strict=True))
    return found
