"""What the readers of Kimi's files have in common: values of records, parts as text, times, exit codes, usage."""

from __future__ import annotations

import re
from typing import Any

from outcrop.harnesses.content import attachment_note, unknown_block
from outcrop.model import ENCRYPTED_PLACEHOLDER

_MEDIA = {"image_url": "image", "audio_url": "audio", "video_url": "video"}
_TEXTS = frozenset({"text", "think"})
_EXIT = re.compile(r"(?:^|\n)Command failed with exit code: (-?\d{1,6})\.\s*$")
_USAGE = {
    "input": ("input_other", "inputOther"),
    "cache_read": ("input_cache_read", "inputCacheRead"),
    "cache_write": ("input_cache_creation", "inputCacheCreation"),
    "output": ("output", "output"),
}


def string(record: Any, *names: str) -> str:
    """The first of the named values that is a text and not empty."""
    for name in names:
        value = record.get(name) if isinstance(record, dict) else None
        if isinstance(value, str) and value:
            return value
    return ""


def parts(content: Any) -> list[dict[str, Any]]:
    """Content as a list of parts: a text is one, and what is no part is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def part_text(part: dict[str, Any]) -> str:
    """The text of a visible part; a note for a picture, a sound or a film."""
    kind = part.get("type")
    noun = _MEDIA.get(kind) if isinstance(kind, str) else None
    if noun is None:
        if isinstance(kind, str) and kind not in _TEXTS:
            unknown_block(part)
        return string(part, "text")
    source = part.get(str(kind)) or part.get(f"{noun}Url")
    url = string(source, "url") if isinstance(source, dict) else source
    return attachment_note({"type": "image", "url": url}).replace("[image", f"[{noun}", 1)


def told(content: Any) -> str:
    """The text of a whole content."""
    return "\n".join(text for text in map(part_text, parts(content)) if text)


def words(content: Any) -> str:
    """The text alone: pictures are told in another way where a session was taken over."""
    return "\n".join(text for text in (string(part, "text") for part in parts(content)) if text)


def thought(part: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Text and extra of a part of reasoning; sealed or empty reasoning reads as the placeholder."""
    sealed = part.get("encrypted")
    text = string(part, "think")
    return text or ENCRYPTED_PLACEHOLDER, {"encrypted_content": sealed} if sealed else None


def exit_code(*texts: str) -> int | None:
    """The exit code that a result states; it states none for success."""
    found = next(filter(None, map(_EXIT.search, texts)), None)
    return int(found[1]) if found else None


def usage(counts: Any) -> dict[str, int] | None:
    """Tokens of one step, apart: Kimi does not count the cache inside the input."""
    if not isinstance(counts, dict):
        return None
    found = {}
    for name, spellings in _USAGE.items():
        value = next((counts[one] for one in spellings if type(counts.get(one)) is int), None)
        if value is not None:
            found[name] = value
    return found or None


def time_ms(value: Any) -> int | None:
    """UTC ms of a number of seconds (the older program) or of ms (Kimi Code)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    return round(value * 1000) if value < 1e11 else int(value)
