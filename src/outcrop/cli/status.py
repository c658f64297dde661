"""`outcrop status`: what is indexed, what is missing and why."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Any

from outcrop.cli import output
from outcrop.errors import EXIT_NOT_READY, EXIT_OK


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", metavar="H", help="session search's own view, of this machine (local) or another")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON document")


def run(args: Namespace) -> int:
    if args.host is not None:
        return _search_status(args.host, args.json)
    from outcrop.cli.context import load_config
    from outcrop.ingest.status import status
    from outcrop.store.embedded.database import open_for_reading

    config = load_config()
    connection = open_for_reading(config.home)
    try:
        found = status(connection, config.home)
    finally:
        connection.close()
    if args.json:
        output.json_line(found)
    else:
        _show(found)
    return EXIT_OK


def _search_status(host: str, as_json: bool) -> int:
    """The status of session search, as its contract tells it."""
    from outcrop.contracts.vault.hosts import LOCAL, parse_host

    if parse_host(host) == LOCAL:
        from outcrop.cli import context, searching

        status = searching.ServedService(context.load_config()).status()
    else:
        from outcrop.cli import hosts
        from outcrop.contracts.vault import remote

        _, peer = hosts.reached(host)
        try:
            status = remote.search_status(peer)
        finally:
            peer.close()
    if as_json:
        output.json_line(status.wire())
    elif not status.enabled:
        output.error("there is no session search, or it is switched off")
    else:
        print(
            f"{status.phase}: {status.files_indexed:,} files, {status.files_due:,} due, {status.files_failed:,} failed"
        )
        for root in status.degraded_roots:
            print(f"  {output.clean(': '.join(filter(None, (root.root, root.reason))))}")
    return EXIT_OK if status.enabled else EXIT_NOT_READY


def _show(found: dict[str, Any]) -> None:
    ink = output.Ink(sys.stdout)
    size = sum(found["bytes"].values()) / 1e6
    print(
        f"{ink.bold(str(found['sessions']))} sessions, {found['turns']:,} turns, {found['events']:,} events"
        f" in {size:.1f} MB ({output.clean(found['home'])})"
    )
    if found["last_pass"]:
        when = datetime.fromtimestamp(found["last_pass"] / 1000, UTC).isoformat()
        print(f"last read {output.moment(when)}")
    if not found["complete"]:
        print("the first reading is not complete")
    if found["waiting_for_text_index"]:
        print(f"{found['waiting_for_text_index']:,} documents wait for the text index")
    for source in found["sources"]:
        notes = [f"{source['sessions']:,} sessions", f"{source['files']:,} files", f"{source['bytes'] / 1e6:.1f} MB"]
        if source["missing"]:
            notes.append(f"{source['missing']:,} gone, kept here")
        if source["failed"]:
            notes.append(f"{source['failed']:,} not readable")
        print(f"  {source['source']}: {', '.join(notes)}")
    for root in found["roots"]:
        if root["problem"]:
            print(f"  cannot list {output.clean(root['root'])}: {root['problem']}")
    for file in found["files_with_problems"]:
        print(f"  cannot read {output.clean(file['path'])}: {file['reason']}")
    for file in found["unfinished"]:
        print(f"  not ended yet: {output.clean(file['path'])}, {file['bytes']:,} bytes from byte {file['offset']}")
    aside = found["set_aside"]
    for record in aside["records"]:
        print(
            f"  set aside {output.clean(record['path'])} line {record['line']}, byte {record['offset']}:"
            f" {record['reason']}"
        )
    if aside["count"] > len(aside["records"]):
        print(f"  and {aside['count'] - len(aside['records']):,} more records set aside")
    for unknown in found["unknown"]:
        print(
            f"  unknown to this version: {unknown['records']:,} x {output.clean(unknown['kind'])}"
            f" ({unknown['harness']} {output.clean(unknown['version'])}); kept whole"
        )
    if found["masked"]:
        print("  masked: " + ", ".join(f"{rule} {n:,}" for rule, n in found["masked"].items()))
