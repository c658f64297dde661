"""Gemini CLI on invented chats of both forms, and on those of the corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.gemini_cli import HARNESS
from outcrop.model import Event, EventType, Parsed, Relation
from reading import (
    FIXTURES,
    Beside,
    events,
    facts_of,
    fed,
    found,
    hold,
    known_facts,
    read,
    rows_of,
    scalars,
    session_of,
    turns,
    values,
)

HOME = FIXTURES / "gemini-cli" / "home"
FILES = found(HARNESS, HOME)
LINES = "tmp/reef/chats/session-2026-05-01T08-00-9e000000.jsonl"
AGENT = "tmp/reef/chats/9e000000-0000-4000-8000-00000000000a/9e000000-0000-4000-8000-00000000000b.jsonl"
DOCUMENT = next(path for path in FILES if path.endswith(".json"))
MAIN = "9e000000-0000-4000-8000-00000000000a"
FACTS = known_facts("gemini-cli")


def chat(*messages: dict[str, Any], form: Form = Form.DOCUMENT) -> list[Parsed]:
    file = SourceFile("/nowhere/s.json", "gemini-cli", form, native="s")
    rows = [{"id": f"m{n}", **message} for n, message in enumerate(messages)]
    if form is Form.LINES:
        return read(HARNESS, file, rows)
    return read(HARNESS, file, list(HARNESS.records(file, {"sessionId": "s", "messages": rows})))


def user(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "content": text, **more}


def model(text: Any = "", **more: Any) -> dict[str, Any]:
    return {"type": "gemini", "content": text, **more}


# Places


def test_it_is_a_harness() -> None:
    assert (HARNESS.name, HARNESS.agent, HARNESS.sources) == ("gemini-cli", "gemini", ("gemini-cli",))
    assert HARNESS.resume_command(MAIN) == ["gemini", "--resume", MAIN]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_variable_stands_for_the_home_folder(platform: str) -> None:
    home = Path("/home/gull")
    assert HARNESS.roots("gemini-cli", Environment(home, {}, platform)) == [home / ".gemini"]
    chosen = Environment(home, {"GEMINI_CLI_HOME": "/work/g"}, platform)
    assert HARNESS.roots("gemini-cli", chosen) == [Path("/work/g/.gemini")]


def test_chats_and_those_of_agents_are_found_and_nothing_else() -> None:
    told = {path: (file.form, file.native, file.parent) for path, file in FILES.items()}
    assert told == {
        LINES: (Form.LINES, "session-2026-05-01T08-00-9e000000", None),
        AGENT: (Form.LINES, f"{MAIN}/9e000000-0000-4000-8000-00000000000b", MAIN),
        DOCUMENT: (Form.DOCUMENT, "session-2026-01-02T03-04-9e000000", None),
    }


def test_a_root_without_tmp_is_a_folder_of_chats_whatever_their_names_say(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"sessionId": "a"}, indent=1))
    (tmp_path / "c.json").write_text(json.dumps({"sessionId": "c"}))
    (tmp_path / "b.jsonl").write_text(
        "\n".join(map(json.dumps, [{"sessionId": "b"}, {"id": "1", **user("go")}])) + "\n{"
    )
    files = found(HARNESS, tmp_path)
    assert {path: session_of(HARNESS, file) for path, file in files.items()} == {
        "a.jsonl": "a", "b.jsonl": "b", "c.json": "c",
    }  # fmt: skip
    assert [event.type for event in events(read(HARNESS, files["b.jsonl"]))] == [
        EventType.USER_INPUT, EventType.UNKNOWN,
    ]  # fmt: skip


def test_the_folder_of_a_project_is_told_by_its_marker_or_by_its_digest() -> None:
    assert {event.cwd for event in events(read(HARNESS, FILES[LINES]))} == {"/w/reef"}
    assert {event.cwd for event in events(read(HARNESS, FILES[DOCUMENT]))} == {"/w/dock"}


# Lines


def test_turns_of_a_chat_in_lines() -> None:
    first, second, third = turns(read(HARNESS, FILES[LINES]))
    assert (first.prompt, first.tools, first.ends) == ("list the ropes @rope.txt", ["run_shell_command"], "final")
    assert first.final is not None
    assert first.final.text == "One rope."
    assert (second.prompt, second.ends) == ("cut it", "cancelled")
    assert (third.prompt, third.ends) == ("keep it", "crashed")


def test_a_message_that_is_written_again_adds_what_is_new() -> None:
    parsed = read(HARNESS, FILES[LINES])
    before, after = parsed[3], parsed[4]
    thought, call = before.items
    assert isinstance(thought, Event)
    assert isinstance(call, Event)
    assert (thought.text, thought.model, call.arguments) == ("Ropes\nI list them.", "tern-flash", {"command": "ls"})
    response = after.items[0]
    assert isinstance(response, Event)
    assert (response.tool, response.text, response.is_error) == (
        "run_shell_command", "Output: rope.txt\nExit Code: 0", False,
    )  # fmt: skip
    assert (response.exit_code, response.time) == (0, 1777622407000)
    (carrier,) = (event for event in events(parsed) if event.extra and event.extra.get("usage", {}).get("total") == 113)
    assert carrier.key == thought.key
    assert carrier.extra == {"usage": {"input": 40, "cache_read": 60, "output": 9, "reasoning": 4, "total": 113}}


def test_a_message_that_says_something_else_later_changes_its_event() -> None:
    parsed = chat(user("go"), {**model("one"), "id": "a"}, {**model("one and two"), "id": "a"}, form=Form.LINES)
    (answer,) = events(parsed, EventType.ASSISTANT_RESPONSE)
    assert (answer.text, turns(parsed)[0].ends) == ("one and two", "final")
    again = chat(user("go"), {**user("go"), "id": "m0"}, form=Form.LINES)
    assert again[1].reason == "repeats a message"


def test_files_that_a_prompt_refers_to_are_the_programs_text() -> None:
    prompt, *added = turns(read(HARNESS, FILES[LINES]))[0].events
    assert prompt.text == "list the ropes @rope.txt"
    assert "hemp" in [event.text for event in added if event.type is EventType.SYSTEM]


def test_a_rewind_and_the_history_as_the_model_sees_it() -> None:
    parsed = read(HARNESS, FILES[LINES])
    (compaction,) = events(parsed, EventType.COMPACTION)
    assert "one rope" in compaction.text
    assert [event.text for event in events(parsed, EventType.USER_INPUT)].count("keep it") == 1
    assert any(event.text == "rewound the conversation" for event in events(parsed))
    told = facts_of(parsed)
    assert (told["title.summary"], told["summary"]) == ("Ropes are listed", "Ropes are listed")


def test_a_whole_chat_may_stand_on_one_line() -> None:
    file = SourceFile("/nowhere/s.jsonl", "gemini-cli", native="s")
    row = {"sessionId": "s", "messages": [{"id": "1", **user("go")}, {"id": "2", **model("gone")}]}
    (turn,) = turns(read(HARNESS, file, [row]))
    assert (turn.prompt, turn.final and turn.final.text) == ("go", "gone")


# Agents and documents


def test_an_agents_chat_is_a_session_with_a_parent() -> None:
    parsed = read(HARNESS, FILES[AGENT])
    assert session_of(HARNESS, FILES[AGENT]) == "9e000000-0000-4000-8000-00000000000b"
    told = facts_of(parsed)
    assert (told["parent"], told["relation"]) == (MAIN, Relation.SUBAGENT)


def test_an_agents_chat_that_names_its_parents_session_has_an_id_of_its_own() -> None:
    file = SourceFile("/t/chats/p/a.jsonl", "gemini-cli", native="p/a", parent="p")
    reader = HARNESS.reader(file, None, Beside())
    reader.feed({"sessionId": "p", "projectHash": "h"})
    assert reader.session == "p/a"


def test_what_the_program_says_first_opens_no_turn() -> None:
    parsed = read(HARNESS, FILES[DOCUMENT])
    (turn,) = turns(parsed)
    assert [event.type for event in turn.events] == [
        EventType.SYSTEM, EventType.USER_INPUT, EventType.ASSISTANT_RESPONSE,
    ]  # fmt: skip
    assert session_of(HARNESS, FILES[DOCUMENT]) == "9e000000-0000-4000-8000-00000000000c"


def test_own_tools_keep_one_name() -> None:
    parsed = chat(user("go"), model(toolCalls=[{"id": "1", "name": "mcp_outcrop_open", "args": {}, "status": "error"}]))
    call, answer = events(parsed)[1:]
    assert (call.tool, call.original_tool, answer.tool, answer.is_error) == ("open", "mcp_outcrop_open", "open", True)


def test_an_error_after_the_answer_does_not_crash_the_turn() -> None:
    parsed = chat(user("go"), model("gone"), {"type": "error", "content": "no theme of that name"})
    assert turns(parsed)[0].ends == "final"
    assert turns(chat(user("go"), {"type": "error", "content": "quota"}))[0].ends == "crashed"


def test_bare_contents_are_known_by_what_they_say() -> None:
    file = SourceFile("/nowhere/x.json", "gemini-cli", Form.DOCUMENT, native="x")
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "sealed"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a"}}}]},
        {"role": "model", "parts": [{"text": "gone"}]},
        {"role": "user", "parts": [{"text": "go"}]},
    ]
    parsed = read(HARNESS, file, list(HARNESS.records(file, contents)))
    first, second = turns(parsed)
    assert (first.tools, first.final and first.final.text, second.prompt) == (["ls"], "gone", "go")
    assert [event.time for event in events(parsed)] == [None] * 5
    assert all(len(event.key) < 80 for event in events(parsed))


def test_what_is_not_known_is_kept_whole() -> None:
    (event,) = events(chat({"type": "tide", "content": "3 m"}))
    assert (event.type, event.raw["type"]) == (EventType.UNKNOWN, "tide")


@pytest.mark.parametrize("one", FACTS, ids=lambda one: one["name"])
def test_sessions_are_what_their_facts_say(one: dict[str, Any]) -> None:
    hold(HARNESS, one)


# Robustness


@given(st.sampled_from([LINES, AGENT]), st.sets(st.integers(0, 14)))
def test_reading_cut_anywhere_gives_the_same_items(path: str, cuts: set[int]) -> None:
    rows = rows_of(HARNESS, FILES[path])[1]
    assert read(HARNESS, FILES[path], rows, frozenset(cuts)) == read(HARNESS, FILES[path], rows)


# fmt: off
WORDS = (
    "type", "id", "timestamp", "content", "displayContent", "parts", "text", "thought", "thoughts", "subject",
    "description", "toolCalls", "name", "args", "status", "result", "resultDisplay", "functionResponse", "functionCall",
    "response", "output", "error", "tokens", "input", "cached", "total", "model", "sessionId", "projectHash",
    "startTime", "summary", "$set", "$rewindTo", "messages", "history", "role", "ts", "meta", "directories", "kind",
    "inlineData", "mimeType", "data", "thoughtSignature", "memoryScratchpad",
)
NAMES = (
    "user", "gemini", "model", "info", "error", "warning", "success", "cancelled", "subagent", "Request cancelled.",
    "<state_snapshot>", "<session_context>", "--- Content from referenced files ---", "header", "m1", "m2", "",
)
# fmt: on
VALUE = values(WORDS, scalars(NAMES))
MESSAGE = st.builds(
    lambda row, kind: {**row, "type": kind},
    st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=7),
    st.sampled_from(NAMES),
)


@given(st.lists(MESSAGE | VALUE, max_size=8), st.sampled_from([Form.DOCUMENT, Form.LINES]))
def test_wrong_shapes_are_no_errors(rows: list[Any], form: Form) -> None:
    file = SourceFile("/nowhere/s.json", "gemini-cli", form, native="s")
    for document in (rows, {"sessionId": "s", "messages": rows}, *rows):
        reader = HARNESS.reader(file, None, Beside())
        whole = [row for row in rows if isinstance(row, dict)]
        fed(reader, whole if form is Form.LINES else HARNESS.records(file, document))


# The corpus


@needs_corpus
def test_every_file_of_the_corpus_is_a_chat_and_every_record_is_understood() -> None:
    """The corpus holds chats without the folders around them: each of its folders is a root of its own."""
    folder = CORPUS / "gemini-cli"
    files = list(HARNESS.discover("gemini-cli", folder))
    assert sorted(file.path for file in files) == sorted(str(path) for path in folder.rglob("*") if path.is_file())
    for file in files:
        parsed = read(HARNESS, file)
        assert not events(parsed, EventType.UNKNOWN), file.path
        assert session_of(HARNESS, file)
