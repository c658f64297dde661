"""`outcrop events QUERY`: the search for single events, for people or as the envelope."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from outcrop.cli import context, output
from outcrop.contracts import mcp_v1


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="words to find; quotes are not needed")
    parser.add_argument("--types", metavar="A,B", help="event types to search (user_input,assistant_response)")
    parser.add_argument("--harness", metavar="H", help="only events of this harness, such as codex")
    parser.add_argument("--source", metavar="S", help="only events of this configured source")
    parser.add_argument("--within", metavar="ID", help="only inside this session or turn")
    parser.add_argument("-n", dest="hits", metavar="N", type=int, help="at most N hits (10)")
    parser.add_argument("--json", action="store_true", help="print the envelope")


def run(args: Namespace) -> int:
    arguments: dict[str, Any] = {
        "query": " ".join(args.query),
        "within_id": args.within,
        "event_types": None if args.types is None else [name.strip() for name in args.types.split(",")],
        "harness": args.harness,
        "source": args.source,
        "n_hits": args.hits,
    }
    envelope = mcp_v1.call("search_sessions", arguments, context.attended(args.json))
    output.answer(envelope, args.json, _show)
    return output.exit_code_of_list(envelope)


def _show(envelope: dict[str, Any]) -> None:
    data = envelope["data"]
    if not data["results"]:
        print("nothing found", file=sys.stderr)
        return
    ink = output.Ink(sys.stdout)
    for hit in data["results"]:
        event, session = hit["event"], hit["session"]
        title = output.clean(session["title"] or "untitled session")
        print(f"{hit['rank']}. {ink.bold(title)}")
        print(f"   {output.clean(session['harness'])}  {event['type']}  {output.moment(event['timestamp'])}")
        print(f"   {' '.join(output.clean(hit['snippet']['text']).split())}")
        print(f"   {ink.dim(hit['id'])}")
    if data["truncated"]:
        print("there are more hits: ask for them with -n", file=sys.stderr)
