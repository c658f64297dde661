"""`outcrop forget`: erase sessions for good, and prove it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from outcrop.cli import erasing, output
from outcrop.errors import EXIT_NOTHING, EXIT_OK, EXIT_USAGE, ConfigError, InvalidRequest

if TYPE_CHECKING:
    from outcrop.config import Config
    from outcrop.ingest.forget import Chosen, Report, Selection
    from outcrop.store.embedded.cards import Card

LISTED = 20
"""Sessions that a person is shown before the question."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--session",
        metavar="ID",
        action="append",
        help="this session, by any id that `outcrop resume` takes; may be given several times",
    )
    parser.add_argument("--project", metavar="PATH", help="sessions that ran in this project")
    parser.add_argument("--source", metavar="S", help="sessions of this source")
    parser.add_argument("--before", metavar="DATE", help="sessions last updated before a time, a date or a span ago")
    parser.add_argument("--dry-run", action="store_true", help="only list what would be erased")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--undo", metavar="ID", nargs="+", help="let these (or: all) be read again by the next index")
    parser.add_argument("--list", action="store_true", help="list what was forgotten")
    parser.add_argument("--finish", action="store_true", help="finish an erasure whose proof is pending")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: Namespace) -> int:
    from outcrop.cli.context import load_config

    config = load_config()
    selection = _selection(config, args)
    if selection is None:
        return EXIT_NOTHING
    others = [args.undo is not None, args.list, args.finish]
    if sum((*others, not selection.empty)) != 1:
        output.error(
            "say what to forget: --session, --project, --source, --before, or several of them",
            "or one of --undo, --list, --finish",
        )
        return EXIT_USAGE
    if selection.empty and args.dry_run:
        output.error("--dry-run is about sessions to forget: --undo, --list and --finish have none")
        return EXIT_USAGE
    if args.undo is not None:
        return _undo(config, args)
    if args.list:
        return _list(config, args)
    if args.finish:
        return _finish(config, args)
    return _forget(config, args, selection)


def _selection(config: Config, args: Namespace) -> Selection | None:
    """What is to be forgotten; None where an id is not one session's, which is told."""
    from outcrop.cli import naming
    from outcrop.harnesses import all_sources
    from outcrop.ingest.forget import Selection

    before = None
    if args.before is not None:
        from outcrop.cli.bounds import bound

        moment = datetime.fromisoformat(bound("--before", args.before, datetime.now(UTC)))
        before = round(moment.timestamp() * 1000)
    if args.source is not None and args.source not in all_sources():
        raise ConfigError(f"unknown source: {args.source} (known: {', '.join(all_sources())})")
    if args.project is not None and not args.project.strip():
        # An unset variable of a script must not mean the directory where it happens to run.
        raise InvalidRequest("--project must not be empty", "project")
    project = None if args.project is None else os.path.abspath(os.path.expanduser(args.project))

    def named(text: str) -> list[Card]:
        with erasing.reading(config) as connection:
            return naming.sessions(connection, text)

    sessions = naming.uids(args.session or [], named, "`outcrop search` shows the ids of sessions")
    return None if sessions is None else Selection(tuple(sorted(sessions)), project, args.source, before)


def _forget(config: Config, args: Namespace, selection: Selection) -> int:
    from outcrop.ingest.forget import Selection, choose, forget

    if not args.dry_run and not args.yes and not sys.stdin.isatty():
        output.error("--yes is needed where nobody can be asked", "--dry-run lists what would be erased")
        return EXIT_USAGE
    with erasing.reading(config) as connection:
        chosen = choose(connection, selection)
    if not chosen or args.dry_run:
        return _show_chosen(chosen, args.json)
    if not args.yes and not _agreed(chosen):
        print("nothing was erased", file=sys.stderr)
        return EXIT_NOTHING
    agreed = Selection(tuple(session.uid for session in chosen))  # what came since was not asked about
    with erasing.writing(config) as (writer, text):
        report = forget(writer, text, agreed, erasing.step)
    if args.json:
        output.json_line(_report(report))
    else:
        _show(report)
    return erasing.exit_code(report.proof)


def _agreed(chosen: list[Chosen]) -> bool:
    _print_sessions(chosen, sys.stderr)
    print(f"Erase {_sessions(len(chosen))} for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show_chosen(chosen: list[Chosen], as_json: bool) -> int:
    if as_json:
        output.json_line({"sessions": [_session(session) for session in chosen]})
    elif chosen:
        _print_sessions(chosen, sys.stdout, len(chosen))
    else:
        print("no session fits", file=sys.stderr)
    return EXIT_OK if chosen else EXIT_NOTHING


def _print_sessions(chosen: list[Chosen], stream: Any, most: int = LISTED) -> None:
    for session in chosen[:most]:
        updated = output.moment(_wire(session.updated)) if session.updated else "no events"
        print(output.clean(session.label), file=stream)
        print(f"   {session.harness}  {updated}  {session.events:,} events  {_id(session.uid)}", file=stream)
    if len(chosen) > most:
        print(f"and {len(chosen) - most:,} more", file=stream)


def _report(report: Report) -> dict[str, Any]:
    return {
        "sessions": [_session(session) for session in report.sessions],
        "events": report.events,
        "copies": [{"session": _id(uid), "events": events} for uid, events in report.copies],
        "children": [_id(uid) for uid in report.children],
        "equal": [{"event": _id(event, "event"), "session": _id(session)} for event, session in report.equal],
        "equal_count": report.equal_count,
        "found_before": {"marks": report.marks_before, "words": report.words_before},
        "proof": erasing.proof_json(report.proof),
    }


def _show(report: Report) -> None:
    print(f"erased {_sessions(len(report.sessions))}, {report.events:,} events")
    for uid, events in report.copies:
        print(f"   {events:,} of them copies in {_id(uid)}, which stays")
    for uid in report.children:
        print(f"   not erased: {_id(uid)}, which came from one of them")
    if report.equal_count:
        print(f"   {report.equal_count:,} messages of other sessions say the same:")
        for event, _ in report.equal[:LISTED]:
            print(f"      {_id(event, 'event')}")
    erasing.show_proof(report.proof)


def _undo(config: Config, args: Namespace) -> int:
    from outcrop.cli import naming
    from outcrop.ingest.forget import undo

    with erasing.writing(config) as (writer, _):
        chosen: set[bytes] | None = set(writer.tombstones.uids)
        if args.undo != ["all"]:
            hint = "`outcrop forget --list` shows those that were forgotten"
            chosen = naming.uids(args.undo, lambda text: naming.forgotten(writer.db, text), hint)
        if chosen is None:
            return EXIT_NOTHING
        uids = sorted(chosen)
        undo(writer, uids)
    if args.json:
        output.json_line({"lifted": [_id(uid) for uid in uids]})
    else:
        print(f"{len(uids):,} lifted; the next `outcrop index` reads again what is still there")
    return EXIT_OK if uids else EXIT_NOTHING


def _list(config: Config, args: Namespace) -> int:
    from outcrop.store.embedded.tombstones import all_tombstones

    with erasing.reading(config) as connection:
        found = all_tombstones(connection)
    told = [
        {"id": _id(tomb.uid), "harness": tomb.harness, "source": tomb.source, "native": tomb.native,
         "forgotten_at": _wire(tomb.at)}
        for tomb in found
    ]  # fmt: skip
    if args.json:
        output.json_line({"forgotten": told})
    else:
        for tomb in told:
            print(
                f"{tomb['id']}  {tomb['source']}  {output.clean(tomb['native'])}  {output.moment(tomb['forgotten_at'])}"
            )
    return EXIT_OK if told else EXIT_NOTHING


def _finish(config: Config, args: Namespace) -> int:
    from outcrop.ingest.purge import finish_purge

    with erasing.writing(config) as (writer, text):
        proof = finish_purge(writer, text, erasing.step, insist=True)
    if args.json:
        output.json_line({"proof": erasing.proof_json(proof)})
    elif proof is None:
        print("no erasure is waiting for its proof")
    else:
        erasing.show_proof(proof)
    return erasing.exit_code(proof)


def _session(session: Chosen) -> dict[str, Any]:
    return {
        "id": _id(session.uid),
        "harness": session.harness,
        "source": session.source,
        "native": session.native,
        "label": session.label,
        "updated_at": _wire(session.updated) if session.updated else None,
        "events": session.events,
    }


def _sessions(count: int) -> str:
    return f"{count:,} session{'' if count == 1 else 's'}"


def _id(uid: bytes, kind: str = "session") -> str:
    from outcrop.ids import Kind, write

    return write(Kind(kind), uid)


def _wire(milliseconds: int) -> str:
    from outcrop.contracts.moments import timestamp

    return timestamp(milliseconds)
