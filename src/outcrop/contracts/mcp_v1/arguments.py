"""Reading arguments: small checks with the contract's messages, each of which names the field at fault.

Order of checks: the object and its fields' types first, then field by field as each tool says; the first failure wins
(ruling 12). Nothing is coerced: 2.0 is no integer, true is no integer, null means the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from outcrop import ids
from outcrop.errors import InvalidId, InvalidRequest

MAX_CURSOR = 4096

STRING = "a string"
INTEGER = "an integer"
STRINGS = "an array of strings"
BOOLEAN = "a boolean"

_FITS: dict[str, Callable[[Any], bool]] = {
    STRING: lambda value: isinstance(value, str),
    INTEGER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    STRINGS: lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    BOOLEAN: lambda value: isinstance(value, bool),
}


def fields(arguments: Any, types: Mapping[str, str], expects: str) -> dict[str, Any]:
    """The value of every field of `types`, None where it is absent or null.

    `expects` is the message for something that is no object at all.
    """
    if not isinstance(arguments, dict):
        raise InvalidRequest(expects)
    for name in arguments:
        if name not in types:
            raise InvalidRequest(f"unknown field: {name}", name)
    values: dict[str, Any] = {}
    for name, kind in types.items():
        value = arguments.get(name)
        if value is not None:
            if not _FITS[kind](value):
                raise InvalidRequest(f"{name} must be {kind}", name)
            _scalars(name, value)
        values[name] = value
    return values


def bounded(name: str, value: int | None, default: int, maximum: int) -> int:
    if value is None:
        return default
    if not 1 <= value <= maximum:
        raise InvalidRequest(f"{name} must be between 1 and {maximum}", name)
    return value


def choice(name: str, value: str | None, options: Sequence[str]) -> str | None:
    if value is not None and value not in options:
        raise InvalidRequest(f"{name} must be one of {', '.join(options)}", name)
    return value


def exact_filter(name: str, value: str | None) -> str | None:
    """An exact, case-sensitive filter, without the blanks around it."""
    return value if value is None else _filled(name, value, f"{name} must be a non-empty string when provided")


def cursor_text(value: str | None) -> str | None:
    if value is None:
        return None
    _filled("cursor", value, "cursor must be a non-empty string when provided")
    if len(value) > MAX_CURSOR:
        raise InvalidRequest(f"cursor must be at most {MAX_CURSOR} characters", "cursor")
    return value


def typed_id(name: str, value: str) -> ids.Id:
    """An id exactly as given (ruling 9)."""
    try:
        return ids.parse(value)
    except InvalidId as error:
        raise InvalidId((error.details or {}).get("reason", ""), name) from None


def _filled(name: str, value: str, message: str) -> str:
    trimmed = value.strip()
    if not trimmed:
        raise InvalidRequest(message, name)
    return trimmed


def _scalars(name: str, value: Any) -> None:
    """JSON can spell half a surrogate pair, which is no text."""
    for text in value if isinstance(value, list) else (value,):
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise InvalidRequest(f"{name} must be valid Unicode text", name) from None
