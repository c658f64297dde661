"""`outcrop touches`: who read or changed a file, for people."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.world import World

from outcrop.contracts.mcp_v1.envelope import NOTHING_INDEXED

BEAM = "src/beam.py"


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world entered from its repository."""
    made = World(tmp_path_factory.mktemp("touches"))
    made.write("K", "X", "Y", "W")
    made.index()
    entered = made.at(made.places().repository)
    yield entered
    entered.close()
    made.close()


def test_sessions_newest_first_with_worktree_effects_and_id(inside: World) -> None:
    done = inside.run("touches", BEAM)
    assert done.code == 0
    lines = done.out.splitlines()
    places = inside.places()
    order = ["look up cormorant", "Migrate the harbour schema", "Beacon timeout"]
    assert [line for line in lines if not line.startswith(" ")] == order
    assert [line.strip() for line in lines if line.strip().startswith("/")] == [
        str(places.agent),
        str(places.worktree),
        str(places.repository),
    ]
    assert "2 × read, change" in done.out or "change, 2 × read" in done.out
    for letter in ("W", "X", "K"):
        assert inside.id(letter) in done.out
    event = next(line.strip() for line in lines if line.strip().startswith("event:"))
    assert inside.run("open", event).code == 0
    assert done.err == ""


def test_every_event(inside: World) -> None:
    done = inside.run("touches", BEAM, "--events", "--harness", "claude-code")
    assert done.code == 0
    assert [done.out.count(word) for word in ("Write: ", "Bash: read", "Edit: change", "Read: read")] == [1, 1, 1, 1]
    assert "pytest -q tests/test_beam.py && cat src/beam.py" in done.out
    # A session stands once over its events.
    assert done.out.count(inside.id("K")) == 1


def test_narrowing(inside: World) -> None:
    assert "Bash" not in inside.run("touches", BEAM, "--events", "--mutations").out
    assert inside.run("touches", BEAM, "--tool", "edit", "--source", "claude").out.count("session:") == 1
    assert inside.run("touches", BEAM, "--since", "2026-05-01T13:00:00Z").out.count("session:") == 1
    assert inside.id("Y") in inside.run("touches", BEAM, "--scope", "all").out
    limited = inside.run("touches", BEAM, "--limit", "1")
    assert (limited.code, limited.out.count("session:"), "--limit" in limited.err) == (0, 1, True)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["src/nobody.py"], 1, "nothing found"),
        (["src/"], 2, "path must name a file"),
        ([BEAM, "--since", "soon"], 2, "--since"),
        ([BEAM, "--limit", "0"], 2, "limit must be between 1 and 50"),
        ([BEAM, "--scope", "mine"], 2, "scope must be one of"),
        (["../elsewhere.py"], 1, "scope_closed"),
    ],
)
def test_exit_codes(inside: World, words: list[str], code: int, told: str) -> None:
    done = inside.run("touches", *words)
    assert (done.code, done.out) == (code, "")
    assert told in done.err


def test_json_is_the_envelope(inside: World) -> None:
    done = inside.run("touches", BEAM, "--events", "--json")
    assert done.code == 0
    assert done.json["data"] == inside.data("file_attention", path=BEAM, granularity="events")
    assert inside.run("touches", "src/nobody.py", "--json").code == 1
    assert inside.run("touches", "src/", "--json").json["error"]["code"] == "invalid_request"


def test_without_a_history(small_world: World) -> None:
    done = small_world.run("touches", BEAM)
    assert (done.code, done.out) == (3, "")
    assert "outcrop index" in done.err
    done = small_world.run("touches", BEAM, "--json")
    assert done.code == 3
    assert NOTHING_INDEXED in done.json["warnings"]
