"""Measures `file_attention` over stdio: a busy file, a rare one and a name that many files have.

    python bench/touches.py --store DIR

Where DIR holds no history yet, one is made there by direct inserts: a million events, 400,000 of them calls that touch
10,000 files in a repository and its worktrees. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from mcp import Server
from measure import Json, Spread, conditions, environment, report

from outcrop import ids
from outcrop.store.embedded import rows
from outcrop.store.embedded.write import EVENT_COLUMNS, TURN_COLUMNS, Writer

SEED = 7
SESSIONS = 2_000
TURNS = 10
EVENTS_A_TURN = 50
FILES = 10_000
BUSY = 5_000
RARE = 5
CALLS = 200
START = 1_760_000_000_000
BUSY_FILE, RARE_FILE, COMMON_NAME = "src/core/busy.py", "src/core/rare.py", "mod.py"
CALL = 3
BUDGET_MS = {"p50": 10, "p95": 30}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure file_attention on stdio.")
    parser.add_argument("--store", type=Path, required=True, help="a data folder that this script made or makes")
    store = parser.parse_args().store.resolve()
    project = store / "project"
    (project / ".git").mkdir(parents=True, exist_ok=True)
    if not (store / "outcrop.db").exists():
        make(store, project)
    os.chdir(project)
    with tempfile.TemporaryDirectory(prefix="outcrop-bench-") as work:
        report(measure(store, environment(Path(work), store, Path(work) / "bytecode")))
    return 0


def measure(store: Path, env: dict[str, str]) -> Json:
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        found: Json = {"conditions": conditions(), "budget_ms": BUDGET_MS}
        for table in ("event", "touch", "path"):
            found[table] = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    files = {"busy": BUSY_FILE, "rare": RARE_FILE, "common name": COMMON_NAME}
    kinds: dict[str, Json] = {
        "": {},
        ", events": {"granularity": "events"},
        ", scope all": {"scope": "all"},
        ", codex, mutations": {"harness": "codex", "mutations_only": True},
    }
    with Server(env).initialize() as server:
        found["latency"] = {
            name + kind: latency(server, {"path": path, **arguments})
            for name, path in files.items()
            for kind, arguments in kinds.items()
        }
    return found


def latency(server: Server, arguments: Json) -> Json:
    spread = Spread()
    answer = server.tool(("file_attention", arguments))
    for _ in range(CALLS):
        cpu = server.cpu
        Spread.time(spread, lambda: server.tool(("file_attention", arguments)))
        spread.cpu[-1] = server.cpu - cpu
    assert b'"isError":true' not in answer.replace(b" ", b""), answer[:2000]
    return {**spread.summary(), "answer_bytes": len(answer)}


def make(store: Path, project: Path) -> None:
    """The history, row by row."""
    chosen = random.Random(SEED)
    writer = Writer(store)
    with writer.transaction():
        trees = worktrees(writer, project)
        paths = [
            add_path(writer, f"{tree}/src/part{number}/{f'file{number}.py' if number % 4 else COMMON_NAME}", root)
            for number in range(FILES)
            for tree, root in trees
        ]
        touched: dict[str, list[int]] = {
            path: [add_path(writer, f"{tree}/{path}", root) for tree, root in trees] for path in (BUSY_FILE, RARE_FILE)
        }
        tools = [writer.name(tool) for tool in ("Read", "Edit", "Bash", "Write")]
        common = str((project / ".git").resolve())
        events = turns = 0
        busy = set(chosen.sample(range(SESSIONS * TURNS * EVENTS_A_TURN * 2 // 5), BUSY))
        rare = set(chosen.sample(range(SESSIONS * TURNS * EVENTS_A_TURN * 2 // 5), RARE))
        calls = 0
        for session in range(1, SESSIONS + 1):
            harness, source = ("codex", "codex") if session % 2 else ("claude-code", "claude")
            uid = ids.session_uid(harness, source, f"s{session}")
            begun = START + session * 600_000
            writer.db.execute(
                "INSERT INTO session (id, uid, harness, source, native, first_prompt, started, updated, turn_count,"
                " event_count, first_event, last_event) VALUES (?, ?, ?, ?, ?, 'work', ?, ?, ?, ?, ?, ?)",
                (session, uid, harness, source, f"s{session}", begun, begun + 500_000, TURNS, TURNS * EVENTS_A_TURN,
                 events + 1, events + TURNS * EVENTS_A_TURN),
            )  # fmt: skip
            writer.db.execute(
                "INSERT INTO place VALUES (?, ?, ?, '', ?, ?, ?)",
                (session, session, str(project), str(project), common, common),
            )
            for turn in range(1, TURNS + 1):
                turns += 1
                first = events + 1
                block = writer.take("block")
                content = rows.encode_content({"text": "some words of a message " * 40})
                writer.add_block(block, session, [content] * EVENTS_A_TURN)
                made = []
                for ord in range(1, EVENTS_A_TURN + 1):
                    events += 1
                    time = begun + (turn * EVENTS_A_TURN + ord) * 900
                    kind = (0, CALL, 4, 1, CALL)[ord % 5]
                    tool = tools[events % 4] if kind in (CALL, 4) else None
                    event = ids.event_uid(uid, f"e{events}")
                    made.append((events, event, session, turns, ord, 1, 0, kind, time, 0, 0, tool, None, None, session,
                                 None, block, ord - 1))  # fmt: skip
                    if kind == CALL:
                        which = touched[BUSY_FILE] if calls in busy else touched[RARE_FILE] if calls in rare else paths
                        path = chosen.choice(which)
                        writer.db.execute(
                            "INSERT INTO touch VALUES (?, ?, ?, ?, ?, 0, ?)",
                            (path, time, events, session, 1 << events % 3, tool),
                        )
                        action = f'{{"file_path":"part/file{path}.py","old_string":"some words"}}'
                        writer.db.execute("INSERT INTO action VALUES (?, ?)", (events, action))
                        calls += 1
                writer.insert_events(made)
                writer.save_turns([turn_row(turns, uid, session, turn, first, events)])
        writer.set_meta("touches_version", 1)
        writer.set_meta("touches_upto", events)
        writer.set_meta("first_build", "done")
    writer.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.close()


def worktrees(writer: Writer, project: Path) -> list[tuple[str, int]]:
    common = str((project / ".git").resolve())
    found = []
    for number, tree in enumerate(
        (project, *(project.parent / f"project-{word}" for word in ("fix", "try", "old"))), 1
    ):
        writer.db.execute("INSERT INTO root VALUES (?, ?, ?, ?)", (number, str(tree), str(tree), common))
        found.append((str(tree), number))
    return found


def add_path(writer: Writer, text: str, root: int) -> int:
    added = writer.db.execute(
        "INSERT INTO path (text, name, absolute, root) VALUES (?, ?, 1, ?)", (text, text.rpartition("/")[2], root)
    )
    return int(added.lastrowid or 0)


def turn_row(id: int, session_uid: bytes, session: int, ord: int, first: int, last: int) -> tuple[Any, ...]:
    known: dict[str, Any] = {
        "id": id, "uid": ids.turn_uid(session_uid, f"t{id}"), "session": session, "file": 1, "generation": 0,
        "ord": ord, "place": ord, "started": START, "updated": START, "event_count": last - first + 1,
        "user_event": first, "user_text": "work", "last_event": last, "tools": "", "types": "0",
    }  # fmt: skip
    return tuple(_columns(known))


def _columns(known: Json) -> Iterator[Any]:
    nullable = ("native", "terminal", "reply_event", "reply_text")
    for column in (part.strip() for part in TURN_COLUMNS.split(",")):
        yield known.get(column, None if column in nullable else 0)


assert EVENT_COLUMNS.count(",") == 17, "the rows above have the columns of events"

if __name__ == "__main__":
    sys.exit(main())
