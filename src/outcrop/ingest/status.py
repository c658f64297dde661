"""What is indexed, what is missing and why.

What the store says of itself is read in one transaction, whether or not anything is running; whether that is all there
is, only a look at the disk can tell (`ingest.survey`), and it is told under `disk` alone.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

from outcrop.config import Config
from outcrop.errors import TextIndexRebuilding
from outcrop.harnesses import Environment, Form
from outcrop.ingest import survey
from outcrop.ingest.discover import known_roots
from outcrop.paths import RUN
from outcrop.store.embedded.database import database_path, engine_errors
from outcrop.store.embedded.write import FileRow, stored_files

TYPICAL_REASONS = 20
"""How many problems are listed in full; all are counted."""
_UNKNOWN = """WITH told AS (SELECT file.harness, census.version, census.kind, census.outcome, sum(census.n) AS n
    FROM census JOIN file ON file.id = census.file GROUP BY 1, 2, 3, 4)
    SELECT harness, version, kind, n,
        (SELECT sum(n) FROM told other WHERE (other.harness, other.version) = (told.harness, told.version))
    FROM told WHERE outcome = 'unknown' ORDER BY 4 DESC, 1, 2, 3"""
"""Drift: kinds of records that this version does not know, and how many records that version of the harness wrote."""


def status(
    connection: sqlite3.Connection, config: Config, environment: Environment, seconds: float = survey.SECONDS
) -> dict[str, Any]:
    """The state of a store as one JSON document: sources, counts, census, problems, sizes. Times in UTC ms.

    `seconds` bound the comparison with the disk; 0: there is none.
    """
    home = config.home
    with engine_errors():
        connection.execute("BEGIN")
        try:
            told = _status(connection, home)
            files = stored_files(connection)
            told["searchable"] = searchable(connection, home)
            also = known_roots(connection)
            newest = dict(connection.execute("SELECT source, max(updated) FROM session GROUP BY source"))
        finally:
            connection.execute("ROLLBACK")
    return {**told, "disk": _disk(config, environment, files, newest, told, seconds, also)}


def _disk(
    config: Config,
    environment: Environment,
    files: list[FileRow],
    newest: dict[str, int],
    told: dict[str, Any],
    seconds: float,
    also: dict[str, list[str]],
) -> dict[str, Any]:
    """What lies there against what was read. `state` is `current` only where this very look has proved it."""
    checked_at = time.time_ns() // 1_000_000
    found = survey.survey(config, environment, files, seconds, also)
    waiting = told["waiting_for_text_index"] + (0 if told["searchable"] else 1)
    return {
        "state": str(survey.overall(found, waiting)),
        "checked_at": checked_at,
        "files": sum(each.files for each in found),
        "indexed": sum(each.indexed for each in found),
        "pending": sum(each.pending for each in found),
        "gone": sum(each.unseen for each in found),
        "failed": sum(len(each.failed) for each in found),
        "missing": sum(each.missing for each in found),
        "not_checked": [each.source for each in found if not each.checked],
        "lag_ms": max((checked_at - each.waits_since for each in found if each.waits_since), default=0),
        "sources": [
            {**survey.as_json(each, checked_at), "newest_record": newest.get(each.source)}
            for each in found
            if each.files
            or each.missing
            or each.unseen
            or each.degraded
            or each.source in newest
            or config.source(each.source).roots is not None
        ],
    }


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
        "bytes": sizes(home),
        "bytes_free": shutil.disk_usage(home).free,
        "bytes_read": db.execute("SELECT coalesce(sum(offset), 0) FROM file WHERE NOT missing").fetchone()[0],
        "roots": json.loads(meta.get("roots", "[]")),
        "sources": _sources(db),
        "records": _census(db),
        "unknown": [
            {"harness": row[0], "version": row[1], "kind": row[2], "records": row[3], "of": row[4]}
            for row in db.execute(_UNKNOWN)
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


def searchable(connection: sqlite3.Connection, home: Path) -> bool:
    """Whether a text index of this very history opens and answers, or there is nothing to be found yet."""
    from outcrop.store.embedded.text_reader import TextReader, TextRefused, is_engine_failure

    try:
        view = TextReader(home).view(connection)
        return view is None or view.searcher.num_docs > 0
    except (TextIndexRebuilding, TextRefused):
        return False
    except BaseException as error:
        if not is_engine_failure(error):
            raise
        return False


def sizes(home: Path) -> dict[str, int]:
    """Bytes of each part of the data folder; `other` is what is no part of it."""
    parts = {
        "outcrop.db": _size(database_path(home)),
        "text": _size(home / "text"),
        "run": _size(home / RUN),
    }
    return {**parts, "other": max(0, _size(home) - sum(parts.values()))}


def _size(path: Path) -> int:
    """Bytes of a file with what SQLite keeps beside it, or of everything in a folder; files may go meanwhile."""
    if not path.is_dir():
        return sum(map(_bytes, (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm"))))
    return sum(_bytes(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def _bytes(path: str | Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
