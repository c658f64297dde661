"""Which files a tool call touches, and how: from its arguments, and from what its result alone knows.

Pure and lexical: stored calls are enough, no file is asked. Every carrier counts (fields at any depth, patch texts,
shell commands), one touch for each path, place and effect of a call. A pattern, a URL, a text of prose or the value of
an option is no path; this product's own `file_attention` never touches what it asks about.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from outcrop.calls import RAW
from outcrop.harnesses.toolnames import Category, canonical, category
from outcrop.ingest.touches.commands import Script
from outcrop.ingest.touches.patches import is_patch, patched
from outcrop.ingest.touches.tooleffects import OPERATIONS, effect_of, is_patching, is_powershell, is_remote, is_shell
from outcrop.ingest.touches.touch import Effect, Match, Touch, absolute, joined, path_of

__all__ = ["Effect", "Match", "Touch", "touches_of_call", "touches_of_result"]

_DEPTH = 24
"""Levels of arguments that are looked through."""

_NAMES = """
path file_path filePath filepath absolute_path absolutePath AbsolutePath notebook_path notebookPath target_file
targetFile TargetFile relativeWorkspacePath relative_workspace_path file file_name filename fileName uri dir_path
old_path new_path oldPath newPath
"""
_PATH_KEYS = frozenset(_NAMES.split())
_LIST_KEYS = frozenset({"paths", "files", "file_paths", "filePaths"})
_SOURCES = frozenset({"source", "old_path", "oldPath", "from", "source_path", "sourcePath", "src"})
_TARGETS = frozenset(
    {"destination", "new_path", "newPath", "to", "target", "destination_path", "destinationPath", "dst"}
)
_PATCH_KEYS = frozenset({"patch", "patchText", "patch_text", "diff", "unified_diff", "input", RAW})
_COMMAND_KEYS = ("command", "cmd", "CommandLine", "commandLine", "script")
_FOLDER_KEYS = ("workdir", "cwd", "working_directory", "workingDirectory", "Cwd")
_COMMAND_FOLDER_KEYS = (*_FOLDER_KEYS, "directory", "dir_path")
_IGNORED = frozenset({"additionalDirectories", "roots"})
_CHANGES = {"add": Effect.CREATE, "create": Effect.CREATE, "update": Effect.CHANGE, "delete": Effect.DELETE}


def touches_of_call(tool: str | None, arguments: Any, cwd: str | None, home: str | None = None) -> list[Touch]:
    """The files that a call names, in the order of its arguments.

    `cwd`: the directory of the record, absolute or None; the call's own (`workdir`) goes before it. `home` expands `~`.
    """
    name = canonical(tool or "")
    if _asks_for_touches(name) or is_remote(name) or category(name) is Category.WEB:
        return []
    call = _Call(name, home)
    call.value(arguments, cwd or None, effect_of(name), 0)
    return list(call.found)


def touches_of_result(
    tool: str | None, extra: Mapping[str, Any], cwd: str | None, home: str | None = None
) -> list[Touch]:
    """The files that a result states by the facts kept of it: `changes`, `filePath`, `paths`.

    A result may repeat the paths of its call: who counts calls takes only what the call did not name. Without a tool
    only a snapshot of what a step changed (it has a `hash`) touches its `paths`.
    """
    name = canonical(tool or "")
    if _asks_for_touches(name) or is_remote(name):
        return []
    call = _Call(name, home)
    changes = extra.get("changes")
    for path, change in changes.items() if isinstance(changes, Mapping) else ():
        told = change if isinstance(change, Mapping) else {}
        moved = told.get("move_path")
        effect = Effect.RENAME if moved else _CHANGES.get(str(told.get("type")), Effect.CHANGE)
        call.path(path, cwd, effect)
        call.path(moved, cwd, Effect.RENAME)
    effect = effect_of(name) if tool else Effect.CHANGE
    call.path(extra.get("filePath"), cwd, effect)
    paths = extra.get("paths")
    if (tool or extra.get("hash")) and isinstance(paths, list):
        for path in paths:
            call.path(path, cwd, effect)
    return list(call.found)


def _asks_for_touches(name: str) -> bool:
    return name == "file_attention" or name.endswith(("_file_attention", ".file_attention"))


class _Call:
    """The touches of one call; `found` keeps their order and each of them once."""

    def __init__(self, tool: str, home: str | None) -> None:
        self.tool, self.home = tool, home
        self.found: dict[Touch, None] = {}
        self.proven: set[tuple[str, Effect]] = set()

    def path(self, text: Any, base: str | None, effect: Effect, match: Match = Match.PATH) -> None:
        """Record a path seen from directory `base`; anything that is no path is left out."""
        path = path_of(text) if isinstance(text, str) else None
        if path is None:
            return
        where = absolute(base, path, self.home)
        if where is not None and (path, effect) not in self.proven:
            self.proven.add((path, effect))
            self.found.pop(Touch(path, None, effect, match), None)
        if where is not None or (path, effect) not in self.proven:
            self.found[Touch(path, where, effect, match)] = None

    def value(self, value: Any, base: str | None, effect: Effect, depth: int) -> None:
        """Look through arguments; `effect` is what the tool does to a path that a field names."""
        if depth > _DEPTH:
            return
        if isinstance(value, dict):
            self._fields(value, base, effect, depth)
        elif isinstance(value, list):
            for item in value:
                self.value(item, base, effect, depth + 1)
        elif isinstance(value, str) and not depth:
            self._text(value, base)

    def _fields(self, fields: dict[Any, Any], base: str | None, effect: Effect, depth: int) -> None:
        command = next((fields[key] for key in _COMMAND_KEYS if fields.get(key)), None)
        if isinstance(command, str) and command in OPERATIONS:
            effect, command = OPERATIONS[command], None
        here = _folder(fields, _COMMAND_FOLDER_KEYS if command else _FOLDER_KEYS, base, self.home)
        if isinstance(command, (str, list)) and ("script" not in fields or is_shell(self.tool)):
            self._command(command, here)
        listing = fields.get("mode") == "Directory"  # Kiro's fs_read: the names in a folder
        copies = "copy" in self.tool.lower()
        moves = effect is Effect.RENAME or copies
        for key, item in fields.items():
            if key in _IGNORED or key in _COMMAND_KEYS:
                continue
            if moves and key in _SOURCES:
                self.path(item, here, Effect.READ if copies else effect)
            elif moves and key in _TARGETS:
                self.path(item, here, Effect.CHANGE if copies else effect)
            elif isinstance(item, str) and key in _PATH_KEYS:
                if (
                    not listing
                    and (key != "uri" or item[:5].lower() == "file:")
                    and not (command and key == "dir_path")
                ):
                    self.path(item, here, effect)
            elif isinstance(item, str) and key in _PATCH_KEYS:
                self._patch(item, here, key)
            elif isinstance(item, list) and key in _LIST_KEYS:
                for one in item:
                    self.path(one, here, effect)
                self.value(item, here, effect, depth + 1)
            else:
                self.value(item, here, effect, depth + 1) if not isinstance(item, str) else None

    def _text(self, text: str, base: str | None) -> None:
        """Arguments that are one text: a patch, or a command."""
        if is_shell(self.tool) and not is_patch(text):
            self._command(text, base)
        else:
            self._patch(text, base, RAW)

    def _patch(self, text: str, base: str | None, key: str) -> None:
        if is_patch(text) or is_patching(self.tool) or key not in ("input", RAW):
            for path, effect in patched(text):
                self.path(path, base, effect)

    def _command(self, command: str | list[Any], base: str | None) -> None:
        """A shell command as text or as a list of words."""
        script = Script(self.home)
        if isinstance(command, str):
            script.run(command, is_powershell(self.tool))
        elif command and all(isinstance(word, str) for word in command):
            script.run(command[0] if len(command) == 1 else shlex.join(command))
        for operand in script.found:
            seen = None if operand.base is None else joined(base, operand.base, self.home) if operand.base else base
            self.path(operand.path, seen, operand.effect, Match.SHELL)


def _folder(fields: Mapping[Any, Any], keys: tuple[str, ...], base: str | None, home: str | None) -> str | None:
    """The directory that a call names for itself, seen from `base`."""
    for key in keys:
        folder = fields.get(key)
        if isinstance(folder, str) and folder and "\x00" not in folder:
            folder = path_of(folder.rstrip("/\\") or folder) or folder
            return joined(base, folder, home)
    return base
