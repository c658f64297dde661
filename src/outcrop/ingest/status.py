"""What is indexed, what is missing and why: read from the store alone, whether or not anything is running."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from outcrop.harnesses import Form
from outcrop.store.embedded.database import database_path, engine_errors

TYPICAL_REASONS = 20
"""How many problems are listed in full; all are counted."""


def status(connection: sqlite3.Connection, home: Path) -> dict[str, Any]:
    """The state of a store as one JSON document: sources, counts, census, problems, sizes. Times in UTC ms."""
    with engine_errors():
        connection.execute("BEGIN")
        try:
            return _status(connection, home)
        finally:
            connection.execute("ROLLBACK")


def _status(db: sqlite3.Connection, home: Path) -> dict[str, Any]:
    meta = dict(db.execute("SELECT k, v FROM meta"))
    totals = db.execute(
        "SELECT (SELECT count(*) FROM session WHERE event_count > 0), (SELECT count(*) FROM turn WHERE NOT hidden),"
        " (SELECT count(*) FROM event), (SELECT count(*) FROM text_todo WHERE class < 2),"
        " (SELECT count(*) FROM tombstone)"
    ).fetchone()
    return {
        "home": str(home),
        "complete": meta.get("first_build") == "done",
        "last_pass": meta.get("last_pass"),
        "sessions": totals[0],
        "turns": totals[1],
        "events": totals[2],
        "waiting_for_text_index": totals[3],
        "forgotten": totals[4],
        "erasure_pending": "purge_pending" in meta,
        "bytes": {"outcrop.db": _size(database_path(home)), "text": _size(home / "text")},
        "roots": json.loads(meta.get("roots", "[]")),
        "sources": _sources(db),
        "records": _census(db),
        "unknown": [
            {"harness": row[0], "version": row[1], "kind": row[2], "records": row[3]}
            for row in db.execute(
                "SELECT file.harness, census.version, census.kind, sum(census.n) FROM census JOIN file"
                " ON file.id = census.file WHERE census.outcome = 'unknown' GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3"
            )
        ],
        "files_with_problems": [
            {"path": row[0], "source": row[1], "reason": row[2]}
            for row in db.execute("SELECT path, source, problem FROM file WHERE problem IS NOT NULL ORDER BY path")
        ],
        "unfinished": [
            {"path": row[0], "source": row[1], "offset": row[2], "bytes": row[3]}
            for row in db.execute(
                "SELECT path, source, offset, size - offset FROM file WHERE form = ? AND size > offset"
                " AND NOT missing AND NOT erased AND problem IS NULL ORDER BY path",
                (Form.LINES.value,),
            )
        ],
        "set_aside": {
            "count": db.execute("SELECT count(*) FROM problem").fetchone()[0],
            "records": [
                {"path": row[0], "offset": row[1], "line": row[2], "reason": row[3], "detail": row[4]}
                for row in db.execute(
                    "SELECT file.path, problem.offset, problem.line, problem.reason, problem.detail FROM problem"
                    " JOIN file ON file.id = problem.file ORDER BY file.path, problem.offset LIMIT ?",
                    (TYPICAL_REASONS,),
                )
            ],
        },
        "masked": dict(db.execute("SELECT rule, sum(n) FROM redaction GROUP BY rule ORDER BY rule")),
    }


def _sources(db: sqlite3.Connection) -> list[dict[str, Any]]:
    sessions = dict(db.execute("SELECT source, count(*) FROM session WHERE event_count > 0 GROUP BY source"))
    return [
        {
            "source": row[0],
            "harness": row[1],
            "files": row[2],
            "missing": row[3],
            "failed": row[4],
            "bytes": row[5],
            "sessions": sessions.get(row[0], 0),
        }
        for row in db.execute(
            "SELECT source, harness, count(*), sum(missing), sum(problem IS NOT NULL), sum(offset) FROM file"
            " GROUP BY source, harness ORDER BY source"
        )
    ]


def _census(db: sqlite3.Connection) -> list[dict[str, Any]]:
    return [
        {"harness": row[0], "kind": row[1], "outcome": row[2], "records": row[3]}
        for row in db.execute(
            "SELECT file.harness, census.kind, census.outcome, sum(census.n) FROM census JOIN file"
            " ON file.id = census.file GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 2, 3"
        )
    ]


def _size(path: Path) -> int:
    """Bytes of a file with its WAL, or of everything in a folder."""
    if path.is_dir():
        return sum(
            os.path.getsize(os.path.join(folder, name))
            for folder, _, names in os.walk(path)
            for name in names
            if os.path.exists(os.path.join(folder, name))
        )
    return sum(os.path.getsize(part) for part in (path, path.with_name(path.name + "-wal")) if os.path.exists(part))
