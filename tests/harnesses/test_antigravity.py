"""Antigravity's transcripts: invented ones, and those of the corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, Harness, Reader, SourceFile
from outcrop.harnesses.antigravity import COMMAND_LINE, EDITOR, HARNESS, StepReader
from outcrop.model import Amend, Event, EventType, Parsed
from reading import events_of, fed, scalars, turns_of, values

TESTS = Path(__file__).parent.parent
DATA = TESTS / "fixtures" / "antigravity" / "gemini"
WHOLE, SHORT = "a9100000-0000-4000-8000-000000000001", "a9100000-0000-4000-8000-000000000002"
FACTS = [
    {"name": path.stem, **json.loads(path.read_text(encoding="utf-8"))}
    for path in sorted((Path(__file__).parent / "facts" / "antigravity").glob("*.json"))
]
NO_TRANSCRIPT = {"small.md": "an artifact of an agent"}


class Beside:
    def text(self, path: str, inside: str, limit: int) -> str | None:
        found = Path(path)
        assert found.resolve().is_relative_to(Path(inside).resolve())
        return found.read_text(encoding="utf-8") if found.exists() else None


def source(native: str) -> SourceFile:
    files = [*HARNESS.discover(COMMAND_LINE, DATA / "antigravity-cli"), *HARNESS.discover(EDITOR, DATA / "antigravity")]
    return next(file for file in files if file.native == native)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def read(file: SourceFile, rows: list[dict[str, Any]], cuts: frozenset[int] = frozenset()) -> list[Parsed]:
    fold: Reader = HARNESS.reader(file, None, Beside())
    parsed = []
    for number, row in enumerate(rows):
        if number in cuts:
            fold = HARNESS.reader(file, json.loads(json.dumps(fold.state())), Beside())
        parsed.append(fold.feed(row))
        assert parsed[-1].items or parsed[-1].reason, row
    assert fold.session == file.native
    return parsed


ROWS = rows_of(Path(source(WHOLE).path))


def events(*types: EventType) -> list[Event]:
    return [event for event in events_of(read(source(WHOLE), ROWS)) if not types or event.type in types]


def test_it_is_a_harness() -> None:
    harness: Harness = HARNESS
    assert (harness.name, harness.agent, harness.sources) == ("antigravity", "antigravity", (EDITOR, COMMAND_LINE))
    assert harness.group(EDITOR) == harness.group(COMMAND_LINE)
    assert harness.resume_command("x", COMMAND_LINE) == ["agy", "--conversation", "x"]
    assert harness.resume_command("x", EDITOR) is None


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_roots_are_the_same_everywhere(platform: str) -> None:
    data = Path("/h/.gemini")
    here = Environment(Path("/h"), {}, platform)
    assert HARNESS.roots(EDITOR, here) == [data / "antigravity", data / "antigravity-ide"]
    assert HARNESS.roots(COMMAND_LINE, here) == [data / "antigravity-cli"]


def test_the_whole_transcript_is_read_where_there_is_one() -> None:
    (file,) = HARNESS.discover(COMMAND_LINE, DATA / "antigravity-cli")
    assert (Path(file.path).name, file.form, file.native) == ("transcript_full.jsonl", Form.LINES, WHOLE)
    (file,) = HARNESS.discover(EDITOR, DATA / "antigravity")
    assert (Path(file.path).name, file.native) == ("transcript.jsonl", SHORT)
    assert list(HARNESS.discover(EDITOR, DATA / "nowhere")) == []


def test_a_prompt_is_what_the_user_typed() -> None:
    first, second, third = events(EventType.USER_INPUT)
    assert (first.text, first.opens, second.text, third.text) == ("Paint the buoy", True, "Buy paint", "Borrow paint")
    assert first.extra is not None
    assert first.extra["context"].startswith("<ADDITIONAL_METADATA>")
    assert events(EventType.REASONING)[0].generator == "Tern 3.5 (High)"


def test_arguments_are_taken_out_of_their_quotes() -> None:
    view, run, write = events(EventType.TOOL_CALL)
    assert view.arguments == {"AbsolutePath": "/w/buoy/colours.md", "StartLine": "1"}
    assert (run.arguments["CommandLine"], run.cwd) == ("paint red", "/w/buoy/hull")
    assert (view.cwd, write.cwd) == ("/w/buoy", "/w/buoy")


def test_results_find_their_call_by_their_kind() -> None:
    run, view, write = events(EventType.TOOL_RESPONSE)
    calls = {call.key: call.tool for call in events(EventType.TOOL_CALL)}
    assert [calls[str(one.call_id)] for one in (run, view, write)] == ["run_command", "view_file", "write_to_file"]
    assert (write.tool, write.extra) == ("write_to_file", None)
    alone = {**ROWS[8], "step_index": 20}
    (event,) = events_of(read(source(SHORT), [alone]))
    assert (event.tool, event.call_id, event.extra) == ("code_action", None, {"paths": ["/w/buoy/list.md"]})


def test_a_step_that_is_written_again_is_the_same_event() -> None:
    parsed = read(source(WHOLE), ROWS)
    (amend,) = [item for one in parsed for item in one.items if isinstance(item, Amend)]
    run = events(EventType.TOOL_RESPONSE)[0]
    assert amend.key == run.key
    assert (run.exit_code, run.is_error) == (3, True)
    assert run.text.startswith("The command failed")


def test_a_number_that_goes_back_begins_another_branch() -> None:
    keys = [event.key for event in events(EventType.USER_INPUT)]
    assert keys == ["0:USER_INPUT", "10:USER_INPUT", "1:10:USER_INPUT"]


def test_marks_context_and_unknown_steps() -> None:
    parsed = read(source(WHOLE), ROWS)
    assert parsed[1].reason == "a mark without content"
    assert [event.text for event in events(EventType.SYSTEM)] == ["Remember the task."]
    assert [event.text for event in events(EventType.COMPACTION)] == ["# What happened\nNo paint."]
    assert [event.raw for event in events(EventType.UNKNOWN)] == [ROWS[-1]]


def test_what_was_cut_is_noted() -> None:
    _, answer = events_of(read(source(SHORT), rows_of(Path(source(SHORT).path))))
    assert answer.extra == {"truncated_fields": ["content"]}
    assert answer.cwd is None


@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_lines_say(told: dict[str, Any]) -> None:
    path = (TESTS if told["file"].startswith("fixtures") else CORPUS) / told["file"]
    if not path.exists():
        pytest.skip("OUTCROP_CORPUS does not name the corpus")
    parsed = read(SourceFile(str(path), EDITOR, native=told["session"]), rows_of(path))
    assert len(parsed) == told["records"]
    found = events_of(parsed)
    turns = turns_of(found)
    for turn, want in zip(turns, told["turns"], strict=True):
        assert (hashed(turn.prompt), turn.ends, turn.tools) == (want["prompt"], want["ends"], want["tools"])
        assert hashed(turn.final.text if turn.final else None) == (want["final"] and want["final"]["text"])
    opening = [n for n, one in enumerate(parsed, 1) if any(getattr(item, "opens", False) for item in one.items)]
    assert opening == [turn["line"] for turn in told["turns"]]
    times = [event.time for event in found if event.time is not None]
    assert (min(times), max(times)) == (told["first_time"], told["last_time"])


@needs_corpus
def test_every_file_of_the_corpus_is_read_or_is_no_transcript() -> None:
    for path in sorted((CORPUS / "antigravity").rglob("*")):
        if path.is_file() and path.name not in NO_TRANSCRIPT:
            for one in read(SourceFile(str(path), EDITOR, native=path.stem), rows_of(path)):
                assert not any(getattr(item, "type", None) is EventType.UNKNOWN for item in one.items)


@given(st.sets(st.integers(0, len(ROWS))))
def test_reading_cut_anywhere_gives_the_same_items(cuts: set[int]) -> None:
    assert read(source(WHOLE), ROWS, frozenset(cuts)) == read(source(WHOLE), ROWS)


VALUE = values(["name", "args", "Cwd"], scalars(), 6)
RECORD = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["USER_INPUT", "PLANNER_RESPONSE", "RUN_COMMAND", "GENERIC", "CHECKPOINT"]) | VALUE,
        "source": st.sampled_from(["MODEL", "SYSTEM", "USER_EXPLICIT"]) | VALUE,
        "status": st.sampled_from(["DONE", "RUNNING", "ERROR", "CANCELED"]) | VALUE,
        "step_index": st.integers(0, 3) | VALUE,
    },
    optional={"content": VALUE, "thinking": VALUE, "tool_calls": VALUE, "created_at": VALUE, "truncated_fields": VALUE},
)


@given(st.lists(RECORD, max_size=10))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]]) -> None:
    parsed = fed(StepReader("x", None, None), rows)
    keys = [item.key for one in parsed for item in one.items if isinstance(item, Event)]
    assert len(keys) == len(set(keys))
