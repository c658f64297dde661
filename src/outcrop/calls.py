"""Tool calls as text: how a call reads, how it is summarised, what of it is searchable, and previews of any text.

Used by the store (what is indexed), the contracts (what is answered) and the command line (what is shown), so that
one call reads the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

PREVIEW = 240
"""Unicode scalars of a preview: summaries fold whitespace and stop here."""

COMMAND_KEYS = ("command", "cmd", "script")
PATH_KEYS = (
    "file_path",
    "notebook_path",
    "path",
    "filePath",
    "absolute_path",
    "target_file",
    "url",
    "pattern",
    "query",
)
RAW = "_raw"
"""The one key of arguments that do not parse as JSON."""


def call_text(tool: str | None, arguments: Any) -> str:
    """A call as one would write it: `exec_command(cmd="ls", workdir="/w")`."""
    name = tool or "tool"
    if arguments is None:
        return f"{name}()"
    if isinstance(arguments, dict):
        if list(arguments) == [RAW]:
            return f"{name}({arguments[RAW]})"
        inner = ", ".join(f"{key}={_literal(value)}" for key, value in arguments.items())
        return f"{name}({inner})"
    return f"{name}({_literal(arguments)})"


def call_summary(tool: str | None, arguments: Any) -> str:
    """The telling part of a call: its command or its path where it has one, else the whole call."""
    if isinstance(arguments, dict):
        for key in COMMAND_KEYS:
            value = arguments.get(key)
            if isinstance(value, str) and value.strip():
                return value
            if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
                return " ".join(value)
        if isinstance(arguments.get(RAW), str):
            return str(arguments[RAW])
        for key in PATH_KEYS:
            value = arguments.get(key)
            if isinstance(value, str) and value.strip():
                return value
    return call_text(tool, arguments)


def leaves(value: Any) -> Iterator[str]:
    """Every string, and every number as text, inside a JSON value, in its own order; keys are left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)


def searchable_call(tool: str | None, arguments: Any) -> str:
    """What a search for tool calls matches: the tool's name and every argument."""
    return "\n".join([tool or "", *leaves(arguments)])


def fold(text: str, limit: int = PREVIEW) -> tuple[str, bool]:
    """`text` with white space folded and cut at `limit` scalars; the second value says whether anything was cut."""
    head = " ".join(text[: limit * 8].split())
    if len(text) > limit * 8 and len(head) <= limit:
        head = " ".join(text.split())
    if len(head) > limit:
        return head[:limit].rstrip(), True
    return head, False


def first_line(text: str, limit: int) -> str:
    """The first line that says something, cut at `limit` scalars plus an ellipsis (specification, display_label)."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    return line if len(line) <= limit else line[:limit] + "…"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
