"""`outcrop sessions`: the sessions of a time range, for people or as the envelope."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Any

from outcrop.cli import context, output
from outcrop.cli.bounds import bound, wire
from outcrop.contracts import mcp_v1

_DEFAULT = "7d"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--since", metavar="T", help=f"a time, a date, or a span such as 2d or 3h ({_DEFAULT})")
    parser.add_argument("--until", metavar="T", help="the same; a date means its end (now)")
    parser.add_argument("--limit", metavar="N", type=int, help="sessions on a page (20)")
    parser.add_argument("--mode", metavar="M", help="web_search, mcp_internal, tool_calling or chat")
    parser.add_argument("--harness", metavar="H", help="only sessions of this harness, such as codex")
    parser.add_argument("--source", metavar="S", help="only sessions of this configured source")
    parser.add_argument("--sort", metavar="S", help="desc or asc, by last activity (desc)")
    parser.add_argument("--cursor", metavar="C", help="go on where a page with the same options ended")
    parser.add_argument("--json", action="store_true", help="print the envelope")


def run(args: Namespace) -> int:
    now = datetime.now(UTC)
    arguments: dict[str, Any] = {
        "start_datetime": bound("--since", args.since or _DEFAULT, now),
        "end_datetime": bound("--until", args.until, now, end=True) if args.until else wire(now),
        "limit": args.limit,
        "mode": args.mode,
        "harness": args.harness,
        "source": args.source,
        "sort": args.sort,
        "cursor": args.cursor,
    }
    envelope = mcp_v1.call("list_sessions", arguments, context.attended(args.json))
    output.answer(envelope, args.json, _show)
    return output.exit_code_of_list(envelope)


def _show(envelope: dict[str, Any]) -> None:
    data = envelope["data"]
    if not data["sessions"]:
        print("no sessions in this time", file=sys.stderr)
        return
    ink = output.Ink(sys.stdout)
    for row in data["sessions"]:
        session = row["session"]
        turns = session["turn_count"]
        print(ink.bold(output.clean(session["display_label"])))
        print(
            f"   {output.clean(session['harness'])}  {session['mode']}  {output.moment(session['updated_at'])}"
            f"  {turns} turn{'' if turns == 1 else 's'}{'' if session['completed'] else ', not completed'}"
        )
        print(f"   {ink.dim(row['id'])}")
    if data["next_cursor"]:
        print(f"more: {_again(envelope['request'], data['next_cursor'])}")


def _again(request: dict[str, Any], cursor: str) -> str:
    """The command for the next page: bounds that depend on the clock are written out."""
    words = ["outcrop", "sessions", "--since", request["start_datetime"], "--until", request["end_datetime"]]
    for name in ("mode", "harness", "source", "sort", "limit"):
        if request[name] is not None:
            words += [f"--{name}", str(request[name])]
    return output.clean(shlex.join([*words, "--cursor", cursor]))
