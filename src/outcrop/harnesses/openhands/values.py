"""Values of OpenHands records, whatever stands there: texts, objects, times, contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta, timezone
from typing import Any

from outcrop.harnesses.content import attachment_note, block_text
from outcrop.harnesses.moments import iso_ms, local_ms

_QUARTER = 900


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def code_of(value: Any) -> int | None:
    """An exit code; -1 stands for a command that has not ended."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value != -1 else None


def time_ms(value: Any, zone: int | None = None) -> int | None:
    """UTC ms of a date that names no zone: `zone` seconds ahead of UTC, or in the machine's own where that is None."""
    return local_ms(value) if zone is None else iso_ms(value, timezone(timedelta(seconds=zone)), int)


def zone_of(events: Iterable[Any]) -> int | None:
    """Seconds by which the clock of the writing machine was ahead of UTC; None where nothing tells.

    The model's provider says when a response was made, in UTC; the event that it led to follows within minutes.
    """
    found: Counter[int] = Counter()
    for event in events:
        made = mapping(mapping(mapping(event).get("tool_call_metadata")).get("model_response")).get("created")
        written = time_ms(mapping(event).get("timestamp"), 0)
        if isinstance(made, int) and 1e9 < made < 1e11 and written is not None:
            ahead = round((written / 1000 - made) / _QUARTER) * _QUARTER
            if abs(ahead) <= 14 * 3600:
                found[ahead] += 1
    return found.most_common(1)[0][0] if found else None


def shown(content: Any) -> str:
    """The text of content, with a note for each picture."""
    if isinstance(content, str):
        return content
    found = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") == "image":
            urls = items(part.get("image_urls")) or [part.get("url")]
            found += [attachment_note({"type": "image", "url": url}) for url in urls]
        else:
            found.append(block_text(part))
    return "\n".join(filter(None, found))
