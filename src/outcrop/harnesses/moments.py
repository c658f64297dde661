"""Times as they are recorded, in UTC milliseconds; None for whatever says no time. Never the present, never a guess."""

from __future__ import annotations

from datetime import datetime
from typing import Any


def iso_ms(value: Any) -> int | None:
    """UTC ms of an ISO time that names its zone."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return None if moment.tzinfo is None else round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def epoch_ms(value: Any) -> int | None:
    """A number of milliseconds since 1970, which may be written as text; anything of another size is none."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 15:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1e11 <= value < 1e14:
        return None
    return int(value)
