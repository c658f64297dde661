"""Chat sessions of VS Code, on invented files in the forms that the editor writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import hashed
from outcrop.harnesses import Environment, Form, Harness, SourceFile
from outcrop.harnesses.copilot_vscode import HARNESS
from outcrop.harnesses.copilot_vscode.changes import replayed
from outcrop.harnesses.copilot_vscode.reader import workspace_folder
from outcrop.harnesses.copilot_vscode.records import tree_text
from outcrop.model import Event, EventType, Parsed
from reading import events_of, facts_of, scalars, turns_of, values

TESTS = Path(__file__).parent.parent
USER = TESTS / "fixtures" / "copilot-vscode" / "User"
CHANGES, WINDOW, DOCUMENT = (f"c4a70000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
FACTS = [
    {"name": path.stem, **json.loads(path.read_text(encoding="utf-8"))}
    for path in sorted((Path(__file__).parent / "facts" / "copilot-vscode").glob("*.json"))
]


class Beside:
    def text(self, path: str, inside: str, limit: int) -> str | None:
        found = Path(path)
        assert found.resolve().is_relative_to(Path(inside).resolve())
        return found.read_text(encoding="utf-8") if found.exists() else None


def sources() -> dict[str | None, SourceFile]:
    return {file.native: file for file in HARNESS.discover("copilot-vscode", USER)}


def fold(file: SourceFile, document: Any) -> list[Parsed]:
    reader = HARNESS.reader(file, None, Beside())
    parsed = [reader.feed(record) for record in HARNESS.records(file, document)]
    assert all(one.items or one.reason for one in parsed)
    assert reader.state() == {}
    return parsed


def read(native: str) -> list[Parsed]:
    file = sources()[native]
    text = Path(file.path).read_text(encoding="utf-8")
    return fold(file, text if file.form is Form.TEXT else json.loads(text))


def events(native: str, *types: EventType) -> list[Event]:
    return [event for event in events_of(read(native)) if not types or event.type in types]


def test_it_is_a_harness() -> None:
    harness: Harness = HARNESS
    assert (harness.name, harness.agent, harness.sources) == ("copilot-vscode", "copilot-vscode", ("copilot-vscode",))
    assert harness.resume_command(CHANGES) is None


def test_roots_of_every_platform() -> None:
    home = Path("/h")
    linux = HARNESS.roots("copilot-vscode", Environment(home))
    assert linux[:2] == [home / ".config" / "Code" / "User", home / ".config" / "Code - Insiders" / "User"]
    assert home / ".vscode-server" / "data" / "User" in linux
    moved = HARNESS.roots("copilot-vscode", Environment(home, {"XDG_CONFIG_HOME": "/x", "VSCODE_PORTABLE": "/p"}))
    assert (moved[0], moved[-1]) == (Path("/x/Code/User"), Path("/p/user-data/User"))
    mac = HARNESS.roots("copilot-vscode", Environment(home, {}, "darwin"))
    assert mac[0] == home / "Library" / "Application Support" / "Code" / "User"
    windows = HARNESS.roots("copilot-vscode", Environment(home, {"APPDATA": "/r"}, "win32"))
    assert windows[0] == Path("/r/Code/User")
    assert HARNESS.roots("copilot-vscode", Environment(home, {}, "win32"))[0] == (
        home / "AppData" / "Roaming" / "Code" / "User"
    )


def test_a_session_in_both_forms_is_read_from_the_log_of_changes() -> None:
    assert [(native, file.form) for native, file in sources().items()] == [
        (CHANGES, Form.TEXT),
        (DOCUMENT, Form.DOCUMENT),
        (WINDOW, Form.DOCUMENT),
    ]
    assert list(HARNESS.discover("copilot-vscode", USER / "nowhere")) == []


def test_changes_are_replayed_and_what_cannot_be_applied_is_kept() -> None:
    text = "\n".join(
        json.dumps(change)
        for change in (
            {"kind": 0, "v": {"a": [1, 2, 3], "b": {}}},
            {"kind": 1, "k": ["b", "c"], "v": 4},
            {"kind": 2, "k": ["a"], "v": [9], "i": 1},
            {"kind": 2, "k": ["d"], "v": [{}]},
            {"kind": 1, "k": ["d", 0, "e"], "v": 5},
            {"kind": 3, "k": ["b", "c"]},
            {"kind": 1, "k": ["x", "y"], "v": 5},
            {"kind": 2, "k": ["a"], "i": 7},
            {"kind": True, "v": {}},
        )
    )
    document, broken = replayed(text + '\n{"torn\n{"kind":1,"k":["b","z"],"v":1}\n{"kind":1,"k":')
    assert document == {"a": [1, 9], "b": {"z": 1}, "d": [{"e": 5}]}
    assert [one["line"] for one in broken][:2] == [
        {"kind": 1, "k": ["x", "y"], "v": 5},
        {"kind": 2, "k": ["a"], "i": 7},
    ]
    assert len(broken) == 4
    assert replayed("") == (None, [])
    assert replayed('{"kind":0,"v":{"a":1}}\n{"kind":0,"v":{"a":2}}')[0] == {"a": 2}


def test_texts_run_together_and_calls_keep_their_place() -> None:
    found = [(event.type.value, event.text) for event in events(CHANGES)][1:]
    assert found[:4] == [
        ("user_input", "Paint the buoy"),
        ("reasoning", "Colours first."),
        ("assistant_response", "I look at the `colours.md` file."),
        ("tool_call", "Reading colours.md"),
    ]
    assert ("assistant_response", "The buoy is red.") in found


def test_what_the_model_asked_for_is_told_rather_than_what_is_shown() -> None:
    calls, results = events(CHANGES, EventType.TOOL_CALL), events(CHANGES, EventType.TOOL_RESPONSE)
    assert [(call.tool, call.original_tool, call.call_id) for call in calls] == [
        ("read_file", None, "toolu_1"),
        ("run_in_terminal", None, "toolu_2"),
        ("search_sessions", "mcp_outcrop_search_sessions", "toolu_3"),
    ]
    assert calls[0].extra == {"tool_id": "copilot_readFile"}
    assert [call.arguments for call in calls] == [
        {"filePath": "/w/buoy/colours.md"},
        {"command": "paint red"},
        {"query": "buoy"},
    ]
    assert [(one.text, one.exit_code, one.is_error) for one in results[:3]] == [
        ("red\nblue", None, None),
        ("no paint", 2, True),
        ("nothing", None, False),
    ]
    assert (results[3].tool, results[3].extra) == ("edit", {"paths": ["/w/buoy/buoy.py"]})


def test_without_the_models_own_words_the_editors_are_told() -> None:
    document = {
        "requests": [
            {
                "message": "x",
                "response": [
                    {
                        "kind": "toolInvocationSerialized",
                        "toolId": "run_in_terminal",
                        "toolCallId": "c",
                        "isComplete": True,
                        "pastTenseMessage": "Ran it",
                        "toolSpecificData": {"kind": "terminal", "commandLine": {"original": "a", "toolEdited": "b"}},
                    },
                    {
                        "kind": "toolInvocationSerialized",
                        "toolId": "t",
                        "resultDetails": {"input": '{"q": 1}', "output": [{"value": "out"}], "isError": True},
                    },
                    {
                        "kind": "toolInvocationSerialized",
                        "toolId": "u",
                        "resultDetails": [{"path": "/w/a", "scheme": "file"}],
                    },
                ],
            }
        ]
    }
    found = events_of(
        fold(SourceFile("/u/w/chatSessions/n.json", "copilot-vscode", Form.DOCUMENT, native="n"), document)
    )
    calls = [event for event in found if event.type is EventType.TOOL_CALL]
    results = [event for event in found if event.type is EventType.TOOL_RESPONSE]
    assert [call.arguments for call in calls] == [{"command": "b"}, {"q": 1}, None]
    assert [(one.text, one.is_error) for one in results] == [("Ran it", None), ("out", True)]


def test_calls_are_matched_by_id_and_those_never_shown_are_told_too() -> None:
    calls, results = events(DOCUMENT, EventType.TOOL_CALL), events(DOCUMENT, EventType.TOOL_RESPONSE)
    assert [(call.tool, call.arguments) for call in calls] == [
        ("create_file", {"_raw": "not json"}),
        ("list_dir", {"path": "/w"}),
    ]
    assert [(one.tool, one.text, one.is_error) for one in results] == [
        ("create_file", "", True),
        ("list_dir", "buoy", None),
    ]
    assert [event.text for event in events(DOCUMENT, EventType.ASSISTANT_RESPONSE)] == ["I create it."]
    assert [event.text for event in events(DOCUMENT, EventType.COMPACTION)] == ["A buoy was painted."]


def test_a_confirmation_opens_no_turn_and_a_pending_answer_has_no_end() -> None:
    parsed = read(CHANGES)
    assert [event.opens for event in events(CHANGES, EventType.USER_INPUT)] == [True, True, False]
    assert parsed[-2].reason == "the answer has not ended"
    end = events(CHANGES, EventType.RUNTIME)[0]
    assert end.time == 1777888809500
    assert end.extra == {"usage": {"promptTokens": 50, "outputTokens": 9}, "resolved_model": "gull-5-2026"}


def test_folders_models_and_attachments() -> None:
    assert {event.cwd for event in events(CHANGES)} == {"/w/buoy"}
    assert {event.cwd for event in events(DOCUMENT)} == {"c:/w/boat yard"}
    assert {event.cwd for event in events(WINDOW)} == {None}
    (prompt, *_) = events(CHANGES, EventType.USER_INPUT)
    assert prompt.extra == {"agent": "github.copilot.editsAgent", "attachments": ["/w/buoy/colours.md"]}
    assert events(CHANGES, EventType.ASSISTANT_RESPONSE)[0].generator == "copilot/gull-5"
    assert workspace_folder('{"folder":"vscode-remote://ssh-remote%2Bx/w"}') is None
    assert workspace_folder("not json") is None


def test_unknown_parts_and_lines_are_kept_whole() -> None:
    raws = [event.raw for event in events(CHANGES, EventType.UNKNOWN)]
    assert raws == [
        {"kind": "tide", "height": 3},
        {"record": "broken", "line": {"kind": 1, "k": ["requests", 7, "vote"], "v": 1}},
    ]


def test_keys_stay_when_a_session_grows() -> None:
    file = sources()[CHANGES]
    lines = Path(file.path).read_text(encoding="utf-8").splitlines(keepends=True)
    whole = {event.key for event in events_of(fold(file, "".join(lines)))}
    for cut in range(4, len(lines)):
        keys = {
            event.key for event in events_of(fold(file, "".join(lines[:cut]))) if event.type is not EventType.UNKNOWN
        }
        named = {key for key in keys if ":call:" not in key}
        assert named <= whole, "calls alone are renamed, when the model's own ids arrive"


@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_file_says(told: dict[str, Any]) -> None:
    assert str(Path(sources()[told["session"]].path)) == str(TESTS / told["file"])
    parsed = read(told["session"])
    known, found = facts_of(parsed), events_of(parsed)
    assert known["created"] == told["created"]
    assert hashed(known.get("title.generated")) == told["title"]
    turns = turns_of(found)
    assert [
        {
            "time": next(event.time for event in turn.events if event.opens),
            "prompt": hashed(turn.prompt),
            "ends": turn.ends,
            "final": hashed(turn.final.text if turn.final else None),
            "tools": turn.tools,
        }
        for turn in turns
    ] == told["turns"]


LEAF = scalars(nan=False)
# fmt: off
WORDS = st.sampled_from((
    "sessionId", "requests", "requestId", "message", "text", "response", "kind", "value", "toolId", "toolCallId",
    "toolSpecificData", "resultDetails", "input", "output", "isConfirmed", "type", "result", "metadata", "uri", "path",
    "toolCallRounds", "toolCalls", "id", "name", "arguments", "toolCallResults", "content", "modelState", "timestamp",
    "errorDetails", "timings", "totalElapsed", "summary", "inlineReference", "variableData", "variables", "folder",
    "creationDate", "customTitle", "commandLine", "terminalCommandState", "exitCode", "scheme", "agent", "node",
))
KINDS = st.sampled_from(("toolInvocationSerialized", "thinking", "textEditGroup", "inlineReference", "undoStop"))
# fmt: on
VALUE = values(WORDS, LEAF | KINDS, 20)


@given(st.lists(st.dictionaries(WORDS, VALUE, max_size=8), max_size=3), VALUE)
def test_wrong_shapes_are_no_errors(requests: list[Any], other: Any) -> None:
    file = SourceFile("/u/w/chatSessions/n.json", "copilot-vscode", Form.DOCUMENT, native="n")
    for document in ({"sessionId": other, "requests": requests}, {"requests": [{"response": requests}]}, other):
        found = fold(file, document)
        events_of(found)


@given(st.lists(st.fixed_dictionaries({"kind": st.integers(0, 3), "k": st.lists(LEAF, max_size=3), "v": VALUE})))
def test_any_log_of_changes_is_replayed(changes: list[Any]) -> None:
    file = SourceFile("/u/w/chatSessions/n.jsonl", "copilot-vscode", Form.TEXT, native="n")
    fold(file, "\n".join(json.dumps(change) for change in changes))


def test_deep_trees_are_cut() -> None:
    tree: Any = "x"
    for _ in range(500):
        tree = [tree]
    assert tree_text(tree) == ""
