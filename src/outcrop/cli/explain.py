"""`outcrop explain ID QUERY`: why a query does or does not find a session, a turn or an event."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from outcrop.cli import context, output
from outcrop.contracts.mcp_v1 import search_sessions
from outcrop.contracts.mcp_v1.arguments import typed_id
from outcrop.contracts.moments import timestamp
from outcrop.errors import EXIT_NOTHING, EXIT_OK


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a session, turn or event, by its id")
    parser.add_argument("query", metavar="QUERY", nargs="+", help="the words as they were searched")
    parser.add_argument("--types", metavar="A,B", help="event types that were searched (user_input,assistant_response)")
    parser.add_argument("--harness", metavar="H", help="the harness that the search was held to")
    parser.add_argument("--source", metavar="S", help="the source that the search was held to")
    parser.add_argument("-n", dest="hits", metavar="N", type=int, help="how many hits were asked for (10)")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON document")


def run(args: Namespace) -> int:
    from outcrop.search.events import EventQuery
    from outcrop.search.explain import explain

    surroundings = context.build()
    target = typed_id("id", args.id)
    arguments: dict[str, Any] = {
        "query": " ".join(args.query),
        "event_types": None if args.types is None else [name.strip() for name in args.types.split(",")],
        "harness": args.harness,
        "source": args.source,
        "n_hits": args.hits,
    }
    request = search_sessions.parse(arguments, surroundings)
    query = EventQuery(
        request.query, request.event_types, request.n_hits, harness=request.harness, source=request.source
    )
    try:
        told = explain(surroundings.store, target, query)
    finally:
        surroundings.store.close()
    document = told.document
    if "forgotten_at" in document:
        document = {**document, "forgotten_at": timestamp(document["forgotten_at"])}
    if args.json:
        output.json_line(document)
    else:
        _show(document)
    return EXIT_OK if told.found else EXIT_NOTHING


def _show(told: dict[str, Any]) -> None:
    ink = output.Ink(sys.stdout)
    about = told.get("best") or told
    reasons = told["reasons"]
    verdict = "found" if told["found"] else "not found" if about.get("rank") is None else "not shown"
    first = f": {reasons[0]['text']}" if reasons and not told["found"] else ""
    print(f"{ink.bold(verdict)}{_place(about)}{first}")
    for reason in reasons[0 if told["found"] else 1 :]:
        if reason["code"] != "found":
            print(f"  also: {reason['text']}")
    for warning in told["query"]["warnings"]:
        print(f"  query: {output.clean(warning)}")
    if "forgotten_at" in told:
        print(f"  forgotten on {output.moment(told['forgotten_at'])}, {told['source']}")
        print(f"  {ink.dim('outcrop forget --undo ' + told['session'])}")
    elif told["kind"] != "event":
        counts = ", ".join(
            f"{entry['stored']:,} {kind}" + (f" ({entry['waiting']:,} waiting)" if entry["waiting"] else "")
            for kind, entry in told["events"].items()
        )
        print(f"  it holds {counts or 'no event'}")
        if told["matching_other_types"]:
            other = told["matching_other_types"]
            named = ", ".join(f"{count:,} {kind}" for kind, count in other.items())
            print(f"  events of other types that hold words of it: {named} (--types {','.join(other)})")
    for word in about.get("words", ()):
        where = ", ".join(word["fields"]) or "not there"
        print(f"  {output.clean(word['word'])}: {where} (in {word['events_with_it']:,} events of the history)")
    if "index" in about:
        _show_event(about, ink)


def _place(about: dict[str, Any]) -> str:
    if about.get("rank") is None:
        return ""
    return f", hit {about['rank']:,} of {about['query']['hits']:,}{'+' if about['query']['more_hits'] else ''}" + (
        f", score {about['score']:.3f}" if about["score"] is not None else ""
    )


def _show_event(about: dict[str, Any], ink: output.Ink) -> None:
    index = about["index"]
    if index["present"]:
        state = f"in the text index (generation {index['generation']:,}, text {index['rev']} of {index['row_rev']})"
    else:
        state = "not in the text index"
    if index["waiting"]:
        state += ", waits to be written"
    print(f"  {about['type']}, {about['characters']:,} characters, {output.clean(about['source'])}: {state}")
    if about["copy_of"]:
        print(f"  the original: {ink.dim(about['copy_of'])}")
    print(f"  {ink.dim(about['id'])}")
