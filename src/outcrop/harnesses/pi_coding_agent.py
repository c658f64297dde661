"""Pi (source `pi`) and its fork oh-my-pi (`omp`): one file a session, and in omp files of agents beside it.

Settings, credentials, spilled outputs and picture blobs stand in the same folders and are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from outcrop.harnesses import Environment, Harness, Reader, Side, SourceFile
from outcrop.harnesses.places import expand, files

PI = "pi"
OMP = "omp"
_PROFILES = "profiles"


class PiCodingAgent(Harness):
    """The `Harness` of pi and omp, which write one format."""

    name = "pi-coding-agent"
    title = "Pi"
    agent = "pi"
    sources: tuple[str, ...] = (PI, OMP)
    version = 1

    def agent_of(self, source: str) -> str:
        """The agent tag of a source (ruling 47): the two programs have one each."""
        return OMP if source == OMP else PI

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """Both programs obey `PI_CODING_AGENT_DIR`; a folder that it names is omp's if it lies in a folder `.omp`."""
        variables, home = environment.variables, environment.home
        shared = variables.get("PI_CODING_AGENT_DIR", "").strip()
        omps = ".omp" in PurePath(shared.replace("\\", "/")).parts
        if source == PI:
            folder = expand(shared, home) if shared and not omps else home / ".pi" / "agent"
            sessions = variables.get("PI_CODING_AGENT_SESSION_DIR", "").strip()
            return list(dict.fromkeys([*([expand(sessions, home)] if sessions else []), folder / "sessions"]))
        own = variables.get("OMP_CODING_AGENT_DIR", "").strip() or (shared if omps else "")
        if own:
            return [expand(own, home) / "sessions"]
        config = home / (variables.get("PI_CONFIG_DIR") or ".omp")
        found = [config / "agent" / "sessions", config / _PROFILES]
        data = variables.get("XDG_DATA_HOME")
        if data and environment.platform in ("linux", "darwin"):
            found += [Path(data) / "omp" / "sessions", Path(data) / "omp" / _PROFILES]
        return found

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Sessions of every project's folder; in omp also those of agents in the folders of artifacts."""
        for sessions in _session_folders(root):
            for folder, name, path in files(sessions):
                if name.endswith(".jsonl"):
                    yield _file(folder, name, path, source, sessions)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.pi_entries import ENTRIES
        from outcrop.harnesses.pi_messages import ROLES
        from outcrop.harnesses.pi_tree import PiReader

        return PiReader(file, state, side, ROLES, ENTRIES)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for sessions of agents, which only their parent continues."""
        if "/" in native:
            return None
        return ["omp", "--resume", native] if source == OMP else ["pi", "--session", native]


def _file(folder: str, name: str, path: str, source: str, sessions: str) -> SourceFile:
    from outcrop.harnesses.pi_tree import SUBAGENT
    from outcrop.harnesses.pi_values import named_id

    native = named_id(name)
    # Projects' folders lie right in `sessions`; what lies deeper belongs to the session that its folder is named by.
    if source == OMP and native is None and folder != sessions:
        owner = named_id(os.path.basename(folder))
        if owner is not None or os.path.isfile(folder + ".jsonl"):
            hint = f"{owner or os.path.basename(folder)}/{name.removesuffix('.jsonl')}"
            return SourceFile(path, source, role=SUBAGENT, native=hint, parent=owner)
    return SourceFile(path, source, native=native)


def _session_folders(root: Path) -> list[str]:
    """The folder of sessions that a root is or holds; several where it is a folder of profiles."""
    if root.name == _PROFILES:
        with os.scandir(root) as found:
            profiles = sorted(entry.path for entry in found if entry.is_dir())
        places = [Path(profile) / inner for profile in profiles for inner in ("agent/sessions", "sessions")]
        return [str(place) for place in places if place.is_dir()]
    inner = next((one for one in (root / "sessions", root / "agent" / "sessions") if one.is_dir()), root)
    return [str(inner)]


HARNESS: Harness = PiCodingAgent()
