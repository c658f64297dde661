"""The writer lock: one process writes a store at a time. The system frees it when the process dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outcrop.errors import StoreBusy
from outcrop.paths import private_folder

WAIT_SECONDS = 30.0


@contextmanager
def writer_lock(home: Path, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock of a data folder. Raises StoreBusy if another process keeps it for longer than `wait` seconds."""
    from filelock import FileLock, Timeout

    folder = private_folder(home / "run")
    lock = FileLock(folder / "writer.lock", mode=0o600)
    try:
        lock.acquire(timeout=wait, poll_interval=0.05)
    except Timeout:
        raise StoreBusy("another outcrop process is writing to the history; try again when it is done") from None
    try:
        yield
    finally:
        lock.release()
