"""Retention: history that is too old, or more than fits, goes; and with `mirror` what its harness has deleted.

No tombstones: what retention let go comes back when the setting widens, where its source still exists. Files whose
last change is too old are not read at all (`discover`). Each session is one small transaction; copies that others hold
of it stay, and are the originals from then on.
"""

from __future__ import annotations

import json
from pathlib import Path

from outcrop import faults
from outcrop.config import Config
from outcrop.ingest import purge
from outcrop.ingest.checkpoints import proven_gone
from outcrop.ingest.containers import NAME_MARK, is_session
from outcrop.ingest.discover import Discovery
from outcrop.ingest.removal import LettingGo
from outcrop.store.embedded import compact, erase
from outcrop.store.embedded.write import FileRow, Writer

ROOM = 0.9
"""A history that does not fit shrinks to this share of the limit, so that it need not shrink at every pass."""
_SETTING = "retention"


def apply_setting(writer: Writer, config: Config) -> None:
    """Before the files are listed against their checkpoints: a changed setting brings back what it let go."""
    setting = json.dumps([config.retention_days, config.retention_bytes])
    before = writer.meta(_SETTING)
    if before == setting or (before is None and config.retention_days is None and config.retention_bytes is None):
        return
    with writer.transaction():
        erase.read_again(writer.db, erase.AGED)
        writer.set_meta(_SETTING, setting)


def apply_retention(writer: Writer, config: Config, discovery: Discovery, now: int) -> int:
    """After everything new was read: remove what is too old, too much, or (`mirror`) deleted at its source.

    `now` in UTC ms. Returns how many sessions went. Where room was asked for, `purge.finish_purge` has to follow.
    """
    gone = 0
    if config.retention_mirror:
        gone += _remove(writer, _deleted(writer, discovery))
    if config.retention_days is not None:
        cutoff = config.retention_cutoff(now)
        gone += _remove(writer, _sessions(writer, "updated < ?", cutoff))
    if config.retention_bytes is not None:
        gone += _fit(writer, config, config.retention_bytes)
    return gone


def _sessions(writer: Writer, clause: str, *values: int) -> list[int]:
    """Sessions with events, the oldest first."""
    found = writer.db.execute(
        f"SELECT id FROM session WHERE event_count > 0 AND {clause} ORDER BY updated, uid", values
    )
    return [row[0] for row in found]


def _remove(writer: Writer, sessions: list[int]) -> int:
    if not sessions:
        return 0
    going = LettingGo(writer)
    for session in sessions:
        with writer.transaction():
            going.let_go(session)
            faults.at("retention")
    with writer.transaction():
        erase.drop_orphans(writer)
    return len(sessions)


# Size


def _fit(writer: Writer, config: Config, limit: int) -> int:
    """Remove the oldest sessions until the rest fits. A session's share is that of its packed contents."""
    size = compact.used_bytes(writer.db) + sum(
        path.stat().st_size for path in (config.home / "text").rglob("*") if path.is_file()
    )
    if size <= limit:
        return 0
    weights = dict(writer.db.execute("SELECT session, sum(length(z)) FROM block GROUP BY session"))
    excess = sum(weights.values()) * (size - ROOM * limit) / size
    chosen = []
    for session in _sessions(writer, "1"):
        if excess <= 0:
            break
        chosen.append(session)
        excess -= weights.get(session, 0)
    count = _remove(writer, chosen)
    if count:
        with writer.transaction():
            purge.begin(writer, purge.SHRINK)
    return count


# Deleted sources


def _deleted(writer: Writer, discovery: Discovery) -> list[int]:
    """Sessions all of whose files are proven gone. A degraded root proves nothing; one that is bare at once is one."""
    degraded = [(source, str(place)) for source, place, _ in discovery.degraded]
    listed = [(found.file.source, found.file.path) for found in (*discovery.found, *discovery.aged)]
    trusted = [
        (source, str(root))
        for source, root in discovery.roots
        if not any(
            name == source and (_inside(place, str(root)) or _inside(str(root), place)) for name, place in degraded
        )
    ]
    places = {path for _, path in listed}
    gone = {row.id for row in writer.files() if _is_gone(writer, row, trusted, places)}
    if not gone:
        return []
    found: dict[int, bool] = {}
    for file, sessions in erase.holders(writer.db).items():
        for session in sessions:
            found[session] = found.get(session, True) and file in gone
    return [session for session in _sessions(writer, "1") if found.get(session, False)]


def _is_gone(writer: Writer, row: FileRow, roots: list[tuple[str, str]], places: set[str]) -> bool:
    """Whether the source of a file, or of a session in a place of many, is proven gone now."""
    if is_session(row):
        place, _, _ = row.path.rpartition(NAME_MARK)
        if place in places:
            # The place was listed whole; one that lists nothing at all proves nothing.
            return bool(
                row.missing
                and writer.db.execute(
                    "SELECT 1 FROM file WHERE source = ? AND role = ? AND NOT missing"
                    " AND substr(path, 1, length(?3)) = ?3 LIMIT 1",
                    (row.source, row.role, place + NAME_MARK),
                ).fetchone()
            )
        return any(name == row.source and proven_gone(place, root) for name, root in roots)
    return bool(row.missing) and any(name == row.source and proven_gone(row.path, root) for name, root in roots)


def _inside(path: str, root: str) -> bool:
    return path == root or Path(root) in Path(path).parents
