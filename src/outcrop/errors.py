"""One tree of errors, each with the code that goes over the wire (specification, "Error Envelope"; ruling 18).

OutcropError                code, message, details; `exit_code` for the shell
├── InvalidRequest          invalid_request
├── InvalidId               invalid_id
├── UnsupportedEventType    unsupported_event_type
├── NotFound                not_found
├── Cancelled               cancelled
├── DeadlineExceeded        deadline_exceeded
├── Busy                    busy
├── ResourceExhausted       resource_exhausted: full disk, memory limit
├── BackendFailure          backend_failure: the store is corrupt or cannot be opened
│   └── IndexerEnded        the indexer left before it answered
├── InternalError           internal_error
│   └── TextIndexRebuilding internal_error, reason read_model_refresh, worth another try
├── ConfigError             the configuration does not say what it should
├── StoreBusy               another process is writing
└── StoreMissing            nothing is indexed yet

Messages are for people and models: no SQL, no stack, no path that the caller did not name.
"""

from __future__ import annotations

from typing import Any

EXIT_OK = 0
EXIT_NOTHING = 1
EXIT_USAGE = 2
EXIT_NOT_READY = 3
EXIT_IO = 4
EXIT_INTERRUPTED = 130

CODES = (
    "invalid_request",
    "invalid_id",
    "not_found",
    "unsupported_event_type",
    "cancelled",
    "deadline_exceeded",
    "busy",
    "resource_exhausted",
    "backend_failure",
    "internal_error",
)
"""The ten codes of the specification, in its order."""


class OutcropError(Exception):
    """Root of all errors that a caller is told about."""

    code = "internal_error"
    exit_code = EXIT_IO

    def __init__(self, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class InvalidRequest(OutcropError):
    """`field` names the argument at fault, where there is one."""

    code = "invalid_request"
    exit_code = EXIT_USAGE

    def __init__(self, message: str, field: str | None = None, **details: Any) -> None:
        named = {"field": field, **details} if field else details
        super().__init__(message, named or None)


class InvalidId(OutcropError):
    """The fixed message of the specification; the reason stands in the details (ruling 9)."""

    code = "invalid_id"
    exit_code = EXIT_USAGE

    def __init__(self, reason: str, field: str = "id") -> None:
        super().__init__("id is not a valid Moraine MCP ID", {"field": field, "reason": reason})


class UnsupportedEventType(OutcropError):
    code = "unsupported_event_type"
    exit_code = EXIT_USAGE

    def __init__(self, name: str, supported: list[str]) -> None:
        super().__init__(f"unsupported event type: {name}", {"field": "event_types", "supported": supported})


class NotFound(OutcropError):
    """`kind` is session, turn or event."""

    code = "not_found"
    exit_code = EXIT_NOTHING

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"{kind} not found", {"kind": kind, "id": id})


class Cancelled(OutcropError):
    code = "cancelled"


class DeadlineExceeded(OutcropError):
    code = "deadline_exceeded"


class Busy(OutcropError):
    code = "busy"


class ResourceExhausted(OutcropError):
    code = "resource_exhausted"


class BackendFailure(OutcropError):
    code = "backend_failure"
    exit_code = EXIT_NOT_READY


class IndexerEnded(BackendFailure):
    """Whoever asked may ask the next one, or do it alone."""

    def __init__(self) -> None:
        super().__init__("the indexer is ending; try again")


class InternalError(OutcropError):
    code = "internal_error"


class TextIndexRebuilding(InternalError):
    """No text index can answer yet (ruling 18)."""

    exit_code = EXIT_NOT_READY
    RETRY_AFTER_MS = 500

    def __init__(self) -> None:
        super().__init__(
            "the text index is being rebuilt; try again shortly",
            {"reason": "read_model_refresh", "retryable": True, "retry_after_ms": self.RETRY_AFTER_MS},
        )


class ConfigError(OutcropError):
    code = "invalid_request"
    exit_code = EXIT_USAGE


class StoreBusy(OutcropError):
    code = "busy"
    exit_code = EXIT_NOT_READY


class StoreMissing(OutcropError):
    code = "backend_failure"
    exit_code = EXIT_NOT_READY

    def __init__(
        self, message: str = "nothing is indexed yet: run `outcrop index`", details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, details)
