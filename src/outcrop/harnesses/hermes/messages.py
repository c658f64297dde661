"""What a message of Hermes is in whichever store: its text, its calls, and the name that it has in all of them.

A message is named by the number of its row, which stays when it is edited. A file numbers nothing: where the database
holds the session too, a message there has the name of the row that says the same, or stands in the same place between
two that do; elsewhere its place names it. What a message says is told without times, names of tools in results and
reasoning: not every store has them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from outcrop.harnesses import jsonl
from outcrop.harnesses.content import attachment_note, block_text
from outcrop.harnesses.matching import matches
from outcrop.harnesses.moments import local_ms
from outcrop.ids import text_digest

SUMMARY = re.compile(r"\s*\[CONTEXT (?:COMPACTION|SUMMARY\]:)")
"""How the summary begins that replaces earlier messages."""
SUMMARY_END = re.compile(r"-{3} END OF CONTEXT SUMMARY[^\n]*")
MERGED = re.compile(r"\[END OF PRIOR CONTEXT [^\]\n]*\]\s*")
PRIOR = re.compile(r"\s*\[PRIOR CONTEXT [^\]\n]*\]\s*")

_LISTED = ("\0json:", "\x01json:")
"""How the database marks content that is a list of parts."""


def content_of(value: Any) -> tuple[str, list[str]]:
    """The text of content, and a note for each picture or document in it."""
    if isinstance(value, str) and value.startswith(_LISTED):
        try:
            value = jsonl.document(value[6:].encode("utf-8", "replace"))
        except ValueError:
            return value[6:], []
    if isinstance(value, str):
        return value, []
    if isinstance(value, dict):
        value = [value]
    texts: list[str] = []
    notes: list[str] = []
    for part in value if isinstance(value, list) else ():
        if isinstance(part, dict) and part.get("type") in ("image_url", "image", "input_image", "file", "document"):
            notes.append(attachment_note(part))
        elif text := block_text(part):
            texts.append(text)
        elif isinstance(part, dict) and part.get("type") not in ("text", "input_text", "output_text"):
            texts.append(json.dumps(part, ensure_ascii=False, default=str))
    return "\n".join(texts), notes


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message: id, name, arguments as they stand."""
    listed = message.get("tool_calls")
    if isinstance(listed, str):
        try:
            listed = jsonl.document(listed.encode("utf-8", "replace"))
        except ValueError:
            return []
    found = []
    for call in listed if isinstance(listed, list) else ():
        if isinstance(call, dict):
            function = call.get("function")
            inner = function if isinstance(function, dict) else call
            found.append(
                {"id": text(call, "id") or text(call, "call_id"), "name": text(inner, "name"),
                 "arguments": inner.get("arguments")}
            )  # fmt: skip
    return found


def identity(message: dict[str, Any]) -> str:
    """The digest of what a message says."""
    said, notes = content_of(message.get("content"))
    calls = [[call["id"], call["name"]] for call in calls_of(message)]
    meaning = [text(message, "role"), said.strip(), notes, text(message, "tool_call_id"), calls]
    return text_digest(json.dumps(meaning, ensure_ascii=True, default=str))


def keyed(messages: Iterable[dict[str, Any]], rows: Sequence[dict[str, Any]] = ()) -> list[tuple[str, dict[str, Any]]]:
    """Messages of one store with their keys; `rows` are those of the database, where it holds the session."""
    listed = list(messages)
    same = {} if listed and "row" in listed[0] else matches(list(map(identity, listed)), list(map(identity, rows)))
    found = []
    before, behind = "", 0
    for place, message in enumerate(listed):
        row = message if "row" in message else rows[same[place]] if place in same else None
        if row is not None:
            before, behind = f"row{row['row']}", 0
            found.append((before, message))
            continue
        if not rows and is_summary(message):  # it takes the place of a head, and what follows was counted from there
            before, behind = f"{identity(message)}:", 0
        found.append((f"{before}+{behind}", message))
        behind += 1
    return found


def copies(own: list[tuple[str, dict[str, Any]]], parent: list[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """Keys of the messages at the head of a session that came from its parent → their keys there.

    A branch copies from the parent's beginning. A session that goes on after a compression begins with that, and
    behind the summary with the parent's end.
    """
    split = next((place for place, (_, message) in enumerate(own) if is_summary(message)), None)
    said = [identity(message) for _, message in own]
    told = [identity(message) for _, message in parent]
    found: dict[str, str] = {}
    for place, (mine, there) in enumerate(zip(said[:split], told, strict=False)):
        if mine != there:
            break
        found[own[place][0]] = parent[place][0]
    if split is not None:
        rest = said[split + 1 :]
        length = next((n for n in range(min(len(rest), len(told)), 0, -1) if rest[:n] == told[-n:]), 0)
        for (key, _), (there, _) in zip(own[split + 1 :][:length], parent[len(parent) - length :], strict=True):
            found[key] = there
    return found


def is_summary(message: dict[str, Any]) -> bool:
    return (
        message.get("_compressed_summary") in (1, True)
        or SUMMARY.match(content_of(message.get("content"))[0]) is not None
    )


def richness(messages: list[dict[str, Any]]) -> tuple[int, int]:
    """How much a store holds of a session: messages, then their calls and thoughts."""
    said = [message for message in messages if message.get("role") in ("user", "assistant", "tool")]
    details = sum(
        bool(message.get("tool_calls")) + bool(message.get("reasoning") or message.get("reasoning_content"))
        for message in said
    )
    return len(said), details


def text(record: dict[str, Any], name: str) -> str:
    """A text field; empty where it is missing or of another type."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> dict[str, Any]:
    """An object, or the object that a JSON text holds; empty for anything else."""
    if isinstance(value, str):
        try:
            value = jsonl.document(value.encode("utf-8", "replace"))
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def time_ms(value: Any) -> int | None:
    """UTC ms of seconds (the database) or of a date, which is the machine's own time where it names no zone."""
    if isinstance(value, str):
        return local_ms(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    return round(value * 1000) if value < 1e11 else int(value) if value < 1e14 else None
