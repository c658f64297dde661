"""Single values of Cline's files. Wrong shapes give empty answers."""

from __future__ import annotations

from typing import Any

import orjson


def object_of(value: Any) -> dict[str, Any]:
    """An object, or the one that a text holds as JSON; an empty one for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {}
    return value if isinstance(value, dict) else {}


def text_of(value: Any) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value.strip() else None
