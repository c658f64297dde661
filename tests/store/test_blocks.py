"""Blocks of contents: what is read is what was written, in however many threads."""

from __future__ import annotations

import random
import sqlite3
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import orjson
import pytest

from outcrop.errors import BackendFailure
from outcrop.store.embedded.blocks import KEPT_BYTES, Blocks
from outcrop.store.embedded.rows import Block, compress, decode_block, decompress, encode_block, encode_content


def test_threads_never_garble_each_others_blocks() -> None:
    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(60):
            texts = [chance.randbytes(200).hex() for _ in range(300)]
            z, _ = encode_block([encode_content({"text": text}) for text in texts])
            assert [stored["text"] for stored in decode_block(z)] == texts

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
    finally:
        sys.setswitchinterval(before)


def test_large_contents_do_not_stay_decoded_by_their_number_alone() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE block (id INTEGER PRIMARY KEY, size INTEGER, z BLOB)")
        for number in range(60):
            z, size = encode_block([encode_content({"text": f"{number} " + "x" * 1_000_000})])
            db.execute("INSERT INTO block VALUES (?, ?, ?)", (number, size, z))
        blocks = Blocks(db, 64)
        tracemalloc.start()
        try:
            for number in range(60):
                assert blocks.content(number, 0)["text"].startswith(f"{number} ")
            assert tracemalloc.get_traced_memory()[0] < KEPT_BYTES + 2_000_000
            blocks.clear()
            assert tracemalloc.get_traced_memory()[0] < 1_000_000
        finally:
            tracemalloc.stop()


def test_a_content_is_parsed_alone_and_blocks_of_before_are_read() -> None:
    contents = [{"text": "one\ntwo"}, {"text": "[,]\u2028"}, {}, {"text": "", "extra": {"a": ["\n", None]}}]
    z, size = encode_block([encode_content(content) for content in contents])
    assert size == len(decompress(z))
    assert decode_block(z) == contents == [Block(z)[slot] for slot in range(4)]
    assert len(Block(z)) == 4
    before = compress(encode_content(contents))
    assert decode_block(before) == contents
    assert orjson.loads(decompress(z)) == contents  # who knows one line alone still reads it


def test_a_damaged_content_is_told_and_the_others_are_read() -> None:
    block = Block(compress(b'[\n{"text":"one"}\n,{"text":\n,{"text":"three"}\n]'))
    assert block[0] == {"text": "one"}
    assert block[2] == {"text": "three"}
    with pytest.raises(BackendFailure):
        list(block)


@pytest.mark.parametrize("slot", [-5, -4, -1, 0, 1, 3, 4, 5, 100])
def test_the_first_content_asked_for_is_that_of_all(slot: int) -> None:
    contents = [{"text": f"{number}\n{number}"} for number in range(4)]
    for z in (encode_block([encode_content(content) for content in contents])[0], compress(encode_content(contents))):
        fresh, again = Block(z), Block(z)
        assert list(again) == contents
        for block in (fresh, again, fresh):
            if -4 <= slot < 4:
                assert block[slot] == contents[slot]
            else:
                with pytest.raises(IndexError):
                    block[slot]
        assert len(fresh) == 4
