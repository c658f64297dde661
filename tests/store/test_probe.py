"""Marks of erased text: found again wherever the line stands, and nowhere else; every table is looked through."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.calls import fold
from outcrop.store.embedded import probe, rows, values
from outcrop.store.embedded.write import Writer

LINE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)


def marks(text: str) -> set[bytes]:
    return probe.marks_of([[text]])


@given(LINE, st.lists(LINE, max_size=4), st.lists(LINE, max_size=4))
def test_a_line_has_its_mark_wherever_it_stands(line: str, before: list[str], behind: list[str]) -> None:
    among = marks("\n".join([*before, line, *behind]))
    for part in line.splitlines():
        head = part.strip()[: probe.WINDOW]
        if len(head) >= probe.SHORTEST:
            assert probe.mark_of(head.encode()) in among


@given(st.lists(LINE, min_size=1, max_size=5))
def test_a_preview_has_a_mark_of_its_text(lines: list[str]) -> None:
    text = "\n".join(lines)
    preview, _ = fold(text)
    if len(text) <= 200 and len(preview.strip()) >= probe.SHORTEST:
        assert marks(preview) & marks(text)


def test_short_lines_have_none_and_long_ones_are_told_by_their_beginning() -> None:
    assert marks("}") == marks("  ok  ") == marks("1234567") == set()
    assert marks("x" * 500) == marks("x" * probe.WINDOW)
    assert marks("a line of its own") != marks("another line of its own")
    assert len(marks("\ud800 lone surrogates")) == 1


def test_of_very_much_a_sample_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "MOST", 10)
    texts = [[f"line number {number}"] for number in range(100)]
    sample = probe.marks_of(texts)
    assert len(sample) == 10
    assert sample == probe.marks_of(reversed(texts)), "whichever comes first"
    assert sample < {mark for text in texts for mark in map(probe.mark_of, probe.heads(text[0]))}


def test_a_table_that_is_added_later_is_looked_through(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    db = writer.db
    db.execute("CREATE TABLE later (id INTEGER PRIMARY KEY, session INTEGER, note TEXT, packed BLOB)")
    packed = rows.compress(b'{"deep": ["the packed pelican"]}')
    db.execute("INSERT INTO later VALUES (1, 77, 'the noted nightjar', ?)", (packed,))
    wanted = marks("the packed pelican") | marks("the noted nightjar")
    found = probe.look_for(db, wanted)
    assert (found.left, found.owned, found.tables) == (wanted, set(), {"later"}), "no session 77 accounts for it"
    number = writer.create_session(b"u" * 16, "codex", "codex", "n")
    db.execute("UPDATE later SET session = ?", (number,))
    found = probe.look_for(db, wanted)
    assert (found.left, found.owned) == (set(), wanted)
    writer.close()


def test_looking_until_all_are_seen_costs_no_more_than_looking_through_all(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.db.execute("CREATE TABLE later (id INTEGER PRIMARY KEY, session INTEGER, note TEXT)")
    notes = [f"note number {number}" for number in range(10_000)]
    writer.db.executemany("INSERT INTO later (session, note) VALUES (1, ?)", [(note,) for note in notes])
    wanted = probe.marks_of([notes]) | marks("a note that nobody wrote")

    def seconds(until_all: bool) -> float:
        began = time.process_time()
        assert probe.look_for(writer.db, wanted, until_all=until_all).count == len(notes)
        return time.process_time() - began

    assert seconds(until_all=True) < 5 * seconds(until_all=False)
    writer.close()


def test_places_in_blocks_that_no_event_refers_to_account_for_nothing(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    with writer.transaction():
        session = writer.create_session(b"u" * 16, "codex", "codex", "n")
        writer.add_block(1, session, [rows.encode_content({"text": "forgotten in its slot"})])
    found = probe.look_for(writer.db, marks("forgotten in its slot"))
    assert found.left
    assert found.tables == {"block"}
    writer.close()


def test_all_texts_of_a_value_are_found_keys_too() -> None:
    value = {"a key": ["one", {"two": 2, "three": ["four", None]}], "b": True}
    assert sorted(values.texts_of(value)) == ["a key", "b", "four", "one", "three", "two"]


def test_every_column_of_text_is_looked_through_or_passed_on_purpose(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    looked = dict(values._tables(writer.db))
    writer.close()
    tables = {
        *("session", "turn", "fact", "place", "kept", "problem", "file", "action", "path", "root", "name"),
        *("tombstone", "tombstone_origin"),
    }
    assert set(looked) == tables, "a new table is looked through: say so here"
    db = sqlite3.connect(tmp_path / "outcrop.db")
    names = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    db.close()
    assert names - tables - {"sqlite_sequence"} == values._PASSED
