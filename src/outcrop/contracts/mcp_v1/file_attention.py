"""`file_attention`: who touched a file, in every worktree (specification, "Tool: file_attention"; rulings 11, 16, 30).

A path comes down to the part below its working tree, and every path of the history that ends in it counts. `scope`
decides whose: the launch project's, or everybody's. Where a project cannot be proven nothing is shown, with a warning.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from outcrop import tails
from outcrop.contracts.mcp_v1 import arguments, schemas, shapes
from outcrop.contracts.mcp_v1.envelope import NOTHING_INDEXED, Context
from outcrop.contracts.mcp_v1.tool import Answer, Tool
from outcrop.contracts.moments import instant, timestamp
from outcrop.errors import InvalidRequest, StoreMissing
from outcrop.model import EventType
from outcrop.store import Found, Rooted, Snapshot, Touched, TouchQuery, TouchScan

NAME = "file_attention"
DEFAULT_LIMIT = 50
SCOPES = ("project", "all")
GRANULARITIES = ("sessions", "events")
MAX_PATH = 4096
UNKNOWN = "(unknown)"
"""The bucket of touches whose working tree is not proven."""

_FIELDS = {
    "path": arguments.STRING,
    "scope": arguments.STRING,
    "granularity": arguments.STRING,
    "start_datetime": arguments.STRING,
    "end_datetime": arguments.STRING,
    "tool": arguments.STRING,
    "harness": arguments.STRING,
    "source": arguments.STRING,
    "mutations_only": arguments.BOOLEAN,
    "limit": arguments.INTEGER,
}
_FINE = re.compile(r"[.,]\d{4}")


@dataclass(slots=True, frozen=True)
class Request:
    """`start` and `end` are the two datetimes in UTC ms."""

    path: str
    scope: str
    granularity: str
    start_datetime: str | None
    end_datetime: str | None
    start: int | None
    end: int | None
    tool: str | None
    harness: str | None
    source: str | None
    mutations_only: bool
    limit: int

    def canonical(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}


@dataclass(slots=True)
class Target:
    """What a path comes down to. `root` and `project` are None where they cannot be proven."""

    tail: str
    root: str | None = None
    project: str | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Row:
    """A touch, or a session with all its touches of the file, newest first; `found` is the newest one's event."""

    found: Found
    touches: list[Touched]
    action: str = ""


@dataclass(slots=True)
class Attention:
    """`rows` are the first of those that `touches` make, as many as were asked for; `more`: there are others."""

    target: Target
    scan: TouchScan
    rows: list[Row]
    more: bool
    warnings: list[str]


def parse(raw: Any, context: Context) -> Request:
    values = arguments.fields(raw, _FIELDS, "file_attention expects a JSON object with a string path")
    scope = arguments.choice("scope", values["scope"], SCOPES) or SCOPES[0]
    granularity = arguments.choice("granularity", values["granularity"], GRANULARITIES) or GRANULARITIES[0]
    path = _path(values["path"])
    default = min(DEFAULT_LIMIT, context.max_results)
    limit = arguments.bounded("limit", values["limit"], default, context.max_results)
    start_text, start = _bound("start_datetime", values["start_datetime"])
    end_text, end = _bound("end_datetime", values["end_datetime"])
    if start is not None and end is not None and end <= start:
        raise InvalidRequest("end_datetime must be later than start_datetime", "end_datetime")
    return Request(
        path=path,
        scope=scope,
        granularity=granularity,
        start_datetime=start_text,
        end_datetime=end_text,
        start=start,
        end=end,
        tool=arguments.exact_filter("tool", values["tool"]),
        harness=arguments.exact_filter("harness", values["harness"]),
        source=arguments.exact_filter("source", values["source"]),
        mutations_only=bool(values["mutations_only"]),
        limit=limit,
    )


def answer(request: Request, context: Context) -> Answer:
    try:
        with context.snapshot() as snapshot:
            seen = look(request, snapshot, context)
    except StoreMissing:
        target, _ = _resolve(request.path, None, context)
        seen = Attention(target, TouchScan([], False), [], False, [*target.warnings, NOTHING_INDEXED])
    return Answer(_data(request, seen), seen.warnings)


def look(request: Request, snapshot: Snapshot, context: Context) -> Attention:
    """Who touched the file, as rows of the history."""
    target, launch = _resolve(request.path, snapshot, context)
    warnings = _coverage(snapshot) + target.warnings
    closed = _closed(request, target, launch)
    if closed is not None:
        return Attention(target, TouchScan([], False), [], False, [*warnings, closed])
    if request.scope == "all" and context.floor is not None:
        warnings.append("project_floor: this server answers from its own project alone, whatever the scope")
    query = TouchQuery(
        tail=target.tail,
        project=target.project if request.scope == "project" else None,
        start=request.start,
        end=request.end,
        tool=request.tool,
        harness=request.harness,
        source=request.source,
        mutations_only=request.mutations_only,
    )
    scan = snapshot.touches(query)
    rows, more = _rows(request, scan, snapshot)
    return Attention(target, scan, rows, more, warnings + _doubts(request, scan, launch, query.most))


# What a path means


def _resolve(path: str, snapshot: Snapshot | None, context: Context) -> tuple[Target, Rooted | None]:
    """What the path comes down to, and the project of the launch directory (its `tail` empty outside of Git)."""
    launch = _launch(snapshot, context)
    text = tails.unified(os.path.expanduser(path) if path.startswith("~/") else path)
    full = text
    if not tails.is_absolute(text) and context.launch_directory is not None:
        full = tails.unified(f"{context.launch_directory}/{text}")
    at = _rooted(full, snapshot, context) if tails.is_absolute(full) else None
    if at is None and launch is not None and not launch.tail:
        at = _beneath(full, launch, context)
    if at is not None:
        target = Target(at.tail, at.worktree, at.project)
    elif tails.is_absolute(full):
        target = Target(full)
        target.warnings.append("path_absolute: the path lies in no known project; it is compared as it stands")
    else:
        target = Target(text)
    if text != path.removeprefix("./") or text.startswith("../"):
        target.warnings.insert(0, f"path_normalized: looked for as {target.tail}")
    if "/" not in target.tail:
        target.warnings.append(
            f"generic_tail: every file called {target.tail} counts; the roots tell which ones were found"
        )
    return target, launch


def _launch(snapshot: Snapshot | None, context: Context) -> Rooted | None:
    """The project of the launch directory. Outside of Git it is the directory itself, and `tail` is empty."""
    if context.launch_directory is None:
        return None
    at = _rooted(f"{tails.unified(context.launch_directory)}/.", snapshot, context)
    if at is not None:
        return at
    directory = os.path.realpath(context.launch_directory)
    return Rooted(directory, directory, "")


def _rooted(path: str, snapshot: Snapshot | None, context: Context) -> Rooted | None:
    """The deepest working tree around a path that exists now or was ever seen, an agent's own inside it included."""
    found = [context.locate(path) if context.locate is not None else None]
    found.append(snapshot.root_of(path) if snapshot is not None else None)
    known = [at for at in found if at is not None]
    if not known:
        return None
    at = min(known, key=lambda at: len(at.tail))
    own = tails.isolated(at.tail)
    return at if own is None else replace(at, worktree=f"{at.worktree}/{own}", tail=at.tail[len(own) + 1 :])


def _beneath(path: str, launch: Rooted, context: Context) -> Rooted | None:
    for directory in (context.launch_directory, launch.worktree):
        folder = f"{tails.unified(directory or '')}/"
        if path.startswith(folder):
            return Rooted(launch.worktree, launch.project, path[len(folder) :])
    return None


def _closed(request: Request, target: Target, launch: Rooted | None) -> str | None:
    """Why nothing can be shown in the project's scope."""
    if request.scope != "project":
        return None
    if launch is None:
        return "scope_closed: the launch directory is unknown, so no project can be proven; scope all shows every touch"
    if target.project != launch.project:
        return "scope_closed: the path is not proven to lie in the launch project; scope all shows every touch"
    return None


# What is shown


def _rows(request: Request, scan: TouchScan, snapshot: Snapshot) -> tuple[list[Row], bool]:
    groups: dict[int, list[Touched]] = {}
    for touch in scan.touches:
        groups.setdefault(touch.event if request.granularity == "events" else touch.session, []).append(touch)
    shown = list(groups.values())[: request.limit]
    newest = [touches[0].event for touches in shown]
    found = snapshot.found(newest)
    given = snapshot.actions(newest) if request.granularity == "events" else {}
    rows = [
        Row(found[touches[0].event], touches, given.get(touches[0].event, ""))
        for touches in shown
        if touches[0].event in found
    ]
    return rows, len(groups) > len(shown)


def _coverage(snapshot: Snapshot) -> list[str]:
    known = snapshot.touches_waiting()
    return [] if known is None else [f"coverage_partial: {known:.0%} of the history has been looked through so far"]


def _doubts(request: Request, scan: TouchScan, launch: Rooted | None, most: int) -> list[str]:
    warnings = []
    unknown = sum(touch.root is None for touch in scan.touches)
    if unknown:
        warnings.append(f"unknown_roots: of {unknown} touches it is not proven in which working tree they were")
    if scan.truncated:
        warnings.append(
            f"scan_truncated: only the newest {most} touches were looked at; narrow the time or the filters"
        )
    if not scan.touches and request.scope == "project" and launch is not None and not launch.tail:
        warnings.append(
            "scope_directory: the launch directory is in no Git repository, so only sessions that ran in exactly this"
            " directory count; scope all shows every touch"
        )
    return warnings


def _data(request: Request, seen: Attention) -> dict[str, Any]:
    touches = seen.scan.touches
    counts = Counter([touch.root or UNKNOWN for touch in touches])
    sessions_of = Counter([root or UNKNOWN for root, _ in {(touch.root, touch.session) for touch in touches}])
    unknown = counts[UNKNOWN]
    row = _event_row if request.granularity == "events" else _session_row
    return {
        "path": request.path,
        "tail": seen.target.tail,
        "tail_is_absolute": tails.is_absolute(seen.target.tail),
        "stripped_root": seen.target.root,
        "scope": request.scope,
        "granularity": request.granularity,
        "summary": {
            "total_touches": len(touches),
            "distinct_sessions": len({touch.session for touch in touches}),
            "distinct_roots": len(sessions_of),
            "distinct_known_roots": len(sessions_of) - (unknown > 0),
            "unknown_root_touches": unknown,
            "first_touch": timestamp(touches[-1].time) if touches else None,
            "last_touch": timestamp(touches[0].time) if touches else None,
            "ambiguous": len(sessions_of) > 1 or (unknown > 0 and len(touches) > 1),
            "scan_truncated": seen.scan.truncated,
        },
        "roots": [
            {"root": root, "touch_count": count, "session_count": sessions_of[root]}
            for root, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            if count
        ],
        "result_count": len(seen.rows),
        "limit": request.limit,
        "truncated": seen.more or seen.scan.truncated,
        request.granularity: [row(rank, shown) for rank, shown in enumerate(seen.rows, 1)],
    }


def _event_row(rank: int, row: Row) -> dict[str, Any]:
    event, turn, session = row.found.event, row.found.turn, row.found.session
    touch = row.touches[0]
    handles = _handles(row.found)
    return {
        "rank": rank,
        "id": handles["event_id"],
        "event": {
            "id": handles["event_id"],
            "session_id": handles["session_id"],
            "harness": session.harness,
            "source": session.source,
            "timestamp": timestamp(event.time),
            "tool_name": event.tool,
            "phase": "request" if event.type is EventType.TOOL_CALL else "response",
            "turn": turn.ordinal,
            "match_kind": touch.match,
            "worktree_root": touch.root,
            "action_preview": row.action,
        },
        "open": handles,
    }


def _session_row(rank: int, row: Row) -> dict[str, Any]:
    session, touches = row.found.session, row.touches
    handles = _handles(row.found)
    return {
        "rank": rank,
        "id": handles["session_id"],
        "session": {
            "id": handles["session_id"],
            "harness": session.harness,
            "source": session.source,
            "first_touch": timestamp(touches[-1].time),
            "last_touch": timestamp(touches[0].time),
            "touch_count": len(touches),
            "tools": sorted({touch.tool for touch in touches if touch.tool is not None}),
            "worktree_roots": sorted({touch.root for touch in touches if touch.root is not None}),
            "match_kinds": sorted({touch.match for touch in touches}),
        },
        "open": handles,
    }


def _handles(found: Found) -> dict[str, Any]:
    return {
        "event_id": shapes.event_id(found.event.uid),
        "session_id": shapes.session_id(found.session.uid),
        "turn_id": shapes.turn_id(found.turn.uid),
    }


# Arguments


def _path(text: str | None) -> str:
    if text is None:
        raise InvalidRequest("path is required", "path")
    if text != text.strip():
        raise InvalidRequest("path must not have leading or trailing whitespace", "path")
    if text[:7].lower() == "file://":
        raise InvalidRequest("file:// URIs are not supported; pass a filesystem path", "path")
    if text.endswith(("/", "\\")):
        raise InvalidRequest("path must name a file, not a directory-style path ending in '/'", "path")
    if not text:
        raise InvalidRequest("path must be a non-empty string", "path")
    if len(text) > MAX_PATH:
        raise InvalidRequest(f"path must be at most {MAX_PATH} characters", "path")
    if "\0" in text or tails.name_of(text.replace("\\", "/")) in (".", "..", "~"):
        raise InvalidRequest("path must name a file", "path")
    return text


def _bound(name: str, value: str | None) -> tuple[str | None, int | None]:
    if value is None:
        return None, None
    if _FINE.search(value):
        raise InvalidRequest(f"{name} supports millisecond precision at most", name)
    return instant(name, value)


TOOL = Tool(
    name=NAME,
    title="File attention",
    description=schemas.FILE_ATTENTION,
    input_schema=schemas.file_attention_input,
    output_schema=schemas.output(NAME, schemas.FILE_ATTENTION_DATA),
    parse=parse,
    answer=answer,
)
