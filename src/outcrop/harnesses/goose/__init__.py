"""Goose (`goose`, agent tag `goose`): one database of sessions, and the files of lines that it was filled from.

The program and its desktop app write the same database. Recipes, extensions and settings of a session may hold keys:
their columns are never read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile

_DATABASE = "sessions.db"


class Goose(Harness):
    """Block's Goose."""

    name = "goose"
    title = "Goose"
    agent = "goose"
    sources: tuple[str, ...] = ("goose",)
    version = 1
    folders = ("sessions",)

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """Data folders. Only an absolute `GOOSE_PATH_ROOT` counts; macOS has had several places."""
        variables, home = environment.variables, environment.home
        chosen = Path(variables.get("GOOSE_PATH_ROOT") or "")
        if chosen.is_absolute():
            return [chosen / "data"]
        shared = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
        if environment.platform == "win32":
            return [Path(variables.get("APPDATA") or home / "AppData" / "Roaming") / "Block" / "goose" / "data"]
        if environment.platform == "darwin":
            support = home / "Library" / "Application Support"
            return [support / "Block" / "goose", support / "goose", shared / "goose"]
        return [shared / "goose"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """The database and old files in `sessions`, or right in a root that somebody configured."""
        if root.is_file():
            yield SourceFile(str(root), source, Form.CONTAINER, "database")
            return
        for folder in (root / "sessions", root):
            if not folder.is_dir():
                continue
            if (folder / _DATABASE).is_file():
                yield SourceFile(str(folder / _DATABASE), source, Form.CONTAINER, "database")
            for name in sorted(os.listdir(folder)):
                if name.endswith(".jsonl") and (folder / name).is_file():
                    yield SourceFile(str(folder / name), source, native=name.removesuffix(".jsonl"))

    def container(self, file: SourceFile) -> Container:
        from outcrop.harnesses import sqlite
        from outcrop.harnesses.goose.store import GooseDatabase

        connection = sqlite.open_read_only(file.path)
        try:
            return GooseDatabase(connection)
        except BaseException:
            connection.close()
            raise

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.goose.reader import GooseReader

        return GooseReader(file.native, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return ["goose", "session", "--resume", "--session-id", native]


HARNESS: Harness = Goose()
