"""`outcrop resume ID`: go on with a session, with its own command, in the directory that it started in."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass

from outcrop.cli import context, jobs, naming, output
from outcrop.contracts.catalog import Resume
from outcrop.contracts.vault.resume import shell_line
from outcrop.errors import EXIT_IO, EXIT_NOTHING, EXIT_OK
from outcrop.store.embedded import cards
from outcrop.store.embedded.cards import Card, Home, Presence


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help="a session id from a search: its own, the beginning of it, or session:…"
    )
    parser.add_argument("--in", dest="folder", metavar="DIR", help="run it in this directory instead of its own")
    parser.add_argument("--print", dest="show", action="store_true", help="only show the command")


@dataclass(slots=True, frozen=True)
class _Session:
    card: Card
    home: Home
    presence: Presence
    resume: Resume | None


def run(args: Namespace) -> int:
    settings = context.load_config()
    jobs.attend(settings, patient=False)
    store = context.store(settings)
    with store.snapshot():
        db = store.connection()
        found = naming.sessions(db, args.id)
        if not naming.is_one(args.id, found, "`outcrop search` shows the ids of sessions"):
            return EXIT_NOTHING
        card = found[0]
        origin = cards.origins(db, [card.id])[card.id]
        home = cards.home(db, card.id)
    catalog = context.catalog(settings)
    session = _Session(card, home, origin.presence, catalog.resume(card.harness, card.source, card.native, origin.path))
    store.close()
    return _resume(session, args.folder, args.show)


def _resume(session: _Session, folder: str | None, show: bool) -> int:
    resume = session.resume
    if resume is None:
        output.error(f"{session.card.harness} cannot be told to go on with this session")
        return EXIT_NOTHING
    if session.presence is not Presence.PRESENT:
        output.error(
            f"the file of this session is {session.presence}, so that its agent cannot go on with it",
            "`outcrop open` shows what is kept of it",
        )
        return EXIT_NOTHING
    cwd = os.path.abspath(folder) if folder is not None else session.home.cwd
    if show:
        line = shell_line(resume, cwd)
        print(output.clean(line if line is not None else shlex.join(resume.argv)))
    if cwd is not None and not os.path.isdir(cwd):
        _offer(session, cwd)
        return EXIT_OK if show else EXIT_NOTHING
    return EXIT_OK if show else _run(resume, cwd)


def _offer(session: _Session, cwd: str) -> None:
    """What can be done about a directory that is gone."""
    output.error(f"{cwd} is gone")
    home = session.home
    if home.worktree and home.common_dir and not os.path.isdir(home.worktree) and os.path.isdir(home.common_dir):
        words = ["git", f"--git-dir={home.common_dir}", "worktree", "add", home.worktree]
        print(f"hint: {output.clean(shlex.join([*words, *([home.branch] if home.branch else [])]))}", file=sys.stderr)
    parent = cwd
    while not os.path.isdir(parent) and parent != os.path.dirname(parent):
        parent = os.path.dirname(parent)
    again = ["outcrop", "resume", "--in", parent, session.card.native]
    print(f"hint: {output.clean(shlex.join(again))} goes on in what is left of its path", file=sys.stderr)


def _run(resume: Resume, cwd: str | None) -> int:
    """Become the command; where that cannot be, the exit code."""
    program = shutil.which(resume.argv[0])
    if program is None:
        output.error(f"{resume.argv[0]} is not installed here, or not on the PATH")
        return EXIT_IO
    environment = {**os.environ, **resume.variables}
    if cwd is not None:
        os.chdir(cwd)
        environment["PWD"] = cwd
    sys.stdout.flush()
    sys.stderr.flush()
    if sys.platform == "win32":  # there a process cannot become another one
        import subprocess

        return subprocess.call([program, *resume.argv[1:]], env=environment)
    return os.execve(program, list(resume.argv), environment)
