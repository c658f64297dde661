"""A writer beside what is measured: it indexes twenty documents of a store anew, four times a second.

    python bench/writer.py STORE

It stops at the end of its input and prints what its commits took, as JSON. `writing` runs it around something.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Json, Spread, report

from outcrop.ingest.lock import writer_lock
from outcrop.store.embedded.text import TextWriter
from outcrop.store.embedded.write import Writer

SEED = 7
DOCUMENTS = 20
PAUSE = 0.25


@contextmanager
def writing(store: Path, env: dict[str, str]) -> Iterator[Json]:
    """What is yielded holds `commit` once the block is left: latencies of the text commits."""
    found: Json = {}
    command = [sys.executable, __file__, str(store)]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()  # it writes from here on
        yield found
        found["commit"] = json.loads(child.communicate()[0])


def main() -> int:
    store = Path(sys.argv[1]).resolve()
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    commits = Spread()
    with writer_lock(store, 5.0):
        rows, text = Writer(store), TextWriter(store)
        numbers = [number for (number,) in rows.db.execute("SELECT id FROM event WHERE type < 3")]
        chosen = random.Random(SEED)
        print(flush=True)
        while not over.wait(PAUSE):
            with rows.transaction():
                rows.todo((number, 0) for number in chosen.sample(numbers, DOCUMENTS))
            commits.time(lambda: text.drain(rows.db))
        text.close()
        rows.close()
    report(commits.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
