"""Sessions read by a harness alone, with cuts anywhere, folded into turns, and held to what their raw records say.

Shared by the tests of all harnesses: lines, documents, folders of one session, and containers of many.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from facts import CORPUS, FOLDER, hashed
from outcrop.harnesses import Form, Harness, Reader, Side, SourceFile, jsonl
from outcrop.model import ENDS, TYPE_CODE, Amend, End, Event, EventType, Fact, Parsed
from outcrop.turns import TurnFold

FIXTURES = Path(__file__).parent / "fixtures"
STATE_LIMIT = 16_000
_FLAGS = {"partial": 512, "superseded": 32}


class NoSide:
    """Nothing stands beside a session."""

    def text(self, path: str, inside: str, limit: int) -> str | None:
        return None


class Beside:
    """Reads files beside a transcript, as the ingest does."""

    def text(self, path: str, inside: str, limit: int) -> str | None:
        where = Path(path)
        if not where.is_file() or not where.resolve().is_relative_to(Path(inside).resolve()):
            return None
        return where.read_bytes()[:limit].decode("utf-8", "replace")


@dataclass
class Told:
    """One turn: its events, its prompt's text, how it ended and with which answer."""

    events: list[Event] = field(default_factory=list)
    fold: TurnFold = field(default_factory=TurnFold)

    @property
    def prompt(self) -> str | None:
        return next((event.text for event in self.events if event.type is EventType.USER_INPUT), None)

    @property
    def ends(self) -> str | None:
        return ENDS[self.fold.ends - 1].value if self.fold.ends else None

    @property
    def final(self) -> Event | None:
        return self.events[self.fold.terminal - 1] if self.ends == "final" and self.fold.terminal else None

    @property
    def tools(self) -> list[str]:
        return [str(event.original_tool or event.tool) for event in self.events if event.type is EventType.TOOL_CALL]

    def add(self, event: Event) -> None:
        self.events.append(event)
        flags = sum(bit for name, bit in _FLAGS.items() if getattr(event, name))
        ends = ENDS.index(event.ends) + 1 if event.ends is not None else 0
        self.fold.add(len(self.events), TYPE_CODE[event.type], event.time or 0, flags, ends, None)


def events_of(parsed: Iterable[Parsed], session: str | None = None) -> list[Event]:
    """The events of a session as they stand in the end, with later amendments in them; keys are unique."""
    found: dict[str, Event] = {}
    for one in parsed:
        for item in one.items:
            if isinstance(item, Event) and item.session == session:
                assert item.key not in found, f"keys are unique: {item.key}"
                found[item.key] = item
            elif isinstance(item, Amend) and item.session == session:
                for name, value in item.changes.items():
                    old = getattr(found[item.key], name)
                    setattr(found[item.key], name, {**(old or {}), **value} if name == "extra" else value)
    return list(found.values())


def facts_of(parsed: Iterable[Parsed], session: str | None = None) -> dict[str, Any]:
    return {
        item.name: item.value
        for one in parsed
        for item in one.items
        if isinstance(item, Fact) and item.session == session
    }


def turns_of(events: list[Event]) -> list[Told]:
    """The turns of a session, cut at prompts the way the ingest cuts them."""
    turns: list[Told] = []
    for event in events:
        opened = event.opens and turns and turns[-1].fold.user_event is not None
        if opened and event.settles:
            turns[-1].fold.settle()
        if opened or not turns:
            turns.append(Told())
        turns[-1].add(event)
    return turns


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
    harness: Harness,
    file: SourceFile,
    rows: list[dict[str, Any]] | None = None,
    cuts: frozenset[int] = frozenset(),
    side: Side | None = None,
) -> list[Parsed]:
    """All records through the reader, which starts anew from its state at each cut."""
    return _read(harness, file, rows, cuts, side)[0]


def read_named(
    harness: Harness, file: SourceFile, rows: list[dict[str, Any]], cuts: frozenset[int] = frozenset()
) -> list[Parsed]:
    """The same of a file whose place names its session."""
    parsed, session = _read(harness, file, rows, cuts, None)
    assert session == file.native
    return parsed


def _read(
    harness: Harness,
    file: SourceFile,
    rows: list[dict[str, Any]] | None,
    cuts: frozenset[int],
    side: Side | None,
) -> tuple[list[Parsed], str | None]:
    native, own = rows_of(harness, file) if rows is None else (file.native, rows)
    file = SourceFile(file.path, file.source, file.form, file.role, native, file.parent)
    side = side or Beside()
    reader, parsed = harness.reader(file, None, side), []
    for number, row in enumerate(own):
        if number in cuts:
            reader = harness.reader(file, json.loads(json.dumps(reader.state())), side)
        parsed.append(reader.feed(row))
        assert parsed[-1].items or parsed[-1].reason, row
        assert len(json.dumps(reader.state())) < STATE_LIMIT
    return parsed, reader.session


def read_twice(harness: Harness, file: SourceFile, rows: list[dict[str, Any]]) -> list[Parsed]:
    """All records, the state put away after each, which must give what one uncut reading gives."""
    reader, whole, parsed = harness.reader(file, None, NoSide()), harness.reader(file, None, NoSide()), []
    for row in rows:
        parsed.append(reader.feed(row))
        assert repr(whole.feed(row)) == repr(parsed[-1])
        assert parsed[-1].items or parsed[-1].reason, row
        reader = harness.reader(file, json.loads(json.dumps(reader.state())), NoSide())
    return parsed


def listed(harness: Harness, place: SourceFile) -> dict[str, str]:
    """The sessions of a container by their native ids, with their fingerprints."""
    with closing(harness.container(place)) as container:
        return dict(container.sessions())


def records_of(harness: Harness, place: SourceFile, native: str) -> list[dict[str, Any]]:
    """The records of one session of a container."""
    with closing(harness.container(place)) as container:
        return list(container.records(native))


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
            turn.add(one)
        early = []
    return list(made.values())


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


def scalars(words: Sequence[str] = (), nan: bool = True) -> st.SearchStrategy[Any]:
    """Single values of any type, as JSON has them; some of the texts are `words`."""
    texts = st.text(max_size=5)
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=nan),
        texts | st.sampled_from(words) if words else texts,
    )


def values(
    names: Sequence[str] | st.SearchStrategy[str], leaf: st.SearchStrategy[Any], leaves: int = 8
) -> st.SearchStrategy[Any]:
    """Values of any shape: objects have fields of these names."""
    fields = names if isinstance(names, st.SearchStrategy) else st.sampled_from(names)
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=6), max_leaves=leaves
    )


def sound(parsed: Iterable[Parsed]) -> None:
    """Every record gave something or has a reason, and every event is one, whatever stood in the record."""
    for one in parsed:
        assert one.items or one.reason
        for item in one.items:
            if isinstance(item, Event):
                assert isinstance(item.key, str)
                assert isinstance(item.text, str)
                assert item.tool is None or isinstance(item.tool, str)
                assert item.time is None or isinstance(item.time, int)
                assert item.ends is None or isinstance(item.ends, End)
            elif isinstance(item, Fact):
                assert isinstance(item.name, str)


def fed(reader: Reader, rows: Iterable[dict[str, Any]]) -> list[Parsed]:
    """Records of any shape through a reader, which must take them all and have a state that JSON can hold."""
    parsed = []
    for row in rows:
        parsed.append(reader.feed(row))
        json.dumps(reader.state())
    sound(parsed)
    return parsed
