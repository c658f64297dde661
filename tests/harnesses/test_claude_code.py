"""Claude Code's records: the cases of the format, the places of its files, and readings that are cut anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.harnesses import UNLISTED, Environment, Form, SourceFile
from outcrop.harnesses.claude_code import HARNESS
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Fact, Item, Parsed, Relation
from reading import NoSide

FIXTURES = Path(__file__).parent.parent / "fixtures" / "claude-code"
PROJECTS = FIXTURES / "home" / ".claude" / "projects"
SESSION = "5f6e0c1a-3b52-4a6e-9d1f-0a1b2c3d4e5f"
OLD, NEW = "0b0b0b0b-1111-4222-8333-444444444444", "0c0c0c0c-1111-4222-8333-444444444444"
LOCAL = "local_33333333-2222-4333-8444-555555555555"


class Folder:
    """Side files of the fixture home, which the records know under another root."""

    def text(self, path: str, inside: str, limit: int) -> str | None:
        if "tool-results" not in path or "/tool-results" not in inside:
            return None
        return (Path(inside) / Path(path).name).read_text(encoding="utf-8")[:limit]


def files(source: str = "claude", root: Path = PROJECTS) -> dict[str, SourceFile]:
    return {str(Path(file.path).relative_to(root)): file for file in HARNESS.discover(source, root)}


def rows(file: SourceFile) -> list[dict[str, Any]]:
    text = Path(file.path).read_text(encoding="utf-8")
    if file.form is Form.DOCUMENT:
        return list(HARNESS.records(file, json.loads(text)))
    return [json.loads(line) for line in text.split("\n") if line]


def read(records: list[dict[str, Any]], file: SourceFile | None = None, side: Any = None) -> list[Parsed]:
    reader = HARNESS.reader(file or SourceFile("/p/-w/s.jsonl", "claude", native="s"), None, side or NoSide())
    return [reader.feed(record) for record in records]


def items(parsed: list[Parsed]) -> list[Item]:
    return [item for one in parsed for item in one.items]


def events(parsed: list[Parsed], kind: EventType | None = None) -> list[Event]:
    return [item for item in items(parsed) if isinstance(item, Event) and kind in (None, item.type)]


def facts(parsed: list[Parsed]) -> dict[tuple[str | None, str], Any]:
    return {(item.session, item.name): item.value for item in items(parsed) if isinstance(item, Fact)}


@pytest.fixture(scope="module")
def main() -> list[Parsed]:
    file = files()[f"-w-app/{SESSION}.jsonl"]
    return read(rows(file), file, Folder())


def said(text: Any, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": text}, **fields}


def answer(number: int, *blocks: dict[str, Any], message: str = "m", **fields: Any) -> dict[str, Any]:
    stop = fields.pop("stop", None)
    body = {"id": message, "model": fields.pop("model", "claude-x"), "content": list(blocks), "stop_reason": stop}
    body["usage"] = fields.pop("usage", None)
    return {"type": "assistant", "uuid": f"a{number}", "message": body, **fields}


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def test_T36_one_message_of_three_lines_is_three_events_with_one_usage(main: list[Parsed]) -> None:
    first = [one for one in events(main) if one.generator][:4]
    assert [one.type for one in first] == [
        EventType.REASONING,
        EventType.ASSISTANT_RESPONSE,
        EventType.TOOL_CALL,
        EventType.TOOL_CALL,
    ]
    assert first[0].extra
    assert first[0].extra["usage"]["output_tokens"] == 2
    assert not any(one.extra for one in first[1:])
    later = [
        item.changes["extra"]["usage"] for item in items(main) if isinstance(item, Amend) and item.key == first[0].key
    ]
    assert [usage["output_tokens"] for usage in later] == [90, 95]


def test_T37_a_result_between_the_lines_of_a_message_does_not_split_its_usage() -> None:
    usage = {"input_tokens": 5, "output_tokens": 7}
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = said([{"type": "tool_result", "tool_use_id": "t1", "content": "a"}])
    parsed = read([answer(1, call, usage=usage), result, answer(2, text("so"), usage=usage)])
    assert [one.extra for one in events(parsed)] == [{"usage": usage}, None, None]
    assert not [item for item in items(parsed) if isinstance(item, Amend)]


def test_T38_thinking_that_is_only_signed_is_a_placeholder(main: list[Parsed]) -> None:
    assert events(main, EventType.REASONING)[0].text == ENCRYPTED_PLACEHOLDER


def test_T39_a_local_command_opens_no_turn(main: list[Parsed]) -> None:
    shown = [(one.type, one.text, one.opens) for one in events(main)[:3]]
    assert shown[1:] == [(EventType.SYSTEM, "/model opus", False), (EventType.SYSTEM, "Set model to opus", False)]


def test_a_command_announced_by_a_caveat_is_local_whatever_its_name() -> None:
    caveat = said("<local-command-caveat>Caveat: …</local-command-caveat>", 1, isMeta=True)
    command = "<command-name>/brand-new</command-name><command-message>x</command-message>"
    assert not events(read([caveat, said(command, 2, parentUuid="u1")]))[1].opens
    assert events(read([caveat, said(command, 2, parentUuid="u0")]))[1].opens


def test_T40_a_prompt_command_opens_a_turn(main: list[Parsed]) -> None:
    review = next(one for one in events(main) if one.text == "/review src")
    assert (review.type, review.opens) == (EventType.USER_INPUT, True)
    after = events(main)[events(main).index(review) + 1]
    assert (after.type, after.text) == (EventType.SYSTEM, "Review the code of src.")


def test_T41_a_reminder_beside_a_result_is_no_input() -> None:
    reminder = text("<system-reminder>be brief</system-reminder>")
    parsed = read([said([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}, reminder])])
    (only,) = events(parsed)
    assert (only.type, only.text) == (EventType.TOOL_RESPONSE, "ok")
    assert only.extra == {"context": reminder["text"]}


def test_reminders_and_ide_context_are_split_off_a_prompt(main: list[Parsed]) -> None:
    opened = [one for one in events(main, EventType.USER_INPUT) if one.opens]
    assert opened[0].text == "why does the cache expire early?\n[image image/png, 16 bytes]"
    assert opened[0].extra
    assert "ide_opened_file" in opened[0].extra["context"]
    assert opened[2].text == "only list the findings"
    assert opened[2].extra
    assert "Monday" in opened[2].extra["context"]


def test_T42_a_queued_prompt_is_one_input_inside_the_turn(main: list[Parsed]) -> None:
    queued = [one for one in events(main) if one.text == "also fix the docs"]
    assert [(one.type, one.opens) for one in queued] == [(EventType.RUNTIME, False), (EventType.USER_INPUT, False)]


def test_T43_an_interrupt_ends_the_turn(main: list[Parsed]) -> None:
    (stop,) = [one for one in events(main) if one.ends is End.INTERRUPTED]
    assert (stop.type, stop.text) == (EventType.RUNTIME, "[Request interrupted by user for tool use]")
    assert events(main)[events(main).index(stop) + 1].opens


def test_T44_a_resume_copy_keeps_keys_and_names_its_source() -> None:
    found = files()
    old, new = found[f"-w-app/{OLD}.jsonl"], found[f"-w-app/{NEW}.jsonl"]
    before, after = read(rows(old), old), read(rows(new), new)
    copied = [one.origin for one in events(before)]
    assert [one.origin for one in events(after)[:2]] == copied
    assert all(origin is not None and origin[0] is None for origin in copied)
    assert facts(after)[None, "parent"] == OLD
    assert facts(after)[None, "relation"] is Relation.CONTINUATION


def test_T45_a_fork_names_its_source_once() -> None:
    fork = {"sessionId": "other", "messageUuid": "m"}
    parsed = read([said("one", 1, forkedFrom=fork, sessionId="s"), said("two", 2, forkedFrom=fork, sessionId="s")])
    told = [(item.name, item.value) for item in items(parsed) if isinstance(item, Fact)]
    assert told == [("parent", "other"), ("relation", Relation.FORK)]


def test_T46_a_summary_counts_only_where_its_leaf_is_here(main: list[Parsed]) -> None:
    titles = {name: value for (_, name), value in facts(main).items() if name.startswith("title")}
    assert titles == {
        "title.summary": "Cache fixed",
        "title.user": "Cache expiry",
        "title.generated": "Fix cache TTL",
    }
    head = {"type": "summary", "summary": "Early", "leafUuid": "u2"}
    parsed = read([head, said("one", 1), said("two", 2)])
    assert parsed[0].reason
    assert facts(parsed) == {(None, "title.summary"): "Early"}


def test_T47_an_agent_file_is_a_session_of_its_own() -> None:
    found = files()
    file = found[f"-w-app/{SESSION}/subagents/agent-a1b2c3.jsonl"]
    reader = HARNESS.reader(file, None, NoSide())
    parsed = [reader.feed(record) for record in rows(file)]
    assert reader.session == f"{SESSION}/agent-a1b2c3"
    assert facts(parsed)[None, "parent"] == SESSION
    assert facts(parsed)[None, "relation"] is Relation.SUBAGENT
    assert next((one.type, one.opens) for one in events(parsed)) == (EventType.USER_INPUT, True)
    assert all(one.session is None for one in events(parsed))
    meta = found[f"-w-app/{SESSION}/subagents/agent-a1b2c3.meta.json"]
    said_of_it = facts(read(rows(meta), meta))
    assert (said_of_it[None, "agent"], said_of_it[None, "summary"]) == ("Explore", "look for callers")
    assert HARNESS.reader(meta, None, NoSide()).session == reader.session


def test_T47_an_agent_beside_its_parent_takes_the_parent_from_its_records() -> None:
    file = files()["-w-app/agent-beside1.jsonl"]
    reader = HARNESS.reader(file, None, NoSide())
    assert reader.session is None
    parsed = [reader.feed(record) for record in rows(file)]
    assert reader.session == f"{SESSION}/agent-beside1"
    assert facts(parsed)[None, "parent"] == SESSION


def test_sidechain_records_inside_a_file_belong_to_one_child() -> None:
    file = files()[f"-w-app/{NEW}.jsonl"]
    parsed = read(rows(file), file)
    children = {one.session for one in events(parsed)} - {None}
    (child,) = children
    assert child is not None
    assert child.startswith(f"{NEW}/agent-")
    assert facts(parsed)[child, "parent"] == NEW
    assert facts(parsed)[child, "machine"] is True
    assert [one.text for one in events(parsed) if one.session == child] == ["Warmup", "Ready to help."]


def test_a_sidechain_goes_on_through_its_progress_records() -> None:
    side = {"isSidechain": True, "sessionId": "s"}
    progress = {"type": "progress", "uuid": "p1", "parentUuid": "u1", "data": {"type": "hook_progress"}, **side}
    parsed = read([said("look", 1, **side), progress, answer(2, text("found"), parentUuid="p1", **side)])
    assert {one.session for one in events(parsed)} == {"s/agent-u1"}
    assert facts(parsed) == {("s/agent-u1", "parent"): "s", ("s/agent-u1", "relation"): Relation.SUBAGENT}


def test_T48_journals_are_no_transcripts_but_a_project_may_be_called_workflows() -> None:
    assert sorted(files()) == sorted(
        [
            f"-w-app/{OLD}.jsonl",
            f"-w-app/{NEW}.jsonl",
            f"-w-app/{SESSION}.jsonl",
            "-w-app/agent-beside1.jsonl",
            f"-w-app/{SESSION}/subagents/agent-a1b2c3.jsonl",
            f"-w-app/{SESSION}/subagents/agent-a1b2c3.meta.json",
            f"-w-app/{SESSION}/subagents/workflows/wf1/agent-w1.jsonl",
            "workflows/7a7a7a7a-1111-4222-8333-444444444444.jsonl",
        ]
    )


def test_T49_progress_gives_no_events(main: list[Parsed]) -> None:
    told = [one for one in main if one.kind.startswith("progress/")]
    assert [one.kind for one in told] == ["progress/bash_progress", "progress/agent_progress"]
    assert all(one.reason and not one.items for one in told)


def test_T50_a_spilled_output_is_read_from_the_sessions_folder(main: list[Parsed]) -> None:
    big = next(one for one in events(main) if one.call_id == "toolu_7" and one.type is EventType.TOOL_RESPONSE)
    assert big.text.startswith("line 1\n")
    assert big.text.endswith("line 59\n")
    assert big.extra
    assert big.extra["persistedOutputSize"] == 40960


def test_T51_an_api_error_is_runtime_and_the_next_prompt_proves_the_crash(main: list[Parsed]) -> None:
    (error,) = [one for one in events(main) if one.text.startswith("API Error")]
    assert (error.type, error.model, error.generator, error.ends) == (EventType.RUNTIME, None, "claude-opus-4-6", None)
    assert Amend(error.key, {"ends": End.CRASHED}) in items(main)
    duration = {"type": "system", "subtype": "turn_duration", "uuid": "d", "durationMs": 1}
    failed = answer(1, text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True)
    assert events(read([said("go"), failed, duration]))[-1].ends is End.CRASHED


def test_T52_a_refused_edit_is_a_failed_response(main: list[Parsed]) -> None:
    (refused,) = [one for one in events(main) if one.extra and one.extra.get("denied")]
    assert (refused.type, refused.tool, refused.is_error) == (EventType.TOOL_RESPONSE, "Write", True)


def test_T53_boundary_and_summary_are_one_compaction_and_open_nothing(main: list[Parsed]) -> None:
    (summary,) = events(main, EventType.COMPACTION)
    assert not summary.opens
    assert "The cache was fixed." in summary.text
    boundary = next(one for one in events(main) if one.text == "Conversation compacted")
    assert boundary.type is EventType.SYSTEM
    assert boundary.extra
    assert boundary.extra["compactMetadata"]["preTokens"]


def test_T54_cowork_files_of_one_folder_are_one_session() -> None:
    root = FIXTURES / "cowork"
    found = files("claude-cowork", root)
    assert not any("audit" in path for path in found)
    assert {file.native for file in found.values()} == {LOCAL}
    told = {}
    for file in found.values():
        parsed = read(rows(file), file)
        told |= facts(parsed)
        assert "private" not in repr(parsed)
        assert "example.invalid" not in repr(parsed)
        assert all(one.cwd is None for one in events(parsed))
        assert (None, "parent") not in facts(parsed)
    assert told[None, "title.user"] == "Quarterly report"
    assert told[None, "created"] == 1772442000000


def test_calls_results_and_exit_codes(main: list[Parsed]) -> None:
    results = {one.call_id: one for one in events(main, EventType.TOOL_RESPONSE)}
    assert [(results[f"toolu_{n}"].tool, results[f"toolu_{n}"].exit_code) for n in (1, 2, 4)] == [
        ("Bash", 0),
        ("Read", None),
        ("Bash", 2),
    ]
    assert [results[f"toolu_{n}"].is_error for n in (1, 4)] == [False, True]
    edit = results["toolu_3"].extra
    assert edit == {"filePath": "/w/app/cache.py", "patch": {"hunks": 1, "added": 2, "removed": 1}}
    own = results["toolu_5"]
    assert (own.tool, own.original_tool) == ("search_sessions", "mcp__plugin_outcrop_outcrop__search_sessions")
    assert own.text == "2 hits\n[tool WebFetch]"
    agent = results["toolu_8"].extra
    assert agent
    assert (agent["agentId"], agent["totalTokens"]) == ("a1b2c3", 2100)


def test_exit_codes_are_never_guessed() -> None:
    call = answer(1, {"type": "tool_use", "id": "t", "name": "Bash", "input": {}})
    for result in (
        {"stdout": "", "interrupted": True},
        {"stdout": "", "returnCodeInterpretation": "No matches found"},
        {"stdout": "", "backgroundTaskId": "b1"},
        "Error: something",
        None,
    ):
        block = {"type": "tool_result", "tool_use_id": "t", "content": ""}
        assert events(read([call, said([block], toolUseResult=result)]))[-1].exit_code is None


def test_shell_runs_of_the_person_are_calls_by_the_user(main: list[Parsed]) -> None:
    call, response = [one for one in events(main) if one.by_user]
    assert (call.type, call.tool, call.arguments) == (EventType.TOOL_CALL, "Bash", {"command": "git status"})
    assert (response.type, response.text, response.call_id) == (EventType.TOOL_RESPONSE, "clean", call.call_id)


def test_a_longer_snapshot_amends_the_shorter_one(main: list[Parsed]) -> None:
    (short,) = [one for one in events(main) if one.text.startswith("One finding")]
    assert Amend(short.key, {"text": "One finding: no tests.", "ends": End.FINAL}) in items(main)


def test_two_equal_texts_in_one_record_stay_two() -> None:
    assert len(events(read([answer(1, text("yes"), text("yes"))]))) == 2


def test_stop_reasons_end_a_turn_unless_calls_are_open() -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    assert events(read([answer(1, text("done"), stop="end_turn")]))[0].ends is End.FINAL
    assert [one.ends for one in events(read([answer(1, text("so"), call, stop="max_tokens")]))] == [None, None]
    assert events(read([answer(1, text("hm"), stop="pause_turn")]))[0].ends is None
    (silent,) = events(read([answer(1, stop="end_turn")]))
    assert (silent.type, silent.ends) == (EventType.RUNTIME, End.FINAL)


def test_a_stop_hook_that_fails_proves_nothing() -> None:
    hook = {"type": "system", "subtype": "stop_hook_summary", "uuid": "h"}
    assert events(read([hook | {"hookErrors": ["blocked"]}]))[0].ends is None
    assert events(read([hook | {"hookErrors": []}]))[0].ends is End.FINAL
    assert events(read([hook | {"preventedContinuation": True}]))[0].ends is End.STOPPED


def test_superseded_records_are_marked_block_by_block() -> None:
    parsed = read([answer(1, text("a"), text("b")), answer(2, text("c"), message="n", supersedesUuids=["a1"])])
    amended = [(item.key, item.changes) for item in items(parsed) if isinstance(item, Amend)]
    assert amended == [("a1:0", {"superseded": True}), ("a1:1", {"superseded": True})]


def test_a_record_written_twice_gives_the_same_keys() -> None:
    call = answer(1, text("a"), {"type": "tool_use", "id": "t", "name": "Bash", "input": {}})
    first, second = read([call, call])
    assert [one.key for one in events([first])] == [one.key for one in events([second])]


def test_records_without_uuid_have_keys_of_their_meaning() -> None:
    enqueue = {
        "type": "queue-operation",
        "operation": "enqueue",
        "content": "more",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    again = enqueue | {"timestamp": "2026-01-02T00:00:00Z"}
    one, two = events(read([enqueue, again]))
    assert one.key != two.key
    assert one.key.split(":")[0] == two.key.split(":")[0]
    assert one.origin is None
    assert events(read([said("x"), again]))[1].key == events(read([said("x"), enqueue]))[1].key


def test_times_are_utc_milliseconds_or_none() -> None:
    stamps: list[Any] = ["2026-01-01T00:00:00.250Z", "2026-01-01T02:00:00+02:00", 1767225600000, "soon", None, True]
    parsed = read([said("x", number, timestamp=stamp) for number, stamp in enumerate(stamps)])
    assert [one.time for one in events(parsed)] == [1767225600250, 1767225600000, 1767225600000, None, None, None]


def test_unknown_kinds_are_kept_whole(main: list[Parsed]) -> None:
    assert [one.raw["type"] for one in events(main, EventType.UNKNOWN)] == ["future-kind", "future-nameless"]


def test_ancient_calls_stand_as_records_of_their_own() -> None:
    call = {"type": "tool_use", "id": "t", "name": "LS", "input": {"path": "/w"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "a.py"}
    one, two = events(read([call, result]))
    assert (one.tool, one.arguments, two.tool, two.text) == ("LS", {"path": "/w"}, "LS", "a.py")


def test_a_teammates_first_message_is_its_task() -> None:
    task = '<teammate-message teammate_id="lead">write the tests</teammate-message>'
    first, second = events(read([said(task, 1), said(task, 2)]))
    assert (first.type, first.opens, first.text) == (EventType.USER_INPUT, True, "write the tests")
    assert (second.type, second.opens) == (EventType.SYSTEM, False)


@pytest.mark.parametrize("start", ["<div>", "[1, 2]", "Cannot open", "This fails", "Stop it", "<command-name>x"])
def test_typed_text_that_looks_like_a_mark_opens_a_turn(start: str) -> None:
    assert events(read([said(f"{start} why?")]))[0].opens


ODD = st.none() | st.integers() | st.booleans() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
NAMES = ["type", "subtype", "text", "message", "content", "id", "name", "input", "attachment", "toolUseResult", "data"]
NAMES += ["model", "usage", "stop_reason", "uuid", "sessionId", "isSidechain", "origin", "forkedFrom", "error", "task"]
NAMES += ["tool_use_id", "structuredPatch", "supersedesUuids", "leafUuid", "summary", "timestamp", "prompt", "source"]
KINDS = "user assistant system attachment progress summary queue-operation tool_use tool_result text thinking image new"
SHAPES = st.recursive(
    ODD | st.sampled_from(KINDS.split()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=15,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES), SHAPES, max_size=8), max_size=4), st.sampled_from(KINDS.split())
)
def test_any_shape_is_accounted_for(records: list[dict[str, Any]], kind: str) -> None:
    for record in [*records, *({**record, "type": kind} for record in records)]:
        (parsed,) = read([record])
        assert parsed.items or parsed.reason
        for one in events([parsed]):
            assert isinstance(one.text, str)
            assert isinstance(one.key, str)
    reader = HARNESS.reader(SourceFile("/p/s.jsonl", "claude"), None, NoSide())
    for record in records:
        reader.feed(record)
    assert json.loads(json.dumps(reader.state())) == reader.state()


@given(st.data())
def test_a_reading_may_be_cut_anywhere(data: st.DataObject) -> None:
    found = [file for file in files().values() if file.form is Form.LINES]
    file = data.draw(st.sampled_from(found))
    records = rows(file)
    cuts = data.draw(st.sets(st.integers(0, len(records))))
    reader, parsed = HARNESS.reader(file, None, Folder()), []
    for number, record in enumerate(records):
        if number in cuts:
            reader = HARNESS.reader(file, json.loads(json.dumps(reader.state())), Folder())
        parsed.append(reader.feed(record))
    assert parsed == read(records, file, Folder())


def test_roots_obey_the_variables() -> None:
    def roots(platform: str = "linux", source: str = "claude", **variables: str) -> list[str]:
        return [str(path) for path in HARNESS.roots(source, Environment(Path("/h/u"), variables, platform))]

    assert roots() == ["/h/u/.claude/projects", "/h/u/.config/claude/projects"]
    assert roots(CLAUDE_CONFIG_DIR="/a, ~/b") == ["/a/projects", "/h/u/b/projects"]
    assert roots(CLAUDE_CONFIG_DIRS="/a:/b", CLAUDE_CONFIG_DIR="/a") == ["/a/projects", "/b/projects"]
    assert roots("win32", CLAUDE_CONFIG_DIRS="C:/a;D:/b") == ["C:/a/projects", "D:/b/projects"]
    assert roots(source="claude-cowork") == []
    (cowork,) = roots("darwin", "claude-cowork")
    assert cowork == "/h/u/Library/Application Support/Claude/local-agent-mode-sessions"


def test_a_missing_root_is_told_of() -> None:
    assert list(HARNESS.discover("claude", Path("/nonexistent/projects"))) == []
    assert [error.filename for error in UNLISTED] == ["/nonexistent/projects"]
    UNLISTED.clear()


def test_native_ids_come_from_names_that_hold_one(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for name in (f"{SESSION}.jsonl", f"2026-01-06-{SESSION}.jsonl", "notes.jsonl", "x.json", "x.txt"):
        (tmp_path / "p" / name).write_text("")
    found = {Path(file.path).name: file.native for file in HARNESS.discover("claude", tmp_path)}
    assert found == {f"{SESSION}.jsonl": SESSION, f"2026-01-06-{SESSION}.jsonl": SESSION, "notes.jsonl": None}
    reader = HARNESS.reader(SourceFile("/p/notes.jsonl", "claude"), None, NoSide())
    reader.feed({"type": "summary", "summary": "t", "leafUuid": "l"})
    assert reader.session is None
    reader.feed(said("hi", sessionId="from-records"))
    assert reader.session == "from-records"


def test_only_sessions_of_the_command_line_can_be_resumed() -> None:
    assert HARNESS.resume_command(SESSION) == ["claude", "--resume", SESSION]
    assert HARNESS.resume_command(f"{SESSION}/agent-a") is None
    assert HARNESS.resume_command(LOCAL) is None


def test_a_queued_text_that_only_the_queue_tells_of_is_an_input_inside_the_turn() -> None:
    """Some versions record that the agent was given the text, and then neither a prompt nor a queued_command."""

    def operation(name: str, **more: Any) -> dict[str, Any]:
        return {"type": "queue-operation", "operation": name, "timestamp": "2026-01-01T00:00:00Z", **more}

    notice = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
    told = [said("start"), operation("enqueue", content=notice), operation("enqueue", content="also the docs")]
    given = events(read([*told, operation("remove"), operation("remove")]))
    inputs = [(one.text, one.opens) for one in given if one.type is EventType.USER_INPUT]
    assert inputs == [("start", True), ("also the docs", False)], "a notice is nobody's prompt"
    taken_back = events(read([*told, operation("popAll"), operation("remove")]))
    assert [one.text for one in taken_back if one.type is EventType.USER_INPUT] == ["start"]
    on_its_own = events(read([*told, operation("dequeue"), said("also the docs"), operation("remove")]))
    assert [one.text for one in on_its_own if one.type is EventType.USER_INPUT] == ["start", "also the docs"]


def test_a_prompt_that_a_hook_stopped_ends_its_turn() -> None:
    stopped = events(read([said("fix it"), said("Operation stopped by hook: not now"), said("fix it")]))
    assert [(one.type, one.ends) for one in stopped] == [
        (EventType.USER_INPUT, None),
        (EventType.RUNTIME, End.STOPPED),
        (EventType.USER_INPUT, None),
    ]
