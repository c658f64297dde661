"""Times as people type them: moments, dates, spans that count back from now, and seconds to wait."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import UTC, date, datetime, time, timedelta

from outcrop.errors import InvalidRequest

_SPAN = re.compile(r"(\d{1,6})([mhdw])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST = 10**9
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def bound(option: str, text: str, now: datetime, *, end: bool = False) -> str:
    """A bound as RFC 3339: spans count back from now, dates and times without an offset are local."""
    span = _SPAN.fullmatch(text)
    try:
        if span:
            return wire(now - timedelta(**{_UNITS[span[2]]: int(span[1])}))
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text) + timedelta(days=1 if end else 0)
            return wire(datetime.combine(day, time()).astimezone())
        return wire(datetime.fromisoformat(text.strip()).astimezone())
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{option}: {text!r} is no time, no date and no span such as 2d") from None


def seconds(text: str) -> float:
    """A time to wait: finite, not negative, and no longer than the system's clocks can count."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _LONGEST:
        raise ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def wire(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat("T", "milliseconds") + "Z"
