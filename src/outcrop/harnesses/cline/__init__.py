"""Cline and its fork Roo Code (`cline`, agent tag `cline`): places.

The editor extensions keep a folder a task; of it the list of shown messages is read, which has the times, the prompts
and the outcome. The command line keeps a folder a session.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile

TASK, MESSAGES, META = "task", "messages", "session-meta"
_SHOWN = "ui_messages.json"
_OLD_SHOWN = "claude_messages.json"
_EXTENSIONS = {"cline": "saoudrizwan.claude-dev", "roo": "rooveterinaryinc.roo-cline"}
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")


class Cline(Harness):
    """The `Harness` of Cline (editor and command line) and Roo Code."""

    name = "cline"
    title = "Cline"
    agent = "cline"
    sources: tuple[str, ...] = ("cline", "roo")
    version = 1

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The extension's storage in every editor, on this machine and for remote windows; Cline's own folder."""
        home, variables = environment.home, environment.variables
        config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
        if environment.platform == "darwin":
            config = home / "Library" / "Application Support"
        elif environment.platform == "win32":
            config = Path(variables.get("APPDATA") or home / "AppData" / "Roaming")
        users = [config / editor / "User" for editor in _EDITORS] + [home / ".vscode-server" / "data" / "User"]
        roots = [user / "globalStorage" / _EXTENSIONS[source] for user in users]
        return [*roots, home / ".cline" / "data"] if source == "cline" else roots

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        for folder in _folders(root / "tasks"):
            name = next((name for name in (_SHOWN, _OLD_SHOWN) if os.path.isfile(os.path.join(folder, name))), None)
            if name is not None:
                native = os.path.basename(folder)
                yield SourceFile(os.path.join(folder, name), source, Form.DOCUMENT, TASK, native)
        for folder in _folders(root / "sessions"):
            native = os.path.basename(folder)
            for name, role in ((f"{native}.messages.json", MESSAGES), (f"{native}.json", META)):
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    yield SourceFile(path, source, Form.DOCUMENT, role, native)

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        if file.role == META:
            return [document] if isinstance(document, dict) else []
        if isinstance(document, dict):
            document = document.get("messages")
        listed = document if isinstance(document, list) else []
        rows = [row if isinstance(row, dict) else {"record": row} for row in listed]
        if file.role != TASK:
            return rows
        from outcrop.harnesses.cline.task import with_cancels

        return with_cancels(rows)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role == TASK:
            from outcrop.harnesses.cline.task import TaskReader

            return TaskReader(file.native)
        from outcrop.harnesses.cline.session import MetaReader, SessionReader

        if file.role == META:
            return MetaReader(file)
        return SessionReader(file, side)


def _folders(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))


HARNESS: Harness = Cline()
