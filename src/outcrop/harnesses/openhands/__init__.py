"""OpenHands (`openhands`, agent tag `openhands`): conversations of its command line and of its older server, exported
trajectories, and the outputs of its issue resolver.

Settings, secrets and the agent's configuration lie beside and inside these files; of them only named fields are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile

CONVERSATIONS, SERVER, TRAJECTORY, RESOLVED = "conversations", "sessions", "trajectory", "resolver-output"
"""Roles: a folder of conversations of the command line or of the older server; an export; a file of resolver runs."""
SERVER_IDS = "sessions/"
"""How native ids of the older server begin: it has a namespace of its own, and nothing that resumes one."""
TRAJECTORY_IDS = "trajectory-"
"""How native ids of exports begin, which have none of their own."""

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


class OpenHands(Harness):
    """The `Harness` of OpenHands, formerly OpenDevin."""

    name = "openhands"
    title = "OpenHands"
    agent = "openhands"
    sources: tuple[str, ...] = ("openhands",)
    version = 1
    folders = ("conversations", "sessions", "users")

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The home, and the older server's; a folder of exports must be configured."""
        variables, home = environment.variables, environment.home
        chosen = variables.get("OPENHANDS_PERSISTENCE_DIR")
        roots = [Path(chosen) if chosen else home / ".openhands", home / ".openhands-state"]
        if variables.get("OPENHANDS_CONVERSATIONS_DIR"):
            roots.insert(0, Path(variables["OPENHANDS_CONVERSATIONS_DIR"]))
        return roots

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """The stores of a home; a root may be a store itself; in any other folder exports and outputs."""
        if root.is_file():
            yield from _loose(source, root)
            return
        if not root.is_dir():
            return
        found = [(root / "conversations", CONVERSATIONS), (root / "sessions", SERVER)]
        found += [(user / "conversations", SERVER) for user in _folders(root / "users")]
        stores = [(folder, role) for folder, role in found if folder.is_dir()]
        if not stores and any((folder / "events").is_dir() for folder in _folders(root)):
            stores = [(root, SERVER if root.name == "sessions" else CONVERSATIONS)]
        for folder, role in stores:
            yield SourceFile(str(folder), source, Form.CONTAINER, role)
        if not stores:
            for folder in [root, *_folders(root)]:
                for path in sorted(folder.iterdir()):
                    yield from _loose(source, path)

    def container(self, file: SourceFile) -> Container:
        from outcrop.harnesses.openhands.store import Store

        return Store(Path(file.path), server=file.role == SERVER)

    def stamp(self, file: SourceFile) -> tuple[int, int]:
        from outcrop.harnesses.openhands.store import Store

        return Store(Path(file.path), server=file.role == SERVER).stamp()

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        """The events of an exported trajectory, behind what they tell of it together."""
        from outcrop.harnesses.openhands.store import exported

        return exported(document)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role == RESOLVED:
            from outcrop.harnesses.openhands.resolver import ResolverReader

            return ResolverReader(state)
        from outcrop.harnesses.openhands.reader import OpenHandsReader

        return OpenHandsReader(file.native, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for what the command line did not write."""
        return ["openhands", "--resume", native] if _UUID.fullmatch(native) else None


def _loose(source: str, path: Path) -> Iterator[SourceFile]:
    """A file that begins like an export, or like the outputs of the resolver."""
    from outcrop.harnesses.openhands.store import is_export, is_output

    if is_export(path):
        yield SourceFile(str(path), source, Form.DOCUMENT, TRAJECTORY)
    elif is_output(path):
        yield SourceFile(str(path), source, Form.LINES, RESOLVED)


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(Path(entry.path) for entry in entries if entry.is_dir() and not entry.name.startswith("."))


HARNESS: Harness = OpenHands()
