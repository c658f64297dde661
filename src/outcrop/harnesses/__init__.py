"""Agent programs and their formats: one module a harness, pure (records in, events out), and the registry of them.

A harness knows where its sessions lie, how a native record becomes `model` items, and how to resume a session. It
opens nothing itself: the ingest room hands it records and reads side files for it. To add one: write its module, put
its name into `REGISTRY`, and give it fixtures, tests and a page under docs/harnesses/ (a test walks the registry).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from outcrop.model import Parsed


@dataclass(slots=True, frozen=True)
class Entry:
    """A line of the registry: where the harness is, and the names that are needed before it is imported."""

    module: str
    title: str
    sources: tuple[str, ...]
    agents: tuple[str, ...]
    """The agent tag of the session search contract, or one for each source (ruling 47)."""


REGISTRY: dict[str, Entry] = {
    "claude-code": Entry("outcrop.harnesses.claude_code", "Claude Code", ("claude", "claude-cowork"), ("claude",)),
    "codex": Entry("outcrop.harnesses.codex", "Codex", ("codex",), ("codex",)),
    "opencode": Entry("outcrop.harnesses.opencode", "OpenCode", ("opencode",), ("opencode",)),
    "crush": Entry("outcrop.harnesses.crush", "Crush", ("crush",), ("crush",)),
    "cursor": Entry("outcrop.harnesses.cursor", "Cursor", ("cursor-sqlite", "cursor"), ("cursor",)),
    "cline": Entry("outcrop.harnesses.cline", "Cline", ("cline", "roo"), ("cline",)),
    "aider": Entry("outcrop.harnesses.aider", "Aider", ("aider",), ("aider",)),
    "pi-coding-agent": Entry("outcrop.harnesses.pi_coding_agent", "Pi", ("pi", "omp"), ("pi", "omp")),
    "prime-agent": Entry(
        "outcrop.harnesses.prime_agent", "Prime Agent", ("prime-agent", "prime-agent-subagents"), ("prime-agent",)
    ),
    "copilot-cli": Entry("outcrop.harnesses.copilot_cli", "Copilot CLI", ("copilot-cli",), ("copilot",)),
    "copilot-vscode": Entry(
        "outcrop.harnesses.copilot_vscode", "VS Code Copilot Chat", ("copilot-vscode",), ("copilot-vscode",)
    ),
    "antigravity": Entry(
        "outcrop.harnesses.antigravity", "Antigravity", ("antigravity", "antigravity-cli"), ("antigravity",)
    ),
    "kimi-cli": Entry("outcrop.harnesses.kimi_cli", "Kimi CLI", ("kimi-cli",), ("kimi",)),
    "kiro-cli": Entry("outcrop.harnesses.kiro_cli", "Kiro CLI", ("kiro",), ("kiro",)),
    "goose": Entry("outcrop.harnesses.goose", "Goose", ("goose",), ("goose",)),
    "hermes": Entry("outcrop.harnesses.hermes", "Hermes Agent", ("hermes",), ("hermes",)),
    "nac": Entry("outcrop.harnesses.nac", "nac", ("nac",), ("nac",)),
    "openhands": Entry("outcrop.harnesses.openhands", "OpenHands", ("openhands",), ("openhands",)),
    "qwen-code": Entry("outcrop.harnesses.qwen_code", "Qwen Code", ("qwen-code",), ("qwen",)),
    "gemini-cli": Entry("outcrop.harnesses.gemini_cli", "Gemini CLI", ("gemini-cli",), ("gemini",)),
    "droid": Entry("outcrop.harnesses.droid", "Droid", ("droid",), ("droid",)),
    "grok": Entry("outcrop.harnesses.grok", "Grok", ("grok",), ("grok",)),
    "openclaw": Entry("outcrop.harnesses.openclaw", "OpenClaw", ("openclaw",), ("openclaw",)),
}
"""Harness name → its entry. The module holds `HARNESS` and is imported on use: servers and commands must start fast."""


VARIABLES = (
    "AIDER_CHAT_HISTORY_FILE", "APPDATA", "CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIRS", "CLAWDBOT_STATE_DIR",
    "CODEX_HOME", "COPILOT_HOME", "CRUSH_GLOBAL_DATA", "CURSOR_DATA_DIR", "FACTORY_HOME_OVERRIDE", "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT", "GROK_HOME", "HERMES_HOME", "KIMI_CODE_HOME", "KIMI_SHARE_DIR", "KIRO_HOME", "LOCALAPPDATA",
    "NAC_HOME", "OMP_CODING_AGENT_DIR", "OPENCLAW_HOME", "OPENCLAW_STATE_DIR", "OPENCODE_DB",
    "OPENHANDS_CONVERSATIONS_DIR", "OPENHANDS_PERSISTENCE_DIR", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR",
    "PI_CONFIG_DIR", "PRIME_AGENT_CODING_AGENT_DIR", "PRIME_AGENT_CODING_AGENT_SESSION_DIR",
    "PRIME_AGENT_SESSION_DIR", "QWEN_HOME", "QWEN_RUNTIME_DIR", "VSCODE_PORTABLE", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
)  # fmt: skip
"""Environment variables that any harness looks at (a test holds this): what decides where sessions lie."""


class Form(StrEnum):
    """How a file holds its records."""

    LINES = "jsonl"
    """One JSON object a line; grows at its end."""
    ZSTD_LINES = "jsonl.zst"
    """The same, compressed; replaced whole."""
    DOCUMENT = "json"
    """One JSON document, rewritten whole; `Harness.records` takes it apart."""
    TEXT = "text"
    """Text of its own format, read whole like a document: `Harness.records` gets it as a string."""
    CONTAINER = "container"
    """Many sessions in one place, a database or a tree of files; `Harness.container` opens it."""


@dataclass(slots=True, frozen=True)
class Environment:
    """The surroundings that decide where sessions lie; a value, so that any platform can be tested on any other."""

    home: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    platform: str = "linux"
    """As `sys.platform`: linux, darwin, win32."""
    folder: Path | None = None
    """The working directory, from which relative paths in variables start; None where it says nothing."""

    @classmethod
    def here(cls) -> Environment:
        try:
            folder = Path.cwd()
        except OSError:  # it was deleted
            folder = None
        return cls(Path.home(), os.environ, sys.platform, folder)

    def told(self) -> dict[str, Any]:
        """What of it decides where sessions lie, as JSON, for a process in other surroundings."""
        variables = {name: self.variables[name] for name in VARIABLES if self.variables.get(name)}
        folder = {"folder": str(self.folder)} if self.folder is not None else {}
        return {"home": str(self.home), "variables": variables, **folder}

    @classmethod
    def of(cls, told: Any) -> Environment:
        """The surroundings that a process of this machine told of. Raises ValueError for anything else."""
        if not isinstance(told, dict) or not isinstance(told.get("home"), str):
            raise ValueError("surroundings are an object with a home")
        variables = told.get("variables")
        if not isinstance(variables, dict):
            raise ValueError("variables must be an object")
        known = {name: text for name in VARIABLES if isinstance(text := variables.get(name), str)}
        folder = told.get("folder")
        placed = Path(folder) if isinstance(folder, str) and os.path.isabs(folder) else None
        return cls(Path(told["home"]), known, sys.platform, placed)


@dataclass(slots=True, frozen=True)
class SourceFile:
    """One file that a harness wants read.

    `role` is the harness's own word for what the file is. `native` and `parent` are native session ids as far as
    the file's place tells them; they are hints for the reader, never an identity by themselves.
    """

    path: str
    source: str
    form: Form = Form.LINES
    role: str = "transcript"
    native: str | None = None
    parent: str | None = None


UNLISTED: list[OSError] = []
"""Folders that `unlisted` was told of; whoever asks a harness for its files looks here and empties it."""


def unlisted(error: OSError) -> None:
    """For `os.walk(onerror=…)`: a folder that cannot be listed is told of, and the others are still looked through."""
    UNLISTED.append(error)


class Side(Protocol):
    """Reads files that stand beside a transcript and belong to it."""

    def text(self, path: str, inside: str, limit: int) -> str | None:
        """Up to `limit` bytes of `path` as text; None if it is gone, or does not truly lie under `inside`."""


class Reader(Protocol):
    """A fold over the records of one file. It must give the same items however the reading is cut into pieces."""

    @property
    def session(self) -> str | None:
        """Native id of the file's own session; None until it is known. Known once, it never changes."""

    def feed(self, record: dict[str, Any]) -> Parsed:
        """Take the next record. Raises whatever a broken record makes it raise; the ingest sets that record aside."""

    def state(self) -> dict[str, Any]:
        """All that the next record may need, as plain JSON, small: it is written with every checkpoint."""


class Container(Protocol):
    """A place that holds many sessions, open for reading in one consistent state."""

    def sessions(self) -> Iterable[tuple[str, str]]:
        """(native id, fingerprint) of every session. Another fingerprint than last time: it is read again, whole.

        Costs little however many there are: the ids, times and counts that the place keeps itself.
        """

    def records(self, native: str) -> Iterable[dict[str, Any]]:
        """The records of one session for the reader, in the session's own order."""

    def close(self) -> None: ...


class Harness(Protocol):
    """One agent program. A harness that inherits from this gets the defaults below."""

    name: str
    """The specification's harness value: `claude-code`."""
    title: str
    """For people: `Claude Code`."""
    agent: str
    """The agent tag of the session search contract (ruling 47): `claude`."""
    sources: tuple[str, ...]
    """Names of the configured places that its sessions come from; earlier ones rank higher (ruling 21)."""
    version: int
    """Adapter version, stepped when the same records give other events: what was read by an older one is re-read."""

    folders: tuple[str, ...] = ()
    """Folders of a root in which sessions are written, where it holds much besides."""

    def group(self, source: str) -> str:
        """Identity group of a source (ruling 21): the source itself, unless several hold the same sessions."""
        return source

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """Folders to look in by default, existing or not, obeying the harness's own environment variables."""

    def watched(self, source: str, root: Path) -> list[Path]:
        """Folders to be told of changes in, with all below: `folders`, or a root that holds sessions itself."""
        below = [root / name for name in self.folders]
        return below if below and (any(map(os.path.isdir, below)) or not root.is_dir()) else [root]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """The files under a root. What cannot be listed goes to `unlisted`, or is raised as OSError for all of it."""

    def discover_at(self, source: str, root: Path, path: Path) -> Iterable[SourceFile] | None:
        """What `discover` would find at a path below the root, or below it where it is a folder. Raises OSError.

        None: only a listing of the whole root tells.
        """
        return None

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        """A fold that starts anew, or goes on from `state`."""

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        """Take a whole document (Form.DOCUMENT, Form.TEXT) apart into records for the reader."""
        return [document] if isinstance(document, dict) else []

    def container(self, file: SourceFile) -> Container:
        """Open a place of many sessions (Form.CONTAINER). Raises OSError or sqlite3.Error where that fails."""
        raise LookupError(f"{self.name} has no containers")

    def stamp(self, file: SourceFile) -> tuple[int, int]:
        """(size in bytes, mtime in ns) of a container: unless one of them differs from last time nobody opens it.

        The default fits SQLite: new rows may stand in the `-wal` file alone.
        """
        stats = [os.stat(file.path)]
        if os.path.exists(file.path + "-wal"):
            wal = os.stat(file.path + "-wal")
            stats += [wal] if wal.st_size else []  # an empty one is left by readers, by ours too
        return sum(stat.st_size for stat in stats), max(stat.st_mtime_ns for stat in stats)

    def agent_of(self, source: str) -> str:
        """The agent tag of a source's sessions, where one harness is several agents (ruling 47)."""
        return self.agent

    def outranks(self, path: str, other: str) -> bool:
        """Whether the first of two files that hold one session tells the events that stand in both.

        Where neither outranks the other, the one that was read first does. Paths are those of `SourceFile`, with
        `#` and the native id behind that of a container.
        """
        return False

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        """The command that continues a session, to be run in its working directory; None where there is none."""
        return None

    def resume_variables(self, path: str, environment: Environment) -> Mapping[str, str]:
        """What the command needs in its environment to find a session that is recorded in `path`."""
        return {}


def load(name: str) -> Harness:
    """The harness of that name. Raises KeyError for a name that the registry does not hold."""
    harness: Harness = import_module(REGISTRY[name].module).HARNESS
    return harness


def all_sources() -> list[str]:
    """The names of all sources, in the registry's order; imports no harness."""
    return [source for entry in REGISTRY.values() for source in entry.sources]


def all_agents() -> dict[str, tuple[tuple[str, str | None], ...]]:
    """Agent tag → the (harness, source) pairs that it stands for; source None: all of the harness."""
    found: dict[str, tuple[tuple[str, str | None], ...]] = {}
    for name, entry in REGISTRY.items():
        sources = entry.sources if len(entry.agents) > 1 else (None,)
        for agent, source in zip(entry.agents, sources, strict=True):
            found[agent] = (*found.get(agent, ()), (name, source))
    return found


def all_harnesses() -> list[Harness]:
    return [load(name) for name in REGISTRY]
