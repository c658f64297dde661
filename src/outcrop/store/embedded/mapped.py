"""Gives pages of the text index back to the system while much is written: a merge maps all that it merges.

Those pages are clean and the system takes them when it needs them; until then they count as this process's memory, as
much as the index is large. Linux alone has a call for it, which harms nothing whatever has come to lie at an address
meanwhile; elsewhere nothing is done.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

MOST_BYTES = 44_000_000
"""Of mapped pages; programs and libraries, some 25 MB, are among them."""
LOOK_SECONDS = 0.05
GRACE_SECONDS = 10.0
"""For which merges go on after a commit."""
_PAGEOUT = 21
"""MADV_PAGEOUT of Linux 5.4: reclaim these pages now. Older systems refuse it."""


class Pages:
    """Keeps the mapped pages of the files below a folder few, on a thread of its own while there is need."""

    def __init__(self, folder: Path) -> None:
        self._prefix = f"{folder.absolute()}/"
        self._until = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def watch(self, seconds: float = 0.0) -> None:
        """Do so from now on, for `seconds` and some more."""
        if _madvise() is None:
            return
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds + GRACE_SECONDS)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pages", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            with self._lock:
                if time.monotonic() > self._until:
                    self._thread = None
                    return
            with suppress(OSError):
                self.give_back()

    def give_back(self, most: int = MOST_BYTES) -> None:
        """Let go of what is mapped where all mapped pages of the process are more than `most` bytes."""
        advise = _madvise()
        if advise is not None and _mapped_bytes() > most:
            for start, size in _mappings(self._prefix):
                advise(start, size, _PAGEOUT)


@cache
def _madvise() -> Callable[[int, int, int], int] | None:
    if sys.platform != "linux":
        return None
    import ctypes

    library: Any = ctypes.CDLL(None)
    if not hasattr(library, "madvise"):
        return None
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def advise(start: int, size: int, advice: int) -> int:
        return int(library.madvise(start, size, advice))

    return advise


def _mapped_bytes() -> int:
    """Of pages of files that this process has in memory."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[2]) * resource.getpagesize()


def _mappings(prefix: str) -> Iterator[tuple[int, int]]:
    """(address, bytes) of the mapped files whose paths begin so."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            if prefix in line:
                start, _, end = line.partition(" ")[0].partition("-")
                yield int(start, 16), int(end, 16) - int(start, 16)
