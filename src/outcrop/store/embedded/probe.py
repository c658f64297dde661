"""Looking for the remains of erased text, without keeping any of it: digests of its lines, and of its rarest words.

A mark is a digest of the first 32 characters of a line, or of a text with its white space folded (as previews have
it). The same marks are looked for before erasing, where they must be found, and after it, in every value that
`values` decodes. They prove that nothing is left that begins a line as erased text did; a piece from the middle of a
line alone has no mark, nor has a line shorter than 8 characters. Of very much text a sample is taken: the 200,000
smallest digests, whichever lines these are of.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from zlib import crc32

from outcrop.store.embedded.values import all_values

SHORTEST = 8
"""Characters of the shortest line that has a mark."""
WINDOW = 32
MOST = 200_000
LINES = 0
"""Kind of these marks in `purge_mark`."""
TERMS = 1
_FOLDED = 256


def heads(text: str) -> Iterator[bytes]:
    """The beginnings of a text and of its lines."""
    if len(text) < SHORTEST:
        return
    folded = _beginning(text)
    if len(folded) >= SHORTEST:
        yield folded.encode("utf-8", "surrogatepass")
    for line in text.splitlines():
        head = line.strip()[:WINDOW]
        if len(head) >= SHORTEST:
            yield head.encode("utf-8", "surrogatepass")


def mark_of(head: bytes) -> bytes:
    """Four bytes of a cheap checksum, by which almost every line is passed over, and eight of a digest."""
    return crc32(head).to_bytes(4, "big") + blake2b(head, digest_size=8).digest()


def _beginning(text: str) -> str:
    return " ".join(text.lstrip()[:_FOLDED].split())[:WINDOW]


def whole_mark(text: str) -> bytes:
    """The same of a whole text with its white space folded: its beginning's checksum, and a digest of all of it."""
    folded = " ".join(text.split()).encode("utf-8", "surrogatepass")
    beginning = _beginning(text).encode("utf-8", "surrogatepass")
    return crc32(beginning).to_bytes(4, "big") + blake2b(folded, digest_size=16).digest()


def marks_of(texts: Iterable[list[str]]) -> set[bytes]:
    """The marks of many texts, or the sample of them."""
    found: set[bytes] = set()
    for some in texts:
        for text in some:
            found.update(map(mark_of, heads(text)))
        if len(found) > 2 * MOST:
            found = set(_sample(found))
    return set(_sample(found))


def _sample(marks: set[bytes]) -> list[bytes]:
    return sorted(marks, key=lambda mark: mark[4:])[:MOST]


@dataclass(slots=True)
class Found:
    """Marks that are there: `owned` in rows that account for them, `left` in none. `tables`: where `left` stood.

    `equal`: (block, slot) of whole texts that are the same as an erased one.
    """

    owned: set[bytes] = field(default_factory=set)
    left: set[bytes] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    equal: list[tuple[int, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.owned | self.left)


def look_for(db: sqlite3.Connection, marks: set[bytes], whole: frozenset[bytes] = frozenset(), *,
             until_all: bool = False) -> Found:  # fmt: skip
    """Look through the whole store for marks. `until_all` stops as soon as every one was seen."""
    found, unseen = Found(), set(marks)
    quick, quick_whole = ({int.from_bytes(mark[:4], "big") for mark in some} for some in (marks, whole))
    for value in all_values(db):
        for text in value.texts:
            for head in heads(text):
                if crc32(head) in quick and (mark := mark_of(head)) in marks:
                    unseen.discard(mark)
                    if value.owned:
                        found.owned.add(mark)
                    else:
                        found.left.add(mark)
                        found.tables.add(value.table)
            if (
                whole
                and value.at is not None
                and value.owned
                and crc32(_beginning(text).encode("utf-8", "surrogatepass")) in quick_whole
                and whole_mark(text) in whole
            ):
                found.equal.append(value.at)
        if until_all and not unseen:
            break
    found.left -= found.owned
    if not found.left:
        found.tables.clear()
    return found


def save_marks(db: sqlite3.Connection, kind: int, marks: Iterable[bytes]) -> None:
    db.executemany("INSERT OR IGNORE INTO purge_mark VALUES (?, ?)", [(kind, mark) for mark in marks])


def saved_marks(db: sqlite3.Connection, kind: int) -> set[bytes]:
    return {row[0] for row in db.execute("SELECT mark FROM purge_mark WHERE kind = ?", (kind,))}
