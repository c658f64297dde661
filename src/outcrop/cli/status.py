"""`outcrop status`: whether the index is current, what is missing and why, how big it is."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from outcrop.cli import output
from outcrop.cli.bounds import seconds
from outcrop.contracts.moments import timestamp
from outcrop.errors import EXIT_NOT_READY, EXIT_OK

SHOWN = 5
"""Lines of one kind that a person is shown; `--json` has more, and counts all."""
NOTHING_RUNS = "no indexer runs: `outcrop index` reads what is new"
NO_ANSWER = (
    "another outcrop process writes to the history; no indexer answers: `outcrop doctor` tells whether one hangs"
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", metavar="H", help="session search's own view, of this machine (local) or another")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON document")
    parser.add_argument(
        "--within",
        metavar="SECONDS",
        type=seconds,
        default=5.0,
        help="compare with the disk for so long (5; 0: not at all)",
    )


def run(args: Namespace) -> int:
    if args.host is not None:
        return _search_status(args.host, args.json)
    from outcrop.cli.context import crashes, load_config, running_indexer
    from outcrop.harnesses import Environment
    from outcrop.ingest.lock import is_held
    from outcrop.ingest.status import status
    from outcrop.store.embedded.database import open_for_reading

    config = load_config()
    connection = open_for_reading(config.home)
    try:
        found = status(connection, config, Environment.here(), args.within)
    finally:
        connection.close()
    found["indexer"] = running_indexer(config.home)
    found["writing"] = found["indexer"] is not None or is_held(config.home)
    found["crashes"] = crashes(config.home)
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
    print(_verdict(found, ink))
    print(
        f"{found['sessions']:,} sessions, {found['turns']:,} turns, {found['events']:,} events in"
        f" {_megabytes(sum(found['bytes'].values()))} ({_sizes(found)}; {_megabytes(found['bytes_free'])} free)"
    )
    if not found["complete"]:
        print("the first reading is not complete")
    if found["waiting_for_text_index"]:
        print(f"{found['waiting_for_text_index']:,} documents wait for the text index")
    if found["forgotten"]:
        print(f"{found['forgotten']:,} sessions forgotten")
    if found["erasure_pending"]:
        print("an erasure is not proven yet: the next `outcrop index` goes on with it")
    print(_indexer(found))
    if found["crashes"]:
        print(f"an indexer crashed {found['crashes']:,} times within the last hour; `outcrop doctor` tells more")
    for line in _sources(found):
        print(f"  {line}")
    for line in _problems(found):
        print(f"  {line}")
    if found["masked"]:
        print("  masked: " + ", ".join(f"{rule} {n:,}" for rule, n in found["masked"].items()))
    print(f"  data: {output.clean(found['home'])}")


def _verdict(found: dict[str, Any], ink: output.Ink) -> str:
    """Whether it is current; the word stands only where the comparison has just proved it."""
    disk = found["disk"]
    files = f"{disk['files']:,} file{'' if disk['files'] == 1 else 's'} on disk"
    if disk["state"] == "current":
        return f"{ink.bold('current')}: all that the {files} hold is indexed"
    parts = []
    if disk["pending"]:
        behind = f", for {_span(disk['lag_ms'])}" if disk["lag_ms"] >= 1000 else ""
        parts.append(f"{disk['pending']:,} of {files} not read yet{behind}")
    if disk["gone"]:
        parts.append(f"{disk['gone']:,} gone since they were read")
    if found["waiting_for_text_index"] or not found["searchable"]:
        parts.append("the text index is not complete" if found["searchable"] else "the text index cannot be searched")
    if disk["failed"]:
        parts.append(f"{disk['failed']:,} cannot be read")
    degraded = [source["source"] for source in disk["sources"] if source["degraded"]]
    if degraded:
        parts.append(f"folders of {', '.join(degraded)} cannot be listed")
    if disk["not_checked"]:
        parts.append(f"not checked: {_names(disk['not_checked'])}")
    return f"{ink.bold(disk['state'])}: {'; '.join(parts).removeprefix('not checked: ')}"


def _sources(found: dict[str, Any]) -> Iterator[str]:
    stored = {source["source"]: source for source in found["sources"]}
    compared = {source["source"]: source for source in found["disk"]["sources"]}
    for name in sorted({*stored, *compared}):
        has = stored.get(name, {"sessions": 0, "files": 0, "bytes": 0, "missing": 0, "failed": 0})
        now = compared.get(name)
        notes = [f"{has['sessions']:,} sessions", f"{has['files']:,} files", _megabytes(has["bytes"])]
        if has["missing"]:
            notes.append(f"{has['missing']:,} gone, kept here")
        if has["failed"]:
            notes.append(f"{has['failed']:,} not readable")
        if now is None:
            notes.append("disabled, not checked")
        elif now["state"] == "not checked":
            notes.append("not checked")
        elif now["state"] == "behind":
            waits = now["pending"]
            told = {"new": "new", "changed": "changed", "outdated": "to be read again", "gone": "gone since"}
            counts = [f"{waits[key]:,} {words}" for key, words in told.items() if waits[key]]
            notes.append(", ".join(counts))
        if now and now["newest_record"]:
            notes.append(f"newest record {output.moment(timestamp(now['newest_record']))}")
        yield f"{name}: {', '.join(notes)}"


def _problems(found: dict[str, Any]) -> Iterator[str]:
    """What is missing and why."""
    degraded = {each["root"]: each["reason"] for source in found["disk"]["sources"] for each in source["degraded"]}
    noted = {root["root"]: root["problem"] for root in found["roots"] if root["problem"]}
    for root, reason in ({**noted, **degraded} if found["disk"]["not_checked"] else degraded).items():
        yield f"cannot list {output.clean(root)}: {output.clean(reason)}"
    failed = {file["path"]: file["reason"] for file in found["files_with_problems"]}
    for source in found["disk"]["sources"]:
        failed |= {file["path"]: file["reason"] for file in source["failed"]["files"]}
    yield from _some([f"cannot read {output.clean(path)}: {reason}" for path, reason in failed.items()])
    yield from _some(
        [
            f"not ended yet: {output.clean(file['path'])}, {file['bytes']:,} bytes from byte {file['offset']}"
            for file in found["unfinished"]
        ]
    )
    aside = found["set_aside"]
    yield from _some(
        [
            f"set aside {output.clean(record['path'])} line {record['line']}, byte {record['offset']}:"
            f" {record['reason']}"
            for record in aside["records"]
        ],
        aside["count"],
        "records set aside",
    )
    yield from _some(
        [
            f"unknown to this version: {unknown['records']:,} x {output.clean(unknown['kind'])}"
            f" ({unknown['harness']} {output.clean(unknown['version'])}); kept whole"
            for unknown in found["unknown"]
        ]
    )


def _some(lines: list[str], count: int | None = None, what: str = "of these") -> Iterator[str]:
    yield from lines[:SHOWN]
    rest = (len(lines) if count is None else count) - len(lines[:SHOWN])
    if rest > 0:
        yield f"and {rest:,} more {what}"


def _indexer(found: dict[str, Any]) -> str:
    told = found["indexer"]
    if told is None:
        last = f"; last read {output.moment(timestamp(found['last_pass']))}" if found["last_pass"] else ""
        return (NO_ANSWER if found["writing"] else NOTHING_RUNS) + last
    parts = [f"indexer {told.get('pid')}: {told.get('phase')}, watching by {told.get('watching')}"]
    if told.get("memory_bytes") is not None:
        parts.append(_megabytes(told["memory_bytes"]) + " of memory")
    if told.get("cpu_seconds") is not None:
        parts.append(f"{told['cpu_seconds']:.1f} s of CPU")
    if told.get("files_due"):
        parts.append(f"{told['files_due']:,} files due")
    return ", ".join(parts)


def _sizes(found: dict[str, Any]) -> str:
    names = {"outcrop.db": "history", "text": "text index", "run": "run", "other": "other files"}
    parts = [f"{names[key]} {_megabytes(size)}" for key, size in found["bytes"].items() if size >= 100_000]
    if found["bytes_read"] >= 1_000_000:
        parts.append(f"{sum(found['bytes'].values()) / found['bytes_read']:.0%} of what was read")
    return ", ".join(parts) or "empty"


def _names(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")


def _megabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 10**10 else f"{size / 1e6:,.1f} MB"


def _span(ms: int) -> str:
    return output.ago(ms / 1000).removesuffix(" ago") if ms >= 60_000 else f"{ms // 1000} s"
