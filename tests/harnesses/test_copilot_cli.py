"""The Copilot CLI's event logs: invented ones, and those of the corpus."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, Harness, Reader, SourceFile
from outcrop.harnesses.copilot_cli import HARNESS
from outcrop.harnesses.copilot_cli.reader import _HANDLERS, _NOISE, CopilotReader, spelled
from outcrop.harnesses.copilot_cli.workspace import note
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Parsed, Relation
from reading import NoSide, events_of, facts_of, fed, scalars, turns_of, values

TESTS = Path(__file__).parent.parent
HOME = TESTS / "fixtures" / "copilot-cli" / "home"
MAIN, OLD = "5e55104a-0000-4000-8000-00000000000a", "01d00000-0000-4000-8000-00000000000b"
CHILD = f"{MAIN}/toolu_00000000000000000003"
FACTS = [
    {"name": path.stem, **json.loads(path.read_text(encoding="utf-8"))}
    for path in sorted((Path(__file__).parent / "facts" / "copilot-cli").glob("*.json"))
]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def read(rows: list[dict[str, Any]], cuts: frozenset[int] = frozenset(), hint: str = MAIN) -> list[Parsed]:
    file = SourceFile("/h/events.jsonl", "copilot-cli", role="log", native=hint)
    fold: Reader = HARNESS.reader(file, None, NoSide())
    parsed = []
    for number, row in enumerate(rows):
        if number in cuts:
            fold = HARNESS.reader(file, json.loads(json.dumps(fold.state())), NoSide())
        parsed.append(fold.feed(row))
        assert parsed[-1].items or parsed[-1].reason, row
    return parsed


ROWS = rows_of(HOME / "session-state" / MAIN / "events.jsonl")


def main(*types: EventType) -> list[Event]:
    return [event for event in events_of(read(ROWS)) if not types or event.type in types]


def test_it_is_a_harness() -> None:
    harness: Harness = HARNESS
    assert (harness.name, harness.agent, harness.sources) == ("copilot-cli", "copilot", ("copilot-cli",))
    assert harness.resume_command(MAIN) == ["copilot", f"--resume={MAIN}"]
    assert harness.resume_command(CHILD) is None


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_root_is_the_same_everywhere_and_can_be_moved(platform: str) -> None:
    home = Path("/h")
    assert HARNESS.roots("copilot-cli", Environment(home, {}, platform)) == [home / ".copilot"]
    assert HARNESS.roots("copilot-cli", Environment(home, {"COPILOT_HOME": "/c"}, platform)) == [Path("/c")]


def test_both_layouts_and_the_notes_are_found(tmp_path: Path) -> None:
    found = [(file.native, file.role, file.form) for file in HARNESS.discover("copilot-cli", HOME)]
    assert found == [
        (OLD, "log", Form.LINES),
        (MAIN, "log", Form.LINES),
        (MAIN, "workspace", Form.TEXT),
        ("e0000000-0000-4000-8000-00000000000c", "workspace", Form.TEXT),
    ]
    shutil.copytree(HOME, tmp_path / "h")
    shutil.copy(tmp_path / "h" / "session-state" / f"{OLD}.jsonl", tmp_path / "h" / "session-state" / f"{MAIN}.jsonl")
    again = [file.native for file in HARNESS.discover("copilot-cli", tmp_path / "h") if file.role == "log"]
    assert again == [OLD, MAIN], "a session that has its own folder is read from there"
    assert list(HARNESS.discover("copilot-cli", tmp_path / "nowhere")) == []


def test_a_note_gives_the_title() -> None:
    titles = {}
    for file in HARNESS.discover("copilot-cli", HOME):
        if file.role == "workspace":
            (record,) = HARNESS.records(file, Path(file.path).read_text(encoding="utf-8"))
            reader = HARNESS.reader(file, None, NoSide())
            titles[reader.session] = facts_of([reader.feed(record)])
    assert titles == {
        MAIN: {"title.generated": "Paint: the buoy's coat"},
        "e0000000-0000-4000-8000-00000000000c": {"title.generated": "Sail\nnorth"},
    }
    named = HARNESS.reader(SourceFile("w", "copilot-cli", role="workspace", native=MAIN), None, NoSide())
    assert facts_of([named.feed({"name": "Mine", "user_named": "true"})]) == {"title.user": "Mine"}
    assert named.feed({"cwd": "/w"}).reason == "names no title"
    assert note('a: "x\\ty"\n# no\n b: 1\nc:\n') == {"a": "x\ty", "c": ""}


def test_a_prompt_while_the_model_works_belongs_to_the_turn() -> None:
    prompts = main(EventType.USER_INPUT)
    assert [(event.text, event.opens) for event in prompts] == [
        ("Paint the buoy", True),
        ("and the anchor", False),
        ("Now blue", True),
        ("Go on", True),
    ]
    assert prompts[0].extra is not None
    assert prompts[0].extra["attachments"] == ["/w/buoy/colours.md"]
    queued = {**ROWS[9], "data": {**ROWS[9]["data"], "delivery": "queued"}}
    assert [event.opens for event in events_of(read([*ROWS[:9], queued])) if event.type is EventType.USER_INPUT] == [
        True,
        True,
    ]


def test_what_the_program_says_for_the_user_is_no_prompt() -> None:
    (nudge,) = [event for event in main(EventType.SYSTEM) if event.text.startswith("Keep going")]
    assert nudge.opens is False
    skill = {**ROWS[4], "data": {"content": "How to paint", "source": "skill-paint"}}
    assert [event.type for event in events_of(read([ROWS[0], skill]))] == [EventType.SYSTEM, EventType.SYSTEM]


def test_calls_are_told_once_and_joined_to_their_results() -> None:
    calls = main(EventType.TOOL_CALL)
    assert [(call.tool, call.original_tool) for call in calls] == [
        ("bash", None),
        ("search_sessions", "mcp__outcrop__search_sessions"),
        ("task", None),
        ("task_complete", None),
        ("edit", None),
    ]
    assert calls[0].text == "Read the colours"
    assert calls[1].arguments == {"query": "buoy"}
    results = main(EventType.TOOL_RESPONSE)
    assert [(one.tool, one.call_id, one.exit_code, one.is_error) for one in results[:2]] == [
        ("bash", "toolu_00000000000000000001", 1, True),
        ("search_sessions", "toolu_00000000000000000002", None, True),
    ]
    assert results[0].extra == {"detailed": "no such file"}
    assert (results[1].text, results[1].extra) == ("nothing found", {"code": "denied"})
    assert (results[2].exit_code, results[2].is_error) == (None, False)


def test_mcp_tools_are_known_by_server_and_tool() -> None:
    assert spelled("outcrop-open", None, None) == ("open", "mcp__outcrop__open")
    assert spelled("o-open", "outcrop", "open") == ("open", "mcp__outcrop__open")
    assert spelled("github-mcp-server-open", "github-mcp-server", "open") == ("github-mcp-server-open", None)
    assert spelled(None, None, None) == (None, None)


def test_a_subagent_is_a_session_of_its_own() -> None:
    parsed = read(ROWS)
    assert facts_of(parsed, CHILD) == {"parent": MAIN, "relation": Relation.SUBAGENT, "agent": "explore"}
    (turn,) = turns_of(events_of(parsed, CHILD))
    assert (turn.prompt, turn.ends) == ("Find the paint", "final")
    assert turn.final is not None
    assert (turn.final.text, turn.final.model) == ("The paint is in the shed.", "tern-1")
    assert not any(event.text == "The paint is in the shed." for event in main())


def test_reasoning_is_told_once_and_ciphertext_is_kept_apart() -> None:
    first, second = main(EventType.REASONING)
    assert (first.text, first.extra) == (
        "Colours first.",
        {"encrypted_content": "c2VhbGVk", "usage": {"output_tokens": 40}},
    )
    assert (second.text, second.extra) == (ENCRYPTED_PLACEHOLDER, {"encrypted_content": "Z2c="})
    thought = {"type": "assistant.reasoning", "id": "r", "data": {"reasoningId": "x", "content": "Colours first."}}
    rows = [*ROWS[:6], thought, ROWS[6]]
    assert [event.text for event in events_of(read(rows)) if event.type is EventType.REASONING] == ["Colours first."]


def test_models_folders_and_branches_follow_the_log() -> None:
    events = main()
    assert {event.cwd for event in events} == {"/w/buoy"}
    assert [event.branch for event in events if event.type is EventType.USER_INPUT] == ["harbour"] * 3 + ["blue"]
    answer = next(event for event in events if event.type is EventType.ASSISTANT_RESPONSE)
    assert (answer.model, answer.generator) == ("gull-5", "gull-5")
    assert next(event for event in events if event.tool == "edit").generator == "gull-5"


def test_compaction_and_unknown_records_are_kept() -> None:
    (compaction,) = main(EventType.COMPACTION)
    assert compaction.text == "Painting a buoy."
    (unknown,) = main(EventType.UNKNOWN)
    assert unknown.raw == ROWS[-1]
    kept = [one.keep for one in read(ROWS) if one.keep is not None]
    assert kept == [{"totalNanoAiu": 7}]


def test_copied_history_shares_its_origin() -> None:
    for event in main():
        assert event.origin == (None, event.key)
    plain = [{**row, "id": "e1"} for row in ROWS[:6]]
    found = events_of(read(plain))
    assert len({event.key for event in found}) == len(found)
    assert all(event.origin is None for event in found)


@pytest.mark.parametrize(
    ("rows", "ends"),
    [
        ([{"type": "session.shutdown", "data": {"shutdownType": "routine"}}], End.EXITED),
        ([{"type": "session.shutdown", "data": {"shutdownType": "error", "errorReason": "x"}}], End.CRASHED),
        ([{"type": "abort", "data": {"reason": "remote command"}}], End.CANCELLED),
        ([{"type": "abort", "data": {"reason": "user_initiated"}}], End.INTERRUPTED),
        ([{"type": "session.error", "data": {"message": "x"}}, ROWS[6]], None),
        ([{"type": "assistant.message", "data": {"content": "", "toolRequests": []}}], End.STOPPED),
        ([{"type": "session.task_complete", "data": {"success": True}}], End.STOPPED),
    ],
)
def test_how_a_turn_ends(rows: list[dict[str, Any]], ends: End | None) -> None:
    (turn,) = turns_of(events_of(read([*ROWS[:6], *rows])))
    assert turn.ends == ends


@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_lines_say(told: dict[str, Any]) -> None:
    path = (TESTS if told["file"].startswith("fixtures") else CORPUS) / told["file"]
    if not path.exists():
        pytest.skip("OUTCROP_CORPUS does not name the corpus")
    parsed = read(rows_of(path), hint="hint")
    assert facts_of(parsed)["version"] == told["version"]
    assert len(parsed) == told["records"]
    events = events_of(parsed)
    turns = turns_of(events)
    assert [hashed(turn.prompt) for turn in turns] == [turn["prompt"] for turn in told["turns"]]
    for turn, want in zip(turns, told["turns"], strict=True):
        tools: Any = turn.tools
        if isinstance(want["tools"], dict):
            tools = {"count": len(turn.tools), "names": hashed(" ".join(turn.tools))}
        assert (turn.ends, tools) == (want["ends"], want["tools"])
        assert hashed(turn.final.text if turn.final else None) == (want["final"] and want["final"]["text"])
        steers = [hashed(event.text) for event in turn.events if event.type is EventType.USER_INPUT and not event.opens]
        assert steers == want.get("steers", [])
    opening = [
        n for n, one in enumerate(parsed, 1) for item in one.items if getattr(item, "opens", False) and not item.session
    ]
    assert opening == [turn["line"] for turn in told["turns"]]
    times = [event.time for event in events if event.time is not None]
    assert (min(times), max(times)) == (told["first_time"], told["last_time"])
    children = {item.session for one in parsed for item in one.items if item.session}
    assert len(children) == told["children"]


@needs_corpus
def test_every_record_of_the_corpus_is_known() -> None:
    for path in sorted((CORPUS / "copilot-cli").rglob("*")):
        if path.is_file():
            for one in read(rows_of(path), hint=path.stem):
                assert not any(getattr(item, "type", None) is EventType.UNKNOWN for item in one.items), one


@given(st.sets(st.integers(0, len(ROWS))))
def test_reading_cut_anywhere_gives_the_same_items(cuts: set[int]) -> None:
    assert read(ROWS, frozenset(cuts)) == read(ROWS)


# fmt: off
WORDS = (
    "sessionId", "content", "toolRequests", "toolCallId", "name", "arguments", "reasoningText", "reasoningOpaque",
    "result", "error", "message", "success", "context", "cwd", "branch", "attachments", "path", "source", "delivery",
    "parentToolCallId", "agentName", "model", "phase", "outputTokens", "summary", "reason", "shutdownType", "output",
    "mcpServerName", "mcpToolName", "startTime", "toolName", "title", "detailedContent", "prompt",
)
# fmt: on
LEAF = scalars(["task", MAIN])
VALUE = values(WORDS, LEAF)
RECORD = st.fixed_dictionaries(
    {"type": st.sampled_from([*_HANDLERS, *_NOISE, "odd"]) | LEAF, "data": VALUE},
    optional={"id": LEAF, "timestamp": LEAF, "agentId": LEAF},
)


@given(st.lists(RECORD, max_size=8))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]]) -> None:
    for before in ([], ROWS[:8]):
        fed(CopilotReader(MAIN, None), [*before, *rows])
