"""`outcrop serve`: session search (`/rpc`) and the MCP tools (`/mcp`) over HTTP, for clients of `outcrop pair`."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from outcrop.errors import EXIT_OK, InvalidRequest

if TYPE_CHECKING:
    from outcrop.config import Config
    from outcrop.servers.jsonrpc import Handler
    from outcrop.servers.mcp import Protocol

PORT = 7717
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/\s]+)):(\d{1,5})", re.ASCII)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--port", metavar="N", type=int, default=PORT, help=f"the port; 0 takes a free one ({PORT})")
    parser.add_argument("--host", metavar="ADDR", default="127.0.0.1", help="the address to listen at (127.0.0.1)")
    parser.add_argument(
        "--name", metavar="HOST", action="append", default=[], help="a host name that clients may call it by"
    )


def run(args: Namespace) -> int:
    from outcrop.cli import context, searching

    if not 0 <= args.port <= 65535:
        raise InvalidRequest("--port must be from 0 to 65535", "port")
    settings = context.load_config()
    return _serve(settings, args.host, args.port, args.name, searching.paired(settings))


def tools_alone(address: str, project_only: bool) -> int:
    """`outcrop mcp --http HOST:PORT`: the tools and nothing else."""
    from outcrop.cli import context

    if project_only:
        raise InvalidRequest("--project-only: over HTTP it is not known in which project a client was started")
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found[3]) > 65535:
        raise InvalidRequest(f"--http: {address!r} is no HOST:PORT", "http")
    return _serve(context.load_config(), found[1] or found[2], int(found[3]), [], None)


def _serve(settings: Config, host: str, port: int, names: list[str], rpc: Handler | None) -> int:
    from outcrop.cli import searching
    from outcrop.servers import http, listen
    from outcrop.servers.gate import Gate
    from outcrop.servers.jsonrpc import Slots
    from outcrop.servers.pairs import Pairs

    searching.log_to_stderr()
    listener = listen.bind(host, port)
    pairs = Pairs(settings.home)
    slots = Slots(settings.parallel, settings.queue)
    app, calls = http.application(slots, _tools(settings), rpc)
    _introduce(listener.getsockname(), listen.is_loopback(listener), bool(pairs.all()))
    code = listen.serve(Gate(app, pairs, [name.lower() for name in (host, *names)]), listener, calls.stop)
    slots.close(0)
    return code if code else EXIT_OK


def _tools(settings: Config) -> Protocol:
    from outcrop.cli import context
    from outcrop.cli.following import follower
    from outcrop.harnesses import all_sources
    from outcrop.servers.mcp import Protocol, Toolbox

    sources = [source for source in all_sources() if settings.source(source).enabled]
    return Protocol(Toolbox(lambda: context.build(settings=settings, remote=True), sources), follower(settings))


def _introduce(address: tuple[str, int], loopback: bool, any_pair: bool) -> None:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    _tell(f"serving at http://{host}:{address[1]}; Ctrl-C ends it")
    if not loopback:
        _tell("warning: other machines can reach this, and it is not encrypted: put TLS in front of it")
    if not any_pair:
        _tell("no client is paired yet: `outcrop pair NAME` gives one its token")


def _tell(text: str) -> None:
    print(f"outcrop: {text}", file=sys.stderr, flush=True)
