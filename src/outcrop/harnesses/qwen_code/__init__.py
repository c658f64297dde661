"""Qwen Code (`qwen-code`, agent tag `qwen`): one file of records a session, and one for each of its agents.

Its first versions wrote the documents of the program that it grew from; their reader is Gemini CLI's. Settings,
credentials, snapshots of files and backups stand in the same folders and are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile
from outcrop.harnesses.places import expand, files

AGENT = "agent"
"""Role of the transcript of an agent."""
CHAT = "chat"
"""Role of a document of the first generation."""

_META = ".meta.json"


class QwenCode(Harness):
    """The `Harness` of Alibaba's Qwen Code."""

    name = "qwen-code"
    title = "Qwen Code"
    agent = "qwen"
    sources: tuple[str, ...] = ("qwen-code",)
    version = 1
    folders = ("projects", "tmp")

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The runtime folder of the environment, and the home of the program, which an older version may have used."""
        variables, home = environment.variables, environment.home
        chosen = [variables.get(name, "").strip() for name in ("QWEN_RUNTIME_DIR", "QWEN_HOME")]
        places = [expand(one, home) for one in chosen if one]
        return list(dict.fromkeys(places)) if chosen[1] else [*places, home / ".qwen"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Sessions of every project, live and archived, their agents, and documents of the first generation.

        A root without `projects` and `tmp` is a folder of sessions itself.
        """
        known = [root / name for name in ("projects", "tmp") if (root / name).is_dir()]
        for top in known or [root]:
            for folder, name, path in files(str(top)):
                parts = Path(folder).relative_to(top).parts
                if known and top.name == "projects":
                    found = _session(parts, name, path, source)
                elif known:
                    found = _chat(parts, name, path, source)
                else:
                    found = _session(("", "chats"), name, path, source)
                if found is not None:
                    yield found

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role == CHAT:
            from outcrop.harnesses.gemini_chat import ChatReader

            return ChatReader(file, state)
        from outcrop.harnesses.qwen_code.reader import QwenReader
        from outcrop.harnesses.qwen_code.system import SUBTYPES

        return QwenReader(file, state, side, SUBTYPES)

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        from outcrop.harnesses.gemini_chat import records

        return records(document)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for an agent, which only its session continues."""
        return None if "/" in native else ["qwen", "--resume", native]


def _session(parts: tuple[str, ...], name: str, path: str, source: str) -> SourceFile | None:
    """A file below `projects`: `<project>/chats[/archive]/<id>.jsonl`, `<project>/subagents/<id>/agent-<id>.jsonl`."""
    stem, extension = os.path.splitext(name)
    if extension != ".jsonl":
        return None
    if parts[1:] in (("chats",), ("chats", "archive")):
        return SourceFile(path, source, native=stem)
    if len(parts) == 3 and parts[1] == "subagents":
        return SourceFile(path, source, role=AGENT, native=f"{parts[2]}/{stem}", parent=parts[2])
    return None


def _chat(parts: tuple[str, ...], name: str, path: str, source: str) -> SourceFile | None:
    """A file below `tmp`: `<project>/chats/session-*.json`, and for a while sessions of today's kind."""
    if parts[1:] != ("chats",):
        return None
    if name.endswith(".jsonl"):
        return SourceFile(path, source, native=name.removesuffix(".jsonl"))
    if name.startswith("session-") and name.endswith(".json"):
        return SourceFile(path, source, Form.DOCUMENT, CHAT)
    return None


HARNESS: Harness = QwenCode()
