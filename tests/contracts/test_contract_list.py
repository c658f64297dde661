"""`list_sessions` (case group E)."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from typing import Any

import pytest

from world import DAY, SESSIONS, WHOLE_DAY, Claude, World, milliseconds

K_UPDATED = f"{DAY}T10:05:04.000Z"
K_STARTED = f"{DAY}T10:00:00.000Z"


def letters(world: World, rows: list[dict[str, Any]]) -> list[str]:
    names = {world.first_time(letter): letter for letter in world.sessions}
    return [names[row["session"]["started_at"]] for row in rows]


def row(world: World, letter: str) -> dict[str, Any]:
    return next(row["session"] for row in world.sessions_of_day() if row["id"] == world.id(letter))


def listed(world: World, start: str, end: str, **rest: Any) -> list[str]:
    return letters(world, world.data("list_sessions", start_datetime=start, end_datetime=end, **rest)["sessions"])


def one_ms_later(timestamp: str) -> str:
    moved = datetime.fromisoformat(timestamp) + timedelta(milliseconds=1)
    return moved.isoformat(timespec="milliseconds")


def test_C099_the_day_lists_every_session_newest_first(world: World) -> None:
    page = world.data("list_sessions", **WHOLE_DAY)
    assert page["limit"] == 20
    assert page["result_count"] == len(page["sessions"])
    assert page["truncated"] is (page["next_cursor"] is not None)
    rows = world.sessions_of_day()
    assert sorted(letters(world, rows)) == sorted(SESSIONS)
    updated = [found["session"]["updated_at"] for found in rows]
    assert updated == sorted(updated, reverse=True)


def test_C100_C101_the_range_is_closed_at_its_start_and_open_at_its_end(world: World) -> None:
    late = f"{DAY}T10:30:00Z"
    assert "K" in listed(world, K_UPDATED, late)
    assert "K" not in listed(world, one_ms_later(K_UPDATED), late)
    early = f"{DAY}T09:00:00Z"
    assert listed(world, early, K_STARTED) == []
    assert listed(world, early, one_ms_later(K_STARTED)) == ["K"]


def test_C102_an_offset_selects_what_the_same_instant_selects(world: World) -> None:
    there = {"start_datetime": f"{DAY}T12:00:00+02:00", "end_datetime": f"{DAY}T13:00:00+02:00"}
    envelope = world.call("list_sessions", there)
    assert (
        letters(world, envelope["data"]["sessions"]) == listed(world, f"{DAY}T10:00:00Z", f"{DAY}T11:00:00Z") == ["K"]
    )
    assert {name: envelope["request"][name] for name in there} == there


def test_C110_C131_pages_show_every_session_once_in_order(world: World) -> None:
    whole = [found["id"] for found in world.sessions_of_day()]
    paged: list[str] = []
    cursor = None
    while True:
        page = world.data("list_sessions", **WHOLE_DAY, limit=2, cursor=cursor)
        assert [found["rank"] for found in page["sessions"]] == list(range(1, page["result_count"] + 1))
        assert page["truncated"] is (page["next_cursor"] is not None)
        paged += [found["id"] for found in page["sessions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert paged == whole


def test_C111_ascending_is_the_other_way_round(world: World) -> None:
    assert [found["id"] for found in world.sessions_of_day(sort="asc", limit=3)] == [
        found["id"] for found in reversed(world.sessions_of_day())
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "chat"},
        {"harness": "codex"},
        {"source": "claude"},
        {"start_datetime": f"{DAY}T00:00:00.001Z"},
        {"end_datetime": "2026-05-03T00:00:00Z"},
        {"sort": "asc"},
    ],
)
def test_C112_a_cursor_is_bound_to_filter_and_sort(world: World, changes: dict[str, Any]) -> None:
    cursor = world.data("list_sessions", **WHOLE_DAY, limit=2)["next_cursor"]
    error = world.call("list_sessions", {**WHOLE_DAY, "limit": 2, "cursor": cursor, **changes})["error"]
    assert (error["code"], error["details"]["field"]) == ("invalid_request", "cursor")
    assert "again" in error["message"]


def test_C113_C114_limit_and_spelling_may_change_between_pages(world: World) -> None:
    rows = [found["id"] for found in world.sessions_of_day()]
    cursor = world.data("list_sessions", **WHOLE_DAY, limit=2)["next_cursor"]
    there = {"start_datetime": f"{DAY}T02:00:00+02:00", "end_datetime": "2026-05-02T02:00:00+02:00"}
    page = world.data("list_sessions", **there, limit=3, cursor=cursor)
    assert [found["id"] for found in page["sessions"]] == rows[2:5]


def test_C115_cursors_that_are_none(world: World) -> None:
    other = world.data("open", id=world.id("P"), limit=1)["next_cursor"]
    for cursor in ("zzz", "", "x" * 10_000, other):
        error = world.call("list_sessions", {**WHOLE_DAY, "cursor": cursor})["error"]
        assert (error["code"], error["details"]["field"]) == ("invalid_request", "cursor")


def test_C116_modes(world: World) -> None:
    found = {mode: set(letters(world, world.sessions_of_day(mode=mode))) for mode in ("chat", "web_search")}
    found |= {mode: set(letters(world, world.sessions_of_day(mode=mode))) for mode in ("tool_calling", "mcp_internal")}
    assert "Z" in found["chat"]
    assert found["chat"].isdisjoint("KXYWM")
    assert found["web_search"] == {"W"}
    assert found["mcp_internal"] == {"M"}
    assert set("KXY") <= found["tool_calling"]
    assert found["tool_calling"].isdisjoint("ZWM")
    assert set().union(*found.values()) == set(SESSIONS)


def test_C119_harness_and_source_are_exact_and_both_must_hold(world: World) -> None:
    every = world.sessions_of_day()
    for name, value in (("harness", "codex"), ("harness", "claude-code"), ("source", "codex"), ("source", "claude")):
        rows = world.sessions_of_day(**{name: value})
        assert [found["id"] for found in rows] == [f["id"] for f in every if f["session"][name] == value]
        assert rows
    assert world.sessions_of_day(harness="codex", source="claude") == []
    assert world.sessions_of_day(harness="Codex") == []
    assert world.call("list_sessions", **WHOLE_DAY, harness=" codex ")["request"]["harness"] == "codex"


def test_C120_the_row_of_K(world: World) -> None:
    k = row(world, "K")
    turns = world.turns("K")
    assert (k["title"], k["display_label"]) == ("Beacon timeout", "Beacon timeout")
    assert (k["source"], k["harness"]) == ("claude", "claude-code")
    assert (k["started_at"], k["updated_at"]) == (K_STARTED, K_UPDATED)
    assert k["turn_count"] == 2
    assert k["event_count"] == sum(turn["event_count"] for turn in turns)
    assert k["completed"] is True
    assert k["mode"] == "tool_calling"


def test_C121_a_codex_session_is_labelled_by_its_first_prompt(world: World) -> None:
    x = row(world, "X")
    assert x["title"] is None
    assert x["display_label"] == "Migrate the harbour schema"


def test_C122_a_label_is_one_line_of_120_characters(world: World) -> None:
    assert row(world, "I1")["display_label"] == "🪝" * 120 + "…"


def test_C123_a_label_of_last_resort(world: World) -> None:
    y = row(world, "Y")
    assert y["title"] is None
    assert y["display_label"] == f"Codex, tool session, {DAY} 12:00:08.000, 1 turn"
    assert row(world, "Z")["display_label"] == f"Claude Code, chat, {DAY} 13:00:02.000, 1 turn"


def test_C124_C125_completion(world: World) -> None:
    assert row(world, "Y")["completed"] is False
    assert row(world, "X")["completed"] is True
    assert row(world, "N")["completed"] is False


def test_C126_C127_rows_are_handles_and_metadata(world: World) -> None:
    session_keys = {
        "id",
        "title",
        "display_label",
        "source",
        "harness",
        "started_at",
        "updated_at",
        "completed",
        "turn_count",
        "event_count",
        "mode",
        "session_slug",
        "session_summary",
    }
    for found in world.sessions_of_day():
        assert set(found) == {"rank", "id", "session", "open"}
        assert set(found["session"]) == session_keys
        assert found["open"] == {"session_id": found["id"]}
        assert found["session"]["id"] == found["id"]


def test_C128_an_empty_range(world: World) -> None:
    page = world.data("list_sessions", start_datetime="2020-01-01T00:00:00Z", end_datetime="2020-01-02T00:00:00Z")
    assert (page["sessions"], page["next_cursor"], page["truncated"], page["result_count"]) == ([], None, False, 0)


def test_C129_the_ends_of_the_calendar(world: World) -> None:
    page = world.data(
        "list_sessions", start_datetime="0001-01-01T00:00:00+14:00", end_datetime="9999-12-31T23:59:59-14:00", limit=50
    )
    assert page["result_count"] == len(SESSIONS)


def test_C130_a_record_without_a_usable_time_takes_its_neighbours(world: World) -> None:
    assert row(world, "T")["updated_at"] == f"{DAY}T19:10:05.000Z"
    times = [milliseconds(event["timestamp"]) for event in world.events("T", 1)]
    assert times == sorted(times)
    assert times[1] == milliseconds(f"{DAY}T19:10:00.000Z")


def test_C132_C175_a_row_says_what_open_says(world: World) -> None:
    for found in world.sessions_of_day():
        opened = world.data("open", id=found["id"])["session"]
        assert {name: opened[name] for name in found["session"]} == found["session"]
        turns = world.children(found["id"], "turns")
        assert opened["turn_count"] == len(turns)
        assert opened["event_count"] == sum(turn["event_count"] for turn in turns)
        assert opened["completed"] is turns[-1]["completed"]


def test_R15_a_session_that_goes_on_keeps_its_place_between_pages(small_world: World) -> None:
    small_world.write("K", "X", "Z", "U")
    small_world.index()
    before = [found["id"] for found in small_world.sessions_of_day()]
    page = small_world.data("list_sessions", **WHOLE_DAY, limit=2)
    k = small_world.sessions["K"]
    k.user("22:00:00", "one more thing").answer("22:00:05", "Done.")  # type: ignore[union-attr]
    small_world.save("K")
    small_world.index()
    rest = small_world.data("list_sessions", **WHOLE_DAY, limit=20, cursor=page["next_cursor"])
    assert [found["id"] for found in [*page["sessions"], *rest["sessions"]]] == before
    assert small_world.sessions_of_day()[0]["id"] == small_world.id("K")


def test_C111_sessions_of_one_time_are_in_order_of_their_ids(small_world: World) -> None:
    place = small_world.places().plain
    for name in ("A", "B", "C", "D", "E"):
        small_world.sessions[name] = Claude(name, place).user("10:00:00", f"hello {name}").answer("10:00:01", "hi")
        small_world.save(name)
    small_world.index()
    up = [found["id"] for found in small_world.sessions_of_day(sort="asc", limit=1)]
    assert up == sorted(up)
    assert len(up) == 5
    assert [found["id"] for found in small_world.sessions_of_day(limit=2)] == up[::-1]


def test_R15_a_cursor_dies_when_the_past_changes(small_world: World) -> None:
    small_world.write("K", "Z", "U")
    small_world.index()
    cursor = small_world.data("list_sessions", **WHOLE_DAY, limit=1)["next_cursor"]
    del small_world.sessions["K"].lines[-3:]
    small_world.save("K")
    small_world.index()
    error = small_world.call("list_sessions", **WHOLE_DAY, limit=1, cursor=cursor)["error"]
    assert error["code"] == "invalid_request"
    assert "start the listing again" in error["message"]


def test_R14_R15_cursors_of_another_store_are_stale(small_world: World) -> None:
    small_world.write("K", "Z")
    small_world.index()
    listing = small_world.data("list_sessions", **WHOLE_DAY, limit=1)["next_cursor"]
    opening = small_world.data("open", id=small_world.id("K"), limit=1)["next_cursor"]
    shutil.rmtree(small_world.store)
    small_world.index()
    for tool, arguments in (("list_sessions", {**WHOLE_DAY, "cursor": listing}), ("open", {"cursor": opening})):
        error = small_world.call(tool, arguments)["error"]
        assert (error["code"], error["details"]["field"]) == ("invalid_request", "cursor")
        assert "again" in error["message"]
