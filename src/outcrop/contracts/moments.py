"""Moments on the wire: UTC milliseconds as RFC 3339, and back."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from outcrop.errors import InvalidRequest

_DATETIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -62135596800000
_LAST = 253402300799999


def timestamp(ms: int) -> str:
    """UTC ms as RFC 3339 with exactly three decimals; what no calendar holds is shown at the calendar's end."""
    moment = _EPOCH + timedelta(milliseconds=min(max(ms, _FIRST), _LAST))
    return moment.replace(tzinfo=None).isoformat("T", "milliseconds") + "Z"


def instant(name: str, value: str) -> tuple[str, int]:
    """A datetime with an explicit offset: its text without blanks around it, and UTC milliseconds, finer parts cut.

    Small letters and a blank between date and time are accepted, as RFC 3339 5.6 allows; seconds may be left out.
    """
    text = value.strip()
    if not text:
        raise InvalidRequest(f"{name} must be a non-empty RFC 3339 datetime", name)
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise InvalidRequest(f"{name} must be a valid RFC 3339 datetime", name)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if zone is None:
        raise InvalidRequest(f"{name} must include an explicit timezone offset or Z", name)
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError as error:
        raise InvalidRequest(f"{name} must be a valid RFC 3339 datetime: {error}", name) from None
    offset = _offset_minutes(zone)
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 60 or offset is None:
        raise InvalidRequest(f"{name} must be a valid RFC 3339 datetime: time or offset out of range", name)
    seconds = days * 86400 + int(hour) * 3600 + (int(minute) - offset) * 60 + int(second or 0)
    return text, seconds * 1000 + int((fraction or "0")[:3].ljust(3, "0"))


def _offset_minutes(zone: str) -> int | None:
    if zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
