"""What the text index reads of the rows: events with their searchable text, and the two messages before each.

Works on batches that stand in the order of their sessions, so that a block is decoded once. The caller holds the row
transaction that this reads in.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from outcrop import calls
from outcrop.model import ENCRYPTED_PLACEHOLDER, EVENT_TYPES, EventType
from outcrop.store.embedded import rows
from outcrop.store.embedded.blocks import Blocks
from outcrop.store.embedded.text_fields import CONVERSATION_CODES, LONGEST_TALK, Source, WholeSession

_EVENTS = """SELECT e.id, e.uid, e.type, e.session, e.turn, e.time, e.flags, e.rev, e.origin, e.block, e.slot, n.text,
    s.harness, s.source, t.ord, e.ord
    FROM event e JOIN session s ON s.id = e.session JOIN turn t ON t.id = e.turn LEFT JOIN name n ON n.id = e.tool
    WHERE e.id IN ({})"""
_MESSAGES = f"""SELECT t.ord, e.turn, e.ord, e.block, e.slot FROM turn t JOIN event e ON e.turn = t.id
    WHERE t.session = ? AND t.ord BETWEEN ? AND ? AND e.type IN {CONVERSATION_CODES}
    ORDER BY t.ord, e.turn, e.ord"""
_BEFORE_IN_TURN = f"""SELECT block, slot FROM event WHERE turn = ? AND ord < ? AND type IN {CONVERSATION_CODES}
    ORDER BY ord DESC LIMIT 2"""
_TURNS_BEFORE = "SELECT id FROM turn WHERE session = ? AND ord < ? ORDER BY ord DESC"
_TALK = f"""SELECT e.type, e.block, e.slot FROM turn t JOIN event e ON e.turn = t.id
    WHERE t.session = ? AND NOT t.hidden AND e.type IN {CONVERSATION_CODES} ORDER BY t.ord, e.ord"""
_WHOLE_SESSION = 8
"""From this many messages of one session on, the list of those in their turns is cheaper than looking before each."""
_NO_END = 1 << 62
_BLOCKS_KEPT = 16
_VARIABLES = 500
OPENING = 8
"""Messages that tell a fork from another session; DIGEST bytes for each."""
DIGEST = 8


class TextRows:
    """Rows of one connection as the text index wants them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._blocks = Blocks(connection, _BLOCKS_KEPT)

    def read(self, ids: Sequence[int]) -> Iterator[tuple[Source, list[str]]]:
        """The events that exist, in the order asked, each with the conversational texts before it (older first).

        Contents are unpacked one by one as they are asked for: each may be large.
        """
        found: dict[int, tuple[Any, ...]] = {}
        for at in range(0, len(ids), _VARIABLES):
            some = ids[at : at + _VARIABLES]
            for row in self._db.execute(_EVENTS.format(",".join("?" * len(some))), some):
                found[row[0]] = row
        present = [found[id] for id in ids if id in found]
        places = self._places_before([row for row in present if row[2] in CONVERSATION_CODES])
        for row in present:
            before = [self._blocks.content(*place).get("text", "") for place in places.get(row[0], ())]
            yield self._source(row), before

    def read_whole(self, session: int) -> WholeSession | None:
        """A session with its conversation, or None where none is shown.

        `opening` is a chain: its n-th piece is the digest of the first n messages, roles and texts. Two sessions begin
        with the same n messages exactly where their first n pieces are equal.
        """
        row = self._db.execute("SELECT title FROM session WHERE id = ? AND event_count > 0", (session,)).fetchone()
        if row is None:
            return None
        texts: list[str] = []
        opening = piece = b""
        left = LONGEST_TALK
        for at, (kind, block, slot) in enumerate(self._db.execute(_TALK, (session,))):
            text = str(self._blocks.content(block, slot).get("text", ""))
            if at < OPENING:
                encoded = text.encode("utf-8", "surrogatepass")
                piece = blake2b(piece + bytes([kind]) + encoded, digest_size=DIGEST).digest()
                opening += piece
            texts.append(text[:left])
            left -= len(text)
            if left <= 0 and at >= OPENING:
                break
        return WholeSession(session, row[0] or "", texts, opening)

    def forget(self) -> None:
        """Drop decoded blocks: rows may have changed."""
        self._blocks.clear()

    def _source(self, row: tuple[Any, ...]) -> Source:
        id, uid, code, session, turn, time, flags, rev, origin, block, slot, tool, harness, source = row[:14]
        kind = EVENT_TYPES[code]
        return Source(
            id=id,
            uid=uid,
            type=kind,
            session=session,
            turn=turn,
            harness=harness,
            source=source,
            time=time,
            copy=bool(flags & rows.COPY),
            rev=rev,
            origin=origin or uid,
            text=searchable(kind, tool, self._blocks.content(block, slot)),
        )

    def _places_before(self, messages: list[tuple[Any, ...]]) -> dict[int, list[tuple[int, int]]]:
        """(block, slot) of up to two conversational events before each, the nearer one last."""
        by_session: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        for row in messages:
            by_session[row[3]].append(row)
        places: dict[int, list[tuple[int, int]]] = {}
        for session, wanted in by_session.items():
            if len(wanted) < _WHOLE_SESSION:
                for row in wanted:
                    places[row[0]] = self._look_before(session, row[4], row[14], row[15])
                continue
            # Only the turns that are wanted: a session may hold a hundred thousand.
            ords = [row[14] for row in wanted]
            everything = self._db.execute(_MESSAGES, (session, min(ords), max(ords))).fetchall()
            keys = [place[:3] for place in everything]
            for row in wanted:
                at = bisect_left(keys, (row[14], row[4], row[15]))
                if at < 2:
                    places[row[0]] = self._look_before(session, row[4], row[14], row[15])
                else:
                    places[row[0]] = [(place[3], place[4]) for place in everything[at - 2 : at]]
        return places

    def _look_before(self, session: int, turn: int, turn_ord: int, ord: int) -> list[tuple[int, int]]:
        nearest = self._db.execute(_BEFORE_IN_TURN, (turn, ord)).fetchall()
        if len(nearest) < 2:
            for (earlier,) in self._db.execute(_TURNS_BEFORE, (session, turn_ord)):
                nearest += self._db.execute(_BEFORE_IN_TURN, (earlier, _NO_END)).fetchall()
                if len(nearest) >= 2:
                    break
        return [(block, slot) for block, slot in reversed(nearest[:2])]


def searchable(kind: EventType, tool: str | None, content: dict[str, Any]) -> str:
    """The text of an event that a search can match; empty where there is none."""
    if kind is EventType.TOOL_CALL:
        return calls.searchable_call(tool, content.get("arguments"))
    text = str(content.get("text", ""))
    return "" if kind is EventType.UNKNOWN or text == ENCRYPTED_PLACEHOLDER else text
