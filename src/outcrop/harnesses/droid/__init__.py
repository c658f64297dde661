"""Factory's Droid (`droid`, agent tag `droid`): one file of lines a session, below a folder for each project.

Settings beside a session (`<id>.settings.json`), credentials, logs and snapshots are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Harness, Reader, Side, SourceFile
from outcrop.harnesses.places import expand, files


class Droid(Harness):
    """The `Harness` of Droid: its sessions, and captured output of `droid exec --output-format stream-json`."""

    name = "droid"
    title = "Droid"
    agent = "droid"
    sources: tuple[str, ...] = ("droid",)
    version = 1
    folders = ("sessions", "projects")

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The variable names what stands for the home folder."""
        chosen = environment.variables.get("FACTORY_HOME_OVERRIDE", "").strip()
        return [(expand(chosen, environment.home) if chosen else environment.home) / ".factory"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """All lines below `sessions` and `projects`; a root without them is a folder of sessions itself."""
        known = [root / name for name in ("sessions", "projects") if (root / name).is_dir()]
        for top in known or [root]:
            for _, name, path in files(str(top)):
                if name.endswith(".jsonl"):
                    yield SourceFile(path, source, native=name.removesuffix(".jsonl"))

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.droid.reader import DroidReader

        return DroidReader(file, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return ["droid", "--resume", native]


HARNESS: Harness = Droid()
