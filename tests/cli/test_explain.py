"""`outcrop explain`: for every reason why something is found or not, a session that is found or not for that reason."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homes import resumed, with_subagents
from outcrop.search.explain import REASONS
from world import Claude, World, say, think, use

RELIABILITY = Path(__file__).parents[2] / "docs" / "reliability.md"


@pytest.fixture(scope="module")
def told_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world that tests must not change."""
    made = World(tmp_path_factory.mktemp("explain"))
    made.write("K", "X", "R")
    deep = Claude("deep", made.places().plain).user("20:00:00", "show the log")
    deep.assistant("20:00:01", use("toolu_1", "Bash", command="cat log"))
    deep.result("20:00:02", ("toolu_1", "wave after wave " * 300 + "porpoise"))
    deep.answer("20:00:09", "Shown.")
    made.sessions["deep"] = deep
    made.save("deep")
    many = Claude("many", made.places().plain)
    for number in range(30):
        many.user(f"21:{number:02}:00", f"the pelican {number}").answer(f"21:{number:02}:05", "noted")
    made.sessions["many"] = many
    made.save("many")
    resumed(made.home, made.places().plain)
    with_subagents(made.home, made.places().plain)
    made.index()
    yield made
    made.close()


def explain(world: World, id: str, query: str, *argv: str) -> dict[str, Any]:
    done = world.run("explain", id, query, "--json", *argv)
    assert done.code in (0, 1), done.err
    told = done.json
    assert done.code == (0 if told["found"] else 1)
    assert {reason["code"] for reason in told["reasons"]} <= REASONS.keys()
    shown = world.run("explain", id, query, *argv)
    assert (shown.code, shown.err) == (done.code, "")
    assert shown.out.startswith("found, hit " if told["found"] else ("not found: ", "not shown, hit "))
    return told


def codes(told: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in told["reasons"]]


def hits(world: World, query: str, *argv: str) -> list[dict[str, Any]]:
    return world.run("events", query, "--json", *argv).json["data"]["results"]


def event(world: World, letter: str, kind: str, number: int = 0) -> str:
    found = [one for turn in world.turns(letter) for one in world.children(turn["id"], "events")]
    return [one["id"] for one in found if one["type"] == kind][number]


@pytest.mark.parametrize(
    "query", ["beacon", "beacon timeout", '"beacon timeout"', "lihgthouse", "the pelican 7", "red"]
)
def test_what_it_says_is_what_the_search_does(told_world: World, query: str) -> None:
    found = hits(told_world, query, "-n", "50")
    assert found
    for hit in found[:5]:
        told = explain(told_world, hit["id"], query, "-n", "50")
        assert told["found"]
        assert (told["rank"], told["score"]) == (hit["rank"], pytest.approx(hit["score"]))
        assert codes(told)[0] == "found"
    session = explain(told_world, found[0]["open"]["session_id"], query, "-n", "50")
    assert session["best"]["id"] == found[0]["id"]
    turn = explain(told_world, found[0]["open"]["turn_id"], query, "-n", "50")
    assert (turn["kind"], turn["best"]["id"]) == ("turn", found[0]["id"])


def test_words_are_told_by_field(told_world: World) -> None:
    told = explain(told_world, event(told_world, "K", "user_input"), "lighthouse beacons src/beam.py zzz")
    where = {word["word"]: word["fields"] for word in told["words"]}
    assert where["lighthouse"] == ["user", "stem"]
    assert where["beacons"] == ["stem"]
    assert where["zzz"] == []
    assert where["beam.py"] == ["user", "ident"]
    assert told["index"] == {"present": True, "rev": 0, "row_rev": 0, "waiting": False, "generation": 2}


def test_a_type_that_was_not_asked_for(told_world: World) -> None:
    call = event(told_world, "K", "tool_response", 2)
    told = explain(told_world, call, "quasar")
    assert codes(told)[0] == "type_not_searched"
    assert explain(told_world, call, "quasar", "--types", "tool_response")["found"]
    session = explain(told_world, told_world.id("K"), "quasar")
    assert codes(session) == ["no_match", "matches_other_types"]
    assert session["matching_other_types"] == {"tool_response": 1}


def test_filters_that_leave_it_out(told_world: World) -> None:
    session = told_world.id("K")
    assert codes(explain(told_world, session, "beacon", "--harness", "codex"))[0] == "other_harness"
    assert codes(explain(told_world, session, "beacon", "--source", "codex"))[0] == "other_source"
    assert codes(explain(told_world, event(told_world, "K", "user_input"), "beacon", "--source", "codex"))[0] == (
        "other_source"
    )


def test_no_word_and_no_match(told_world: World) -> None:
    prompt = event(told_world, "K", "user_input")
    assert codes(explain(told_world, prompt, "harbour")) == ["no_match"]
    assert codes(explain(told_world, prompt, "…")) == ["no_words"]
    assert codes(explain(told_world, told_world.id("K"), "…")) == ["no_words"]


def test_a_phrase_that_stands_elsewhere(told_world: World) -> None:
    answer = event(told_world, "K", "assistant_response", 1)
    told = explain(told_world, answer, '"lighthouse beacon timeout"')
    assert codes(told) == ["phrase_missing"]


def test_repaired_and_relaxed_queries(told_world: World) -> None:
    prompt = event(told_world, "K", "user_input")
    assert codes(explain(told_world, prompt, "lihgthouse")) == ["found", "repaired"]
    assert codes(explain(told_world, prompt, '"timeout beacon lighthouse"')) == ["found", "relaxed"]


def test_a_hit_below_the_limit(told_world: World) -> None:
    last = hits(told_world, "pelican", "-n", "50")[-1]
    told = explain(told_world, last["id"], "pelican")
    assert (told["found"], codes(told), told["rank"]) == (False, ["below_the_limit"], 30)


def test_words_behind_the_head_of_a_tools_text(told_world: World) -> None:
    told = explain(told_world, event(told_world, "deep", "tool_response"), "porpoise", "--types", "tool_response")
    assert codes(told) == ["found", "beyond_the_head"]


def test_a_copy_names_its_original(told_world: World) -> None:
    [original] = hits(told_world, "paint the buoy")[:1]
    db = sqlite3.connect(told_world.store / "outcrop.db")
    [(turn,)] = db.execute(
        "SELECT t.uid FROM event e JOIN turn t ON t.id = e.turn WHERE e.type = 0 AND e.flags & 1 AND NOT t.hidden"
    ).fetchall()
    db.close()
    from outcrop import ids

    told = explain(told_world, ids.write(ids.Kind.TURN, turn), "paint the buoy")
    assert codes(told) == ["copy"]
    assert told["best"]["copy_of"] == original["id"]


def test_a_hidden_turn(told_world: World) -> None:
    db = sqlite3.connect(told_world.store / "outcrop.db")
    uid = db.execute("SELECT e.uid FROM event e JOIN turn t ON t.id = e.turn WHERE t.hidden AND e.type = 0").fetchone()
    db.close()
    from outcrop import ids

    assert "hidden_turn" in codes(explain(told_world, ids.write(ids.Kind.EVENT, uid[0]), "survey the reef"))


def test_what_has_no_text_to_be_found(told_world: World) -> None:
    assert codes(explain(told_world, event(told_world, "X", "reasoning"), "harbour", "--types", "reasoning")) == [
        "encrypted"
    ]
    assert "unknown_kind" in codes(explain(told_world, event(told_world, "R", "unknown"), "hologram"))


def test_ids_that_are_wrong_or_unknown(told_world: World) -> None:
    unknown = re.sub(r"(?<=_)....", "0000", told_world.id("K"))
    told = told_world.run("explain", unknown, "beacon")
    assert (told.code, told.out, told.err) == (1, "", "outcrop: error: session not found\n")
    assert told_world.run("explain", "nonsense", "beacon").code == 2
    assert told_world.run("explain", told_world.id("K"), " ").code == 2
    assert told_world.run("explain", told_world.id("K"), "x", "--types", "nonsense").code == 2


@pytest.fixture
def world(small_world: World) -> World:
    small_world.write("K")
    small_world.index()
    return small_world


def change(world: World, sql: str, *values: Any) -> None:
    db = sqlite3.connect(world.store / "outcrop.db")
    with db:
        db.execute(sql, values)
    db.close()


def test_before_anything_is_indexed(small_world: World, told_world: World) -> None:
    told = small_world.run("explain", told_world.id("K"), "beacon")
    assert (told.code, told.err) == (3, "outcrop: error: nothing is indexed yet: run `outcrop index`\n")


def test_what_waits_for_the_text_index(world: World) -> None:
    prompt = event(world, "K", "user_input")
    change(world, "INSERT INTO text_todo (doc, class) SELECT id, 0 FROM event")
    change(world, "UPDATE event SET rev = rev + 1 WHERE type = 0")
    told = explain(world, prompt, "summarise")
    assert codes(told)[:2] == ["older_text", "waiting"]
    assert told["index"]["waiting"] is True
    assert explain(world, world.id("K"), "lighthouse")["events"]["user_input"]["waiting"] == 2


def test_a_document_that_was_lost(world: World) -> None:
    from outcrop.store.embedded import text_fields

    prompt = event(world, "K", "user_input")
    [folder] = (world.store / "text").glob("text-*")
    writer = text_fields.open_index(folder).writer(15_000_000, 1)
    for number in range(1, 40):
        writer.delete_documents_by_term("id", number)
    writer.commit()
    writer.wait_merging_threads()
    told = explain(world, prompt, "lighthouse")
    assert codes(told) == ["not_indexed"]
    assert told["index"]["present"] is False


def test_without_a_text_index(world: World) -> None:
    prompt, session = event(world, "K", "user_input"), world.id("K")
    shutil.rmtree(world.store / "text")
    assert codes(explain(world, prompt, "lighthouse")) == ["no_index"]
    assert codes(explain(world, session, "lighthouse")) == ["no_index"]
    change(world, "INSERT INTO text_todo (doc, class) SELECT id, 0 FROM event")
    assert codes(explain(world, prompt, "lighthouse")) == ["no_index", "waiting"]


def test_what_the_agent_deleted_or_replaced(world: World) -> None:
    prompt = event(world, "K", "user_input")
    change(world, "UPDATE event SET flags = flags | 32 | 64 WHERE type = 0")
    assert codes(explain(world, prompt, "lighthouse")) == ["found", "deleted_by_harness", "superseded"]


def test_what_was_forgotten(world: World) -> None:
    session, prompt = world.id("K"), event(world, "K", "user_input")
    turn = world.turns("K")[0]["id"]
    assert codes(explain(world, prompt, "lighthouse")) == ["found"]
    assert world.run("forget", "--session", session, "--yes", "--json").code == 0
    [listed] = world.run("forget", "--list", "--json").json["forgotten"]
    for id in (session, prompt):
        told = explain(world, id, "lighthouse")
        assert codes(told) == ["forgotten"]
        assert {key: told[key] for key in told if key not in ("query", "reasons")} == {
            "found": False, "kind": id.partition(":")[0], "id": id, "session": session, "harness": "claude-code",
            "source": "claude", "forgotten_at": listed["forgotten_at"],
        }  # fmt: skip
        shown = world.run("explain", id, "lighthouse").out
        assert f"outcrop forget --undo {session}" in shown
        assert "forgotten on " in shown
    assert world.run("explain", turn, "lighthouse").err == "outcrop: error: turn not found\n"
    assert world.run("forget", "--undo", session).code == 0
    assert world.run("explain", session, "lighthouse").err == "outcrop: error: session not found\n"
    world.index()
    assert codes(explain(world, prompt, "lighthouse")) == ["found"]


@pytest.mark.slow
def test_reasons_below_the_deepest_hits(small_world: World) -> None:
    crowd = Claude("crowd", small_world.places().plain)
    for number in range(1200):
        crowd.user(f"{number // 60 % 24:02}:{number % 60:02}:00", f"albatross {number}")
        crowd.assistant(f"{number // 60 % 24:02}:{number % 60:02}:01", think("hm"), say("ok"))
    small_world.sessions["crowd"] = crowd
    small_world.save("crowd")
    small_world.index()
    prompts = [explain(small_world, event(small_world, "crowd", "user_input", n), "albatross") for n in (0, 1199)]
    assert sorted(tuple(codes(told)) for told in prompts) == [("found",), ("too_deep",)]


def test_every_reason_is_documented() -> None:
    table = RELIABILITY.read_text(encoding="utf-8").partition("| reason | says |")[2]
    told = dict(re.findall(r"^\| `([a-z_]+)` \| (.*) \|$", table, re.MULTILINE))
    assert told == REASONS
