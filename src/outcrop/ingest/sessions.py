"""What a session is, from its turns and recorded facts: counts, times, title, parent, completion; and turn numbers.

Recomputed after every batch for the sessions that it touched. Titles, the first prompt and the times come from own
events, not from copied history ("Copies, secrets").
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from outcrop import ids
from outcrop.harnesses import Harness
from outcrop.ingest.project import locate, project_of
from outcrop.store.embedded import rows
from outcrop.store.embedded.write import ANSWER, Writer

TITLES = ("title.user", "title.generated", "title.summary")
"""Recorded titles, best first."""
COPIED_HEAD = 1
OTHER_STORE = 2
"""Why a turn is hidden: history that a subagent copied, or a lower-ranked store that tells the same session."""
SLUG_LIMIT = 120
SUMMARY_LIMIT = 240


@dataclass(slots=True, frozen=True)
class Sums:
    """Of the turns of a session that are shown. Times in UTC ms, None where there is no turn."""

    turns: int
    events: int
    started: int | None
    updated: int | None
    last: int | None
    """The highest number of a turn."""


NOTHING = Sums(0, 0, None, None, None)


@dataclass(slots=True, frozen=True)
class Step:
    """What a batch that only adds changed: the turns that it touched before and after, and the events that it added."""

    before: Sums
    after: Sums
    events: list[int]


_SUMS = """SELECT count(*), coalesce(sum(event_count), 0), min(started), max(updated), max(ord) FROM turn
    WHERE {} AND NOT hidden"""


def sums_of(writer: Writer, turns: list[int]) -> Sums:
    """Of these turns of one session."""
    listed = "id IN (SELECT value FROM json_each(?))"
    return Sums(*writer.db.execute(_SUMS.format(listed), (json.dumps(turns),)).fetchone())


def _sums(writer: Writer, session: int, step: Step | None, row: tuple[Any, ...]) -> Sums:
    """Of all its turns: those of the row, stepped, so that a long session costs no more than a short one."""
    turns, events, started, updated = row
    if step is None or not turns or (step.before.started or 0) < (step.after.started or 0):
        return Sums(*writer.db.execute(_SUMS.format("session = ?"), (session,)).fetchone())
    before, after = step.before, step.after
    last = writer.db.execute("SELECT max(ord) FROM turn WHERE session = ?", (session,)).fetchone()[0]
    return Sums(
        turns + after.turns - before.turns,
        events + after.events - before.events,
        min(started, after.started if after.started is not None else started),
        max(updated, after.updated if after.updated is not None else updated),
        last,
    )


def refresh(
    writer: Writer,
    session: int,
    file: int,
    harness: Harness,
    moved: bool,
    step: Step | None = None,
    more: int | None = None,
) -> None:
    """Bring a session's row up to date. `file` touched it.

    `step`: all that changed, where that is known. `more`: that many messages came and none went.
    """
    db = writer.db
    old = db.execute(
        "SELECT uid, harness, source, copies, file, files, parent, relation, turn_count, event_count, started, updated,"
        " messages FROM session WHERE id = ?",
        (session,),
    ).fetchone()
    first_file, several = old[4], old[5]
    if first_file is None:
        first_file = file
    elif first_file != file and not several:
        several = _of_several_files(writer, session)
    source = old[2]
    if several:
        source = _prefer_best_source(writer, session, harness, source)
        moved = renumber(writer, session) or moved
    if several or old[3] or moved:
        step = None
    sums = _sums(writer, session, step, old[8:12])
    started, updated = sums.started, sums.updated
    if old[3]:
        started, updated = _own_times(writer, session) or (started, updated)
    ends = db.execute("SELECT ends FROM turn WHERE session = ? AND ord = ?", (session, sums.last)).fetchone()
    edge = _edge(writer, session, step)
    mode = (1 if edge[4] else 0) | (2 if edge[3] else 0) | (4 if edge[2] else 0)
    facts = dict(writer.facts(session))
    if more is None or several:
        messages, more = _messages(writer, session), 0
    else:
        messages = old[12]
    prompt = db.execute(
        "SELECT t.user_text FROM turn t JOIN event e ON e.id = t.user_event WHERE t.session = ? AND NOT t.hidden"
        " AND NOT e.flags & ? ORDER BY t.ord LIMIT 1",
        (session, rows.COPY),
    ).fetchone()
    db.execute(
        "UPDATE session SET source = ?, title = ?, summary = ?, slug = ?, label = ?, first_prompt = ?, version = ?,"
        " agent = ?, machine = ?, file = ?, files = ?, started = ?, updated = ?, turn_count = ?, event_count = ?,"
        " messages = ?, completed = ?,"
        " mode = mode | ?, first_event = coalesce(min(first_event, ?), first_event, ?),"
        " last_event = max(coalesce(last_event, 0), ?),"
        " shape = shape + ? WHERE id = ?",
        (
            source,
            _title(facts), _short(facts.get("summary"), SUMMARY_LIMIT), _short(facts.get("slug"), SLUG_LIMIT),
            _text(facts.get("label")), prompt[0] if prompt else None, _text(facts.get("version")),
            _text(facts.get("agent")), int(bool(facts.get("machine"))), first_file, int(bool(several)),
            started or 0, updated or 0, sums.turns, sums.events, messages + more, int(bool(ends and ends[0])), mode,
            edge[0], edge[0], edge[1] or 0, int(moved), session,
        ),
    )  # fmt: skip
    _set_parent(writer, session, harness.group(source), old, facts)
    _locate_places(writer, session)


def _edge(writer: Writer, session: int, step: Step | None) -> tuple[Any, ...]:
    """(first, last, web, own, tool) of its new events: ids, and whether any is of that kind."""
    told = "SELECT min(e.id), max(e.id), max(e.flags & ?1), max(e.flags & ?2), max(e.type IN (3, 4)) FROM"
    if step is not None:
        found = " event e WHERE e.id IN (SELECT value FROM json_each(?3))"
        edge = writer.db.execute(told + found, (rows.WEB, rows.OWN, json.dumps(step.events))).fetchone()
    else:
        found = (
            " turn t JOIN event e ON e.turn = t.id WHERE t.session = ?3"
            " AND t.last_event > coalesce((SELECT last_event FROM session WHERE id = ?3), 0)"
        )
        edge = writer.db.execute(told + found, (rows.WEB, rows.OWN, session)).fetchone()
    return tuple(edge)


def renumber(writer: Writer, session: int) -> bool:
    """Number the visible turns of a session, by file and then by their place in it. True if a number changed."""
    found = writer.db.execute(
        "SELECT turn.id, turn.ord, turn.hidden FROM turn JOIN file ON file.id = turn.file WHERE turn.session = ?"
        " ORDER BY file.first_time IS NULL, file.first_time, file.path, turn.place, turn.id",
        (session,),
    ).fetchall()
    changes = []
    ord = 0
    for id, old, hidden in found:
        if hidden:
            number = 0
        else:
            ord += 1
            number = ord
        if number != old:
            changes.append((number, id))
    writer.db.executemany("UPDATE turn SET ord = ? WHERE id = ?", changes)
    return bool(changes)


def _of_several_files(writer: Writer, session: int) -> bool:
    found = writer.db.execute("SELECT count(DISTINCT file) FROM turn WHERE session = ?", (session,)).fetchone()
    return bool(found[0] > 1)


def _prefer_best_source(writer: Writer, session: int, harness: Harness, source: str) -> str:
    """Ruling 21: of several stores that hold a session the highest-ranked one tells it; the turns of others rest.

    Returns that store's source.
    """
    rank = {name: place for place, name in enumerate(harness.sources)}
    found = writer.db.execute(
        "SELECT DISTINCT file.source FROM turn JOIN file ON file.id = turn.file WHERE turn.session = ?", (session,)
    ).fetchall()
    best = min((row[0] for row in found), key=lambda name: rank.get(name, len(rank)), default=source)
    writer.db.execute(
        "UPDATE turn SET hidden = CASE WHEN (SELECT source FROM file WHERE id = turn.file) = ?1"
        " THEN hidden & ~?2 ELSE hidden | ?2 END WHERE session = ?3",
        (best, OTHER_STORE, session),
    )
    return best


def _messages(writer: Writer, session: int) -> int:
    """The prompts and answers that are shown."""
    found = writer.db.execute(
        "SELECT count(*) FROM turn t JOIN event e ON e.turn = t.id WHERE t.session = ? AND NOT t.hidden"
        " AND e.type <= ?",
        (session, ANSWER),
    ).fetchone()
    return int(found[0])


def _own_times(writer: Writer, session: int) -> tuple[int, int] | None:
    found = writer.db.execute(
        "SELECT min(time), max(time) FROM event WHERE turn IN (SELECT id FROM turn WHERE session = ? AND NOT hidden)"
        " AND NOT flags & ?",
        (session, rows.COPY),
    ).fetchone()
    return None if found[0] is None else (found[0], found[1])


def _title(facts: dict[str, Any]) -> str | None:
    for name in TITLES:
        if title := _text(facts.get(name)):
            return title
    return None


def _text(value: Any) -> str | None:
    """White space folded, control characters gone; None for what says nothing."""
    if value is None:
        return None
    text = " ".join(str(value).replace("\0", " ").split())
    return text or None


def _short(value: Any, limit: int) -> str | None:
    text = _text(value)
    return text[:limit] if text else None


def _set_parent(writer: Writer, session: int, group: str, old: tuple[Any, ...], facts: dict[str, Any]) -> None:
    parent, relation = facts.get("parent"), facts.get("relation")
    uid = None
    if isinstance(parent, str) and parent:
        uid = ids.session_uid(old[1], group, parent)
    if (uid, relation) != (old[6], old[7]):
        writer.db.execute("UPDATE session SET parent = ?, relation = ? WHERE id = ?", (uid, relation, session))


def _locate_places(writer: Writer, session: int) -> None:
    """Note worktree and Git common directory while they exist: they cannot be recovered later."""
    for id, cwd in writer.db.execute(
        "SELECT id, cwd FROM place WHERE session = ? AND worktree IS NULL", (session,)
    ).fetchall():
        found = locate(cwd)
        if found is not None:
            writer.db.execute(
                "UPDATE place SET worktree = ?, common_dir = ?, project = ? WHERE id = ?",
                (found.worktree, found.common_dir, found.common_dir, id),
            )
        else:
            writer.db.execute("UPDATE place SET project = ? WHERE id = ?", (project_of(cwd), id))
