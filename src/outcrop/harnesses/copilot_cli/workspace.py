"""The note beside a session's log, `workspace.yaml`: a flat list of names and values, of which the title is wanted."""

from __future__ import annotations

import json
import re
from typing import Any

from outcrop.harnesses.documents import FactsReader
from outcrop.model import Fact, Item

_LINE = re.compile(r"^([A-Za-z_][\w-]*):(?:[ \t]+(.*))?$")


def note(text: str) -> dict[str, Any]:
    """The names and values of a flat YAML mapping; block texts are joined by line ends, all else stays text."""
    found: dict[str, Any] = {}
    name, block = "", False
    for line in text.replace("\r\n", "\n").split("\n"):
        if block and (line.startswith(" ") or not line.strip()):
            found[name] = f"{found[name]}\n{line.strip()}".strip("\n")
            continue
        match = _LINE.match(line)
        block = False
        if match is None:
            continue
        name, value = match[1], (match[2] or "").strip()
        block = value[:1] in ("|", ">")
        found[name] = "" if block else _scalar(value)
    return found


class NoteReader(FactsReader):
    """The `Reader` of a note."""

    silent = "names no title"

    def facts(self, record: dict[str, Any]) -> list[Item]:
        """`name` is the title, by the user where `user_named` says so; older versions call it `summary`."""
        title = next(
            (value for name in ("name", "summary") if isinstance(value := record.get(name), str) and value.strip()),
            None,
        )
        if title is None:
            return []
        user = record.get("user_named") == "true" and bool(record.get("name"))
        return [Fact("title.user" if user else "title.generated", title.strip())]


def _scalar(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            read = json.loads(value)
        except ValueError:
            return value[1:-1]
        return read if isinstance(read, str) else value
    return value
