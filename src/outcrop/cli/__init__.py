"""The command line: a table of verbs, each in a module of its own that is imported when it runs.

A verb's module has `add_arguments(parser)` and `run(args) -> int`. Results go to stdout, everything else to stderr;
exit codes are those of `outcrop.errors`. `--version` and `--help` import no verb.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from outcrop import __version__
from outcrop.errors import EXIT_INTERRUPTED, EXIT_IO, EXIT_OK, EXIT_USAGE, OutcropError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

VERBS: dict[str, tuple[str, str]] = {
    "index": ("outcrop.cli.index", "read what is new in the agents' session files"),
    "search": ("outcrop.cli.search", "find sessions, each with what matched and how to resume it"),
    "resume": ("outcrop.cli.resume", "go on with a session where it ran"),
    "watch": ("outcrop.cli.watch", "stay and follow the agents' session files"),
    "events": ("outcrop.cli.events", "search for prompts, answers and other events"),
    "open": ("outcrop.cli.open", "show a session, a turn or an event"),
    "sessions": ("outcrop.cli.sessions", "list the sessions of a time range"),
    "touches": ("outcrop.cli.touches", "tell which sessions read or changed a file"),
    "call": ("outcrop.cli.call", "run one MCP tool and print its envelope"),
    "mcp": ("outcrop.cli.mcp", "serve the MCP tools on standard input and output"),
    "serve": ("outcrop.cli.serve", "serve session search and the MCP tools over HTTP, to paired clients"),
    "pair": ("outcrop.cli.pair", "give a client of `outcrop serve` its token, list the clients, take a token back"),
    "relay": ("outcrop.cli.relay", "serve session search on standard input and output, for another machine"),
    "hosts": ("outcrop.cli.hosts", "the other machines that can be asked: add, list, test, remove"),
    "status": ("outcrop.cli.status", "tell what is indexed, and what is missing"),
    "forget": ("outcrop.cli.forget", "erase sessions for good, and prove it"),
    "rescrub": ("outcrop.cli.rescrub", "mask what is stored with today's rules, and prove that the old text is gone"),
    "doctor": ("outcrop.cli.doctor", "check everything that can be wrong, and repair what can be repaired"),
    "explain": ("outcrop.cli.explain", "tell why a query does or does not find a session or an event"),
    "rebuild": ("outcrop.cli.rebuild", "build the text index anew from the history"),
}
"""Verb → its module and its help, in the order of the help page."""

QUERIES = {
    "search": "outcrop search -- beacon -timeout",
    "events": "outcrop events -- beacon -timeout",
    "explain": "outcrop explain ID -- beacon -timeout",
}
"""Verbs that take a query → how one is typed that holds a word with a hyphen before it."""

NESTED = ("hosts",)
"""Verbs that have verbs of their own."""

EXIT_CODES = (
    "exit codes: 0 done, 1 nothing found or a check failed, 2 usage, 3 store not ready, 4 input or output failed,"
    " 130 interrupted"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the value is the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = bool(os.environ.get("OUTCROP_DEBUG"))
    while words and words[0] == "--debug":
        debug = True
        words.pop(0)
    _utf8_output()
    try:
        if not words or words[0] in ("-h", "--help", "help"):
            print(_help(), flush=True)
            return EXIT_OK if words else EXIT_USAGE
        if words[0] in ("-V", "--version"):
            print(f"outcrop {__version__}", flush=True)
            return EXIT_OK
        code = _run(words[0], words[1:], debug)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # that reader has seen enough
            try:
                _report(str(error), debug)
            except OSError:
                pass  # it is the standard error that cannot be written
        _discard_output()
        return EXIT_OK if isinstance(error, BrokenPipeError) else EXIT_IO


def _run(verb: str, words: list[str], debug: bool) -> int:
    if verb not in VERBS:
        return _usage(f"unknown command: {verb}", _nearest(verb))
    import argparse
    from importlib import import_module

    module_name, help_line = VERBS[verb]
    parser = argparse.ArgumentParser(
        prog=f"outcrop {verb}", description=f"{help_line[:1].upper()}{help_line[1:]}.", epilog=EXIT_CODES
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    try:
        module = import_module(module_name)
        module.add_arguments(parser)
        try:
            args = parser.parse_args(words) if verb in NESTED else _mixed(parser, words)
        except SystemExit:
            if verb in QUERIES and any(_is_unknown(word, parser.format_help()) for word in words):
                print(f"hint: a query with words that begin with - stands behind --: {QUERIES[verb]}", file=sys.stderr)
            raise
        debug = debug or args.debug
        if debug:
            import logging

            logging.getLogger("outcrop").addHandler(logging.StreamHandler())
        code: int = module.run(args)
        return code
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OutcropError as error:
        _report(error.message, debug)
        return error.exit_code
    except OSError as error:
        _report(str(error), debug)
        return EXIT_IO
    except Exception as error:  # the outermost border: a person gets one line, --debug all of it
        _report(f"internal error: {type(error).__name__}: {error} (--debug shows where)", debug)
        return EXIT_IO


def _mixed(parser: ArgumentParser, words: list[str]) -> Namespace:
    """Options may stand anywhere before `--`. What is behind it is marked as no option: the parser loses `--` there."""
    mark = "\0"  # no word of a command line holds it
    end = words.index("--") if "--" in words else len(words)
    args = parser.parse_intermixed_args([*words[:end], *(mark + word for word in words[end + 1 :])])
    for name, value in vars(args).items():
        if isinstance(value, list):
            setattr(args, name, [word.removeprefix(mark) for word in value])
        elif isinstance(value, str):
            setattr(args, name, value.removeprefix(mark))
    return args


def _report(message: str, debug: bool) -> None:
    from outcrop.cli import output

    if debug:
        import traceback

        traceback.print_exc()
    output.error(message)


def _usage(message: str, hint: str) -> int:
    from outcrop.cli import output

    output.error(message, hint)
    return EXIT_USAGE


def _is_unknown(word: str, known: str) -> bool:
    """Whether a word looks like an option and is none of those that the help names."""
    return word.startswith("-") and len(word) > 2 and word.partition("=")[0] not in known


def _nearest(verb: str) -> str:
    import difflib

    near = difflib.get_close_matches(verb, VERBS, 1)
    return f"did you mean `outcrop {near[0]}`?" if near else "`outcrop --help` lists the commands"


def _help() -> str:
    width = max(map(len, VERBS))
    rows = "\n".join(f"  {verb:<{width}}  {text}" for verb, (_, text) in VERBS.items())
    return (
        "usage: outcrop [--version] [--debug] COMMAND ...\n\n"
        "The searchable memory of every coding agent on this machine.\n\n"
        f"commands:\n{rows}\n\n`outcrop COMMAND --help` tells more.\n{EXIT_CODES}"
    )


def _discard_output() -> None:
    """Whatever is still buffered must not fail once more at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(nowhere, stream.fileno())


def _utf8_output() -> None:
    """Stored text is Unicode whatever the locale says; what is no scalar comes out as an escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
