"""Kimi CLI (`kimi-cli`, agent tag `kimi`): the store of the Python program, and that of its successor Kimi Code.

Kimi Code takes sessions of the older program over under their old id and goes on with them, so both stores are one
source. Settings, credentials and logs lie beside the sessions: only the files named here are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile

TRANSCRIPT, AGENT, CONTEXT, STATE, AGENT_META = "transcript", "agent", "context", "state", "agent-meta"
"""Roles of the older program's files."""
CODE, CODE_AGENT, CODE_IMPORTED, CODE_STATE = "code", "code-agent", "code-imported", "code-state"
"""Roles of Kimi Code's files: the main agent, another one, a session that was taken over, and what stands beside."""

_IMPORT = "ses_"
"""What Kimi Code puts before the id of a session that it took over; its own ones are called `session_…`."""


class KimiCli(Harness):
    """Moonshot's Kimi CLI and Kimi Code."""

    name = "kimi-cli"
    title = "Kimi CLI"
    agent = "kimi"
    sources: tuple[str, ...] = ("kimi-cli",)
    version = 1
    folders = ("sessions",)

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The folders of both programs, the same on every platform."""
        places = (("KIMI_SHARE_DIR", ".kimi"), ("KIMI_CODE_HOME", ".kimi-code"))
        chosen = ((environment.variables.get(variable), folder) for variable, folder in places)
        return [Path(own) if own else environment.home / folder for own, folder in chosen]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Sessions two levels below `sessions`: a folder for each working directory, in it one for each session."""
        for bucket in _folders(root / "sessions"):
            yield from _old_contexts(bucket, source)
            for session in _folders(bucket):
                agents = _folders(session / "agents")
                yield from _code_session(session, agents, source) if agents else _wire_session(session, source)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role in (STATE, AGENT_META, CODE_STATE):
            from outcrop.harnesses.kimi_cli.documents import DocumentReader

            return DocumentReader(file)
        if file.role == CONTEXT:
            from outcrop.harnesses.kimi_cli.context import ContextReader

            return ContextReader(file, state, side)
        if file.role in (CODE, CODE_AGENT, CODE_IMPORTED):
            from outcrop.harnesses.kimi_cli.code import CodeReader

            return CodeReader(file, state, side)
        from outcrop.harnesses.kimi_cli.wire import WireReader

        return WireReader(file, state, side)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for agents, which only their parent continues."""
        return None if "/" in native else ["kimi", "--session", native]


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return [folder / name for name in sorted(entry.name for entry in entries if entry.is_dir())]


def _old_contexts(bucket: Path, source: str) -> Iterator[SourceFile]:
    """The first layout: a session is one file with what the model saw, unless it has a folder by now."""
    for name in sorted(os.listdir(bucket)):
        native = name.removesuffix(".jsonl")
        if native != name and not (bucket / native).is_dir() and (bucket / name).is_file():
            yield SourceFile(str(bucket / name), source, Form.LINES, CONTEXT, native)


def _wire_session(session: Path, source: str) -> Iterator[SourceFile]:
    native = session.name
    if (session / "wire.jsonl").is_file():
        yield SourceFile(str(session / "wire.jsonl"), source, Form.LINES, TRANSCRIPT, native)
    elif (session / "context.jsonl").is_file():
        yield SourceFile(str(session / "context.jsonl"), source, Form.LINES, CONTEXT, native)
    if (session / "state.json").is_file():
        yield SourceFile(str(session / "state.json"), source, Form.DOCUMENT, STATE, native)
    for agent in _folders(session / "subagents"):
        child = f"{native}/{agent.name}"
        if (agent / "wire.jsonl").is_file():
            yield SourceFile(str(agent / "wire.jsonl"), source, Form.LINES, AGENT, child, native)
        if (agent / "meta.json").is_file():
            yield SourceFile(str(agent / "meta.json"), source, Form.DOCUMENT, AGENT_META, child, native)


def _code_session(session: Path, agents: list[Path], source: str) -> Iterator[SourceFile]:
    native = session.name.removeprefix(_IMPORT)
    if (session / "state.json").is_file():
        yield SourceFile(str(session / "state.json"), source, Form.DOCUMENT, CODE_STATE, native)
    for agent in agents:
        if not (agent / "wire.jsonl").is_file():
            continue
        path = str(agent / "wire.jsonl")
        if agent.name == "main":
            role = CODE if native == session.name else CODE_IMPORTED
            yield SourceFile(path, source, Form.LINES, role, native)
        else:
            yield SourceFile(path, source, Form.LINES, CODE_AGENT, f"{native}/{agent.name}", native)


HARNESS: Harness = KimiCli()
