"""The two envelopes around every answer, and the context in which a call runs.

Specification, "Response Envelope" and "Error Envelope"; rulings 2, 18, 31. Whatever goes wrong in a call ends here as
one of the ten codes, with a message free of paths, SQL and stacks.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from outcrop.contracts.catalog import Catalog
from outcrop.errors import (
    BackendFailure,
    Cancelled,
    DeadlineExceeded,
    InternalError,
    OutcropError,
    ResourceExhausted,
    StoreMissing,
)
from outcrop.store import Rooted, Snapshot, Store

ERROR_SCHEMA = "moraine.mcp.error.v1"
NOTHING_INDEXED = "coverage_partial: nothing is indexed yet; run `outcrop index`"
"""Warning of a search or listing where no store exists: the history is empty so far, which is no error."""

NO_STORE = "nothing_indexed"
"""`details.reason` of a backend_failure where no store exists."""

_OUT_OF_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_SQLITE_EXHAUSTED = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM}

log = logging.getLogger(__name__)
logging.getLogger("outcrop").addHandler(logging.NullHandler())  # stderr shows tracebacks only where asked for


@dataclass(slots=True)
class Context:
    """All that a call needs besides its arguments.

    `cancelled` is asked between the steps of a call. `deadline` is on the clock of `time.monotonic`.
    `launch_directory` is the client's, None where it is unknown. `floor` is the project that every tool is held to;
    None: the whole history (ruling 30). `locate` finds the working tree that an absolute path lies in, as the file
    system is now.
    """

    store: Store
    catalog: Catalog
    max_results: int = 50
    launch_directory: str | None = None
    floor: str | None = None
    cancelled: Callable[[], bool] | None = None
    deadline: float | None = None
    locate: Callable[[str], Rooted | None] | None = None

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """The history as this caller may see it. Raises what `Store.snapshot` raises."""
        return self.store.snapshot(self.stopped, self.floor)

    def stopped(self) -> bool:
        return (self.cancelled is not None and self.cancelled()) or self.late()

    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def check(self) -> None:
        """Raises `Cancelled` or `DeadlineExceeded` where the caller no longer waits."""
        if self.cancelled is not None and self.cancelled():
            raise Cancelled("the request was cancelled")
        if self.late():
            raise DeadlineExceeded("the deadline of the request has passed")


def coverage(snapshot: Snapshot) -> list[str]:
    """The warning that sessions may be missing, until the first build of the history is complete (ruling 23)."""
    covered = snapshot.coverage()
    return [] if covered is None else [f"coverage_partial: {covered:.0%} of the history is searchable so far"]


def schema_version(tool: str) -> str:
    return f"moraine.mcp.{tool}.v1"


def success(
    tool: str, request: dict[str, Any], data: dict[str, Any], warnings: list[str], received: float
) -> dict[str, Any]:
    return {
        "schema_version": schema_version(tool),
        "tool": tool,
        "request": request,
        "data": data,
        "warnings": warnings,
        "performance": _performance(received),
    }


def failure(tool: str, request: Any, error: OutcropError, received: float) -> dict[str, Any]:
    """`details` is left out where there is nothing to say."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details:
        told["details"] = error.details
    return {
        "schema_version": ERROR_SCHEMA,
        "tool": tool,
        "request": request,
        "error": told,
        "warnings": [],
        "performance": _performance(received),
    }


def classify(error: Exception) -> OutcropError:
    """The error to tell for any exception (ruling 18); what has no class of its own is logged with its traceback."""
    if isinstance(error, StoreMissing):
        return StoreMissing(error.message, {"reason": NO_STORE})
    if isinstance(error, OutcropError):
        return error
    if isinstance(error, sqlite3.Error):
        log.error("the store failed", exc_info=error)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_EXHAUSTED:
            return ResourceExhausted("the store ran out of disk space or memory")
        return BackendFailure("the store could not be read")
    if isinstance(error, MemoryError):
        return ResourceExhausted("not enough memory to answer")
    if isinstance(error, OSError):
        log.error("a system call failed", exc_info=error)
        if error.errno in _OUT_OF_SPACE:
            return ResourceExhausted("the system ran out of disk space, memory or file handles")
        return BackendFailure("the store could not be read")
    log.error("a call failed", exc_info=error)
    return InternalError("the request failed for an internal reason")


def _performance(received: float) -> dict[str, int]:
    return {"elapsed_ms": max(0, int((time.monotonic() - received) * 1000))}
