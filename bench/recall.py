"""Measures how well search finds planted facts, beside a plain BM25 over the same texts.

    python bench/recall.py --home DIR [--store DIR]

DIR is a home folder with session files and a `needles.json` that says which facts stand in them: under `needles`,
`decoys` (facts that differ from them in a word or two) and `errors`, entries with `fact`, `event_type` and `queries`
by class. A query succeeds when one of the first ten hits holds the very fact. A store that is absent or empty is
indexed first. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from measure import Json, conditions, environment, report, run

from outcrop.model import CONVERSATION, TYPE_CODE, EventType
from outcrop.search.events import EventQuery, search_events
from outcrop.store.embedded.read import EmbeddedStore
from outcrop.store.embedded.text_rows import TextRows

BEST = 10
_AT_ONCE = 500
Types = tuple[EventType, ...]
Search = Callable[[str, Types], list[str]]
"""(query, types) → the texts of the best hits."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure recall of planted facts beside plain BM25.")
    parser.add_argument("--home", type=Path, required=True, help="a home folder with session files and needles.json")
    parser.add_argument("--store", type=Path, help="its store, which is made where it is absent and stays")
    args = parser.parse_args()
    planted = json.loads((args.home / "needles.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="outcrop-bench-") as work:
        folder = args.store or Path(work) / "store"
        if not (folder / "outcrop.db").exists():
            run(
                [sys.executable, "-m", "outcrop", "index"],
                environment(args.home.resolve(), folder.resolve(), Path(work) / "bytecode"),
            )
        report(measure(folder, planted))
    return 0


def measure(folder: Path, planted: Json) -> Json:
    store = EmbeddedStore(folder)
    engines = {
        "outcrop": _ours(store),
        "plain_bm25": _plain(store, "unicode61"),
        "plain_bm25_stems": _plain(store, "porter unicode61"),
    }
    found: Json = {"conditions": conditions(), "events": _count(store)}
    for kind in ("needles", "decoys", "errors"):
        found[kind] = {"facts": len(planted[kind]), "recall_at_10": recall(planted[kind], engines)}
    store.close()
    return found


def recall(facts: Iterable[Json], engines: dict[str, Search]) -> Json:
    """By class of query and engine: the share of facts among the first ten, mean reciprocal rank, what was missed."""
    ranks: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    missed: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        kind = EventType(fact["event_type"])
        types = CONVERSATION if kind in CONVERSATION else (kind,)
        for name, query in fact["queries"].items():
            for engine, search in engines.items():
                rank = _rank(search(query, types), fact["fact"])
                ranks[name][engine].append(rank)
                if not rank:
                    missed[name][engine].append(query)
    return {
        name: {
            engine: {
                "recall": round(sum(rank > 0 for rank in some) / len(some), 3),
                "mrr": round(sum(1 / rank for rank in some if rank) / len(some), 3),
                "missed": missed[name][engine],
            }
            for engine, some in by_engine.items()
        }
        for name, by_engine in ranks.items()
    }


def _rank(texts: list[str], fact: str) -> int:
    """Place of the first text that holds the fact; 0 where none does."""
    wanted = " ".join(fact.split())
    return next((rank for rank, text in enumerate(texts, 1) if wanted in " ".join(text.split())), 0)


def _ours(store: EmbeddedStore) -> Search:
    def search(query: str, types: Types) -> list[str]:
        hits = search_events(store, EventQuery(query, types, BEST)).hits
        return _texts(store, [hit.found.event.id for hit in hits])

    return search


def _plain(store: EmbeddedStore, tokenizer: str) -> Search:
    """FTS5 as it comes, every word of the query optional; messages in one table, all else in another."""
    table = sqlite3.connect(":memory:")
    for name in ("talk", "work"):
        table.execute(f"CREATE VIRTUAL TABLE {name} USING fts5(text, type UNINDEXED, tokenize = '{tokenizer}')")
    for row in _everything(store):
        name = "talk" if row[2] in map(TYPE_CODE.get, CONVERSATION) else "work"
        table.execute(f"INSERT INTO {name} (rowid, text, type) VALUES (?, ?, ?)", row)

    def search(query: str, types: Types) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        name = "talk" if types == CONVERSATION else "work"
        marks = ",".join(str(TYPE_CODE[kind]) for kind in types)
        return [
            row[0]
            for row in table.execute(
                f"SELECT text FROM {name} WHERE {name} MATCH ? AND type IN ({marks}) ORDER BY rank LIMIT ?",
                (words, BEST),
            )
        ]

    return search


def _everything(store: EmbeddedStore) -> Iterator[tuple[int, str, int]]:
    rows = TextRows(store.connection())
    ids = [row[0] for row in store.connection().execute("SELECT id FROM event ORDER BY session, id")]
    for at in range(0, len(ids), _AT_ONCE):
        for source, _ in rows.read(ids[at : at + _AT_ONCE]):
            yield source.id, source.text, TYPE_CODE[source.type]


def _texts(store: EmbeddedStore, ids: list[int]) -> list[str]:
    return [source.text for source, _ in TextRows(store.connection()).read(ids)]


def _count(store: EmbeddedStore) -> Any:
    return store.connection().execute("SELECT count(*) FROM event").fetchone()[0]


if __name__ == "__main__":
    sys.exit(main())
