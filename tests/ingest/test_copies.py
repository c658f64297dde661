"""Copied history: one original, whatever was read first ("Copies, secrets")."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from homes import forked, resumed, session_files, with_subagents
from outcrop import config
from outcrop.harnesses import Environment
from outcrop.ids import session_uid
from outcrop.ingest import pipeline
from outcrop.store import SessionQuery, open_store
from outcrop.store.embedded.read import EmbeddedStore
from world import Claude, milliseconds


def read(home: Path, store: Path) -> None:
    environment = Environment(home, {"OUTCROP_HOME": str(store)}, "linux")
    pipeline.index(config.load(environment), environment)


def copies(store: Path) -> dict[str, list[tuple[str, bool]]]:
    """Native session id → (text, whether it is a copy) of its prompts and answers, hidden turns too."""
    engine = EmbeddedStore(store)
    found: dict[str, list[tuple[str, bool]]] = {}
    with engine.snapshot() as snapshot:
        for session in snapshot.sessions(SessionQuery(0, 1 << 60, snapshot.arrival, 100)):
            ids = [
                row[0]
                for row in engine.connection().execute(
                    "SELECT e.id FROM event e JOIN turn t ON t.id = e.turn WHERE t.session = ? AND e.type < 2"
                    " ORDER BY t.place, e.ord",
                    (session.id,),
                )
            ]
            events = [snapshot.found([number])[number].event for number in ids]
            found[session.native] = [
                (content.text, event.copy) for event, content in zip(events, snapshot.contents(events), strict=True)
            ]
    engine.close()
    return found


def in_every_order(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    outcomes = []
    count = len(session_files(home))
    for number, order in enumerate(itertools.permutations(range(count))):

        def ordered(discovery: pipeline.Discovery, order: tuple[int, ...] = order) -> list[Any]:
            files = sorted(discovery.found, key=lambda found: found.file.path)
            return [files[place] for place in order]

        monkeypatch.setattr(pipeline.Discovery, "newest_first", ordered)
        read(home, tmp_path / f"store{number}")
        outcomes.append(copies(tmp_path / f"store{number}"))
    return outcomes


def test_T44_a_resumed_transcript_copies_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = resumed(tmp_path / "home", tmp_path)
    for outcome in in_every_order(tmp_path / "home", tmp_path, monkeypatch):
        assert outcome[old.session] == [("paint the buoy", False), ("The buoy is red.", False)]
        assert outcome[new.session] == [
            ("paint the buoy", True),
            ("The buoy is red.", True),
            ("and the anchor", False),
            ("The anchor is black.", False),
        ]


def test_T18_forks_of_forks_point_at_the_first_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = forked(tmp_path / "home", tmp_path)
    for outcome in in_every_order(tmp_path / "home", tmp_path, monkeypatch):
        assert outcome[first.session] == [("chart the bay", False), ("The bay is charted.", False)]
        assert [copy for _, copy in outcome[second.session]] == [True, True, False, False]
        assert [copy for _, copy in outcome[third.session]] == [True, True, True, True, False, False]


def test_T18_of_forks_whose_parent_is_gone_the_oldest_holds_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = forked(tmp_path / "home", tmp_path)
    first.path(tmp_path / "home").unlink()
    for outcome in in_every_order(tmp_path / "home", tmp_path, monkeypatch):
        assert [copy for _, copy in outcome[second.session]] == [False, False, False, False]
        assert [copy for _, copy in outcome[third.session]] == [True, True, True, True, False, False]


def test_T47_the_copied_head_of_a_subagent_is_none_of_its_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = with_subagents(tmp_path / "home", tmp_path)
    outcomes = in_every_order(tmp_path / "home", tmp_path, monkeypatch)
    for number, outcome in enumerate(outcomes):
        child = f"{main.session}/agent-acompact-b2"
        assert [copy for _, copy in outcome[main.session]] == [False, False]
        assert [copy for _, copy in outcome[child]] == [True, True, False, False]
        with open_store(tmp_path / f"store{number}").snapshot() as snapshot:
            session = snapshot.session(session_uid("claude-code", "claude", child))
            assert session is not None
            assert (session.turn_count, session.event_count) == (1, 2)
            assert session.parent_uid == session_uid("claude-code", "claude", main.session)
            [turn] = snapshot.turns(session.id, 0, 10, snapshot.arrival)
            assert turn.user_input is not None
            assert (turn.ordinal, turn.user_input.text) == (1, "sum up the survey")


def test_times_title_and_first_prompt_come_from_own_events(tmp_path: Path) -> None:
    old, new = resumed(tmp_path / "home", tmp_path)
    read(tmp_path / "home", tmp_path / "store")
    with open_store(tmp_path / "store").snapshot() as snapshot:
        session = snapshot.session(session_uid("claude-code", "claude", new.session))
        assert session is not None
        assert session.first_prompt == "and the anchor"
        assert session.started == milliseconds("2026-05-01T09:00:00Z")
        assert (session.turn_count, session.event_count) == (2, 4), "what open shows counts copies too"
        assert snapshot.session(session_uid("claude-code", "claude", old.session)).first_prompt == "paint the buoy"


def test_equal_texts_of_unrelated_sessions_are_no_copies(tmp_path: Path) -> None:
    for letter in ("E1", "E2"):
        made = Claude(letter, tmp_path).user("08:00:00", "go on").answer("08:00:05", "Done.")
        path = made.path(tmp_path / "home")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(__import__("json").dumps(line) + "\n" for line in made.lines))
    read(tmp_path / "home", tmp_path / "store")
    assert all(not copy for events in copies(tmp_path / "store").values() for _, copy in events)
