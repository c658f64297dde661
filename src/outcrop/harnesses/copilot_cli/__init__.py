"""Copilot CLI (`copilot-cli`, agent tag `copilot`): the event logs under $COPILOT_HOME or ~/.copilot.

Each session has a folder with its log and a small note that names it. Editors that run the same agent write there too.
Settings, the databases and everything else there, credentials above all, is not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile

LOG, NOTE = "log", "workspace"
"""Roles: the log of a session, and the note beside it."""

_STATE, _LOG, _NOTE = "session-state", "events.jsonl", "workspace.yaml"


class CopilotCli(Harness):
    """The `Harness` of GitHub's command line agent."""

    name = "copilot-cli"
    title = "Copilot CLI"
    agent = "copilot"
    sources: tuple[str, ...] = ("copilot-cli",)
    version = 1
    folders = ("session-state",)

    def roots(self, source: str, environment: Environment) -> list[Path]:
        chosen = environment.variables.get("COPILOT_HOME")
        return [Path(chosen) if chosen else environment.home / ".copilot"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Folders of `session-state` with a log or a note, and the logs of the first layout, which lie right in it."""
        state = root / _STATE if (root / _STATE).is_dir() else root
        if not state.is_dir():
            return
        with os.scandir(state) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                for name, form, role in ((_LOG, Form.LINES, LOG), (_NOTE, Form.TEXT, NOTE)):
                    path = os.path.join(entry.path, name)
                    if os.path.isfile(path):
                        yield SourceFile(path, source, form, role, entry.name)
            elif entry.name.endswith(".jsonl") and not os.path.isfile(state / entry.name[:-6] / _LOG):
                yield SourceFile(entry.path, source, Form.LINES, LOG, entry.name.removesuffix(".jsonl"))

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        from outcrop.harnesses.copilot_cli.workspace import note

        return [note(document)] if isinstance(document, str) else []

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role == NOTE:
            from outcrop.harnesses.copilot_cli.workspace import NoteReader

            return NoteReader(file)
        from outcrop.harnesses.copilot_cli.reader import CopilotReader

        return CopilotReader(file.native, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for a subagent: it goes on inside the session that started it."""
        return None if "/" in native else ["copilot", f"--resume={native}"]


HARNESS: Harness = CopilotCli()
