"""Layers point one way, and every room has a name that says what it holds."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
PACKAGE = SOURCE / "outcrop"
MODULES = sorted(PACKAGE.rglob("*.py"))

EVERYTHING = {"harnesses", "store", "ingest", "search", "contracts", "servers", "setup", "cli"}
MAY_IMPORT: dict[str, set[str]] = {
    "harnesses": set(),
    "store": set(),
    "ingest": {"harnesses", "store"},
    "search": {"store"},
    "contracts": {"search", "store"},
    "servers": {"contracts"},
    "setup": EVERYTHING,
    "cli": EVERYTHING,
}
"""Room → rooms that it may import besides itself and the words, which are the modules of the package itself."""

DOORS = {"outcrop.__main__": "cli"}
"""Modules of the package itself that are no words, and the one room that they open."""

NAMED = re.compile(r"outcrop(\.[A-Za-z_]\w*)+")
"""A text that names a module, as the tables of harnesses and verbs do."""

NO_NAMES = {"utils", "util", "helpers", "helper", "common", "shared", "misc", "lib"}


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str | None:
    """The room of a module; None for the words."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else None


def imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """Modules of this package that are imported anywhere in the tree, functions and tables of names included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".") if is_package else module.split(".")[:-1]
                kept = parents[: len(parents) - node.level + 1]
                base = ".".join([*kept, base] if base else kept)
            for alias in node.names:
                # `from outcrop import paths` names a module, `from outcrop.paths import NAME` does not.
                deeper = f"{base}.{alias.name}"
                is_module = (SOURCE / Path(*deeper.split("."))).with_suffix(".py").exists()
                is_folder = (SOURCE / Path(*deeper.split("."))).is_dir()
                yield (deeper if is_module or is_folder else base), node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value):
            yield node.value, node.lineno


def test_there_is_something_to_look_at() -> None:
    assert len(MODULES) > 30
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert rooms <= set(MAY_IMPORT), "a new room needs its line in MAY_IMPORT"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    module = name_of(path)
    room = room_of(module)
    allowed = MAY_IMPORT[room] | {room} if room else {DOORS.get(module)}
    for target, line in imported(ast.parse(path.read_bytes()), module, path.name == "__init__.py"):
        if target.split(".")[0] == "outcrop":
            assert room_of(target) in allowed | {None}, f"{path}:{line}: {room or 'the words'} must not import {target}"


def test_the_rule_is_able_to_fail() -> None:
    text = "from outcrop import store\ndef f():\n    from ..cli import main\nTABLE = {'a': 'outcrop.search.query'}"
    found = {target for target, _ in imported(ast.parse(text), "outcrop.harnesses.x", False)}
    assert found == {"outcrop.store", "outcrop.search.query", "outcrop.cli"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_room_says_what_it_holds(path: Path) -> None:
    assert not NO_NAMES & set(name_of(path).split("."))


OPENS_FILES = {
    "opencode.tree": "a tree of files is one place of many sessions",
    "aider": "a history file is one place of many sessions",
    "openclaw_store": "an index names the sessions of a store",
    "hermes.files": "a home is one place of many sessions",
    "openhands.store": "a folder of files is one place of many sessions",
    "grok.folder": "a session's folder is one place",
    "crush": "a list of projects names the databases",
    "goose.store": "old files beside the database name messages that went into it",
}
"""Modules of harnesses that read files by themselves, and why: containers and lists of places."""


def test_harnesses_stay_pure() -> None:
    """They are handed records and side files: no module of theirs opens a file, a store or a process."""
    harnesses = PACKAGE / "harnesses"
    for path in sorted(harnesses.rglob("*.py")):
        if ".".join(path.relative_to(harnesses).with_suffix("").parts) in OPENS_FILES or path.name == "sqlite.py":
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                assert called not in ("open", "read_text", "read_bytes", "connect"), f"{path}:{node.lineno}"
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
                assert not names & {"subprocess", "socket", "time", "random"}, f"{path}:{node.lineno}"
