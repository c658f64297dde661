"""Message content as most harnesses record it: a string, or a list of typed blocks, made into text.

Images and other base64 payloads become their media type and size; nothing else is cut. Tolerant by design: a value
of the wrong type gives no text, never an error, because formats of other programs change without notice.
"""

from __future__ import annotations

import re
from typing import Any

from outcrop.calls import RAW
from outcrop.harnesses import Side
from outcrop.harnesses.jsonl import document

PERSISTED_LIMIT = 8 << 20
"""Bytes of one spilled output that are read in."""

_TEXT_TYPES = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_OTHERS = frozenset({"thinking", "redacted_thinking", "tool_use", "tool_result"})
"""Types that adapters know; where only texts are wanted they have none, or their own."""
UNKNOWN_BLOCKS: list[dict[str, Any]] = []
"""Blocks of types that nobody here knows, whose text was taken; whoever reads a record looks here and empties it."""
_PERSISTED = "<persisted-output>"
_SAVED_TO = re.compile(r"^<persisted-output>\s*Output too large[^\n]{0,80}saved to: ([^\n]+)\n")


def content_text(content: Any) -> str:
    """The text of message content: a string as it is, the blocks of a list joined by line ends, else nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(block_text, content) if text)
    if isinstance(content, dict):
        return block_text(content)
    return ""


def block_text(block: Any) -> str:
    """The text of one block: its text, a note for an image or a document, the name of a referenced tool."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return ""
    kind = block.get("type")
    if not isinstance(kind, str):
        kind = ""
    if kind in _TEXT_TYPES:
        text = block.get("text")
        return text if isinstance(text, str) else ""
    if kind in ("image", "input_image", "document", "file", "input_file"):
        return attachment_note(block)
    if kind == "tool_reference":
        name = block.get("tool_name")
        return f"[tool {name}]" if isinstance(name, str) else ""
    if kind and kind not in _OTHERS:
        unknown_block(block)
    text = block.get("text")
    return text if isinstance(text, str) else ""


def unknown_block(block: Any) -> None:
    """Tell of a block that is not known, of which at most the text is taken."""
    if isinstance(block, dict):
        UNKNOWN_BLOCKS.append(block)


def attachment_note(block: dict[str, Any]) -> str:
    """`[image image/png, 68 bytes]` for a block that carries or names a picture or a document."""
    noun = "image" if "image" in str(block.get("type")) else "document"
    source = block.get("source")
    url = block.get("image_url") or block.get("url") or block.get("file_data")
    if isinstance(url, dict):
        url = url.get("url")
    if isinstance(source, dict):
        data, text = source.get("data"), source.get("content")
        if source.get("type") == "text" and isinstance(data, str):
            return data
        if isinstance(text, (str, list)):
            return content_text(text)
        if isinstance(data, str):
            return f"[{noun} {source.get('media_type') or 'of unknown type'}, {base64_size(data)} bytes]"
        url = source.get("url") or source.get("file_id") or url
    if isinstance(url, str):
        return f"[{noun} {_data_url(url) or url}]"
    return f"[{noun}]"


def base64_size(data: str) -> int:
    """Bytes that base64 text stands for, without decoding it."""
    return max(0, len(data) * 3 // 4 - data[-2:].count("="))


def parsed_arguments(text: str) -> Any:
    """Arguments that a harness records as JSON text: the value, or {"_raw": text} where it does not parse."""
    try:
        return document(text.encode("utf-8", "replace"))
    except ValueError:
        return {RAW: text}


def persisted_path(text: str) -> str | None:
    """Where Claude Code put an output that it found too large for the transcript; None for any other text."""
    if not text.startswith(_PERSISTED):
        return None
    found = _SAVED_TO.match(text)
    return found[1].strip() if found else None


def persisted_output(text: str, side: Side, inside: str | None, path: str | None = None) -> str:
    """`text`, or the whole output behind its `<persisted-output>` note where that truly lies in folder `inside`.

    `path` is where the record itself says that the output stands, if it does. Nothing is read for other texts.
    """
    if inside is None or not text.startswith(_PERSISTED):
        return text
    where = path or persisted_path(text)
    whole = side.text(where, inside, PERSISTED_LIMIT) if where else None
    return text if whole is None else whole


def _data_url(url: str) -> str | None:
    if not url.startswith("data:"):
        return None
    head, _, data = url.partition(",")
    return f"{head[5:].split(';')[0] or 'of unknown type'}, {base64_size(data)} bytes"
