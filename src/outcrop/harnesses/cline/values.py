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


def time_of(value: Any) -> int | None:
    """UTC ms as they are recorded; anything of another size is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1e11 <= value < 1e14:
        return None
    return int(value)
