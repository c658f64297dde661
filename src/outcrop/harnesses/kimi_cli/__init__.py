"""Kimi CLI (`kimi-cli`, agent tag `kimi`): the store of the Python program, and that of its successor Kimi Code.

Kimi Code takes sessions of the older program over under their old id, so both sources share one identity group.
Settings, credentials and logs lie beside the sessions: only the files named here are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile

WIRE, CODE = "kimi-cli", "kimi-code"

TRANSCRIPT = "transcript"
AGENT = "agent"
CONTEXT = "context"
IMPORTED = "imported"
STATE = "state"
AGENT_META = "agent-meta"

_IMPORT = "ses_"
"""What Kimi Code puts before the id of a session that it took over; its own ones are called `session_…`."""


class KimiCli(Harness):
    """Moonshot's Kimi CLI and Kimi Code."""

    name = "kimi-cli"
    title = "Kimi CLI"
    agent = "kimi"
    sources: tuple[str, ...] = (WIRE, CODE)
    version = 1

    def group(self, source: str) -> str:
        return WIRE

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The program's own folder, the same on every platform."""
        variable, folder = ("KIMI_SHARE_DIR", ".kimi") if source == WIRE else ("KIMI_CODE_HOME", ".kimi-code")
        chosen = environment.variables.get(variable)
        return [Path(chosen) if chosen else environment.home / folder]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Sessions two levels below `sessions`: a folder for each working directory, in it one for each session."""
        for bucket in _folders(root / "sessions"):
            if source == WIRE:
                yield from _old_contexts(bucket)
            for session in _folders(bucket):
                yield from _wire_session(session) if source == WIRE else _code_session(session)

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role in (STATE, AGENT_META):
            from outcrop.harnesses.kimi_cli.documents import DocumentReader

            return DocumentReader(file)
        if file.role == CONTEXT:
            from outcrop.harnesses.kimi_cli.context import ContextReader

            return ContextReader(file, state, side)
        if file.source == CODE:
            from outcrop.harnesses.kimi_cli.code import CodeReader

            return CodeReader(file, state, side)
        from outcrop.harnesses.kimi_cli.wire import WireReader

        return WireReader(file, state, side)

    def resume_command(self, native: str) -> list[str] | None:
        """None for agents, which only their parent continues."""
        return None if "/" in native else ["kimi", "--session", native]


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return [folder / name for name in sorted(entry.name for entry in entries if entry.is_dir())]


def _old_contexts(bucket: Path) -> Iterator[SourceFile]:
    """The first layout: a session is one file with what the model saw, unless it has a folder by now."""
    for name in sorted(os.listdir(bucket)):
        native = name.removesuffix(".jsonl")
        if native != name and not (bucket / native).is_dir() and (bucket / name).is_file():
            yield SourceFile(str(bucket / name), WIRE, Form.LINES, CONTEXT, native)


def _wire_session(session: Path) -> Iterator[SourceFile]:
    native = session.name
    if (session / "wire.jsonl").is_file():
        yield SourceFile(str(session / "wire.jsonl"), WIRE, Form.LINES, TRANSCRIPT, native)
    elif (session / "context.jsonl").is_file():
        yield SourceFile(str(session / "context.jsonl"), WIRE, Form.LINES, CONTEXT, native)
    if (session / "state.json").is_file():
        yield SourceFile(str(session / "state.json"), WIRE, Form.DOCUMENT, STATE, native)
    for agent in _folders(session / "subagents"):
        child = f"{native}/{agent.name}"
        if (agent / "wire.jsonl").is_file():
            yield SourceFile(str(agent / "wire.jsonl"), WIRE, Form.LINES, AGENT, child, native)
        if (agent / "meta.json").is_file():
            yield SourceFile(str(agent / "meta.json"), WIRE, Form.DOCUMENT, AGENT_META, child, native)


def _code_session(session: Path) -> Iterator[SourceFile]:
    imported = session.name.startswith(_IMPORT)
    native = session.name.removeprefix(_IMPORT)
    if (session / "state.json").is_file():
        yield SourceFile(str(session / "state.json"), CODE, Form.DOCUMENT, STATE, native)
    for agent in _folders(session / "agents"):
        if (agent / "wire.jsonl").is_file():
            main = agent.name == "main"
            role = (IMPORTED if imported else TRANSCRIPT) if main else AGENT
            child = native if main else f"{native}/{agent.name}"
            yield SourceFile(str(agent / "wire.jsonl"), CODE, Form.LINES, role, child, None if main else native)


HARNESS: Harness = KimiCli()
