"""The Prime Agent adapter: sessions of people and of children, and what only this program writes.

Numbers in test names are the tricky cases of the format reference.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, needs_corpus, records
from outcrop.harnesses import Environment, SourceFile
from outcrop.harnesses.prime_agent import HARNESS
from outcrop.model import End, Event, EventType, Relation
from pi_reading import hold, known_facts, turns, whole
from reading import FIXTURES, events, read
from reading import facts_of as told

ROOT = FIXTURES / "prime-agent"
PARENT = "019a4b10-0000-7000-8000-00000000000a"
CHILD = "019a4b10-0000-7000-8000-00000000000b"
GRANDCHILD = "019a4b10-0000-7000-8000-00000000000c"
FILES = {file.native: file for source in HARNESS.sources for file in HARNESS.discover(source, ROOT)}
FACTS = list(known_facts("prime-agent"))


def test_it_is_a_harness() -> None:
    assert (HARNESS.name, HARNESS.agent) == ("prime-agent", "prime-agent")
    assert HARNESS.sources == ("prime-agent", "prime-agent-subagents")
    assert {HARNESS.group(source) for source in HARNESS.sources} == {"prime-agent"}, "a parent is in the other source"
    assert HARNESS.resume_command(PARENT) == ["prime-agent", "--resume", PARENT]


def test_the_roots_obey_the_variables() -> None:
    home = Path("/home/u")

    def roots(**variables: str) -> list[str]:
        environment = Environment(home, variables)
        return [str(path) for source in HARNESS.sources for path in HARNESS.roots(source, environment)]

    assert roots() == ["/home/u/.prime/agent/sessions", "/home/u/.prime/agent/session-artifacts"]
    assert roots(PRIME_AGENT_CODING_AGENT_DIR="/p") == ["/p/sessions", "/p/session-artifacts"]
    assert roots(PRIME_AGENT_SESSION_DIR="~/s/mine") == ["/home/u/s/mine", "/home/u/s/session-artifacts"]
    assert roots(PRIME_AGENT_CODING_AGENT_SESSION_DIR="/old") == ["/old", "/session-artifacts"]
    mac = Environment(Path("/Users/u"), {}, "darwin")
    assert HARNESS.roots("prime-agent", mac) == [Path("/Users/u/.prime/agent/sessions")]


def test_T91_only_files_named_by_a_uuid_are_sessions() -> None:
    listed = {
        source: [(os.path.basename(file.path), file.role, file.parent) for file in HARNESS.discover(source, ROOT)]
        for source in HARNESS.sources
    }
    assert listed == {
        "prime-agent": [(f"{PARENT}.jsonl", "transcript", None)],
        "prime-agent-subagents": [
            (f"{CHILD}.jsonl", "subagent", PARENT),
            (f"{GRANDCHILD}.jsonl", "subagent", CHILD),
        ],
    }
    inner = [file.native for file in HARNESS.discover("prime-agent-subagents", ROOT / "session-artifacts")]
    assert inner == [CHILD, GRANDCHILD]


def test_links_out_of_the_root_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / f"{PARENT}.jsonl"
    outside.write_text("", encoding="utf-8")
    sessions = tmp_path / "agent" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / f"{CHILD}.jsonl").symlink_to(outside)
    (sessions / f"{PARENT.upper()}.jsonl").write_text("", encoding="utf-8")
    assert list(HARNESS.discover("prime-agent", tmp_path / "agent")) == []


def test_T89_the_task_from_the_parent_is_the_childs_prompt() -> None:
    parsed = whole(HARNESS, FILES[CHILD])
    facts = told(parsed)
    assert (facts["parent"], facts["relation"], facts["agent"]) == (PARENT, Relation.SUBAGENT, "looker")
    assert [(turn.prompt, turn.final, end) for turn, end in turns(parsed)] == [
        ("[task from parent]\nLook", "Looked.", "final")
    ]
    (asked,) = events(parsed, EventType.USER_INPUT)
    assert (asked.opens, asked.branch, asked.cwd) == (True, "main", "/w/app")


def test_T89_the_folder_names_the_parent_where_the_header_does_not() -> None:
    facts = told(whole(HARNESS, FILES[GRANDCHILD]))
    assert (facts["parent"], facts["relation"]) == (CHILD, Relation.SUBAGENT)


def test_a_session_of_depth_zero_with_a_parent_is_a_fork() -> None:
    header = {"type": "session", "id": "s", "rlmDepth": 0, "parentSession": f"C:\\p\\{PARENT}.jsonl"}
    facts = told(read(HARNESS, SourceFile("/r/s.jsonl", "prime-agent"), [header]))
    assert (facts["parent"], facts["relation"]) == (PARENT, Relation.FORK)


def test_T90_tokens_of_a_child_are_not_counted_in_the_parent() -> None:
    parsed = whole(HARNESS, FILES[PARENT])
    counted = [one for one in events(parsed) if one.extra and "usage" in one.extra]
    assert [one.key for one in counted] == ["p0000003:0", "p0000008:0"]
    attributed = next(one for one in events(parsed) if one.text == "usage of a child")
    assert attributed.extra is not None
    assert attributed.extra["child_usage"] == {"input": 100, "output": 50}


def test_a_session_of_a_person() -> None:
    parsed = whole(HARNESS, FILES[PARENT])
    assert [(turn.prompt, turn.tools, turn.final, end) for turn, end in turns(parsed)] == [
        ("Survey the repo", ["ipython"], "Surveyed.", "final"),
        ("Now fix it", [], None, "crashed"),
    ]
    found = {one.key: one for one in events(parsed)}
    assert found["p0000006"].type is EventType.SYSTEM, "news from a child is no prompt"
    assert (found["p0000002"].branch, found["p0000008:0"].branch) == ("main", "feature")
    assert (found["p000000b"].type, found["p000000b"].extra) == (EventType.SYSTEM, {"customType": "notice"})
    assert found["p0000009"].text == "Survey done"
    assert (found["p000000d"].type, found["p000000d"].ends) == (EventType.RUNTIME, End.CRASHED)
    assert told(parsed)["title.user"] == "Survey"
    hidden = next(one for one in parsed if one.kind == "message/custom")
    assert hidden.reason == "state of the program or of an extension"
    assert hidden.keep["content"] == "hidden"


def test_a_crash_behind_an_answer_takes_nothing_back() -> None:
    rows: list[dict[str, Any]] = [
        {"type": "session", "id": "s"},
        {"type": "message", "message": {"role": "user", "content": "go"}},
        {"type": "message", "message": {"role": "assistant", "content": "done", "stopReason": "stop"}},
        {"type": "session_state", "state": {"status": "crash"}},
    ]
    assert turns(read(HARNESS, SourceFile("/r/s.jsonl", "prime-agent"), rows))[0][1] == "final"


@given(st.sampled_from(sorted(name for name in FILES if name)), st.sets(st.integers(0, 15)))
def test_reading_cut_anywhere_gives_the_same_items(native: str, cuts: set[int]) -> None:
    rows = list(records(Path(FILES[native].path)))
    assert read(HARNESS, FILES[native], rows, frozenset(cuts)) == read(HARNESS, FILES[native], rows)


@pytest.mark.parametrize("one", FACTS, ids=lambda one: one["name"])
def test_sessions_are_what_their_facts_say(one: dict[str, Any]) -> None:
    if one["corpus"] and not CORPUS.is_dir():
        pytest.skip("OUTCROP_CORPUS does not name the corpus")
    hold(HARNESS, one, SourceFile(str(one["path"]), one["source"], native=one["session"]))


@needs_corpus
def test_what_is_unknown_in_the_corpus_is_named() -> None:
    unknown = {
        one.kind
        for path in sorted((CORPUS / "misc-fixtures").rglob("prime-agent/*.jsonl"))
        for one in whole(HARNESS, SourceFile(str(path), "prime-agent"))
        for item in one.items
        if isinstance(item, Event) and item.type is EventType.UNKNOWN
    }
    assert unknown == {"message/assistant", "future_prime_record"}, "a block and a type from the future"
