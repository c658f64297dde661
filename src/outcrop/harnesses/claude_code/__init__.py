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
        top = _top(source, root)
        yield from _below(source, top, top)

    def discover_at(self, source: str, root: Path, path: Path) -> list[SourceFile]:
        top = _top(source, root)
        if top not in (path, *path.parents) or not _NOT_SESSIONS.isdisjoint(path.relative_to(top).parts):
            return []
        if path.is_dir():
            return [] if path.is_symlink() else list(_below(source, top, path))
        return list(_taken(source, top, path.parent, [path.name]))

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


def _top(source: str, root: Path) -> Path:
    """The folder that places are told from: a root may be that of the projects, or the one above."""
    return root / "projects" if source == CLAUDE and (root / "projects").is_dir() else root


def _below(source: str, top: Path, start: Path) -> Iterator[SourceFile]:
    for folder, folders, names in os.walk(start, onerror=unlisted):
        folders[:] = sorted(name for name in folders if name not in _NOT_SESSIONS)
        yield from _taken(source, top, folder, names)


def _taken(source: str, top: Path, folder: str | Path, names: list[str]) -> Iterator[SourceFile]:
    place = PurePath(folder).relative_to(top).parts
    for name in sorted(names):
        if name.endswith((".jsonl", ".json")):
            file = _cowork_file(str(folder), place, name) if source == COWORK else _file(str(folder), place, name)
            if file is not None:
                yield file


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
