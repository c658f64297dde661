"""Gemini CLI (`gemini-cli`, agent tag `gemini`): one chat file a session, below a folder for each project.

A project's folder is named by the digest of its path, later by a short name that a marker in it explains. Credentials,
settings, logs of prompts, tagged copies of chats (`checkpoint-*.json`) and tool outputs stand beside and are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile
from outcrop.harnesses.json_values import object_of
from outcrop.harnesses.places import expand, files

_CHATS, _MARKER, _PROJECTS = "chats", ".project_root", "projects.json"
_MARKER_LIMIT, _PROJECTS_LIMIT = 16 * 1024, 1024 * 1024


class GeminiCli(Harness):
    """The `Harness` of Google's Gemini CLI."""

    name = "gemini-cli"
    title = "Gemini CLI"
    agent = "gemini"
    sources: tuple[str, ...] = ("gemini-cli",)
    version = 1
    folders = ("tmp",)

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The variable names what stands for the home folder."""
        chosen = environment.variables.get("GEMINI_CLI_HOME", "").strip()
        return [(expand(chosen, environment.home) if chosen else environment.home) / ".gemini"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Chats below `tmp/<project>/chats`, and those of agents in folders there that bear their session's id.

        A root without `tmp` is a folder of chats itself.
        """
        top = root / "tmp"
        if top.is_dir():
            for project in sorted(top.iterdir()):
                if project.is_dir() and not project.is_symlink():
                    yield from _chats(project / _CHATS, source)
            return
        for _, name, path in files(str(root)):
            if name.endswith((".json", ".jsonl")):
                # Outside the program's own folders a name does not tell whether lines or one document stand in a file.
                form = Form.TEXT if name.endswith(".jsonl") else Form.DOCUMENT
                yield SourceFile(path, source, form, native=os.path.splitext(name)[0])

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.gemini_chat import ChatReader

        return ChatReader(file, state, None if state else _folder(file.path, side))

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        from outcrop.harnesses.gemini_chat import records

        return records(document)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return ["gemini", "--resume", native]


def _chats(folder: Path, source: str) -> Iterator[SourceFile]:
    if not folder.is_dir():
        return
    for place, name, path in files(str(folder)):
        stem, extension = os.path.splitext(name)
        parts = Path(place).relative_to(folder).parts
        if extension not in (".json", ".jsonl") or len(parts) > 1:
            continue
        form = Form.LINES if extension == ".jsonl" else Form.DOCUMENT
        if parts:
            yield SourceFile(path, source, form, native=f"{parts[0]}/{stem}", parent=parts[0])
        else:
            yield SourceFile(path, source, form, native=stem)


def _folder(path: str, side: Side) -> str | None:
    """The project's folder: as its marker says, or that of the known projects whose path has the folder's digest."""
    place = Path(path).parent
    if place.name != _CHATS:
        place = place.parent
    project = place.parent
    if place.name != _CHATS:
        return None
    told = side.text(str(project / _MARKER), str(project), _MARKER_LIMIT)
    if told and told.strip():
        return told.strip()
    home = str(project.parent.parent)
    try:
        known = orjson.loads(side.text(os.path.join(home, _PROJECTS), home, _PROJECTS_LIMIT) or "{}")
    except orjson.JSONDecodeError:
        return None
    for folder, name in object_of(known, "projects").items():
        if name == project.name or sha256(folder.encode()).hexdigest() == project.name:
            return str(folder)
    return None


HARNESS: Harness = GeminiCli()
