"""Claude Code, on the command line (source `claude`) and in the desktop program's agent mode (`claude-cowork`).

Where its sessions lie, whose session a file is, and the small documents beside them. The transcripts themselves are
read by `reader`. Of a document only the named fields are taken: accounts, prompts and server settings of the
desktop program stand next to them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile, unlisted

if TYPE_CHECKING:
    from outcrop.harnesses.claude_code.fold import Identity

CLAUDE = "claude"
COWORK = "claude-cowork"

TRANSCRIPT = "transcript"
AGENT = "agent"
AGENT_META = "agent-meta"
COWORK_META = "cowork-meta"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_COWORK_SESSION = re.compile(r"local_[0-9A-Za-z_-]+")
_META = ".meta.json"
_NOT_SESSIONS = frozenset({"tool-results", "file-history", "skills-plugin", "outputs", "uploads", "node_modules"})


class ClaudeCode(Harness):
    """The `Harness` of Claude Code."""

    name = "claude-code"
    title = "Claude Code"
    agent = "claude"
    sources = (CLAUDE, COWORK)
    version = 1

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """`CLAUDE_CONFIG_DIR`, else the lists in `CLAUDE_CONFIG_DIRS`, else the two places that Claude Code uses."""
        if source == COWORK:
            if environment.platform != "darwin":
                return []
            return [environment.home / "Library" / "Application Support" / "Claude" / "local-agent-mode-sessions"]
        variables = environment.variables
        separators = ",;" if environment.platform == "win32" else ",:"
        named: list[str] = []
        for variable, splits in (("CLAUDE_CONFIG_DIR", ","), ("CLAUDE_CONFIG_DIRS", separators)):
            named += re.split(f"[{splits}]", variables.get(variable, ""))
        folders = [_expand(name.strip(), environment.home) for name in named if name.strip()]
        if not folders:
            config = variables.get("XDG_CONFIG_HOME") or ""
            folders = [environment.home / ".claude", Path(config or environment.home / ".config") / "claude"]
        return list(dict.fromkeys(folder / "projects" for folder in folders))

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        if source == CLAUDE and (root / "projects").is_dir():
            root = root / "projects"
        for folder, folders, files in os.walk(root, onerror=unlisted):
            folders[:] = sorted(name for name in folders if name not in _NOT_SESSIONS)
            place = PurePath(folder).relative_to(root).parts
            for name in sorted(files):
                if name.endswith((".jsonl", ".json")):
                    file = _cowork_file(folder, place, name) if source == COWORK else _file(folder, place, name)
                    if file is not None:
                        yield file

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        if file.role in (AGENT_META, COWORK_META):
            from outcrop.harnesses.claude_code.documents import DocumentReader

            return DocumentReader(file)
        from outcrop.harnesses.claude_code.reader import ClaudeReader

        return ClaudeReader(identity(file), side, state)

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """None for agents, which only their parent continues, and for sessions of the desktop program."""
        if "/" in native or native.startswith("local_"):
            return None
        return ["claude", "--resume", native]


def identity(file: SourceFile) -> Identity:
    """What a transcript's place tells of whose it is (ruling 21)."""
    from outcrop.harnesses.claude_code.fold import Identity

    path = PurePath(file.path)
    agent = path.stem.removeprefix("agent-") if file.role == AGENT else None
    session = next((above.parent for above in path.parents if above.name == "subagents"), None)
    if agent is None:
        session = path.with_suffix("")
    return Identity(
        native=file.native,
        parent=file.parent,
        stem=path.stem,
        agent=agent,
        folder=str(path.parent),
        outputs=str(session / "tool-results") if session else None,
        remote=file.source == COWORK,
    )


def _file(folder: str, place: tuple[str, ...], name: str, owner: str | None = None) -> SourceFile | None:
    """A file below `projects/`; `owner` is the session that all files of its place belong to."""
    path, source = os.path.join(folder, name), COWORK if owner else CLAUDE
    session = next((part for part in reversed(place) if _UUID.fullmatch(part)), None)
    parent = owner or session
    if name.startswith("agent-"):
        if name.endswith(_META):
            native = f"{parent}/{name.removesuffix(_META)}" if parent else None
            return SourceFile(path, source, Form.DOCUMENT, AGENT_META, native, parent) if native else None
        if name.endswith(".jsonl"):
            native = f"{parent}/{name.removesuffix('.jsonl')}" if parent else None
            return SourceFile(path, source, Form.LINES, AGENT, native, parent)
    # Inside a session's own folder only its agents are transcripts: journals of workflows lie there too.
    if session or "subagents" in place or not name.endswith(".jsonl"):
        return None
    found = _UUID.search(name)
    return SourceFile(path, source, Form.LINES, TRANSCRIPT, owner or (found[0] if found else None))


def _cowork_file(folder: str, place: tuple[str, ...], name: str) -> SourceFile | None:
    if ".claude" not in place:
        sidecar = name.endswith(".json") and _COWORK_SESSION.fullmatch(name.removesuffix(".json"))
        if not sidecar or any(_COWORK_SESSION.fullmatch(part) for part in place):
            return None
        native = name.removesuffix(".json")
        return SourceFile(os.path.join(folder, name), COWORK, Form.DOCUMENT, COWORK_META, native)
    inside = place.index(".claude")
    owner = next((part for part in reversed(place[:inside]) if _COWORK_SESSION.fullmatch(part)), None)
    if owner is None or place[inside + 1 : inside + 2] != ("projects",):
        return None
    return _file(folder, place[inside + 2 :], name, owner)


def _expand(name: str, home: Path) -> Path:
    return home / name[1:].lstrip("/\\") if name == "~" or name.startswith(("~/", "~\\")) else Path(name)


HARNESS = ClaudeCode()
