"""Four processes search while one writes, removes and rebuilds: no error, and only events that exist."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from tests.search.history import History, assistant, user

from outcrop.store.embedded.text import rebuild

READERS = 4
COMMITS = 30
AT_LEAST = 20
"""Searches that each reader must have done beside the writer."""

READER = (
    """
import sys
from pathlib import Path
from outcrop.model import CONVERSATION
from outcrop.search.events import EventQuery, search_events
from outcrop.store.embedded.read import EmbeddedStore

home, removed, stop = map(Path, sys.argv[1:])
store = EmbeddedStore(home)
searches = 0
newest = 0
print("ready", flush=True)
while not stop.exists():
    gone = set(removed.read_text().split())
    hits = search_events(store, EventQuery("lamp", CONVERSATION, 500)).hits
    ids = [hit.found.event.id for hit in hits]
    assert len(set(ids)) == len(ids)
    assert not gone & set(map(str, ids)), "a removed event was found"
    assert all("lamp" in hit.snippet for hit in hits)
    assert max(ids) >= newest - 2, "an older state was shown"  # of the last events some may be removed
    newest = max(newest, *ids)
    assert len(ids) >= 20
    searches += 1
    if searches == """
    + str(AT_LEAST)
    + """:
        print("enough", flush=True)
print(searches, flush=True)
"""
)


def test_readers_in_processes_see_no_error_and_only_what_exists(tmp_path: Path) -> None:
    chance = random.Random(8)
    history = History(tmp_path / "home")
    removed, stop = tmp_path / "removed", tmp_path / "stop"
    removed.touch()
    living = history.add("a", [user(f"lamp {number}", number) for number in range(60)])
    history.drain()
    arguments = [str(history.home), str(removed), str(stop)]
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(READERS)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    for number in range(COMMITS):
        living += history.add("a", [user(f"lamp new {number}", 100), assistant(f"the lamp {number}", 100)])
        living.remove(event := chance.choice(living[:-2]))
        history.remove(event)
        with open(removed, "a", encoding="utf-8") as stream:
            stream.write(f" {event} ")
        living.remove(event := chance.choice(living[:-2]))
        history.change(event, "dark")
        if number % 10 == 5:
            rebuild(history.db)
        history.add("b", [user("tide", number)])
        history.drain()
    for reader in readers:
        assert reader.stdout is not None
        reader.stdout.readline()
    stop.touch()
    for reader in readers:
        out, err = reader.communicate(timeout=60)
        assert (reader.returncode, err) == (0, ""), err
        assert int(out) >= AT_LEAST
    history.close()
