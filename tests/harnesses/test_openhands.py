"""The OpenHands adapter on invented conversations of both generations, and on the exports of the corpus."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.openhands import HARNESS
from outcrop.harnesses.openhands.values import zone_of
from outcrop.model import ENCRYPTED_PLACEHOLDER, Event, EventType, Parsed, Relation
from reading import events_of, facts_of, read_twice, scalars, sound, turns_of, values

FIXTURES = Path(__file__).parent.parent / "fixtures" / "openhands"
FACTS = sorted((Path(__file__).parent / "facts" / "openhands").glob("*.json"))
CRANE, CHILD = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
FORKED, SERVER = "00000000000000000000000000000002", "sessions/5f5f5f5f"


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in UTC, whatever the real one is."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES, tmp_path / ".openhands")
    return tmp_path / ".openhands"


def store(root: Path, role: str = "conversations") -> SourceFile:
    return next(file for file in HARNESS.discover("openhands", root) if file.role == role)


def role_of(native: str) -> str:
    return "sessions" if native.startswith("sessions/") else "conversations"


def listed(root: Path, role: str = "conversations") -> dict[str, str]:
    container = HARNESS.container(store(root, role))
    try:
        return dict(container.sessions())
    finally:
        container.close()


def fold(rows: list[dict[str, Any]], file: SourceFile) -> list[Parsed]:
    return read_twice(HARNESS, file, rows)


def read(root: Path, native: str) -> list[Parsed]:
    file = store(root, role_of(native))
    container = HARNESS.container(file)
    rows = list(container.records(native))
    container.close()
    return fold(rows, SourceFile(f"{file.path}#{native}", "openhands", file.form, file.role, native))


def loose(file: SourceFile) -> list[Parsed]:
    text = Path(file.path).read_text(encoding="utf-8")
    rows = (
        [json.loads(line) for line in text.splitlines()]
        if file.form is Form.LINES
        else list(HARNESS.records(file, json.loads(text)))
    )
    return fold(rows, file)


def shown(parsed: list[Parsed]) -> list[tuple[str, str]]:
    return [(one.type.value, one.text) for one in events_of(parsed)]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_homes_lie_in_the_user_s_folder(platform: str) -> None:
    def roots(**variables: str) -> list[str]:
        found = HARNESS.roots("openhands", Environment(Path("/home/gull"), variables, platform))
        return [path.as_posix() for path in found]

    assert roots() == ["/home/gull/.openhands", "/home/gull/.openhands-state"]
    assert roots(OPENHANDS_PERSISTENCE_DIR="/p") == ["/p", "/home/gull/.openhands-state"]
    assert roots(OPENHANDS_CONVERSATIONS_DIR="/c")[0] == "/c"


def test_discover_finds_stores_exports_and_outputs(home: Path, tmp_path: Path) -> None:
    (home / "users" / "u1" / "conversations").mkdir(parents=True)
    assert [(file.path, file.role) for file in HARNESS.discover("openhands", home)] == [
        (str(home / "conversations"), "conversations"),
        (str(home / "sessions"), "sessions"),
        (str(home / "users" / "u1" / "conversations"), "sessions"),
    ]
    for folder, role in ((home / "conversations", "conversations"), (home / "sessions", "sessions")):
        assert [(file.path, file.role) for file in HARNESS.discover("openhands", folder)] == [(str(folder), role)]
    exports = tmp_path / "exports" / "below"
    exports.mkdir(parents=True)
    (exports / "a.json").write_text('[{"action": "message", "source": "user", "args": {"content": "hi"}}]')
    (exports / "settings.json").write_text('{"llm_api_key": "never"}')
    (exports / "output.jsonl").write_text('{"instruction": "do", "history": []}\n')
    found = list(HARNESS.discover("openhands", tmp_path / "exports"))
    assert [(file.path, file.form, file.role) for file in found] == [
        (str(exports / "a.json"), Form.DOCUMENT, "trajectory"),
        (str(exports / "output.jsonl"), Form.LINES, "resolver-output"),
    ]
    assert list(HARNESS.discover("openhands", exports / "a.json")) == [found[0]]
    assert list(HARNESS.discover("openhands", tmp_path / "gone")) == []


def test_conversations_and_their_subagents_are_listed(home: Path) -> None:
    assert set(listed(home)) == {CRANE, CHILD, FORKED}, "one without events is none"
    assert set(listed(home, "sessions")) == {SERVER}
    assert (facts_of(read(home, CHILD))["parent"], facts_of(read(home, CHILD))["relation"]) == (
        CRANE,
        Relation.SUBAGENT,
    )
    assert HARNESS.resume_command(CRANE) == ["openhands", "--resume", CRANE]
    for other in (SERVER, "trajectory-0123456789abcdef", "resolver-0123456789abcdef"):
        assert HARNESS.resume_command(other) is None


def test_a_conversation_of_the_command_line_is_read_in_its_order(home: Path) -> None:
    parsed = read(home, CRANE)
    assert shown(parsed) == [
        ("system", ""),
        ("system", "Be a crane."),
        ("user_input", "lift the crate\n[image image/png, 3 bytes]"),
        ("system", "a skill"),
        ("reasoning", "heavy?"),
        ("assistant_response", "Looking."),
        ("tool_call", ""),
        ("tool_response", "crate"),
        ("tool_call", ""),
        ("tool_response", "no JSON"),
        ("compaction", "A crate was seen."),
        ("assistant_response", "Lifted."),
        ("user_input", "and the other"),
        ("tool_call", ""),
        ("tool_response", "do not"),
        ("runtime", "paused by the user"),
        ("user_input", "go on"),
        ("reasoning", "two crates"),
        ("assistant_response", "Which one?"),
        ("unknown", ""),
        ("user_input", "all"),
        ("runtime", "LLMError: no credit"),
    ]
    assert [(turn.ends, turn.final and turn.final.text) for turn in turns_of(events_of(parsed))] == [
        ("final", "Lifted."),
        ("interrupted", None),
        ("final", "Which one?"),
        ("crashed", None),
    ]
    assert "never-read-this" not in repr(parsed)


def test_values_of_newer_events(home: Path) -> None:
    found = events_of(read(home, CRANE))
    by_type = {kind: [one for one in found if one.type is kind] for kind in EventType}
    first, own, _ = by_type[EventType.TOOL_CALL]
    assert (first.tool, first.call_id, first.arguments) == ("terminal", "t1", {"command": "ls"})
    assert first.extra == {"summary": "list files", "risk": "LOW"}
    assert (own.tool, own.original_tool, own.arguments) == ("open", "outcrop_open", {"_raw": "{"})
    done, wrong, rejected = by_type[EventType.TOOL_RESPONSE]
    assert (done.tool, done.exit_code, done.is_error, done.cwd) == ("terminal", 2, True, "/w/dock/sub")
    assert (wrong.tool, wrong.original_tool, wrong.exit_code, wrong.is_error) == ("open", "outcrop_open", None, True)
    assert rejected.is_error
    assert {one.cwd for one in found} == {"/w/dock", "/w/dock/sub"}
    assert by_type[EventType.REASONING][0].extra == {"encrypted_content": ["c2VhbGVk"]}
    assert {one.generator for one in by_type[EventType.ASSISTANT_RESPONSE]} == {"vendor/gull-4"}
    assert by_type[EventType.USER_INPUT][0].time == 1780300801500
    assert by_type[EventType.UNKNOWN][0].raw["ping"] == 1


def test_what_a_branch_left_is_marked(home: Path) -> None:
    found = events_of(read(home, FORKED))
    assert {one.text: one.superseded for one in found} == {"root": False, "left": True, "right": False}
    assert turns_of(found)[0].final == found[-1]


def test_a_conversation_of_the_older_server(home: Path) -> None:
    parsed = read(home, SERVER)
    assert facts_of(parsed) == {"created": 1780308000000, "title.generated": "Lifting"}
    assert shown(parsed) == [
        ("system", ""),
        ("system", "Be a crane."),
        ("runtime", "awaiting_user_input"),
        ("user_input", "lift"),
        ("system", "[image image/png, 3 bytes]"),
        ("system", "lift"),
        ("assistant_response", "Looking."),
        ("tool_call", ""),
        ("tool_response", "crate"),
        ("reasoning", "heavy?"),
        ("system", "noted"),
        ("tool_call", ""),
        ("tool_response", "no such file"),
        ("assistant_response", "Which one?"),
        ("runtime", "awaiting_user_input"),
        ("user_input", "all"),
        ("runtime", "stopped"),
        ("compaction", "Crates."),
        ("unknown", ""),
    ]
    found = events_of(parsed)
    assert [(turn.prompt, turn.ends) for turn in turns_of(found)] == [("lift", "final"), ("all", "cancelled")]
    call, edit = [one for one in found if one.type is EventType.TOOL_CALL]
    assert (call.tool, call.call_id, call.arguments) == ("execute_bash", "t1", {"command": "ls", "is_input": "false"})
    assert (call.model, call.extra) == ("gull-3", {"usage": {"prompt_tokens": 9}})
    assert (edit.tool, edit.arguments) == ("edit", {"path": "/workspace/a.txt", "content": "x"})
    done, wrong = [one for one in found if one.type is EventType.TOOL_RESPONSE]
    assert (done.tool, done.call_id, done.exit_code, done.is_error, done.cwd) == (
        "execute_bash", "t1", 1, True, "/workspace",
    )  # fmt: skip
    assert (wrong.tool, wrong.exit_code, wrong.is_error) == ("edit", None, True)
    assert {one.branch for one in found} == {"dock"}


def test_the_model_s_clock_tells_the_zone_of_the_machine(home: Path) -> None:
    assert events_of(read(home, SERVER))[3].time == 1780308002500, "08:00:02 at UTC-2"
    assert zone_of([]) is None
    assert zone_of([None, {"timestamp": 7}, {"tool_call_metadata": {"model_response": {"created": "x"}}}]) is None


def test_an_event_that_is_added_changes_its_conversation_alone(home: Path) -> None:
    before, stamp = listed(home), HARNESS.stamp(store(home))
    path = home / "conversations" / FORKED / "events" / "event-00003-00000003-0000-4000-8000-000000000000.json"
    path.write_text('{"kind": "MessageEvent", "id": "d", "sour')
    after = listed(home)
    assert {native for native in after if after[native] != before[native]} == {FORKED}
    assert HARNESS.stamp(store(home)) != stamp
    torn = events_of(read(home, FORKED))[-1]
    assert (torn.type, torn.raw["record"][:7]) == (EventType.UNKNOWN, '{"kind"'), "kept until it is whole"
    assert ENCRYPTED_PLACEHOLDER not in torn.text


@needs_corpus
@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.stem)
def test_a_session_is_told_as_its_facts_say(path: Path) -> None:
    told = json.loads(path.read_text(encoding="utf-8"))
    file = next(iter(HARNESS.discover("openhands", CORPUS / told["file"])))
    parsed = loose(file)
    if file.form is Form.LINES:
        parsed = [parsed[int(path.stem.split("-")[1]) - 1]]
        session = parsed[0].items[0].session
    else:
        parsed, session = parsed[1:], None
    assert len(parsed) == told["records"]
    events = events_of(parsed, session)
    where = {item.key: n for n, one in enumerate(parsed, 1) for item in one.items if isinstance(item, Event)}
    if session is not None:
        where = {key: int(key.removeprefix("at").split(":")[0]) + 1 for key in where if key != "run"}
    times = [event.time for event in events if event.time is not None]
    assert (min(times, default=None), max(times, default=None)) == (told["first_time"], told["last_time"])
    assert hashed(facts_of(parsed, session).get("title.generated")) == told["title"]
    assert facts_of(parsed, session).get("parent") == told["parent"]
    prompts = [event for event in events if event.opens]
    assert [where[event.key] for event in prompts] == [turn["place"] for turn in told["turns"]]
    assert (hashed(prompts[0].text), hashed(prompts[-1].text)) == (told["first_prompt"], told["last_prompt"])
    for turn, want in zip(turns_of(events), told["turns"], strict=True):
        assert (hashed(turn.prompt), turn.ends, turn.tools) == (want["prompt"], want["ends"], want["tools"])
        assert (turn.final and {"place": where[turn.final.key], "text": hashed(turn.final.text)}) == want["final"]
    assert not any(event.type is EventType.UNKNOWN for event in events)


@needs_corpus
def test_every_file_of_the_corpus_is_read() -> None:
    folder = CORPUS / "openhands"
    there = {path for path in folder.rglob("*") if path.is_file()}
    places = {path.parent for path in there}
    found = [file for place in places for file in HARNESS.discover("openhands", place)]
    assert {Path(file.path) for file in found} == there
    for file in found:
        loose(file)


NAMES = [
    "id", "source", "action", "observation", "args", "extras", "content", "thought", "message", "cause", "command",
    "tool_call_metadata", "function_name", "tool_call_id", "model_response", "choices", "tool_calls", "function",
    "arguments", "metadata", "exit_code", "agent_state", "image_urls", "wait_for_response", "kind", "llm_message",
    "tool_name", "tool_call", "name", "thinking_blocks", "reasoning_content", "is_error", "type", "text", "created",
    "timestamp", "key", "value", "usage", "parent_id",
]  # fmt: skip
WORDS = [
    "user", "agent", "environment", "message", "run", "finish", "think", "edit", "null", "error", "recall", "text",
    "agent_state_changed", "awaiting_user_input", "MessageEvent", "ActionEvent", "ObservationEvent", "image",
    "ConversationStateUpdateEvent", "execution_status", "finished", "SystemPromptEvent", "2026-06-01T08:00:00", "{}",
]  # fmt: skip
VALUE = values(NAMES, scalars(WORDS))
OBJECT = st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=9)
EVENT = st.one_of(
    OBJECT,
    st.builds(
        lambda fields, kind: {**fields, "kind": kind},
        st.dictionaries(st.sampled_from(NAMES), OBJECT | VALUE, max_size=9),
        st.sampled_from(WORDS),
    ),
    st.fixed_dictionaries({"action": st.sampled_from(WORDS)}, optional={"args": OBJECT, "source": VALUE, "id": VALUE}),
    st.fixed_dictionaries({"observation": st.sampled_from(WORDS)}, optional={"extras": OBJECT, "cause": VALUE}),
)
LINE = st.dictionaries(
    st.sampled_from(["history", "issue", "instruction", "error", "metrics"]), st.lists(EVENT, max_size=4) | VALUE
)
HEAD = st.fixed_dictionaries(
    {"record": st.just("conversation")},
    optional=dict.fromkeys(["id", "title", "cwd", "parent", "zone", "created_at", "llm_model", "trigger"], VALUE),
)


@given(st.lists(EVENT | VALUE, max_size=6), st.lists(HEAD | EVENT, max_size=4), st.lists(LINE, max_size=2))
def test_wrong_shapes_are_no_errors(document: list[Any], rows: list[Any], lines: list[Any]) -> None:
    export = SourceFile("/x.json", "openhands", Form.DOCUMENT, "trajectory")
    found = fold(list(HARNESS.records(export, document)), export)
    found += fold(rows, SourceFile("/x#s", "openhands", Form.CONTAINER, "conversations", "s"))
    found += fold(lines, SourceFile("/x.jsonl", "openhands", Form.LINES, "resolver-output"))
    sound(found)
