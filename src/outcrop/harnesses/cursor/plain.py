"""Cursor's oldest transcripts, plain text, taken apart into records of the shape of the later JSON lines.

The markers are not escaped, so a line that only looks like one cannot be told from it, save inside a `<user_query>`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_ROLES = {"user:": "user", "assistant:": "assistant"}
_THINKING = "[Thinking]"
_CALL = "[Tool call]"
_RESULT = "[Tool result]"
_MARKERS = (_THINKING, _CALL, _RESULT)


def records(text: str) -> Iterator[dict[str, Any]]:
    """One record a message, in order; text before the first marker is a record of its own, without a role."""
    role: str | None = None
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if not inside and (marked := _ROLES.get(line.rstrip())) is not None:
            yield from _record(role, lines)
            role, lines = marked, []
            continue
        if role == "user":
            opened, closed = line.rfind("<user_query>"), line.rfind("</user_query>")
            inside = opened > closed if max(opened, closed) >= 0 else inside
        lines.append(line)
    yield from _record(role, lines)


def _record(role: str | None, lines: list[str]) -> Iterator[dict[str, Any]]:
    if not any(line.strip() for line in lines):
        if role is not None:
            yield {"role": role, "message": {"content": []}}
        return
    text = "\n".join(lines).strip("\n")
    if role is None:
        yield {"type": "text", "text": text}
    elif role == "user":
        yield {"role": role, "message": {"content": [{"type": "text", "text": text}]}}
    else:
        yield {"role": role, "message": {"content": _blocks(lines)}}


def _blocks(lines: list[str]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    said: list[str] = []
    place = 0

    def flush() -> None:
        if text := "\n".join(said).strip():
            blocks.append({"type": "text", "text": text})
        said.clear()

    while place < len(lines):
        line = lines[place]
        marker = next((marker for marker in _MARKERS if line.startswith(marker)), None)
        place += 1
        if marker is None:
            said.append(line)
            continue
        flush()
        head, start = line[len(marker) :].strip(), place
        place = _end(lines, place, marker)
        body = _dedented(lines[start:place])
        if marker == _THINKING:
            blocks.append({"type": "thinking", "thinking": "\n".join(part for part in (head, body) if part)})
        elif marker == _CALL:
            blocks.append({"type": "tool_use", "name": head, "input": _arguments(head, body)})
        else:
            blocks.append({"type": "tool_result", "name": head, "content": body})
    flush()
    return blocks


def _end(lines: list[str], place: int, marker: str) -> int:
    """Where the body of a marker ends: its lines are indented or blank, those of a thought may also follow directly."""
    flows = marker == _THINKING
    while place < len(lines) and not lines[place].startswith(_MARKERS):
        line = lines[place]
        if not line.strip():
            flows = False
        elif line[0] not in " \t" and not flows:
            break
        place += 1
    return place


def _dedented(lines: list[str]) -> str:
    depths = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()]
    depth = min(depths, default=0)
    return "\n".join(line[depth:] if line.strip() else "" for line in lines).strip("\n")


def _arguments(tool: str, body: str) -> Any:
    """JSON, a patch, or lines of `name=value` or `name: value`; a line without a name goes on with the value above."""
    stripped = body.strip()
    if not stripped:
        return {}
    try:
        value = json.loads(stripped)
        return value if isinstance(value, dict) else stripped
    except (ValueError, RecursionError):
        pass
    if "*** Begin Patch" in body or (tool.lower().replace("_", "") == "applypatch"):
        return {"patch": body}
    arguments: dict[str, str] = {}
    name: str | None = None
    for line in body.split("\n"):
        found, value = _named(line)
        if found is not None:
            name = found
            arguments[name] = value
        elif name is not None:
            arguments[name] += "\n" + line
        else:
            return body
    return {key: value.rstrip("\n") for key, value in arguments.items()}


def _named(line: str) -> tuple[str | None, str]:
    for mark in ("=", ":"):
        name, found, value = line.partition(mark)
        if found and name.isidentifier():
            return name, value.strip()
    return None, ""
