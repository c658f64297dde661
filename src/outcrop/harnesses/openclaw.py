"""OpenClaw (`openclaw`): pi's format in files of each agent's folder, later in one database an agent.

Its folders hold keys, channels and phone numbers: of the database only the table of transcripts is read, of the
index of sessions only ids, names and parents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile
from outcrop.harnesses.places import expand

_LEGACY = (".clawdbot", ".moldbot", ".moltbot")
_DATABASE = "openclaw-agent.sqlite"
_INDEX = "sessions.json"
_CHECKPOINT = re.compile(r"\.checkpoint\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl$", re.IGNORECASE)
_RESET = re.compile(r"\.jsonl\.reset\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?Z$")


class OpenClaw(Harness):
    """The `Harness` of OpenClaw, once Clawdbot and Moltbot, whose agents run on pi."""

    name = "openclaw"
    title = "OpenClaw"
    agent = "openclaw"
    sources: tuple[str, ...] = ("openclaw",)
    version = 1
    folders = ("agents",)

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The folder of its state; without a variable also those of its earlier names."""
        variables, home = environment.variables, environment.home
        if variables.get("OPENCLAW_HOME", "").strip():
            home = expand(variables["OPENCLAW_HOME"].strip(), home)
        for name in ("OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR"):
            if variables.get(name, "").strip():
                return [expand(variables[name].strip(), home)]
        return [home / name for name in (".openclaw", *_LEGACY)]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        agents = root / "agents" if (root / "agents").is_dir() else root
        if agents is root and root.name != "agents":
            return
        with os.scandir(agents) as found:
            folders = sorted(entry.path for entry in found if entry.is_dir(follow_symlinks=False))
        for folder in folders:
            sessions = os.path.join(folder, "sessions")
            names = sorted(os.listdir(sessions)) if os.path.isdir(sessions) else []
            for name in names:
                path = os.path.join(sessions, name)
                if os.path.islink(path):
                    continue
                if name == _INDEX:
                    yield SourceFile(path, source, Form.DOCUMENT, "index")
                elif transcript(name):
                    yield SourceFile(path, source, native=name[: name.index(".jsonl")])
            database = os.path.join(folder, "agent", _DATABASE)
            if os.path.isfile(database):
                yield SourceFile(database, source, Form.CONTAINER, "database")

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role == "index":
            from outcrop.harnesses.openclaw_store import IndexReader

            return IndexReader()
        from outcrop.harnesses.pi_entries import ENTRIES
        from outcrop.harnesses.pi_messages import ROLES
        from outcrop.harnesses.pi_tree import PiReader

        return PiReader(file, state, side, ROLES, ENTRIES)

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        from outcrop.harnesses.openclaw_store import index_records

        return index_records(document)

    def container(self, file: SourceFile) -> Container:
        from outcrop.harnesses import sqlite
        from outcrop.harnesses.openclaw_store import Transcripts

        connection = sqlite.open_read_only(file.path)
        try:
            return Transcripts(connection)
        except BaseException:
            connection.close()
            raise


def transcript(name: str) -> bool:
    """Whether a file of a folder of sessions is a transcript: no trajectory, no copy made before a compaction, and
    neither deleted nor a backup. What a reset put aside is one: a conversation that came to its end."""
    if name.endswith(".jsonl"):
        return not name.endswith(".trajectory.jsonl") and not _CHECKPOINT.search(name)
    return bool(_RESET.search(name))


HARNESS: Harness = OpenClaw()
