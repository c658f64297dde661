"""`outcrop search QUERY`: sessions that match, for people or as the response of the session search contract."""

from __future__ import annotations

import os
import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from outcrop.cli import context, jobs, output
from outcrop.cli.bounds import bound
from outcrop.contracts.vault import service
from outcrop.contracts.vault.exposure import Transport
from outcrop.contracts.vault.hosts import LOCAL, parse_host
from outcrop.contracts.vault.local import LocalService
from outcrop.contracts.vault.request import INDEXED, MOST_HITS, WAIT
from outcrop.contracts.vault.response import (
    DISABLED,
    NOT_READY,
    Hit,
    MalformedCursor,
    Response,
    Results,
    StaleCursor,
    Status,
    Unavailable,
)
from outcrop.errors import (
    EXIT_NOT_READY,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    InvalidRequest,
    OutcropError,
    StoreMissing,
)
from outcrop.search import places, plan
from outcrop.search.columns import ALL, CONVERSATION, SCOPES
from outcrop.search.found import RELEVANCE, SORTS, Route

if TYPE_CHECKING:
    from outcrop.store.embedded.read import EmbeddedStore

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MARKED = re.compile(r"\[\[(?!\s)((?:(?!\[\[|\]\]).)+?)(?<!\s)\]\]")
_TITLE = 96
"""Characters of a title, which may be a whole prompt."""
_RUNGS = {
    Route.PHRASE: "the words as a phrase",
    Route.AND: "all words in one session",
    Route.OR: "any of the words",
    Route.LOOSE: "nearly the same words",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "query", metavar="QUERY", nargs="+", help="words to find; repo:NAME and path:PART narrow to folders and files"
    )
    parser.add_argument("--scope", choices=SCOPES, default=ALL, help="conversation: prompts and answers alone (all)")
    parser.add_argument(
        "--agent", metavar="A", action="append", default=[], help="only sessions of this agent, such as claude"
    )
    parser.add_argument(
        "--path", metavar="P", action="append", default=[], help="only sessions that ran in this folder"
    )
    parser.add_argument("--since", metavar="T", help="only sessions used since a time, or for a span such as 2d or 3h")
    parser.add_argument("--sort", choices=SORTS, default=RELEVANCE, help="relevance or newest (relevance)")
    parser.add_argument("--limit", metavar="N", type=int, help=f"sessions on a page, 1 to {MOST_HITS} (20)")
    parser.add_argument("--cursor", metavar="C", help="go on where a page of the same search ended")
    parser.add_argument("--fresh", action="store_true", help="first read what is new, for at most five seconds")
    parser.add_argument("--host", metavar="H", help="the machine to ask, as `outcrop hosts` knows it (local)")
    parser.add_argument("--json", action="store_true", help="print the response of the contract")


def run(args: Namespace) -> int:
    host = parse_host(args.host)
    request = _request(args)
    if host != LOCAL:
        return _elsewhere(args, request)
    settings = context.load_config()
    jobs.attend(settings, patient=args.json or args.fresh)
    store = context.store(settings)
    catalog = context.catalog(settings, store)
    local = LocalService(store, catalog, lambda: jobs.reconcile(settings), settings.search)
    service.set_session_search_service(local)
    response = service.search_sessions(request, catalog.agents, Transport.IPC)
    if response == Unavailable(NOT_READY) and (error := _unusable(store)) is not None and not args.json:
        output.error(error.message, "`outcrop doctor` tells what is wrong, and what to do")
        return error.exit_code
    return _told(args, request, response, lambda: service.search_status({}, Transport.IPC))


def _unusable(store: EmbeddedStore) -> OutcropError | None:
    """What is wrong with a store that is there."""
    try:
        store.text.view(store.connection())
    except StoreMissing:
        return None
    except OutcropError as error:
        return error
    return None


def _elsewhere(args: Namespace, request: dict[str, Any]) -> int:
    """Ask another host, that one and no other."""
    from outcrop.cli import hosts
    from outcrop.contracts.vault import remote
    from outcrop.harnesses import all_agents

    host, peer = hosts.reached(args.host)
    try:
        response = remote.search_sessions(request, all_agents(), host, peer)
        return _told(args, request, response, lambda: remote.search_status(peer))
    finally:
        peer.close()


def _told(args: Namespace, request: dict[str, Any], response: Response, status: Callable[[], Status]) -> int:
    """Print a response; its exit code."""
    if args.json:
        output.json_line(response.wire())
    match response:
        case Results():
            if not args.json:
                _show(args, request, response, status())
            return EXIT_OK if response.hits else EXIT_NOTHING
        case StaleCursor():
            _complain(args, "the history changed since that page", "search again without --cursor")
            return EXIT_USAGE
        case MalformedCursor():
            _complain(args, "the cursor does not belong to this search", "search again without --cursor")
            return EXIT_USAGE
        case Unavailable(reason):
            if args.host is not None and parse_host(args.host) != LOCAL:
                _complain(args, f"{args.host} cannot be searched: {reason}", "`outcrop hosts test` asks how it is")
            elif reason == DISABLED:
                _complain(args, "session search is switched off", "set `enabled = true` in [search] of config.toml")
            else:
                _complain(args, "nothing can be searched yet", "`outcrop index` reads the agents' session files")
            return EXIT_NOT_READY


def _complain(args: Namespace, message: str, hint: str) -> None:
    if not args.json:
        output.error(message, hint)


def _request(args: Namespace) -> dict[str, Any]:
    if args.limit is not None and not 1 <= args.limit <= MOST_HITS:
        raise InvalidRequest(f"--limit must be from 1 to {MOST_HITS}", "limit")
    filters: dict[str, Any] = {"sort": args.sort, "agents": args.agent}
    absolute = _absolute if parse_host(args.host) == LOCAL else _elsewhere_absolute
    filters["scopePaths"] = [absolute(path) for path in args.path]
    if args.since is not None:
        if _DATE.fullmatch(args.since.strip()):
            raise InvalidRequest("--since: a date needs a time, such as T00:00, to be a moment")
        filters["since"] = bound("--since", args.since, datetime.now(UTC))
    request: dict[str, Any] = {
        "query": " ".join(args.query),
        "scope": args.scope,
        "freshness": WAIT if args.fresh else INDEXED,
        "filters": filters,
        "debug": bool(args.debug or not args.json),
    }
    if args.limit is not None:
        request["limit"] = args.limit
    if args.cursor is not None:
        request["cursor"] = args.cursor
    return request


def _absolute(path: str) -> str:
    """Paths of another system stay as they are; others are taken from here."""
    return path if not path or places.key(path) is not None else os.path.abspath(os.path.expanduser(path))


def _elsewhere_absolute(path: str) -> str:
    """Paths are those of the host that is asked; what they would be relative to is a folder of this machine."""
    if path and places.key(path) is None:
        raise InvalidRequest(f"--path: {path!r} is relative; beside --host give the whole path over there", "path")
    return path


def _show(args: Namespace, request: dict[str, Any], found: Results, status: Status) -> None:
    if status.phase == "indexing":
        _tell("warning: the history is still being read; there may be more")
    if found.truncated.freshness:
        _tell("warning: reading what is new takes longer than five seconds; this is what was known before")
    if found.truncated.query:
        _tell(f"warning: the query is longer than what is searched: {plan.MOST_CHARACTERS} characters, 48 words")
    if not found.hits:
        _tell_nothing(args, request["query"], status)
        return
    _tell_how(request["query"], found)
    ink = output.Ink(sys.stdout)
    for number, hit in enumerate(found.hits, 1):
        _show_hit(number, hit, ink)
    if found.truncated.candidates:
        _tell("warning: more sessions match than can be ranked; a rarer word finds the others")
    if found.cursor is not None:
        print(f"more: {_again(args, request, found.cursor)}")


def _show_hit(number: int, hit: Hit, ink: output.Ink) -> None:
    title = _line(hit.title)
    print(f"{number}. {ink.bold(title if len(title) <= _TITLE else title[: _TITLE - 1].rstrip() + '…')}")
    facts = [hit.agent]
    if hit.cwd:
        project = hit.cwd.replace("\\", "/").rstrip("/").rpartition("/")[2] or hit.cwd
        facts.append(f"{project} ({hit.branch})" if hit.branch else project)
    if hit.updated_at is not None:
        passed = datetime.now(UTC) - datetime.fromisoformat(hit.updated_at)
        facts.append(output.ago(passed.total_seconds()))
    facts.append(f"{hit.message_count} message{'' if hit.message_count == 1 else 's'}")
    print(f"   {'  '.join(map(_line, facts))}")
    if hit.evidence is not None and hit.evidence.snippet:
        shown = _MARKED.sub(lambda match: ink.mark(match[1]), _line(hit.evidence.snippet))
        print(f"   {ink.dim(hit.evidence.role + ':')} {shown}")
    if hit.resume_command is not None:
        print(f"   {ink.dim(_line(hit.resume_command))}")
    else:
        state = "" if hit.source.presence == "present" else f" (its file: {hit.source.presence})"
        print(f"   {ink.dim(_line(hit.session_id) + state)}")


def _tell_how(query: str, found: Results) -> None:
    """Which rung found it, and what became of the words; operators alone have no rung."""
    asked, planned = plan.make(query)
    if found.debug is None or not asked.text:
        return
    route = Route(found.debug.route)
    plain = Route(route.removeprefix("typo+"))
    told = f"found by {_RUNGS[plain]}"
    instead = found.debug.repaired_terms
    if instead is not None and len(instead) == len(planned.terms):
        pairs = zip(planned.terms, instead, strict=True)
        told += "; " + ", ".join(f"{typed} → {other}" for typed, other in pairs if typed != other)
    elif instead is not None:
        told += f"; searched {', '.join(instead)}"
    if plain is Route.OR and (dropped := plan.left_out(asked, planned)):
        told += f"; left out: {', '.join(dropped)}"
    _tell(told)


def _tell_nothing(args: Namespace, query: str, status: Status) -> None:
    asked, planned = plan.make(query)
    if not (planned.terms or planned.units or asked.narrows):
        _tell("the query holds nothing that can be looked for: no word, and no folder after repo: or path:")
        return
    where = "prompts and answers" if args.scope == CONVERSATION else "prompts, answers, tool text and titles"
    told = f"nothing found in the {where} of {status.files_indexed:,} session files"
    if args.agent:
        told += f" of {', '.join(args.agent)}"
    if args.path:
        told += f", in {', '.join(args.path)}"
    if args.since:
        told += f", since {args.since}"
    _tell(told)
    if status.last_reconcile_at is not None:
        passed = datetime.now(UTC).timestamp() - status.last_reconcile_at / 1000
        _tell(f"they were last read {output.ago(passed)}; --fresh reads what is new")
    for root in status.degraded_roots:
        _tell(f"warning: {root.root}: {root.reason}")


def _tell(text: str) -> None:
    print(output.clean(f"outcrop: {text}"), file=sys.stderr)


def _line(text: str) -> str:
    return output.clean(" ".join(text.split()))


def _again(args: Namespace, request: dict[str, Any], cursor: str) -> str:
    """The command for the next page; a span counts back from now, so the moment is written out."""
    words = ["outcrop", "search", "--cursor", cursor]
    if args.host is not None:
        words += ["--host", args.host]
    if args.scope != ALL:
        words += ["--scope", args.scope]
    if args.sort != RELEVANCE:
        words += ["--sort", args.sort]
    if args.limit is not None:
        words += ["--limit", str(args.limit)]
    if args.since is not None:
        words += ["--since", request["filters"]["since"]]
    for agent in args.agent:
        words += ["--agent", agent]
    for path in request["filters"]["scopePaths"]:
        words += ["--path", path]
    return output.clean(shlex.join([*words, "--", *args.query]))
