"""Erasing rows: all that belongs to a session, copies of it in others, and what nothing refers to any more.

Statements of the one writer, each in the transaction that its caller opened. What the remaining sessions then are
(turns, counts, titles) is the ingest's business.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import orjson

from outcrop.store.embedded import rows
from outcrop.store.embedded.write import Writer, text_class

FORGOTTEN = 1
"""Bits of `file.erased`. Its session has a tombstone: what is appended to it is not even looked at."""
PARTLY = 2
"""Some of it has. It is read anew when it changes: the state of its reader, which may hold texts, is gone."""
LEFT_OUT = 4
"""The same, but its reader remembers nothing, so it is read on."""
AGED = 8
"""Retention let it go. It is read anew when it changes, or when retention does."""
ANEW = FORGOTTEN | PARTLY | AGED
"""With one of these a file cannot be read on from its checkpoint."""
NO_STATE = rows.compress(b"{}")
_LISTED = "(SELECT value FROM json_each(?))"


class Erased(NamedTuple):
    """An event that goes or went."""

    id: int
    uid: bytes
    type: int
    turn: int
    block: int
    slot: int
    origin: bytes
    """Of a copy: what it is a copy of."""


def secure(db: sqlite3.Connection) -> None:
    """From now on what this connection frees is overwritten. Outside of any transaction."""
    db.execute("PRAGMA secure_delete=ON")


# Finding


def origins_of(db: sqlite3.Connection, session: int) -> set[bytes]:
    """Ids and origins of the events that are a session's own, not copies: copies elsewhere carry one of them."""
    found: set[bytes] = set()
    for uid, origin in db.execute(
        "SELECT e.uid, e.origin FROM turn t JOIN event e ON e.turn = t.id WHERE t.session = ? AND NOT e.flags & ?",
        (session, rows.COPY),
    ):
        found.add(uid)
        if origin is not None:
            found.add(origin)
    return found


def copies_elsewhere(
    db: sqlite3.Connection, chosen: Collection[int], origins: Collection[bytes]
) -> dict[int, list[Erased]]:
    """Copies of these events in other sessions, by session."""
    found: dict[int, list[Erased]] = defaultdict(list)
    for session, *event in db.execute(
        "SELECT s.id, e.id, e.uid, e.type, e.turn, e.block, e.slot, e.origin FROM session s"
        " JOIN turn t ON t.session = s.id JOIN event e ON e.turn = t.id"
        f" WHERE s.copies > 0 AND e.flags & ? AND e.origin IS NOT NULL AND s.id NOT IN {_LISTED}",
        (rows.COPY, json.dumps(list(chosen))),
    ):
        if event[-1] in origins:
            found[session].append(Erased(*event))
    return dict(found)


def sharing(db: sqlite3.Connection) -> dict[bytes, set[int]]:
    """By what they are copies of, the sessions that hold copies."""
    found: dict[bytes, set[int]] = defaultdict(set)
    for origin, session in db.execute(
        "SELECT e.origin, s.id FROM session s JOIN turn t ON t.session = s.id JOIN event e ON e.turn = t.id"
        " WHERE s.copies > 0 AND e.flags & ? AND e.origin IS NOT NULL",
        (rows.COPY,),
    ):
        found[origin].add(session)
    return found


def holders(db: sqlite3.Connection) -> dict[int, set[int]]:
    """The sessions that each file brought something of."""
    found: dict[int, set[int]] = defaultdict(set)
    for statement in (
        "SELECT DISTINCT file, session FROM turn",
        "SELECT DISTINCT file, session FROM fact",
        "SELECT file, id FROM session WHERE file IS NOT NULL",
    ):
        for file, session in db.execute(statement):
            found[file].add(session)
    return found


def files_of(db: sqlite3.Connection, sessions: Iterable[int]) -> set[int]:
    """The files that sessions were read from."""
    found: set[int] = set()
    for session in sessions:
        found.update(
            row[0]
            for row in db.execute(
                "SELECT file FROM turn WHERE session = ?1 UNION SELECT file FROM fact WHERE session = ?1"
                " UNION SELECT e.file FROM turn t JOIN event e ON e.turn = t.id WHERE t.session = ?1"
                " UNION SELECT file FROM session WHERE id = ?1 AND file IS NOT NULL",
                (session,),
            )
        )
    return found


# Erasing


def erase_sessions(writer: Writer, sessions: Iterable[int]) -> int:
    """All rows of sessions, and their documents; returns how many events there were."""
    db = writer.db
    events = 0
    for session in sessions:
        gone = db.execute(
            "SELECT e.id, e.type FROM turn t JOIN event e ON e.turn = t.id WHERE t.session = ?", (session,)
        ).fetchall()
        events += len(gone)
        writer.todo((id, text_class(kind)) for id, kind in gone)
        db.execute("DELETE FROM event WHERE turn IN (SELECT id FROM turn WHERE session = ?)", (session,))
        for table in ("turn", "block", "fact", "place", "kept"):
            db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
        db.execute("DELETE FROM session WHERE id = ?", (session,))
    if events:
        writer.step_meta("order_rev")
    return events


def erase_events(writer: Writer, session: int, events: list[Erased]) -> None:
    """Some events of a session that stays, with their contents. Its turns are to be folded again."""
    db = writer.db
    db.executemany("DELETE FROM event WHERE id = ?", [(event.id,) for event in events])
    writer.todo((event.id, text_class(event.type)) for event in events)
    writer.step_meta("order_rev")
    db.execute("UPDATE session SET shape = shape + 1 WHERE id = ?", (session,))
    writer.drop_unused_blocks(session)
    blank_unused(db, session)


def blank_unused(db: sqlite3.Connection, session: int) -> None:
    """Empty the places in a session's blocks that no event refers to."""
    used = slots_used(db, session)
    for number, z in db.execute("SELECT id, z FROM block WHERE session = ?", (session,)).fetchall():
        contents = rows.decode_block(z)
        kept = [content if slot in used[number] else {} for slot, content in enumerate(contents)]
        if kept != contents:
            packed, size = rows.encode_block([rows.encode_content(content) for content in kept])
            db.execute("UPDATE block SET z = ?, size = ? WHERE id = ?", (packed, size, number))


def slots_used(db: sqlite3.Connection, session: int) -> defaultdict[int, set[int]]:
    """By block of a session, the places that events refer to."""
    used: defaultdict[int, set[int]] = defaultdict(set)
    for block, slot in db.execute(
        "SELECT e.block, e.slot FROM turn t JOIN event e ON e.turn = t.id WHERE t.session = ?", (session,)
    ):
        used[block].add(slot)
    return used


def clear_file(writer: Writer, file: int, bit: int) -> None:
    """A file that brought nothing else: all that it left beside the history, and its reader's state."""
    db = writer.db
    writer.forget_reading(file)
    db.execute("DELETE FROM file WHERE id = ? AND missing", (file,))
    db.execute("UPDATE file SET state = NULL, erased = erased | ? WHERE id = ?", (bit, file))


def thin_file(writer: Writer, file: int, bit: int, whole: Collection[int] = ()) -> None:
    """A file that brought other sessions too: what it holds of none of them in particular goes.

    `whole` are `kept` rows that may stay. Retention (AGED) leaves all of it: that is no erasing for good.
    """
    db = writer.db
    if bit == AGED:
        db.execute("UPDATE file SET erased = erased | ? WHERE id = ?", (AGED, file))
        return
    db.execute(
        f"DELETE FROM kept WHERE file = ? AND session IS NULL AND id NOT IN {_LISTED}", (file, json.dumps(list(whole)))
    )
    db.execute("UPDATE problem SET detail = '' WHERE file = ?", (file,))
    row = db.execute("SELECT state FROM file WHERE id = ?", (file,)).fetchone()
    if row is None:
        return
    if remembers(row[0]):
        db.execute("UPDATE file SET state = ?, erased = erased | ? WHERE id = ?", (NO_STATE, PARTLY, file))
    else:
        db.execute("UPDATE file SET erased = erased | ? WHERE id = ?", (LEFT_OUT, file))


def remembers(state: bytes | None) -> bool:
    """Whether a stored state holds anything of a reader's own: that may be text."""
    return state is not None and bool(orjson.loads(rows.decompress(state)).get("reader"))


def drop_orphans(writer: Writer) -> None:
    """Paths that nothing touches, working trees that nothing ran in, names that nothing bears."""
    db = writer.db
    db.execute("DELETE FROM path WHERE id NOT IN (SELECT path FROM touch)")
    db.execute(
        "DELETE FROM root WHERE id NOT IN (SELECT root FROM path WHERE root IS NOT NULL) AND prefix NOT IN"
        " (SELECT worktree FROM place WHERE worktree IS NOT NULL UNION SELECT cwd FROM place)"
    )
    used: set[Any] = set()
    for column in ("tool", "model", "generator"):
        used.update(row[0] for row in db.execute(f"SELECT DISTINCT {column} FROM event"))
    for (tools,) in db.execute("SELECT DISTINCT tools FROM turn"):
        used.update(rows.numbers(tools))
    unused = [(id,) for (id,) in db.execute("SELECT id FROM name").fetchall() if id not in used]
    # The numbers are counted on, so the rows stay.
    db.executemany("UPDATE name SET text = '(erased ' || id || ')' WHERE id = ?", unused)
    writer.learn_names()


def read_again(db: sqlite3.Connection, bits: int) -> None:
    """Have the next reading open files with one of these bits, and all places of many sessions, whole."""
    db.execute("UPDATE file SET adapter_version = -1, erased = erased & ~?1 WHERE erased & ?1", (bits,))
    db.execute("UPDATE file SET adapter_version = -1 WHERE form = 'container' AND role <> 'session'")
