"""Crush (`crush`, agent tag `crush`): one database for each project, found through the program's list of projects.

The settings that lie beside the list hold keys and are never read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile

_LIST = "projects.json"
_LIST_LIMIT = 4 * 1024 * 1024


class Crush(Harness):
    """Charm's Crush, which grew out of OpenCode's Go program."""

    name = "crush"
    title = "Crush"
    agent = "crush"
    sources: tuple[str, ...] = ("crush",)
    version = 1

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The folder of the list of projects. A project, or its `.crush`, may be configured as a root too."""
        variables, home = environment.variables, environment.home
        if variables.get("CRUSH_GLOBAL_DATA"):
            return [Path(variables["CRUSH_GLOBAL_DATA"])]
        if variables.get("XDG_DATA_HOME"):
            return [Path(variables["XDG_DATA_HOME"]) / "crush"]
        if environment.platform == "win32":
            local = variables.get("LOCALAPPDATA")
            return [(Path(local) if local else home / "AppData" / "Local") / "crush"]
        return [home / ".local" / "share" / "crush"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        if root.is_file():
            yield SourceFile(str(root), source, Form.CONTAINER, "database")
            return
        folders = [root, root / ".crush", *_projects(root / _LIST)]
        for path in dict.fromkeys(os.path.normpath(folder / "crush.db") for folder in folders):
            if os.path.isfile(path):
                yield SourceFile(path, source, Form.CONTAINER, "database")

    def container(self, file: SourceFile) -> Container:
        from outcrop.harnesses import sqlite
        from outcrop.harnesses.charm import CharmDatabase

        connection = sqlite.open_read_only(file.path)
        try:
            return CharmDatabase(connection, file.path, ".crush")
        except BaseException:
            connection.close()
            raise

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.charm import CharmReader

        return CharmReader(file.native, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for sessions that the program made for itself or for an agent."""
        return None if native.startswith("title-") or "$$" in native else ["crush", "--session", native]


def _projects(path: Path) -> list[Path]:
    """The data folders that the list of projects names; none where it cannot be read as such."""
    from outcrop.harnesses import jsonl

    try:
        with path.open("rb") as stream:
            listed = jsonl.document(stream.read(_LIST_LIMIT))
    except (FileNotFoundError, ValueError):
        return []
    found: list[Path] = []
    projects = listed.get("projects") if isinstance(listed, dict) else None
    for project in projects if isinstance(projects, list) else ():
        if isinstance(project, dict) and isinstance(project.get("path"), str):
            data = project.get("data_dir")
            found.append(Path(project["path"]) / (data if isinstance(data, str) and data else ".crush"))
    return found


HARNESS: Harness = Crush()
