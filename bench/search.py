"""Measures search: latency and CPU by class of query, a plain FTS5 table of the same texts, readers beside a writer.

    python bench/search.py --home DIR [--store DIR] [--calls N]

DIR is a home folder with session files and a `needles.json` whose `queries` hold lists by document frequency (`rare`,
`mid`, `common`, `natural`). A store that is absent is built first, and measured at that; one that exists is reused.
The FTS5 table is kept beside it as `plain.db`. The writer re-queues documents of the store. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from measure import (
    Json,
    Spread,
    conditions,
    environment,
    folder_bytes,
    megabytes,
    private_memory,
    report,
    run,
)
from writer import writing

from outcrop.model import CONVERSATION, EVENT_TYPES, TYPE_CODE, EventType
from outcrop.search.events import EventQuery, search_events
from outcrop.store.embedded.read import EmbeddedStore
from outcrop.store.embedded.text_fields import Source
from outcrop.store.embedded.text_rows import TextRows

BEST = 10
SEED = 7
WARM = 10
READERS = 4
SECONDS = 12.0
PLAIN_SECONDS = 6.0
"""Time given to one class on the FTS5 table, whose common words take most of a second each."""
TOOLS = (EventType.TOOL_CALL, EventType.TOOL_RESPONSE)
_AT_ONCE = 500
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Kind:
    """A class of queries: what is typed, which types, which narrowing; `plain`: worth asking the FTS5 table."""

    texts: list[str]
    types: tuple[EventType, ...] = CONVERSATION
    harness: str | None = None
    sessions: list[bytes] | None = None
    plain: bool = True

    def query(self, number: int) -> EventQuery:
        session = self.sessions[number % len(self.sessions)] if self.sessions else None
        return EventQuery(self.texts[number], self.types, BEST, session=session, harness=self.harness)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure search beside a plain FTS5 table.")
    parser.add_argument("--home", type=Path, required=True, help="a home folder with session files and needles.json")
    parser.add_argument("--store", type=Path, help="the store of that home; built where it is absent, and kept")
    parser.add_argument("--calls", type=int, default=200, help="queries of each class")
    parser.add_argument("--reader", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outcrop-bench-") as work:
        store = (args.store or Path(work) / "store").resolve()
        if args.reader:
            report(_read_on(store, kinds(args.home, store, args.calls)))
        else:
            report(_measure(args.home.resolve(), store, args.calls, Path(work)))
    return 0


def _measure(home: Path, store: Path, calls: int, work: Path) -> Json:
    found: Json = {"conditions": conditions()}
    if not (store / "outcrop.db").exists():
        cost = run([sys.executable, "-m", "outcrop", "index", "--json"], environment(home, store, work), sample=True)
        raw = json.loads((home / "manifest.json").read_text("utf-8"))["bytes"]
        found["index"] = {"raw_mb": megabytes(raw), "cpu_s": round(cost.cpu, 1), "wall_s": round(cost.wall, 1)}
        found["index"]["mb_per_cpu_s"] = round(raw / 1e6 / cost.cpu, 2)
        found["index"]["private_mb"] = megabytes(cost.private * 1024)
    plain = store / "plain.db"
    if not plain.exists():
        _build_plain(store, plain)
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        found["events"] = db.execute("SELECT count(*) FROM event").fetchone()[0]
    found["disk"] = {
        "rows_mb": megabytes(sum(path.stat().st_size for path in store.glob("outcrop.db*"))),
        "text_mb": megabytes(folder_bytes(store / "text")),
        "fts5_mb": megabytes(plain.stat().st_size),
    }
    classes = kinds(home, store, calls)
    ours = EmbeddedStore(store)
    fts = sqlite3.connect(f"file:{plain}?mode=ro", uri=True)
    fts.execute("ATTACH ? AS rows", (str(store / "outcrop.db"),))
    found["latency"] = {}
    for name, kind in classes.items():
        times = range(min(calls, len(kind.texts)))
        one = _spread(lambda number, kind=kind: search_events(ours, kind.query(number)), times, None)
        told: Json = one.summary()
        told["mean_cpu_ms"] = _mean(one)
        if kind.plain:
            other = _spread(lambda number, kind=kind: _ask_plain(fts, kind, number), times, PLAIN_SECONDS)
            told["fts5"] = {"n": len(other.cpu), "mean_cpu_ms": _mean(other)}
            told["fts5_costs_times"] = round(_mean(other) / _mean(one), 1)
        found["latency"][name] = told
    fts.close()
    for name in ("default", "all"):
        groups = [told for kind, told in found["latency"].items() if (kind.startswith("all ")) == (name == "all")]
        found[f"{name}_p50_of_classes_ms"] = sorted(told["wall_ms"]["p50"] for told in groups)
    private, anonymous = private_memory(os.getpid())
    found["memory_after_queries"] = {
        "private_mb": megabytes(private * 1024),
        "anonymous_mb": megabytes(anonymous * 1024),
    }
    ours.close()
    found["readers_beside_a_writer"] = _together(home, store, work)
    return found


def kinds(home: Path, store: Path, calls: int) -> dict[str, Kind]:
    sets: dict[str, list[str]] = json.loads((home / "needles.json").read_text("utf-8"))["queries"]
    rare, mid, common = (sets[name][:calls] for name in ("rare", "mid", "common"))
    one_common = [text.split()[0] for text in common]
    pool = list(dict.fromkeys(word for text in sets["natural"] for word in text.split()))
    chosen = random.Random(SEED)
    questions = [" ".join([*text.split(), *chosen.sample(pool, 12)][:12]) for text in sets["natural"][:calls]]
    names = [f"resolve{chosen.choice(pool).title()}{chosen.choice(pool).title()}" for _ in mid]
    typos = [word[:2] + word[3] + word[2] + word[4:] for text in mid for word in text.split()[:1] if len(word) > 6]
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        sessions = [uid for (uid,) in db.execute("SELECT uid FROM session WHERE event_count > 50 ORDER BY id")]
        harness = db.execute("SELECT harness FROM session GROUP BY harness ORDER BY count(*) LIMIT 1").fetchone()[0]
    chosen.shuffle(sessions)
    every = EVENT_TYPES
    return {
        "rare": Kind(rare),
        "mid": Kind(mid),
        "common words": Kind(common),
        "one common word": Kind(one_common),
        "12-word question": Kind(questions),
        "phrase": Kind([f'"{text}"' for text in mid]),
        "one session": Kind(common, sessions=sessions),
        "harness and types": Kind(mid, (EventType.USER_INPUT, EventType.TOOL_CALL), harness=harness),
        "tool types": Kind(mid, TOOLS),
        "tool types, common": Kind(one_common, TOOLS),
        "identifier": Kind(names, plain=False),
        "typo": Kind(typos, plain=False),
        "all rare": Kind(rare, every),
        "all mid": Kind(mid, every),
        "all common words": Kind(common, every),
        "all 12-word question": Kind(questions, every),
    }


def _spread(ask: Callable[[int], object], numbers: range, seconds: float | None) -> Spread:
    spread = Spread()
    for number in numbers[: WARM if seconds is None else 1]:
        ask(number)
    started = time.monotonic()
    for number in numbers:
        spread.time(lambda number=number: ask(number))
        if seconds is not None and time.monotonic() - started > seconds:
            break
    return spread


def _mean(spread: Spread) -> float:
    return round(sum(spread.cpu) / len(spread.cpu) * 1000, 3)


def _build_plain(store: Path, plain: Path) -> None:
    """Two FTS5 tables without content: conversations, and all events."""
    with (
        closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as rows,
        closing(sqlite3.connect(plain)) as db,
        db,
    ):
        for table in ("talk", "every"):
            db.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(text, content='')")
        for batch in _batches(rows):
            found = [(source.id, source.text, source.type) for source, _ in batch if source.text]
            db.executemany("INSERT INTO every (rowid, text) VALUES (?, ?)", [row[:2] for row in found])
            talk = [row[:2] for row in found if row[2] in CONVERSATION]
            db.executemany("INSERT INTO talk (rowid, text) VALUES (?, ?)", talk)


def _batches(rows: sqlite3.Connection) -> Iterator[list[tuple[Source, list[str]]]]:
    reader = TextRows(rows)
    numbers = [number for (number,) in rows.execute("SELECT id FROM event ORDER BY id")]
    for at in range(0, len(numbers), _AT_ONCE):
        yield list(reader.read(numbers[at : at + _AT_ONCE]))


def _ask_plain(db: sqlite3.Connection, kind: Kind, number: int) -> list[tuple[int]]:
    """The same question, as one would write it: any word, best first, filters as a join."""
    text = kind.texts[number]
    words = [f'"{word}"' for word in _WORD.findall(text)]
    match = text if text.startswith('"') else " OR ".join(words)
    table = "talk" if kind.types == CONVERSATION else "every"
    clauses: list[str] = [f"{table} MATCH ?"]
    values: list[str | bytes] = [match]
    narrow = ""
    if kind.sessions or kind.harness or (table == "every" and kind.types != EVENT_TYPES):
        codes = ",".join(str(TYPE_CODE[each]) for each in kind.types)
        narrow = f"JOIN rows.event e ON e.id = {table}.rowid JOIN rows.session s ON s.id = e.session"
        clauses.append(f"e.type IN ({codes})")
        if kind.harness:
            clauses.append("s.harness = ?")
            values.append(kind.harness)
        if kind.sessions:
            clauses.append("s.uid = ?")
            values.append(kind.sessions[number % len(kind.sessions)])
    sql = f"SELECT {table}.rowid FROM {table} {narrow} WHERE {' AND '.join(clauses)} ORDER BY rank LIMIT {BEST}"
    return db.execute(sql, values).fetchall()


def _together(home: Path, store: Path, work: Path) -> Json:
    """Four processes that search as fast as they can, while twenty documents are written four times a second."""
    command = [sys.executable, __file__, "--home", str(home), "--store", str(store), "--calls", "100", "--reader"]
    env = environment(home, store, work)
    with writing(store, env) as written:
        readers = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for _ in range(READERS)]
        told = [json.loads(reader.communicate()[0]) for reader in readers]
    return {
        "queries_per_s": round(sum(each["queries"] / each["seconds"] for each in told), 1),
        "errors": sum(each["errors"] for each in told),
        "reader_cpu_ms_per_query": round(
            sum(each["cpu_s"] for each in told) / sum(each["queries"] for each in told) * 1e3, 3
        ),
        "private_mb": max(each["private_mb"] for each in told),
        "anonymous_mb": max(each["anonymous_mb"] for each in told),
        **written,
    }


def _read_on(store: Path, classes: dict[str, Kind]) -> Json:
    """The child: a mix of all classes until the time is over."""
    ours = EmbeddedStore(store)
    mix = [kind.query(number) for kind in classes.values() for number in range(min(20, len(kind.texts)))]
    random.Random(os.getpid()).shuffle(mix)
    done = errors = 0
    started = time.monotonic()
    while time.monotonic() - started < SECONDS:
        try:
            search_events(ours, mix[done % len(mix)])
        except Exception:
            errors += 1
        done += 1
    seconds = time.monotonic() - started
    private, anonymous = private_memory(os.getpid())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "queries": done,
        "errors": errors,
        "seconds": round(seconds, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "private_mb": megabytes(private * 1024),
        "anonymous_mb": megabytes(anonymous * 1024),
    }


if __name__ == "__main__":
    sys.exit(main())
