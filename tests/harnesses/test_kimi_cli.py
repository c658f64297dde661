"""The Kimi adapter on invented homes of both programs: what each record becomes, and cuts and shapes of every kind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, FOLDER, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.kimi_cli import HARNESS
from outcrop.model import ENCRYPTED_PLACEHOLDER, End, Event, EventType, Parsed, Relation
from reading import events_of, facts_of, read_named, scalars, sound, turns_of, values

HOMES = Path(__file__).parent.parent / "fixtures" / "kimi-cli"
WIRE, CODE = HOMES / "kimi", HOMES / "kimi-code"
FACTS = [{"name": path.stem, **json.loads(path.read_text("utf-8"))} for path in sorted((FOLDER / "kimi-cli").glob("*"))]
BOAT = "aaaaaaaa-0000-4000-8000-000000000001"
FORK = BOAT[:-1] + "2"
OLD = BOAT[:-1] + "3"
WINCH = "session_bbbbbbbb-0000-4000-8000-000000000001"
START = 1780300800125


def discovered(home: Path) -> list[SourceFile]:
    return list(HARNESS.discover("kimi-cli", home))


def file_of(native: str, role: str = "transcript") -> SourceFile:
    (file,) = [one for home in (WIRE, CODE) for one in discovered(home) if (one.native, one.role) == (native, role)]
    return file


def rows_of(file: SourceFile) -> list[dict[str, Any]]:
    text = Path(file.path).read_text("utf-8")
    if file.form is Form.DOCUMENT:
        return list(HARNESS.records(file, json.loads(text)))
    return [json.loads(line) for line in text.split("\n") if line]


def fold(file: SourceFile, rows: list[dict[str, Any]], cuts: frozenset[int] = frozenset()) -> list[Parsed]:
    return read_named(HARNESS, file, rows, cuts)


def read(native: str, role: str = "transcript") -> list[Parsed]:
    file = file_of(native, role)
    return fold(file, rows_of(file))


def by_text(parsed: list[Parsed], session: str | None = None) -> dict[str, Event]:
    return {event.text: event for event in events_of(parsed, session)}


def of_type(parsed: list[Parsed], kind: EventType, session: str | None = None) -> list[Event]:
    return [event for event in events_of(parsed, session) if event.type is kind]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_homes_obey_the_programs_own_variables(platform: str) -> None:
    home = Path("/home/gull")
    assert HARNESS.roots("kimi-cli", Environment(home, {}, platform)) == [home / ".kimi", home / ".kimi-code"]
    chosen = Environment(home, {"KIMI_SHARE_DIR": "/k", "KIMI_CODE_HOME": "/c"}, platform)
    assert HARNESS.roots("kimi-cli", chosen) == [Path("/k"), Path("/c")]


def test_discover_finds_sessions_agents_and_their_documents(tmp_path: Path) -> None:
    assert [(one.role, one.native, one.parent) for one in discovered(WIRE)] == [
        ("context", OLD, None),
        ("transcript", BOAT, None),
        ("state", BOAT, None),
        ("agent", f"{BOAT}/ag1", BOAT),
        ("agent-meta", f"{BOAT}/ag1", BOAT),
        ("transcript", FORK, None),
        ("state", FORK, None),
    ]
    assert [(one.role, one.native, one.parent) for one in discovered(CODE)] == [
        ("code-state", BOAT, None),
        ("code-imported", BOAT, None),
        ("code-state", WINCH, None),
        ("code-agent", f"{WINCH}/agent-0", WINCH),
        ("code", WINCH, None),
    ]
    assert discovered(tmp_path) == []
    assert HARNESS.resume_command(BOAT) == ["kimi", "--session", BOAT]
    assert HARNESS.resume_command(f"{BOAT}/ag1") is None


def test_a_wire_is_read_in_its_turns() -> None:
    parsed = read(BOAT)
    events = events_of(parsed)
    assert [(turn.prompt, turn.ends, turn.tools) for turn in turns_of(events)] == [
        ("Mend the sail\n[image image/png, 3 bytes]", "final", ["Shell"]),
        ("Ask a helper", "cancelled", ["Agent"]),
        ("/clear", "cancelled", ["WriteFile"]),
    ]
    assert turns_of(events)[0].final is by_text(parsed)["Sail and flag are mended."]
    assert {event.cwd for event in events} == {"/w/boat"}
    assert (events[0].time, events[1].time) == (START, START + 1000)
    assert not by_text(parsed)["and the flag"].opens
    assert [event.text for event in of_type(parsed, EventType.REASONING)] == [
        "Where is the needle?",
        ENCRYPTED_PLACEHOLDER,
    ]
    assert of_type(parsed, EventType.REASONING)[1].extra == {"encrypted_content": "c2VhbGVk"}
    response = by_text(parsed)["no such file"]
    assert (response.tool, response.exit_code, response.is_error, response.call_id) == ("Shell", 2, True, "Shell:0")
    assert response.extra == {"message": "Command failed with exit code: 2."}
    assert [one.keep for one in parsed if one.keep] == [
        {"display": [{"type": "diff", "path": "/w/boat/a", "old_text": "x", "new_text": "y"}]}
    ]
    usage = [event.extra for event in of_type(parsed, EventType.SYSTEM)]
    assert usage == [{"usage": {"input": 900, "cache_read": 8000, "cache_write": 0, "output": 40}, "message_id": "x1"}]
    assert len(of_type(parsed, EventType.COMPACTION)) == 1
    (unknown,) = of_type(parsed, EventType.UNKNOWN)
    assert unknown.raw["message"]["type"] == "Foghorn"
    aside = by_text(parsed)["Noon."]
    assert aside.partial
    assert aside.by_user
    assert by_text(parsed)["not so fast"].type is EventType.RUNTIME
    assert facts_of(parsed) == {"version": "wire 1.9"}


def test_T68_parts_of_arguments_make_one_call() -> None:
    first, _, last = of_type(read(BOAT), EventType.TOOL_CALL)
    assert (first.arguments, first.call_id) == ({"command": "ls {a}"}, "Shell:0")
    assert last.arguments == {"_raw": '{"path": "/w/boat/log.md", "con'}


def test_T69_an_agent_with_its_own_wire_is_counted_there() -> None:
    parsed = read(BOAT)
    assert events_of(parsed, f"{BOAT}/ag1") == []
    assert {one.reason for one in parsed if one.kind == "SubagentEvent/ContentPart"} == {
        "stands in the agent's own wire"
    }
    told = read(f"{BOAT}/ag1", "agent")
    (turn,) = turns_of(events_of(told))
    assert (turn.prompt, turn.ends, turn.final and turn.final.generator) == ("Count the ropes", "final", "gull-2")
    assert facts_of(told) == {"parent": BOAT, "relation": Relation.SUBAGENT, "version": "wire 1.9"}
    assert facts_of(read(f"{BOAT}/ag1", "agent-meta")) == {
        "parent": BOAT,
        "relation": Relation.SUBAGENT,
        "agent": "coder",
        "summary": "count ropes",
    }


def test_T69_an_agent_without_one_becomes_a_session_from_its_parents_wire(tmp_path: Path) -> None:
    child = f"{BOAT}/ag2"
    parsed = read(BOAT)
    assert facts_of(parsed, child) == {"parent": BOAT, "relation": Relation.SUBAGENT, "agent": "coder"}
    (turn,) = turns_of(events_of(parsed, child))
    assert (turn.prompt, turn.tools, turn.events[1].tool) == ("Count the knots", ["mcp__outcrop__open"], "open")
    shutil.copytree(HOMES / "kimi", tmp_path / "kimi")
    wire = next(one for one in discovered(tmp_path / "kimi") if (one.role, one.native) == ("transcript", BOAT))
    shutil.rmtree(Path(wire.path).parent / "subagents")
    inside = [event.key for event in events_of(fold(wire, rows_of(wire)), f"{BOAT}/ag1")]
    own = [event.key for event in events_of(read(f"{BOAT}/ag1", "agent"))]
    assert inside == own[:2], "the same events have the same keys in both places"


def test_T70_a_turn_that_was_interrupted_does_not_end_again() -> None:
    parsed = read(BOAT)
    assert {one.reason for one in parsed if one.kind == "TurnEnd" and not one.items} == {
        "ends a turn that was interrupted"
    }
    assert turns_of(events_of(parsed))[1].ends == "cancelled"


def test_T72_forks_are_sessions_whose_copied_events_have_one_origin() -> None:
    boat, fork = events_of(read(BOAT)), events_of(read(FORK))
    origins = {event.origin: event for event in boat}
    assert len(origins) == len(boat)
    shared = [event for event in fork if event.origin in origins]
    assert [event.text for event in fork if event.origin not in origins] == ["Another way", "Glue it."]
    assert all(event.key == origins[event.origin].key for event in shared)
    assert turns_of(fork)[-1].prompt == "Another way"
    assert facts_of(read(FORK, "state")) == {"title.generated": "Fork: Sail work"}
    assert facts_of(read(BOAT, "state")) == {"title.user": "Sail work"}


def test_a_prompt_settles_a_turn_of_builds_that_write_no_end() -> None:
    file = file_of(BOAT)
    rows = [row for row in rows_of(file) if row.get("message", {}).get("type") not in ("TurnEnd", "StepInterrupted")]
    assert [turn.ends for turn in turns_of(events_of(fold(file, rows)))] == ["final", None, None]


def test_the_oldest_layout_is_read_from_its_context() -> None:
    parsed = read(OLD, "context")
    (turn,) = turns_of(events_of(parsed))
    assert (turn.prompt, turn.ends, turn.tools) == ("Paint the hull", "final", ["Bash"])
    assert turn.final is not None
    assert turn.final.text == "No paint left."
    assert {event.time for event in turn.events} == {None}
    assert {event.cwd for event in turn.events} == {"/w/boat"}
    assert [event.type for event in turn.events].count(EventType.UNKNOWN) == 1
    assert by_text(parsed)["<system>CHECKPOINT 1</system>"].type is EventType.SYSTEM
    assert by_text(parsed)["<system>ERROR: no paint</system>"].is_error


def test_T71_a_prompt_and_its_message_are_one_and_retries_are_none() -> None:
    parsed = read(WINCH, "code")
    assert [event.text for event in of_type(parsed, EventType.USER_INPUT)] == [
        "Oil the winch",
        "gently",
        "Paint it",
        "Sail away",
    ]
    assert {one.reason for one in parsed if one.kind == "llm.request"} == {"a request to a model"}
    assert not [one for one in parsed if one.kind == "llm.request" and one.items]


def test_records_of_kimi_code() -> None:
    parsed = read(WINCH, "code")
    events = events_of(parsed)
    turns = turns_of(events)
    assert [(turn.prompt, turn.ends) for turn in turns] == [
        ("Oil the winch", "final"),
        ("Paint it", "cancelled"),
        ("Sail away", "crashed"),
    ]
    assert turns[0].final is by_text(parsed)["The winch turns."]
    first, second = of_type(parsed, EventType.TOOL_CALL)
    assert (first.key, second.key) == ("call:s1:Bash_0", "call:s2:Bash_0")
    assert (second.tool, second.original_tool, second.arguments) == ("open", "mcp__outcrop__open", {"id": "e"})
    out, opened = of_type(parsed, EventType.TOOL_RESPONSE)
    assert (out.exit_code, out.is_error, out.tool) == (1, True, "Bash")
    assert (opened.exit_code, opened.is_error, opened.extra) == (None, None, {"message": "short"})
    assert {event.generator for event in events if event.generator} == {"gull-4"}
    assert events[0].time == 1784950500002
    assert {event.cwd for event in events} == {"/w/boat"}
    counted = [event.extra["usage"]["output"] for event in events if event.extra and "usage" in event.extra]
    assert counted == [6, 2]
    assert by_text(parsed)["Painting."].superseded
    assert by_text(parsed)["task done"].type is EventType.SYSTEM
    assert by_text(parsed)["remember the list"].type is EventType.SYSTEM
    assert by_text(parsed)["Winch oiled."].type is EventType.COMPACTION
    assert by_text(parsed)["storm"].ends is End.CRASHED
    assert [event.raw["type"] for event in events if event.raw] == ["sonar.ping"]
    assert [one.keep["memory"] for one in parsed if one.keep] == ["notes"]
    assert facts_of(read(WINCH, "code-state")) == {"title.generated": "Oil the winch", "created": 1784950500000}


def test_an_agent_of_kimi_code_is_a_session_of_its_own() -> None:
    parsed = read(f"{WINCH}/agent-0", "code-agent")
    (turn,) = turns_of(events_of(parsed))
    assert (turn.prompt, turn.ends) == ("Count the bolts", "final")
    assert (facts_of(parsed)["parent"], facts_of(parsed)["relation"]) == (WINCH, Relation.SUBAGENT)


def test_T14_a_session_that_was_taken_over_is_one_session(tmp_path: Path) -> None:
    shutil.copytree(HOMES, tmp_path / "homes")
    state = next((tmp_path / "homes" / "kimi-code").rglob("ses_*/state.json"))
    original = next((tmp_path / "homes" / "kimi").rglob(BOAT))
    file = next(one for one in discovered(tmp_path / "homes" / "kimi-code") if one.role == "code-imported")
    assert file.native == BOAT
    gone = turns_of(events_of(fold(file, rows_of(file))))
    assert [(turn.prompt, turn.ends) for turn in gone] == [("Mend the sail", "final"), ("Hoist it", None)]
    assert gone[0].tools == ["Shell"]
    known = json.loads(state.read_text("utf-8"))
    known["custom"]["kimi_cli_source_path"] = str(original)
    state.write_text(json.dumps(known), "utf-8")
    there = events_of(fold(file, rows_of(file)))
    assert [event.text for event in there] == ["Hoist it", "Hoisted."]
    assert [event.key for event in there] == [event.key for event in gone[1].events]
    told = {event.key: event.text for event in events_of(read(BOAT))}
    same = [told[event.key] for event in gone[0].events if event.key in told]
    assert same[1:] == ["I look for it.", "", "no such file", "Sail and flag are mended.", ""]
    assert not any(event.key in told for event in there), "what was said later is never taken for something older"


def test_T14_the_original_is_also_looked_for_in_its_usual_place(tmp_path: Path) -> None:
    shutil.copytree(WIRE, tmp_path / ".kimi")
    shutil.copytree(CODE, tmp_path / ".kimi-code")
    state = next((tmp_path / ".kimi-code").rglob("ses_*/state.json"))
    state.write_text(json.dumps({**json.loads(state.read_text("utf-8")), "workDir": "/w/boat"}), "utf-8")
    file = next(one for one in discovered(tmp_path / ".kimi-code") if one.role == "code-imported")
    assert [event.text for event in events_of(fold(file, rows_of(file)))] == ["Hoist it", "Hoisted."]


def test_a_message_without_a_turn_opens_one() -> None:
    file = SourceFile("/k/agents/main/wire.jsonl", "kimi-cli", role="code", native="s")
    rows = [
        {"type": "context.append_message", "message": {"role": "user", "content": "Bail out", "id": "m1"}},
        {"type": "turn.prompt", "turnId": 0},
        {"type": "context.append_message", "message": {"role": "assistant", "content": "Done.", "id": "m2"}},
    ]
    (turn,) = turns_of(events_of(fold(file, rows)))
    assert ([event.key for event in turn.events], turn.ends) == (["msg:m1", "msg:m2:0"], "final")


ALL = [one for home in (WIRE, CODE) for one in discovered(home) if one.form is Form.LINES]


@given(st.sampled_from(ALL), st.frozensets(st.integers(0, 50)))
def test_cut_anywhere_gives_the_same_items(file: SourceFile, cuts: frozenset[int]) -> None:
    rows = rows_of(file)
    assert fold(file, rows, cuts) == fold(file, rows)


NAMES = [
    "type", "time", "timestamp", "message", "payload", "user_input", "text", "think", "encrypted", "id", "function",
    "name", "arguments", "arguments_part", "tool_call_id", "return_value", "output", "is_error", "display",
    "token_usage", "event", "agent_id", "response", "role", "content", "toolCalls", "tool_calls", "toolCallId",
    "uuid", "stepUuid", "part", "args", "result", "usage", "finishReason", "input", "origin", "kind", "count",
    "reason", "inputOther", "image_url", "url", "created_at", "custom_title", "agents", "forkedFrom",
]  # fmt: skip
KINDS = [
    "metadata", "TurnBegin", "TurnEnd", "SteerInput", "StepInterrupted", "ContentPart", "ToolCall", "ToolCallPart",
    "ToolResult", "StatusUpdate", "SubagentEvent", "ApprovalResponse", "HookResolved", "BtwEnd", "PlanDisplay",
    "turn.prompt", "turn.steer", "turn.cancel", "turn.ended", "context.append_message", "context.undo",
    "context.append_loop_event", "step.begin", "step.end", "content.part", "tool.call", "tool.result",
    "usage.record", "config.update", "spine.open", "text", "think", "image_url", "user", "assistant", "tool",
]  # fmt: skip
VALUE = values(NAMES, scalars(KINDS), 10)
KIND = st.sampled_from(KINDS)
BODY = st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=6)
WIRED = st.fixed_dictionaries(
    {"message": st.fixed_dictionaries({"type": KIND, "payload": BODY}) | VALUE}, optional={"timestamp": VALUE}
)
CODED = st.fixed_dictionaries({"type": KIND}, optional=dict.fromkeys(NAMES[1:], VALUE)) | st.fixed_dictionaries(
    {"type": st.just("context.append_loop_event"), "event": st.tuples(KIND, BODY).map(lambda e: {**e[1], "type": e[0]})}
)


ROLES = [
    "transcript", "agent", "context", "state", "agent-meta", "code", "code-agent", "code-imported", "code-state",
]  # fmt: skip


@given(st.sampled_from(ROLES), st.lists(WIRED | CODED | BODY, max_size=6))
def test_wrong_shapes_are_no_errors(role: str, rows: list[dict[str, Any]]) -> None:
    file = SourceFile("/k/sessions/b/s/wire.jsonl", "kimi-cli", Form.LINES, role, "s", "p")
    sound(fold(file, rows, frozenset(range(6))))


def corpus_file(path: Path) -> SourceFile:
    """A file of the corpus as what it would be found: the corpus lacks the folders around it."""
    native = path.stem
    if "stage0" in path.parts or "spine" in path.parts:
        role = "code-state" if path.suffix == ".json" else "code"
    else:
        role, native = "context" if path.stem == "context" else "transcript", path.parent.name
    form = Form.DOCUMENT if path.suffix == ".json" else Form.LINES
    return SourceFile(str(path), "kimi-cli", form, role, native)


@needs_corpus
@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_lines_say(told: dict[str, Any]) -> None:
    file = corpus_file(CORPUS / told["file"])
    parsed = fold(file, rows_of(file))
    events = events_of(parsed)
    turns = turns_of(events)
    assert len(parsed) == told["records"]
    opening = [n for n, one in enumerate(parsed, 1) if any(getattr(item, "opens", False) for item in one.items)]
    assert opening[: len(turns)] == [want["line"] for want in told["turns"]]
    for turn, want in zip(turns, told["turns"], strict=True):
        assert hashed(turn.prompt) == want["prompt"]
        assert turn.ends == want["ends"], want["line"]
        tools = want["tools"]
        if isinstance(tools, dict):
            assert (len(turn.tools), hashed(" ".join(turn.tools))) == (tools["count"], tools["names"])
        else:
            assert turn.tools == tools
    times = [event.time for event in events if event.time is not None]
    assert (min(times, default=None), max(times, default=None)) == (told["first_time"], told["last_time"])
    assert facts_of(parsed).get("parent") == told["parent"]


@needs_corpus
def test_every_record_of_the_corpus_gives_items_or_a_reason() -> None:
    files = [path for path in sorted((CORPUS / "kimi").rglob("*")) if path.is_file()]
    assert len(files) == 13
    for path in files:
        file = corpus_file(path)
        parsed = fold(file, rows_of(file))
        kinds = {one.kind for one in parsed for item in one.items if getattr(item, "type", None) is EventType.UNKNOWN}
        assert not kinds
        natives = {item.session for one in parsed for item in one.items}
        for native in natives:
            events_of(parsed, native)
