"""Aider (`aider`, agent tag `aider`): the Markdown history that a repository keeps, one session a run of the program.

The file is a log for people: prompts are `#### ` lines, what the program says are `> ` lines, the rest is the model's.
Aider ends the lines of both kinds with two spaces, which tells them from Markdown in an answer. A run has no id: it is
named by its start and by what was typed first in it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.harnesses import Container, Environment, Form, Harness, Reader, Side, SourceFile, unlisted
from outcrop.harnesses.moments import clock_ms
from outcrop.ids import text_digest
from outcrop.model import End, Event, EventType, Fact, Item, Parsed

HISTORY = ".aider.chat.history.md"
DEPTH = 3
"""Folders below a configured root in which repositories are looked for."""

_HEADER = "# aider chat started at "
_SKIPPED = frozenset({"node_modules", "target", "build", "dist", "vendor", "venv", "__pycache__", "Library"})
_MODEL = re.compile(r"^(?:Main model|Model): (\S+)")
_VERSION = re.compile(r"^Aider v(\S+)$")
_EDIT = re.compile(r"^(?:Applied edit to|Creating empty file) (.+)$")
_USAGE, _COST = "Tokens: ", "Cost: "
_AGAIN, _EXIT = "^C again to exit", "^C KeyboardInterrupt"
_MARKS = (_USAGE, _AGAIN, _EXIT)


class Aider(Harness):
    """The `Harness` of Aider. Its roots are the folders in which people keep repositories."""

    name = "aider"
    title = "Aider"
    agent = "aider"
    sources: tuple[str, ...] = ("aider",)
    version = 1

    def roots(self, source: str, environment: Environment) -> list[Path]:
        """The file that `AIDER_CHAT_HISTORY_FILE` names, if it does: searching the whole home would cost too much."""
        named = environment.variables.get("AIDER_CHAT_HISTORY_FILE", "")
        if named.startswith(("~/", "~\\")):
            return [environment.home / named[2:]]
        return [Path(named)] if os.path.isabs(named) else []

    def discover(self, source: str, root: Path) -> Iterator[SourceFile]:
        """The root itself where it is a file; else the histories in it and in the folders below, hidden ones apart."""
        if root.is_file():
            yield SourceFile(str(root), source, Form.CONTAINER, "history")
            return
        if not root.is_dir():
            return
        for folder, folders, names in os.walk(root, onerror=unlisted):
            deep = len(Path(folder).relative_to(root).parts) >= DEPTH
            folders[:] = [] if deep else sorted(
                name for name in folders if not name.startswith(".") and name not in _SKIPPED
            )  # fmt: skip
            if HISTORY in names:
                yield SourceFile(os.path.join(folder, HISTORY), source, Form.CONTAINER, "history")

    def reader(self, file: SourceFile, state: dict[str, Any] | None, side: Side) -> Reader:
        return AiderReader(file.native)

    def container(self, file: SourceFile) -> Container:
        return History(file.path)


class History:
    """The `Container` of one history file. Records: `run`, `user`, `said`, `notice`, each with its `text`."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as stream:
            text = stream.read().decode("utf-8", "replace")
        # Another name may be anywhere; only the default one is known to lie in the repository.
        self._folder = os.path.dirname(os.path.abspath(path)) if os.path.basename(path) == HISTORY else None
        self._runs: dict[str, tuple[str, list[str]]] = {}
        named: Counter[str] = Counter()
        for started, lines in _runs(text):
            first = next((record["text"] for record in _records(lines) if record["kind"] == "user"), None)
            if first is None:
                continue
            name = f"{re.sub('[^0-9]', '', started) or 'start'}-{text_digest(first)}"
            named[name] += 1
            self._runs[name if named[name] == 1 else f"{name}#{named[name]}"] = (started, lines)

    def close(self) -> None:
        self._runs = {}

    def sessions(self) -> Iterator[tuple[str, str]]:
        """Runs in which something was typed."""
        for native, (_, lines) in self._runs.items():
            yield native, text_digest("\n".join(lines))

    def records(self, native: str) -> Iterator[dict[str, Any]]:
        if native in self._runs:
            started, lines = self._runs[native]
            yield {"kind": "run", "text": started, "folder": self._folder}
            yield from _records(lines)


class AiderReader:
    """The `Reader` of one run; always folded from its beginning."""

    def __init__(self, native: str | None) -> None:
        self._native = native
        self._cwd: str | None = None
        self._model: str | None = None
        self._turn = "head"
        self._active = self._ended = False
        self._counts: Counter[str] = Counter()

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        return {}

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind, text = record.get("kind"), record.get("text")
        if not isinstance(kind, str) or not isinstance(text, str):
            event = self._event(EventType.UNKNOWN, "")
            event.raw = record
            return Parsed("record", [event])
        if kind == "run":
            folder = record.get("folder")
            self._cwd = folder if isinstance(folder, str) else None
            event = self._event(EventType.SYSTEM, "aider chat started")
            event.time = local_time(text)
            return Parsed(kind, [event])
        if not text.strip():
            return Parsed(kind, reason="nothing but white space")
        if kind == "user":
            number = self._counts[f"prompt:{text}"] = self._counts[f"prompt:{text}"] + 1
            self._turn = f"{text_digest(text)}.{number}"
            self._active = self._ended = False
            event = self._event(EventType.USER_INPUT, text)
            event.opens = event.settles = True
            return Parsed(kind, [event])
        if kind == "said":
            self._active, self._ended = True, False
            event = self._event(EventType.ASSISTANT_RESPONSE, text)
            event.generator = self._model
            return Parsed(kind, [event])
        return Parsed("notice", self._notice(text))

    def _notice(self, text: str) -> list[Item]:
        found = _EDIT.match(text)
        if found:
            # The program takes edits out of an answer by itself: no tool was called, but something was done.
            done = self._event(EventType.TOOL_RESPONSE, text)
            done.tool, done.is_error, done.generator = "edit", False, self._model
            done.extra = {"paths": [found[1].strip()]}
            return [done]
        items: list[Item] = []
        for line in text.split("\n"):
            if model := _MODEL.match(line):
                self._model = model[1]
            if version := _VERSION.match(line):
                items.append(Fact("version", version[1]))
        marked = next((mark for mark in _MARKS if text.startswith(mark)), None)
        event = self._event(EventType.RUNTIME if marked else EventType.SYSTEM, text)
        if marked == _USAGE and self._active:
            # Written when the model's message is complete.
            event.ends, self._ended = End.FINAL, True
        elif marked == _AGAIN and self._active and not self._ended:
            event.ends, self._ended = End.INTERRUPTED, True
        elif marked == _EXIT and not self._ended:
            event.ends, self._ended = End.EXITED, True
        return [*items, event]

    def _event(self, kind: EventType, text: str, meaning: str | None = None) -> Event:
        name = f"{self._turn}:{kind}:{text_digest(text if meaning is None else meaning)}"
        self._counts[name] += 1
        number = self._counts[name]
        return Event(name if number == 1 else f"{name}:{number}", kind, text, cwd=self._cwd)


def local_time(text: str) -> int | None:
    """UTC ms of a start, which Aider writes in the machine's zone without naming it."""
    return clock_ms(text.strip(), "%Y-%m-%d %H:%M:%S")


def _runs(text: str) -> Iterator[tuple[str, list[str]]]:
    """(start, lines) of each run; what stands before the first header is a run without a start."""
    started = ""
    lines: list[str] = []
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if line.startswith(_HEADER):
            yield started, lines
            started, lines = line.removeprefix(_HEADER).strip(), []
        else:
            lines.append(line)
    yield started, lines


def _records(lines: list[str]) -> Iterator[dict[str, Any]]:
    """The prompts, answers and notices of a run, in order."""
    kind, before = "", ""
    held: list[str] = []
    # A formatter may have taken the spaces at the ends of all lines; then any such line counts.
    strict = any(line.endswith("  ") for line in lines if line.startswith(("> ", "#### ")))
    alone = False
    for line in lines:
        found, text = _kind(line, before, kind, strict)
        marked = found == "notice" and (text.startswith(_MARKS) or _EDIT.match(text) is not None)
        # A report that is too long for the screen goes on with its costs on a line of its own.
        costs = found == "notice" and text.startswith(_COST) and bool(held) and held[-1].startswith(_USAGE)
        if held and not costs and (found != kind or (found == "notice" and (marked or alone))):
            yield {"kind": kind, "text": "\n".join(held).strip("\n")}
            held = []
        kind, alone, before = found, marked, line
        if kind:
            held.append(text)
    if held:
        yield {"kind": kind, "text": "\n".join(held).strip("\n")}


def _kind(line: str, before: str, kind: str, strict: bool) -> tuple[str, str]:
    """What a line is, and its words. A blank line goes on with an answer and ends everything else."""
    ended = not strict or line.endswith("  ")
    if line.startswith("####") and line[4:5] in ("", " ") and ended and (kind == "user" or not before.strip()):
        return "user", line[5:].rstrip()
    if (line.startswith("> ") and (ended or line.startswith("> " + _USAGE))) or line.rstrip() == ">":
        return "notice", line[2:].rstrip()
    if not line.strip():
        return ("said", "") if kind == "said" else ("", "")
    if kind == "notice" and ended and line.startswith(_COST):
        return "notice", line.rstrip()
    return "said", line


HARNESS: Harness = Aider()
