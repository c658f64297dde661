"""`outcrop pair NAME`: the token of a client of `outcrop serve`, shown once; `list` and `revoke NAME` for later."""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Any

from outcrop.cli import context, output
from outcrop.errors import EXIT_NOTHING, EXIT_OK, InvalidRequest
from outcrop.servers.pairs import Pair, Pairs

_SPAN = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "outcrop pair NAME [--expires SPAN] | list | revoke NAME [--json]"
    parser.add_argument("words", metavar="NAME", nargs="+", help="the client's name; or `list`; or `revoke` and a name")
    parser.add_argument("--expires", metavar="SPAN", help="how long the token is good for, such as 30d (for ever)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: Namespace) -> int:
    pairs = Pairs(context.load_config().home)
    match args.words:
        case ["list"]:
            return _list(pairs.all(), args.json)
        case ["revoke", name]:
            return _revoke(pairs, name, args.json)
        case [name] if name != "revoke":
            return _add(pairs, name, args)
        case _:
            raise InvalidRequest("one name is needed: `outcrop pair NAME`, `outcrop pair revoke NAME`")


def _add(pairs: Pairs, name: str, args: Namespace) -> int:
    expires = None if args.expires is None else time.time() + _span(args.expires)
    token = pairs.add(name, expires)
    if args.json:
        output.json_line({"name": name, "token": token, "expires": _moment(expires)})
        return EXIT_OK
    print(token)
    print("outcrop: this is the only time that the token is shown", file=sys.stderr)
    return EXIT_OK


def _list(found: list[Pair], as_json: bool) -> int:
    now = time.time()
    if as_json:
        output.json_line({"pairs": [_told(pair, now) for pair in found]})
    else:
        for pair in found:
            used = "not used yet" if pair.used is None else f"used {output.ago(now - pair.used)}"
            until = "" if pair.expires is None else f", expires {output.ago(now - pair.expires)}"
            print(f"{pair.name}  {used}{', expired' if pair.expired(now) else until}")
    return EXIT_OK if found else EXIT_NOTHING


def _revoke(pairs: Pairs, name: str, as_json: bool) -> int:
    gone = pairs.revoke(name)
    if as_json:
        output.json_line({"name": name, "revoked": gone})
    elif not gone:
        output.error(f"no client is paired as {name}")
    return EXIT_OK if gone else EXIT_NOTHING


def _told(pair: Pair, now: float) -> dict[str, Any]:
    return {
        "name": pair.name,
        "created": _moment(pair.created),
        "expires": _moment(pair.expires),
        "expired": pair.expired(now),
        "last_used": _moment(pair.used),
    }


def _moment(seconds: float | None) -> str | None:
    """RFC 3339; None stays None."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat("T", "milliseconds") + "Z"


def _span(text: str) -> int:
    found = _SPAN.fullmatch(text)
    if found is None or not int(found[1]):
        raise InvalidRequest(f"--expires: {text!r} is no span such as 30d or 12h", "expires")
    return int(found[1]) * _SECONDS[found[2]]
