"""What is odd in one place must not keep the rest from being read: JSON in strings, folders that do not list."""

from __future__ import annotations

import json

import pytest

from ingest.test_bad_input import plainly, transcript
from projection import projection
from transcripts import Codex
from world import World

ODD_ARGUMENTS = {
    "a lone surrogate": '{"cmd": "echo \\ud800", "workdir": "/w"}',
    "nested past all limits": '{"a":' * 300 + "1" + "}" * 300,
    "a number past 64 bits": '{"n": 123456789012345678901234567890}',
    "no JSON number": '{"n": NaN}',
}


@pytest.mark.parametrize("arguments", ODD_ARGUMENTS.values(), ids=ODD_ARGUMENTS)
def test_odd_JSON_inside_a_string_costs_no_file(small_world: World, arguments: str) -> None:
    rollout = Codex("O", small_world.places().plain, "10:00:00").begin("10:00:01", "go")
    rollout.item("10:00:02", "function_call", name="exec_command", arguments=arguments, call_id="call_odd")
    rollout.output("10:00:03", "call_odd", "done").answer("10:00:04", "Went.")
    small_world.sessions["O"] = rollout
    small_world.save("O")
    told = small_world.run("index", "--json")
    assert told.json["problems"] == [], told.out
    [(_, _, turns, events)] = projection(small_world.store).values()
    assert turns[0]["tools_called"] == ["exec_command"]
    [call] = [content for event, _, content in events if event["type"] == "tool_call"]
    json.dumps(call["arguments"]).encode("utf-8")


def test_a_folder_that_does_not_list_hides_no_other(small_world: World) -> None:
    """The folder sorts before the other one, which is read all the same; what it held before is not taken for gone."""
    _, hidden = transcript(small_world, "A")
    closed = hidden.parent.rename(hidden.parent.with_name("-a-closed"))
    assert plainly(small_world, "index").code == 0
    before = set(projection(small_world.store))
    transcript(small_world, "Z")
    closed.chmod(0)
    told = plainly(small_world, "index")
    assert told.code == 0
    assert f"{closed}: permission denied" in told.err
    after = set(projection(small_world.store))
    assert before < after
    assert len(after) == 2
    assert [source["missing"] for source in small_world.run("status", "--json").json["sources"]] == [0]
    closed.chmod(0o700)
    assert plainly(small_world, "index").err == ""


def test_a_number_that_is_no_time_of_any_agent_is_no_time(small_world: World) -> None:
    """Ruling 22: an unusable time inherits the one before it, and is never the epoch."""
    made, path = transcript(small_world, "E")
    for line in made.lines[1:2]:
        line["timestamp"] = 1.5
    path.write_text("".join(json.dumps(line) + "\n" for line in made.lines), encoding="utf-8")
    small_world.index()
    [(row, _, _, events)] = projection(small_world.store).values()
    assert row["started_at"].startswith("2026-05-01")
    assert events[1][0]["timestamp"] == events[0][0]["timestamp"]


def test_a_root_in_two_spellings_is_listed_once(small_world: World) -> None:
    transcript(small_world, "E")
    root = small_world.home / ".claude" / "projects"
    small_world.store.mkdir()
    (small_world.store / "config.toml").write_text(
        f'[sources.claude]\nroots = ["{root}", "{root}/", "{root}/../projects"]\n'
    )
    assert small_world.run("index", "--json").json["files"] == 1
