"""What the name of a tool tells about its effect on the files that it is given.

Names differ from harness to harness (`Edit`, `edit_file_v2`, `str_replace_editor`, `mcp__fs__write_file`), their first
word does not. A name that tells nothing is UNKNOWN.
"""

from __future__ import annotations

import re
from functools import lru_cache

from outcrop.ingest.touches.touch import Effect

OPERATIONS = {
    "view": Effect.READ,
    "read": Effect.READ,
    "create": Effect.CREATE,
    "str_replace": Effect.CHANGE,
    "strReplace": Effect.CHANGE,
    "insert": Effect.CHANGE,
    "undo_edit": Effect.CHANGE,
    "write": Effect.CHANGE,
    "append": Effect.CHANGE,
    "edit": Effect.CHANGE,
    "delete": Effect.DELETE,
    "rename": Effect.RENAME,
    "move": Effect.RENAME,
}
"""`command` of a tool that does several things: an operation, no shell command."""

_BEGINNINGS = {
    Effect.READ: "read view cat open grep rg glob find ls list dir tree search codebasesearch notebookread fsread "
    "threadread get show stat lsp load describe analyze inspect look",
    Effect.CHANGE: "edit multiedit notebookedit str replace searchreplace write fswrite save insert append update "
    "patch apply modify filechange fileedit",
    Effect.CREATE: "create add new",
    Effect.DELETE: "delete remove unlink",
    Effect.RENAME: "move rename",
}
_LONGEST_FIRST = sorted(
    ((start, effect) for effect, starts in _BEGINNINGS.items() for start in starts.split()),
    key=lambda one: -len(one[0]),
)
_REMOTE = re.compile(r"(?:^|[_.])(?:github|gitlab|bitbucket|browser|playwright|puppeteer|figma|linear|notion|slack)")
_SHELLS = ("bash", "shell", "exec", "terminal", "runcommand", "cmd", "command")


@lru_cache(maxsize=4096)
def squashed(name: str) -> str:
    """A tool's own name without its server, in small letters and digits."""
    own = re.split(r"__|[./:]", name)[-1] or name
    return "".join(char for char in own.lower() if char.isalnum())


@lru_cache(maxsize=4096)
def effect_of(name: str) -> Effect:
    """The effect that a tool's name tells; UNKNOWN where it tells none."""
    own = re.split(r"__|[./:]", name)[-1]
    for text in (own, own.partition("_")[2]):  # some harnesses join server and tool by one underscore
        plain = "".join(char for char in text.lower() if char.isalnum())
        for start, effect in _LONGEST_FIRST:
            if plain.startswith(start):
                return effect
    return Effect.UNKNOWN


def is_remote(name: str) -> bool:
    """Whether a tool's paths are those of another machine: a forge, a browser, a tracker."""
    return _REMOTE.search(name.lower()) is not None


def is_shell(name: str) -> bool:
    """Whether a bare text given to this tool is a shell command."""
    return any(word in squashed(name) for word in _SHELLS)


def is_powershell(name: str) -> bool:
    """Whether commands of this tool are PowerShell."""
    return "powershell" in name.lower() or "pwsh" in name.lower()


def is_patching(name: str) -> bool:
    """Whether a text given to this tool is a patch."""
    return squashed(name) in ("applypatch", "patch", "applydiff", "gitapply")
