"""What a search and a status answer, and how such an answer is read where it comes from another process.

`wire` gives the JSON of the contract, `parse_…` takes it: unknown fields are stripped, missing and impossible ones are
an InvalidResponse. A resume command beside a source that is not present is impossible ("Evidence and exposure").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from outcrop.errors import OutcropError

PRESENT, UNVERIFIABLE, MISSING = "present", "unverifiable", "missing"
PRESENCES = (PRESENT, UNVERIFIABLE, MISSING)
ROLES = ("user", "assistant", "tool")
DISABLED, NOT_READY, NO_SERVICE = "disabled", "not-ready", "no-service"
REASONS = (DISABLED, NOT_READY, NO_SERVICE)
PHASES = ("idle", "indexing", "current", "degraded", "closed")


class InvalidResponse(OutcropError):
    """Another process answered what the contract does not allow."""


class Source(NamedTuple):
    presence: str
    file_path: str | None = None
    codex_home: str | None = None


class Evidence(NamedTuple):
    """`snippet` marks what matched with `[[` and `]]`; `timestamp` RFC 3339 or None."""

    snippet: str
    role: str
    timestamp: str | None = None


class Hit(NamedTuple):
    agent: str
    session_id: str
    title: str
    message_count: int
    score: float
    source: Source
    evidence: Evidence | None = None
    cwd: str | None = None
    branch: str | None = None
    updated_at: str | None = None
    resume_command: str | None = None
    execution_host_id: str | None = None

    def wire(self) -> dict[str, Any]:
        told: dict[str, Any] = {"agent": self.agent}
        _put(told, executionHostId=self.execution_host_id)
        told |= {"sessionId": self.session_id, "title": self.title}
        _put(told, cwd=self.cwd, branch=self.branch, updatedAt=self.updated_at)
        source = {"presence": self.source.presence}
        _put(source, filePath=self.source.file_path, codexHome=self.source.codex_home)
        told |= {"messageCount": self.message_count, "score": self.score, "source": source, "evidence": None}
        if self.evidence is not None:
            shown = self.evidence
            told["evidence"] = {"snippet": shown.snippet, "role": shown.role, "timestamp": shown.timestamp}
        _put(told, resumeCommand=self.resume_command)
        return told


class Truncated(NamedTuple):
    """`snippets` counts hits whose evidence was cut; the others tell that something was."""

    candidates: bool = False
    snippets: int = 0
    query: bool = False
    freshness: bool = False


class Debug(NamedTuple):
    route: str
    scope: str
    repaired_terms: tuple[str, ...] | None = None

    def wire(self) -> dict[str, Any]:
        repaired = {} if self.repaired_terms is None else {"repairedTerms": list(self.repaired_terms)}
        return {
            "route": self.route,
            **repaired,
            "plannerReport": {"route": self.route, **repaired, "scope": self.scope},
        }


class Results(NamedTuple):
    """`cursor` None: this is the last page."""

    hits: tuple[Hit, ...]
    generation: int
    duration_ms: float
    cursor: str | None = None
    truncated: Truncated = Truncated()
    debug: Debug | None = None

    def wire(self) -> dict[str, Any]:
        cut = self.truncated
        told: dict[str, Any] = {
            "kind": "results",
            "hits": [hit.wire() for hit in self.hits],
            "page": {"cursor": self.cursor, "hasMore": self.cursor is not None},
            "generation": self.generation,
            "truncated": {
                "candidates": cut.candidates,
                "snippets": cut.snippets,
                "query": cut.query,
                "freshness": cut.freshness,
            },
            "durationMs": self.duration_ms,
        }
        return told if self.debug is None else {**told, "debug": self.debug.wire()}


class StaleCursor(NamedTuple):
    generation: int
    expected_generation: int | None = None

    def wire(self) -> dict[str, Any]:
        told: dict[str, Any] = {"kind": "stale-cursor", "generation": self.generation}
        _put(told, expectedGeneration=self.expected_generation)
        return told


class MalformedCursor(NamedTuple):
    def wire(self) -> dict[str, Any]:
        return {"kind": "malformed-cursor"}


class Unavailable(NamedTuple):
    """Search cannot be had: a value, not an error (ruling 48)."""

    reason: str

    def wire(self) -> dict[str, Any]:
        return {"kind": "unavailable", "reason": self.reason}


Response = Results | StaleCursor | MalformedCursor | Unavailable


class DegradedRoot(NamedTuple):
    """A place that could not be looked through; `root` None: withheld."""

    reason: str
    root: str | None = None


class Status(NamedTuple):
    """The indexer's observations. Times in ms since the epoch. The defaults stand for an absent service."""

    enabled: bool = False
    phase: str = "idle"
    files_indexed: int = 0
    files_due: int = 0
    files_failed: int = 0
    degraded_roots: tuple[DegradedRoot, ...] = ()
    last_reconcile_at: int | None = None
    last_sweep_completed_at: int | None = None
    generation: int = 0

    def wire(self) -> dict[str, Any]:
        return {
            "enabled": self.enabled,
            "phase": self.phase,
            "filesIndexed": self.files_indexed,
            "filesDue": self.files_due,
            "filesFailed": self.files_failed,
            "degradedRoots": [
                {"reason": root.reason} if root.root is None else {"root": root.root, "reason": root.reason}
                for root in self.degraded_roots
            ],
            "lastReconcileAt": self.last_reconcile_at,
            "lastSweepCompletedAt": self.last_sweep_completed_at,
            "generation": self.generation,
        }


def _put(told: dict[str, Any], **optional: Any) -> None:
    told.update((name, value) for name, value in optional.items() if value is not None)


def parse_response(value: Any) -> Response:
    """Read an answer to a search. Raises InvalidResponse."""
    given = _object(value, "response")
    kind = _text(given, "kind")
    if kind == "results":
        return _results(given)
    if kind == "stale-cursor":
        return StaleCursor(_count(given, "generation"), _optional(given, "expectedGeneration", _count))
    if kind == "malformed-cursor":
        return MalformedCursor()
    if kind == "unavailable":
        return Unavailable(_choice(given, "reason", REASONS))
    raise InvalidResponse(f"unknown kind of response: {kind}")


def parse_status(value: Any) -> Status:
    """Read an answer to a status request. Raises InvalidResponse."""
    given = _object(value, "status")
    roots = [_object(root, "degradedRoots") for root in _list(given, "degradedRoots")]
    return Status(
        _flag(given, "enabled"),
        _choice(given, "phase", PHASES),
        _count(given, "filesIndexed"),
        _count(given, "filesDue"),
        _count(given, "filesFailed"),
        tuple(DegradedRoot(_text(root, "reason"), _optional(root, "root", _text)) for root in roots),
        _nullable(given, "lastReconcileAt", _time),
        _nullable(given, "lastSweepCompletedAt", _time),
        _count(given, "generation"),
    )


def _results(given: Mapping[str, Any]) -> Results:
    page, cut = _object(given.get("page"), "page"), _object(given.get("truncated"), "truncated")
    cursor = _nullable(page, "cursor", _text)
    if _flag(page, "hasMore") is not (cursor is not None):
        raise InvalidResponse("page: there is a cursor exactly where there is more")
    hits = _list(given, "hits")
    if len(hits) > 100:
        raise InvalidResponse("hits: more than 100")
    return Results(
        tuple(_hit(_object(hit, "hit")) for hit in hits),
        _count(given, "generation"),
        _number(given, "durationMs"),
        cursor,
        Truncated(_flag(cut, "candidates"), _count(cut, "snippets"), _flag(cut, "query"), _flag(cut, "freshness")),
        _optional(given, "debug", _debug),
    )


def _debug(given: Mapping[str, Any], name: str) -> Debug:
    debug = _object(given[name], name)
    report = _object(debug.get("plannerReport"), "plannerReport")
    route = _text(debug, "route")
    if _text(report, "route") != route:
        raise InvalidResponse("debug: two routes")
    repaired = _list(debug, "repairedTerms") if "repairedTerms" in debug else None
    if repaired is not None and not all(isinstance(term, str) for term in repaired):
        raise InvalidResponse("repairedTerms must hold strings")
    return Debug(route, _text(report, "scope"), None if repaired is None else tuple(repaired))


def _hit(given: Mapping[str, Any]) -> Hit:
    source = _object(given.get("source"), "source")
    presence = _choice(source, "presence", PRESENCES)
    resume = _optional(given, "resumeCommand", _text)
    if resume is not None and presence != PRESENT:
        raise InvalidResponse("resumeCommand: the source is not present")
    host = _optional(given, "executionHostId", _text)
    if host == "":
        raise InvalidResponse("executionHostId must not be empty")
    return Hit(
        _filled(given, "agent"),
        _filled(given, "sessionId"),
        _text(given, "title"),
        _count(given, "messageCount"),
        _number(given, "score"),
        Source(presence, _optional(source, "filePath", _text), _optional(source, "codexHome", _text)),
        _nullable(given, "evidence", _evidence),
        _optional(given, "cwd", _text),
        _optional(given, "branch", _text),
        _optional(given, "updatedAt", _text),
        resume,
        host,
    )


def _evidence(given: Mapping[str, Any], name: str) -> Evidence:
    shown = _object(given[name], name)
    return Evidence(_text(shown, "snippet"), _choice(shown, "role", ROLES), _nullable(shown, "timestamp", _text))


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidResponse(f"{name} must be an object")
    return value


def _typed(given: Mapping[str, Any], name: str, fits: Callable[[Any], bool], what: str) -> Any:
    value = given.get(name)
    if not fits(value):
        raise InvalidResponse(f"{name} must be {what}")
    return value


def _text(given: Mapping[str, Any], name: str) -> str:
    text: str = _typed(given, name, lambda value: isinstance(value, str), "a string")
    return text


def _filled(given: Mapping[str, Any], name: str) -> str:
    text: str = _typed(given, name, lambda value: isinstance(value, str) and value != "", "a string that is not empty")
    return text


def _flag(given: Mapping[str, Any], name: str) -> bool:
    flag: bool = _typed(given, name, lambda value: isinstance(value, bool), "a boolean")
    return flag


def _count(given: Mapping[str, Any], name: str) -> int:
    count: int = _typed(given, name, lambda value: type(value) is int and value >= 0, "a whole number, not below zero")
    return count


def _time(given: Mapping[str, Any], name: str) -> int:
    time: int = _typed(given, name, lambda value: type(value) is int, "a whole number")
    return time


def _number(given: Mapping[str, Any], name: str) -> float:
    number: float = _typed(
        given, name, lambda value: type(value) in (int, float) and abs(value) < float("inf"), "a number"
    )
    return number


def _list(given: Mapping[str, Any], name: str) -> list[Any]:
    items: list[Any] = _typed(given, name, lambda value: isinstance(value, list), "an array")
    return items


def _choice(given: Mapping[str, Any], name: str, options: tuple[str, ...]) -> str:
    value: str = _typed(given, name, lambda value: isinstance(value, str) and value in options, " or ".join(options))
    return value


def _optional(given: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], Any]) -> Any:
    """A field that may be missing or null."""
    return None if given.get(name) is None else read(given, name)


def _nullable(given: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], Any]) -> Any:
    """A field that must be there and may be null."""
    if name not in given:
        raise InvalidResponse(f"{name} is missing")
    return _optional(given, name, read)
