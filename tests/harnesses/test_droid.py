"""Droid on invented sessions and captured runs, and on those of the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, needs_corpus
from outcrop.harnesses import Environment, SourceFile
from outcrop.harnesses.droid import HARNESS
from outcrop.model import ENCRYPTED_PLACEHOLDER, EventType, Parsed, Relation
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

HOME = FIXTURES / "droid" / "home"
FILES = found(HARNESS, HOME)
MAIN, CHILD = "d1000000-0000-4000-8000-00000000000a", "d1000000-0000-4000-8000-00000000000b"
FACTS = known_facts("droid")
NONE = SourceFile("/nowhere/s1.jsonl", "droid", native="s1")


def main() -> list[Parsed]:
    return read(HARNESS, FILES[f"sessions/-w-reef/{MAIN}.jsonl"])


def fold(*rows: dict[str, Any]) -> list[Parsed]:
    return read(HARNESS, NONE, list(rows))


def message(role: str, content: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": f"m{number}", "message": {"role": role, "content": content, **more}}


def test_it_is_a_harness() -> None:
    assert (HARNESS.name, HARNESS.agent, HARNESS.sources) == ("droid", "droid", ("droid",))
    assert HARNESS.resume_command(MAIN) == ["droid", "--resume", MAIN]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_variable_stands_for_the_home_folder(platform: str) -> None:
    home = Path("/home/gull")
    assert HARNESS.roots("droid", Environment(home, {}, platform)) == [home / ".factory"]
    chosen = Environment(home, {"FACTORY_HOME_OVERRIDE": "/work/f"}, platform)
    assert HARNESS.roots("droid", chosen) == [Path("/work/f/.factory")]


def test_sessions_are_found_and_their_settings_are_not(tmp_path: Path) -> None:
    assert sorted(FILES) == [f"sessions/-w-reef/{name}.jsonl" for name in (MAIN, CHILD)]
    for place in ("sessions/btw", "projects/-w"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "one.jsonl").write_text("{}\n")
    assert sorted(found(HARNESS, tmp_path)) == ["projects/-w/one.jsonl", "sessions/btw/one.jsonl"]


def test_turns_of_a_session() -> None:
    first, second = turns(main())
    assert (first.prompt, first.final and first.final.text) == ("mend the sails", "There is no thread.")
    assert (second.prompt, second.ends) == ("buy thread", "cancelled")
    assert facts_of(main())["title.generated"] == "Mend the sails"
    assert {event.cwd for event in events(main())} == {"/w/reef"}


def test_reminders_hooks_and_hidden_messages_are_no_prompts() -> None:
    told = {event.text: event.type for event in events(main())}
    assert told["You are on a ship."] is EventType.SYSTEM
    assert told["<system-reminder>\nBe brief.\n</system-reminder>"] is EventType.SYSTEM
    assert told["hook Stop"] is EventType.RUNTIME
    assert told["The sails are torn."] is EventType.COMPACTION


def test_calls_results_and_exit_codes() -> None:
    call, failed, own, nothing = events(main(), EventType.TOOL_CALL, EventType.TOOL_RESPONSE)[:4]
    assert (call.tool, call.arguments, call.model) == ("Execute", {"command": "sew"}, "tern-opus")
    assert (failed.tool, failed.exit_code, failed.is_error, failed.generator) == ("Execute", 127, True, "tern-opus")
    assert (own.tool, own.original_tool) == ("search_sessions", "mcp__outcrop__search_sessions")
    assert (nothing.tool, nothing.text, nothing.exit_code) == ("search_sessions", "nothing", None)


def test_sealed_thoughts_are_kept_sealed() -> None:
    thought, redacted = events(main(), EventType.REASONING)
    assert (thought.text, thought.extra) == ("Cloth first.", {"encrypted_content": "sig"})
    assert (redacted.text, redacted.extra) == (ENCRYPTED_PLACEHOLDER, {"encrypted_content": "sealed"})
    (cipher,) = events(fold(message("assistant", [], openaiEncryptedContent="x")), EventType.REASONING)
    assert (cipher.text, cipher.extra) == (ENCRYPTED_PLACEHOLDER, {"encrypted_content": "x"})


def test_a_delegated_session_and_a_fork_name_their_parents() -> None:
    told = facts_of(read(HARNESS, FILES[f"sessions/-w-reef/{CHILD}.jsonl"]))
    assert (told["parent"], told["relation"]) == (MAIN, Relation.SUBAGENT)
    told = facts_of(fold({"type": "session_start", "id": "s2", "parent": "s1", "forkedAtMessageId": "m9"}))
    assert (told["parent"], told["relation"]) == ("s1", Relation.FORK)


def test_random_ids_of_messages_tell_copies_and_short_ones_do_not() -> None:
    assert all(event.origin == (None, event.key) for event in events(main()) if event.key.startswith("d1"))
    assert all(event.origin is None for event in events(fold(message("user", "go"))))


def test_records_without_ids_are_known_by_what_they_say() -> None:
    rows = [{"type": "message", "session_id": "s", "role": "user", "text": "go"} for _ in range(40)]
    keys = [event.key for event in events(fold(*rows))]
    assert len(set(keys)) == 40
    assert max(map(len, keys)) < 60


def test_captured_output_of_a_run() -> None:
    rows: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "r", "model": "tern", "cwd": "/w", "id": "i"},
        {"type": "message", "role": "user", "text": "go", "id": "1", "timestamp": 1767812641000},
        {"type": "tool_call", "id": "c", "toolName": "Execute", "parameters": {"command": "x"}},
        {"type": "tool_result", "id": "c", "toolId": "Execute", "value": {"stdout": "no", "exitCode": 2}},
    ]
    done = {"type": "completion", "finalText": "done", "usage": {"input_tokens": 3}, "id": "e"}
    (turn,) = turns(fold(*rows, done))
    assert (turn.tools, turn.final and turn.final.text) == (["Execute"], "done")
    answer = turn.events[3]
    assert (answer.text, answer.exit_code, answer.is_error, answer.generator) == ("no", 2, True, "tern")
    (turn,) = turns(fold(*rows, {"type": "error", "message": "no key"}))
    assert turn.ends == "crashed"


def test_what_is_not_known_is_kept_whole() -> None:
    parsed = fold({"type": "tide", "id": "t"}, message("assistant", [{"type": "kelp"}], 2))
    assert [event.raw for event in events(parsed)] == [{"type": "tide", "id": "t"}, {"type": "kelp"}]


@pytest.mark.parametrize("one", FACTS, ids=lambda one: one["name"])
def test_sessions_are_what_their_facts_say(one: dict[str, Any]) -> None:
    hold(HARNESS, one)


@given(st.sampled_from(sorted(FILES)), st.sets(st.integers(0, 14)))
def test_reading_cut_anywhere_gives_the_same_items(path: str, cuts: set[int]) -> None:
    rows = rows_of(HARNESS, FILES[path])[1]
    assert read(HARNESS, FILES[path], rows, frozenset(cuts)) == read(HARNESS, FILES[path], rows)


# fmt: off
WORDS = (
    "type", "id", "timestamp", "message", "role", "content", "text", "thinking", "signature", "data", "name", "input",
    "tool_use_id", "is_error", "visibility", "hookEventName", "userMessageSource", "modelId", "openaiEncryptedContent",
    "openaiReasoningSummary", "title", "sessionTitle", "version", "cwd", "parent", "callingSessionId", "summaryText",
    "todos", "reason", "session_id", "toolName", "toolCallId", "parameters", "value", "stdout", "exitCode", "isError",
    "finalText", "usage", "source", "model",
)
KINDS = (
    "session_start", "message", "compaction_state", "todo_state", "agent_turn_outcome", "system", "tool_call",
    "tool_result", "completion", "error", "user", "assistant", "text", "tool_use", "thinking", "image", "",
)
# fmt: on
LEAF = scalars(KINDS)
VALUE = values(WORDS, LEAF, 10)
ROW = st.builds(
    lambda row, kind: {**row, "type": kind},
    st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=7),
    st.sampled_from(KINDS) | LEAF,
)


@given(st.lists(ROW, max_size=8))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]]) -> None:
    fed(HARNESS.reader(NONE, None, Beside()), rows)


@needs_corpus
def test_every_file_of_the_corpus_is_a_session_and_every_record_is_understood() -> None:
    folder = CORPUS / "droid"
    files = list(HARNESS.discover("droid", folder))
    assert sorted(file.path for file in files) == sorted(str(path) for path in folder.rglob("*") if path.is_file())
    for file in files:
        assert not events(read(HARNESS, file), EventType.UNKNOWN), file.path
        assert session_of(HARNESS, file)
