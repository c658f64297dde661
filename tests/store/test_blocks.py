"""Blocks of contents: what is read is what was written, in however many threads."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor

from outcrop.store.embedded.rows import decode_block, encode_block, encode_content


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
