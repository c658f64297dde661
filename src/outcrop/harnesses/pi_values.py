"""Pure readings of single values in the session files of pi and its relatives: ids in names, texts, counts.

Nothing here remembers anything. Every function takes whatever JSON holds and gives an empty answer for a wrong shape.
"""

from __future__ import annotations

import json
import re
from typing import Any

from outcrop.harnesses.content import base64_size, block_text
from outcrop.harnesses.json_values import string

_NAMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:-\d+)?Z?_(.+)")
_EXIT = re.compile(r"Command exited with code (-?\d{1,9})\s*\Z")
_SHELLS = frozenset({"bash", "exec", "shell", "shell_exec", "run_terminal"})
_PATH_KEYS = ("path", "filePath", "file_path", "file", "sourcePath", "destination")
_PATH_LISTS = ("files", "paths", "perFileResults", "changes")
_PATHS = 200
_COUNTS = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}


def named_id(name: str) -> str | None:
    """The session id in `<time>_<id>`, the name that a session's file or its folder of artifacts has."""
    found = _NAMED.fullmatch(name.removesuffix(".jsonl"))
    return found[1] if found else None


def last_part(path: str) -> str:
    """The last part of a path of either kind: paths in records are of the machine that wrote them."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def content_text(content: Any) -> str:
    """The text of message content, blocks joined by line ends; a picture is its type and size."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(filter(None, map(_block, blocks)))


def _block(block: Any) -> str:
    data = string(block, "data")
    if string(block, "type") != "image" or not data:
        return block_text(block)
    kind = string(block, "mimeType") or "of unknown type"
    return f"[image {kind}]" if data.startswith("blob:") else f"[image {kind}, {base64_size(data)} bytes]"


def usage(value: Any) -> dict[str, Any] | None:
    """Token counts of a message; the cache stands beside the input, reasoning inside the output. Cost is in dollars."""
    if not isinstance(value, dict):
        return None
    found: dict[str, Any] = {new: value[old] for old, new in _COUNTS.items() if type(value.get(old)) is int}
    if type(value.get("totalTokens")) is int:
        found["total"] = value["totalTokens"]
    cost = value.get("cost")
    cost = cost.get("total") if isinstance(cost, dict) else cost
    if isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost:
        found["cost"] = cost
    return found if any(found.values()) else None


def exit_code(tool: str, text: str, details: Any) -> int | None:
    """The exit code that a result states: in a field of its own, or at the end of a shell's output."""
    code = details.get("exitCode") if isinstance(details, dict) else None
    if type(code) is int:
        return code
    found = _EXIT.search(text[-200:]) if tool in _SHELLS else None
    return int(found[1]) if found else None


def result_paths(details: Any) -> list[str]:
    """Paths that the details of a result name."""
    found: dict[str, None] = {}
    waiting = [details]
    for one in waiting:
        if isinstance(one, str) and one not in found and len(one) < 4096 and "\n" not in one:
            found[one] = None
        elif isinstance(one, dict):
            waiting += [one[key] for key in _PATH_KEYS if isinstance(one.get(key), str)]
            if one is details:
                for key in _PATH_LISTS:
                    listed = one.get(key)
                    waiting += listed[:_PATHS] if isinstance(listed, list) else ()
    return list(found)[:_PATHS] if isinstance(details, dict) else []


def phase(block: dict[str, Any]) -> str:
    """Commentary or final answer, as the signature of a text block of some providers tells."""
    signature = string(block, "textSignature")
    if not signature.startswith("{"):
        return ""
    try:
        return string(json.loads(signature), "phase")
    except (ValueError, RecursionError):
        return ""


def some(record: dict[str, Any], *names: str) -> dict[str, Any] | None:
    """The named values that are there; None where none is."""
    return {name: record[name] for name in names if record.get(name) is not None} or None


def rest(record: dict[str, Any], *known: str) -> dict[str, Any] | None:
    """What a record holds besides its envelope and the names that are known."""
    skipped = {"type", "id", "parentId", "timestamp", *known}
    return {name: value for name, value in record.items() if name not in skipped and value is not None} or None
