"""How programs name places: a `~` in a variable, and folders whose links may not lead out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from outcrop.harnesses import unlisted


def expand(name: str, home: Path) -> Path:
    """A folder as a variable names it, `~` taken for the home folder."""
    return home / name[1:].lstrip("/\\") if name == "~" or name.startswith(("~/", "~\\")) else Path(name)


def files(top: str) -> Iterator[tuple[str, str, str]]:
    """(folder, name, path) of every file below a folder, in order. Links are followed only inside of it.

    Raises OSError where a folder cannot be listed.
    """
    real = os.path.realpath(top).rstrip(os.sep) + os.sep
    for folder, folders, names in os.walk(top, onerror=unlisted):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path) or os.path.realpath(path).startswith(real):
                yield folder, name, path
