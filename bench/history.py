"""Measures the history: indexing a home from nothing, its size on disk, and `open` and `list_sessions` over it.

    python bench/history.py --home DIR [--store DIR]

DIR is a home folder full of session files (`.claude`, `.codex`), real or from any generator. Prints one JSON document.
Indexing runs in a child with a fresh store; with `--store` that store stays, for `bench/mcp.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from long_session import write_long_session
from measure import (
    Cost,
    Json,
    Spread,
    conditions,
    environment,
    folder_bytes,
    io_counters,
    megabytes,
    private_memory,
    report,
    run,
)

from outcrop import ids
from outcrop.cli import context as contexts
from outcrop.config import Config
from outcrop.contracts import mcp_v1
from outcrop.contracts.mcp_v1.envelope import Context

SEED = 7
CALLS = 500
DAY = 86_400_000
NEWEST = 50
PAGE = 50


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure indexing, size on disk, open and list_sessions.")
    parser.add_argument("--home", type=Path, required=True, help="a home folder full of session files")
    parser.add_argument("--store", type=Path, help="an absent or empty folder for the store; it stays")
    parser.add_argument("--child", choices=("pass", "plain"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child == "pass":
        return _pass()
    if args.child == "plain":
        return _plain()
    with tempfile.TemporaryDirectory(prefix="outcrop-bench-") as work:
        store = args.store or Path(work) / "store"
        if (store / "outcrop.db").exists():
            parser.error(f"{store} holds a store already; indexing is measured from nothing")
        report(_measure(args.home.resolve(), store.resolve(), Path(work)))
    return 0


def _measure(home: Path, store: Path, work: Path) -> Json:
    env = environment(home, store, work / "bytecode")
    command = [sys.executable, __file__, "--home", str(home), "--child"]
    # The bytecode of everything must be there before anything counts.
    run([*command, "pass"], environment(work / "nobody", work / "empty", work / "bytecode"))
    found: Json = {"conditions": conditions()}
    first = run([*command, "pass"], env, sample=True)
    told = json.loads(first.output)
    raw = told["bytes"]
    found["index"] = _indexing(first, told)
    found["disk"] = disk(store, raw)
    again = run([*command, "pass"], env, sample=True)
    told = json.loads(again.output)
    assert told["files_read"] == 0, "a second run read files again"
    found["second_run"] = {
        "files": told["files"],
        "cpu_s": round(again.cpu, 3),
        "wall_s": round(again.wall, 3),
        "wchar": told["wchar"],
        "anonymous_mb": megabytes(again.anonymous * 1024),
    }
    plain = run([*command, "plain"], environment(home, work / "plain", work / "bytecode"))
    found["plain_loop"] = {
        "does": "reads every line, parses it with orjson, inserts it raw into one SQLite table",
        "cpu_s": round(plain.cpu, 2),
        "mb_per_cpu_s": round(raw / 1e6 / plain.cpu, 1),
        "outcrop_costs_times": round(first.cpu / plain.cpu, 1),
    }
    found["latency"] = latencies(store)
    found["long_session"] = _long(home, work)
    return found


def _indexing(cost: Cost, told: Json) -> Json:
    raw = told["bytes"]
    return {
        "raw_mb": megabytes(raw),
        "files": told["files"],
        "records": told["records"],
        "events": told["events"],
        "problems": told["problems"],
        "cpu_s": round(cost.cpu, 2),
        "rows_cpu_s": round(told["rows_cpu"], 2),
        "text_cpu_s": round(cost.cpu - told["rows_cpu"], 2),
        "text_cpu_s_main_thread": round(told["text_main_thread_cpu"], 2),
        "wall_s": round(cost.wall, 2),
        "mb_per_cpu_s": round(raw / 1e6 / cost.cpu, 2),
        "mb_per_cpu_s_rows_alone": round(raw / 1e6 / told["rows_cpu"], 2),
        "events_per_cpu_s": round(told["events"] / cost.cpu),
        "events_per_s_wall": round(told["events"] / cost.wall),
        "newest_50_sessions_searchable_s": told["newest_searchable"],
        "all_conversations_searchable_s": told["conversations_searchable"],
        "private_peak_mb": megabytes(cost.private * 1024),
        "anonymous_peak_mb": megabytes(cost.anonymous * 1024),
        "resident_peak_mb": megabytes(told["maxrss_kib"] * 1024),
        "wchar_per_raw_byte": round(told["wchar"] / raw, 2),
        "wchar_per_raw_byte_rows_alone": round(told["rows_wchar"] / raw, 2),
        "write_bytes_per_raw_byte": round(told["write_bytes"] / raw, 2),
    }


def _pass() -> int:
    """The child: one `outcrop index`, with the text index's share taken apart.

    Rows are the work of the main thread outside the text index; all else, in whichever thread, is text.
    """
    from outcrop.ingest.pipeline import index
    from outcrop.store.embedded import text

    started = time.monotonic()
    moments: dict[str, float] = {}
    apart = Share()

    class Watched(text.TextWriter):
        def drain(self, connection: sqlite3.Connection, progress: Any = None, **how: bool) -> int:
            with apart:
                noted: Any = lambda *_: _note(connection, moments, time.monotonic() - started)  # noqa: E731
                return super().drain(connection, noted, **how)

        def close(self) -> None:
            with apart:
                super().close()

    text.TextWriter = Watched  # type: ignore[misc]
    summary = index(contexts.load_config())
    counters = io_counters("self")
    report(
        {
            "files": summary.files,
            "files_read": summary.changed,
            "records": summary.records,
            "events": summary.events,
            "bytes": summary.bytes,
            "problems": len(summary.problems),
            "rows_cpu": time.thread_time() - apart.cpu,
            "text_main_thread_cpu": apart.cpu,
            "newest_searchable": moments.get("newest"),
            "conversations_searchable": moments.get("conversations"),
            "maxrss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "rows_wchar": io_counters("thread-self")["wchar"] - apart.wchar,
            "wchar": counters["wchar"],
            "write_bytes": counters["write_bytes"],
        }
    )
    return 0


class Share:
    """CPU seconds and bytes handed to `write` that this thread spends inside the block, over all times."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wchar = 0

    def __enter__(self) -> None:
        self.cpu -= time.thread_time()
        self.wchar -= io_counters("thread-self")["wchar"]

    def __exit__(self, *_: object) -> None:
        self.cpu += time.thread_time()
        self.wchar += io_counters("thread-self")["wchar"]


def _note(connection: sqlite3.Connection, moments: dict[str, float], now: float) -> None:
    """After a text commit: note when the newest sessions, and when all conversations of all that was read, were in it.
    Commits of tool text alone change nothing of that."""
    if connection.execute("SELECT 1 FROM text_todo WHERE class = 0 LIMIT 1").fetchone():
        return
    newest = connection.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0]
    if newest != moments.get("event"):
        moments["event"], moments["conversations"] = newest, round(now, 2)
    if "newest" not in moments:
        sessions = connection.execute("SELECT count(*) FROM session WHERE event_count > 0").fetchone()[0]
        if sessions >= NEWEST:
            moments["newest"] = round(now, 2)


def _plain() -> int:
    """The child for the baseline: what the least that keeps every record would cost."""
    import orjson

    store = Path(os.environ["OUTCROP_HOME"])
    store.mkdir()
    with closing(sqlite3.connect(store / "plain.db")) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, type TEXT, line BLOB)")
        for path in sorted(Path.home().glob(".c*/**/*.jsonl")):
            with path.open("rb") as lines, db:
                db.executemany(
                    "INSERT INTO record (type, line) VALUES (?, ?)",
                    ((orjson.loads(line).get("type"), line) for line in lines),
                )
    return 0


def disk(store: Path, raw: int) -> Json:
    """Bytes by table (with its indexes), and of the text index."""
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        tables = db.execute(
            "SELECT coalesce(m.tbl_name, d.name) AS owner, sum(d.pgsize) FROM dbstat d"
            " LEFT JOIN sqlite_schema m ON m.name = d.name WHERE d.aggregate = TRUE GROUP BY owner ORDER BY 2 DESC"
        ).fetchall()
        unused = db.execute("PRAGMA freelist_count").fetchone()[0] * db.execute("PRAGMA page_size").fetchone()[0]
    rows = sum(path.stat().st_size for path in store.glob("outcrop.db*"))
    text = folder_bytes(store / "text")
    return {
        "total_mb": megabytes(rows + text),
        "ratio_to_raw": round((rows + text) / raw, 3),
        "rows_mb": megabytes(rows),
        "text_mb": megabytes(text),
        "unused_pages_mb": megabytes(unused),
        "tables_mb": {name: megabytes(size) for name, size in tables if size >= 10_000},
    }


def latencies(store: Path) -> Json:
    """`open` by kind over random ids, and `list_sessions` by width; in process and warm."""
    chosen = random.Random(SEED)
    context = _context(store)
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        kinds = {
            ids.Kind.EVENT: "SELECT uid FROM event WHERE turn IN (SELECT id FROM turn WHERE ord > 0)",
            ids.Kind.TURN: "SELECT uid FROM turn WHERE ord > 0",
            ids.Kind.SESSION: "SELECT uid FROM session WHERE event_count > 0",
        }
        uids = {kind: [uid for (uid,) in db.execute(sql)] for kind, sql in kinds.items()}
        times = [time for (time,) in db.execute("SELECT updated FROM session WHERE event_count > 0")]
    found: Json = {"events": len(uids[ids.Kind.EVENT]), "sessions": len(uids[ids.Kind.SESSION])}
    for kind in kinds:
        sample = [ids.write(kind, uid) for uid in chosen.choices(uids[kind], k=CALLS)]
        found[f"open({kind})"] = _calls(context, "open", [{"id": text} for text in sample])
        if kind is not ids.Kind.EVENT:
            found[f"open({kind}, limit 50)"] = _calls(context, "open", [{"id": text, "limit": PAGE} for text in sample])
    for name, width in (("day", DAY), ("month", 30 * DAY), ("all", max(times) - min(times) + 2 * DAY)):
        starts = [
            max(times) + DAY - width if name == "all" else when - width // 2 for when in chosen.choices(times, k=CALLS)
        ]
        ranges = [{"start_datetime": _instant(start), "end_datetime": _instant(start + width)} for start in starts]
        found[f"list_sessions({name}, first page)"] = _calls(context, "list_sessions", ranges)
        middle = _pages(context, "list_sessions", ranges[0])
        if middle.wall:
            found[f"list_sessions({name}, middle pages)"] = middle.summary()
    found["anonymous_mb"] = megabytes(private_memory(os.getpid())[1] * 1024)
    return found


def _long(home: Path, work: Path) -> Json:
    """Pages in the middle of a session of 50,000 events, whose last turn has 20,000, in a store of its own."""
    extra, store = work / "long", work / "long-store"
    write_long_session(home, extra)
    env = environment(extra, store, work / "bytecode")
    cost = run([sys.executable, __file__, "--home", str(extra), "--child", "pass"], env, sample=True)
    told = json.loads(cost.output)
    context = _context(store)
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        session = db.execute("SELECT uid, event_count, turn_count FROM session ORDER BY event_count DESC").fetchone()
        turn = db.execute("SELECT uid, event_count FROM turn ORDER BY event_count DESC").fetchone()
    found: Json = {
        "events": session[1],
        "turns": session[2],
        "events_of_longest_turn": turn[1],
        "raw_mb": megabytes(told["bytes"]),
        "mb_per_cpu_s": round(told["bytes"] / 1e6 / cost.cpu, 2),
        "anonymous_peak_mb": megabytes(cost.anonymous * 1024),
    }
    for kind, uid in ((ids.Kind.SESSION, session[0]), (ids.Kind.TURN, turn[0])):
        text = ids.write(kind, uid)
        found[f"open({kind})"] = _calls(context, "open", [{"id": text}] * 100)
        found[f"open({kind}, limit 50)"] = _calls(context, "open", [{"id": text, "limit": PAGE}] * 100)
        found[f"open({kind}, middle pages)"] = _pages(context, "open", {"id": text, "limit": PAGE}).summary()
    return found


def _calls(context: Context, tool: str, arguments: list[Json]) -> Json:
    spread = Spread()
    for each in arguments[:20]:
        mcp_v1.call(tool, each, context)
    for each in arguments:
        envelope = spread.time(partial(mcp_v1.call, tool, each, context))
        assert "data" in envelope, envelope
    return spread.summary()


def _pages(context: Context, tool: str, arguments: Json) -> Spread:
    """Turn all pages of one answer; the spread is that of the second and third quarter of them."""
    spread = Spread()
    filters = {name: value for name, value in arguments.items() if tool != "open"}
    following = mcp_v1.call(tool, arguments, context)["data"]
    while cursor := _next(following):
        turned = {**filters, "cursor": cursor}
        following = spread.time(partial(mcp_v1.call, tool, turned, context))["data"]
    for values in (spread.wall, spread.cpu):
        values[:] = values[len(values) // 4 : len(values) * 3 // 4]
    return spread


def _next(data: Json) -> str | None:
    """The cursor of a page, wherever the tool has it."""
    for place in (data, *(value for value in data.values() if isinstance(value, dict))):
        if cursor := place.get("next_cursor"):
            return str(cursor)
    return None


def _context(store: Path) -> Context:
    return contexts.build(settings=Config(home=store, file=store / "config.toml"))


def _instant(ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms / 1000))


if __name__ == "__main__":
    sys.exit(main())
