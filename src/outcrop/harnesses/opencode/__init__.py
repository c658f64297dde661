"""OpenCode (`opencode`, agent tag `opencode`): its JSON tree, its database of today, and that of its Go ancestor.

Settings, `auth.json`, account, credential and share tables, spilled outputs and snapshots are never read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile

DATABASE, TREE = "database", "tree"
"""Roles of the two kinds of places."""

_DATABASE = re.compile(r"opencode(-[A-Za-z0-9._-]+)?\.db")


class OpenCode(Harness):
    """OpenCode by Anomaly (formerly SST), and the older program in Go of the same name."""

    name = "opencode"
    title = "OpenCode"
    agent = "opencode"
    sources: tuple[str, ...] = ("opencode",)
    version = 1
    folders = ("storage", "project")

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The data folder, the same on every platform; the file that `OPENCODE_DB` names; the Go program's folder.

        The Go program keeps a folder `.opencode` in each project: those of other projects must be configured.
        """
        variables, home = environment.variables, environment.home
        shared = variables.get("XDG_DATA_HOME")
        data = (Path(shared) if shared else home / ".local" / "share") / "opencode"
        found = [data]
        chosen = variables.get("OPENCODE_DB")
        if chosen and chosen != ":memory:":
            file = data / chosen
            if file.parent != data or not _DATABASE.fullmatch(file.name):
                found.append(file)
        return [*found, home / ".opencode"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Databases right in the root or in its `.opencode`, and trees of JSON files; a root may be either itself."""
        if root.is_file():
            yield SourceFile(str(root), source, Form.CONTAINER, DATABASE)
            return
        if not root.is_dir():
            return
        names = sorted(os.listdir(root))
        for name in names:
            if _DATABASE.fullmatch(name) and (root / name).is_file():
                yield SourceFile(str(root / name), source, Form.CONTAINER, DATABASE)
        if (root / ".opencode" / "opencode.db").is_file():
            yield SourceFile(str(root / ".opencode" / "opencode.db"), source, Form.CONTAINER, DATABASE)
        places = [root, root / "storage"]
        if (root / "project").is_dir() and not (root / "session").is_dir():
            places += [root / "project" / name / "storage" for name in sorted(os.listdir(root / "project"))]
        for place in places:
            if (place / "session").is_dir():
                yield SourceFile(str(place), source, Form.CONTAINER, TREE)

    def container(self, file: SourceFile) -> Container:
        if file.role == TREE:
            from outcrop.harnesses.opencode.tree import Tree

            return Tree(Path(file.path))
        from outcrop.harnesses.opencode.database import open_database

        return open_database(file.path)

    def stamp(self, file: SourceFile) -> tuple[int, int]:
        if file.role == TREE:
            from outcrop.harnesses.opencode.tree import stamp

            return stamp(Path(file.path))
        return super().stamp(file)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.opencode.reader import OpenCodeReader

        return OpenCodeReader(file.native, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for sessions of the Go program, which cannot be told to continue one."""
        return ["opencode", "--session", native] if native.startswith("ses_") else None


HARNESS: Harness = OpenCode()
