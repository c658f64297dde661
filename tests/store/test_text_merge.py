"""Segments that the engine's policy leaves side by side are merged, and nothing else changes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.search.history import History, user

from outcrop.model import CONVERSATION
from outcrop.search.events import EventQuery, search_events
from outcrop.store.embedded import text_merge
from outcrop.store.embedded.read import EmbeddedStore
from outcrop.store.embedded.text import TextWriter, rebuild
from outcrop.store.embedded.text_merge import Segment
from outcrop.store.embedded.text_reader import TextReader

WORDS = ["beacon", "harbour", "lamp", "gull", "tide", "timeout"]


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path / "home")
    yield made
    made.close()


def fill(history: History, number: int = text_merge.AT_ONCE - 1) -> int:
    """Add sessions until there are so many segments, 7 being the most that the policy leaves alone; how many.

    Each is too large for the next small commit to write it again.
    """
    for session in range(100):
        history.add(f"s{session}", [user(f"{WORDS[at % 6]} of {session}", session * 100 + at) for at in range(40)])
        history.drain()
        history.writer.close()
        if len(segments(history.home)) == number:
            return session + 1
    pytest.fail("never so many segments")


def segments(home: Path) -> list[int]:
    (folder,) = (home / "text").iterdir()
    return [one.documents for one in text_merge.segments(folder) or []]


def generation(history: History) -> int:
    return int(history.db.execute("SELECT v FROM meta WHERE k = 'generation'").fetchone()[0])


def answers(home: Path) -> dict[str, list[int]]:
    store = EmbeddedStore(home)
    try:
        return {
            word: [hit.found.event.id for hit in search_events(store, EventQuery(word, CONVERSATION, 500)).hits]
            for word in [*WORDS, "lamp changed", "beacon tide"]
        }
    finally:
        store.close()


MANY = [30] * text_merge.MOST_SEGMENTS


@pytest.mark.parametrize(
    ("sizes", "everything", "deleted"),
    [
        ([], True, 0),
        ([900_000], True, 0),
        ([5, 4, 3, 2, 1, 1], True, 0),  # too few for the policy, whatever they are
        ([240, 238, 90, 70, 30, 30, 30, 30], True, 241),
        ([30, 240, 90, 30, 238, 30, 70, 30], True, 241),  # in whatever order
        ([900, 80, 30, 30, 30, 30, 30], True, 901),
        ([900, 80, 30, 30, 30, 30, 30], False, 0),
        (MANY, False, 0),
        ([*MANY, 40], False, 41),
        ([*MANY, 40, 900], False, 41),  # the last is half of all: it stays
    ],
)
def test_which_segments_are_worth_a_merge(sizes: list[int], everything: bool, deleted: int) -> None:
    assert text_merge.deleted_documents([Segment(size, 0) for size in sizes], everything) == deleted


def test_many_segments_become_one_and_answer_the_same(history: History) -> None:
    sessions = fill(history)
    before, then = answers(history.home), generation(history)
    history.writer.merge(history.db, everything=True)
    history.writer.close()  # waits for it
    assert len(segments(history.home)) == 1
    assert answers(history.home) == before
    assert generation(history) > then  # a next page must not go on in another ranking
    view = TextReader(history.home).view(history.db)
    assert view is not None
    assert view.searcher.num_docs == 41 * sessions + 2  # events, whole sessions, the marker, an empty one
    history.change(history.add("more", [user("gull afterwards", 90_002)])[0], "harbour afterwards")
    history.drain()
    assert len(answers(history.home)["harbour"]) == len(before["harbour"]) + 1


def test_few_segments_stay_as_they_are(history: History) -> None:
    fill(history, 4)
    history.add("last", [user("gull", 90_000)])
    history.drain()
    before, then = segments(history.home), generation(history)
    history.writer.merge(history.db, everything=True)
    history.writer.close()
    assert segments(history.home) == before
    assert generation(history) == then


def test_without_an_index_or_a_writer_there_is_nothing_to_merge(history: History) -> None:
    history.writer.merge(history.db, everything=True)
    history.drain()
    history.writer.merge(history.db, everything=True)
    assert not any(answers(history.home).values())


def test_a_writer_goes_on_while_segments_are_merged(history: History) -> None:
    sessions = fill(history)
    history.add("last", [user("gull", 90_000)])
    history.drain()
    history.writer.merge(history.db, everything=True)
    history.add("then", [user("gull at last", 90_001)])
    history.drain()
    assert len(answers(history.home)["gull"]) == 7 * sessions + 2
    history.writer.close()
    assert len(answers(history.home)["gull"]) == 7 * sessions + 2


MERGING = """
import sys
from pathlib import Path
from outcrop.store.embedded.database import open_for_writing
from outcrop.store.embedded.text import TextWriter
home = Path(sys.argv[1])
writer = TextWriter(home)
db = open_for_writing(home)
writer.drain(db)
print("merges", flush=True)
writer.merge(db, everything=True)
writer.close()
print("done", flush=True)
"""


def test_killed_at_any_instant_of_a_merge_nothing_is_lost(history: History) -> None:
    chance = random.Random(11)
    killed = 0
    for attempt in range(8):
        fill(history)
        changed = history.add(f"n{attempt}", [user(f"gull number {attempt}", 90_000 + attempt)])[0]
        history.change(changed, f"lamp changed {attempt}")
        child = subprocess.Popen([sys.executable, "-c", MERGING, str(history.home)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        child.stdout.readline()
        try:
            child.wait(chance.random() * 0.05)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            killed += 1
        child.wait()
        child.stdout.close()
    assert killed
    history.drain()
    before = answers(history.home)
    assert len([id for id in before["lamp changed"] if id in before["lamp"]]) >= 8
    rebuild(history.db)
    history.drain()
    assert {word: sorted(ids) for word, ids in answers(history.home).items()} == {
        word: sorted(ids) for word, ids in before.items()
    }


KILLED = """
import os, sys
from pathlib import Path
from outcrop.store.embedded import text
from outcrop.store.embedded.database import open_for_writing
home = Path(sys.argv[1])
writer = text.TextWriter(home)
commit = writer._commit_empty
def killed(*asked):
    commit(*asked)
    os._exit(0)
writer._commit_empty = killed
writer.merge(open_for_writing(home), everything=True)
"""


def test_a_merge_that_a_kill_prevented_is_begun_by_the_next_process(history: History) -> None:
    for attempt in range(20):
        fill(history)
        subprocess.run([sys.executable, "-c", KILLED, str(history.home)], check=True)
        if len(segments(history.home)) == 8:
            break
        history.change(1, f"gull {attempt}")  # it had ended already
    else:
        pytest.fail("every merge ended before the kill")
    before = answers(history.home)
    other = TextWriter(history.home)
    other.merge(history.db)
    other.close()
    assert len(segments(history.home)) == 2  # all of it, and the marker of the commit that began the merge
    assert answers(history.home) == before
    then = generation(history)
    other.merge(history.db)
    TextWriter(history.home).merge(history.db)
    assert generation(history) == then


def test_only_what_no_merge_took_is_left_over() -> None:
    some = [Segment(10, 0)] * 7
    assert text_merge.left_over([*some, Segment(503, 501)])
    assert not text_merge.left_over([*some[1:], Segment(503, 501)])  # too few for the policy
    assert not text_merge.left_over([*some, Segment(500, 400)])
    assert not text_merge.left_over([*some, Segment(3, 1)])
    assert not text_merge.left_over([*some, Segment(5, 0)])
    assert not text_merge.left_over([])
