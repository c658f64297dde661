"""Times as they are recorded, in UTC milliseconds; None for whatever says no time. Never the present, never a guess.

How a fraction of a millisecond ends is each reader's own choice (`whole`: rounded or cut), and part of what it gives:
another one would move events that are stored already.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Any

_EARLIEST = 1e11
"""Numbers below are seconds: as milliseconds they would lie before 1973."""
_LATEST = 1e14


def iso_ms(value: Any, zone: tzinfo | None = None, whole: Callable[[float], int] = round) -> int | None:
    """UTC ms of an ISO time; one that names no zone is of `zone`, and none at all without that."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            if zone is None:
                return None
            moment = moment.replace(tzinfo=zone)
        return whole(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def local_ms(value: Any) -> int | None:
    """UTC ms of an ISO time, cut; one that names no zone is of this machine's."""
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1000) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def clock_ms(text: str, form: str) -> int | None:
    """UTC ms of a time in whole seconds by this machine's clock, written in a form of `strptime`."""
    try:
        return int(datetime.strptime(text, form).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None


def number_ms(value: Any, whole: Callable[[float], int] = round) -> int | None:
    """UTC ms of a number of seconds or milliseconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _LATEST:
        return None
    return whole(value * 1000) if value < _EARLIEST else whole(value)


def time_ms(value: Any, whole: Callable[[float], int] = round) -> int | None:
    """UTC ms of an ISO time (one without a zone is taken as UTC) or of a number of seconds or milliseconds."""
    return iso_ms(value, UTC, whole) if isinstance(value, str) else number_ms(value, whole)


def epoch_ms(value: Any) -> int | None:
    """A number of milliseconds since 1970; anything of another size is none."""
    return number_ms(value, int) if isinstance(value, (int, float)) and value >= _EARLIEST else None


def written_ms(value: Any) -> int | None:
    """The same of a number that may be written as text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 15:
        value = int(value)
    return epoch_ms(value)
