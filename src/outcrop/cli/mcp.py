"""`outcrop mcp`: the MCP server on standard input and output.

Until the first tool is listed or called nothing of the contract or the store is loaded: every agent starts a server
of its own, and most of them ask it nothing.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from outcrop import config
from outcrop.cli.following import follower
from outcrop.harnesses import all_sources
from outcrop.servers import stdio
from outcrop.servers.jsonrpc import Slots
from outcrop.servers.mcp import Protocol, Toolbox

if TYPE_CHECKING:
    from outcrop.contracts.mcp_v1.envelope import Context


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--project-only",
        action="store_true",
        help="answer from sessions of the launch directory's project alone, whatever is asked",
    )

    parser.add_argument(
        "--http", metavar="HOST:PORT", help="serve over HTTP at this address, to clients of `outcrop pair` alone"
    )


def run(args: Namespace) -> int:
    if args.http is not None:
        from outcrop.cli import serve

        return serve.tools_alone(args.http, args.project_only)
    known = all_sources()
    settings = config.load(known_sources=known)
    sources = [source for source in known if settings.source(source).enabled]

    def open_context() -> Context:
        import logging

        # Nobody watches a server: what fails in it is told on stderr, which clients keep in their logs.
        logging.getLogger("outcrop").handlers = [logging.StreamHandler()]
        from outcrop.cli import context

        return context.build(settings=settings, project_only=args.project_only)

    return stdio.serve(
        Protocol(Toolbox(open_context, sources), follower(settings)), Slots(settings.parallel, settings.queue)
    )
