"""Whether a working directory lies in a folder that a search is held to (`filters.scopePaths`).

Paths are those of the machine that the sessions ran on, whatever machine reads them: what a path looks like decides how
it compares. POSIX paths compare by letter; drive and UNC paths without case; the two spellings of a WSL share are one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_DRIVE = re.compile(r"[A-Za-z]:(?=/|$)")
_WSL = re.compile(r"//(?:wsl\$|wsl\.localhost)/([^/]+)(/.*)?", re.IGNORECASE)
_VERBATIM = re.compile(r"//[?.]/(?:UNC/)?", re.IGNORECASE)


@lru_cache(maxsize=2_000)
def key(path: str) -> str | None:
    """A path as it is compared, ending in a slash; None for one that is not absolute.

    The first letter tells the kind, so that kinds never match each other: `p` POSIX, `w` Windows, `l` WSL.
    """
    text = unicodedata.normalize("NFC", path.strip())
    slashes = text.replace("\\", "/")
    if (verbatim := _VERBATIM.match(slashes)) and "\\" in text:
        unc = verbatim[0].upper().endswith("UNC/")
        text = slashes = ("//" if unc else "") + slashes[verbatim.end() :]
        text = text.replace("/", "\\")
    if share := _WSL.fullmatch(slashes):
        # The name of a distribution has no case, the files in it have.
        return f"l{share[1].casefold()}:{_tidy(share[2] or '/')}"
    if _DRIVE.match(slashes) or (text.startswith("\\\\") or (slashes.startswith("//") and "\\" in text)):
        return "w" + _tidy(slashes).casefold()
    return "p" + _tidy(text) if text.startswith("/") else None


def _tidy(path: str) -> str:
    """Without doubled slashes and `.`, `..` followed, one slash at the end."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    rooted = path.startswith("/")
    return ("/" if rooted else "") + "/".join(parts) + ("/" if parts else "")


class Folders:
    """The folders that a search is held to."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._keys = tuple(found for path in paths if (found := key(path)) is not None)

    def hold(self, cwd: str | None) -> bool:
        """Whether a directory is one of the folders or lies in one. Folders that are no paths hold nothing."""
        inside = key(cwd) if cwd else None
        return inside is not None and inside.startswith(self._keys)
