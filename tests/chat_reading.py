"""Sessions read by a harness alone, with cuts anywhere, and held to what their raw records say.

Shared by the tests of harnesses whose files are read record by record: lines, documents, and folders of one session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from facts import CORPUS, FOLDER, hashed
from harness_turns import Told, events_of, facts_of
from outcrop.harnesses import Form, Harness, SourceFile, jsonl
from outcrop.model import ENDS, TYPE_CODE, Event, EventType, Parsed

FIXTURES = Path(__file__).parent / "fixtures"
STATE_LIMIT = 16_000


class Beside:
    """Reads files beside a transcript, as the ingest does."""

    def text(self, path: str, inside: str, limit: int) -> str | None:
        where = Path(path)
        if not where.is_file() or not where.resolve().is_relative_to(Path(inside).resolve()):
            return None
        return where.read_bytes()[:limit].decode("utf-8", "replace")


def found(harness: Harness, root: Path, source: str | None = None) -> dict[str, SourceFile]:
    """What a harness discovers below a root, by the path from there."""
    files = harness.discover(source or harness.sources[0], root)
    return {Path(file.path).relative_to(root).as_posix(): file for file in files}


def rows_of(harness: Harness, file: SourceFile) -> tuple[str | None, list[dict[str, Any]]]:
    """Native id and records of a file, taken apart as the ingest takes it."""
    if file.form is Form.CONTAINER:
        container = harness.container(file)
        try:
            ((native, _),) = list(container.sessions())
            return native, list(container.records(native))
        finally:
            container.close()
    if file.form is Form.TEXT:
        return file.native, list(harness.records(file, Path(file.path).read_text(encoding="utf-8")))
    if file.form is Form.DOCUMENT:
        return file.native, list(harness.records(file, jsonl.document(Path(file.path).read_bytes())))
    with open(file.path, "rb") as stream:
        return file.native, [record for line in jsonl.lines(stream, 0) for record in jsonl.records(line.data)[0]]


def read(
    harness: Harness, file: SourceFile, rows: list[dict[str, Any]] | None = None, cuts: frozenset[int] = frozenset()
) -> list[Parsed]:
    """All records through the reader, which starts anew from its state at each cut."""
    native, own = rows_of(harness, file) if rows is None else (file.native, rows)
    file = SourceFile(file.path, file.source, file.form, file.role, native, file.parent)
    reader, parsed = harness.reader(file, None, Beside()), []
    for number, row in enumerate(own):
        if number in cuts:
            reader = harness.reader(file, json.loads(json.dumps(reader.state())), Beside())
        parsed.append(reader.feed(row))
        assert parsed[-1].items or parsed[-1].reason, row
        assert len(json.dumps(reader.state())) < STATE_LIMIT
    return parsed


def session_of(harness: Harness, file: SourceFile) -> str | None:
    native, rows = rows_of(harness, file)
    reader = harness.reader(
        SourceFile(file.path, file.source, file.form, file.role, native, file.parent), None, Beside()
    )
    for row in rows:
        reader.feed(row)
    return reader.session


def events(parsed: list[Parsed], *types: EventType) -> list[Event]:
    """Events as they stand in the end, of these types."""
    return [event for event in events_of(parsed) if not types or event.type in types]


def turns(parsed: list[Parsed]) -> list[Told]:
    """The turns of a session by their native ids; events before the first one belong to it."""
    made: dict[str, Told] = {}
    early: list[Event] = []
    for event in events_of(parsed):
        if event.turn is None and not made:
            early.append(event)
            continue
        turn = made.setdefault(event.turn or next(reversed(made)), Told())
        for one in (*early, event):
            _add(turn, one)
        early = []
    return list(made.values())


def _add(turn: Told, event: Event) -> None:
    turn.events.append(event)
    flags = (512 if event.partial else 0) | (32 if event.superseded else 0)
    ends = ENDS.index(event.ends) + 1 if event.ends is not None else 0
    turn.fold.add(len(turn.events), TYPE_CODE[event.type], event.time or 0, flags, ends, None)


def known_facts(harness: str) -> list[dict[str, Any]]:
    """The fact files of a harness, those of the corpus only where it is at hand."""
    facts = []
    for path in sorted((FOLDER / harness).glob("*.json")):
        one = json.loads(path.read_text(encoding="utf-8"))
        if CORPUS.is_dir() or not one["corpus"]:
            facts.append({**one, "name": path.stem})
    return facts


def hold(harness: Harness, one: dict[str, Any]) -> None:
    """Hold a session to its facts: turns with their places, prompts, tools and ends; times, parent and title."""
    root = CORPUS if one["corpus"] else FIXTURES
    path = root / one["file"]
    file = next(file for file in _below(harness, path.parent) if Path(file.path) in (path, path.parent))
    parsed = read(harness, file)
    assert session_of(harness, file) == one["session"]
    assert len(parsed) == one["records"]
    opening = [n for n, p in enumerate(parsed, 1) if any(isinstance(item, Event) and item.opens for item in p.items)]
    assert opening == [turn["line"] for turn in one["turns"]]
    made = turns(parsed)
    assert len(made) == max(1, len(one["turns"]))
    for turn, want in zip(made, one["turns"], strict=bool(one["turns"])):
        place = f"turn that opens on line {want['line']}"
        said = [event.text for event in turn.events if event.type is EventType.USER_INPUT]
        assert [hashed(text) for text in said] == [want["prompt"], *want["steers"]], place
        tools = turn.tools
        assert (tools if isinstance(want["tools"], list) else _counted(tools)) == want["tools"], place
        assert turn.ends == want["ends"], place
        assert hashed(turn.final.text if turn.final else None) == want["final"], place
    times = [event.time for event in events(parsed) if event.time is not None]
    assert [min(times, default=None), max(times, default=None)] == [one["first_time"], one["last_time"]]
    facts = facts_of(parsed)
    title = facts.get("title.user") or facts.get("title.generated") or facts.get("title.summary")
    assert (facts.get("parent"), facts.get("relation"), title) == (one["parent"], one["relation"], one["title"])


def _below(harness: Harness, folder: Path) -> Iterator[SourceFile]:
    """What is discovered below the nearest folder that a harness takes for a root."""
    for top in (folder, *folder.parents[:5]):
        if top in (CORPUS, FIXTURES):
            return
        yield from harness.discover(harness.sources[0], top)


def _counted(tools: list[str]) -> dict[str, Any]:
    return {"count": len(tools), "names": hashed(" ".join(tools))}
