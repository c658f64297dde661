"""A search that asks now and then whether it is still wanted: it must end at the first answer that says no."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from outcrop.errors import Cancelled


def ends_at_every_look(search: Callable[[Callable[[], bool]], object]) -> None:
    """`search` takes what tells whether it was cancelled. It is told so at each of its looks in turn."""
    looks = 0

    def never() -> bool:
        nonlocal looks
        looks += 1
        return False

    search(never)
    assert looks > 0
    for last in range(looks):
        asked = 0

        def now(last: int = last) -> bool:
            nonlocal asked
            asked += 1
            return asked > last

        with pytest.raises(Cancelled):
            search(now)
        assert asked == last + 1, "it went on after it was told to stop"
