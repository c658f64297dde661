"""The text index: the engine's traps, draining, readers, recovery after kills and losses."""

from __future__ import annotations

import mmap
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.search.history import History, Line, assistant, user

from outcrop.errors import BackendFailure, OutcropError, ResourceExhausted, TextIndexRebuilding
from outcrop.model import CONVERSATION, EVENT_TYPES, EventType
from outcrop.search.events import EventHits, EventQuery, search_events
from outcrop.store.embedded import analysis, text, text_fields
from outcrop.store.embedded.coverage import TRICKLE
from outcrop.store.embedded.database import open_for_writing
from outcrop.store.embedded.mapped import Pages
from outcrop.store.embedded.read import EmbeddedStore
from outcrop.store.embedded.text import TextWriter, rebuild
from outcrop.store.embedded.text_reader import TextFailure, TextReader

SEARCHABLE = tuple(kind for kind in EVENT_TYPES if kind is not EventType.UNKNOWN)
HASH = "3f2a9c" * 10 + "0b1d"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path / "home")
    yield made
    made.close()


def search(home: Path, words: str, types: tuple[EventType, ...] = CONVERSATION, limit: int = 50) -> EventHits:
    store = EmbeddedStore(home)
    try:
        return search_events(store, EventQuery(words, types, limit))
    finally:
        store.close()


def texts(home: Path, words: str, types: tuple[EventType, ...] = CONVERSATION) -> list[str]:
    return [hit.snippet for hit in search(home, words, types).hits]


def meta(history: History) -> dict[str, object]:
    return dict(history.db.execute("SELECT k, v FROM meta"))


def test_trap1_a_deleted_document_is_gone(history: History) -> None:
    first, second = history.add("a", [user("lantern one", 1), assistant("lantern two", 2)])
    history.drain()
    history.remove(first)
    history.drain()
    view = TextReader(history.home).view(history.db)
    assert view is not None
    assert view.searcher.num_docs == 3  # the marker, the whole session and the other event
    assert [hit.found.event.id for hit in search(history.home, "lantern").hits] == [second]


def test_trap1_a_changed_document_replaces_the_old_one(history: History) -> None:
    (event,) = history.add("a", [user("lantern", 1)])
    history.drain()
    history.change(event, "harbour")
    history.drain()
    assert texts(history.home, "lantern") == []
    assert texts(history.home, "harbour") == ["harbour"]


def test_trap2_a_hash_of_64_characters_is_found(history: History) -> None:
    history.add("a", [user(f"the image sha256:{HASH} is broken", 1)])
    history.add("b", [Line(EventType.TOOL_RESPONSE, f"digest: {HASH}", 2)])
    history.drain()
    assert len(HASH) == 64
    assert len(texts(history.home, HASH)) == 1
    assert len(texts(history.home, HASH.upper(), (EventType.TOOL_RESPONSE,))) == 1


def test_trap2_analyzers_survive_a_reopen_in_another_process(history: History) -> None:
    history.add("a", [user("Café running", 1)])
    history.drain()
    history.writer.close()
    history.add("a", [user("Über stopping", 2)])
    program = (
        "import sys; from pathlib import Path\n"
        "from outcrop.store.embedded.database import open_for_writing\n"
        "from outcrop.store.embedded.text import TextWriter\n"
        "home = Path(sys.argv[1]); db = open_for_writing(home); w = TextWriter(home); print(w.drain(db)); w.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(history.home)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"
    for words in ("cafe", "runs", "uber", "stopped"):
        assert len(texts(history.home, words)) == 1, words


def test_trap3_the_marker_tells_the_generation_of_a_state(history: History) -> None:
    reader = TextReader(history.home)
    seen = []
    for number in range(3):
        history.add("a", [user(f"lamp {number}", number)])
        history.drain()
        view = reader.view(history.db)
        assert view is not None
        seen.append((view.marker.generation, view.searcher.num_docs))
        assert view.marker.generation == meta(history)["generation"]
    assert [docs for _, docs in seen] == [3, 4, 5]  # with the marker and the whole session
    assert seen == sorted(set(seen))


def test_trap4_a_reader_sees_the_next_commit_and_an_old_view_stays(history: History) -> None:
    history.add("a", [user("gull", 1)])
    history.drain()
    reader = TextReader(history.home)
    old = reader.view(history.db)
    for number in range(5):
        history.add("a", [user("gull", 2 + number)])
        history.drain()
    new = reader.view(history.db)
    assert old is not None
    assert new is not None
    assert (old.searcher.num_docs, new.searcher.num_docs) == (3, 8)
    assert old.marker.generation < new.marker.generation


def test_trap5_names_are_split_in_linear_time() -> None:
    assert analysis.name_terms("resolveTerminalPath").split() == ["resolve", "terminal", "path"]
    assert analysis.name_terms("HTTPServer2 at src/net/beam_pool.py").split() == ["http", "server", "2", "beam_pool.py"]
    start = time.process_time()
    analysis.name_terms("aB" * 500_000)
    analysis.name_terms("a" * 1_000_000)
    analysis.name_terms("A" * 1_000_000)
    analysis.name_terms("a_" * 500_000)
    assert time.process_time() - start < 2


def test_trap6_parts_of_a_run_without_spaces_are_terms() -> None:
    assert analysis.name_terms("v2の日本語").split() == ["の", "日", "本", "語", "の日", "日本", "本語", "v2"]


def test_trap9_a_lost_or_damaged_index_is_built_anew(history: History) -> None:
    history.add("a", [user("beacon timeout", 1), assistant("raised it", 2)])
    history.drain()
    history.writer.close()
    folder = history.home / "text" / str(meta(history)["text_dir"])
    (folder / "meta.json").write_text("{", encoding="utf-8")
    with pytest.raises(TextIndexRebuilding):
        search(history.home, "beacon")
    assert history.drain() == 2
    assert texts(history.home, "beacon") == ["beacon timeout"]
    assert not folder.exists()


@pytest.mark.parametrize("part", ["term", "idx", "fast"])
def test_trap9_damage_inside_a_segment_is_an_error_and_the_next_drain_heals_it(history: History, part: str) -> None:
    history.add("a", [user(f"beacon {number} timeout", number) for number in range(300)])
    history.drain()
    history.writer.close()
    for path in (history.home / "text").glob(f"*/*.{part}"):
        data = path.read_bytes()
        path.write_bytes(random.Random(1).randbytes(len(data) // 2) + data[len(data) // 2 :])
    with pytest.raises(BackendFailure):
        search(history.home, "beacon timeout")
    history.add("a", [user("beacon new", 999)])
    history.drain()
    assert len(search(history.home, "beacon timeout", limit=400).hits) == 301


def test_a_kill_before_the_new_index_takes_over_is_made_good(history: History) -> None:
    history.add("a", [user("lamp", 1)])
    history.drain()
    name = str(meta(history)["text_dir"])
    history.writer.close()
    history.db.execute("INSERT OR REPLACE INTO meta VALUES ('text_next', ?), ('text_started', 1)", (name,))
    assert history.drain() == 0
    view = TextReader(history.home).view(history.db)
    assert view is not None
    assert view.searcher.num_docs == 3
    assert view.marker.generation == meta(history)["generation"]


def test_deleting_the_text_folder_heals_itself(history: History) -> None:
    history.add("a", [user("beacon timeout", 1)])
    history.drain()
    before = meta(history)["generation"]
    shutil.rmtree(history.home / "text")
    with pytest.raises(TextIndexRebuilding) as caught:
        search(history.home, "beacon")
    assert caught.value.details is not None
    assert caught.value.details["reason"] == "read_model_refresh"
    history.drain()
    assert texts(history.home, "beacon") == ["beacon timeout"]
    assert meta(history)["generation"] > before  # type: ignore[operator]


@pytest.mark.parametrize("name", ["epoch", "generation"])
def test_an_index_of_another_store_or_of_the_future_is_not_used(history: History, name: str) -> None:
    history.add("a", [user("beacon", 1)])
    history.drain()
    history.writer.close()
    history.db.execute("UPDATE meta SET v = ? WHERE k = ?", ("another" if name == "epoch" else 0, name))
    if name == "epoch":
        with pytest.raises(TextIndexRebuilding):
            search(history.home, "beacon")
    history.writer = TextWriter(history.home)
    assert history.drain() == 1
    assert texts(history.home, "beacon") == ["beacon"]
    assert meta(history)["text_dir"] == "text-2"


def test_an_index_of_another_schema_is_not_used(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.add("a", [user("beacon", 1)])
    history.drain()
    history.writer.close()
    monkeypatch.setattr(text_fields, "SCHEMA", text_fields.SCHEMA + 1)
    with pytest.raises(TextIndexRebuilding):
        search(history.home, "beacon")
    history.drain()
    assert texts(history.home, "beacon") == ["beacon"]


def test_no_event_gives_nothing_and_no_index_yet_says_so(history: History) -> None:
    assert search(history.home, "beacon") == EventHits([], False, [])
    history.add("a", [user("beacon", 1)])
    with pytest.raises(TextIndexRebuilding):
        search(history.home, "beacon")
    history.drain()
    assert texts(history.home, "beacon") == ["beacon"]


def test_an_empty_history_drains_too(history: History) -> None:
    assert history.drain() == 0
    assert search(history.home, "beacon").hits == []
    history.add("a", [user("beacon", 1)])
    assert history.drain() == 1
    assert texts(history.home, "beacon") == ["beacon"]


def test_the_old_index_serves_until_a_rebuild_is_complete(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "FIRST_COMMIT", 2)
    monkeypatch.setattr(text, "NEXT_COMMIT", 2)
    history.add("a", [user(f"lamp {number}", number) for number in range(9)])
    history.drain()
    rebuild(history.db)
    history.add("a", [user("lamp fresh", 100)])
    counts = []

    def watch(done: int, total: int) -> None:
        counts.append((done, total, len(search(history.home, "lamp").hits)))

    history.writer.drain(history.db, watch)
    assert counts[0][1] == 10
    assert {found for _, _, found in counts} <= {9, 10}
    assert len(search(history.home, "lamp").hits) == 10
    assert [path.name for path in (history.home / "text").iterdir()] == ["text-2"]


def test_a_failure_of_the_new_index_leaves_the_old_one_serving(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a full disk, of which the engine's thread says nothing but that it ended."""
    history.add("a", [user(f"beacon {number}", number) for number in range(5)])
    history.drain()
    rebuild(history.db)

    def fail(*_: object) -> None:
        raise ValueError("An error occurred in a thread: 'An index writer was killed.. A worker thread encountered'")

    with monkeypatch.context() as patched:
        patched.setattr(text_fields, "document", fail)
        for _ in range(2):
            with pytest.raises(BackendFailure):
                history.drain()
            assert len(texts(history.home, "beacon")) == 5
    history.drain()
    assert meta(history)["text_dir"] == "text-2"
    assert len(texts(history.home, "beacon")) == 5


def test_a_rebuild_that_was_lost_half_way_starts_again(history: History) -> None:
    history.add("a", [user("lamp", 1)])
    history.drain()
    rebuild(history.db)
    history.db.execute("UPDATE meta SET v = 1 WHERE k = 'text_started'")
    history.drain()
    assert texts(history.home, "lamp") == ["lamp"]
    assert meta(history)["text_dir"] == "text-3"
    assert meta(history)["text_next"] is None


def test_newest_conversations_are_drained_first(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "FIRST_COMMIT", 2)
    monkeypatch.setattr(text, "NEXT_COMMIT", 2)
    for number, name in enumerate(["old", "new"]):
        start = 1000 * (number + 1)
        history.add(
            name, [user(f"gull {name}", start), Line(EventType.TOOL_RESPONSE, "gull", start), assistant("gull", start)]
        )
    seen: list[list[str]] = []

    def watch(done: int, total: int) -> None:
        seen.append(
            [
                f"{hit.found.session.native}:{hit.found.event.type}"
                for hit in search(history.home, "gull", SEARCHABLE).hits
            ]
        )

    history.writer.drain(history.db, watch)
    assert {item.split(":")[0] for item in seen[0]} == {"new"}
    assert len(seen[1]) == 4
    assert not any("tool" in item for item in seen[1])
    assert len(seen[2]) == 6


def test_the_first_build_and_a_backlog_are_told_a_trickle_is_not(history: History) -> None:
    history.add("a", [user("gull", 1)])
    history.drain()
    history.db.executemany("INSERT INTO text_todo (doc, class) VALUES (?, 0)", [(1,)] * TRICKLE)
    assert search(history.home, "gull").warnings == []
    history.db.execute("INSERT INTO text_todo (doc, class) VALUES (1, 0)")
    assert search(history.home, "gull").warnings[0].startswith("coverage_partial:")
    history.drain()
    history.db.execute("UPDATE meta SET v = 'running' WHERE k = 'first_build'")
    assert search(history.home, "gull").warnings[0].startswith("coverage_partial:")


def test_a_hit_whose_row_is_gone_or_says_something_else_now_is_dropped(history: History) -> None:
    gone, changed, same = history.add("a", [user("lamp one", 1), user("lamp two", 2), user("lamp three", 3)])
    history.drain()
    history.remove(gone, queue=False)
    history.change(changed, "harbour", queue=False)
    history.change(same, "lamp four", queue=False)
    assert texts(history.home, "lamp") == ["lamp four"]


def test_context_is_the_two_messages_before_whatever_is_drained(history: History) -> None:
    words = ["amber", "basalt", "cobalt", "damson"]
    history.add("a", [line for word in words for line in (user(word, 1), Line(EventType.TOOL_RESPONSE, "x", 1))])
    history.drain()
    events = history.add("a", [assistant("echo", 2)])
    history.drain()
    view = TextReader(history.home).view(history.db)
    assert view is not None
    found = {
        word: [
            int(view.searcher.fast_field_values("id", [address])[0] or 0)
            for _, address in view.searcher.search(
                text_fields.Query.term_query(text_fields.schema(), "context", word, "freq"), 10
            ).hits
        ]
        for word in words
    }
    assert sorted(found["amber"]) == [3, 5]
    assert sorted(found["cobalt"]) == [7, *events]
    assert sorted(found["damson"]) == events
    history.db.execute("INSERT INTO text_todo (doc, class) SELECT id, 0 FROM event")
    history.drain()
    again = TextReader(history.home).view(history.db)
    assert again is not None
    assert again.searcher.num_docs == view.searcher.num_docs


CHILD = """
import sys
from pathlib import Path
from outcrop.store.embedded import text
from outcrop.store.embedded.database import open_for_writing
text.FIRST_COMMIT = text.NEXT_COMMIT = 40
home = Path(sys.argv[1])
db = open_for_writing(home)
writer = text.TextWriter(home)
print("ready", flush=True)
writer.drain(db, lambda done, total: print(done, total, flush=True))
writer.close()
print("done", flush=True)
"""


def test_killed_at_any_instant_it_drains_to_the_answers_of_a_rebuild(history: History) -> None:
    chance = random.Random(5)
    words = ["beacon", "harbour", "lamp", "gull", "tide", "timeout"]
    for session in range(10):
        history.add(
            f"s{session}",
            [user(" ".join(chance.choices(words, k=6)), 10 * session + at) for at in range(40)],
        )
    history.writer.close()
    finished = 0
    for attempt in range(10):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(history.home)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for _ in range(chance.randint(1, 3)):
            if child.stdout.readline() in ("done\n", ""):
                finished += 1
                break
        try:
            child.wait(chance.random() * 0.03)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        gone, changed = (row[0] for row in history.db.execute("SELECT id FROM event ORDER BY random() LIMIT 2"))
        history.remove(gone)
        history.change(changed, f"lamp changed {attempt}")
    assert finished < 10
    history.drain()
    before = {word: answers(history.home, word) for word in [*words, "lamp changed", "beacon tide"]}
    rebuild(history.db)
    history.drain()
    assert {word: answers(history.home, word) for word in before} == before
    assert history.db.execute("SELECT count(*) FROM text_todo").fetchone() == (0,)


KILLED_IN_A_MERGE = """
import os, sys
from pathlib import Path
from outcrop.store.embedded.database import open_for_writing
from outcrop.store.embedded.text import TextWriter
home = Path(sys.argv[1])
TextWriter(home).drain(open_for_writing(home), lambda done, total: os._exit(0))
"""


def test_trap_a_merge_that_a_kill_left_undone_swallows_no_deletion(tmp_path: Path) -> None:
    """The engine counts operations on from the last commit and gives its number to the first operation again. A merge
    takes those up to that commit, but passes over segments which that commit thinned out, so that they lost it."""
    for attempt in range(20):
        history = History(tmp_path / str(attempt))
        changed = 0
        for session in range(7):
            changed = history.add(f"s{session}", [user("lamp", session * 100 + at) for at in range(40 - session)])[0]
            history.drain()
            history.writer.close()
        history.add("last", [user("gull", 1000)])
        subprocess.run([sys.executable, "-c", KILLED_IN_A_MERGE, str(history.home)], check=True)
        state = next((history.home / "text").glob("*/meta.json")).read_text(encoding="utf-8")
        unmerged = state.count("segment_id") == 8
        history.change(changed, "harbour")
        history.drain()
        assert len(search(history.home, "harbour").hits) == 1
        assert changed not in [hit.found.event.id for hit in search(history.home, "lamp", limit=400).hits]
        view = TextReader(history.home).view(history.db)
        assert view is not None
        assert view.searcher.num_docs == 269  # 260 events, 8 whole sessions, the marker
        history.close()
        if unmerged:
            return
    pytest.fail("every merge ended before the kill")


def answers(home: Path, words: str) -> list[tuple[int, str]]:
    hits = search(home, words, limit=400).hits
    return sorted((hit.found.event.id, hit.snippet) for hit in hits)


def test_readers_in_threads_never_fail_while_a_writer_commits(history: History) -> None:
    history.add("a", [user("lamp", 1)])
    history.drain()
    store = EmbeddedStore(history.home)
    failures: list[BaseException] = []
    seen: list[list[int]] = [[], [], []]
    stop = threading.Event()

    def read(counts: list[int]) -> None:
        try:
            while not stop.is_set():
                counts.append(len(search_events(store, EventQuery("lamp", CONVERSATION, 50)).hits))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read, args=(counts,)) for counts in seen]
    for thread in threads:
        thread.start()
    for number in range(20):
        history.add("a", [user("lamp", number)])
        if number == 10:
            rebuild(history.db)
        history.drain()
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(counts == sorted(counts) for counts in seen)
    assert len(search_events(store, EventQuery("lamp", CONVERSATION, 50)).hits) == 21
    store.close()


def test_a_file_of_deletions_that_a_kill_left_does_not_stop_later_commits(history: History) -> None:
    """Killed after the file was written and before the engine's own commit: the next run gives it the same name."""
    first, *_ = history.add("a", [user("lantern one", 1), *(assistant("lantern two", at) for at in range(2, 60))])
    history.drain()
    folder = history.home / "text" / str(meta(history)["text_dir"])
    history.writer.close()
    before = (folder / "meta.json").read_bytes()
    history.remove(first)
    stale = history.db.execute("SELECT doc, class FROM text_todo").fetchall()
    history.drain()
    history.writer.close()
    assert list(folder.glob("*.del"))
    (folder / "meta.json").write_bytes(before)
    history.db.executemany("INSERT INTO text_todo (doc, class) VALUES (?, ?)", stale)
    history.drain()
    assert set(texts(history.home, "lantern")) == {"lantern two"}


def test_a_commit_ends_before_what_waits_for_the_engine_is_large(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "QUEUE_BYTES", 100_000)
    history.add("a", [user(f"lamp number{number} " + "beacon " * 3_000, number) for number in range(12)])
    history.add("b", [user(f"lamp small{number}", 100 + number) for number in range(40)])
    commits: list[tuple[int, int]] = []
    history.writer.drain(history.db, lambda done, total: commits.append((done, total)))
    assert len(commits) >= 6  # each of the long ones holds 40 kB and more: text, stems, and what was said before
    assert (commits[-1], sorted(commits)) == ((52, 52), commits)
    assert len(search(history.home, "lamp", limit=100).hits) == 52
    # One alone that is larger than all that may wait, and the small commits that are written again with the next.
    for number in range(4):
        history.add("c", [user(f"lamp huge{number} " + "reef " * 30_000, 1_000 + number)])
        history.drain()
        assert len(texts(history.home, f"huge{number}")) == 1
    assert len(search(history.home, "lamp", limit=100).hits) == 56
    rebuild(history.db)
    history.drain()
    assert len(search(history.home, "lamp", limit=100).hits) == 56


def test_more_than_is_put_in_order_at_once_is_drained(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "ORDERED", 7)
    monkeypatch.setattr(text, "FIRST_COMMIT", 3)
    history.add("a", [user(f"lamp number{number}", number) for number in range(30)])
    told: list[tuple[int, int]] = []
    assert history.writer.drain(history.db, lambda done, total: told.append((done, total))) == 30
    assert {total for _, total in told} == {30}
    assert len(search(history.home, "lamp").hits) == 30
    rebuild(history.db)
    assert history.drain() == 30
    assert len(search(history.home, "lamp").hits) == 30


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such call")
def test_pages_of_the_index_are_given_back_and_those_of_others_are_not(tmp_path: Path) -> None:
    size = 8 << 20
    (tmp_path / "text").mkdir()
    paths = [tmp_path / "text" / "some", tmp_path / "other"]
    maps = []
    for path in paths:
        path.write_bytes(os.urandom(size))
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            maps.append(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ))
        assert len(set(maps[-1][:: mmap.PAGESIZE])) > 1
    assert [resident(path) >= size for path in paths] == [True, True]
    pages = Pages(tmp_path / "text")
    pages.give_back(1 << 40)
    assert resident(paths[0]) >= size
    pages.give_back(0)
    assert resident(paths[0]) < size // 10
    assert resident(paths[1]) >= size
    assert maps[0][:] == paths[0].read_bytes()
    for each in maps:
        each.close()


def resident(path: Path) -> int:
    """Bytes of a mapped file that this process has in memory."""
    told = Path("/proc/self/smaps").read_text(encoding="utf-8").split(f"{path}\n", 1)[1]
    (line,) = re.findall(r"^Rss: +(\d+) kB", told, re.MULTILINE)[:1]
    return int(line) * 1024


@pytest.mark.parametrize(("free", "told"), [(0, ResourceExhausted), (1 << 40, TextFailure)])
def test_a_writer_that_died_on_a_full_disk_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, told: type[OutcropError]
) -> None:
    """The engine's thread finds no room; the next call hears only that it has ended."""
    db = open_for_writing(tmp_path)
    writer = TextWriter(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(free, 0, free))  # type: ignore[attr-defined]
    with pytest.raises(told), writer._engine(db):
        raise ValueError("An error occurred in a thread: 'An index writer was killed..'")
    writer.close()
    db.close()
