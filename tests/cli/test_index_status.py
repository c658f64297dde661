"""`outcrop index` and `outcrop status`: what they print, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

from world import World


def test_status_before_anything_is_indexed(small_world: World) -> None:
    told = small_world.run("status")
    assert (told.code, told.out) == (3, "")
    assert told.err == "outcrop: error: nothing is indexed yet: run `outcrop index`\n"


def test_an_empty_home_is_no_error(small_world: World) -> None:
    told = small_world.run("index")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("0 events from 0 records in 0 of 0 files (0.0 MB in ")
    first, second = small_world.run("status").out.splitlines()[:2]
    assert first == "current: all that the 0 files on disk hold is indexed"
    assert second.startswith("0 sessions, 0 turns, 0 events in ")


def test_one_line_tells_of_a_pass(small_world: World) -> None:
    small_world.write("K", "X")
    first = small_world.run("index")
    assert (first.code, first.err, first.out.count("\n")) == (0, "", 1)
    assert " in 2 of 2 files (" in first.out
    assert small_world.index().out.startswith("0 events from 0 records in 0 of 2 files")
    assert small_world.index("--full").out.startswith("0 events from 0 records in 2 of 2 files")


def test_index_as_json(small_world: World) -> None:
    small_world.write("K", "X")
    path = small_world.sessions["K"].path(small_world.home)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write("no JSON\n")
    told = small_world.index("--json")
    summary = told.json
    assert told.out.count("\n") == 1
    assert set(summary) == {
        *(
            "files",
            "files_read",
            "records",
            "events",
            "bytes",
            "set_aside",
            "removed",
            "erasure_pending",
            "seconds",
            "problems",
        ),
    }
    records = sum(len(made.lines) for made in small_world.sessions.values())
    assert (summary["files"], summary["files_read"], summary["records"]) == (2, 2, records)
    assert summary["bytes"] == sum(made.path(small_world.home).stat().st_size for made in small_world.sessions.values())
    assert (summary["set_aside"], summary["problems"]) == (1, [])


def test_one_source_alone(small_world: World) -> None:
    small_world.write("K", "X")
    assert small_world.run("index", "--source", "codex", "--json").json["files"] == 1
    found = small_world.run("status", "--json").json
    assert [source["source"] for source in found["sources"]] == ["codex"]
    assert {root["source"] for root in found["roots"]} == {"codex"}
    small_world.index()
    small_world.index("--source", "claude")
    roots = small_world.run("status", "--json").json["roots"]
    assert {"claude", "codex"} <= {root["source"] for root in roots}
    assert len({(root["source"], root["root"]) for root in roots}) == len(roots)
    wrong = small_world.run("index", "--source", "claud")
    assert wrong.code == 2
    assert "unknown source: claud" in wrong.err


def test_status_names_what_was_set_aside_and_what_is_unknown(small_world: World) -> None:
    small_world.write("K", "X")
    made = small_world.sessions["K"]
    path = made.path(small_world.home)
    data = path.read_bytes()
    broken = b"{oops\n"
    odd = {**made.lines[0], "type": "from-the-future", "uuid": "33333333-3333-4333-8333-333333333333"}
    odd["version"] = "9.9.9"
    path.write_bytes(data + broken + json.dumps(odd).encode() + b"\n" + b"[1]\n" * 30)
    small_world.index()
    shown = small_world.run("status").out.splitlines()
    line = data.count(b"\n") + 1
    assert f"  set aside {path} line {line}, byte {len(data)}: not JSON" in shown
    assert "  and 26 more records set aside" in shown
    assert "  unknown to this version: 1 x from-the-future (claude-code 9.9.9); kept whole" in shown
    found = small_world.run("status", "--json").json
    aside = found["set_aside"]
    assert (aside["count"], len(aside["records"])) == (31, 20)
    assert aside["records"][0] == {
        "path": str(path), "offset": len(data), "line": line, "reason": "not JSON", "detail": "{oops\n"
    }  # fmt: skip
    (unknown,) = [row for row in found["unknown"] if row["kind"] == "from-the-future"]
    assert (unknown["harness"], unknown["version"], unknown["records"]) == ("claude-code", "9.9.9", 1)


def test_every_record_is_counted_under_an_outcome(world: World) -> None:
    found = world.run("status", "--json").json
    told = sum(row["records"] for row in found["records"])
    assert told == sum(len(made.lines) for made in world.sessions.values())


def test_status_counts_what_can_be_opened(world: World) -> None:
    found = world.run("status", "--json").json
    listed = world.sessions_of_day()
    assert found["sessions"] == len(listed)
    assert found["turns"] == sum(row["session"]["turn_count"] for row in listed)
    assert found["complete"] is True
    assert found["waiting_for_text_index"] == 0
    assert Path(found["home"]) == world.store
    assert found["bytes"]["outcrop.db"] > 0
    for source in found["sources"]:
        assert source["sessions"] == sum(row["session"]["harness"] == source["harness"] for row in listed)


def test_a_path_cannot_steer_the_terminal(small_world: World) -> None:
    small_world.write("K")
    path = small_world.sessions["K"].path(small_world.home)
    odd = path.with_name("\x1b[31mred.jsonl")
    odd.write_bytes(b"\x1b]0;title\x07\n")
    told = small_world.index()
    shown = small_world.run("status")
    assert "\x1b" not in told.out + told.err + shown.out + shown.err
    assert "␛[31mred.jsonl" in shown.out
