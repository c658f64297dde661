"""`outcrop hosts`: the other machines that `outcrop search --host` may ask."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from outcrop.cli import context, output
from outcrop.contracts.vault import remote
from outcrop.contracts.vault.hosts import Host, HostKind, parse_host
from outcrop.errors import EXIT_IO, EXIT_NOT_READY, EXIT_NOTHING, EXIT_OK, InvalidRequest, OutcropError
from outcrop.servers.hosts import Hosts, Known, peer_of

if TYPE_CHECKING:
    from outcrop.contracts.vault.remote import Peer

_ID = "ssh:TARGET or runtime:NAME"


def add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="add|list|test|remove")
    add = verbs.add_parser("add", help="remember a host, or change how it is reached")
    add.add_argument("host", metavar="HOST", help=_ID)
    add.add_argument("--command", metavar="PATH", help="ssh: where `outcrop` lies over there, if not in its PATH")
    add.add_argument("--url", metavar="URL", help="runtime: where its `outcrop serve` is reached")
    add.add_argument("--token", metavar="T", help="runtime: its token (others can see a command line; better:)")
    add.add_argument("--token-stdin", action="store_true", help="runtime: read the token from standard input")
    listed = verbs.add_parser("list", help="the hosts that are known")
    test = verbs.add_parser("test", help="ask a host how far its index is")
    remove = verbs.add_parser("remove", help="forget a host, and its token")
    for one in (test, remove):
        one.add_argument("host", metavar="HOST", help=_ID)
    for one in (add, listed, test, remove):
        one.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: Namespace) -> int:
    hosts = Hosts(context.load_config().home)
    match args.verb:
        case "add":
            return _add(hosts, args)
        case "list":
            return _list(hosts.all(), args.json)
        case "test":
            return _test(hosts, _other(args.host), args.json)
        case _:
            return _remove(hosts, _other(args.host), args.json)


def reached(text: str) -> tuple[Host, Peer]:
    """Another host by its id, and the way to it. Raises InvalidRequest and Unreachable."""
    host = _other(text)
    return host, peer_of(Hosts(context.load_config().home), host)


def _other(text: str) -> Host:
    host = parse_host(text)
    if host.kind is HostKind.LOCAL:
        raise InvalidRequest(f"{text!r} is this machine; another is {_ID}", "host")
    return host


def _add(hosts: Hosts, args: Namespace) -> int:
    host = _other(args.host)
    if host.kind is HostKind.SSH:
        from outcrop.servers.ssh import command_line

        if args.url or args.token or args.token_stdin:
            raise InvalidRequest("an ssh host has no --url and no token", "host")
        command_line(host.name)
        hosts.add(Known(host, command=args.command))
    else:
        hosts.add(_runtime(host, args))
    if args.json:
        output.json_line({"host": host.id})
    return EXIT_OK


def _runtime(host: Host, args: Namespace) -> Known:
    from outcrop.servers import runtime

    if args.command:
        raise InvalidRequest("a runtime has no --command", "command")
    if not args.url:
        raise InvalidRequest("a runtime needs its --url", "url")
    if bool(args.token) == args.token_stdin:
        raise InvalidRequest("a runtime needs its token: --token-stdin, or --token", "token")
    url = runtime.checked_url(args.url)
    token = args.token or sys.stdin.readline().strip()
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        raise InvalidRequest("that is no token", "token")
    if runtime.is_open(url):
        print("outcrop: warning: without https others on the way can read the token and the answers", file=sys.stderr)
    return Known(host, url=url, token=token)


def _list(found: list[Known], as_json: bool) -> int:
    if as_json:
        output.json_line({"hosts": [_told(known) for known in found]})
    else:
        for known in found:
            print(output.clean("  ".join(filter(None, (known.host.id, known.url, known.command)))))
    return EXIT_OK if found else EXIT_NOTHING


def _told(known: Known) -> dict[str, Any]:
    told: dict[str, Any] = {"host": known.host.id}
    if known.url is not None:
        told["url"] = known.url
    if known.command is not None:
        told["command"] = known.command
    return told


def _test(hosts: Hosts, host: Host, as_json: bool) -> int:
    try:
        peer = peer_of(hosts, host)
        try:
            status = remote.search_status(peer)
        finally:
            peer.close()
    except InvalidRequest:
        raise
    except OutcropError as error:
        if as_json:
            output.json_line({"host": host.id, "ok": False, "error": error.message})
        else:
            output.error(error.message)
        return EXIT_IO
    if as_json:
        output.json_line({"host": host.id, "ok": status.enabled, "status": status.wire()})
    elif status.enabled:
        print(f"{output.clean(host.id)}: {status.phase}, {status.files_indexed:,} files")
    else:
        output.error(f"{host.id} has no session search")
    return EXIT_OK if status.enabled else EXIT_NOT_READY


def _remove(hosts: Hosts, host: Host, as_json: bool) -> int:
    gone = hosts.remove(host)
    if as_json:
        output.json_line({"host": host.id, "removed": gone})
    elif not gone:
        output.error(f"{host.id} is not known")
    return EXIT_OK if gone else EXIT_NOTHING
