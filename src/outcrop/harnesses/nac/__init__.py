"""Arcee's nac (`nac`, agent tag `nac`): a database of sessions and of the workers that they send out.

Settings beside it, and its columns of keys, headers, sandboxes and hosts, are never read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile

WORKER = ":worker:"
"""Stands between a session's id and a worker's name in the id of the worker's session."""

_NAMES = ("stable.db", "store.db", "beta.db", "dev.db")


class Nac(Harness):
    """The `Harness` of Arcee's nac."""

    name = "nac"
    title = "nac"
    agent = "nac"
    sources: tuple[str, ...] = ("nac",)
    version = 2

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The home. A store elsewhere, such as the `.nac` of a project, must be configured."""
        variables = environment.variables
        if variables.get("NAC_HOME"):
            return [Path(variables["NAC_HOME"])]
        config = variables.get("XDG_CONFIG_HOME")
        return [(Path(config) if config else environment.home / ".config") / "nac"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """The databases of every build track, right in the root or in its `.nac`; the root may be one itself."""
        if root.is_file():
            yield SourceFile(str(root), source, Form.CONTAINER, "database")
            return
        for folder in (root, root / ".nac"):
            for name in _NAMES:
                if (folder / name).is_file():
                    yield SourceFile(str(folder / name), source, Form.CONTAINER, "database")

    def container(self, file: SourceFile) -> Container:
        from outcrop.harnesses.nac.database import NacDatabase

        return NacDatabase(file.path)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.nac.reader import NacReader

        return NacReader(file.native, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for workers, which only their session can send out."""
        return None if WORKER in native else ["nac", "resume", native]


HARNESS: Harness = Nac()
