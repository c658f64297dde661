"""Aider's Markdown history, on an invented file and on the corpus."""

from __future__ import annotations

import json
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, Harness, SourceFile
from outcrop.harnesses.aider import HARNESS, HISTORY, AiderReader, local_time
from outcrop.model import Event, EventType, Parsed
from reading import NoSide, Told, events_of, facts_of, turns_of

TESTS = Path(__file__).parent.parent
FIXTURE = TESTS / "fixtures" / "aider" / HISTORY
FACTS = [
    {"name": path.stem, **json.loads(path.read_text(encoding="utf-8"))}
    for path in sorted((Path(__file__).parent / "facts" / "aider").glob("*.json"))
]


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "UTC-2")
    if hasattr(time, "tzset"):
        time.tzset()
    yield
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()


def source(path: Path) -> SourceFile:
    (file,) = HARNESS.discover("aider", path)
    return file


def read_all(path: Path) -> dict[str, list[Parsed]]:
    file = source(path)
    told = {}
    with closing(HARNESS.container(file)) as container:
        for native, _ in container.sessions():
            reader = HARNESS.reader(
                SourceFile(f"{file.path}#{native}", "aider", file.form, "session", native), None, NoSide()
            )
            told[native] = [reader.feed(record) for record in container.records(native)]
            assert reader.session == native
            assert all(one.items or one.reason for one in told[native])
    return told


def turns(path: Path) -> list[list[Told]]:
    return [turns_of(events_of(parsed)) for parsed in read_all(path).values()]


def test_it_is_a_harness() -> None:
    harness: Harness = HARNESS
    assert (harness.name, harness.agent, harness.sources) == ("aider", "aider", ("aider",))
    assert harness.resume_command("x") is None


def test_roots_are_what_the_variable_names() -> None:
    home = Path("/h")
    assert HARNESS.roots("aider", Environment(home)) == []
    assert HARNESS.roots("aider", Environment(home, {"AIDER_CHAT_HISTORY_FILE": "/n/log.md"})) == [Path("/n/log.md")]
    assert HARNESS.roots("aider", Environment(home, {"AIDER_CHAT_HISTORY_FILE": "~/log.md"})) == [home / "log.md"]
    assert HARNESS.roots("aider", Environment(home, {"AIDER_CHAT_HISTORY_FILE": "log.md"})) == []


def test_repositories_are_found_below_a_root(tmp_path: Path) -> None:
    for place in ("a", "b/c/d", "b/c/d/e", ".hidden/r", "node_modules/m"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / HISTORY).write_text("")
    found = [Path(file.path).parent.relative_to(tmp_path).as_posix() for file in HARNESS.discover("aider", tmp_path)]
    assert found == ["a", "b/c/d"]
    assert source(tmp_path / "a" / HISTORY).form is Form.CONTAINER
    assert list(HARNESS.discover("aider", tmp_path / "nowhere")) == []


def test_runs_are_sessions_where_something_was_typed() -> None:
    first, second = read_all(FIXTURE).values()
    assert facts_of(first) == {"version": "0.86.1"}
    assert facts_of(second) == {"version": "0.86.2"}
    (turn,) = turns_of(events_of(second))
    assert (turn.prompt, turn.ends, turn.final and turn.final.text) == ("/ask Why red?", "final", "Because it is seen.")


def test_markdown_in_an_answer_is_part_of_it() -> None:
    answer = turns(FIXTURE)[0][0].final
    assert answer is not None
    assert answer.text.splitlines()[2:5] == ["> this is a quotation", "", "#### A heading of the answer"]
    assert answer.generator == "gull/tern-3"


def test_edits_name_their_file() -> None:
    first = turns(FIXTURE)[0][0]
    (edit,) = [event for event in first.events if event.type is EventType.TOOL_RESPONSE]
    assert (edit.tool, edit.extra, edit.exit_code) == ("edit", {"paths": ["src/buoy.py"]}, None)
    assert first.ends == "final"
    usage = next(event for event in first.events if event.type is EventType.RUNTIME)
    assert usage.text.endswith("\nCost: $0.01 message, $0.01 session.")


def test_only_the_start_has_a_time_and_it_is_local() -> None:
    if hasattr(time, "tzset"):
        assert local_time("2026-03-01 10:00:00") == 1772352000000
    assert local_time("yesterday") is None
    head, *rest = events_of(next(iter(read_all(FIXTURE).values())))
    assert head.time == local_time("2026-03-01 10:00:00")
    assert all(event.time is None for event in rest)


def test_a_growing_file_keeps_its_sessions_and_changes_the_last_alone(tmp_path: Path) -> None:
    path = tmp_path / HISTORY
    path.write_bytes(FIXTURE.read_bytes())
    before, keys = marks(path), {n: [event.key for event in events_of(p)] for n, p in read_all(path).items()}
    with path.open("a") as stream:
        stream.write("\n#### and white?  \n")
    after = marks(path)
    assert list(after) == list(before)
    assert [native for native in after if after[native] != before[native]] == [list(after)[-1]]
    for native, parsed in read_all(path).items():
        assert [event.key for event in events_of(parsed)][: len(keys[native])] == keys[native]


def marks(path: Path) -> dict[str, str]:
    with closing(HARNESS.container(source(path))) as container:
        return dict(container.sessions())


def test_ids_do_not_depend_on_the_place_and_equal_runs_are_told_apart(tmp_path: Path) -> None:
    text = FIXTURE.read_text()
    for name, twice in (("x", False), ("y", True)):
        (tmp_path / name).mkdir()
        (tmp_path / name / HISTORY).write_text(text * (1 + twice))
    once, doubled = read_all(tmp_path / "x"), read_all(tmp_path / "y")
    assert list(once) == list(marks(FIXTURE))
    assert list(doubled) == [*once, *(f"{native}#2" for native in once)]
    assert {event.cwd for event in events_of(next(iter(once.values())))} == {str(tmp_path / "x")}


def test_a_file_whose_line_ends_were_trimmed_or_are_windows_ones(tmp_path: Path) -> None:
    for name, text in (
        ("crlf", FIXTURE.read_text().replace("\n", "\r\n")),
        ("trimmed", "\n".join(line.rstrip() for line in FIXTURE.read_text().split("\n"))),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / HISTORY).write_bytes(text.encode())
        assert turns(tmp_path / name)[0][0].prompt == "Paint the buoy\nand the anchor"
    assert [turn.ends for turn in turns(tmp_path / "crlf")[0]] == [turn.ends for turn in turns(FIXTURE)[0]]


def file_of(told: dict[str, Any]) -> Path:
    return (TESTS if told["file"].startswith("fixtures") else CORPUS) / told["file"]


@needs_corpus
@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_lines_say(told: dict[str, Any]) -> None:
    path = file_of(told)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines[told["header"] - 1] == f"# aider chat started at {told['started']}"
    found = [
        run for run in turns(path) if [hashed(turn.prompt) for turn in run] == [t["prompt"] for t in told["turns"]]
    ]
    assert len(found) == 1
    assert found[0][0].events[0].time == local_time(told["started"])
    for turn, want in zip(found[0], told["turns"], strict=True):
        assert lines[want["line"] - 1].removeprefix("####").strip() == (turn.prompt or "").split("\n")[0].strip()
        assert (turn.ends, turn.tools) == (want["ends"], want["tools"])
        assert hashed(turn.final.text if turn.final else None) == want["final"]


@needs_corpus
def test_every_run_of_the_corpus_is_a_session_or_holds_no_prompt() -> None:
    for path in sorted((CORPUS / "aider").rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            runs = text.split("# aider chat started at ")[1:]
            assert len(read_all(path)) == sum("\n#### " in run for run in runs)
            typed = sum(turn.prompt is not None for run in turns(path) for turn in run)
            lines = text.split("\n")
            assert typed == sum(
                line.startswith("####") and not before.startswith("####") for before, line in pairwise(lines)
            )


@given(st.text(st.sampled_from("#> abT:^C\n\r  ")))
def test_any_text_is_read(text: str) -> None:
    from outcrop.harnesses.aider import _records, _runs

    for _, lines in _runs(text):
        reader, keys = AiderReader("x"), []
        for record in _records(lines):
            one = reader.feed(record)
            assert one.items or one.reason
            keys += [item.key for item in one.items if isinstance(item, Event)]
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize("record", [{}, {"kind": 1, "text": "x"}, {"kind": "user"}, {"kind": "user", "text": None}])
def test_wrong_shapes_are_kept_whole(record: dict[str, Any]) -> None:
    (event,) = AiderReader("x").feed(record).items
    assert isinstance(event, Event)
    assert (event.type, event.raw) == (EventType.UNKNOWN, record)
