"""Files that code handed to an interpreter on its command line opens: `open("x", "w")`, `Path("x")`, `readFileSync`.

Agents edit files so where they have no tool for it. Only literal arguments of these very calls count; a text of code
proves no more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from outcrop.ingest.touches.touch import Effect

_QUOTED = r"""r?(['"`])([^'"`\n{}$]{1,512})"""
_OPEN = re.compile(rf"""\bopen\(\s*{_QUOTED}\1\s*(?:,\s*(?:mode\s*=\s*)?['"]([rwaxbtU+]+)['"])?""")
_PATH = re.compile(rf"\bPath\(\s*{_QUOTED}\1\s*\)(?:\.(\w+)\()?")
_NODE = re.compile(rf"\b(read|write|append|unlink|rm|createWrite|createRead)(?:File|Stream)?(?:Sync)?\(\s*{_QUOTED}\2")
_METHODS = {
    "read_text": Effect.READ,
    "read_bytes": Effect.READ,
    "write_text": Effect.CHANGE,
    "write_bytes": Effect.CHANGE,
    "touch": Effect.CREATE,
    "unlink": Effect.DELETE,
}
_STREAMS = {"read": Effect.READ, "createRead": Effect.READ, "unlink": Effect.DELETE, "rm": Effect.DELETE}
_LOOKS = re.compile(r"/|\.\w+$")


def coded(text: str) -> Iterator[tuple[str, Effect]]:
    """Paths that code in Python or JavaScript opens by literal names, with what it does to them."""
    for found in _OPEN.finditer(text):
        mode = found[3] or "r"
        yield found[2], Effect.CREATE if "x" in mode else Effect.CHANGE if set(mode) & set("wa+") else Effect.READ
    writes, reads = "write_text(" in text or "write_bytes(" in text, ".read_" in text or "open(" in text
    plain = [found for found in _PATH.finditer(text) if found[3] not in _METHODS]
    for found in _PATH.finditer(text):
        if found[3] in _METHODS:
            yield found[2], _METHODS[found[3]]
        elif found[3] is None and _LOOKS.search(found[2]) and (writes or reads):
            yield found[2], Effect.READ if not writes else Effect.CHANGE if len(plain) == 1 else Effect.UNKNOWN
    for found in _NODE.finditer(text):
        yield found[3], _STREAMS.get(found[1], Effect.CHANGE)
