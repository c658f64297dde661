"""`outcrop touches PATH`: who read or changed a file, for people or as the envelope."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from outcrop.cli import context, output
from outcrop.cli.bounds import bound
from outcrop.contracts import mcp_v1, moments
from outcrop.contracts.mcp_v1 import file_attention, shapes
from outcrop.errors import EXIT_NOTHING, EXIT_OK
from outcrop.store import Touched


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a file, which need not exist any more")
    parser.add_argument("--events", action="store_true", help="list every call, not only the sessions")
    parser.add_argument("--mutations", action="store_true", help="leave out what only read the file")
    parser.add_argument("--since", metavar="T", help="a time, a date, or a span such as 2d or 3h")
    parser.add_argument("--tool", metavar="T", help="only calls of this tool")
    parser.add_argument("--harness", metavar="H", help="only sessions of this harness, such as codex")
    parser.add_argument("--source", metavar="S", help="only sessions of this configured source")
    parser.add_argument("--scope", metavar="S", help="project: the one of this directory, or all (project)")
    parser.add_argument("--limit", metavar="N", type=int, help="at most N sessions, or events (50)")
    parser.add_argument("--json", action="store_true", help="print the envelope")


def run(args: Namespace) -> int:
    arguments: dict[str, Any] = {
        "path": args.path,
        "scope": args.scope,
        "granularity": "events" if args.events else "sessions",
        "start_datetime": bound("--since", args.since, datetime.now(UTC)) if args.since else None,
        "tool": args.tool,
        "harness": args.harness,
        "source": args.source,
        "mutations_only": args.mutations,
        "limit": args.limit,
    }
    built = context.attended(args.json)
    if args.json:
        envelope = mcp_v1.call(file_attention.NAME, arguments, built)
        output.json_line(envelope)
        return output.exit_code_of_list(envelope)
    begun = mcp_v1.begin(file_attention.NAME, arguments, built, time.monotonic())
    if begun.rejected is not None:
        output.envelope_error(begun.rejected)
        return output.exit_code(begun.rejected)
    with built.snapshot() as snapshot:
        seen = file_attention.look(begun.parsed, snapshot, built)
    output.warnings({"warnings": seen.warnings})
    if not seen.rows:
        print("nothing found", file=sys.stderr)
        return EXIT_NOTHING
    _show(seen, output.Ink(sys.stdout), args.events)
    return EXIT_OK


def _show(seen: file_attention.Attention, ink: output.Ink, events: bool) -> None:
    """Sessions, newest first, each with its touches where they were asked for."""
    before = None
    for row in seen.rows:
        session = row.found.session
        if session.id != before:
            before = session.id
            title = session.title or session.label or session.first_prompt or "untitled session"
            print(ink.bold(output.clean(" ".join(title.split())[: shapes.LABEL])))
            print(f"   {output.clean(session.harness)}  {ink.dim(str(shapes.session_id(session.uid)))}")
        touch = row.touches[0]
        when = output.moment(moments.timestamp(touch.time))
        what = f"{output.clean(touch.tool or 'a tool')}: {_effects(row.touches)}" if events else _effects(row.touches)
        print(f"   {when}  {what}")
        for root in sorted({touch.root or "in an unknown working tree" for touch in row.touches}):
            print(f"   {output.clean(root)}")
        if events and row.action:
            print(f"   {output.clean(row.action)}")
        print(f"   {ink.dim(str(shapes.event_id(row.found.event.uid)))}")
    if seen.more:
        print("there are more: ask for them with --limit", file=sys.stderr)


def _effects(touches: list[Touched]) -> str:
    """`3 × read, change`."""
    counts = Counter(effect for touch in touches for effect in touch.effects)
    return ", ".join(effect if count == 1 else f"{count} × {effect}" for effect, count in counts.items())
