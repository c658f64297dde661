"""`outcrop call TOOL [JSON]`: one MCP tool in this process, envelope out."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace

from outcrop.cli import context, output
from outcrop.cli.bounds import seconds
from outcrop.contracts import mcp_v1
from outcrop.errors import InvalidRequest


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help=f"one of {', '.join(mcp_v1.TOOLS)}")
    parser.add_argument("json", metavar="JSON", nargs="?", help="the arguments; read from standard input when left out")
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="give up after this time")


def run(args: Namespace) -> int:
    started = time.monotonic()
    text = sys.stdin.read() if args.json is None else args.json
    try:
        arguments = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the arguments are not JSON: {error}") from None
    deadline = None if args.timeout is None else started + args.timeout
    envelope = mcp_v1.call(args.tool, arguments, context.attended(True, deadline), started)
    output.json_line(envelope)
    return output.exit_code(envelope)
