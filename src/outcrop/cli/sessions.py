"""`outcrop sessions`: the sessions of a time range, for people or as the envelope."""

from __future__ import annotations

import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from outcrop.cli import context, output
from outcrop.contracts import mcp_v1
from outcrop.errors import InvalidRequest

_SPAN = re.compile(r"(\d{1,6})([mhdw])", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
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
        "end_datetime": bound("--until", args.until, now, end=True) if args.until else _wire(now),
        "limit": args.limit,
        "mode": args.mode,
        "harness": args.harness,
        "source": args.source,
        "sort": args.sort,
        "cursor": args.cursor,
    }
    envelope = mcp_v1.call("list_sessions", arguments, context.attended())
    output.answer(envelope, args.json, _show)
    return output.exit_code_of_list(envelope)


def bound(option: str, text: str, now: datetime, *, end: bool = False) -> str:
    """A bound as RFC 3339: spans count back from now, dates and times without an offset are local."""
    span = _SPAN.fullmatch(text)
    try:
        if span:
            return _wire(now - timedelta(**{_UNITS[span[2]]: int(span[1])}))
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text) + timedelta(days=1 if end else 0)
            return _wire(datetime.combine(day, time()).astimezone())
        return _wire(datetime.fromisoformat(text.strip()).astimezone())
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{option}: {text!r} is no time, no date and no span such as 2d") from None


def _wire(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat("T", "milliseconds") + "Z"


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
