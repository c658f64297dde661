"""Cline and Roo Code on invented tasks and sessions, made after the message types of their published source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import hashed
from outcrop.harnesses import Environment, Form, Harness, Reader, SourceFile
from outcrop.harnesses.cline import HARNESS
from outcrop.model import End, Event, EventType, Parsed
from reading import Beside, events_of, facts_of, fed, scalars, turns_of, values

FIXTURES = Path(__file__).parent.parent / "fixtures" / "cline"
FACTS = [
    {"name": path.stem, **json.loads(path.read_text(encoding="utf-8"))}
    for path in sorted((Path(__file__).parent / "facts" / "cline").glob("*.json"))
]


def source(name: str) -> SourceFile:
    root = FIXTURES / name.split("/")[0]
    return next(file for file in HARNESS.discover(root.name, root) if file.path == str(FIXTURES / name))


def read(file: SourceFile, document: Any = None) -> list[Parsed]:
    document = json.loads(Path(file.path).read_text(encoding="utf-8")) if document is None else document
    reader: Reader = HARNESS.reader(file, None, Beside())
    parsed = [reader.feed(record) for record in HARNESS.records(file, document)]
    assert all(one.items or one.reason for one in parsed)
    assert reader.session == file.native
    return parsed


def shown(*messages: tuple[str, str, Any]) -> list[Parsed]:
    rows = [
        {"ts": 1772352000000 + n, "type": side, side: name, "text": text}
        for n, (side, name, text) in enumerate(messages)
    ]
    return read(SourceFile("/t/ui_messages.json", "cline", Form.DOCUMENT, "task", "t"), rows)


def test_it_is_a_harness() -> None:
    harness: Harness = HARNESS
    assert (harness.name, harness.agent, harness.sources) == ("cline", "cline", ("cline", "roo"))
    assert harness.group("cline") != harness.group("roo")
    assert harness.resume_command("x") is None


@pytest.mark.parametrize(
    ("platform", "variables", "wanted"),
    [
        ("linux", {}, "/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Cursor/User/globalStorage/saoudrizwan.claude-dev"),
        ("linux", {}, "/h/.vscode-server/data/User/globalStorage/saoudrizwan.claude-dev"),
        ("darwin", {}, "/h/Library/Application Support/VSCodium/User/globalStorage/saoudrizwan.claude-dev"),
        ("win32", {"APPDATA": "/r"}, "/r/Code - Insiders/User/globalStorage/saoudrizwan.claude-dev"),
        ("win32", {}, "/h/AppData/Roaming/Windsurf/User/globalStorage/saoudrizwan.claude-dev"),
        ("linux", {}, "/h/.cline/data"),
    ],
)
def test_roots_on_every_platform(platform: str, variables: dict[str, str], wanted: str) -> None:
    environment = Environment(Path("/h"), variables, platform)
    assert Path(wanted) in HARNESS.roots("cline", environment)
    fork = Path(wanted.replace("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"))
    assert (fork in HARNESS.roots("roo", environment)) is ("globalStorage" in wanted)


def test_discover_lists_tasks_and_sessions_and_nothing_else(tmp_path: Path) -> None:
    for name in ("tasks/1/ui_messages.json", "tasks/1/api_conversation_history.json", "tasks/2/claude_messages.json",
                 "tasks/3/task_metadata.json", "sessions/s/s.json", "sessions/s/s.messages.json", "settings/mcp.json",
                 "state/taskHistory.json", "secrets.json"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[]")
    found = [(file.role, file.native, Path(file.path).name) for file in HARNESS.discover("cline", tmp_path)]
    assert found == [
        ("task", "1", "ui_messages.json"),
        ("task", "2", "claude_messages.json"),
        ("messages", "s", "s.messages.json"),
        ("session-meta", "s", "s.json"),
    ]
    assert list(HARNESS.discover("roo", tmp_path / "nowhere")) == []


@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_facts_say(told: dict[str, Any]) -> None:
    file = source(told["file"])
    assert (file.native, file.source) == (told["session"], told["source"])
    parsed = read(file)
    records = [one for one in parsed if one.kind != "say/request_cancelled"]
    assert len(records) == told["records"]
    opening = [n for n, one in enumerate(records, 1) if any(getattr(item, "opens", False) for item in one.items)]
    assert opening == [turn["line"] for turn in told["turns"]]
    events = events_of(parsed)
    times = [event.time for event in events if event.time is not None]
    assert (min(times), max(times)) == (told["first_time"], told["last_time"])
    for turn, want in zip(turns_of(events), told["turns"], strict=True):
        assert (hashed(turn.prompt), turn.ends, turn.tools) == (want["prompt"], want["ends"], want["tools"])
        assert hashed(turn.final.text if turn.final else None) == (want["final"] and want["final"]["text"])
        said = [event.text for event in turn.events if event.type is EventType.USER_INPUT]
        assert [hashed(text) for text in said[1:]] == want["steers"]
    assert not any(event.type is EventType.UNKNOWN for event in events)


def test_calls_and_outputs_of_a_task() -> None:
    events = events_of(read(source("cline/tasks/1772352000000/ui_messages.json")))
    calls = [event for event in events if event.type is EventType.TOOL_CALL]
    assert [call.arguments for call in calls] == [
        {"path": "src/buoy.py", "content": "/w/src/buoy.py"},
        {"command": "npm test"},
        {"query": "buoy"},
    ]
    outputs = [event for event in events if event.type is EventType.TOOL_RESPONSE]
    assert [(one.tool, one.text, one.call_id, one.exit_code) for one in outputs] == [
        ("execute_command", "1 passed\ndone", calls[1].call_id, None),
        ("search_sessions", "no hits", calls[2].call_id, None),
    ]
    assert (calls[2].tool, calls[2].original_tool) == ("search_sessions", "mcp__outcrop__search_sessions")
    assert (calls[0].cwd, calls[1].cwd, calls[1].generator) == (None, "/w/harbour", "tern-3")
    usage = [event.extra for event in events if (event.extra or {}).get("usage")]
    assert usage[0] == {"usage": {"input": 12, "output": 5, "cache_read": 3}}


def test_what_was_cancelled_ends_where_it_ended() -> None:
    events = events_of(read(source("cline/tasks/1772352000000/ui_messages.json")))
    half, cancelled, resumed = events[-3:]
    assert (half.text, half.partial) == ("Half an", True)
    assert (cancelled.text, cancelled.ends) == ("request user_cancelled", End.INTERRUPTED)
    assert (resumed.type, resumed.ends) == (EventType.RUNTIME, None)


def test_a_compaction_is_one_event() -> None:
    events = events_of(read(source("roo/tasks/0199aaaa-0000-7000-8000-000000000001/ui_messages.json")))
    assert [event.text for event in events if event.type is EventType.COMPACTION] == ["Shells are counted."]


def test_a_task_that_is_opened_again_had_stopped() -> None:
    (turn,) = turns_of(events_of(shown(("say", "task", "go"), ("say", "text", "going"), ("ask", "resume_task", ""))))
    assert turn.ends == "stopped"
    (turn,) = turns_of(events_of(shown(("say", "task", "go"), ("say", "text", "going"))))
    assert turn.ends is None


def test_keys_stay_when_a_message_grows_in_place() -> None:
    rows: list[tuple[str, str, Any]] = [("say", "task", "go"), ("say", "text", "go"), ("say", "tool", "{}")]
    before = [event.key for event in events_of(shown(*rows))]
    rows[1] = ("say", "text", "going on")
    assert [event.key for event in events_of(shown(*rows, ("say", "text", "more")))][:3] == before


def test_a_session_of_the_command_line() -> None:
    parsed = read(source("cline/sessions/s-42/s-42.messages.json"))
    prompt, thought, call, result, answer = events_of(parsed)
    assert (prompt.key, prompt.cwd, prompt.branch) == ("m1:0", "/w/ship", "main")
    assert (thought.model, answer.generator, call.tool, call.call_id) == ("tern-4", "tern-4", "open", "t1")
    assert (result.tool, result.original_tool, result.is_error) == ("open", "mcp__outcrop__open", True)
    assert call.extra == {"usage": {"inputTokens": 9, "outputTokens": 2}}
    assert facts_of(read(source("cline/sessions/s-42/s-42.json"))) == {"title.generated": "Deck work"}


def test_what_is_not_known_is_kept_whole() -> None:
    parsed = shown(("say", "tide_report", "3 m"))
    (event,) = events_of(parsed)
    assert (event.type, event.text, event.raw["say"]) == (EventType.UNKNOWN, "3 m", "tide_report")
    assert parsed[0].kind == "say/tide_report"


# fmt: off
WORDS = (
    "ts", "type", "say", "ask", "text", "images", "partial", "modelInfo", "modelId", "contextCondense", "summary",
    "reason", "id", "role", "content", "metrics", "input", "name", "tool_use_id", "is_error", "thinking", "signature",
)
NAMES = (
    "task", "text", "user_feedback", "api_req_started", "tool", "command", "command_output", "use_mcp_server",
    "mcp_server_response", "completion_result", "followup", "plan_mode_respond", "browser_action_result", "reasoning",
    "condense_context", "request_cancelled", "resume_task", "api_req_failed", "say", "ask", "user", "assistant",
    "tool_use", "tool_result", '{"tool":1,"arguments":[],"response":{},"request":2,"cancelReason":"x"}', "{", "",
)
# fmt: on
LEAF = scalars(NAMES)
VALUE = values(WORDS, LEAF, 10)


SHOWN = st.fixed_dictionaries({"type": st.just("say"), "say": st.sampled_from(NAMES), "text": LEAF})


@given(st.lists(VALUE | SHOWN, max_size=8), st.sampled_from(["task", "messages", "session-meta"]))
def test_wrong_shapes_are_no_errors(rows: list[Any], role: str) -> None:
    file = SourceFile("/nowhere/t.json", "cline", Form.DOCUMENT, role, "t")
    for document in (rows, {"messages": rows}, *rows):
        parsed = fed(HARNESS.reader(file, None, Beside()), HARNESS.records(file, document))
        keys = [item.key for one in parsed for item in one.items if isinstance(item, Event)]
        assert len(keys) == len(set(keys))
