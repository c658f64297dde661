"""Measures session search: latency and CPU by rung and sort, and what repairing words costs over a large vocabulary.

    python bench/session_search.py --home DIR [--store DIR] [--calls N] [--terms N]

DIR is a home folder with session files and a `needles.json` as for `bench/search.py`; a store that is absent is built
first, one that exists is reused. `--terms N` adds a store of invented words, N different ones, to repair words in.
Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from measure import Json, Spread, conditions, environment, folder_bytes, megabytes, report, run

from outcrop import ids
from outcrop.search.found import NEWEST, SessionPage, SessionSearch
from outcrop.search.sessions import search_sessions
from outcrop.store.embedded import rows
from outcrop.store.embedded.database import open_for_writing
from outcrop.store.embedded.read import EmbeddedStore
from outcrop.store.embedded.text import TextWriter

SEED = 7
WARM = 10
PAGE = 20
WORDS_A_MESSAGE = 400
UNKNOWN = 40
_LETTERS = "etaoinshrdlucmfwypvbgk"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure session search.")
    parser.add_argument("--home", type=Path, required=True, help="a home folder with session files and needles.json")
    parser.add_argument("--store", type=Path, help="the store of that home; built where it is absent, and kept")
    parser.add_argument("--calls", type=int, default=200, help="queries of each class")
    parser.add_argument("--terms", type=int, default=0, help="words of the vocabulary to repair in; 0: not measured")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outcrop-bench-") as work:
        found: Json = {"conditions": conditions()}
        store = (args.store or Path(work) / "store").resolve()
        if not (store / "outcrop.db").exists():
            command = [sys.executable, "-m", "outcrop", "index", "--json"]
            run(command, environment(args.home.resolve(), store, Path(work)), sample=False)
        with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
            found["events"], found["sessions"] = db.execute(
                "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM session WHERE event_count > 0)"
            ).fetchone()
        found["text_mb"] = megabytes(folder_bytes(store / "text"))
        found["latency"] = _latency(args.home, store, args.calls)
        if args.terms:
            found["repair"] = _repair(Path(work) / "words", args.terms, min(args.calls, 100))
        report(found)
    return 0


def kinds(home: Path, store: Path, calls: int) -> dict[str, list[SessionSearch]]:
    """Queries by class, from the lists that the home's generator left."""
    sets: dict[str, list[str]] = json.loads((home / "needles.json").read_text("utf-8"))["queries"]
    rare, mid, common, natural = (sets[name][:calls] for name in ("rare", "mid", "common", "natural"))
    typos = [word[:3] + word[4:] for text in mid for word in text.split()[:1] if len(word) > 6]
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        folders = [row[0] for row in db.execute("SELECT DISTINCT cwd FROM place ORDER BY cwd")]
    return {
        "or, rare": _all(rare),
        "or, mid": _all(mid),
        "or, common words": _all(common),
        "or, question": _all(natural),
        "or, conversation": _all(mid, scope="conversation"),
        "phrase or and": _all([f'"{text}"' for text in mid]),
        "typo": _all(typos),
        "newest": _all(common, sort=NEWEST),
        "folder": [SessionSearch(text, paths=(folders[at % len(folders)],)) for at, text in enumerate(common)],
        "repo": [SessionSearch(f"{text} repo:{folders[at % len(folders)][-6:]}") for at, text in enumerate(common)],
        "operators alone": [SessionSearch(f"path:{folder[-8:]}") for folder in folders[:calls]],
    }


def _latency(home: Path, store: Path, calls: int) -> Json:
    told: Json = {}
    with closing(EmbeddedStore(store)) as ours:
        for name, queries in kinds(home, store, calls).items():
            routes: dict[str, int] = {}

            def ask(number: int, queries: list[SessionSearch] = queries, routes: dict[str, int] = routes) -> None:
                page = search_sessions(ours, queries[number])
                assert isinstance(page, SessionPage)
                routes[page.route] = routes.get(page.route, 0) + 1

            told[name] = _spread(ask, len(queries)).summary() | {"routes": routes}
    return told


def _all(texts: list[str], **how: str) -> list[SessionSearch]:
    return [SessionSearch(text, limit=PAGE, **how) for text in texts]  # type: ignore[arg-type]


def _spread(ask: Callable[[int], object], count: int) -> Spread:
    spread = Spread()
    for number in range(min(WARM, count)):
        ask(number)
    for number in range(count):
        spread.time(lambda number=number: ask(number))
    return spread


def _repair(home: Path, terms: int, calls: int) -> Json:
    """One misspelt word, and forty that nothing is like, among so many; beside a query that needs no repair."""
    words = _words(terms)
    _write(home, words)
    chosen = random.Random(SEED)
    picked = [chosen.choice(words) for _ in range(calls)]
    wrong = [word[:5] + word[6:] for word in picked]
    strange = ["".join(chosen.choices("qxzj", k=9)) for _ in range(calls * UNKNOWN)]
    told: Json = {}
    with closing(EmbeddedStore(home)) as store:
        kinds = {
            "known word": picked,
            "one misspelt word": wrong,
            "one unknown word": strange[:calls],
            f"{UNKNOWN} unknown words": [
                " ".join(strange[at : at + UNKNOWN]) for at in range(0, 20 * UNKNOWN, UNKNOWN)
            ],
        }
        for name, texts in kinds.items():
            queries = _all(texts)
            told[name] = _spread(
                lambda number, queries=queries: search_sessions(store, queries[number]), len(queries)
            ).summary()
        told["repaired"] = sum(
            bool(isinstance(page := search_sessions(store, query), SessionPage) and page.repaired)
            for query in _all(wrong)
        )
        told["of"] = len(wrong)
    return told


def _words(count: int) -> list[str]:
    chosen = random.Random(SEED)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(chosen.choices(_LETTERS, k=chosen.randint(6, 12)))] = None
    return list(found)


def _write(home: Path, words: list[str]) -> None:
    """Each word in two messages, as prompts of one session each."""
    home.mkdir(parents=True)
    db = open_for_writing(home)
    texts = [" ".join(words[at : at + WORDS_A_MESSAGE]) for at in range(0, len(words), WORDS_A_MESSAGE)] * 2
    db.execute("BEGIN IMMEDIATE")
    for number, text in enumerate(texts, 1):
        uid = ids.session_uid("codex", "codex", str(number))
        db.execute(
            "INSERT INTO session (uid, harness, source, native, updated, event_count, turn_count, messages)"
            " VALUES (?, 'codex', 'codex', ?, ?, 1, 1, 1)",
            (uid, str(number), number),
        )
        z, size = rows.encode_block([rows.encode_content({"text": text})])
        db.execute("INSERT INTO block (session, events, size, z) VALUES (?, 1, ?, ?)", (number, size, z))
        db.execute(
            "INSERT INTO turn (uid, session, file, generation, ord, place, started, updated, event_count)"
            " VALUES (?, ?, 1, 0, 1, 1, 1, 1, 1)",
            (ids.turn_uid(uid, "1"), number),
        )
        db.execute(
            "INSERT INTO event (uid, session, turn, ord, file, generation, type, time, flags, ends, block, slot)"
            " VALUES (?, ?, ?, 1, 1, 0, 0, ?, 0, 0, ?, 0)",
            (ids.event_uid(uid, "1"), number, number, number, number),
        )
    db.execute("INSERT INTO text_todo (doc, class) SELECT id, 0 FROM event")
    db.execute("UPDATE meta SET v = 'done' WHERE k = 'first_build'")
    db.execute("COMMIT")
    writer = TextWriter(home)
    writer.drain(db)
    writer.close()
    db.close()


if __name__ == "__main__":
    sys.exit(main())
