"""The numbered cases of `search_sessions`, asked through the real doors (`tests/CASES.md`, groups C and D)."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest

from world import Claude, Codex, World

TYPES = [
    "user_input", "assistant_response", "reasoning", "tool_call", "tool_response", "compaction", "system", "runtime",
]  # fmt: skip
FRESH = 100
"""Sessions that are indexed while C096 searches."""


def hits(world: World, query: str, *types: str, **more: Any) -> list[dict[str, Any]]:
    if types:
        more["event_types"] = list(types)
    data = world.data("search_sessions", query=query, **{"n_hits": 50, **more})
    assert data["result_count"] == len(data["results"]) <= data["limit"]  # C089
    assert [hit["rank"] for hit in data["results"]] == list(range(1, len(data["results"]) + 1))
    scores = [hit["score"] for hit in data["results"]]
    assert scores == sorted(scores, reverse=True)  # C070
    assert all(0 <= score <= 1 for score in scores)
    return data["results"]  # type: ignore[no-any-return]


def places(found: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    """(session, turn, event) of each hit."""
    return [(hit["session"]["id"], hit["turn"]["ordinal"], hit["event"]["ordinal"]) for hit in found]


def of(world: World, letter: str, *ordinals: tuple[int, int]) -> list[tuple[str, int, int]]:
    return [(world.id(letter), turn, event) for turn, event in ordinals]


def refused(world: World, **arguments: Any) -> dict[str, Any]:
    envelope = world.call("search_sessions", arguments)
    assert envelope["request"] == arguments
    return envelope["error"]  # type: ignore[no-any-return]


# Arguments


def test_C027_every_id_of_a_hit_opens_as_what_it_is(world: World) -> None:
    for hit in hits(world, "beacon harbour gannet", *TYPES):
        for kind in ("event", "turn", "session"):
            opened = world.data("open", id=hit["open"][f"{kind}_id"])
            assert opened["kind"] == kind
            assert opened[kind]["id"] == hit[kind]["id"] == hit["open"][f"{kind}_id"]


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"query": "   "}, "invalid_request", "query"),  # C039
        ({}, "invalid_request", "query"),  # C040
        ({"query": 5}, "invalid_request", "query"),  # C041
        ({"query": "x" * 4097}, "invalid_request", "query"),  # C042
        ({"query": "a", "event_types": []}, "invalid_request", "event_types"),  # C047
        ({"query": "a", "event_types": ["unknown"]}, "unsupported_event_type", None),  # C049
        ({"query": "a", "event_types": [1]}, "invalid_request", "event_types"),  # C052
        ({"query": "a", "n_hits": 51}, "invalid_request", "n_hits"),  # C053
        ({"query": "a", "n_hits": True}, "invalid_request", "n_hits"),  # C054
        ({"query": "a", "n_hits": 2.0}, "invalid_request", "n_hits"),  # C055
        ({"query": "a", "harness": " "}, "invalid_request", "harness"),  # C058
        ({"query": "a", "within_id": "nope"}, "invalid_id", "within_id"),  # C062
        ({"query": "a", "foo": 1}, "invalid_request", "foo"),  # C064
    ],
)
def test_C039_to_C064_faults_are_told_through_every_door(
    world: World, given: dict[str, Any], code: str, field: str | None
) -> None:
    error = refused(world, **given)
    assert error["code"] == code
    assert error["details"].get("field") == field or field is None


@pytest.mark.parametrize("query", ["x" * 4096, "日" * 4096, "  " + "beacon " * 585 + "x \n"])
def test_C042_C043_a_query_of_4096_characters_is_answered(world: World, query: str) -> None:
    envelope = world.call("search_sessions", query=query)
    assert "error" not in envelope
    assert envelope["request"]["query"] == query.strip()
    assert bool(envelope["data"]["results"]) is ("beacon" in query)


def test_C044_C045_C046_nulls_are_defaults_in_request_and_data(world: World) -> None:
    plain = world.call("search_sessions", query="  beacon ")
    nulls = world.call(
        "search_sessions", query="beacon", event_types=None, n_hits=None, within_id=None, harness=None, source=None
    )
    assert plain["request"] == nulls["request"]
    assert plain["request"] == {
        "query": "beacon", "event_types": TYPES[:2], "n_hits": 10, "within_id": None, "harness": None, "source": None,
    }  # fmt: skip
    assert plain["data"] == nulls["data"]


def test_C051_types_are_put_in_order_without_doubles(world: World) -> None:
    given = ["tool_response", "user_input", "tool_response"]
    envelope = world.call("search_sessions", query="quasar beacon", event_types=given)
    assert envelope["request"]["event_types"] == ["user_input", "tool_response"]
    assert {hit["event"]["type"] for hit in envelope["data"]["results"]} == {"user_input", "tool_response"}


@pytest.mark.parametrize("limit", [1, 50])
def test_C056_the_limits_of_n_hits(world: World, limit: int) -> None:
    data = world.data("search_sessions", query="gull", n_hits=limit)
    assert (data["limit"], data["result_count"]) == (limit, limit)


def test_C057_a_page_is_full_where_there_is_more(world: World) -> None:
    envelope = world.call("search_sessions", query="gull", n_hits=50)
    assert (envelope["data"]["result_count"], envelope["data"]["truncated"]) == (50, True)
    assert {hit["session"]["id"] for hit in envelope["data"]["results"]} == {world.id("P")}
    assert envelope["warnings"] == []


def test_C059_C060_filters_are_trimmed_and_compared_exactly(world: World) -> None:
    for harness in ("Codex", "code", "zed"):
        assert hits(world, "harbour", harness=harness) == []
    envelope = world.call("search_sessions", query="harbour", harness=" codex ")
    assert envelope["request"]["harness"] == "codex"
    assert envelope["data"]["result_count"] == 2


@pytest.mark.parametrize("kind", ["session", "turn"])
def test_C063_an_unknown_scope_is_not_found(world: World, kind: str) -> None:
    real = hits(world, "lighthouse")[0][kind]["id"]
    head, tail = real[:-8], real[-8:]
    unknown = head + ("00000000" if tail[0] != "0" else "11111111")
    envelope = world.call("search_sessions", query="beacon", within_id=unknown)
    assert envelope["error"]["code"] == "not_found", envelope
    assert envelope["error"]["message"] == f"{kind} not found"
    assert envelope["error"]["details"]["id"] == unknown


def test_C065_one_fault_of_two_is_told_every_time(world: World) -> None:
    told = [refused(world, query="a", n_hits=0, event_types=["nope"]) for _ in range(3)]
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("query", ["!!! ???", "a", "…", "\u200b", "🪝", "\\", "\x00"])
def test_C066_punctuation_and_single_letters_are_queries(world: World, query: str) -> None:
    hits(world, query)


# Results


def test_C067_the_hit_of_a_rare_word(world: World) -> None:
    (hit,) = hits(world, "lighthouse")
    assert places([hit]) == of(world, "K", (1, 1))
    assert hit["rank"] == 1
    assert hit["event"]["type"] == "user_input"
    assert hit["id"] == hit["event"]["id"] == hit["open"]["event_id"]
    assert hit["turn"]["id"] == hit["open"]["turn_id"]
    assert hit["session"]["id"] == hit["open"]["session_id"]


def test_C068_C097_C175_a_hit_says_what_open_and_listing_say(world: World) -> None:
    listed = {row["id"]: row["session"] for row in world.sessions_of_day()}
    for query in random.Random(4).sample(WORDS, 10):
        for hit in hits(world, query, *TYPES, n_hits=10):
            event = world.data("open", id=hit["event"]["id"])
            turn = world.data("open", id=hit["turn"]["id"])
            session = world.data("open", id=hit["session"]["id"])
            for name in ("id", "type", "timestamp", "ordinal", "terminal"):
                assert hit["event"][name] == event["event"][name]
            for name in ("ordinal", "completed", "event_count"):
                assert hit["turn"][name] == turn["turn"][name]
            for name in ("title", "source", "harness", "started_at", "updated_at", "completed"):
                assert hit["session"][name] == session["session"][name] == listed[hit["session"]["id"]][name]
            last = world.data("open", id=session["traversal"]["last_turn_id"])
            assert hit["session"]["completed"] == last["turn"]["completed"]


WORDS = ["beacon", "harbour", "gull", "gannet", "cormorant", "alpha", "hello", "nets", "look", "late", "turn", "schema",
         "buoy", "sail", "three", "exec", "reading", "going"]  # fmt: skip


def test_C175_completion_of_the_sessions_that_differ(world: World) -> None:
    for query, letter, completed in (("lighthouse", "K", True), ("schema", "X", True), ("sail", "N", False)):
        assert {(hit["session"]["id"], hit["session"]["completed"]) for hit in hits(world, query)} == {
            (world.id(letter), completed)
        }


def test_C069_the_session_of_a_hit(world: World) -> None:
    (hit,) = hits(world, "lighthouse")
    assert hit["session"] == {
        "id": world.id("K"),
        "title": "Beacon timeout",
        "source": "claude",
        "harness": "claude-code",
        "started_at": "2026-05-01T10:00:00.000Z",
        "updated_at": "2026-05-01T10:05:04.000Z",
        "completed": True,
    }


def test_C071_equal_scores_are_newest_first_then_by_id(small_world: World) -> None:
    folder = small_world.places().plain
    for letter, clock in (("A", "08:00:00"), ("B", "09:00:00"), ("C", "09:00:00"), ("D", "09:00:00")):
        small_world.sessions[letter] = Claude(letter, folder).user(clock, "steer by the pole star")
        small_world.save(letter)
    small_world.index()
    found = hits(small_world, "pole star")
    assert len({hit["score"] for hit in found}) == 1
    assert [hit["session"]["started_at"][11:19] for hit in found] == ["09:00:00", "09:00:00", "09:00:00", "08:00:00"]
    same = [hit["event"]["id"] for hit in found[:3]]
    assert same == sorted(same)


def test_C072_prompts_and_answers_by_default(world: World) -> None:
    found = hits(world, "beacon")
    assert set(places(found)) == set(of(world, "K", (1, 1), (1, 10), (2, 2)))
    assert {hit["event"]["type"] for hit in found} == {"user_input", "assistant_response"}


def test_C073_reasoning_only_when_named(world: World) -> None:
    assert hits(world, "lamp") == []
    assert places(hits(world, "lamp", "reasoning")) == of(world, "K", (1, 2))


def test_C074_tool_responses_only_when_named(world: World) -> None:
    assert hits(world, "quasar") == []
    found = hits(world, "quasar", "tool_response")
    assert [(hit["session"]["id"], hit["turn"]["ordinal"]) for hit in found] == [(world.id("K"), 1)]


def test_C075_C076_C077_tool_calls_are_found_by_their_arguments(world: World) -> None:
    names = {
        query: [
            (hit["session"]["id"], world.data("open", id=hit["id"])["event"]["tool_name"])
            for hit in hits(world, query, "tool_call")
        ]
        for query in ("pytest", "beam.py", "workspace")
    }
    k, x = world.id("K"), world.id("X")
    assert (k, "Bash") in names["pytest"]  # the folder of the test may hold the word too
    assert {(k, "Read"), (k, "Edit"), (k, "Bash"), (x, "apply_patch")} <= set(names["beam.py"])
    assert names["workspace"] == [(x, "exec_command")]


def test_C078_a_search_of_runtime_events_returns_nothing_else(world: World) -> None:
    for query in ("task_complete", "Migrate the harbour schema", "interrupted", "gull"):
        assert {hit["event"]["type"] for hit in hits(world, query, "runtime")} <= {"runtime"}
    assert hits(world, "interrupted", "runtime")


def test_C079_C080_C081_scope(world: World) -> None:
    k = world.id("K")
    second = world.turns("K")[1]["id"]
    empty = world.data("search_sessions", query="harbour", within_id=k)
    assert (empty["results"], empty["truncated"]) == ([], False)
    assert places(hits(world, "beacon", within_id=second)) == of(world, "K", (2, 2))
    for query in ("beacon", "the", "summary"):
        assert all(hit["session"]["id"] == k for hit in hits(world, query, *TYPES, within_id=k))
        assert all(hit["turn"]["id"] == second for hit in hits(world, query, *TYPES, within_id=second))
    assert {hit["id"] for hit in hits(world, "beacon", within_id=k)} == {hit["id"] for hit in hits(world, "beacon")}


def test_C082_harness_and_source_both_hold(world: World) -> None:
    query = "harbour beacon gull hello"
    codex, claude = hits(world, query, harness="codex"), hits(world, query, source="claude")
    assert {hit["session"]["harness"] for hit in codex} == {"codex"}
    assert {hit["session"]["source"] for hit in claude} == {"claude"}
    assert hits(world, query, harness="codex", source="claude") == []
    assert [hit["id"] for hit in hits(world, query, harness="codex", source="codex")] == [hit["id"] for hit in codex]


def test_C083_mirrored_records_are_one_hit(world: World) -> None:
    found = hits(world, "harbour")
    assert {hit["session"]["id"] for hit in found} == {world.id("X")}
    assert sorted(hit["event"]["type"] for hit in found) == ["assistant_response", "user_input"]


def test_C084_C093_the_snippet_is_cut_around_the_match(world: World) -> None:
    (hit,) = hits(world, "zephyr")
    assert hit["session"]["id"] == world.id("L")
    assert "zephyr" in hit["snippet"]["text"]
    assert len(hit["snippet"]["text"]) <= 320
    assert hit["snippet"]["truncated"] is True
    for hit in hits(world, "tide tables"):
        assert len(hit["snippet"]["text"]) <= 320


@pytest.mark.parametrize(
    "query", ["日本語", "本語", "naïve", "naive", "NAÏVE", "nai\u0308ve", "café", "cafe", '"naïve 日本語"']
)
def test_C085_every_script_and_spelling(world: World, query: str) -> None:
    assert places(hits(world, query)) == of(world, "K", (2, 1))


def test_C086_quotes_capitals_and_punctuation(world: World) -> None:
    loud, plain = hits(world, 'BEACON, "timeout"!'), hits(world, "beacon timeout")
    assert {hit["id"] for hit in loud} == {hit["id"] for hit in plain} != set()


def test_C087_a_word_that_nothing_holds_hides_nothing(world: World) -> None:
    assert {hit["id"] for hit in hits(world, "beacon zzzabsent")} == {hit["id"] for hit in hits(world, "beacon")}


def test_C088_stems(world: World) -> None:
    assert places(hits(world, "timeouts"))[0] in of(world, "K", (1, 1), (1, 10))
    assert {hit["id"] for hit in hits(world, "timeouts")} == {hit["id"] for hit in hits(world, "timeout")}


def test_C090_truncated_tells_the_truth(world: World) -> None:
    total = len(hits(world, "harbour"))
    for limit in range(1, total + 2):
        data = world.data("search_sessions", query="harbour", n_hits=limit)
        assert data["truncated"] is (limit < total)
        assert data["result_count"] == min(limit, total)


def test_C091_nothing_found(world: World) -> None:
    envelope = world.call("search_sessions", query="zzzabsent qqqmissing")
    assert envelope["data"] == {"result_count": 0, "limit": 10, "truncated": False, "results": []}


def test_C092_own_retrieval_calls_are_found_when_named(world: World) -> None:
    assert world.id("M") not in {hit["session"]["id"] for hit in hits(world, "lighthouse")}
    assert world.id("M") in {hit["session"]["id"] for hit in hits(world, "lighthouse", "tool_response")}
    assert world.id("M") in {hit["session"]["id"] for hit in hits(world, "lighthouse", "tool_call")}


def test_C094_sealed_reasoning_is_no_hit_and_opens(world: World) -> None:
    sealed = next(event for event in world.events("X", 1) if event["type"] == "reasoning")
    opened = world.data("open", id=sealed["id"])
    payload = opened["content"]["encrypted_content"]
    for query in (payload, payload[:12], "gAAAAB", "encrypted", "Zx9k", sealed["summary"]):
        assert sealed["id"] not in {hit["id"] for hit in hits(world, query, "reasoning")}
    for hit in hits(world, "harbour", *TYPES):
        assert "Zx9k" not in hit["snippet"]["text"]


def test_C095_what_is_appended_is_found_after_outcrop_index(small_world: World) -> None:
    small_world.write("K")
    small_world.index()
    before = hits(small_world, "beacon")
    assert hits(small_world, "skerry") == []
    session = small_world.sessions["K"]
    assert isinstance(session, Claude)
    session.user("10:06:00", "and the beacon at the skerry").answer("10:06:09", "Lit too.")
    small_world.save("K")
    small_world.index()
    (new,) = hits(small_world, "skerry")
    assert (new["session"]["id"], new["turn"]["ordinal"]) == (small_world.id("K"), 3)
    assert {hit["id"] for hit in hits(small_world, "beacon")} == {hit["id"] for hit in before} | {new["id"]}


def test_C096_searches_while_a_run_of_the_index_goes_on(small_world: World) -> None:
    folder = small_world.places().plain
    for number in range(FRESH):
        rollout = Codex(f"F{number}", folder, "08:00:00")
        for turn in range(20):
            rollout.begin(f"08:{turn:02}:01", f"kittiwake {number} {turn} " + "on the cliff " * 30)
            rollout.answer(f"08:{turn:02}:05", f"kittiwake counted {turn}")
        small_world.sessions[f"F{number}"] = rollout
        small_world.save(f"F{number}")
    run = subprocess.Popen(
        [sys.executable, "-m", "outcrop", "index"], env=small_world.environment, stdout=subprocess.DEVNULL
    )
    seen: list[str] = []
    while run.poll() is None or not seen:
        envelope = small_world.call("search_sessions", query="kittiwake", n_hits=50)
        if "error" in envelope:
            error = envelope["error"]
            assert error["code"] == "internal_error"
            assert error["details"]["reason"] == "read_model_refresh"
            assert error["details"]["retryable"] is True
            assert error["details"]["retry_after_ms"] > 0
            seen.append("refresh")
            continue
        results = envelope["data"]["results"]
        assert len({hit["id"] for hit in results}) == len(results)
        assert all("kittiwake" in hit["snippet"]["text"] for hit in results)
        if len(results) < 50:  # no first build says less than the whole without saying so
            assert envelope["warnings"], results
        seen.append("some" if results else "none")
    assert run.returncode == 0
    assert small_world.data("search_sessions", query="kittiwake", n_hits=50)["result_count"] == 50
    assert len(seen) > 3


def test_C098_events_of_unknown_kind_are_never_hits(world: World) -> None:
    opened = [event for event in world.events("R", 1) if event["type"] == "unknown"]
    assert len(opened) == 1
    for query in ("hologram", "grün", "angle", "rudder"):
        for types in ((), TYPES):
            assert opened[0]["id"] not in {hit["id"] for hit in hits(world, query, *types)}
