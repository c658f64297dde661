"""`outcrop index`: read what is new in the agents' session files."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from outcrop.cli import output
from outcrop.errors import EXIT_OK, ConfigError

if TYPE_CHECKING:
    from outcrop.config import Config
    from outcrop.ingest.pipeline import Progress, Summary


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="open every file, not only those that changed")
    parser.add_argument("--source", metavar="S", help="only this source")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON document")


def run(args: Namespace) -> int:
    from outcrop.cli.bar import Bar
    from outcrop.cli.context import load_config
    from outcrop.harnesses import all_sources

    config = load_config()
    if args.source is not None and args.source not in all_sources():
        raise ConfigError(f"unknown source: {args.source} (known: {', '.join(all_sources())})")
    with Bar() as bar:
        summary = _indexed(config, args, bar.tell)
    if args.json:
        output.json_line(
            {
                "files": summary.files,
                "files_read": summary.changed,
                "records": summary.records,
                "events": summary.events,
                "bytes": summary.bytes,
                "set_aside": summary.set_aside,
                "removed": summary.removed,
                "erasure_pending": summary.pending,
                "seconds": round(summary.seconds, 3),
                "problems": [{"path": path, "reason": reason} for path, reason in summary.problems],
            }
        )
    else:
        for path, reason in summary.problems:
            print(f"outcrop: warning: {output.clean(path)}: {output.clean(reason)}", file=sys.stderr)
        if summary.pending is not None:
            print(f"outcrop: warning: erased, proof pending: {summary.pending}", file=sys.stderr)
        if summary.set_aside:
            print(
                f"outcrop: warning: {_number(summary.set_aside)} records set aside; `outcrop status` names them",
                file=sys.stderr,
            )
        print(
            f"{_number(summary.events)} events from {_number(summary.records)} records"
            f" in {_number(summary.changed)} of {_number(summary.files)} files"
            f" ({summary.bytes / 1e6:.1f} MB in {summary.seconds:.1f} s)"
        )
    return EXIT_OK


def _indexed(config: Config, args: Namespace, progress: Progress) -> Summary:
    """Have the indexer do it, or where none runs this process."""
    from dataclasses import asdict

    from outcrop.cli import jobs
    from outcrop.ingest.pipeline import Summary, index

    def alone(wait: float) -> dict[str, Any]:
        return asdict(index(config, full=args.full, source=args.source, progress=progress, wait=wait))

    params = {"sweep": True, "full": args.full, "source": args.source}
    told = jobs.done(config, "reconcile", params, alone, progress)
    summary = Summary(**told)
    summary.problems = [(path, reason) for path, reason in told["problems"]]
    return summary


def _number(value: int) -> str:
    return f"{value:,}"
