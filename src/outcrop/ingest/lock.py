"""The writer lock: one process writes a store at a time. The system frees it when the process dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outcrop.errors import BackendFailure, ResourceExhausted, StoreBusy
from outcrop.paths import RUN, folder_error, private_folder
from outcrop.store.embedded.database import DISK_FULL, FULL

WAIT_SECONDS = 30.0
LOCK = "writer.lock"


@contextmanager
def writer_lock(home: Path, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock of a data folder, which is made where it is missing.

    Raises StoreBusy if another process keeps it for longer than `wait` seconds, BackendFailure where the folder cannot
    be written.
    """
    from filelock import FileLock, Timeout

    try:
        private_folder(home)
        lock = FileLock(private_folder(home / RUN) / LOCK, mode=0o600)
        lock.acquire(timeout=wait, poll_interval=0.05)
    except Timeout:
        raise StoreBusy("another outcrop process is writing to the history; try again when it is done") from None
    except NotImplementedError:
        raise BackendFailure("the file system of the data folder has no locks; OUTCROP_HOME names another") from None
    except OSError as error:
        if error.errno in FULL:
            raise ResourceExhausted(DISK_FULL) from error
        raise folder_error(error) from error
    try:
        yield
    finally:
        lock.release()


def is_held(home: Path) -> bool:
    """Whether a process holds the lock. Makes nothing."""
    if not (home / RUN / LOCK).exists():
        return False
    try:
        with writer_lock(home, wait=0):
            return False
    except StoreBusy:
        return True
    except (BackendFailure, ResourceExhausted):
        return False
