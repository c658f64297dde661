"""kill -9 at random instants of row and text commits: what is left is drained to the answers of a rebuild."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from homes import full_home, grow
from outcrop.model import EVENT_TYPES, EventType
from outcrop.search.events import EventQuery, search_events
from outcrop.store.embedded.read import EmbeddedStore
from projection import projection
from world import World

QUERIES = (
    "tide", "question answer", '"high water"', "beacon harbour", "chart the bay", "buoy anchor", "gull number 7",
    "long1 question 31", "naive 日本語", "lihgthouse", "beam.py", "to be or not",
)  # fmt: skip
TYPES = tuple(kind for kind in EVENT_TYPES if kind is not EventType.UNKNOWN)
SMALL_COMMITS = """
import sys
from outcrop.cli import index, main
from outcrop.ingest import pipeline
from outcrop.store.embedded import text
text.FIRST_COMMIT, text.NEXT_COMMIT, text._READ_AT_ONCE, pipeline.DRAIN_EVENTS = 20, 30, 10, 60
print("ready", flush=True)
main(["index"])
print("done", flush=True)
"""


@pytest.mark.parametrize(("kills", "pieces"), [(5, 12), pytest.param(100, 30, marks=pytest.mark.slow)])
def test_killed_often_it_drains_to_the_answers_of_an_undisturbed_run_and_of_a_rebuild(
    tmp_path: Path, kills: int, pieces: int
) -> None:
    home = full_home(tmp_path / "world")
    instants = random.Random(3)
    struck = 0
    store = 0
    length = 0.4
    while struck < kills:
        store += 1
        folder = tmp_path / str(store)
        grown = World(folder)
        for _ in grow(home.home, grown.home, pieces, seed=store):
            seconds = killed_after(grown, instants.uniform(0, 0.9 * length))
            struck += seconds is None
            length = length if seconds is None else 0.7 * length + 0.3 * seconds
        grown.index()
        found = answers(grown.store)
        assert grown.run("rebuild").code == 0
        assert in_any_order(answers(grown.store)) == in_any_order(found)
    home.index()
    assert home.run("rebuild").code == 0
    assert projection(grown.store) == projection(home.store)
    assert answers(grown.store) == answers(home.store)


def in_any_order(told: list[Any]) -> list[Any]:
    """Scores count the words of deleted documents until segments merge: only new indexes are ranked alike."""
    return [sorted(some) for some in told]


def killed_after(world: World, delay: float) -> float | None:
    """Run an index and kill it so many seconds after it began; if it came to its end before, the seconds it took."""
    child = subprocess.Popen(
        [sys.executable, "-c", SMALL_COMMITS], env=world.environment, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    began = time.monotonic()
    killer = threading.Timer(delay, child.kill)
    killer.start()
    told = child.stdout.read()
    seconds = time.monotonic() - began
    killer.cancel()
    child.wait()
    child.stdout.close()
    return seconds if told.endswith("done\n") else None


def answers(home: Path) -> list[Any]:
    """The hits of every query, in order, by public ids."""
    store = EmbeddedStore(home)
    with store.snapshot():
        pending = store.connection().execute("SELECT count(*) FROM text_todo WHERE class < 2").fetchone()[0]
    assert pending == 0
    told = []
    for query in QUERIES:
        answer = search_events(store, EventQuery(query, TYPES, 400))
        told.append([(hit.found.event.uid, hit.snippet) for hit in answer.hits])
        told.append(answer.warnings)
    store.close()
    return told
