"""Contents of Google's model interface, as Gemini CLI and Qwen Code record them: parts, tool results, token counts.

What the program itself put among a prompt's parts is told apart from what was typed: tagged blocks, and the contents
of files that a prompt refers to, which stand behind a marker.
"""

from __future__ import annotations

import re
from typing import Any

from outcrop.harnesses.content import base64_size, unknown_block
from outcrop.harnesses.json_values import object_of, shown, string, whole_number

_REFERENCED = "--- Content from referenced files ---"
_INJECTED = re.compile(r"\s*<(?:system-reminder|session_context|hook_context|qwen:[a-z-]+|editor_context)\b")
_SNAPSHOT = re.compile(r"\s*<state_snapshot>")
_EXIT = re.compile(r"^Exit Code: (-?\d{1,9})\s*$", re.MULTILINE)
_PARTS = frozenset({"text", "thought", "thoughtSignature", "functionCall", "functionResponse"})
_SHELLS = frozenset({"run_shell_command", "shell"})
_USAGE = {
    "input": ("promptTokenCount", "input"),
    "cache_read": ("cachedContentTokenCount", "cached"),
    "output": ("candidatesTokenCount", "output"),
    "reasoning": ("thoughtsTokenCount", "thoughts"),
    "total": ("totalTokenCount", "total"),
}
CANCELLED = "Request cancelled."
"""What Gemini CLI tells the user whose request it stopped."""


def parts_of(content: Any) -> list[dict[str, Any]]:
    """The parts of a content, which may be a text, one part, a list of either, or an object that holds `parts`."""
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    found = content if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else part for part in found]
    return [part for part in parts if isinstance(part, dict)]


def part_text(part: dict[str, Any]) -> str:
    """The text of a part; media are their kind and size."""
    text = part.get("text")
    if isinstance(text, str):
        return text
    for name in ("inlineData", "inline_data", "fileData", "file_data"):
        media = part.get(name)
        if isinstance(media, dict):
            kind = string(media, "mimeType") or string(media, "mime_type") or "of unknown type"
            noun = "image" if kind.startswith("image/") else "document"
            data = media.get("data")
            size = f", {base64_size(data)} bytes" if isinstance(data, str) else ""
            return f"[{noun} {string(media, 'fileUri') or kind}{size}]"
    if part and _PARTS.isdisjoint(part):
        unknown_block(part)
    return ""


def text_of(content: Any) -> str:
    """All text of a content, parts joined by line ends."""
    return "\n".join(filter(None, map(part_text, parts_of(content))))


def prompt(parts: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """What of a prompt's parts was typed, and the texts that the program added to it."""
    typed: list[str] = []
    added: list[str] = []
    referenced = False
    for part in parts:
        text = part_text(part)
        if not text.strip():
            continue
        referenced = referenced or text.lstrip().startswith(_REFERENCED)
        (added if referenced or _INJECTED.match(text) else typed).append(text)
    return "\n".join(typed), added


def is_snapshot(text: str) -> bool:
    """Whether a text is the summary that takes the place of compressed history."""
    return _SNAPSHOT.match(text) is not None


def response_text(response: Any) -> str:
    """What a tool answered: its output or error, else the whole answer as JSON."""
    if isinstance(response, dict):
        for name in ("output", "error"):
            value = response.get(name)
            if isinstance(value, str):
                return value
        if "content" in response:
            text = text_of(response["content"])
            if text:
                return text
    return shown(response) if response not in (None, {}, [], "") else ""


def exit_code(tool: str | None, text: str) -> int | None:
    """The code that a shell's answer states; there is none where the command was still running."""
    if tool not in _SHELLS:
        return None
    found = _EXIT.findall(text)
    return int(found[-1]) if found else None


def usage(counts: Any) -> dict[str, int]:
    """Token counts: the input without what came from the cache, the output without reasoning."""
    found: dict[str, int] = {}
    for name, spellings in _USAGE.items():
        for spelling in spellings:
            count = whole_number(counts.get(spelling)) if isinstance(counts, dict) else None
            if count is not None:
                found[name] = count
    if "input" in found:
        found["input"] = max(0, found["input"] - found.get("cache_read", 0))
    return found if any(found.values()) else {}


def media(response: dict[str, Any]) -> str:
    """Pictures and documents that came with a tool's answer."""
    inner = response.get("parts") or object_of(response, "response").get("parts")
    return text_of(inner) if isinstance(inner, list) else ""
