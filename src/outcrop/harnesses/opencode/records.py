"""What both of OpenCode's stores hand to the reader: one record for each native row, in the conversation's order.

A message's parts come before the message itself, because the message says how its step ended. Each part carries `of`,
the little that it needs to know of its message; the same rows give the same records from the tree and the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from outcrop.harnesses import jsonl
from outcrop.harnesses.moments import number_ms

SHELL_NOTE = "The following tool was executed by the user"
"""The synthetic prompt under which OpenCode records a command that the user ran."""


@dataclass(slots=True)
class Message:
    """A message as it is stored; `data` and the data of each (id, data) part are whatever stood there."""

    id: str
    data: Any
    created: Any = None
    parts: list[tuple[str, Any]] = field(default_factory=list)


def loaded(data: Any) -> Any:
    """The value of a JSON cell or file; what is no JSON stays as it is, for the reader to report."""
    if isinstance(data, str | bytes):
        try:
            return jsonl.document(data.encode("utf-8", "replace") if isinstance(data, str) else data)
        except ValueError:
            return data if isinstance(data, str) else data.decode("utf-8", "replace")
    return data


def conversation(messages: Iterable[Message], revert: Any) -> Iterator[dict[str, Any]]:
    """The records of messages in their order. What an undo took back, from `revert` on, is marked `reverted`."""
    point = revert if isinstance(revert, dict) else {}
    gone = False
    for message in messages:
        here = message.id == point.get("messageID")
        first = point.get("partID") if here else None
        gone = gone or (here and not first)
        of = _context(message)
        for id, data in message.parts:
            gone = gone or (first is not None and id == first)
            yield {"record": "part", "id": id, "data": data, "of": of, "reverted": gone}
        gone = gone or here
        yield {"record": "message", "id": message.id, "data": message.data, "of": of, "reverted": gone}


def _context(message: Message) -> dict[str, Any]:
    data = mapping(message.data)
    parts = [mapping(part) for _, part in message.parts]
    role = text(data, "role")
    model, place = mapping(data.get("model")), mapping(data.get("path"))
    created = time_ms(mapping(data.get("time")).get("created"))
    return {
        "id": message.id,
        "role": role,
        "parent": text(data, "parentID") or None,
        "model": text(data, "modelID") or text(model, "modelID") or None,
        "cwd": text(place, "cwd") or None,
        "created": created if created is not None else time_ms(message.created),
        "summary": data.get("summary") is True,
        "prompt": role == "user" and (not parts or any(map(asks, parts))),
        "shell": any(part.get("synthetic") is True and part.get("text") == SHELL_NOTE for part in parts),
        "tools": any(part.get("type") == "tool" for part in parts),
    }


def asks(part: dict[str, Any]) -> bool:
    """Whether a part of a user message is words of the user: typed text, or a command that starts a subagent."""
    if part.get("type") == "subtask":
        return True
    hidden = part.get("synthetic") is True or part.get("ignored") is True
    return part.get("type") == "text" and not hidden and text(part, "text").strip() != ""


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def text(record: dict[str, Any], name: str) -> str:
    """A text field; empty where it is missing or of another type."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def time_ms(value: Any) -> int | None:
    """UTC ms of a number in milliseconds or, where it is too small for that, seconds. None for anything else."""
    return number_ms(value, int)
