"""Reading the history: snapshots over SQLite.

A snapshot is one deferred read transaction, so sessions, turns and events agree however long a call takes and whatever
the writer does. Connections are kept per thread and reopened when `outcrop.db` is another file than before.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcrop.errors import StoreMissing
from outcrop.model import ENDS, EVENT_TYPES, Content, EventRow, Preview, SessionRow, TurnRow
from outcrop.store import Found, Rooted, SessionQuery, TouchQuery, TouchScan
from outcrop.store.embedded import rows, touches
from outcrop.store.embedded.blocks import Blocks
from outcrop.store.embedded.coverage import TRICKLE, coverage
from outcrop.store.embedded.database import database_path, engine_errors, open_for_reading

if TYPE_CHECKING:
    from outcrop.store.embedded.text_reader import TextReader

MODES = ("chat", "tool_calling", "mcp_internal", "web_search")
"""Words for a session's mode; the highest bit of its events decides (ruling 29)."""

# As the fields of `SessionRow`, and one more.
_SESSION = """id, uid, harness, source, native, title, summary, slug, label, first_prompt, started, updated, completed,
    turn_count, event_count, mode, parent, relation, shape, version, agent, last_event"""
_TURN = """t.id, t.uid, t.session, s.uid, t.ord, t.started, t.updated, t.event_count, t.ends, t.terminal, t.user_event,
    t.user_text, t.user_more, t.reply_event, t.reply_text, t.reply_more, t.tools, t.types, t.last_event"""
_EVENT = "id, uid, session, turn, ord, type, time, flags, tool, model, generator, rev, origin, block, slot"
_BLOCKS_KEPT = 32
ASK_EVERY = 20_000
"""Steps of the engine between two looks at whether the caller still waits: about a millisecond."""


class EmbeddedStore:
    """The store of one data folder, for reading."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._path = os.fspath(database_path(home))
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._text: TextReader | None = None

    @property
    def text(self) -> TextReader:
        """The text index."""
        if self._text is None:
            from outcrop.store.embedded.text_reader import TextReader

            self._text = TextReader(self.home)
        return self._text

    def connection(self) -> sqlite3.Connection:
        """This thread's connection to the present database file."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            raise StoreMissing from None
        identity = (found.st_dev, found.st_ino)
        if getattr(self._local, "identity", None) != identity:
            self._local.connection = open_for_reading(self.home)
            self._local.identity = identity
            self._open.append(self._local.connection)
        connection: sqlite3.Connection = self._local.connection
        return connection

    @contextmanager
    def snapshot(
        self, cancelled: Callable[[], bool] | None = None, project: str | None = None
    ) -> Iterator[EmbeddedSnapshot]:
        connection = self.connection()
        with engine_errors():
            connection.set_progress_handler(cancelled, ASK_EVERY)
            connection.execute("BEGIN")
            try:
                yield EmbeddedSnapshot(connection, project)
            finally:
                connection.set_progress_handler(None, 0)
                connection.execute("ROLLBACK")

    def close(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._local = threading.local()


class EmbeddedSnapshot:
    """One state of the history (`store.Snapshot`)."""

    def __init__(self, connection: sqlite3.Connection, project: str | None = None) -> None:
        self._db = connection
        self._floor = "" if project is None else " AND id IN (SELECT session FROM place WHERE project = ?)"
        self._project = () if project is None else (project,)
        self._only = project
        self.admitted: frozenset[int] | None = None
        """Row ids of the sessions that this snapshot holds; None: all."""
        if project is not None:
            found = connection.execute("SELECT DISTINCT session FROM place WHERE project = ?", self._project)
            self.admitted = frozenset(row[0] for row in found)
        self._names: dict[int, str] = {}
        self._blocks = Blocks(connection, _BLOCKS_KEPT)
        self._places: dict[int, tuple[int, int]] = {}
        """Block and slot of the events that were read."""
        meta = dict(connection.execute("SELECT k, v FROM meta"))
        self.epoch = str(meta.get("epoch", ""))
        self.order_rev = int(meta.get("order_rev", 0))
        self.arrival = int(connection.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0])

    def coverage(self) -> float | None:
        return coverage(self._db)

    def sources(self) -> tuple[str, ...]:
        found = self._db.execute("SELECT DISTINCT source FROM session WHERE event_count > 0 ORDER BY source")
        return tuple(row[0] for row in found)

    # Rows by uid

    def session(self, uid: bytes) -> SessionRow | None:
        row = self._one(
            f"SELECT {_SESSION} FROM session WHERE uid = ? AND event_count > 0{self._floor}", uid, *self._project
        )
        return self._session(row) if row else None

    def turn(self, uid: bytes) -> TurnRow | None:
        row = self._one(f"SELECT {_TURN} FROM turn t JOIN session s ON s.id = t.session WHERE t.uid = ?", uid)
        return self._turns([row])[0] if row and self._admits(row[2]) else None

    def event(self, uid: bytes) -> EventRow | None:
        row = self._one(f"SELECT {_EVENT} FROM event WHERE uid = ?", uid)
        return self._event(row) if row and self._admits(row[2]) else None

    def _admits(self, session: int) -> bool:
        return self.admitted is None or session in self.admitted

    def parents(self, event: EventRow) -> tuple[TurnRow, SessionRow]:
        found = self.found([event.id])[event.id]
        return found.turn, found.session

    def events_at(self, ids: Sequence[int]) -> dict[int, EventRow]:
        found = list(self._many(f"SELECT {_EVENT} FROM event WHERE id IN ({{}})", ids))
        self._learn({number for row in found for number in row[8:11] if number})
        return {row[0]: self._event(row) for row in found if self._admits(row[2])}

    def found(self, ids: Sequence[int]) -> dict[int, Found]:
        events = list(self.events_at(ids).values())
        turns = self._turns(
            list(
                self._many(
                    f"SELECT {_TURN} FROM turn t JOIN session s ON s.id = t.session WHERE t.id IN ({{}})",
                    {event.turn_id for event in events},
                )
            )
        )
        by_id = {turn.id: turn for turn in turns}
        sessions = {
            row[0]: self._session(row)
            for row in self._many(
                f"SELECT {_SESSION} FROM session WHERE id IN ({{}})", {event.session_id for event in events}
            )
        }
        return {event.id: Found(event, by_id[event.turn_id], sessions[event.session_id]) for event in events}

    # Lists

    def sessions(self, query: SessionQuery) -> list[SessionRow]:
        # Sessions that gained events after the pinned arrival are few: they are placed by hand, all others come in
        # index order.
        moved = self._moved(query)
        up = ">" if not query.descending else "<"
        order = "DESC" if query.descending else "ASC"
        clauses = ["event_count > 0", "updated >= ?", "started < ?", "first_event <= ?", "last_event <= ?"]
        values: list[Any] = [query.start, query.end, query.arrival, query.arrival]
        for column, value in (("harness", query.harness), ("source", query.source)):
            if value is not None:
                clauses.append(f"{column} = ?")
                values.append(value)
        if query.mode is not None:
            code = MODES.index(query.mode)
            clauses.append(("mode = 0", "mode = 1", "mode BETWEEN 2 AND 3", "mode >= 4")[code])
        if query.after is not None:
            clauses.append(f"(updated, uid) {up} (?, ?)")
            values.extend(query.after)
        values += self._project
        found = [
            self._session(row)
            for row in self._db.execute(
                f"SELECT {_SESSION} FROM session WHERE {' AND '.join(clauses)}{self._floor}"
                f" ORDER BY updated {order}, uid {order} LIMIT ?",
                [*values, query.limit],
            )
        ]
        if moved:
            found = sorted([*found, *moved], key=lambda row: (row.updated, row.uid), reverse=query.descending)
        return found[: query.limit]

    def _moved(self, query: SessionQuery) -> list[SessionRow]:
        """Sessions with events on both sides of the pinned arrival, as they stood then, that the query matches."""
        if query.arrival >= self.arrival:
            return []
        moved = []
        for row in self._db.execute(
            f"SELECT {_SESSION} FROM session WHERE event_count > 0 AND first_event <= ? AND last_event > ?",
            (query.arrival, query.arrival),
        ).fetchall():
            then = self._db.execute(
                """SELECT min(time), max(time), max(flags & 4), max(flags & 8), max(type IN (3, 4)), count(*),
                     count(DISTINCT turn) FROM event
                     WHERE turn IN (SELECT id FROM turn WHERE session = ? AND NOT hidden) AND id <= ?
                     AND (NOT flags & 1 OR ?)""",
                (row[0], query.arrival, self._all_copied(row[0])),
            ).fetchone()
            if then[0] is None:
                continue
            started, updated, web, own, tools, events, turns = then
            mode = 4 if web else 2 if own else 1 if tools else 0
            place = (updated, row[1])
            if updated < query.start or started >= query.end or not self._admits(row[0]):
                continue
            if query.mode is not None and MODES[_mode_code(mode)] != query.mode:
                continue
            if query.harness not in (None, row[2]) or query.source not in (None, row[3]):
                continue
            if query.after is not None and not (place < query.after if query.descending else place > query.after):
                continue
            old = list(row)
            old[10], old[11], old[13], old[14], old[15] = started, updated, turns, events, mode
            moved.append(self._session(old))
        return moved

    def _all_copied(self, session: int) -> bool:
        own = self._one(
            "SELECT 1 FROM event WHERE turn IN (SELECT id FROM turn WHERE session = ?) AND NOT flags & 1 LIMIT 1",
            session,
        )
        return own is None

    def turns(self, session: int, after: int, limit: int, arrival: int) -> list[TurnRow]:
        found: list[Sequence[Any]] = []
        for row in self._db.execute(
            f"SELECT {_TURN} FROM turn t JOIN session s ON s.id = t.session WHERE t.session = ? AND t.ord > ?"
            " ORDER BY t.ord",
            (session, after),
        ):
            then = row if row[18] <= arrival else self._turn_then(row, arrival)
            if then is not None:
                found.append(then)
            if len(found) == limit:
                break
        return self._turns(found)

    def events(self, turn: int, after: int, limit: int, arrival: int) -> list[EventRow]:
        return [
            self._event(row)
            for row in self._db.execute(
                f"SELECT {_EVENT} FROM event WHERE turn = ? AND ord > ? AND id <= ? ORDER BY ord LIMIT ?",
                (turn, after, arrival, limit),
            )
        ]

    def contents(self, events: Sequence[EventRow]) -> list[Content]:
        places = [self._places[event.id] for event in events]
        self._blocks.load(block for block, _ in places)
        return [rows.content(self._blocks.block(block)[slot]) for block, slot in places]

    # Neighbours

    def around_session(self, session: SessionRow) -> tuple[bytes | None, bytes | None]:
        before, behind = (
            self._one(
                f"SELECT uid FROM session WHERE event_count > 0 AND (updated, uid) {side} (?, ?){self._floor}"
                f" ORDER BY updated {order}, uid {order} LIMIT 1",
                session.updated,
                session.uid,
                *self._project,
            )
            for side, order in (("<", "DESC"), (">", "ASC"))
        )
        return _uid(before), _uid(behind)

    def around_turn(self, turn: TurnRow) -> tuple[bytes | None, bytes | None]:
        if turn.ordinal == 0:
            return None, None
        before = self._one("SELECT uid FROM turn WHERE session = ? AND ord = ?", turn.session_id, turn.ordinal - 1)
        behind = self._one("SELECT uid FROM turn WHERE session = ? AND ord = ?", turn.session_id, turn.ordinal + 1)
        return (_uid(before) if turn.ordinal > 1 else None), _uid(behind)

    def around_event(self, event: EventRow) -> tuple[bytes | None, bytes | None]:
        before = self._one("SELECT uid FROM event WHERE turn = ? AND ord = ?", event.turn_id, event.ordinal - 1)
        behind = self._one("SELECT uid FROM event WHERE turn = ? AND ord = ?", event.turn_id, event.ordinal + 1)
        return _uid(before), _uid(behind)

    def edges(self, row: SessionRow | TurnRow) -> tuple[bytes | None, bytes | None]:
        table, column = ("turn", "session") if isinstance(row, SessionRow) else ("event", "turn")
        ends = [
            self._one(f"SELECT uid FROM {table} WHERE {column} = ? AND ord > 0 ORDER BY ord {order} LIMIT 1", row.id)
            for order in ("ASC", "DESC")
        ]
        return _uid(ends[0]), _uid(ends[1])

    # Touched files

    def touches(self, query: TouchQuery) -> TouchScan:
        return touches.scan(self._db, query, self._only)

    def actions(self, events: Sequence[int]) -> dict[int, str]:
        return touches.actions(self._db, events)

    def root_of(self, path: str) -> Rooted | None:
        return touches.root_of(self._db, path)

    def touches_waiting(self) -> float | None:
        behind, newest = touches.waiting(self._db)
        return None if behind <= TRICKLE else 1 - behind / newest

    # Rows into words

    def _session(self, row: Sequence[Any]) -> SessionRow:
        told = list(row[:21])
        told[12], told[15] = bool(row[12]), MODES[_mode_code(row[15])]
        return SessionRow._make(told)

    def _turns(self, found: list[Sequence[Any]]) -> list[TurnRow]:
        """Rows of _TURN as words, their events' uids and their tools' names fetched together."""
        wanted = {row[place] for row in found for place in (9, 10, 13) if row[place] is not None}
        uids: dict[int, bytes] = dict(self._many("SELECT id, uid FROM event WHERE id IN ({})", wanted))
        self._learn({number for row in found for number in rows.numbers(row[16])})
        return [self._turn(row, uids) for row in found]

    def _turn(self, row: Sequence[Any], uids: dict[int, bytes]) -> TurnRow:
        ends = ENDS[row[8] - 1] if row[8] else None
        user = Preview(uids[row[10]], row[11] or "", bool(row[12])) if row[10] in uids else None
        reply = None
        if ends is not None and ends.value == "final" and row[13] in uids:
            reply = Preview(uids[row[13]], row[14] or "", bool(row[15]))
        return TurnRow(
            id=row[0],
            uid=row[1],
            session_id=row[2],
            session_uid=row[3],
            ordinal=row[4],
            started=row[5],
            updated=row[6],
            event_count=row[7],
            ends=ends,
            terminal_uid=uids.get(row[9]) if ends is not None else None,
            user_input=user,
            final_response=reply,
            tools=tuple(self._name(number) for number in rows.numbers(row[16])),
            types=tuple(EVENT_TYPES[number] for number in rows.numbers(row[17])),
        )

    def _turn_then(self, row: Sequence[Any], arrival: int) -> list[Any] | None:
        """A turn as it was when its later events had not arrived; None if it had none then."""
        from outcrop.turns import fold_stored

        fold = fold_stored(
            self._db.execute(
                "SELECT id, type, time, flags, ends, tool FROM event WHERE turn = ? AND id <= ? ORDER BY ord",
                (row[0], arrival),
            )
        )
        if fold.event_count == 0:
            return None
        old = list(row)
        old[5], old[6], old[7] = fold.started, fold.updated, fold.event_count
        old[8], old[9] = fold.ends, fold.terminal
        if fold.reply_event != row[13]:
            old[13] = fold.reply_event
            if fold.reply_event is not None:
                from outcrop.calls import fold as preview

                found = self._event(self._one(f"SELECT {_EVENT} FROM event WHERE id = ?", fold.reply_event))
                old[14], old[15] = preview(self.contents([found])[0].text)
        old[16] = ",".join(map(str, fold.tools))
        old[17] = ",".join(map(str, fold.types))
        return old

    def _event(self, row: Sequence[Any]) -> EventRow:
        id, uid, session, turn, ordinal, type, time, flags, tool, model, generator, rev, origin, block, slot = row
        self._places[id] = block, slot
        return EventRow(
            id,
            uid,
            session,
            turn,
            ordinal,
            EVENT_TYPES[type],
            time,
            bool(flags & (rows.INFERRED | rows.GUESSED)),
            self._name(tool) if tool else None,
            self._name(model) if model else None,
            self._name(generator) if generator else None,
            bool(flags & rows.COPY),
            rev,
            origin,
        )

    def _learn(self, numbers: set[int]) -> None:
        """Have names ready that are about to be asked for."""
        if unknown := numbers.difference(self._names):
            self._names.update(self._many("SELECT id, text FROM name WHERE id IN ({})", unknown))

    def _name(self, number: int) -> str:
        if number not in self._names:
            row = self._one("SELECT text FROM name WHERE id = ?", number)
            self._names[number] = row[0] if row else "?"
        return self._names[number]

    def _one(self, sql: str, *values: Any) -> Any:
        return self._db.execute(sql, values).fetchone()

    def _many(self, sql: str, values: Sequence[Any] | set[Any]) -> Iterator[Any]:
        """Rows of a statement with `IN ({})`, for any number of values."""
        wanted = list(values)
        for start in range(0, len(wanted), 500):
            piece = wanted[start : start + 500]
            yield from self._db.execute(sql.format(",".join("?" * len(piece))), piece)


def _mode_code(bits: int) -> int:
    return 3 if bits & 4 else 2 if bits & 2 else 1 if bits & 1 else 0


def _uid(row: Any) -> bytes | None:
    return row[0] if row else None
