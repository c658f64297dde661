"""Codex (`codex`, agent tag `codex`): rollouts under $CODEX_HOME or ~/.codex, live and archived, plain and compressed.

The thread names of `session_index.jsonl` are titles. `history.jsonl` (prompts again), the state database (derived)
and everything else there, credentials above all, is not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any

from outcrop.harnesses import Environment, Form, Harness, Reader, Side, SourceFile, unlisted

_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?=\.|$)")
_INDEX = "session_index.jsonl"


class Codex(Harness):
    """OpenAI's Codex: command line, IDE extension and desktop app write the same files."""

    name = "codex"
    title = "Codex"
    agent = "codex"
    sources: tuple[str, ...] = ("codex",)
    version = 1
    folders = ("sessions", "archived_sessions")

    def roots(self, source: str, environment: Environment) -> list[Path]:
        chosen = environment.variables.get("CODEX_HOME")
        return [Path(chosen) if chosen else environment.home / ".codex"]

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """Rollouts in any depth of `sessions`, those right in `archived_sessions`, and the index of names.

        Links are followed only as far as they stay inside the root.
        """
        real = os.path.realpath(root)
        for folder, deep in (("sessions", True), ("archived_sessions", False)):
            for place, names in _listing(root / folder, real, deep):
                yield from _taken(source, place, names, real)
        yield from _index_of(source, root, real)

    def discover_at(self, source: str, root: Path, path: Path) -> list[SourceFile]:
        real = os.path.realpath(root)
        parts = path.relative_to(root).parts
        if parts == (_INDEX,):
            return list(_index_of(source, root, real))
        deep = parts[:1] == ("sessions",)
        if not deep and (parts[:1] != ("archived_sessions",) or len(parts) > 2):
            return []
        if path.is_dir():
            if path.is_symlink() or not (deep or len(parts) == 1):
                return []
            return [file for place, names in _listing(path, real, deep) for file in _taken(source, place, names, real)]
        return list(_taken(source, str(path.parent), [path.name], real))

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        # Imported here: commands that only want the names of the sources must start fast.
        from outcrop.harnesses.codex.reader import CodexReader, IndexReader

        if file.role == "index":
            return IndexReader()
        return CodexReader(file.native, os.path.basename(file.path), state)

    def records(self, file: SourceFile, document: Any) -> Iterable[dict[str, Any]]:
        """The first generation: `{"session": {...}, "items": [...]}` reads like the second one, header first."""
        if not isinstance(document, dict) or not isinstance(document.get("session"), dict):
            yield document if isinstance(document, dict) else {"document": document}
            return
        yield document["session"]
        items = document.get("items")
        for item in items if isinstance(items, list) else ():
            yield item if isinstance(item, dict) else {"item": item}

    def resume_command(self, native: str, source: str | None = None) -> list[str] | None:
        return ["codex", "resume", native]

    def resume_variables(self, path: str, environment: Environment) -> dict[str, str]:
        """`CODEX_HOME`, where the rollout lies in another home than the default one."""
        for parent in PurePath(path).parents:
            if parent.name in ("sessions", "archived_sessions"):
                home = parent.parent
                return {} if home == PurePath(environment.home / ".codex") else {"CODEX_HOME": str(home)}
        return {}


def _listing(folder: Path, real: str, deep: bool) -> Iterator[tuple[str, list[str]]]:
    """Folders below a folder with their file names, in order; nothing where it does not exist or leads out."""
    if not os.path.isdir(folder) or not _inside(str(folder), real):
        return
    for place, folders, names in os.walk(folder, onerror=unlisted):
        folders.sort()
        if not deep:
            folders.clear()
        yield place, names


def _taken(source: str, place: str, names: list[str], real: str) -> Iterator[SourceFile]:
    for name in sorted(names):
        form, path = _form(name), os.path.join(place, name)
        if form is None or (form is Form.ZSTD_LINES and os.path.lexists(path.removesuffix(".zst"))):
            continue
        if not os.path.islink(path) or _inside(path, real):
            found = _ID.search(name)
            yield SourceFile(path, source, form, native=found[0].lower() if found else None)


def _index_of(source: str, root: Path, real: str) -> Iterator[SourceFile]:
    index = os.path.join(root, _INDEX)
    if os.path.isfile(index) and _inside(index, real):
        yield SourceFile(index, source, role="index")


def _inside(path: str, real: str) -> bool:
    """Whether what a path leads to lies in the real root."""
    return os.path.realpath(path).startswith(real.rstrip(os.sep) + os.sep)


def _form(name: str) -> Form | None:
    if name.endswith(".jsonl"):
        return Form.LINES
    if name.endswith(".jsonl.zst"):
        return Form.ZSTD_LINES
    if name.startswith("rollout-") and name.endswith(".json"):
        return Form.DOCUMENT
    return None


HARNESS: Harness = Codex()
