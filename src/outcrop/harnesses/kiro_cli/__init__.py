"""Kiro CLI (`kiro-cli`, agent tag `kiro`): transcripts with a sidecar, the older database, and the newest layout.

A conversation of the database that is continued in the newer program is written out under its old id; both are one
session. Tokens of the account lie in the same database: only the tables of conversations are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile

TRANSCRIPT, SIDECAR, MESSAGES, SESSION, DATABASE = "transcript", "sidecar", "messages", "session", "database"
_DATABASE = "data.sqlite3"
_CLI = "cli"


class KiroCli(Harness):
    """Amazon's Kiro CLI, formerly Amazon Q."""

    name = "kiro-cli"
    title = "Kiro CLI"
    agent = "kiro"
    sources: tuple[str, ...] = ("kiro",)
    version = 1
    folders = ("sessions",)

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The folder of sessions, and the data folders of the program and of its ancestor, which hold databases."""
        variables, home = environment.variables, environment.home
        chosen = variables.get("KIRO_HOME")
        if environment.platform == "darwin":
            data = [home / "Library" / "Application Support"]
        elif environment.platform == "win32":
            folders = (("LOCALAPPDATA", "Local"), ("APPDATA", "Roaming"))
            data = [Path(variables.get(name) or home / "AppData" / place) for name, place in folders]
        else:
            data = [Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")]
        programs = [folder / program for folder in data for program in ("kiro-cli", "amazon-q")]
        return [Path(chosen) if chosen else home / ".kiro", *programs]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        if root.is_file():
            yield SourceFile(str(root), source, Form.CONTAINER, DATABASE)
            return
        if (root / _DATABASE).is_file():
            yield SourceFile(str(root / _DATABASE), source, Form.CONTAINER, DATABASE)
        for workspace in _folders(root / "sessions"):
            if workspace.name == _CLI:
                yield from _pairs(workspace, source)
                continue
            for session in _folders(workspace):
                if (session / "messages.jsonl").is_file():
                    path = str(session / "messages.jsonl")
                    yield SourceFile(path, source, Form.LINES, MESSAGES, session.name)
                if (session / "session.json").is_file():
                    path = str(session / "session.json")
                    yield SourceFile(path, source, Form.DOCUMENT, SESSION, session.name)

    def container(self, file: SourceFile) -> Container:
        from outcrop.harnesses import sqlite
        from outcrop.harnesses.kiro_cli.database import KiroDatabase

        connection = sqlite.open_read_only(file.path)
        try:
            return KiroDatabase(connection)
        except BaseException:
            connection.close()
            raise

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.form is Form.CONTAINER:
            from outcrop.harnesses.kiro_cli.database import ConversationReader

            return ConversationReader(file.native, state)
        if file.role in (MESSAGES, SESSION):
            from outcrop.harnesses.kiro_cli.messages import MessagesReader, SessionReader

            return SessionReader(file) if file.role == SESSION else MessagesReader(file, state, side)
        from outcrop.harnesses.kiro_cli.transcript import SidecarReader, TranscriptReader

        return SidecarReader(file, side) if file.role == SIDECAR else TranscriptReader(file, state, side)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return None if "/" in native else ["kiro-cli", "chat", "--resume-id", native]


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return [folder / name for name in sorted(entry.name for entry in entries if entry.is_dir())]


def _pairs(folder: Path, source: str) -> Iterator[SourceFile]:
    """Transcripts and their sidecars; `.history` repeats prompts, `.lock` says who runs."""
    for name in sorted(os.listdir(folder)):
        stem, ending = os.path.splitext(name)
        if ending in (".jsonl", ".json") and (folder / name).is_file():
            lines = ending == ".jsonl"
            form, role = (Form.LINES, TRANSCRIPT) if lines else (Form.DOCUMENT, SIDECAR)
            yield SourceFile(str(folder / name), source, form, role, stem)


HARNESS: Harness = KiroCli()
