"""Single values out of other programs' JSON: texts, objects, and short names for what a record means.

Nothing here remembers anything. A value of a wrong type gives an empty answer, never an error.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import orjson

from outcrop.calls import RAW
from outcrop.harnesses.content import parsed_arguments


def string(record: Any, name: str) -> str:
    """The string under a name of an object, else the empty one."""
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, str) else ""


def object_of(record: Any, name: str) -> dict[str, Any]:
    """The object under a name of an object, else an empty one."""
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; nothing for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    """The texts of a list that say something; nothing for any other value."""
    return [item for item in value if isinstance(item, str) and item] if isinstance(value, list) else []


def arguments(value: Any) -> Any:
    """What a tool was called with: an object, read from JSON text where need be, or {"_raw": value}."""
    if isinstance(value, str):
        value = parsed_arguments(value)
    return value if isinstance(value, dict) else {RAW: value}


def whole_number(value: Any) -> int | None:
    return value if type(value) is int else None


def shown(value: Any) -> str:
    """A value as text: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False, default=str)


def in_order(meaning: Any) -> bytes:
    """A value as JSON with its names in order: what says the same reads the same."""
    try:
        return orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS, default=str)
    except TypeError:  # what no JSON file holds reads the same each time all the same
        return json.dumps(meaning, sort_keys=True, default=str).encode("utf-8", "surrogatepass")


def digest(meaning: Any) -> str:
    """A short name for what a value says, whatever the order of its names."""
    return blake2b(in_order(meaning), digest_size=8).hexdigest()


def some(record: Any, *names: str) -> dict[str, Any]:
    """The named values of an object that are there."""
    if not isinstance(record, dict):
        return {}
    return {name: record[name] for name in names if record.get(name) is not None}


def rest(record: dict[str, Any], *known: str) -> dict[str, Any]:
    """What an object holds besides the names that are known."""
    return {name: value for name, value in record.items() if name not in known and value is not None}


def bound(memory: dict[str, Any], size: int) -> None:
    """Forget the oldest entries above `size`."""
    while len(memory) > size:
        del memory[next(iter(memory))]
