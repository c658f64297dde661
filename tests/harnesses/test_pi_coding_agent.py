"""The adapter of pi and omp: three versions of one format, branches, forks, agents, and the title in its slot.

Numbers in test names are the tricky cases of the format reference. Whole files stand in `fixtures/pi-coding-agent`.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, needs_corpus, records
from outcrop import config, harnesses
from outcrop.harnesses import Environment, Harness, SourceFile
from outcrop.harnesses.moments import time_ms
from outcrop.harnesses.pi_coding_agent import HARNESS
from outcrop.harnesses.pi_entries import PRIME_ENTRIES
from outcrop.harnesses.pi_messages import ROLES, SKIPPED
from outcrop.harnesses.pi_values import content_text, exit_code, named_id, result_paths, usage
from outcrop.ingest import pipeline
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, EventType, Fact, Relation
from outcrop.store.embedded.write import Writer
from pi_reading import hold, known_facts, turns, whole
from reading import FIXTURES, NoSide, events, fed, read, scalars, values
from reading import facts_of as told

ROOT = FIXTURES / "pi-coding-agent"
MAIN = "0a9c1f3e-0001-4a00-8000-000000000001"
FORK = "0a9c1f3e-0002-4a00-8000-000000000002"
OLD = "0a9c1f3e-0003-4a00-8000-000000000003"
OMP = "1b2c3d4e5f607182"
SCOUT = "1b2c3d4e5f607183"
DIGGER = "1b2c3d4e5f607184"
FACTS = list(known_facts("pi-coding-agent"))
NONE = SourceFile("/r/sessions/--w--/x.jsonl", "pi", native="hint")
HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-02T09:00:00Z", "cwd": "/w"}


def files() -> dict[str, SourceFile]:
    """The session files of the fixtures by a short name."""
    found = [*HARNESS.discover("pi", ROOT / "pi"), *HARNESS.discover("omp", ROOT / "omp" / "agent")]
    return {named_id(os.path.basename(file.path)) or Path(file.path).stem: file for file in found}


FILES = files()


def user(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": "user", "content": text, **more}}


def said(*blocks: Any, stop: str | None = "stop", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    reason = {"stopReason": stop} if stop else {}
    return {"type": "message", "message": {"role": "assistant", "content": content, **reason, **more}}


def call(name: str, call_id: str = "c", **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(text: str, call_id: str = "c", name: str = "bash", **more: Any) -> dict[str, Any]:
    message = {"role": "toolResult", "toolCallId": call_id, "toolName": name, "content": text, **more}
    return {"type": "message", "message": message}


# Where files are


def test_it_is_a_harness() -> None:
    harness: Harness = HARNESS
    assert (harness.name, harness.agent, harness.sources) == ("pi-coding-agent", "pi", ("pi", "omp"))
    assert [HARNESS.agent_of(source) for source in HARNESS.sources] == ["pi", "omp"]
    assert harness.resume_command("x") == ["pi", "--session", "x"]
    assert HARNESS.resume_command("x", "omp") == ["omp", "--resume", "x"]
    assert harness.resume_command("owner/Scout") is None
    assert harness.group("omp") == "omp"


def test_the_roots_obey_the_variables_of_each_program() -> None:
    home = Path("/home/u")

    def roots(source: str, platform: str = "linux", **variables: str) -> list[str]:
        return [str(path) for path in HARNESS.roots(source, Environment(home, variables, platform))]

    assert roots("pi") == ["/home/u/.pi/agent/sessions"]
    assert roots("pi", PI_CODING_AGENT_DIR="~/p") == ["/home/u/p/sessions"]
    assert roots("pi", PI_CODING_AGENT_SESSION_DIR="/s") == ["/s", "/home/u/.pi/agent/sessions"]
    assert roots("omp") == ["/home/u/.omp/agent/sessions", "/home/u/.omp/profiles"]
    assert roots("omp", PI_CONFIG_DIR=".cfg") == ["/home/u/.cfg/agent/sessions", "/home/u/.cfg/profiles"]
    assert roots("omp", OMP_CODING_AGENT_DIR="/o") == ["/o/sessions"]
    assert roots("omp", XDG_DATA_HOME="/d")[2:] == ["/d/omp/sessions", "/d/omp/profiles"]
    assert len(roots("omp", "win32", XDG_DATA_HOME="/d")) == 2


def test_a_folder_that_both_programs_obey_is_read_for_one_of_them() -> None:
    home = Path("/home/u")
    omps = Environment(home, {"PI_CODING_AGENT_DIR": "/home/u/.omp/profiles/work/agent"})
    assert HARNESS.roots("omp", omps) == [Path("/home/u/.omp/profiles/work/agent/sessions")]
    assert HARNESS.roots("pi", omps) == [home / ".pi" / "agent" / "sessions"]
    pis = Environment(home, {"PI_CODING_AGENT_DIR": "/data/pi"})
    assert HARNESS.roots("omp", pis)[0] == home / ".omp" / "agent" / "sessions"
    assert HARNESS.roots("pi", pis) == [Path("/data/pi/sessions")]


def test_discover_finds_sessions_and_in_omp_those_of_agents() -> None:
    assert {name: (file.role, file.native, file.parent) for name, file in FILES.items()} == {
        MAIN: ("transcript", MAIN, None),
        FORK: ("transcript", FORK, None),
        OLD: ("transcript", OLD, None),
        OMP: ("transcript", OMP, None),
        "Scout": ("subagent", f"{OMP}/Scout", OMP),
        "Digger": ("subagent", "Scout/Digger", None),
    }
    assert len(list(HARNESS.discover("pi", ROOT / "pi" / "sessions"))) == 3
    assert len(list(HARNESS.discover("omp", ROOT / "omp"))) == 3


def test_discover_looks_into_every_profile_and_follows_no_link_out(tmp_path: Path) -> None:
    profiles = tmp_path / "profiles"
    for inner in ("work/agent/sessions/-a", "home/sessions/-b"):
        (profiles / inner).mkdir(parents=True)
        (profiles / inner / "2026-11-02T09-15-01-000Z_x.jsonl").write_text("", encoding="utf-8")
    (profiles / "empty").mkdir()
    outside = tmp_path / "outside.jsonl"
    outside.write_text("", encoding="utf-8")
    (profiles / "work/agent/sessions/-a/link.jsonl").symlink_to(outside)
    found = list(HARNESS.discover("omp", profiles))
    assert [(file.native, file.role) for file in found] == [("x", "transcript")] * 2


def test_a_session_under_a_name_of_the_users_own_is_one_of_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "-app"
    folder.mkdir(parents=True)
    (folder / "mine.jsonl").write_text("", encoding="utf-8")
    (file,) = HARNESS.discover("omp", tmp_path)
    assert (file.role, file.native) == ("transcript", None)


# What becomes of entries


def test_a_whole_session_of_version_three() -> None:
    parsed = whole(HARNESS, FILES[MAIN])
    assert [(turn.prompt, turn.tools, turn.final, end) for turn, end in turns(parsed)] == [
        (
            "Fix the loop\n[image image/png, 3 bytes]",
            ["read", "edit", "bash"],
            "The loop ends now; one test is still red.",
            "final",
        ),
        ("continue", [], None, "interrupted"),
        ("continue", ["mcp__outcrop__search_sessions"], None, "crashed"),
        ("again", [], "All green.", "final"),
    ]
    assert told(parsed) == {"created": time_ms("2026-11-02T09:15:01Z"), "title.user": "Loop work"}
    found = events(parsed)
    assert {one.cwd for one in found} == {"/w/app"}
    assert [one.time for one in found if one.text.startswith("All")] == [time_ms("2026-11-02T09:19:09.000Z")]
    final = next(one for one in found if one.text == "All green.")
    assert (final.model, final.generator, final.key) == ("m-large", "m-large", "e0000014:0")
    assert final.extra == {
        "usage": {"input": 3, "output": 90, "cache_read": 8000, "cache_write": 200, "total": 8293, "cost": 0.01}
    }
    assert [one.text for one in found if one.type is EventType.RUNTIME] == ["Request was aborted", "overloaded"]
    assert next(one for one in found if one.text == "Half an ans").partial


def test_reasoning_is_open_or_sealed() -> None:
    found = events(whole(HARNESS, FILES[MAIN]), EventType.REASONING)
    assert [(one.text, one.extra and one.extra.get("encrypted_content")) for one in found] == [
        ("The loop never ends.", None),
        (ENCRYPTED_PLACEHOLDER, "Y2lwaGVy"),
    ]
    empty = {"type": "thinking", "thinking": "", "thinkingSignature": "c2ln"}
    hollow = {"type": "thinking", "thinking": " "}
    parsed = read(HARNESS, NONE, [HEADER, user("x"), said(empty, hollow, "done")])
    assert [one.extra for one in events(parsed, EventType.REASONING)] == [{"encrypted_content": "c2ln"}]


def test_tools_are_joined_to_their_results() -> None:
    parsed = whole(HARNESS, FILES[MAIN])
    pairs = {one.call_id: one for one in events(parsed, EventType.TOOL_RESPONSE)}
    assert (pairs["call_3"].tool, pairs["call_3"].exit_code, pairs["call_3"].is_error) == ("bash", 2, True)
    assert (pairs["call_1"].tool, pairs["call_1"].exit_code, pairs["call_1"].is_error) == ("read", None, False)
    assert pairs["call_2"].extra == {"paths": ["/w/app/loop.ts"]}
    assert (pairs["call_4"].tool, pairs["call_4"].original_tool) == (
        "search_sessions",
        "mcp__outcrop__search_sessions",
    )
    kept = next(one for one in parsed if one.keep and "details" in one.keep)
    assert kept.keep["details"]["diff"] == "-x\n+y"


def test_what_an_extension_keeps_gives_no_event_and_what_it_says_does() -> None:
    parsed = whole(HARNESS, FILES[MAIN])
    custom = next(one for one in parsed if one.kind == "custom/my-extension")
    assert (custom.reason, custom.keep["data"]) == ("state of the program or of an extension", {"n": 1})
    hint = next(one for one in events(parsed) if one.text == "A hint.")
    assert (hint.type, hint.extra) == (EventType.SYSTEM, {"customType": "my-extension", "display": False})
    (unknown,) = events(parsed, EventType.UNKNOWN)
    assert unknown.raw["payload"] == [1]


def test_a_branch_is_cut_by_its_chain_of_parents() -> None:
    found = events(whole(HARNESS, FILES[MAIN]))
    left = next(one for one in found if one.text == "Tried to go on, was stopped.")
    assert (left.type, left.turn) == (EventType.SYSTEM, "e0000003"), "the summary stands where the branch begins"
    assert next(one for one in found if one.key == "e000000e").turn == "e000000e"


def test_an_answer_that_is_made_again_belongs_to_its_prompt() -> None:
    rows = [HEADER, {**user("one"), "id": "u1", "parentId": None}, {**said("first"), "id": "a1", "parentId": "u1"}]
    rows += [{**user("two"), "id": "u2", "parentId": "a1"}, {**said("second"), "id": "a2", "parentId": "u1"}]
    made = turns(read(HARNESS, NONE, rows))
    assert [(turn.prompt, turn.final) for turn, _ in made] == [("one", "second"), ("two", None)]


def test_T83_messages_that_a_compaction_keeps_are_not_said_again() -> None:
    parsed = whole(HARNESS, FILES[MAIN])
    (summary,) = events(parsed, EventType.COMPACTION)
    assert (summary.text, summary.extra, summary.turn) == (
        "The loop was fixed.",
        {"tokensBefore": 9000},
        "e000000e",
    )
    assert [one.text for one in events(parsed, EventType.USER_INPUT)].count("continue") == 2
    kept = next(one.keep for one in parsed if one.kind == "compaction")
    assert kept == {"details": {"readFiles": ["loop.ts"], "modifiedFiles": ["loop.ts"]}}


def test_T84_a_fork_names_the_session_that_its_entries_come_from() -> None:
    parent = {one.key for one in events(whole(HARNESS, FILES[MAIN]))}
    parsed = whole(HARNESS, FILES[FORK])
    facts = told(parsed)
    assert (facts["parent"], facts["relation"]) == (MAIN, Relation.FORK)
    assert "title.user" not in facts, "the parent's name came with the copy"
    copied = [one for one in events(parsed) if one.origin is not None]
    assert len(copied) == 13
    assert all(one.origin == (MAIN, one.key) and one.key in parent for one in copied)
    own = [one for one in events(parsed) if one.origin is None]
    assert [one.text for one in own] == ["", "label: e0000009 good", "Use a table instead", "A table it is."]
    assert own[-1].model == "m-small"


def test_a_new_session_that_only_names_its_parent_has_copied_nothing() -> None:
    header = {**HEADER, "parentSession": "2026-11-02T08-00-00-000Z_p.jsonl"}
    parsed = read(HARNESS, NONE, [header, {**user("hi"), "timestamp": HEADER["timestamp"]}])
    assert told(parsed)["parent"] == "p"
    assert all(one.origin is None for one in events(parsed))


def test_version_one_has_no_ids_and_its_keys_hold_no_times() -> None:
    parsed = whole(HARNESS, FILES[OLD])
    assert [(turn.prompt, turn.tools, turn.final, end) for turn, end in turns(parsed)] == [
        ("go", [], None, "interrupted"),
        ("go", ["bash", "bash"], "One file.", "final"),
        ("thanks", [], "Welcome.", "final"),
    ]
    assert parsed[0].items[0].extra == {"provider": "prov", "modelId": "m-old", "thinkingLevel": "off"}  # type: ignore[union-attr]
    rows = list(records(Path(FILES[OLD].path)))
    moved = [{**row, "timestamp": "2030-01-01T00:00:00Z"} for row in rows]
    later = [one.key for one in events(read(HARNESS, FILES[OLD], moved))]
    assert later == [one.key for one in events(parsed)]
    assert len(set(later)) == len(later)


def migrated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A file of version one as pi writes it anew: random ids, each entry after the one before."""
    made: list[dict[str, Any]] = [{**rows[0], "version": 3}]
    for number, row in enumerate(rows[1:]):
        made.append({**row, "id": f"{number:08x}", "parentId": f"{number - 1:08x}" if number else None})
    return made


def test_T85_a_migrated_file_says_the_same_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = stored_twice(tmp_path, monkeypatch, FILES[OLD], lambda data: lined(migrated(unlined(data))))
    assert sorted(text for text, *_ in before) == sorted(text for text, *_ in after)
    assert [row[1:] for row in after] == [row[1:] for row in before]


def test_T86_a_title_that_is_changed_in_its_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = whole(HARNESS, FILES[OMP])
    assert told(parsed)["title.generated"] == "Look around"
    assert parsed[0].items == [Fact("title.generated", "Look around")]
    assert not any(isinstance(item, Fact) and item.value == "Old title" for one in parsed for item in one.items)

    def renamed(data: bytes) -> bytes:
        first, rest = data.split(b"\n", 1)
        new = json.loads(first) | {"title": "Found it", "source": "user", "pad": ""}
        new["pad"] = " " * (len(first) - len(json.dumps(new, separators=(",", ":"))))
        changed = json.dumps(new, separators=(",", ":")).encode() + b"\n" + rest
        assert len(changed) == len(data)
        return changed

    before, after = stored_twice(tmp_path, monkeypatch, FILES[OMP], renamed)
    assert [row[2] for row in (before[0], after[0])] == ["Look around", "Found it"]
    assert [(text, key) for text, key, _ in before] == [(text, key) for text, key, _ in after]


def test_T87_a_crash_ends_the_turn_and_leaves_the_call_unanswered() -> None:
    parsed = whole(HARNESS, FILES[OMP])
    ((turn, end),) = turns(parsed)
    assert (turn.prompt, turn.tools, turn.final, end) == ("Look around", ["task", "bash"], None, "crashed")
    last = events(parsed)[-1]
    assert (last.type, last.text, last.ends) == (EventType.RUNTIME, "session exit: out of memory", End.CRASHED)
    assert "oc2" not in {one.call_id for one in events(parsed, EventType.TOOL_RESPONSE)}


@pytest.mark.parametrize(
    ("kind", "pending", "before", "ends"),
    [
        ("normal", False, "run", None),
        ("normal", True, "run", End.EXITED),
        ("signal", False, "run", End.EXITED),
        ("process_exit", False, "run", End.EXITED),
        ("fatal", False, "answered", None),
    ],
)
def test_an_exit_ends_only_what_still_runs(kind: str, pending: bool, before: str, ends: End | None) -> None:
    data = {"kind": kind, "reason": "r", "pendingToolCalls": [{"toolName": "bash"}] if pending else []}
    rows = [HEADER, user("go"), said("done") if before == "answered" else said(call("bash"), stop="toolUse")]
    rows += [{"type": "custom", "customType": "session_exit", "data": data}]
    assert events(read(HARNESS, NONE, rows))[-1].ends == ends


def test_T88_a_command_of_the_user_opens_no_turn() -> None:
    asked, answered = [one for one in events(whole(HARNESS, FILES[MAIN])) if one.by_user]
    assert (asked.tool, asked.arguments, asked.extra) == (
        "bash",
        {"command": "git status"},
        {"excludeFromContext": True},
    )
    assert (answered.text, answered.exit_code, answered.is_error, answered.call_id) == (
        "clean",
        0,
        False,
        asked.call_id,
    )
    assert {asked.turn, answered.turn} == {"e0000003"}
    assert asked.generator is None


def test_omp_entries() -> None:
    parsed = whole(HARNESS, FILES[OMP])
    ((turn, _),) = turns(parsed)
    assert len(turn.steers) == 1, "a steering prompt stays in the running turn"
    found = {one.key: one for one in events(parsed)}
    assert found["o0000006:1"].partial
    assert found["o0000006:1"].extra == {"phase": "commentary"}
    assert found["o0000006:0"].extra is not None
    assert found["o0000006:0"].extra["encrypted_content"] == "b3BhcXVl"
    assert found["o0000005"].extra is not None
    assert found["o0000005"].extra["usage"] == {
        "input": 10, "output": 2, "cache_read": 0, "cache_write": 0, "total": 12, "cost": 0.5,
    }  # fmt: skip
    assert found["o0000003"].generator is None
    assert found["o0000010:0"].generator == "m-large", "models of other roles serve side tasks"
    assert (found["o000000a"].text, found["o000000a"].extra) == ("/home/u/app/a.ts", {"paths": ["/home/u/app/a.ts"]})
    assert (found["o000000b:0"].arguments, found["o000000b:1"].exit_code) == ({"code": "1/0"}, 1)
    assert [found[key].type for key in ("o000000c", "o000000d", "o000000f")] == [EventType.SYSTEM] * 3
    reasons = {one.kind: one.reason for one in parsed if one.reason}
    assert reasons == {"custom/tool_execution_start": "announces a call", "credential_pin": "names an account"}
    assert "d00d" not in json.dumps([repr(one) for one in parsed])


def test_sessions_of_agents_know_their_parents_and_their_tasks() -> None:
    scout = whole(HARNESS, FILES["Scout"])
    facts = told(scout)
    assert (facts["parent"], facts["relation"], facts["agent"], facts["slug"]) == (
        OMP, Relation.SUBAGENT, "scout", "Scout",
    )  # fmt: skip
    ((turn, end),) = turns(scout)
    assert (turn.prompt, turn.final, end) == ("<context>app</context>\nFind the files", "Three files.", "final")
    assert [item for item in scout[2].items if isinstance(item, Amend)], "the prompt spells the task out"
    digger = whole(HARNESS, FILES["Digger"])
    assert told(digger)["parent"] == SCOUT, "only the header of the file above tells"
    assert [(turn.prompt, turn.final) for turn, _ in turns(digger)] == [("Dig deeper", "Nothing below.")]
    same = [HEADER, {"type": "session_init", "task": "Dig", "systemPrompt": 4}, user("Dig "), said("ok")]
    again = read(HARNESS, NONE, same)
    assert again[2].reason == "repeats the task"


def test_a_prompt_that_a_tool_was_skipped_for_steers() -> None:
    rows = [HEADER, user("go"), said(call("bash"), stop="toolUse"), result(SKIPPED, isError=True), user("wait")]
    assert [one.opens for one in events(read(HARNESS, NONE, rows), EventType.USER_INPUT)] == [True, False]
    plain = [*rows[:3], result("out"), user("next")]
    assert [one.opens for one in events(read(HARNESS, NONE, plain), EventType.USER_INPUT)] == [True, True]


@pytest.mark.parametrize(
    ("row", "end"),
    [
        (said("x"), "final"),
        (said("x", stop="length"), "final"),
        (said("x", call("bash")), None),
        (said("x", stop="toolUse"), None),
        (said("x", stop=None), None),
        (said(stop="stop"), "stopped"),
        (said("x", stop="aborted"), "interrupted"),
        (said("x", stop="error", errorMessage="no"), "crashed"),
        (said("x", errorMessage="retried once"), "final"),
    ],
)
def test_how_a_turn_ends(row: dict[str, Any], end: str | None) -> None:
    assert turns(read(HARNESS, NONE, [HEADER, user("go"), row]))[0][1] == end


def test_a_failure_that_is_tried_again_ends_nothing() -> None:
    rows = [HEADER, user("go"), said(stop="error", errorMessage="overloaded"), said("done")]
    assert turns(read(HARNESS, NONE, rows))[0][1] == "final"


def test_blocks_that_are_rare() -> None:
    use = {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "x"}}
    back = {"type": "web_search_tool_result", "tool_use_id": "w", "content": [{"type": "text", "text": "hit"}]}
    blocks = [{"type": "anthropicServerTool", "block": block} for block in (use, back)]
    rows = [HEADER, user("go"), said(*blocks, {"type": "fallback", "from": {"model": "a"}}, {"type": "new"}, "done")]
    found = events(read(HARNESS, NONE, rows))[2:]
    assert [(one.type.value, one.tool, one.text) for one in found] == [
        ("tool_call", "web_search", ""),
        ("tool_response", "web_search", "hit"),
        ("system", None, "the model fell back to another one"),
        ("unknown", None, ""),
        ("assistant_response", None, "done"),
    ]


def test_a_file_without_a_header_goes_by_its_name() -> None:
    reader = HARNESS.reader(NONE, None, NoSide())
    reader.feed(user("hi"))
    assert reader.session == "hint"
    reader.feed({**HEADER, "id": "other"})
    assert reader.session == "hint"


def test_a_second_header_changes_nothing() -> None:
    parsed = read(HARNESS, NONE, [HEADER, HEADER, {**HEADER, "id": "t"}, user("hi")])
    assert [one.reason for one in parsed[1:3]] == ["repeats the session's header", "header of another session"]
    assert parsed[2].keep == {**HEADER, "id": "t"}


def test_values() -> None:
    assert time_ms("2026-11-02T09:15:01.120Z") == time_ms("2026-11-02T10:15:01.120+01:00") == 1793610901120
    assert time_ms(1793610901120) == time_ms(1793610901.12) == 1793610901120
    assert time_ms(True) is time_ms("soon") is time_ms(None) is time_ms(float("nan")) is time_ms(-5) is None
    assert named_id("2026-11-02T09-15-01-000Z_a_b.jsonl") == "a_b"
    assert named_id("Scout.jsonl") is None
    assert content_text([{"type": "image", "data": "blob:sha256:ab", "mimeType": "image/png"}]) == "[image image/png]"
    assert exit_code("bash", "x\nCommand exited with code 3", None) == 3
    assert exit_code("read", "x\nCommand exited with code 3", None) is None
    assert exit_code("read", "", {"exitCode": 0}) == 0
    assert result_paths({"path": "a", "files": ["b", {"path": "c"}, 4], "x": {"path": "d"}}) == ["a", "b", "c"]
    assert result_paths("a") == result_paths(None) == []
    assert usage({"input": 0, "output": 0, "cost": {"total": 0}}) is usage(3) is None


# The whole way


def lined(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def unlined(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.split(b"\n") if line]


def stored_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: SourceFile, change: Any) -> Any:
    """(text, turn's number, title) of all stored events before and after the file is written anew."""
    monkeypatch.setattr(harnesses, "REGISTRY", {"pi-coding-agent": harnesses.REGISTRY["pi-coding-agent"]})
    home, store = tmp_path / "home", tmp_path / "store"
    folder = home / (".pi" if file.source == "pi" else ".omp") / "agent" / "sessions" / "-app"
    folder.mkdir(parents=True)
    path = folder / os.path.basename(file.path)
    shutil.copy(file.path, path)
    outcomes = []
    for _ in range(2):
        environment = Environment(home, {"OUTCROP_HOME": str(store)}, "linux")
        pipeline.index(config.load(environment), environment)
        writer = Writer(store)
        rows = writer.db.execute(
            "SELECT e.block, e.slot, t.ord, s.title FROM event e JOIN turn t ON t.id = e.turn"
            " JOIN session s ON s.id = t.session ORDER BY t.ord, e.ord"
        ).fetchall()
        outcomes.append([(writer.content(row[0], row[1]).get("text", ""), row[2], row[3]) for row in rows])
        writer.close()
        before = os.stat(path)
        path.write_bytes(change(path.read_bytes()))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 5_000_000_000))
    return outcomes


# Properties


@given(st.sampled_from(sorted(FILES)), st.sets(st.integers(0, 30)))
def test_reading_cut_anywhere_gives_the_same_items(name: str, cuts: set[int]) -> None:
    rows = list(records(Path(FILES[name].path)))
    assert read(HARNESS, FILES[name], rows, frozenset(cuts)) == read(HARNESS, FILES[name], rows)


# fmt: off
WORDS = (
    "type", "id", "parentId", "timestamp", "role", "content", "text", "thinking", "thinkingSignature", "redacted",
    "data", "mimeType", "name", "arguments", "stopReason", "errorMessage", "usage", "input", "cost", "model",
    "toolCallId", "toolName", "details", "path", "files", "isError", "exitCode", "command", "code", "output",
    "summary", "customType", "display", "kind", "pendingToolCalls", "task", "systemPrompt", "agent", "title",
    "source", "parentSession", "rlmDepth", "git", "branch", "status", "state", "message", "version", "cwd", "block",
    "textSignature", "steering", "synthetic", "childUsage", "modelId", "fromRelationship", "label", "targetId",
)
# fmt: on
LEAF = scalars(
    [
        *ROLES,
        "text",
        "thinking",
        "toolCall",
        "image",
        "agent_message",
        "session_exit",
        "stop",
        "aborted",
        "{}",
        SKIPPED,
    ]
)
VALUE = values(WORDS, LEAF)


@st.composite
def odd_records(draw: st.DrawFn) -> dict[str, Any]:
    row = draw(st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=6))
    kind = draw(st.sampled_from(["message", "session", "title", *PRIME_ENTRIES]))
    if kind == "message" and draw(st.booleans()):
        message = draw(st.dictionaries(st.sampled_from(WORDS), VALUE, max_size=6))
        row["message"] = {**message, "role": draw(st.sampled_from(list(ROLES)))}
    return {**row, "type": kind if draw(st.integers(0, 9)) else draw(LEAF)}


@given(st.lists(odd_records(), max_size=8), st.sampled_from(["pi_coding_agent", "prime_agent"]))
def test_wrong_shapes_are_no_errors(rows: list[dict[str, Any]], module: str) -> None:
    harness = harnesses.import_module(f"outcrop.harnesses.{module}").HARNESS
    for before in ([], [HEADER], [HEADER, user("go"), said(call("bash"))]):
        fed(harness.reader(NONE, None, NoSide()), [*before, *rows])


# The corpus


@needs_corpus
@pytest.mark.parametrize("one", FACTS, ids=lambda one: one["name"])
def test_sessions_of_the_corpus_are_what_their_facts_say(one: dict[str, Any]) -> None:
    hold(HARNESS, one, SourceFile(str(one["path"]), one["source"], native=one["session"]))


@needs_corpus
def test_every_file_of_the_corpus_is_a_session_and_every_record_is_understood() -> None:
    found = list(HARNESS.discover("pi", CORPUS / "pi"))
    assert {file.path for file in found} == {str(path) for path in (CORPUS / "pi").rglob("*") if path.is_file()}
    for file in found:
        assert not events(whole(HARNESS, file), EventType.UNKNOWN), file.path
