"""`--project-only`: whatever a client asks, answers come from the sessions of the launch directory's project alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.world import WHOLE_DAY, Claude, Codex, Places, World
from wire import Client

EVERY_TYPE = ["user_input", "assistant_response", "reasoning", "tool_call", "tool_response", "compaction", "system"]
WORDS = "lighthouse harbour buoy hello cormorant continue gull osprey petrel tern heron beam"
"""Something of every session."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Sessions of one repository in all its worktrees, one of them deleted since, and of other places."""
    made = World(tmp_path_factory.mktemp("floor"))
    made.write("K", "X", "Y", "Z", "W", "M", "D", "P")
    places = made.places()
    gone = places.repository.parent / "lighthouse-gone"
    made._git(places.repository, "worktree", "add", "-q", "-b", "gone", str(gone))
    below = places.repository / "src"
    extra = {
        "gone": Claude("gone", gone).user("20:00:00", "osprey").answer("20:00:01", "An osprey."),
        "below": Codex("below", below, "20:10:00").begin("20:10:00", "petrel").answer("20:10:01", "A petrel."),
        # Begun in a plain folder, gone on in the repository: it belongs to both.
        "both": Claude("both", places.plain)
        .user("20:20:00", "tern")
        .user("20:20:01", "more of the tern", cwd=str(places.repository)),
        "nowhere": Codex("nowhere", Path(""), "20:30:00").begin("20:30:00", "heron").answer("20:30:01", "A heron."),
    }
    extra["nowhere"].lines = [_without_directory(line) for line in extra["nowhere"].lines]
    for letter, session in extra.items():
        made.sessions[letter] = session
        made.save(letter)
    made.index()
    shutil.rmtree(gone)
    (places.plain / "sub").mkdir()
    yield made
    made.close()


def _without_directory(line: dict[str, Any]) -> dict[str, Any]:
    payload = line["payload"]
    return {**line, "payload": {**payload, "cwd": ""} if "cwd" in payload else payload}


REPOSITORY = {"K", "X", "W", "M", "gone", "below", "both"}
LAUNCHES: dict[str, tuple[Callable[[Places], Path], set[str]]] = {
    "the repository": (lambda places: places.repository, REPOSITORY),
    "a subdirectory": (lambda places: places.repository / "src", REPOSITORY),
    "a linked worktree": (lambda places: places.worktree, REPOSITORY),
    "an agent's worktree": (lambda places: places.agent, REPOSITORY),
    "another repository": (lambda places: places.other, {"Y"}),
    "no repository": (lambda places: places.plain, {"Z", "D", "P", "both"}),
    "below no repository": (lambda places: places.plain / "sub", set()),
    "the home": (lambda places: places.plain.parent, set()),
    "gone": (lambda places: places.plain / "short-lived", set()),
}


@pytest.fixture(scope="module", params=LAUNCHES)
def launch(request: pytest.FixtureRequest, world: World) -> Iterator[tuple[Client, set[str]]]:
    """A server launched there, and the letters that it may show."""
    where, letters = LAUNCHES[request.param]
    folder = where(world.places())
    folder.mkdir(exist_ok=True)
    with Client(world.home, None, "--project-only", store=world.store, cwd=folder) as client:
        client.request("ping")
        if request.param == "gone":
            folder.rmdir()
        yield client, letters


def data(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    envelope = client.tool(tool, arguments)["structuredContent"]
    assert "error" not in envelope, envelope
    return envelope["data"]


def error(client: Client, tool: str, **arguments: Any) -> str:
    return client.tool(tool, arguments)["structuredContent"]["error"]["code"]


def listed(client: Client, **arguments: Any) -> list[str]:
    """Ids of all pages."""
    found: list[str] = []
    cursor = None
    while True:
        page = data(client, "list_sessions", **WHOLE_DAY, limit=2, cursor=cursor, **arguments)
        found += [row["id"] for row in page["sessions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def inside(world: World, letters: set[str]) -> set[str]:
    return {world.id(letter) for letter in letters}


def outside(world: World, letters: set[str]) -> list[str]:
    return sorted(set(world.sessions) - letters)


def test_the_list_holds_the_project_alone(world: World, launch: tuple[Client, set[str]]) -> None:
    client, letters = launch
    assert set(listed(client)) == inside(world, letters)
    assert listed(client, sort="asc") == listed(client)[::-1]
    for filters in ({"source": "codex"}, {"harness": "claude-code"}, {"mode": "chat"}):
        assert set(listed(client, **filters)) <= inside(world, letters)


def test_a_search_finds_the_project_alone(world: World, launch: tuple[Client, set[str]]) -> None:
    client, letters = launch
    found = data(client, "search_sessions", query=WORDS, event_types=EVERY_TYPE, n_hits=50)
    hits = {hit["session"]["id"] for hit in found["results"]}
    # One session of sixty turns may fill the page; what is shown is the project's in any case.
    assert hits <= inside(world, letters)
    for letter in letters:
        inner = data(client, "search_sessions", query=WORDS, event_types=EVERY_TYPE, within_id=world.id(letter))
        assert {hit["session"]["id"] for hit in inner["results"]} == {world.id(letter)}


def test_nothing_foreign_opens(world: World, launch: tuple[Client, set[str]]) -> None:
    client, letters = launch
    for letter in outside(world, letters):
        turn = world.turns(letter)[0]
        event = turn["user_input"]["event_id"]
        for id in (world.id(letter), turn["id"]):
            assert error(client, "open", id=id) == "not_found"
            assert error(client, "open", id=id, limit=5) == "not_found"
            assert error(client, "search_sessions", query=WORDS, within_id=id) == "not_found"
        assert error(client, "open", id=event) == "not_found"


def test_everything_of_the_project_opens(world: World, launch: tuple[Client, set[str]]) -> None:
    client, letters = launch
    for letter in letters:
        page = data(client, "open", id=world.id(letter), limit=5)
        assert page["turns"] == world.data("open", id=world.id(letter), limit=5)["turns"]
        turn = data(client, "open", id=page["turns"][0]["id"], limit=5)
        for event in turn["events"]:
            assert data(client, "open", id=event["id"])["session"]["id"] == world.id(letter)


def test_neighbours_are_the_projects(world: World, launch: tuple[Client, set[str]]) -> None:
    client, _ = launch
    order = listed(client, sort="asc")
    for place, id in enumerate(order):
        around = data(client, "open", id=id)["traversal"]
        assert around["previous_session_id"] == (order[place - 1] if place else None)
        assert around["next_session_id"] == (order[place + 1] if place + 1 < len(order) else None)


def test_cursors_taken_elsewhere_show_nothing_foreign(world: World, launch: tuple[Client, set[str]]) -> None:
    client, letters = launch
    for letter in {"P", "D", "K"} - letters:
        page = world.data("open", id=world.id(letter), limit=1)
        assert error(client, "open", cursor=page["next_cursor"]) == "invalid_request"
        turn = world.data("open", id=page["turns"][0]["id"], limit=1)
        assert error(client, "open", cursor=turn["next_cursor"]) == "invalid_request"
    cursor = world.data("list_sessions", **WHOLE_DAY, limit=1)["next_cursor"]
    rest = data(client, "list_sessions", **WHOLE_DAY, limit=50, cursor=cursor)
    assert {row["id"] for row in rest["sessions"]} <= inside(world, letters)


@pytest.mark.parametrize("scope", ["project", "all"])
def test_touches_are_the_projects(world: World, launch: tuple[Client, set[str]], scope: str) -> None:
    client, letters = launch
    asked = {"path": str(world.places().repository / "src" / "beam.py"), "scope": scope}
    envelope = client.tool("file_attention", asked)["structuredContent"]
    found = {row["id"] for row in envelope["data"]["sessions"]}
    every = {world.id(letter) for letter in ("K", "X", "Y", "W")}
    assert found <= inside(world, letters)
    if scope == "all":
        assert found == every & inside(world, letters)
        assert any(warning.startswith("project_floor:") for warning in envelope["warnings"])
    elif letters == REPOSITORY:
        assert found == every - {world.id("Y")}
    else:
        assert found == set()
    for row in envelope["data"]["sessions"]:
        for id in row["open"].values():
            assert "kind" in data(client, "open", id=id)


def test_a_page_pinned_before_later_events_is_held_too(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("K", "X", "Y", "Z", "D")
    world.index()
    with Client(world.home, None, "--project-only", store=world.store, cwd=world.places().plain) as client:
        first = data(client, "list_sessions", **WHOLE_DAY, limit=1)
        for letter in ("K", "Z"):
            session = world.sessions[letter]
            assert isinstance(session, Claude)
            session.user("21:00:00", f"later {letter}")
            world.save(letter)
        world.index()
        rest = data(client, "list_sessions", **WHOLE_DAY, limit=50, cursor=first["next_cursor"])
        shown = [row["id"] for row in (*first["sessions"], *rest["sessions"])]
        assert sorted(shown) == sorted([world.id("D"), world.id("Z")])
    world.close()


def test_without_the_option_nothing_is_held_back(world: World) -> None:
    with Client(world.home, store=world.store, cwd=world.places().other) as client:
        assert set(listed(client)) == inside(world, set(world.sessions))


def test_a_floor_without_a_history_is_no_error(tmp_path: Path) -> None:
    with Client(tmp_path, None, "--project-only") as client:
        assert data(client, "list_sessions", **WHOLE_DAY)["sessions"] == []
        assert data(client, "search_sessions", query="anything")["results"] == []


def test_a_repaired_word_is_not_taken_from_elsewhere(world: World) -> None:
    with Client(world.home, None, "--project-only", store=world.store, cwd=world.places().other) as client:
        envelope = client.tool("search_sessions", {"query": "lighthuose"})["structuredContent"]
        assert envelope["data"]["results"] == []
        assert envelope["warnings"] == ["nothing_found: searched 5 events of 1 session"]  # of that project
