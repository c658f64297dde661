"""Copilot Chat in VS Code (`copilot-vscode`, agent tag `copilot-vscode`): the chat sessions that the editor keeps.

The editor owns the files, not the extension: one for each conversation, in the storage of its workspace or, for windows
without a folder, in the common one. Its databases and settings are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile

_EDITORS = ("Code", "Code - Insiders", "VSCodium")
_SERVERS = (".vscode-server", ".vscode-server-insiders")
_NOTE_LIMIT = 64 * 1024


class CopilotVsCode(Harness):
    """The `Harness` of chat in VS Code, whichever participant answered."""

    name = "copilot-vscode"
    title = "VS Code Copilot Chat"
    agent = "copilot-vscode"
    sources: tuple[str, ...] = ("copilot-vscode",)
    version = 1
    folders = ("workspaceStorage", "globalStorage/emptyWindowChatSessions")

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The folder `User` of each build of the editor, on this machine and for remote windows."""
        home, variables = environment.home, environment.variables
        config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
        if environment.platform == "darwin":
            config = home / "Library" / "Application Support"
        elif environment.platform == "win32":
            config = Path(variables.get("APPDATA") or home / "AppData" / "Roaming")
        roots = [config / editor / "User" for editor in _EDITORS] + [
            home / server / "data" / "User" for server in _SERVERS
        ]
        portable = variables.get("VSCODE_PORTABLE")
        return [*roots, Path(portable) / "user-data" / "User"] if portable else roots

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Of a session in both forms, the log of changes alone is read: the editor does the same."""
        places = [Path(folder) / "chatSessions" for folder in _folders(root / "workspaceStorage")]
        for place in (*places, root / "globalStorage" / "emptyWindowChatSessions"):
            names = sorted(os.listdir(place)) if place.is_dir() else []
            for name in names:
                native, extension = os.path.splitext(name)
                path = str(place / name)
                if not os.path.isfile(path) or extension not in (".json", ".jsonl"):
                    continue
                if extension == ".jsonl":
                    yield SourceFile(path, source, Form.TEXT, "changes", native)
                elif f"{native}.jsonl" not in names:
                    yield SourceFile(path, source, Form.DOCUMENT, "session", native)

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        from outcrop.harnesses.copilot_vscode.changes import replayed
        from outcrop.harnesses.copilot_vscode.records import conversation

        broken: list[dict[str, Any]] = []
        if isinstance(document, str):
            document, broken = replayed(document)
        yield from conversation(document)
        yield from broken

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.copilot_vscode.reader import ChatReader, workspace_folder

        beside = os.path.dirname(os.path.dirname(file.path))
        note = side.text(os.path.join(beside, "workspace.json"), beside, _NOTE_LIMIT)
        return ChatReader(file.native, workspace_folder(note))


def _folders(folder: Path) -> list[str]:
    """The folders right in a folder, in order; none where it does not exist."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))


HARNESS: Harness = CopilotVsCode()
