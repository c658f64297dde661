"""Hermes Agent (`hermes`, agent tag `hermes`): its home with three stores of the same sessions, and trajectories.

A home is read as one place, so that a session that stands in several stores is told once. Settings, `auth.json`,
memories and the index of chats are never read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile

HOME, RUNS = "home", "trajectories"
"""Roles: a place of sessions (a home, a folder of session files, or one such file); runs, one a line."""
RUN = "run-"
"""How native ids of trajectories begin, which have none of their own."""


class Hermes(Harness):
    """The `Harness` of Hermes Agent by Nous Research."""

    name = "hermes"
    title = "Hermes Agent"
    agent = "hermes"
    sources: tuple[str, ...] = ("hermes",)
    version = 2

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The home. Trajectories are written where a run was told to: their folders must be configured."""
        variables, home = environment.variables, environment.home
        if variables.get("HERMES_HOME"):
            return [Path(variables["HERMES_HOME"])]
        if environment.platform == "win32":
            local = variables.get("LOCALAPPDATA")
            return [(Path(local) if local else home / "AppData" / "Local") / "hermes", home / ".hermes"]
        return [home / ".hermes"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Homes and their profiles; in any other folder files of sessions, and runs there or one folder below."""
        from outcrop.harnesses.hermes.files import is_runs, is_transcript

        if root.is_file():
            lines = root.suffix == ".jsonl" and not is_transcript(root)
            yield SourceFile(str(root), source, *((Form.LINES, RUNS) if lines else (Form.CONTAINER, HOME)))
            return
        if not root.is_dir():
            return
        homes = [root, *_folders(root / "profiles")]
        found = [home for home in homes if is_home(home)]
        for home in found:
            yield SourceFile(str(home), source, Form.CONTAINER, HOME)
        if root not in found and any(name.endswith((".json", ".jsonl")) for name in _loose(root)):
            yield SourceFile(str(root), source, Form.CONTAINER, HOME)
        below = [root / "trajectories"] if root in found else _folders(root)
        for folder in [root, *below]:
            if folder in found and folder is not root:
                continue
            for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
                if is_runs(path):
                    yield SourceFile(str(path), source, Form.LINES, RUNS)

    def container(self, file: SourceFile) -> Container:
        from outcrop.harnesses.hermes.home import Home

        return Home(Path(file.path))

    def stamp(self, file: SourceFile) -> tuple[int, int]:
        from outcrop.harnesses.hermes.home import stamp

        return stamp(Path(file.path))

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role == RUNS:
            from outcrop.harnesses.hermes.trajectories import TrajectoriesReader

            return TrajectoriesReader(state)
        from outcrop.harnesses.hermes.reader import HermesReader

        return HermesReader(file.native, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for trajectories."""
        return None if native.startswith(RUN) else ["hermes", "--resume", native]


def is_home(folder: Path) -> bool:
    return (folder / "state.db").is_file() or (folder / "sessions").is_dir()


def _loose(folder: Path) -> list[str]:
    """Names of files in a folder that is no home which may be sessions."""
    from outcrop.harnesses.hermes.files import is_session_file

    return [name for name in sorted(os.listdir(folder)) if is_session_file(folder / name, strict=False)]


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


HARNESS: Harness = Hermes()
