"""Faults on demand, for tests: `OUTCROP_FAULT` makes a tool slow, kills the process or fails a write at a named point.

The variable holds faults parted by commas: `slow:<tool>:<ms>`, `kill:<point>[:<n>]`, `fail:<point>[:<n>]`; `n` is the
passing at which the fault first strikes, 1 by default. It is read once, at import; unset, a point costs one look at
`ACTIVE`. A fault that is not understood is an error: a test that injects nothing would prove nothing.
"""

from __future__ import annotations

import os

VARIABLE = "OUTCROP_FAULT"


def _read(text: str) -> tuple[dict[str, float], dict[tuple[str, str], int]]:
    """Seconds by tool, and passings left by kind and point."""
    slow: dict[str, float] = {}
    struck: dict[tuple[str, str], int] = {}
    for fault in filter(None, text.split(",")):
        match fault.split(":"):
            case ["slow", tool, ms]:
                slow[tool] = int(ms) / 1000
            case ["kill" | "fail" as kind, point]:
                struck[kind, point] = 1
            case ["kill" | "fail" as kind, point, passing]:
                struck[kind, point] = int(passing)
            case _:
                raise ValueError(f"{VARIABLE}: not a fault: {fault}")
    return slow, struck


ACTIVE = bool(os.environ.get(VARIABLE))
_slow, _left = _read(os.environ.get(VARIABLE, ""))


def at(point: str) -> None:
    """Pass a named point. Does not return under `kill`; raises OSError (disk full) under `fail`, from then on."""
    if not ACTIVE:
        return
    for kind in ("kill", "fail"):
        if (kind, point) not in _left:
            continue
        _left[kind, point] -= 1
        if _left[kind, point] <= 0:
            if kind == "kill":
                os.kill(os.getpid(), 9)
            import errno

            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def delay(tool: str) -> float:
    """Seconds that a call of this tool is to wait before it works."""
    return _slow.get(tool, 0.0)
