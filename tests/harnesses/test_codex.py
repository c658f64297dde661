"""The Codex adapter on invented rollouts of all three generations.

Numbers in test names are the tricky cases of the format reference. Whole files stand in `fixtures/codex/home`; small
cases are written out here.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.harnesses import Environment, Form, Harness, Reader, SourceFile, load
from outcrop.harnesses.codex import HARNESS
from outcrop.harnesses.codex.reader import _HANDLERS
from outcrop.harnesses.codex.records import output, uuid7_ms
from outcrop.harnesses.moments import iso_ms
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Fact, Parsed, Relation
from reading import NoSide, fed, scalars, values

HOME = Path(__file__).parent.parent / "fixtures" / "codex" / "home"
PARENT = "01a19b7c-a680-7001-8000-000000000001"
FORK = "01a1a0a3-0280-7005-8000-000000000005"
CHILD = "01a1a5c9-5e80-7007-8000-000000000007"
OLD = "9cd28a74-0000-4000-8000-000000000001"
RESUMED = "613a9a68-0000-4000-8000-000000000002"
BARE = "5973b6c0-94b8-487b-a530-2aeb6098ae0e"
DOCUMENT = "0b7a1a52-1111-4222-8333-444455556666"


def reader(native: str | None = None, state: dict[str, Any] | None = None, path: str = "/r/rollout.jsonl") -> Reader:
    return HARNESS.reader(SourceFile(path, "codex", native=native), state, NoSide())


def source(native: str) -> SourceFile:
    return next(file for file in HARNESS.discover("codex", HOME) if file.native == native)


def records(native: str) -> list[dict[str, Any]]:
    file = source(native)
    data = Path(file.path).read_bytes()
    if file.form is Form.DOCUMENT:
        return list(HARNESS.records(file, json.loads(data)))
    return [json.loads(line) for line in data.split(b"\n") if line]


def read(rows: list[dict[str, Any]], native: str | None = None, cuts: frozenset[int] = frozenset()) -> list[Parsed]:
    fold, parsed = reader(native), []
    for number, row in enumerate(rows):
        if number in cuts:
            fold = reader(native, json.loads(json.dumps(fold.state())))
        parsed.append(fold.feed(row))
        assert parsed[-1].items or parsed[-1].reason, row
    return parsed


def events(parsed: list[Parsed], *types: EventType) -> list[Event]:
    """Events as they stand in the end, with later amendments in them."""
    found: dict[str, Event] = {}
    for one in parsed:
        for item in one.items:
            if isinstance(item, Event):
                assert item.key not in found, "keys are unique"
                found[item.key] = item
            elif isinstance(item, Amend):
                for name, value in item.changes.items():
                    old = getattr(found[item.key], name)
                    setattr(found[item.key], name, {**(old or {}), **value} if name == "extra" else value)
    return [event for event in found.values() if not types or event.type in types]


def facts(parsed: list[Parsed]) -> dict[str, Any]:
    return {item.name: item.value for one in parsed for item in one.items if isinstance(item, Fact)}


def env(kind: str, time: str | None = None, **payload: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"type": kind, "payload": payload}
    return {"timestamp": time, **row} if time else row


def env_typed(kind: str, sub: str, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "payload": {"type": sub, **payload}}


def said(role: str, *texts: str, **more: Any) -> dict[str, Any]:
    block = "output_text" if role == "assistant" else "input_text"
    content = [{"type": block, "text": text} for text in texts]
    return env_typed("response_item", "message", role=role, content=content, **more)


def prompt(text: str, **more: Any) -> dict[str, Any]:
    return env_typed("event_msg", "user_message", message=text, **more)


def answer(text: str, **more: Any) -> dict[str, Any]:
    return env_typed("event_msg", "agent_message", message=text, **more)


def msg(sub: str, **more: Any) -> dict[str, Any]:
    return env_typed("event_msg", sub, **more)


def res(sub: str, **more: Any) -> dict[str, Any]:
    return env_typed("response_item", sub, **more)


META = {"timestamp": "2026-11-02T09:00:00.000Z", "type": "session_meta", "payload": {"id": OLD, "cwd": "/w"}}


def started(turn: str) -> dict[str, Any]:
    return msg("task_started", turn_id=turn)


# Where files are


def test_it_is_a_harness() -> None:
    harness: Harness = load("codex")
    assert (harness.name, harness.agent, harness.sources) == ("codex", "codex", ("codex",))
    assert harness.resume_command("x") == ["codex", "resume", "x"]


def test_the_root_obeys_codex_home() -> None:
    home = Path("/home/u")
    assert HARNESS.roots("codex", Environment(home)) == [home / ".codex"]
    assert HARNESS.roots("codex", Environment(home, {"CODEX_HOME": "/data/codex"})) == [Path("/data/codex")]
    assert HARNESS.roots("codex", Environment(home, {"CODEX_HOME": ""})) == [home / ".codex"]


def test_discover_lists_rollouts_and_the_index_and_nothing_else() -> None:
    found = {os.path.relpath(file.path, HOME): file for file in HARNESS.discover("codex", HOME)}
    assert "history.jsonl" not in found
    assert found["session_index.jsonl"].role == "index"
    forms = {file.native: file.form for file in found.values()}
    assert forms[DOCUMENT] is Form.DOCUMENT
    assert forms[CHILD] is Form.LINES
    assert len(found) == 8
    assert list(HARNESS.discover("codex", HOME / "nowhere")) == []


def test_T7_of_a_plain_and_a_compressed_file_only_the_plain_one_is_read(tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "11" / "02"
    day.mkdir(parents=True)
    archive = tmp_path / "archived_sessions"
    (archive / "deeper").mkdir(parents=True)
    for place in (day / f"a-{PARENT}.jsonl", day / f"a-{PARENT}.jsonl.zst", day / f"b-{FORK}.jsonl.zst"):
        place.write_bytes(b"")
    (archive / f"c-{OLD}.jsonl").write_bytes(b"")
    (archive / "deeper" / "d.jsonl").write_bytes(b"")
    (day / "notes.json").write_bytes(b"{}")
    found = [(os.path.basename(file.path), file.form) for file in HARNESS.discover("codex", tmp_path)]
    assert found == [
        (f"a-{PARENT}.jsonl", Form.LINES),
        (f"b-{FORK}.jsonl.zst", Form.ZSTD_LINES),
        (f"c-{OLD}.jsonl", Form.LINES),
    ]


def test_links_out_of_the_root_are_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "codex", tmp_path / "outside"
    (root / "sessions").mkdir(parents=True)
    outside.mkdir()
    (outside / "x.jsonl").write_bytes(b"")
    (root / "sessions" / "y.jsonl").write_bytes(b"")
    (root / "sessions" / "link.jsonl").symlink_to(outside / "x.jsonl")
    (root / "sessions" / "folder").symlink_to(outside)
    (root / "archived_sessions").symlink_to(outside)
    (root / "session_index.jsonl").symlink_to(outside / "x.jsonl")
    assert [os.path.basename(file.path) for file in HARNESS.discover("codex", root)] == ["y.jsonl"]


def test_T7_keys_do_not_depend_on_where_the_file_lies() -> None:
    rows = records(PARENT)
    here = reader(PARENT, path="/a/sessions/2026/11/02/x.jsonl")
    there = reader(None, path="/b/archived_sessions/y.jsonl.zst")
    assert [here.feed(row) for row in rows] == [there.feed(row) for row in rows]
    assert here.session == there.session == PARENT


# Prompts and turns


def test_T15_a_prompt_in_both_streams_is_one_user_input() -> None:
    parsed = read(records(PARENT))
    asked = events(parsed, EventType.USER_INPUT)
    assert [(one.text, one.opens) for one in asked] == [
        ("Make the parser faster", True),
        ("and keep the tests green", False),
        ("continue", True),
        ("continue", True),
    ]
    assert facts(parsed)["label"] == "Make the parser faster"
    assert not any(one.settles for one in asked)


def test_T15_the_screen_may_come_first() -> None:
    parsed = read([META, prompt("hello"), said("user", "hello"), answer("hi"), said("assistant", "hi", phase="x")])
    assert [(one.type.value, one.text) for one in events(parsed)[1:]] == [
        ("user_input", "hello"),
        ("assistant_response", "hi"),
    ]
    assert events(parsed)[-1].extra == {"phase": "x"}


def test_the_words_of_the_screen_are_the_cleaner_ones() -> None:
    parsed = read([META, said("user", "do ", "this"), prompt("do this")])
    assert [one.text for one in events(parsed, EventType.USER_INPUT)] == ["do this"]


def test_T16_bare_lines_have_user_inputs_without_events() -> None:
    parsed = read(records(BARE))
    found = events(parsed)
    assert [one.text for one in found if one.type is EventType.USER_INPUT] == ["List the files", "Thanks"]
    assert all(one.settles and one.opens for one in found if one.type is EventType.USER_INPUT)
    assert [one.type.value for one in found] == [
        "system",
        "system",
        "user_input",
        "reasoning",
        "tool_call",
        "tool_response",
        "assistant_response",
        "user_input",
        "assistant_response",
    ]
    assert found[0].time == iso_ms("2025-05-07T15:24:21.000Z")
    assert {one.time for one in found[1:]} == {None}
    assert (found[5].text, found[5].exit_code, found[5].tool) == ("a.py\n", 0, "shell")
    assert found[5].branch == "trunk"
    assert {one.reason for one in parsed if one.kind == "bare/record_type"} == {"separator"}
    assert "label" not in facts(parsed)


def test_the_time_of_a_file_name_is_the_last_resort() -> None:
    path = f"/r/rollout-2025-05-07T17-24-21-{BARE}.jsonl"
    first = reader(BARE, path=path).feed({"type": "message", "role": "user", "content": "hi"})
    assert isinstance(first.items[0], Event)
    assert first.items[0].time is not None
    assert reader(BARE, path=path).feed(records(BARE)[0]).items[0].time == iso_ms("2025-05-07T15:24:21Z")  # type: ignore[union-attr]


def test_T17_blocks_of_one_message_are_told_apart() -> None:
    row = said("user", "# AGENTS.md instructions for /w\nx", "<environment_context>\n</environment_context>", "Fix it")
    found = events(read([META, row]))[1:]
    assert [(one.type.value, one.text[:6]) for one in found] == [
        ("system", "# AGEN"),
        ("system", "<envir"),
        ("user_input", "Fix it"),
    ]


def test_a_block_in_one_unknown_tag_is_injected_where_screens_are_recorded() -> None:
    text = "<brand_new_context>\nsecrets of the program\n</brand_new_context>"
    assert events(read([META, said("user", text)]))[1].type is EventType.SYSTEM
    bare = {"type": "message", "role": "user", "content": text}
    assert events(read([records(BARE)[0], bare]))[1].type is EventType.USER_INPUT


def test_T18_a_fork_repeats_its_parent_with_the_parents_keys() -> None:
    parent = events(read(records(PARENT)))
    parsed = read(records(FORK))
    told = facts(parsed)
    assert (told["parent"], told["relation"]) == (PARENT, Relation.FORK)
    assert told["label"] == "Do it with a table instead"
    assert "title.generated" not in told
    copied = [one for one in events(parsed) if one.origin is not None]
    assert [one.key for one in copied] == [one.key for one in parent[1 : 1 + len(copied)]]
    assert all(one.origin == (PARENT, one.key) for one in copied)
    own = [one for one in events(parsed) if one.origin is None]
    assert [one.text for one in own if one.type is EventType.USER_INPUT] == ["Do it with a table instead"]
    assert [one.ends for one in own if one.ends] == [End.FINAL]
    assert not [one for one in own if one.extra and "usage" in one.extra], "copied tokens are not counted again"
    assert own[-1].cwd == "/w/fork"


def test_T18_a_copied_turn_belongs_to_the_session_that_ran_it() -> None:
    def turn(minute: int) -> str:
        return f"{1_790_000_000_000 + minute * 60_000:012x}"

    def uuid(minute: int, last: int) -> str:
        head = turn(minute)
        return f"{head[:8]}-{head[8:]}-7000-8000-{last:012d}"

    grandparent, parent, child = uuid(0, 1), uuid(10, 2), uuid(20, 3)
    rows = [env("session_meta", id=child, forked_from_id=parent)]
    rows += [env("session_meta", id=parent), env("session_meta", id=grandparent)]
    for minute in (1, 11, 21):
        rows += [started(uuid(minute, 4)), prompt(f"at {minute}")]
    asked = events(read(rows), EventType.USER_INPUT)
    assert [one.origin and one.origin[0] for one in asked] == [grandparent, parent, None]


def test_T18_a_resumed_old_session_continues_the_one_that_it_copies() -> None:
    original = events(read(records(OLD)))
    parsed = read(records(RESUMED))
    told = facts(parsed)
    assert (told["parent"], told["relation"]) == (OLD, Relation.CONTINUATION)
    copied = [one for one in events(parsed) if one.origin is not None]
    assert [one.key for one in copied] == [one.key for one in original[1:]]
    own = [one for one in events(parsed) if one.origin is None][1:]
    assert [one.text for one in own] == ["continue", "Step four.", "turn aborted: interrupted"]
    assert own[0].key not in {one.key for one in copied}


def test_T19_a_subagent_without_copied_history_loses_nothing() -> None:
    parsed = read(records(CHILD))
    told = facts(parsed)
    assert (told["parent"], told["relation"], told["agent"]) == (PARENT, Relation.SUBAGENT, "Scout")
    assert all(one.origin is None for one in events(parsed))
    assert [one.text for one in events(parsed, EventType.USER_INPUT)] == ["Find every caller of parse"]


def test_words_between_agents_are_prompts_only_for_the_one_they_are_meant_for() -> None:
    def sent(recipient: str, text: str) -> dict[str, Any]:
        content = [{"type": "encrypted_content", "encrypted_content": text}]
        return res("agent_message", author="/root", recipient=recipient, content=content)

    header = env("session_meta", id=CHILD, agent_path="/root/scout")
    rows = [
        header,
        sent("/root/scout", "look"),
        sent("/root/other", "rest"),
        sent("/root/scout", "gAAAAx"),
        sent("/", ""),
    ]
    assert [(one.type.value, one.text) for one in events(read(rows))[1:]] == [
        ("user_input", "look"),
        ("system", "rest"),
        ("system", "[encrypted message omitted]"),
        ("unknown", ""),
    ]


def test_reviews_and_plans_that_stand_nowhere_else_are_answers() -> None:
    review = {"overall_explanation": "Sound.", "findings": [{"title": "Bug", "body": "in a.py"}]}
    rows = [META, started("t"), prompt("review"), msg("exited_review_mode", review_output=review)]
    rows += [msg("item_completed", item={"type": "Plan", "text": "1. Fix"}), said("assistant", "1. Fix")]
    assert [one.text for one in events(read(rows), EventType.ASSISTANT_RESPONSE)] == [
        "Sound.\n\nBug\nin a.py",
        "1. Fix",
    ]


def test_T20_the_first_header_names_the_session() -> None:
    fold = reader("hint")
    for row in records(RESUMED):
        fold.feed(row)
        assert fold.session == RESUMED
    again = {**META, "payload": {**META["payload"], "cli_version": "0.99"}}
    parsed = read([META, prompt("one"), META, again, prompt("two")])
    assert all(one.origin is None for one in events(parsed))
    assert parsed[2].reason == "repeats the session's header"
    assert facts(parsed)["version"] == "0.99"


def test_the_files_name_is_the_session_where_no_header_is() -> None:
    fold = reader(OLD)
    assert fold.session is None
    fold.feed(prompt("hi"))
    assert fold.session == OLD


def test_equal_prompts_in_one_session_are_different_turns() -> None:
    asked = events(read(records(OLD)), EventType.USER_INPUT)
    assert [one.text for one in asked] == ["continue"] * 3
    assert len({one.key for one in asked}) == 3
    assert all(one.opens and one.settles for one in asked)
    answers = events(read(records(OLD)), EventType.ASSISTANT_RESPONSE)
    assert [one.text for one in answers] == ["Step done."] * 3


def test_a_prompt_before_its_turn_is_named_belongs_to_it() -> None:
    context = env("turn_context", turn_id="t1", cwd="/w", model="m")
    rows = [
        META,
        said("user", "go"),
        prompt("go"),
        context,
        answer("hm", phase="commentary"),
        context,
        prompt("and so"),
    ]
    found = events(read([*rows, answer("done"), msg("task_complete", turn_id="t1"), started("t2"), prompt("go")]))[1:]
    assert {one.turn for one in found[:-2]} == {None}
    assert [one.opens for one in found if one.type is EventType.USER_INPUT] == [True, True, True]
    assert found[-1].turn == "t2"
    known = events(read([META, msg("task_complete"), *rows[1:], started("t2")]), EventType.USER_INPUT)
    assert [(one.text, one.opens) for one in known] == [("go", True), ("and so", False)]


def test_an_ide_prompt_is_what_stands_under_its_last_heading() -> None:
    text = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix a.py\n"
    parsed = read([META, said("user", text), prompt(text)])
    assert [one.text for one in events(parsed, EventType.USER_INPUT)] == ["Fix a.py"]
    assert facts(parsed)["label"] == "Fix a.py"


def test_pictures_of_a_prompt_are_notes() -> None:
    url = "data:image/png;base64," + "A" * 400
    row = res(
        "message",
        role="user",
        content=[
            {"type": "input_text", "text": "<image>"},
            {"type": "input_image", "image_url": url},
            {"type": "input_text", "text": "</image>"},
            {"type": "input_text", "text": "What is it?"},
        ],
    )
    asked = events(read([META, row, prompt("What is it?", images=[url])]), EventType.USER_INPUT)
    assert [one.text for one in asked] == ["What is it?"]
    assert asked[0].extra == {"images": ["[image image/png, 300 bytes]"]}


def test_a_command_of_the_user_is_a_call_and_its_response() -> None:
    text = (
        "<user_shell_command>\n<command>\nls\n</command>\n<result>\nExit code: 3\nDuration: 0.1 seconds\nOutput:\nno\n"
        "</result>\n</user_shell_command>"
    )
    call, response = events(read([META, said("user", text)]))[1:]
    assert (call.type, call.arguments, call.by_user) == (EventType.TOOL_CALL, {"command": "ls"}, True)
    assert (response.exit_code, response.is_error, response.by_user) == (3, True, True)


# How turns end


def test_the_final_answer_is_proved_by_the_end_of_the_task() -> None:
    found = events(read(records(PARENT)))
    ends = [(one.text, one.ends, one.type) for one in found if one.ends]
    assert ends == [
        ("turn completed", End.FINAL, EventType.RUNTIME),
        ("turn aborted: interrupted", End.INTERRUPTED, EventType.RUNTIME),
        ("turn completed", End.FINAL, EventType.RUNTIME),
    ]
    spoken = [one for one in found if one.type is EventType.ASSISTANT_RESPONSE]
    assert [(one.text, one.partial) for one in spoken][:2] == [
        ("I look at the parser first.", True),
        ("The parser is twice as fast.", False),
    ]


def test_a_last_message_that_was_never_shown_is_an_answer() -> None:
    rows = [META, started("t"), prompt("go"), msg("task_complete", turn_id="t", last_agent_message="Done.")]
    found = events(read([*rows, said("assistant", "Done.")]))
    assert [one.text for one in found][2:] == ["go", "Done.", "turn completed"]


def test_a_commentary_that_ends_the_task_was_the_answer() -> None:
    rows = [
        META,
        started("t"),
        prompt("go"),
        answer("Done.", phase="commentary"),
        said("assistant", "Done.", phase="commentary"),
    ]
    assert events(read(rows))[-1].partial
    found = events(read([*rows, msg("task_complete", turn_id="t", last_agent_message="Done.")]))
    assert [(one.text, one.partial, one.ends) for one in found[-2:]] == [
        ("Done.", False, None),
        ("turn completed", False, End.FINAL),
    ]


@pytest.mark.parametrize(
    ("rows", "end"),
    [
        ([msg("task_complete", turn_id="t")], End.STOPPED),
        ([answer("x"), msg("task_complete", turn_id="t", error={"message": "no quota"})], End.CRASHED),
        ([msg("error", message="boom")], End.CRASHED),
        ([msg("error", message="boom"), msg("task_complete", turn_id="t")], End.CRASHED),
        ([msg("error", message="boom"), answer("x"), msg("task_complete", turn_id="t")], End.FINAL),
        ([msg("turn_aborted", reason="interrupted")], End.INTERRUPTED),
        ([msg("turn_aborted", reason="replaced")], End.CANCELLED),
        ([msg("turn_aborted", reason="something new")], End.CANCELLED),
        ([msg("stream_error", message="again")], None),
    ],
)
def test_how_a_turn_ends(rows: list[dict[str, Any]], end: End | None) -> None:
    assert events(read([META, started("t"), prompt("go"), *rows]))[-1].ends == end


def test_T26_an_aborted_call_has_no_response() -> None:
    found = [one for one in events(read(records(PARENT))) if one.turn and one.turn.endswith("03")]
    assert [one.type.value for one in found] == ["runtime", "user_input", "tool_call", "runtime"]


def test_T27_a_replaced_turn_and_the_next_one() -> None:
    rows = [META, started("t1"), prompt("one"), msg("turn_aborted", turn_id="t1", reason="replaced"), prompt("two")]
    found = events(read(rows), EventType.USER_INPUT)
    assert [(one.text, one.opens) for one in found] == [("one", True), ("two", True)]
    named = events(read([*rows[:4], started("t2"), prompt("two")]), EventType.USER_INPUT)
    assert [(one.turn, one.opens) for one in named] == [("t1", True), ("t2", True)]


def test_T28_a_killed_turn_proves_no_end() -> None:
    assert not [one for one in events(read([META, started("t"), prompt("go"), answer("on it")])) if one.ends]


def test_T30_the_first_prompt_again_after_an_abort_is_dropped() -> None:
    marker = said("user", "<turn_aborted>\nThe user interrupted.\n</turn_aborted>")
    rows = [META, said("user", "go"), prompt("go"), answer("hm"), marker, said("user", "go"), said("user", "no")]
    parsed = read(rows)
    assert parsed[5].reason == "repeats the first prompt after an abort"
    assert [one.text for one in events(parsed, EventType.USER_INPUT)] == ["go", "no"]
    assert [one.ends for one in events(parsed, EventType.RUNTIME)] == [End.INTERRUPTED]


def test_T31_a_childs_status_is_no_prompt() -> None:
    row = said("user", '<subagent_notification>\n{"agent_id":"x","status":"completed"}\n</subagent_notification>')
    assert [one.type for one in events(read([META, row]))][1:] == [EventType.SYSTEM]


# Reasoning, tokens, compaction


def test_T22_encrypted_reasoning_has_a_placeholder() -> None:
    first = events(read(records(PARENT)), EventType.REASONING)[0]
    assert first.text == ENCRYPTED_PLACEHOLDER
    assert first.extra == {"encrypted_content": "gAAAAcipher1"}


def test_reasoning_in_both_streams_is_said_once() -> None:
    found = events(read(records(OLD)), EventType.REASONING)
    assert [one.text for one in found] == ["**Plan**\n\nFirst.", "**Check**\n\nSecond."] * 3
    assert [one.extra for one in found[:2]] == [None, {"encrypted_content": "gAAAA0"}]
    parts = [{"type": "summary_text", "text": text} for text in ("One.", "Two.")]
    rows = [
        META,
        res("reasoning", summary=parts),
        msg("agent_reasoning", text="Two."),
        msg("agent_reasoning", text="One."),
    ]
    assert [one.text for one in events(read(rows), EventType.REASONING)] == ["One.\n\nTwo."]


def test_T21_tokens_count_once() -> None:
    counted = [one for one in events(read(records(PARENT))) if one.extra and "usage" in one.extra]
    assert [one.extra and one.extra["usage"] for one in counted] == [
        {"input": 600, "cache_read": 400, "output": 50, "reasoning": 40, "total": 1090}
    ]


def test_T29_a_compaction_is_one_event() -> None:
    found = events(read(records(PARENT)), EventType.COMPACTION)
    assert [(one.text, one.extra) for one in found] == [
        ("Parser work: lexer done.", {"encrypted_content": "gAAAAsummary"})
    ]
    late = events(
        read([META, msg("context_compacted"), env("compacted", message="sum"), answer("x"), msg("context_compacted")])
    )
    assert [one.text for one in late if one.type is EventType.COMPACTION] == ["sum", ""]


# Tools


def calls() -> dict[str | None, list[Event]]:
    found: dict[str | None, list[Event]] = {}
    for one in events(read(records(PARENT))):
        if one.type in (EventType.TOOL_CALL, EventType.TOOL_RESPONSE):
            found.setdefault(one.call_id, []).append(one)
    return found


def test_T23_a_patch_keeps_its_text_and_the_paths_of_its_result() -> None:
    call, response = calls()["call_2"]
    assert call.tool == "apply_patch"
    assert call.arguments["input"].startswith("*** Begin Patch")
    assert (response.text, response.exit_code, response.is_error) == ("Success. Updated three files", 0, False)
    assert response.extra == {
        "changes": {
            "/w/app/src/a.py": {"type": "update"},
            "/w/app/src/b.py": {"type": "add"},
            "/w/app/old.py": {"type": "update", "move_path": "/w/app/new.py"},
        },
        "duration_seconds": 0.1,
    }


def test_T24_a_shell_command_stays_a_list() -> None:
    (call,) = calls()["call_6"]
    assert call.arguments["command"][:2] == ["bash", "-lc"]
    assert call.arguments["workdir"] == "/w/app"


def test_T25_a_running_process_is_neither_success_nor_error() -> None:
    (_, running), (_, ended) = calls()["call_3"], calls()["call_4"]
    assert (running.exit_code, running.is_error, running.extra) == (None, None, {"running": "4"})
    assert (ended.tool, ended.exit_code, ended.is_error) == ("write_stdin", 2, True)


def test_T32_an_end_event_and_an_output_are_one_response() -> None:
    end = msg(
        "exec_command_end",
        call_id="c",
        command=["ls"],
        cwd="/w",
        parsed_cmd=[{"type": "list_files"}],
        exit_code=1,
        aggregated_output="raw",
    )
    out = res("function_call_output", call_id="c", output="cooked")
    call = res("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c")
    again = msg("item_completed", item={"type": "command_execution", "id": "c"})
    for order in ([end, out], [out, end]):
        found = events(read([META, call, *order, again]))[1:]
        assert [one.type for one in found] == [EventType.TOOL_CALL, EventType.TOOL_RESPONSE]
        assert (found[1].text, found[1].exit_code, found[1].is_error) == ("cooked", 1, True)
        assert found[1].extra is not None
        assert found[1].extra["parsed_cmd"] == [{"type": "list_files"}]
    alone = events(read([META, call, end]))[2]
    assert (alone.type, alone.text, alone.tool) == (EventType.TOOL_RESPONSE, "raw", "shell")


def test_call_ids_that_come_again_are_different_calls() -> None:
    rows = [META]
    for turn in ("t1", "t2"):
        rows += [started(turn), prompt("go")]
        rows += [res("function_call", name="shell", arguments="{}", call_id="call_0")]
        rows += [res("function_call_output", call_id="call_0", output=turn)] * 2
    found = events(read(rows), EventType.TOOL_CALL, EventType.TOOL_RESPONSE)
    assert [one.text for one in found] == ["", "t1", "t1", "", "t2", "t2"]
    token = "call_ZVl1t5u0Py0D7CktPLn1"
    (call,) = read([META, res("function_call", name="shell", arguments="{}", call_id=token)])[1].items
    assert call == Event(f"call:{token}", EventType.TOOL_CALL, tool="shell", call_id=token, arguments={}, cwd="/w")


def test_T33_arguments_that_do_not_parse_are_kept() -> None:
    found = events(read(records(DOCUMENT)))
    assert found[2].arguments == {"_raw": "not json"}
    assert found[3].is_error
    assert (found[4].tool, found[4].arguments["workdir"]) == ("local_shell", "/w")


def test_own_tools_have_their_canonical_name() -> None:
    call, response = calls()["call_5"]
    assert (call.tool, call.original_tool) == ("search_sessions", "mcp__outcrop__search_sessions")
    assert (response.tool, response.text, response.is_error) == ("search_sessions", "no hits at all", False)
    assert response.extra is not None
    assert response.extra["server"] == "outcrop"


def test_a_web_search_is_one_call_without_a_response() -> None:
    found = [one for one in events(read(records(PARENT))) if one.tool == "web_search"]
    assert [(one.type.value, one.arguments["query"]) for one in found] == [("tool_call", "pratt parser")]
    rows = [
        META,
        msg("web_search_end", call_id="w", query="x"),
        res("web_search_call", action={"type": "search", "query": "x", "queries": ["x"]}),
    ]
    (one,) = events(read(rows))[1:]
    assert one.arguments == {"type": "search", "query": "x", "queries": ["x"]}


def test_a_made_picture_has_no_base64() -> None:
    parsed = read(
        [META, res("image_generation_call", id="ig", status="completed", revised_prompt="a cat", result="A" * 400)]
    )
    call, response = events(parsed)[1:]
    assert (call.tool, call.arguments, response.text) == (
        "image_generation",
        {"prompt": "a cat"},
        "[image of unknown type, 300 bytes]",
    )


@pytest.mark.parametrize(
    ("value", "text", "code", "error"),
    [
        ('{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.2}}', "x", 1, True),
        ('{"output":"x"}', '{"output":"x"}', None, None),
        ('{"name":"pkg"}', '{"name":"pkg"}', None, None),
        ("Exit code: 1\nWall time: 0.2 seconds\nOutput:\nx", None, 1, True),
        ("Exit code: 0\nOutput:\nExit code: 9", None, 0, False),
        ("Chunk ID: a\nWall time: 1 seconds\nProcess exited with code 0\nOutput:\n", None, 0, False),
        (
            "Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\nProcess exited with code 1",
            None,
            None,
            None,
        ),
        ("command timed out after 10 milliseconds", None, None, True),
        ("exec command rejected by user", None, None, True),
        ({"content": "x", "success": False}, "x", None, True),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", None, None),
        (None, "", None, None),
        (7, "", None, None),
    ],
)
def test_forms_of_output(value: Any, text: str | None, code: int | None, error: bool | None) -> None:
    found = output(value)
    assert (found.text, found.exit_code, found.is_error) == (value if text is None else text, code, error)


# Titles and the rest


def test_T34_names_come_late_and_can_be_taken_back() -> None:
    assert facts(read(records(PARENT)))["title.generated"] == "Faster parser"
    index = next(file for file in HARNESS.discover("codex", HOME) if file.role == "index")
    fold = HARNESS.reader(index, None, NoSide())
    rows = [json.loads(line) for line in Path(index.path).read_text(encoding="utf-8").splitlines()]
    told = [item for row in rows for item in fold.feed(row).items]
    assert told == [
        Fact("title.generated", "Parser", PARENT),
        Fact("title.generated", "Table", FORK),
        Fact("title.generated", None, FORK),
    ]
    assert fold.feed({"thread_name": "x"}).reason
    assert fold.session is None


def test_what_is_not_known_is_kept_whole() -> None:
    row = {"timestamp": "2026-11-02T09:00:00Z", "type": "event_msg", "payload": {"type": "brand_new", "x": [1]}}
    found = events(read([META, row, {**row, "timestamp": "2026-11-02T09:00:01Z"}, {"odd": True}]), EventType.UNKNOWN)
    assert [one.raw for one in found[::2]] == [row, {"odd": True}]
    assert len(found) == 3
    assert read([META, res("ghost_snapshot", ghost_commit={"id": "a"})])[1].keep == {
        "type": "ghost_snapshot",
        "ghost_commit": {"id": "a"},
    }


def test_models_and_places() -> None:
    found = {one.text: one for one in events(read(records(PARENT)))}
    final = found["The parser is twice as fast."]
    assert (final.model, final.generator, final.cwd, final.branch) == ("gpt-5.3-codex",) * 2 + ("/w/app", "main")
    assert found["Make the parser faster"].generator is None


def test_times() -> None:
    assert iso_ms("2026-11-02T09:15:01.120Z") == iso_ms("2026-11-02T10:15:01.120+01:00") == 1793610901120
    assert iso_ms("yesterday") is iso_ms(5) is iso_ms(None) is None
    assert uuid7_ms("019efedf-a8dc-7b20-ba1d-f1c6ff7ea96e") == 0x019EFEDFA8DC
    assert uuid7_ms(OLD) is uuid7_ms("x") is uuid7_ms(None) is None


def test_a_turn_with_more_texts_than_the_memory_holds_loses_no_event() -> None:
    rows = [META, started("t"), prompt("go")] + [answer(f"step {n % 400}") for n in range(900)]
    fold = reader()
    keys = [item.key for row in rows for item in fold.feed(row).items if isinstance(item, Event)]
    assert len(keys) == len(set(keys)) == 903
    assert len(json.dumps(fold.state())) < 60_000


# Properties

ALL = (PARENT, FORK, CHILD, OLD, RESUMED, BARE, DOCUMENT)


@given(st.sampled_from(ALL), st.sets(st.integers(0, 70)))
def test_reading_cut_anywhere_gives_the_same_items(native: str, cuts: set[int]) -> None:
    rows = records(native)
    assert read(rows, cuts=frozenset(cuts)) == read(rows)


# fmt: off
WORDS = (
    "id", "type", "role", "content", "text", "message", "phase", "turn_id", "call_id", "name", "namespace",
    "arguments", "input", "output", "action", "query", "queries", "url", "summary", "encrypted_content", "info",
    "total_token_usage", "last_token_usage", "changes", "result", "Ok", "Err", "invocation", "tools", "item",
    "source", "subagent", "thread_spawn", "parent_thread_id", "forked_from_id", "thread_source", "git", "branch",
    "base_instructions", "cwd", "model", "error", "reason", "images", "kind", "last_agent_message",
    "review_output", "findings", "exit_code", "success", "replacement_history", "recipient", "author",
    "thread_name", "num_turns", "timestamp",
)
# fmt: on
LEAF = scalars(["user", "assistant", "message", "input_text", OLD, PARENT, "<turn_aborted>", "gAAAA", "thread_spawn"])
VALUE = values(WORDS, LEAF)
PLACES = sorted(_HANDLERS, key=str)


@st.composite
def odd_records(draw: st.DrawFn) -> dict[str, Any]:
    kind, sub = draw(st.sampled_from(PLACES))
    payload = draw(st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=6))
    if sub is not None:
        payload["type"] = sub
    shape = draw(st.integers(0, 9))
    if shape == 0:
        return payload
    return {
        "timestamp": draw(LEAF),
        "type": kind if shape > 1 else draw(LEAF),
        "payload": payload if shape > 2 else draw(VALUE),
    }


@given(st.lists(odd_records(), max_size=8))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]]) -> None:
    for before in ([], [META], [META, {**META, "payload": {"id": PARENT}}]):
        fed(reader(OLD), [*before, *rows])
