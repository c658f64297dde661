"""Grok's command line agent (`grok`, agent tag `grok`): a folder for each session with the conversation and a summary.

What the program keeps for its screen and for tracing (`updates.jsonl`, `events.jsonl`), rewind points, outputs of
terminals and credentials stand in the same folders and are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile
from outcrop.harnesses.places import expand, files


class Grok(Harness):
    """The `Harness` of xAI's Grok Build."""

    name = "grok"
    title = "Grok"
    agent = "grok"
    sources: tuple[str, ...] = ("grok",)
    version = 1
    folders = ("sessions",)

    def roots(self, source: str, environment: Environment) -> list[Path]:
        chosen = environment.variables.get("GROK_HOME", "").strip()
        return [expand(chosen, environment.home) if chosen else environment.home / ".grok"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Folders of sessions in any depth of `sessions`: each holds one conversation."""
        top = root / "sessions" if (root / "sessions").is_dir() else root
        for folder, name, _ in files(str(top)):
            if name == "chat_history.jsonl":
                yield SourceFile(folder, source, Form.CONTAINER, "folder", os.path.basename(folder))

    def container(self, file: SourceFile) -> Container:
        from outcrop.harnesses.grok.folder import Folder

        return Folder(file.path)

    def stamp(self, file: SourceFile) -> tuple[int, int]:
        from outcrop.harnesses.grok.folder import signs_of

        signs = signs_of(file.path)
        return sum(sign[0] for sign in signs), max(sign[1] for sign in signs)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.grok.reader import GrokReader

        return GrokReader(file.native, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return ["grok", "--resume", native]


HARNESS: Harness = Grok()
