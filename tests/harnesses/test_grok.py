"""Grok on invented sessions, and on those of the corpus; what a compaction takes out of a file stays in the history."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.grok import HARNESS
from outcrop.ingest.containers import ContainerReading
from outcrop.model import ENCRYPTED_PLACEHOLDER, EventType, Parsed, Relation
from outcrop.store.embedded import rows as flags_of
from outcrop.store.embedded.write import Writer
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

HOME = FIXTURES / "grok" / "home"
FILES = found(HARNESS, HOME)
MAIN, CHILD = "6f000000-0000-7000-8000-00000000000a", "6f000000-0000-7000-8000-00000000000b"
FOLDER = "sessions/%2Fw%2Freef/"
FACTS = known_facts("grok")
NONE = SourceFile("/nowhere", "grok", Form.CONTAINER, "folder", "s1")


def main() -> list[Parsed]:
    return read(HARNESS, FILES[FOLDER + MAIN])


def fold(*rows: dict[str, Any]) -> list[Parsed]:
    return read(HARNESS, NONE, list(rows))


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "user", "content": [{"type": "text", "text": text}], **more}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "content": text, **more}


def test_it_is_a_harness() -> None:
    assert (HARNESS.name, HARNESS.agent, HARNESS.sources) == ("grok", "grok", ("grok",))
    assert HARNESS.resume_command(MAIN) == ["grok", "--resume", MAIN]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_roots_obey_the_environment(platform: str) -> None:
    home = Path("/home/gull")
    assert HARNESS.roots("grok", Environment(home, {}, platform)) == [home / ".grok"]
    assert HARNESS.roots("grok", Environment(home, {"GROK_HOME": "/g"}, platform)) == [Path("/g")]


def test_each_folder_with_a_conversation_is_a_place_of_one_session(tmp_path: Path) -> None:
    assert {path: file.native for path, file in FILES.items()} == {FOLDER + MAIN: MAIN, FOLDER + CHILD: CHILD}
    shutil.copytree(HOME / FOLDER / MAIN, tmp_path / "sessions" / "p" / MAIN)
    (file,) = found(HARNESS, tmp_path).values()
    before = HARNESS.stamp(file), dict(HARNESS.container(file).sessions())
    summary = tmp_path / "sessions" / "p" / MAIN / "summary.json"
    summary.write_text(json.dumps({"info": {"id": MAIN}, "generated_title": "Another"}))
    os.utime(summary, (1, 1))
    after = HARNESS.stamp(file), dict(HARNESS.container(file).sessions())
    assert before[0] != after[0]
    assert before[1] != after[1]
    summary.unlink()
    assert list(dict(HARNESS.container(file).sessions())) == [MAIN]


def test_turns_of_a_session() -> None:
    first, second, third = turns(main())
    assert (first.prompt, first.ends, first.tools) == ("hoist the flag", "final", ["run_terminal_cmd"])
    assert (second.prompt, second.ends) == ("lower it", "interrupted")
    assert (third.prompt, third.tools, third.ends) == ("leave it", ["web_search"], "final")
    told = facts_of(main())
    assert (told["title.generated"], told["created"]) == ("Hoist the flag", 1785578400500)
    assert {(event.cwd, event.branch, event.time) for event in events(main())} == {("/w/reef", "main", None)}


def test_envelopes_are_taken_off_and_a_message_while_working_steers() -> None:
    prompts = [(event.text, event.opens) for event in events(main(), EventType.USER_INPUT)]
    assert prompts == [("hoist the flag", True), ("the blue one", False), ("lower it", True), ("leave it", True)]
    quoted = "what does <user_query>x</user_query> do?"
    assert events(fold(user(quoted)))[0].text == quoted


def test_what_the_program_says_in_the_users_place_is_no_prompt() -> None:
    rows = [
        user("<user_info>\nOS\n</user_info>"),
        user("skills", synthetic_reason="system_reminder"),
        user("This session is being continued from a previous one. Flags.", synthetic_reason="compaction_meta"),
    ]
    assert [event.type for event in events(fold(*rows))] == [EventType.SYSTEM, EventType.SYSTEM, EventType.COMPACTION]


def test_calls_and_sealed_thoughts() -> None:
    (sealed,) = events(main(), EventType.REASONING)
    assert (sealed.text, sealed.extra) == (ENCRYPTED_PLACEHOLDER, {"encrypted_content": "sealed"})
    call, odd, served = events(main(), EventType.TOOL_CALL)
    assert (call.arguments, call.model, odd.arguments) == (
        {"command": "hoist"},
        "tern-4",
        {"_raw": "not json"},
    )
    assert (served.arguments, served.extra) == ({"type": "search", "query": "flags"}, {"status": "completed"})
    (answer,) = events(main(), EventType.TOOL_RESPONSE)
    assert (answer.tool, answer.text, answer.exit_code, answer.is_error) == ("run_terminal_cmd", "up", None, None)


def test_an_agents_session_begins_with_copies_of_its_parents() -> None:
    parsed = read(HARNESS, FILES[FOLDER + CHILD])
    told = facts_of(parsed)
    assert (told["parent"], told["relation"], told["agent"]) == (MAIN, Relation.SUBAGENT, "explore")
    copied = [event for event in events(parsed) if event.origin]
    assert [event.origin for event in copied] == [(MAIN, event.key) for event in copied]
    assert {event.key for event in copied} <= {event.key for event in events(main())}
    assert [event.text for event in events(parsed) if not event.origin] == ["count the stars", "Too many."]


def test_what_stays_in_a_compacted_conversation_keeps_its_names() -> None:
    rows = [user("one", prompt_index=0), said("1"), user("two", prompt_index=1), said("2")]
    summary = user("This session is being continued from before.", synthetic_reason="compaction_meta")
    whole, rest = events(fold(*rows)), events(fold(summary, *rows[2:]))
    assert [event.key for event in whole[2:]] == [event.key for event in rest[1:]]


def test_what_a_compaction_takes_out_of_the_file_stays_in_the_history(tmp_path: Path) -> None:
    folder = tmp_path / "grok" / "s1"
    folder.mkdir(parents=True)
    (tmp_path / "store").mkdir()
    writer = Writer(tmp_path / "store")
    rows = [user("one", prompt_index=0), said("1"), user("two", prompt_index=1), said("2")]
    summary = user("This session is being continued from before.", synthetic_reason="compaction_meta")

    def stored(*now: dict[str, Any]) -> list[tuple[str, bool]]:
        (folder / "chat_history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in now))
        (file,) = found(HARNESS, tmp_path / "grok").values()
        assert ContainerReading(writer, HARNESS, file, True, 1).read_place(os.stat(file.path)).cause is None
        told = writer.db.execute("SELECT flags, block, slot FROM event ORDER BY id").fetchall()
        return [
            (writer.content(block, slot).get("text", ""), bool(flags & flags_of.DELETED)) for flags, block, slot in told
        ]

    try:
        assert stored(*rows) == [(text, False) for text in ("one", "1", "two", "2")]
        after = stored(summary, *rows[2:])
    finally:
        writer.close()
    assert after[:4] == [("one", True), ("1", True), ("two", False), ("2", False)]
    assert after[4:] == [("This session is being continued from before.", False)]


def test_the_oldest_records_name_a_role() -> None:
    parsed = fold(
        {"role": "user", "content": "go"}, {"role": "assistant", "content": "gone", "reasoning_content": "hm"}
    )
    (turn,) = turns(parsed)
    assert [event.type for event in turn.events[1:]] == [EventType.REASONING, EventType.ASSISTANT_RESPONSE]
    assert turn.ends == "final"


def test_what_is_no_record_or_not_known_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "chat_history.jsonl").write_text('{"type":"tide"}\n{"half\n{"type":"user","content":"go"}')
    (file,) = found(HARNESS, tmp_path).values()
    kinds = [event.type for event in events(read(HARNESS, file))]
    assert kinds == [EventType.UNKNOWN, EventType.UNKNOWN, EventType.USER_INPUT]


@pytest.mark.parametrize("one", FACTS, ids=lambda one: one["name"])
def test_sessions_are_what_their_facts_say(one: dict[str, Any]) -> None:
    hold(HARNESS, one)


@given(st.sampled_from(sorted(FILES)), st.sets(st.integers(0, 14)))
def test_reading_cut_anywhere_gives_the_same_items(path: str, cuts: set[int]) -> None:
    rows = rows_of(HARNESS, FILES[path])[1]
    assert read(HARNESS, FILES[path], rows, frozenset(cuts)) == read(HARNESS, FILES[path], rows)


# fmt: off
WORDS = (
    "type", "role", "content", "text", "url", "synthetic_reason", "prompt_index", "prior_turn_interrupt", "tool_calls",
    "id", "name", "arguments", "function", "model_id", "summary", "encrypted_content", "kind", "tool_type", "action",
    "status", "tool_call_id", "images", "reasoning_content", "info", "cwd", "parent_session_id", "inherited_prefix_len",
    "session_kind", "generated_title", "created_at",
)
KINDS = (
    "system", "user", "assistant", "reasoning", "tool_result", "backend_tool_call", "tool", "text", "image", "$summary",
    "<user_query>", "The user interrupted the previous turn:", "compaction_meta", "subagent", "",
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
def test_every_file_of_the_corpus_is_read_and_every_record_is_understood() -> None:
    folder = CORPUS / "grok"
    files = list(HARNESS.discover("grok", folder))
    read_from = [os.path.join(file.path, name) for file in files for name in ("chat_history.jsonl", "summary.json")]
    assert sorted(read_from) == sorted(str(path) for path in folder.rglob("*") if path.is_file())
    for file in files:
        assert not events(read(HARNESS, file), EventType.UNKNOWN), file.path
        assert session_of(HARNESS, file)
