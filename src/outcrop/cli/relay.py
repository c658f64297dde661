"""`outcrop relay`: session search on standard input and output, for another machine.

One JSON-RPC message a line (ruling 52). Whoever is at the other end came in by a shell of this user, over SSH as a
rule, and is told what a paired client may know, no more.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from outcrop.cli import context, searching
from outcrop.servers import stdio
from outcrop.servers.jsonrpc import Slots


def add_arguments(parser: ArgumentParser) -> None:
    pass


def run(args: Namespace) -> int:
    settings = context.load_config()
    searching.log_to_stderr()
    slots = Slots(settings.parallel, settings.queue)
    return stdio.serve(searching.paired(settings), slots, ignores_other_versions=True)
