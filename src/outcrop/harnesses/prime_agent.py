"""Prime Agent (`prime-agent`): sessions in one flat folder, those of child agents in folders of their parents.

Journals of children, edits and schedules lie in the same folders and are no transcripts: only a file that is named
by a UUID is one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Harness, Reader, Side, SourceFile
from outcrop.harnesses.places import expand, files

ROOTS = "prime-agent"
CHILDREN = "prime-agent-subagents"
_ARTIFACTS = "session-artifacts"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHILD = re.compile(r"sub-[0-9a-f]{8}")


class PrimeAgent(Harness):
    """The `Harness` of Prime Intellect's agent, which writes pi's third format and more."""

    name = "prime-agent"
    title = "Prime Agent"
    agent = "prime-agent"
    sources: tuple[str, ...] = (ROOTS, CHILDREN)
    version = 1

    def group(self, source: str) -> str:
        """One group: a child's parent stands in the other source."""
        return ROOTS

    def roots(self, source: str, environment: Environment) -> list[Path]:
        variables, home = environment.variables, environment.home
        chosen = variables.get("PRIME_AGENT_SESSION_DIR") or variables.get("PRIME_AGENT_CODING_AGENT_SESSION_DIR")
        folder = variables.get("PRIME_AGENT_CODING_AGENT_DIR")
        if chosen:
            sessions = expand(chosen, home)
        else:
            sessions = (expand(folder, home) if folder else home / ".prime" / "agent") / "sessions"
        return [sessions if source == ROOTS else sessions.parent / _ARTIFACTS]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        from outcrop.harnesses.pi_tree import SUBAGENT

        inner = root / ("sessions" if source == ROOTS else _ARTIFACTS)
        for place, name, path in files(str(inner if inner.is_dir() else root)):
            above, folder = os.path.split(place)
            child = bool(_CHILD.fullmatch(folder))
            native = name.removesuffix(".jsonl")
            if child != (source == CHILDREN) or native == name or not _ID.fullmatch(native):
                continue
            if child:
                parent = os.path.basename(above)
                known = parent if _ID.fullmatch(parent) else None
                yield SourceFile(path, source, role=SUBAGENT, native=native, parent=known)
            else:
                yield SourceFile(path, source, native=native)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.pi_entries import PRIME_ENTRIES, PRIME_ROLES
        from outcrop.harnesses.pi_messages import ROLES
        from outcrop.harnesses.pi_tree import PiReader

        return PiReader(file, state, side, {**ROLES, **PRIME_ROLES}, PRIME_ENTRIES)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return ["prime-agent", "--resume", native]


HARNESS: Harness = PrimeAgent()
