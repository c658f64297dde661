"""Checks of what is read: the agents' folders and files, the versions that read them, the times that they tell."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections import Counter
from typing import Any

from outcrop.config import Config
from outcrop.findings import Finding, Level, ok
from outcrop.harnesses import REGISTRY, load
from outcrop.ingest.containers import is_session
from outcrop.ingest.discover import A_FOLDER, NO_UNICODE
from outcrop.ingest.reading import DAMAGED, EMPTIED, NO_RECORD
from outcrop.ingest.survey import SourceSurvey, below
from outcrop.store.embedded.write import FileRow

DAY = 86_400_000
_JITTER = 60_000
"""Milliseconds that clocks may be corrected by."""
_SHOWN = 50
_PLAIN = {A_FOLDER, DAMAGED, EMPTIED, NO_RECORD, NO_UNICODE}
_PLAIN |= {"not a directory", "not a regular file", "not a whole JSON document"}
_PLAIN |= {os.strerror(code).lower() for code in errno.errorcode}
"""Reasons that quote nothing."""


def check_sources(config: Config, found: list[SourceSurvey], rows: list[FileRow]) -> list[Finding]:
    """Folders and files as they lie there now."""
    return [*_roots(config, found, rows), _files(found), _adapters(rows), _unread(found)]


def _roots(config: Config, found: list[SourceSurvey], rows: list[FileRow]) -> list[Finding]:
    findings = []
    by_source: dict[str, list[str]] = {}
    for row in rows:
        if not is_session(row):
            by_source.setdefault(row.source, []).append(row.path)
    outside = 0
    for each in found:
        if not each.checked:
            continue
        known = by_source.get(each.source, [])
        silence = f"if this agent is gone for good, set `enabled = false` in `[sources.{each.source}]`"
        for root, reason in each.degraded:
            findings.append(
                Finding(
                    "roots",
                    Level.FAILED,
                    f"a folder of {each.source} cannot be listed: {_plain(reason)}",
                    "what is new below it is not read; what was read is kept",
                    "make it readable for you",
                    {"source": each.source},
                    (f"{root}: {reason}",),
                )
            )
        for root in each.absent:
            had = sum(below(path, root) for path in known)
            if had or config.source(each.source).roots is not None:
                findings.append(
                    Finding(
                        "roots",
                        Level.FAILED,
                        f"a folder of {each.source} is missing"
                        + (f", of which {had} files were read" if had else ", which the configuration names"),
                        "nothing new can come from there; what was read is kept",
                        f"mount or restore it; {silence}",
                        {"source": each.source, "files_read": had},
                        (root,),
                    )
                )
        for root in each.roots:
            had = sum(below(path, root) for path in known)
            if had and not each.files and not each.degraded:
                findings.append(
                    Finding(
                        "roots",
                        Level.FAILED,
                        f"a folder of {each.source} is empty, of which {had} files were read",
                        "its sessions were deleted, or the disk that belongs there is not mounted; history is kept",
                        f"mount or restore it; {silence}",
                        {"source": each.source, "files_read": had},
                        (root,),
                    )
                )
        outside += sum(not any(below(path, root) for root in (*each.roots, *each.absent)) for path in known)
    if outside:
        findings.append(
            Finding(
                "roots",
                Level.NOTE,
                f"{outside} files were read from folders that are looked in no more",
                "their history is kept, and nothing new comes from there",
                "name those folders under `[sources.NAME]` `roots` if they are still in use",
                {"files": outside},
            )
        )
    if any(finding.level is Level.FAILED for finding in findings):
        return findings
    there = sum(len(each.roots) for each in found)
    return [*findings, ok("roots", f"{there} folders of agents can be listed", folders=there)]


def _files(found: list[SourceSurvey]) -> Finding:
    failed = [(each.source, path, reason) for each in found for path, reason in each.failed]
    if not failed:
        return ok("files", "every file that lies there could be read", files=sum(each.files for each in found))
    reasons = Counter(f"{source}: {_plain(reason)}" for source, _, reason in failed)
    return Finding(
        "files",
        Level.FAILED,
        f"{len(failed)} files of agents cannot be read",
        "what they hold is missing; what was read of them before is kept",
        "see the reasons; a file that is damaged in the agent as well can only be deleted there",
        {**reasons},
        tuple(f"{path}: {reason}" for _, path, reason in failed[:_SHOWN]),
    )


def _plain(reason: str) -> str:
    """A reason that may be read by strangers: others may quote a file."""
    if reason in _PLAIN or reason.startswith("could not be taken in ("):
        return reason
    return "another reason"


def _adapters(rows: list[FileRow]) -> Finding:
    newer: Counter[str] = Counter()
    older: Counter[str] = Counter()
    for row in rows:
        if row.harness not in REGISTRY:
            newer[row.source] += 1
        elif not row.missing and row.problem is None and row.adapter_version != load(row.harness).version:
            (newer if row.adapter_version > load(row.harness).version else older)[row.source] += 1
    if newer:
        return Finding(
            "adapters",
            Level.FAILED,
            f"{newer.total()} files were read by a newer outcrop than this one",
            "this version reads them again, and may understand less of them",
            "run the newer version: another, older one stands first in the PATH",
            {**newer},
        )
    if older:
        return Finding(
            "adapters",
            Level.NOTE,
            f"{older.total()} files were read by an older outcrop",
            "the next indexing reads them again",
            "run `outcrop index`",
            {**older},
        )
    return ok("adapters", "all files were read by this version's adapters")


def _unread(found: list[SourceSurvey]) -> Finding:
    unchecked = [each.source for each in found if not each.checked]
    pending = {each.source: each.pending for each in found if each.pending}
    if unchecked:
        return Finding(
            "freshness",
            Level.NOTE,
            f"not checked: {', '.join(unchecked)}",
            "listing their folders takes too long: a slow or dead network drive?",
            facts={"not_checked": len(unchecked)},
        )
    if pending:
        return Finding(
            "freshness",
            Level.NOTE,
            f"{sum(pending.values())} files are new or have changed since they were read",
            "what they hold is not found yet",
            "run `outcrop index`, unless an indexer is at it",
            {**pending},
        )
    return ok("freshness", "nothing on disk is newer than what was read")


def check_rows(connection: sqlite3.Connection) -> list[Finding]:
    """What the history says of itself: times, records that were not understood, work that was left undone."""
    now = time.time_ns() // 1_000_000
    meta = dict(connection.execute("SELECT k, v FROM meta"))
    return [
        _clock(connection, meta, now),
        *_purge(meta),
        _records(connection),
    ]


def _clock(connection: sqlite3.Connection, meta: dict[str, Any], now: int) -> Finding:
    seen = connection.execute("SELECT coalesce(max(seen_at), 0) FROM file").fetchone()[0]
    ahead = max(int(meta.get("last_pass") or 0), int(seen)) - now
    if ahead > _JITTER:
        return Finding(
            "clock",
            Level.FAILED,
            "the clock was set back: the last reading lies in the future",
            "ages are wrong, and a file that failed is not tried again until it changes",
            "correct the time of this machine, then run `outcrop index --full`",
            {"seconds_ahead": ahead // 1000},
        )
    future = dict(
        connection.execute(
            "SELECT s.source, count(*) FROM event e JOIN session s ON s.id = e.session WHERE e.time > ?"
            " GROUP BY 1 ORDER BY 1",
            (now + DAY,),
        ).fetchall()
    )
    if future:
        return Finding(
            "clock",
            Level.FAILED,
            f"{sum(future.values())} events carry times in the future ({', '.join(future)})",
            "they come first in every list by time",
            "the agent's machine had a wrong clock when it wrote them; what is stored stays as it was written",
            future,
        )
    return ok("clock", "no time lies in the future")


def _purge(meta: dict[str, Any]) -> list[Finding]:
    if not meta.get("purge_pending"):
        return []
    return [
        Finding(
            "erasure",
            Level.FAILED,
            "an erasure was interrupted",
            "what was to be forgotten is found no more, and may still stand in free pages or old segments",
            "run `outcrop index`, or the erasing command once more: it goes on",
        )
    ]


def _records(connection: sqlite3.Connection) -> Finding:
    aside = connection.execute("SELECT count(*) FROM problem").fetchone()[0]
    unknown = connection.execute(
        "SELECT file.harness, census.version, census.kind, sum(census.n) FROM census JOIN file"
        " ON file.id = census.file WHERE census.outcome = 'unknown' GROUP BY 1, 2, 3 ORDER BY 4 DESC"
    ).fetchall()
    if not aside and not unknown:
        return ok("records", "every record was understood")
    counts = Counter[str]()
    for harness, _, _, n in unknown:
        counts[f"unknown_{harness}"] += n
    return Finding(
        "records",
        Level.NOTE,
        " and ".join(
            part
            for part in (
                f"{aside} records were set aside" if aside else "",
                f"{counts.total()} records are of a kind that this version does not know" if counts else "",
            )
            if part
        ),
        "they are kept whole, and found no further than that",
        "a newer outcrop may know them; `outcrop status` names them",
        {"set_aside": aside, **counts},
        tuple(f"{n} x {kind} ({harness} {version})" for harness, version, kind, n in unknown[:_SHOWN]),
    )
