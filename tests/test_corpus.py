"""Real sessions through the product's own doors: indexed by the command, asked by the contract.

The facts were read from the raw lines (`facts.py`); the census and all that was said are held to the raw lines here,
by a reader that shares nothing with the harnesses.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from facts import CORPUS, Turn, check, facts, hashed, needs_corpus, records, session_files
from outcrop import ids
from outcrop.contracts.mcp_v1.shapes import session_id
from projection import projection
from world import World

pytestmark = needs_corpus

SPOKEN = {"claude-code": 2170, "codex": 1551}
"""Records of the corpus that hold what a person, a model or a tool said."""
FACTS = [*facts("claude"), *facts("codex")]


@dataclass
class History:
    """The indexed corpus: what `status` says, and every session with its turns and opened events."""

    world: World
    status: dict[str, Any]
    sessions: dict[str, Any]

    def session(self, harness: str, source: str, native: str) -> str:
        """The id of a session by its native id (ruling 21)."""
        return str(session_id(ids.session_uid(harness, source, native)))


@pytest.fixture(scope="module")
def history(corpus: World) -> History:
    return History(corpus, corpus.run("status", "--json").json, projection(corpus.store))


def told_turns(turns: list[dict[str, Any]], events: list[tuple[Any, Any, Any]]) -> list[Turn]:
    """The turns of an opened session, checked for what every turn must hold."""
    inside: dict[str, list[tuple[Any, Any, Any]]] = defaultdict(list)
    for one in events:
        inside[one[1]["turn_id"]].append(one)
    return [told_turn(turn, inside[turn["id"]]) for turn in turns]


def told_turn(turn: dict[str, Any], events: list[tuple[Any, Any, Any]]) -> Turn:
    assert len(events) == turn["event_count"]
    texts = {event["id"]: content["text"] for _, event, content in events}
    said = [event["id"] for _, event, _ in events if event["type"] == "user_input"]
    assert turn["user_input"]["event_id"] == said[0]
    terminal = [event for _, event, _ in events if event["terminal"]]
    assert [event["id"] for event in terminal] == ([turn["terminal_event_id"]] if turn["completed"] else [])
    final = turn["final_response"]
    if final is not None:
        assert final["event_id"] == turn["terminal_event_id"]
        assert terminal[0]["type"] == "assistant_response"
    elif turn["completed"]:
        assert terminal[0]["type"] in ("runtime", "system")
    return Turn(
        prompt=texts[said[0]],
        tools=[
            content.get("original_tool_name") or event["tool_name"]
            for _, event, content in events
            if event["type"] == "tool_call"
        ],
        completed=turn["completed"],
        final=final and texts[final["event_id"]],
        steers=[texts[event] for event in said[1:]],
    )


def test_the_facts_cover_both_harnesses() -> None:
    assert len({told["session"] for told in FACTS}) == len(FACTS)
    assert {told["file"] for told in FACTS} == {str(path.relative_to(CORPUS)) for _, path in session_files()}


@pytest.mark.parametrize("told", FACTS, ids=lambda told: told["name"])
def test_a_session_is_told_as_its_lines_say(history: History, told: dict[str, Any]) -> None:
    row, session, turns, events = history.sessions[history.session(told["harness"], told["source"], told["session"])]
    check(told_turns(turns, events), told)
    assert (session["harness"], session["source"]) == (told["harness"], told["source"])
    assert hashed(session["title"]) == told["title"]
    assert session.get("relation") == told["relation"]
    if told["parent"] is not None:
        parent = history.session(told["harness"], told["source"], told["parent"])
        assert parent in history.sessions
        assert session["parent_session_id"] == parent
    assert session["turn_count"] == len(told["turns"])
    assert session["completed"] is row["completed"] is (told["turns"][-1]["ends"] is not None)


def test_there_are_no_other_sessions(history: History) -> None:
    expected = {history.session(told["harness"], told["source"], told["session"]) for told in FACTS}
    assert set(history.sessions) == expected


def test_every_record_is_accounted_for(history: History) -> None:
    """By harness and by the record's own type the census holds just as many records as the raw lines."""
    raw: Counter[tuple[str, str]] = Counter()
    for harness, path in session_files():
        number = Counter(record["type"] for record in records(path))
        for told in FACTS:
            if told["file"] == str(path.relative_to(CORPUS)) and "records" in told:
                assert number.total() == told["records"], path
        raw.update({(harness, kind): n for kind, n in number.items()})
    census: Counter[tuple[str, str]] = Counter()
    for row in history.status["records"]:
        assert row["outcome"]
        census[row["harness"], row["kind"].split("/")[0]] += row["records"]
    assert census == raw


def test_nothing_failed_and_nothing_is_unknown(history: History) -> None:
    status = history.status
    assert status["complete"]
    assert status["files_with_problems"] == []
    assert status["set_aside"] == {"count": 0, "records": []}
    assert status["unknown"] == []
    assert sum(source["files"] for source in status["sources"]) == len(session_files())
    for source in status["sources"]:
        assert (source["missing"], source["failed"]) == (0, 0)
    opened = [one for *_, events in history.sessions.values() for one in events]
    assert "unknown" not in {event["type"] for _, event, _ in opened}
    assert not any(content["truncated"] for *_, content in opened)


def raw_texts(record: dict[str, Any]) -> Iterator[str]:
    """What people, models and tools said in a record, whole; nothing of what the harness notes for itself."""
    payload = record.get("payload")
    if payload is None:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if record["type"] in ("user", "assistant"):
            yield from block_texts(content)
        return
    kind = payload.get("type")
    if kind == "reasoning":
        yield from block_texts(payload.get("summary"))
    elif kind == "message":
        yield from block_texts(payload["content"])
    elif kind in ("user_message", "agent_message"):
        yield payload["message"]
    elif kind == "agent_reasoning":
        yield payload["text"]
    elif kind == "function_call":
        yield from argument_texts(payload["arguments"])
    elif kind == "custom_tool_call":
        yield payload["input"]
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield output_text(payload["output"])


def block_texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in content or []:
        if block["type"] == "tool_use":
            yield from leaves(block["input"])
        elif block["type"] == "tool_result":
            yield from block_texts(block.get("content"))
        elif block["type"] == "thinking":
            yield block["thinking"]
        elif isinstance(block.get("text"), str):
            yield block["text"]


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)


def argument_texts(arguments: str) -> Iterator[str]:
    """The strings of a call; the whole where a model wrote what is no JSON."""
    try:
        yield from leaves(json.loads(arguments))
    except ValueError:
        yield arguments


def output_text(output: Any) -> str:
    """The output inside its JSON text, where it is recorded so."""
    try:
        inner = json.loads(output)
    except ValueError:
        return str(output)
    return str(inner["output"]) if isinstance(inner, dict) and "output" in inner else str(output)


def unwrapped(text: str) -> str:
    """A text without the tags that Claude Code writes around commands, their outputs and the editor's state."""
    if text.startswith(("<command-name>", "<command-message>")):
        return "/" + text.partition("<command-name>/")[2].partition("<")[0]
    if text.startswith("<local-command-stdout>"):
        return text.removeprefix("<local-command-stdout>").removesuffix("</local-command-stdout>")
    return "" if text.startswith("<ide_opened_file>") else text


def owner(told: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a record of a fact's file belongs to the fact's session."""
    inside = "/subagents/" not in told["file"]
    return bool(record.get("isSidechain")) is (told["relation"] == "subagent") if inside else True


def test_every_spoken_record_stands_whole_in_an_opened_event(history: History) -> None:
    """Claude Code's at the record's own time; of Codex's doubled records one of the two is the event."""
    missing = []
    number: Counter[str] = Counter()
    for told in FACTS:
        opened: dict[str, list[str]] = defaultdict(list)
        for _, event, content in history.sessions[history.session(told["harness"], told["source"], told["session"])][3]:
            opened[event["timestamp"]] += [content["text"], *leaves(content.get("arguments"))]
        everywhere = [text for texts in opened.values() for text in texts]
        for record in records(CORPUS / told["file"]):
            if owner(told, record):
                texts = [text for text in map(unwrapped, raw_texts(record)) if text.strip()]
                number[told["harness"]] += bool(texts)
                held = opened[record["timestamp"]] if told["harness"] == "claude-code" and texts else everywhere
                missing += [(told["name"], hashed(text)) for text in texts if not any(text in one for one in held)]
    assert missing == []
    assert number == SPOKEN
