"""Contract cases with the harnesses that they name: the chat Z of Kimi CLI, odd and shared raw ids (U, V1, V2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from more_transcripts import TWICE
from world import DAY, WHOLE_DAY, World


@pytest.fixture(scope="module", params=["call", "mcp"])
def chats(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("chats"), door=request.param)
    made.write("K", "W", "U", "ZK", "UK", "VK", "VQ")
    made.index()
    yield made
    made.close()


def listed(world: World, **more: object) -> dict[str, dict[str, Any]]:
    """The day's rows by id."""
    return {row["id"]: row for row in world.data("list_sessions", **WHOLE_DAY, limit=50, **more)["sessions"]}


def test_C099_every_session_of_the_day_is_listed_once(chats: World) -> None:
    assert set(listed(chats)) == {chats.id(letter) for letter in chats.sessions}


def test_C035_a_raw_id_with_a_blank_and_an_accent(chats: World) -> None:
    for letter, text in (("U", "hello puffin"), ("UK", "hello razorbill")):
        assert " " in chats.sessions[letter].session
        assert chats.id(letter) in listed(chats)
        opened = chats.data("open", id=chats.id(letter))
        assert opened["session"]["turn_count"] == 1
        assert chats.contents(letter, 1)[0]["content"]["text"] == text


def test_C036_one_raw_id_under_kimi_and_qwen_is_two_sessions(chats: World) -> None:
    assert chats.sessions["VK"].session == chats.sessions["VQ"].session == TWICE
    rows = [listed(chats)[chats.id(letter)]["session"] for letter in ("VK", "VQ")]
    assert [row["harness"] for row in rows] == ["kimi-cli", "qwen-code"]
    assert len({chats.id("VK"), chats.id("VQ")}) == 2
    texts = [[one["content"]["text"] for one in chats.contents(letter, 1)[:2]] for letter in ("VK", "VQ")]
    assert texts == [["hello from kimi", "one"], ["hello from qwen", "two"]]


def test_C116_a_kimi_chat_is_a_chat(chats: World) -> None:
    assert set(listed(chats, mode="chat")) == {chats.id(letter) for letter in ("U", "ZK", "UK", "VK", "VQ")}
    assert set(listed(chats, mode="web_search")) == {chats.id("W")}
    assert chats.id("ZK") not in listed(chats, mode="tool_calling")


def test_Z_is_told_with_its_times_and_its_end(chats: World) -> None:
    (turn,) = chats.turns("ZK")
    assert turn["completed"]
    assert turn["final_response"]["text"] == "hi"
    row = listed(chats)[chats.id("ZK")]["session"]
    assert (row["started_at"], row["updated_at"]) == (f"{DAY}T13:00:00.000Z", f"{DAY}T13:00:02.000Z")
    assert (row["harness"], row["source"]) == ("kimi-cli", "kimi-cli")


def test_C082_harness_and_source_find_the_named_ones_alone(chats: World) -> None:
    found = chats.data("search_sessions", query="hello", harness="kimi-cli", n_hits=50)["results"]
    assert {hit["session"]["id"] for hit in found} == {chats.id(letter) for letter in ("ZK", "UK", "VK")}
    found = chats.data("search_sessions", query="hello", source="qwen-code")["results"]
    assert {hit["session"]["id"] for hit in found} == {chats.id("VQ")}
