"""Cursor (`cursor`, agent tag `cursor`): the editor's databases and the agents' transcripts.

A conversation has one UUID in all its stores: composer id, transcript name, chat folder. So both sources share one
identity group. Credentials stand in the same databases and folders: only the tables, keys and files named here are
read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile, unlisted

DATABASE = "cursor-sqlite"
TRANSCRIPTS = "cursor"

CHAT = "chat"
CHAT_TITLE = "chat-title"
SIDECAR = "chat-sidecar"
SUMMARIES = "summaries"
STATE = "state"

_STATE, _CHAT, _SIDECAR, _TRACKING = "state.vscdb", "store.db", "meta.json", "ai-code-tracking.db"
_WRITTEN = ("projects", "chats", "acp-sessions", "ai-tracking")
"""Folders of a home in which conversations are written."""
_NOTE_LIMIT = 64 * 1024


class Cursor(Harness):
    """The `Harness` of the editor and the command line agent, which write the same folders."""

    name = "cursor"
    title = "Cursor"
    agent = "cursor"
    sources: tuple[str, ...] = (DATABASE, TRANSCRIPTS)
    version = 1

    def group(self, source: str) -> str:
        return "cursor"

    def roots(self, source: str, environment: Environment) -> list[Path]:
        home, variables = environment.home, environment.variables
        config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
        if source == TRANSCRIPTS:
            if chosen := variables.get("CURSOR_DATA_DIR"):
                return [Path(chosen)]
            return [home / ".cursor"] if environment.platform == "win32" else [home / ".cursor", config / "cursor"]
        if environment.platform == "darwin":
            config = home / "Library" / "Application Support"
        elif environment.platform == "win32":
            config = Path(variables.get("APPDATA") or home / "AppData" / "Roaming")
        return [config / "Cursor" / "User"]

    def watched(self, source: str, root: Path) -> list[Path]:
        """The editor keeps extensions and caches beside these."""
        names = ("globalStorage", "workspaceStorage") if source == DATABASE else _WRITTEN
        below = [root / name for name in names]
        return below if any(folder.is_dir() for folder in below) or not root.is_dir() else [root]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        if source == DATABASE:
            yield from _databases(root)
            return
        projects = root / "projects" if (root / "projects").is_dir() else root
        for project in _folders(projects):
            yield from _transcripts(Path(project) / "agent-transcripts")
        kept = _known_transcripts(projects)
        for bucket in _folders(root / "chats"):
            for chat in _folders(bucket):
                yield from _chat(chat, kept)
        for chat in _folders(root / "acp-sessions"):
            yield from _chat(chat, kept)
        tracking = root / "ai-tracking" / _TRACKING
        if tracking.is_file():
            yield SourceFile(str(tracking), TRANSCRIPTS, Form.CONTAINER, SUMMARIES)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        # A session inside a database comes under the database's path with a suffix, so the names tell them apart.
        place = os.path.basename(file.path.removesuffix(f"#{file.native}"))
        if place == _STATE:
            from outcrop.harnesses.cursor.composer import ComposerReader, workspace_folder

            beside = os.path.dirname(file.path)
            note = side.text(os.path.join(beside, "workspace.json"), beside, _NOTE_LIMIT)
            return ComposerReader(file.native, workspace_folder(note))
        if place in (_SIDECAR, _TRACKING):
            from outcrop.harnesses.cursor.titles import TitleReader

            return TitleReader(file)
        from outcrop.harnesses.cursor.transcript import TranscriptReader

        return TranscriptReader(file, state, side)

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        if isinstance(document, str):
            from outcrop.harnesses.cursor.plain import records

            return records(document)
        return [document] if isinstance(document, dict) else []

    def container(self, file: SourceFile) -> Container:
        if file.role == STATE:
            from outcrop.harnesses.cursor.database import StateDatabase

            return StateDatabase(file.path)
        from outcrop.harnesses.cursor.chats import ChatStore, Summaries

        if file.role == SUMMARIES:
            return Summaries(file.path)
        return ChatStore(file.path, file.role == CHAT)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return ["cursor-agent", "--resume", native]


def _databases(root: Path) -> Iterator[SourceFile]:
    """The global database, those of the workspaces, and one that lies right in a root that somebody configured."""
    places = [root / "globalStorage", *map(Path, _folders(root / "workspaceStorage")), root]
    for place in places:
        path = place / _STATE
        if path.is_file():
            yield SourceFile(str(path), DATABASE, Form.CONTAINER, STATE)


def _transcripts(folder: Path) -> Iterator[SourceFile]:
    """Transcripts of one project. Where a session has JSON lines, its older plain text is not read."""
    found: list[tuple[str, tuple[str, ...], str]] = []
    for place, folders, names in os.walk(folder, onerror=unlisted if folder.is_dir() else None):
        folders.sort()
        parts = Path(place).relative_to(folder).parts
        found += [(place, parts, name) for name in sorted(names) if name.endswith((".jsonl", ".txt"))]
    lines = {name.removesuffix(".jsonl") for _, _, name in found if name.endswith(".jsonl")}
    for place, parts, name in found:
        native, extension = os.path.splitext(name)
        if extension == ".txt" and native in lines:
            continue
        parent = parts[-2] if len(parts) > 1 and parts[-1] == "subagents" else None
        form = Form.LINES if extension == ".jsonl" else Form.TEXT
        yield SourceFile(os.path.join(place, name), TRANSCRIPTS, form, native=native, parent=parent)


def _known_transcripts(projects: Path) -> frozenset[str]:
    """Native ids with a transcript, as far as names at the top of the folders tell."""
    names: set[str] = set()
    for project in _folders(projects):
        folder = Path(project) / "agent-transcripts"
        if folder.is_dir():
            names.update(name.removesuffix(".jsonl").removesuffix(".txt") for name in os.listdir(folder))
    return frozenset(names)


def _chat(folder: str, transcripts: frozenset[str]) -> Iterator[SourceFile]:
    """The store of a chat, which is read for its title alone where a transcript holds the conversation."""
    native = os.path.basename(folder)
    store, sidecar = os.path.join(folder, _CHAT), os.path.join(folder, _SIDECAR)
    if os.path.isfile(store):
        role = CHAT_TITLE if native in transcripts else CHAT
        yield SourceFile(store, TRANSCRIPTS, Form.CONTAINER, role, native)
    if os.path.isfile(sidecar):
        yield SourceFile(sidecar, TRANSCRIPTS, Form.DOCUMENT, SIDECAR, native)


def _folders(folder: Path | str) -> list[str]:
    """The folders right in a folder, in order; none where it does not exist."""
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))


HARNESS: Harness = Cursor()
