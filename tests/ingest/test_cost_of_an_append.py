"""What one more message costs follows from the message, not from the session, its file or the history.

Counted in instructions of SQLite, which are the same at every run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from following import append, conversation
from outcrop.config import Config
from outcrop.harnesses import Environment
from outcrop.ingest.discover import Found
from outcrop.ingest.pipeline import Pipeline
from outcrop.store.embedded import text
from world import World

STEP = 20
"""Instructions between two calls of the counter."""


def cost(folder: Path, turns: int, sessions: int) -> int:
    """Instructions for one prompt in a session of so many turns, in a history of so many sessions."""
    world = World(folder)
    words = [f"tide{turn}" for turn in range(turns)]
    session = conversation(world, "A", *words)
    append(session.path(world.home), *session.lines)
    for number in range(sessions):
        other = conversation(world, f"B{number}", "gull")
        for line in other.lines:
            line["cwd"] = str(world.places().repository)
        append(other.path(world.home), *other.lines)
    world.store.mkdir()
    pipeline = Pipeline(Config(world.store, world.store / "config.toml"), Environment(world.home))
    pipeline.text.quiet_ms = text.QUIET_MS  # as an indexer does, which stays
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    try:
        pipeline.sweep()
        (found,) = (found for found in pipeline.discovery.found if found.file.native == session.session)
        # The first one lets caches fill and finds the text index with no small segment to go on with.
        for number in range(2):
            counted[0] = 0
            session.user("23:00:00", f"the word is avocet{number}")
            append(session.path(world.home), session.lines[-1])
            pipeline.writer.db.set_progress_handler(count, STEP)
            path = found.file.path
            pipeline.read([Found(found.harness, found.file, os.stat(path))])
            pipeline.settle()
            pipeline.writer.db.set_progress_handler(None, 0)
    finally:
        pipeline.close()
    return counted[0] * STEP


def test_in_a_long_session_of_a_long_history_a_message_costs_what_it_costs_in_a_new_one(tmp_path: Path) -> None:
    small = cost(tmp_path / "small", 3, 1)
    long = cost(tmp_path / "long", 1_000, 1)
    many = cost(tmp_path / "many", 3, 400)
    assert long < 1.3 * small
    assert many < 1.3 * small


def test_the_document_of_a_whole_session_waits_until_nothing_arrives_whatever_its_records_say(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = conversation(small_world, "A", "tide0", "tide1", "tide2", "tide3")
    path = session.path(small_world.home)
    append(path, *session.lines)
    small_world.store.mkdir()
    store = small_world.store
    pipeline = Pipeline(Config(store, store / "config.toml"), Environment(small_world.home))
    pipeline.text.quiet_ms = text.QUIET_MS  # as an indexer does, which stays

    def settled() -> tuple[int, int]:
        pipeline.settle()
        return pipeline.writer.db.execute("SELECT messages, whole FROM session").fetchone()

    def read() -> None:
        (found,) = [each for each in pipeline.discovery.found if each.file.path == str(path)]
        pipeline.read([Found(found.harness, found.file, os.stat(path))])

    try:
        pipeline.sweep()
        before = settled()
        assert before[0] == before[1] > 0
        session.user("23:00:00", "and now it is high")
        append(path, session.lines[-1])
        read()
        assert settled() == (before[0] + 1, before[1])
        later = time.time_ns() + text.QUIET_MS * 1_000_000
        monkeypatch.setattr(time, "time_ns", lambda: later)
        assert settled() == (before[0] + 1, before[0] + 1)
    finally:
        pipeline.close()
