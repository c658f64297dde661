"""Pure readings of single Codex values: times, texts around a prompt, tool arguments and outputs, token counts.

Nothing here remembers anything; `codex_reader` folds these readings into a session. Every function takes whatever
JSON holds and gives an empty answer for a wrong shape.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses.content import attachment_note, block_text, content_text, parsed_arguments
from outcrop.harnesses.json_values import objects
from outcrop.harnesses.moments import clock_ms

_IDE_HEADINGS = ("# Context from my IDE setup:", "# Context from the IDE setup:")
_REQUEST_HEADING = "## My request for Codex:"

ABORTED_TAG = "<turn_aborted>"
SHELL_TAG = "<user_shell_command>"
_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
    "<skill>",
    "<skills_instructions>",
    "<apps_instructions>",
    "<plugins_instructions>",
    "<recommended_plugins>",
    "<collaboration_mode>",
    "<subagent_notification>",
    "<goal_context>",
    "<codex_internal_context",
    "<personality_spec>",
    "<model_switch>",
    SHELL_TAG,
    ABORTED_TAG,
)
"""What the program itself puts into user-role messages; looked for at the start of a block only."""

_TAG = re.compile(r"<([a-z][a-z_]{3,40})>")
_IMAGE_TAG = re.compile(r"</?image\b[^>]{0,200}>")
_SHELL_PARTS = re.compile(r"<command>\n?(.*?)\n?</command>\s*<result>\n?(.*?)\n?</result>", re.DOTALL)

_EXIT_LINE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)$", re.MULTILINE)
_RUNNING_LINE = re.compile(r"^Process running with session ID (\S+)$", re.MULTILINE)
_HEADS = ("Exit code: ", "Chunk ID: ", "Wall time: ", "Process ")
_HEAD_ENDS = "\nOutput:"
_FAILED = (
    "command timed out after",
    "aborted by user",
    "exec command rejected by user",
    "failed to parse function arguments",
    "apply_patch verification failed",
    "unsupported call",
    "tool call error",
)

_COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")

_FILE_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-")


@dataclass(slots=True)
class Output:
    """What a tool gave back. `exit_code` and `is_error` are None where the record does not tell."""

    text: str
    exit_code: int | None = None
    is_error: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def string(record: dict[str, Any], name: str) -> str:
    """The string under a name, else the empty one."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def file_name_ms(name: str) -> int | None:
    """UTC ms of the local time in `rollout-2026-11-02T09-15-00-<id>`, by this machine's zone."""
    found = _FILE_TIME.search(name)
    return clock_ms(found[1], "%Y-%m-%dT%H-%M-%S") if found else None


def uuid7_ms(value: Any) -> int | None:
    """The time inside a UUIDv7; None for every other text."""
    if not isinstance(value, str) or len(value) != 36 or value[14] != "7" or value[8] != "-" or value[13] != "-":
        return None
    try:
        return int(value[:8] + value[9:13], 16)
    except ValueError:
        return None


def squeezed(text: str) -> str:
    """A text without white space: how the two streams are compared, which join blocks differently."""
    return "".join(text.split())


def prompt_text(text: str) -> str:
    """What the user asked, without the IDE's context in front of it."""
    if text.lstrip().startswith(_IDE_HEADINGS):
        _, found, asked = text.rpartition(_REQUEST_HEADING)
        if found:
            return asked.strip()
    return text


def injected(text: str, wrapped: bool) -> bool:
    """Whether a block of a user-role message was put there by the program.

    `wrapped` also takes a block that one unknown tag encloses: safe where every real prompt has an event of its own.
    """
    head = text.lstrip()
    if head.startswith(_INJECTED):
        return True
    if not wrapped or not head.startswith("<"):
        return False
    found = _TAG.match(head)
    return found is not None and head.rstrip().endswith(f"</{found[1]}>")


def user_blocks(content: Any) -> tuple[list[str], list[str]]:
    """Texts and attachment notes of a user-role message; the tags that frame an image are left out."""
    if isinstance(content, str):
        return [content], []
    texts: list[str] = []
    notes: list[str] = []
    for block in objects(content):
        kind = block.get("type")
        if kind in ("input_image", "input_file", "image"):
            notes.append(attachment_note(block))
            continue
        text = block_text(block)
        if text.strip() and not _IMAGE_TAG.fullmatch(text.strip()):
            texts.append(text)
    return texts, notes


def message_images(payload: dict[str, Any]) -> list[str]:
    """Notes for the pictures of a user_message: inline ones by type and size, local ones by path."""
    notes: list[str] = []
    for name in ("images", "local_images"):
        urls = payload.get(name)
        for url in urls if isinstance(urls, list) else ():
            if isinstance(url, str):
                notes.append(attachment_note({"type": "image", "image_url": url}))
    return notes


def user_shell(text: str) -> tuple[str, Output] | None:
    """Command and result of a `!command` that the user ran."""
    found = _SHELL_PARTS.search(text)
    return (found[1].strip(), output(found[2])) if found else None


def texts(value: Any) -> list[str]:
    """The texts of a reasoning item's summary or content, or of an assistant message's blocks."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    return [text for text in map(block_text, objects(value)) if text.strip()]


def arguments(value: Any) -> Any:
    """Arguments of a call: Codex writes JSON text, some versions an object."""
    return parsed_arguments(value) if isinstance(value, str) else value


def tool_name(payload: dict[str, Any]) -> str:
    """Name of a called tool, with the MCP namespace in front: `mcp__server__tool`."""
    name, namespace = string(payload, "name"), string(payload, "namespace")
    if not namespace or name.startswith(namespace):
        return name
    joint = "" if namespace.endswith("_") or name.startswith("_") else "__"
    return namespace + joint + name


def output(value: Any) -> Output:
    """Any form of a tool's output: plain text, text behind a head of facts, JSON in a string, blocks, an object."""
    success: bool | None = None
    if isinstance(value, dict):
        flag = value.get("success")
        success = flag if isinstance(flag, bool) else None
        value = value.get("content", value.get("output", ""))
    text = content_text(value)
    extra: dict[str, Any] = {}
    exit_code: int | None = None
    if text.startswith('{"'):
        inner = _json_output(text)
        if inner is not None:
            text, metadata = inner
            code = metadata.get("exit_code")
            exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
            if isinstance(metadata.get("duration_seconds"), (int, float)):
                extra["duration_seconds"] = metadata["duration_seconds"]
    elif text.startswith(_HEADS):
        head = text[: text.find(_HEAD_ENDS) + 1] or text[:400]
        found = _EXIT_LINE.search(head)
        if found:
            exit_code = int(found[1])
        else:
            running = _RUNNING_LINE.search(head)
            if running:
                extra["running"] = running[1]
    is_error: bool | None = None
    if exit_code is not None:
        is_error = exit_code != 0
    elif success is not None:
        is_error = not success
    elif text.startswith(_FAILED):
        is_error = True
    return Output(text, exit_code, is_error, extra)


def usage(info: Any) -> dict[str, Any] | None:
    """Token counts of one request, apart: uncached input, cache read, visible output, reasoning, total; and the sum.

    Codex counts the cache inside the input and reasoning inside the output.
    """
    if not isinstance(info, dict):
        return None
    last, total = info.get("last_token_usage"), info.get("total_token_usage")
    if not isinstance(total, dict):
        return None
    found: dict[str, Any] = {"usage": _apart(last if isinstance(last, dict) else {}), "usage_total": _apart(total)}
    window = info.get("model_context_window")
    if isinstance(window, int):
        found["context_window"] = window
    return found


def _apart(counts: dict[str, Any]) -> dict[str, int]:
    numbers = [value if type(value) is int else 0 for value in map(counts.get, _COUNTS)]
    given, cached, told, reasoning, total = numbers
    return {
        "input": max(0, given - cached),
        "cache_read": cached,
        "output": max(0, told - reasoning),
        "reasoning": reasoning,
        "total": total,
    }


def _json_output(text: str) -> tuple[str, dict[str, Any]] | None:
    """`{"output": "...", "metadata": {...}}` in a string; None for JSON that the tool itself printed."""
    if not text.startswith('{"output":') and not text.startswith('{"metadata":'):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("output"), str):
        return None
    metadata = value.get("metadata")
    return (value["output"], metadata) if isinstance(metadata, dict) else None
