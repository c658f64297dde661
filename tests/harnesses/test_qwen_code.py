"""Qwen Code on invented sessions of all its generations, and on those of the corpus.

Numbers in test names are the tricky cases of the format reference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile, jsonl
from outcrop.harnesses.qwen_code import HARNESS
from outcrop.harnesses.qwen_code.system import SUBTYPES
from outcrop.model import EventType, Fact, Parsed, Relation
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

HOME = FIXTURES / "qwen-code" / "home"
FILES = found(HARNESS, HOME)
MAIN, FORK = "5c1e0000-0000-4000-8000-00000000000a", "5c1e0000-0000-4000-8000-00000000000b"
CHATS = "projects/-w-reef/chats/"
AGENT = f"projects/-w-reef/subagents/{MAIN}/agent-explore-7f3c.jsonl"
FACTS = known_facts("qwen-code")
NONE = SourceFile("/nowhere/s1.jsonl", "qwen-code", native="s1")


def record(kind: str, number: int, parts: Any = None, **more: Any) -> dict[str, Any]:
    row = {"type": kind, "uuid": f"u{number}", "sessionId": "s1", "timestamp": f"2026-01-01T00:00:{number:02}Z", **more}
    if parts is not None:
        row["message"] = {"parts": [{"text": parts}] if isinstance(parts, str) else parts}
    return row


def fold(*rows: dict[str, Any]) -> list[Parsed]:
    return read(HARNESS, NONE, list(rows))


def main() -> list[Parsed]:
    return read(HARNESS, FILES[f"{CHATS}{MAIN}.jsonl"])


# Places


def test_it_is_a_harness() -> None:
    assert (HARNESS.name, HARNESS.agent, HARNESS.sources) == ("qwen-code", "qwen", ("qwen-code",))
    assert HARNESS.resume_command(MAIN) == ["qwen", "--resume", MAIN]
    assert HARNESS.resume_command(f"{MAIN}/agent-explore-7f3c") is None


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_roots_obey_the_environment(platform: str) -> None:
    home = Path("/home/gull")

    def roots(**variables: str) -> list[Path]:
        return HARNESS.roots("qwen-code", Environment(home, variables, platform))

    assert roots() == [home / ".qwen"]
    assert roots(QWEN_HOME="~/q") == [home / "q"]
    assert roots(QWEN_RUNTIME_DIR="/run/q") == [Path("/run/q"), home / ".qwen"]
    assert roots(QWEN_RUNTIME_DIR="/run/q", QWEN_HOME="/h") == [Path("/run/q"), Path("/h")]


def test_sessions_archives_agents_and_old_documents_are_found_and_nothing_else() -> None:
    told = {path: (file.form, file.role, file.native, file.parent) for path, file in FILES.items()}
    lines = Form.LINES
    assert told == {
        f"{CHATS}{MAIN}.jsonl": (lines, "transcript", MAIN, None),
        f"{CHATS}{FORK}.jsonl": (lines, "transcript", FORK, None),
        f"{CHATS}archive/5c1e0000-0000-4000-8000-00000000000c.jsonl": (
            lines, "transcript", "5c1e0000-0000-4000-8000-00000000000c", None,
        ),
        AGENT: (lines, "agent", f"{MAIN}/agent-explore-7f3c", MAIN),
        "tmp/0123abcd/chats/session-2025-09-01T10-00-5c1e000d.json": (Form.DOCUMENT, "chat", None, None),
    }  # fmt: skip


def test_a_root_without_projects_is_a_folder_of_sessions(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text("{}\n")
    (tmp_path / "settings.json").write_text("{}")
    assert list(found(HARNESS, tmp_path)) == ["one.jsonl"]


# A session


def test_prompts_are_what_was_typed_and_added_text_is_the_programs() -> None:
    first = turns(main())[0]
    prompt, added = first.events[:2]
    assert (prompt.text, prompt.opens, prompt.cwd, prompt.branch) == ("count the buoys", True, "/w/reef", "main")
    assert added.type is EventType.SYSTEM
    assert "the tide is low" in added.text
    assert prompt.time == 1793610901250


def test_mid_turn_messages_belong_to_the_running_turn() -> None:
    first = turns(main())[0]
    said = [event for event in first.events if event.type is EventType.USER_INPUT]
    assert [(event.text, event.opens) for event in said] == [
        ("count the buoys", True),
        ("they are in markers.txt", False),
    ]
    assert (first.ends, first.final and first.final.text) == ("final", "There are 7 buoys.")


def test_calls_are_joined_to_their_results() -> None:
    by_id = {(event.type, event.call_id): event for event in events(main())}
    call = by_id[EventType.TOOL_CALL, "c1"]
    shell = by_id[EventType.TOOL_RESPONSE, "c1"]
    assert call.arguments == {"command": "wc -l buoys.txt", "is_background": False}
    assert (shell.tool, shell.exit_code, shell.is_error) == ("run_shell_command", 1, True)
    assert shell.extra == {"durationMs": 12, "errorType": "shell_execute_error", "status": "error"}
    own = by_id[EventType.TOOL_RESPONSE, "c2"]
    assert (own.tool, own.original_tool, own.is_error, own.exit_code) == ("open", "mcp__outcrop__open", False, None)


def test_a_cancelled_call_after_which_nothing_comes_ends_the_turn() -> None:
    last = turns(main())[-1]
    assert (last.events[0].text, last.ends) == ("paint them green", "cancelled")
    going_on = fold(
        record("user", 1, "go"),
        record("assistant", 2, [{"functionCall": {"id": "c", "name": "ls"}}]),
        record("tool_result", 3, [{"functionResponse": {"id": "c"}}], toolCallResult={"status": "cancelled"}),
        record("assistant", 4, "then not"),
    )
    assert turns(going_on)[0].ends == "final"


def test_tokens_are_counted_once_for_records_that_share_a_uuid() -> None:
    counts = {"input": 100, "cache_read": 800, "output": 40, "reasoning": 10, "total": 950}
    assert [event.extra["usage"] for event in events(main()) if event.extra and "usage" in event.extra] == [counts]
    twice = [record("assistant", 1, text, usageMetadata={"totalTokenCount": 9}) for text in ("a", "b")]
    assert len([event for event in events(fold(*twice)) if event.extra]) == 1


def test_the_model_stands_on_what_it_said_and_generates_what_tools_answered() -> None:
    for event in events(main()):
        generated = event.type in (EventType.ASSISTANT_RESPONSE, EventType.REASONING, EventType.TOOL_CALL)
        assert event.model == ("tern-coder" if generated else None)
        assert event.generator == ("tern-coder" if generated or event.type is EventType.TOOL_RESPONSE else None), (
            event.type
        )


# Tricky cases


def test_T3_two_records_glued_on_one_line_are_both_read() -> None:
    line = json.dumps(record("user", 1, 'say {"a": 1}')) + json.dumps(record("assistant", 2, "yes"))
    rows, faults = jsonl.records(line.encode())
    assert not faults
    assert [event.text for event in events(fold(*rows))] == ['say {"a": 1}', "yes"]


def test_T92_records_with_one_uuid_give_events_of_their_own() -> None:
    thought, call = events(main(), EventType.REASONING, EventType.TOOL_CALL)[:2]
    assert (thought.type, call.type) == (EventType.REASONING, EventType.TOOL_CALL)
    assert thought.key.rpartition(":")[0] == call.key.rpartition(":")[0]
    assert thought.key != call.key


def test_T93_a_branch_begins_with_copies_that_name_their_origin() -> None:
    parsed = read(HARNESS, FILES[f"{CHATS}{FORK}.jsonl"])
    own = {event.key for event in events(main())}
    copied = [event for event in events(parsed) if event.origin]
    assert copied
    assert {event.origin for event in copied} == {(MAIN, event.key) for event in copied}
    assert {event.key for event in copied} < own
    opener = next(event for event in events(parsed) if event.opens and not event.origin)
    assert opener.text == "now count the boats"
    told = facts_of(parsed)
    assert (told["parent"], told["relation"], told["title.user"]) == (MAIN, Relation.FORK, "Buoys again")
    assert "title.generated" not in told


def test_T94_a_rewind_keeps_both_branches_and_goes_on_in_its_turn() -> None:
    made = turns(main())
    assert [turn.prompt for turn in made] == ["count the buoys", "paint them red", "paint them green"]
    assert [turn.final and turn.final.text for turn in made] == ["There are 7 buoys.", "They are red now.", None]
    rewound = next(event for event in made[0].events if event.text == "rewound the conversation")
    assert rewound.type is EventType.SYSTEM


def test_T94_an_answer_behind_the_record_that_a_rewind_goes_back_to_is_no_answer_any_more() -> None:
    rows = [
        record("user", 1, "go"),
        record("assistant", 2, "east"),
        record("system", 3, subtype="rewind", parentUuid="u1"),
        record("assistant", 4, "west", parentUuid="u3"),
    ]
    (before,) = turns(fold(*rows[:3]))
    assert before.ends is None
    assert [event.superseded for event in before.events] == [False, True, False]
    (after,) = turns(fold(*rows))
    assert after.final is not None
    assert after.final.text == "west"


def test_T95_compressed_and_bootstrapped_history_gives_no_events() -> None:
    (compaction,) = events(main(), EventType.COMPACTION)
    assert "buoys were counted" in compaction.text
    assert not any(event.text == "Got it." for event in events(main()))
    agent = read(HARNESS, FILES[AGENT])
    assert not any("buoys" in event.text for event in events(agent))
    assert agent[0].reason == "history of the parent session"


def test_T96_a_repeated_title_is_one_title() -> None:
    titles = [item for one in main() for item in one.items if isinstance(item, Fact) and item.name.startswith("title")]
    assert titles == [Fact("title.generated", "Buoy count")]
    named = [
        record("system", n, subtype="custom_title", systemPayload={"customTitle": title, **source})
        for n, (title, source) in enumerate([("A", {}), ("B", {"titleSource": "auto"})], 1)
    ]
    told = facts_of(fold(*named))
    assert (told["title.user"], told["title.generated"]) == (None, "B")


def test_T97_an_agents_file_is_a_session_of_its_own() -> None:
    parsed = read(HARNESS, FILES[AGENT])
    assert session_of(HARNESS, FILES[AGENT]) == f"{MAIN}/agent-explore-7f3c"
    told = facts_of(parsed)
    assert (told["parent"], told["relation"], told["agent"]) == (MAIN, Relation.SUBAGENT, "explore")
    assert told["title.generated"] == "Find sandbanks"
    (turn,) = turns(parsed)
    assert (turn.prompt, turn.final and turn.final.text) == ("look for sandbanks", "No sandbanks.")
    assert parsed[2].reason == "repeats the prompt"


def test_an_agent_of_an_agent_has_that_one_as_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "projects" / "p" / "subagents" / "s1" / "agent-b.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record("user", 1, "look", agentId="b", isSidechain=True)) + "\n")
    path.with_suffix(".meta.json").write_text(json.dumps({"parentAgentId": "a"}))
    (file,) = found(HARNESS, tmp_path).values()
    assert facts_of(read(HARNESS, file))["parent"] == "s1/agent-a"


# Records of the program's own


def test_notices_are_no_prompts_and_a_delivered_one_begins_a_turn() -> None:
    rows = [
        record("user", 1, "go"),
        record("assistant", 2, "done"),
        record("user", 3, "the shell ended", subtype="notification", provenance="system"),
        record("user", 4, "wake up", subtype="notification", deliveredTurn=True),
        record("assistant", 5, "awake"),
    ]
    parsed = fold(*rows)
    assert [event.text for event in events(parsed, EventType.USER_INPUT)] == ["go"]
    first, second = turns(parsed)
    assert [event.text for event in first.events] == ["go", "done", "the shell ended"]
    assert (second.prompt, second.final and second.final.text) == (None, "awake")


@pytest.mark.parametrize(
    ("payload", "ends"),
    [
        ({"state": "completed"}, "final"),
        ({"state": "cancelled"}, "cancelled"),
        ({"state": "error", "error": {"message": "no quota"}}, "crashed"),
        ({"error": "no quota"}, "crashed"),
    ],
)
def test_the_result_of_a_turn_ends_it(payload: dict[str, Any], ends: str) -> None:
    parsed = fold(
        record("user", 1, "go"),
        record("assistant", 2, "ok"),
        record("system", 3, subtype="turn_result", systemPayload=payload),
    )
    (turn,) = turns(parsed)
    assert turn.ends == ends
    assert turn.events[-1].text == ("no quota" if ends == "crashed" else f"turn {payload['state']}")


def test_failed_requests_are_told_and_do_not_end_a_turn() -> None:
    told = {"event.name": "qwen-code.api_error", "error_message": "502", "status_code": 502}
    parsed = fold(
        record("user", 1, "go"),
        record("system", 2, subtype="ui_telemetry", systemPayload={"uiEvent": told}),
    )
    error = events(parsed)[-1]
    assert (error.type, error.text, error.ends) == (EventType.RUNTIME, "502", None)


def test_references_and_commands_are_the_programs_and_keep_what_they_touched() -> None:
    parsed = fold(
        record("system", 1, subtype="slash_command", systemPayload={"phase": "invocation", "rawCommand": "/about"}),
        record(
            "system",
            2,
            subtype="slash_command",
            systemPayload={"phase": "result", "rawCommand": "/about", "outputHistoryItems": [{"text": "v1"}]},
        ),
        record(
            "system",
            3,
            subtype="at_command",
            systemPayload={"filesRead": ["/w/a"], "status": "success", "userText": "@a"},
        ),
    )
    assert [event.text for event in events(parsed)] == ["/about", "v1", "@a"]
    assert {event.type for event in events(parsed)} == {EventType.SYSTEM}
    assert events(parsed)[-1].extra == {"paths": ["/w/a"], "status": "success"}


def test_results_on_the_users_side_of_old_versions_open_no_turn() -> None:
    parsed = fold(
        record("user", 1, "go"),
        record("assistant", 2, [{"functionCall": {"name": "ls", "args": {}}}]),
        record("user", 3, [{"functionResponse": {"name": "ls", "response": {"output": "a"}}}]),
    )
    assert [event.opens for event in events(parsed)] == [True, False, False]
    assert (events(parsed)[-1].tool, events(parsed)[-1].text) == ("ls", "a")


def test_a_sub_session_names_its_parent_and_only_a_known_kind_is_understood() -> None:
    parsed = fold(record("system", 1, subtype="parent_session", systemPayload={"parentSessionId": "p"}))
    assert facts_of(parsed)["parent"] == "p"
    (unknown,) = events(fold(record("system", 1, subtype="tide_table", systemPayload={})))
    assert (unknown.type, unknown.raw["subtype"]) == (EventType.UNKNOWN, "tide_table")


def test_a_document_of_the_first_generation_is_read_as_gemini_cli_wrote_it() -> None:
    (file,) = (file for file in FILES.values() if file.form is Form.DOCUMENT)
    parsed = read(HARNESS, file)
    (turn,) = turns(parsed)
    assert (turn.prompt, turn.final and turn.final.text) == ("which way is north?", "That way.")
    assert session_of(HARNESS, file) == "5c1e000d-0000-4000-8000-00000000000d"


@pytest.mark.parametrize("one", FACTS, ids=lambda one: one["name"])
def test_sessions_are_what_their_facts_say(one: dict[str, Any]) -> None:
    hold(HARNESS, one)


# Robustness


@given(st.sampled_from(sorted(path for path in FILES if path.endswith(".jsonl"))), st.sets(st.integers(0, 20)))
def test_reading_cut_anywhere_gives_the_same_items(path: str, cuts: set[int]) -> None:
    rows = rows_of(HARNESS, FILES[path])[1]
    assert read(HARNESS, FILES[path], rows, frozenset(cuts)) == read(HARNESS, FILES[path], rows)


# fmt: off
WORDS = (
    "type", "subtype", "uuid", "parentUuid", "sessionId", "timestamp", "message", "parts", "text", "thought", "id",
    "functionCall", "functionResponse", "name", "args", "response", "output", "error", "toolCallResult", "callId",
    "status", "resultDisplay", "systemPayload", "displayText", "customTitle", "titleSource", "compressedHistory",
    "info", "filesRead", "phase", "outputHistoryItems", "uiEvent", "error_message", "state", "forkedFrom",
    "messageUuid", "usageMetadata", "totalTokenCount", "promptTokenCount", "model", "agentId", "isSidechain",
    "provenance", "deliveredTurn", "externalInputKind", "parentSessionId", "modelId", "inlineData", "mimeType",
    "data", "version",
)
# fmt: on
LEAF = scalars(["u1", "u2", "s1", "success", "cancelled", "notification", "<system-reminder>", "{}"])
VALUE = values(WORDS, LEAF)


@st.composite
def odd_records(draw: st.DrawFn) -> dict[str, Any]:
    row = draw(st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=7))
    kind = draw(st.sampled_from(["user", "assistant", "tool_result", "system"]))
    if draw(st.booleans()):
        parts = st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=4)
        row["message"] = {"parts": draw(st.lists(parts, max_size=3))}
    subtype = draw(st.sampled_from(["mid_turn_user_message", "cron", *SUBTYPES]))
    return {**row, "type": kind if draw(st.integers(0, 9)) else draw(LEAF), "subtype": draw(st.just(subtype) | LEAF)}


@given(st.lists(odd_records(), max_size=8), st.sampled_from([NONE, FILES[AGENT]]))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]], file: SourceFile) -> None:
    fed(HARNESS.reader(file, None, Beside()), [record("user", 1, "go"), *rows])


# The corpus


@needs_corpus
def test_every_file_of_the_corpus_is_a_session_and_every_record_is_understood() -> None:
    roots = [path.parent for path in (CORPUS / "qwen").rglob("projects") if path.is_dir()]
    roots.append(next((CORPUS / "qwen").rglob("agents/qwen")))
    files = [file for root in roots for file in HARNESS.discover("qwen-code", root)]
    assert sorted(file.path for file in files) == sorted(
        str(path) for path in (CORPUS / "qwen").rglob("*") if path.is_file()
    )
    for file in files:
        assert not events(read(HARNESS, file), EventType.UNKNOWN), file.path
