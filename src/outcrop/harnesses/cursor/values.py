"""Single Cursor values: times, texts around a prompt, names of tools, results of tools.

Nothing here remembers anything. Every function takes whatever JSON holds and gives an empty answer for a wrong shape.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson

from outcrop.calls import RAW
from outcrop.harnesses import toolnames
from outcrop.harnesses.content import content_text

CONTEXT_TAGS = (
    "additional_data|agent_skills|always_applied_workspace_rules|attached_files|cursor_commands|cursor_rules|"
    "external_links|git_status|image_files|manually_attached_skills|open_and_recently_viewed_files|project_layout|rules|"
    "system_notification|system_reminder|system-reminder|timestamp|user_info|user_rules"
)
"""What the program itself wraps around a prompt."""

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_CONTEXT = re.compile(rf"<({CONTEXT_TAGS})\b[^>]*>.*?</\1>", re.DOTALL)
_EXIT = re.compile(r"\bexit(?:ed)?(?: with)?(?: exit)?(?: code|:)[ :]*(-?\d{1,10})\b", re.IGNORECASE)
_SHELLS = frozenset({"shell", "bash", "run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2"})
_NO_MODEL = frozenset({"", "default"})
_RESULT_TEXTS = ("output", "contents", "content", "text", "result", "message")
_ERROR_TEXTS = ("modelVisibleErrorMessage", "clientVisibleErrorMessage", "error", "message")
_FOLDERS = ("working_directory", "workingDirectory", "cwd")


def string(value: Any) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value.strip() else None


def moment(value: Any) -> int | None:
    """UTC ms of an ISO time with its zone, or of a number of seconds, milliseconds or microseconds since 1970."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        size = abs(value)
        if not 1e8 <= size < 1e17:
            return None
        return int(value * 1000) if size < 1e11 else int(value) if size < 1e14 else int(value / 1000)
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return None if time.tzinfo is None else round(time.astimezone(UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def model_name(value: Any) -> str | None:
    """A model's name. "default" names none."""
    return value if isinstance(value, str) and value not in _NO_MODEL else None


def prompt_of(text: str) -> tuple[str, str]:
    """(what the user typed, what the program put around it). Without any `<user_query>` the whole text was typed."""
    typed = [part.strip() for part in _QUERY.findall(text)]
    if typed:
        return "\n".join(part for part in typed if part), _QUERY.sub("", text).strip()
    return ("", text.strip()) if not _CONTEXT.sub("", text).strip() else (text, "")


def parsed(value: Any) -> Any:
    """A value that is recorded as JSON inside a text; the text itself where it is none."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def arguments_of(*candidates: Any) -> Any:
    """The first of several recordings of a call's arguments that holds any, as an object."""
    rest: Any = None
    for candidate in map(parsed, candidates):
        if isinstance(candidate, dict):
            if candidate:
                return candidate
            rest = candidate if rest is None else rest
        elif candidate not in (None, ""):
            return {RAW: candidate}
    return rest


def folder_of(arguments: Any) -> str | None:
    """The directory that a call names for itself, where it is absolute."""
    if not isinstance(arguments, dict):
        return None
    for name in _FOLDERS:
        folder = arguments.get(name)
        if isinstance(folder, str) and (folder.startswith("/") or folder[1:3] in (":\\", ":/")):
            return folder
    return None


def local_path(uri: Any) -> str | None:
    """The path that a file URI of this machine names."""
    if not isinstance(uri, str):
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = unquote(parts.path)
    return path[1:] if path[2:3] == ":" else path or None


@dataclass(slots=True, frozen=True)
class Tool:
    """How a tool is called: the stored name, another spelling of it, and server and tool of an MCP call."""

    name: str
    original: str | None = None
    server: tuple[str, str] | None = None


def tool_of(name: str, arguments: Any = None) -> Tool:
    """The tool that a record names. Own tools are recognised under every spelling that Cursor gives MCP tools.

    Seen: `mcp--server--tool`, `mcp_server_tool`, `mcp__server__tool`, with `tools` of the arguments naming both. The
    original of an own tool is written with two underscores: that is the spelling that tells whose it is.
    """
    server = _server_of(name, arguments)
    spelled = f"mcp__{server[0]}__{server[1]}" if server else name
    own = toolnames.canonical(spelled)
    return Tool(own, spelled, server) if own in toolnames.OWN_TOOLS and own != spelled else Tool(name, None, server)


def _server_of(name: str, arguments: Any) -> tuple[str, str] | None:
    if not name.lower().startswith("mcp"):
        return None
    tools = arguments.get("tools") if isinstance(arguments, dict) else None
    first = tools[0] if isinstance(tools, list) and tools else None
    if isinstance(first, dict):
        server, tool = first.get("serverName"), first.get("name")
        if isinstance(server, str) and isinstance(tool, str):
            return server, tool
    for mark in ("--", "__", "_"):
        parts = name.split(mark, 2)
        if len(parts) == 3 and parts[0] == "mcp":
            return parts[1], parts[2]
    return None


@dataclass(slots=True)
class Result:
    """What a tool gave back: visible text, and the recorded rest."""

    text: str = ""
    exit_code: int | None = None
    rejected: bool = False
    rest: dict[str, Any] = field(default_factory=dict)


def result_of(tool: str, result: Any, error: Any = None) -> Result:
    """Read a tool's result, given as a text, as JSON in a text, or as an object. The exit code only where stated."""
    told = Result()
    value, failure = parsed(result), parsed(error)
    if isinstance(value, dict):
        name = next((name for name in _RESULT_TEXTS if string(value.get(name))), None)
        if name is not None:
            told.text = value[name]
        told.rest = {key: part for key, part in value.items() if key != name}
        told.rejected = value.get("rejected") is True
        code = value.get("exitCodeV2", value.get("exitCode"))
        if isinstance(code, int) and not isinstance(code, bool):
            told.exit_code = code
    elif isinstance(value, list):
        told.text = content_text(value) or _dumps(value)
    elif value is not None:
        told.text = result if isinstance(result, str) else str(value)
    if isinstance(failure, dict):
        words = next((failure[name] for name in _ERROR_TEXTS if string(failure.get(name))), "")
        told.rest["error"] = failure
    else:
        words = failure if isinstance(failure, str) else ""
    if words:
        told.text = f"{told.text}\n{words}" if told.text else words
    if told.exit_code is None and tool.lower() in _SHELLS:
        stated = _EXIT.search(_dumps(failure) if failure else told.text[:4096])
        told.exit_code = int(stated[1]) if stated else None
    if not told.text and told.rest:
        told.text, told.rest = _dumps(value) if isinstance(value, dict) and value else _dumps(told.rest), {}
    return told


def rich_text(value: Any) -> str:
    """The words of a rich text (a tree of paragraphs, texts and mentions), one line a paragraph."""
    lines: list[str] = []
    _walk(parsed(value), lines, 0)
    return "\n".join(line for line in lines).strip()


def _walk(node: Any, lines: list[str], depth: int) -> None:
    if isinstance(node, list):
        for part in node:
            _walk(part, lines, depth)
    if not isinstance(node, dict) or depth > 60:
        return
    if node.get("type") in ("paragraph", "heading", "linebreak", "hardBreak") or not lines:
        lines.append("")
    text = node.get("text")
    if not isinstance(text, str) and node.get("type") == "mention":
        attrs = node.get("attrs")
        text = (attrs.get("label") or attrs.get("id")) if isinstance(attrs, dict) else node.get("mentionName")
        text = f"@{text}" if isinstance(text, str) else None
    if isinstance(text, str):
        lines[-1] += text
    for name in ("root", "content", "children"):
        if name in node:
            _walk(node[name], lines, depth + 1)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
