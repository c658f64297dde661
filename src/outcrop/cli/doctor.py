"""`outcrop doctor`: checks everything that can be wrong, tells what to do, and repairs what can be repaired safely."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from outcrop import __version__
from outcrop.cli import jobs, output
from outcrop.errors import EXIT_NOTHING, EXIT_OK

if TYPE_CHECKING:
    from outcrop.findings import Finding
    from outcrop.ingest.doctor import Examined

SHOWN = 5
"""Details that a person is shown of one finding."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="repair what can be repaired without losing anything")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as one JSON document")
    form.add_argument("--report", action="store_true", help="print a report for a bug report, without private text")


def run(args: Namespace) -> int:
    from outcrop.cli.context import crashes, running_indexer
    from outcrop.harnesses import Environment
    from outcrop.ingest.doctor import Processes, examine, examine_and_mend

    processes = Processes(running_indexer, crashes, jobs.alone)
    examined = (examine_and_mend if args.fix else examine)(Environment.here(), processes)
    if args.json:
        output.json_line(_document(examined))
    elif args.report:
        print(_report(examined))
    else:
        _show(examined)
    return EXIT_NOTHING if examined.failed else EXIT_OK


def _document(examined: Examined) -> dict[str, Any]:
    return {
        "ok": not examined.failed,
        "about": _about(),
        "mended": [{"what": what, "done": done} for what, done in examined.mended],
        "findings": [
            {
                "check": finding.check,
                "level": str(finding.level),
                "what": finding.what,
                "means": finding.means,
                "do": finding.do,
                "fixable": finding.repair is not None,
                "facts": finding.facts,
                "details": list(finding.details),
            }
            for finding in examined.findings
        ],
    }


def _about() -> dict[str, str]:
    """What a bug report begins with."""
    import platform
    import sqlite3
    from importlib.metadata import version

    return {
        "outcrop": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "tantivy": version("tantivy"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _report(examined: Examined) -> str:
    """Numbers and fixed words alone: no path, no title, nothing that a session held."""
    lines = ["outcrop doctor report", ", ".join(f"{name} {version}" for name, version in _about().items())]
    lines += [f"mended: {what}" if done else f"not mended: {what}" for what, done in examined.mended]
    for finding in examined.findings:
        facts = ", ".join(f"{name} {value}" for name, value in finding.facts.items())
        lines.append(f"[{finding.level}] {finding.check}: {finding.what}" + (f" ({facts})" if facts else ""))
    return "\n".join(lines)


def _show(examined: Examined) -> None:
    ink = output.Ink(sys.stdout)
    for what, done in examined.mended:
        print(f"{'repaired' if done else 'not repaired'}: {output.clean(what)}")
    by_level: dict[str, list[Finding]] = {}
    for finding in examined.findings:
        by_level.setdefault(finding.level, []).append(finding)
    for level in ("failed", "note"):
        for finding in by_level.get(level, ()):
            print(f"{ink.bold(level)}  {finding.check}: {output.clean(finding.what)}")
            for line in (finding.means, finding.do and f"to do: {finding.do}"):
                if line:
                    print(f"        {output.clean(line)}")
            for detail in finding.details[:SHOWN]:
                print(ink.dim(f"        - {output.clean(detail)}"))
            if len(finding.details) > SHOWN:
                print(ink.dim(f"        - and {len(finding.details) - SHOWN:,} more (--json names them)"))
    sound = [finding.check for finding in by_level.get("ok", ())]
    if sound:
        print(f"ok      {', '.join(sound)}")
    failed = len(by_level.get("failed", ()))
    print(f"{failed} of {len(examined.findings)} checks failed" if failed else "nothing failed")
