"""How a session is taken up again: its command in the directory that it started in, as one line for a shell.

The command is the harness's own, from the registry; here it is only quoted for the shell of the machine. A word that
the shell of Windows cannot be given safely means that there is no line.
"""

from __future__ import annotations

import re
import shlex
import sys

from outcrop.contracts.catalog import Resume

_PLAIN = re.compile(r"[\w./:\\@=+,-]+", re.ASCII)
_UNSAFE = re.compile(r"[\"%!\r\n\0]")


def shell_line(resume: Resume, cwd: str | None, platform: str = sys.platform) -> str | None:
    """`cd DIR && VARIABLE=… program …`, or the same for `cmd` on Windows."""
    if platform != "win32":
        words = [*(f"{name}={shlex.quote(value)}" for name, value in resume.variables.items()), shlex.join(resume.argv)]
        steps = [f"cd {shlex.quote(cwd)}"] if cwd else []
        return " && ".join([*steps, " ".join(words)])
    steps = [f"cd /d {_word(cwd, always=True)}"] if cwd else []
    steps += [f'set "{name}={value}"' for name, value in resume.variables.items()]
    steps.append(" ".join(_word(word) for word in resume.argv))
    values = [*resume.argv, *resume.variables.values(), *([cwd] if cwd else [])]
    if any(_UNSAFE.search(value) for value in values):
        return None
    inner = " && ".join(steps).replace('"', '""')
    return f'cmd /d /s /c "{inner}"'


def _word(word: str, always: bool = False) -> str:
    return word if _PLAIN.fullmatch(word) and not always else f'"{word}"'
