"""Writing a batch into the history: which events are new, which turn each belongs to, what a session then is.

Runs inside the transaction that also writes the checkpoint. A file is either read on (`anew` False: events that are
stored already are left alone) or read anew from its beginning (`anew` True: stored events are replaced under their
ids, and those that the new reading does not hold any more go, `finish_anew`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from outcrop import calls, ids
from outcrop.harnesses import Harness
from outcrop.ingest import copies
from outcrop.ingest.sessions import NOTHING, Step, refresh, renumber, sums_of
from outcrop.ingest.staging import (
    REPEATED,
    Batch,
    Staged,
    apply_changes,
    content_of,
    flag_changes,
    searchable,
)
from outcrop.model import END_CODE, EVENT_TYPES, TYPE_CODE, Event, EventType
from outcrop.store.embedded import rows
from outcrop.store.embedded.write import ANSWER, CONVERSATION, FileRow, Writer, text_class
from outcrop.turns import TurnFold, fold_stored

_USER = TYPE_CODE[EventType.USER_INPUT]


@dataclass(slots=True)
class TurnWork:
    """A turn being added to: its row and its fold."""

    id: int
    uid: bytes
    session: int
    file: int
    generation: int
    ord: int
    place: int
    native: str | None = None
    hidden: int = 0
    settled: bool = False
    user_text: tuple[str, bool] = ("", False)
    reply_text: tuple[str, bool] = ("", False)
    reply: str | None = None
    """Full text of a reply that this batch brought; cut when the row is written."""
    fold: TurnFold = field(default_factory=TurnFold)

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> TurnWork:
        fold = TurnFold(
            started=row[9],
            updated=row[10],
            event_count=row[11],
            ends=row[12],
            terminal=row[14],
            user_event=row[15],
            reply_event=row[18],
            active=bool(row[21]),
            tools=rows.numbers(row[22]),
            types=rows.numbers(row[23]),
            last_event=row[24],
        )
        return cls(
            id=row[0], uid=row[1], session=row[2], file=row[3], generation=row[4], native=row[5], ord=row[6],
            place=row[7], hidden=row[8], settled=bool(row[13]), user_text=(row[16] or "", bool(row[17])),
            reply_text=(row[19] or "", bool(row[20])), fold=fold,
        )  # fmt: skip

    def row(self) -> tuple[Any, ...]:
        """Values in the order of write.TURN_COLUMNS."""
        fold = self.fold
        if self.reply is not None:
            self.reply_text = calls.fold(self.reply)
        return (
            self.id, self.uid, self.session, self.file, self.generation, self.native, self.ord, self.place,
            self.hidden, fold.started, fold.updated, fold.event_count, fold.ends, int(self.settled), fold.terminal,
            fold.user_event, self.user_text[0], int(self.user_text[1]), fold.reply_event, self.reply_text[0],
            int(self.reply_text[1]), int(fold.active), ",".join(map(str, fold.tools)),
            ",".join(map(str, fold.types)), fold.last_event,
        )  # fmt: skip


class SessionWork:
    """One session while a batch is written into it: the current turn, the open block, what is new."""

    def __init__(
        self, writer: Writer, file: FileRow, id: int, uid: bytes, anew: bool, given_up: frozenset[int]
    ) -> None:
        self.writer = writer
        self.file = file
        self.id = id
        self.uid = uid
        self.anew = anew
        self.given_up = given_up
        """Files that are gone or outranked: what they brought goes over to a file that is read anew and holds it."""
        self.turns: dict[bytes, TurnWork] = {}
        self.by_id: dict[int, TurnWork] = {}
        self.events: list[tuple[Any, ...]] = []
        self.replaced: list[tuple[Any, ...]] = []
        self.arrived: list[copies.Arrived] = []
        self.rebuild: set[int] = set()
        self.moved = False
        """An existing ordinal changed or an event went."""
        self._first: int | None = None
        self._blocks = tuple(OpenBlock(writer, id, size) for size in rows.BLOCK_SIZE)
        self._places: dict[tuple[str, str], int] = {}
        db = writer.db
        self.before = self.after = NOTHING
        self.amended: list[int] = []
        self._last_ord = db.execute("SELECT max(ord) FROM turn WHERE session = ?", (id,)).fetchone()[0] or 0
        self._last_place = 0
        self.current: TurnWork | None = None
        if not anew and (last := self._last_turn()) is not None:
            self._last_place = last[1]
            self.current = self._load(last[0])

    # Turns

    def _last_turn(self) -> tuple[int, int] | None:
        """(id, place) of the last turn that this file brought, found without a look at all of them.

        The shown turns of a file have their numbers in the order of their places, and after the hidden ones.
        """
        of_file = "SELECT id, place, ord FROM turn WHERE session = ? AND file = ? ORDER BY"
        found = self.writer.db.execute(f"{of_file} ord DESC LIMIT 1", (self.id, self.file.id)).fetchone()
        if found is not None and found[2] == 0:
            found = self.writer.db.execute(f"{of_file} place DESC LIMIT 1", (self.id, self.file.id)).fetchone()
        return None if found is None else (found[0], found[1])

    def follow(self, turn: int) -> None:
        """The reading stands in a turn whose event another file already brought."""
        self.current = self._load(turn)

    def turn_for(self, staged: Staged) -> TurnWork:
        """The turn that the next event belongs to: turns are cut by native ids, else by prompts."""
        event = staged.event
        current = self.current
        if current is None:
            current = self._open(b"first:" + staged.uid, event.turn)
        elif event.turn is not None and current.native != event.turn:
            if current.native is None and current.fold.user_event is None:
                current.native = event.turn
            else:
                self._settle(event)
                current = self._open(b"turn:" + event.turn.encode("utf-8", "surrogatepass"), event.turn)
        elif event.opens and event.turn is None and current.fold.user_event is not None:
            self._settle(event)
            current = self._open(b"open:" + staged.uid, None)
        self.current = current
        return current

    def _settle(self, event: Event) -> None:
        if event.settles and self.current is not None and not self.current.settled:
            self.current.settled = True
            self.current.fold.settle()

    def _open(self, key: bytes, native: str | None) -> TurnWork:
        if native is not None and (first := self._first_turn()) is not None and first.native == native:
            return first  # it began before its native id was known, so its own id does not tell it
        uid = ids.turn_uid(self.uid, key)
        known = self.turns.get(uid)
        if known is not None:
            return known
        row = self.writer.turn(uid)
        if row is not None:
            turn = TurnWork.of_row(row)
            older = self.anew and turn.file == self.file.id and turn.generation != self.file.generation
            if older or turn.file in self.given_up:
                self._last_place += 1
                turn = TurnWork(
                    turn.id, uid, self.id, self.file.id, self.file.generation, turn.ord, self._last_place, native,
                    turn.hidden,
                )  # fmt: skip
        else:
            self._last_ord += 1
            self._last_place += 1
            turn = TurnWork(
                self.writer.take("turn"), uid, self.id, self.file.id, self.file.generation, self._last_ord,
                self._last_place, native,
            )  # fmt: skip
        self._hold(turn)
        return turn

    def _first_turn(self) -> TurnWork | None:
        """The turn that this file's records began with, if it was begun in this reading."""
        if self._first is None:
            for turn in self.turns.values():
                if turn.place == 1 and turn.file == self.file.id and turn.generation == self.file.generation:
                    self._first = turn.id
                    break
            else:
                row = self.writer.db.execute(
                    "SELECT id FROM turn WHERE session = ? AND file = ? AND place = 1 AND generation = ?",
                    (self.id, self.file.id, self.file.generation),
                ).fetchone()
                self._first = row[0] if row else None
        return self._load(self._first) if self._first else None

    def _load(self, id: int) -> TurnWork:
        if id not in self.by_id:
            row = self.writer.turn_by_id(id)
            assert row is not None, "an event's turn exists"
            self._hold(TurnWork.of_row(row))
        return self.by_id[id]

    def _hold(self, turn: TurnWork) -> None:
        self.turns[turn.uid] = turn
        self.by_id[turn.id] = turn

    # Events

    def add(self, staged: Staged, id: int, stored: bool) -> None:
        """Put an event, new or read anew, at the end of its turn."""
        event = staged.event
        writer = self.writer
        turn = self.turn_for(staged)
        kind = TYPE_CODE[event.type]
        ends = END_CODE[event.ends] if event.ends is not None else 0
        tool = writer.name(event.tool) if event.tool is not None else None
        fold = turn.fold
        fold.add(id, kind, staged.time, staged.flags, ends, tool)
        if fold.user_event == id:
            turn.user_text = calls.fold(event.text)
        if fold.reply_event == id:
            turn.reply = event.text
        block, slot = self._blocks[text_class(kind)].put(content_of(event))
        row = (
            id, staged.uid, self.id, turn.id, fold.event_count, self.file.id, self.file.generation, kind, staged.time,
            staged.flags, ends, tool,
            writer.name(event.model) if event.model is not None else None,
            writer.name(event.generator) if event.generator is not None else None,
            self._place(event) if event.cwd is not None else None,
            staged.origin, block, slot,
        )  # fmt: skip
        (self.replaced if stored else self.events).append(row)
        if not stored:
            self.arrived.append(copies.Arrived(staged.uid, event.key, staged.origin))

    def _place(self, event: Event) -> int:
        key = (event.cwd or "", event.branch or "")
        number = self._places.get(key)
        if number is None:
            number, _ = self.writer.place(self.id, *key)
            self._places[key] = number
        return number

    def close_blocks(self) -> None:
        for block in self._blocks:
            block.close()


class OpenBlock:
    """A block of contents that is being filled. Conversations have blocks of their own: small ones, quickly read."""

    def __init__(self, writer: Writer, session: int, size: rows.BlockSize) -> None:
        self._writer = writer
        self._session = session
        self._size = size
        self._number = 0
        self._contents: list[bytes] = []
        self._bytes = 0

    def put(self, content: dict[str, Any]) -> tuple[int, int]:
        """Add a content; its block and its slot in it."""
        data = rows.encode_content(content)
        if self._size.full(len(self._contents), self._bytes + len(data)):
            self.close()
        if not self._contents:
            self._number = self._writer.take("block")
        self._contents.append(data)
        self._bytes += len(data)
        return self._number, len(self._contents) - 1

    def close(self) -> None:
        if self._contents:
            self._writer.add_block(self._number, self._session, self._contents)
            self._contents, self._bytes = [], 0


def write_batch(writer: Writer, harness: Harness, file: FileRow, batch: Batch, anew: bool) -> set[int]:
    """Write a batch; the ids of the sessions that it touched. The caller saves the file's row and commits."""
    works: dict[str, SessionWork] = {}
    group = harness.group(file.source)

    def work_of(native: str) -> SessionWork:
        work = works.get(native)
        if work is None:
            uid = ids.session_uid(harness.name, group, native)
            number = writer.session_id(uid)
            if number is None:
                number = writer.create_session(uid, harness.name, file.source, native)
            work = works[native] = SessionWork(writer, file, number, uid, anew, given_up)
        return work

    known = writer.known_events(list(batch.events))
    others = {stored.file for stored in known.values()} - {file.id}
    outranked = frozenset(id for id, path in writer.paths(others) if harness.outranks(file.path, path))
    given_up = outranked | writer.missing_files(others) if anew else outranked
    fresh = writer.take("event", len(batch.events))
    repeated: set[bytes] = set()
    todo: list[tuple[int, int]] = []
    for uid, staged in batch.events.items():
        work = work_of(staged.native)
        stored = known.get(uid)
        if stored is None:
            work.add(staged, fresh, stored=False)
            if searchable(staged.event):
                todo.append((fresh, text_class(TYPE_CODE[staged.event.type])))
            fresh += 1
        elif stored.file in given_up or (anew and stored.file == file.id and stored.generation != file.generation):
            _replace(work, staged, stored, todo)
            if not anew:
                work.rebuild |= {stored.turn, work.replaced[-1][3]}
        else:
            repeated.add(uid)
            if stored.file != file.id:
                work.follow(stored.turn)
    for native, uid, changes in batch.amends:
        _amend(work_of(native), uid, changes)
    for native, name, value in batch.facts:
        writer.set_fact(work_of(native).id, file.id, name, value)
    for work in works.values():
        work.close_blocks()
        writer.insert_events(work.events)
        writer.replace_events(work.replaced)
        touched = [turn.id for turn in work.turns.values() if turn.fold.event_count]
        work.before = sums_of(writer, touched)
        writer.save_turns(turn.row() for turn in work.turns.values() if turn.fold.event_count)
        work.after = sums_of(writer, touched)
    writer.todo(todo)
    if batch.first_time is not None:
        for work in works.values():
            _settle_guesses(work, batch.first_time)
    for work in works.values():
        for turn in work.rebuild:
            rebuild_turn(writer, turn)
        more = None if anew else sum(row[7] <= ANSWER for row in work.events)
        plain = not (anew or work.rebuild or work.replaced or work.moved or batch.first_time is not None)
        step = Step(work.before, work.after, [row[0] for row in work.events] + work.amended) if plain else None
        refresh(writer, work.id, file.id, harness, work.moved, step, more)
    for work in works.values():
        for changed in copies.decide(writer, work.id, work.arrived):
            refresh(writer, changed, file.id, harness, moved=renumber(writer, changed))
    _count(writer, file, batch, repeated, {native: work.id for native, work in works.items()})
    return {work.id for work in works.values()}


@dataclass(slots=True, frozen=True)
class Keeping:
    """What stays of an older reading of a place, flagged as gone from there (ruling 41)."""

    upto: int
    """The newest event that was stored before this reading."""
    renamed: bool
    """The adapter became newer: what it does not tell any more it tells under another name, or in another way."""


def finish_anew(
    writer: Writer, harness: Harness, file: FileRow, sessions: set[int], keeping: Keeping | None = None
) -> set[int]:
    """A file was read anew to its end: what only the older reading held goes, or stays as `keeping` says.

    Returns all sessions touched.
    """
    db = writer.db
    touched = set(sessions)
    touched.update(
        row[0] for row in db.execute("SELECT DISTINCT session FROM turn WHERE file = ? AND generation < ?",
                                     (file.id, file.generation))
    )  # fmt: skip
    for session in touched:
        gone = db.execute(
            "SELECT id, type, turn, flags, block, slot FROM event"
            " WHERE turn IN (SELECT id FROM turn WHERE session = ?) AND file = ? AND generation < ? ORDER BY id",
            (session, file.id, file.generation),
        ).fetchall()
        kept, moved = _kept(writer, file, session, gone, keeping)
        db.executemany(
            "UPDATE event SET flags = flags | ?, generation = ? WHERE id = ?",
            [(rows.DELETED, file.generation, id) for id in kept],
        )
        lost = [row for row in gone if row[0] not in kept]
        db.executemany("DELETE FROM event WHERE id = ?", [(row[0],) for row in lost])
        writer.todo((row[0], text_class(row[1])) for row in lost)
        # What is gone from a turn whose other events have new names stands where those went.
        back = [(moved[row[2]], row[0]) for row in gone if row[0] in kept and row[2] in moved]
        db.executemany("UPDATE event SET turn = ? WHERE id = ?", back)
        shared = db.execute(
            "SELECT DISTINCT turn FROM event WHERE turn IN (SELECT id FROM turn WHERE session = ? AND file = ?)"
            " AND file <> ?",
            (session, file.id, file.id),
        ).fetchall()
        left = db.execute(
            "SELECT id FROM turn WHERE session = ? AND file = ? AND generation < ?",
            (session, file.id, file.generation),
        ).fetchall()  # the new reading opened them no more
        again = {row[2] for row in gone} | {row[0] for row in (*shared, *left)} | {turn for turn, _ in back}
        for turn in again:
            rebuild_turn(writer, turn)
        if gone:
            writer.step_meta("order_rev")
            db.execute("UPDATE session SET shape = shape + 1 WHERE id = ?", (session,))
        writer.drop_unused_blocks(session)
        renumber(writer, session)
        db.execute("UPDATE session SET first_event = NULL, last_event = NULL, mode = 0 WHERE id = ?", (session,))
        refresh(writer, session, file.id, harness, moved=False)
        for changed in copies.decide_again(writer, session):
            refresh(writer, changed, file.id, harness, moved=renumber(writer, changed))
    return touched


def _kept(
    writer: Writer, file: FileRow, session: int, gone: list[Any], keeping: Keeping | None
) -> tuple[set[int], dict[int, int]]:
    """Which of the events that a reading does not hold any more are history of their own; and turns → new turns.

    One that came back in this very reading under another name, saying the same, is not: stores put rows in anew.
    """
    if keeping is None or not gone:
        return set(), {}
    kept = {row[0] for row in gone if row[3] & rows.DELETED}
    fresh = writer.db.execute(
        "SELECT type, block, slot, turn FROM event WHERE turn IN (SELECT id FROM turn WHERE session = ?)"
        " AND file = ? AND generation = ? AND id > ? ORDER BY id DESC",
        (session, file.id, file.generation, keeping.upto),
    ).fetchall()
    back: dict[str, list[int]] = {}
    for row in fresh:
        back.setdefault(_said(writer, *row[:3]), []).append(row[3])
    moved: dict[int, int] = {}
    for row in gone:
        found = back.get(_said(writer, row[1], row[4], row[5])) if back and row[0] not in kept else None
        if found:
            moved.setdefault(row[2], found.pop())
        elif not keeping.renamed:
            kept.add(row[0])
    return kept, {old: new for old, new in moved.items() if old != new}


def _said(writer: Writer, kind: int, block: int, slot: int) -> str:
    """What an event says, whatever its name."""
    content = writer.content(block, slot)
    return repr((kind, content.get("text"), content.get("arguments"), content.get("call_id")))


def rebuild_turn(writer: Writer, id: int) -> None:
    """Fold a stored turn again, after its events changed; an empty one goes."""
    db = writer.db
    row = writer.turn_by_id(id)
    if row is None:
        return
    turn = TurnWork.of_row(row)
    found = db.execute(
        "SELECT id, type, time, flags, ends, tool, block, slot, ord FROM event WHERE turn = ? ORDER BY ord, id", (id,)
    ).fetchall()
    if not found:
        db.execute("DELETE FROM turn WHERE id = ?", (id,))
        return
    turn.fold = fold_stored((event[:6] for event in found), turn.settled)
    places = {event[0]: (event[6], event[7]) for event in found}
    for event, column in ((turn.fold.user_event, "user_text"), (turn.fold.reply_event, "reply_text")):
        text = writer.content(*places[event]).get("text", "") if event is not None else ""
        setattr(turn, column, calls.fold(text))
    db.executemany(
        "UPDATE event SET ord = ? WHERE id = ?",
        [(ord, event[0]) for ord, event in enumerate(found, 1) if event[8] != ord],
    )
    writer.save_turns([turn.row()])


def _replace(work: SessionWork, staged: Staged, stored: Any, todo: list[tuple[int, int]]) -> None:
    """An event that is stored was read anew: same id, `rev` stepped if its meaning changed."""
    writer = work.writer
    before = writer.db.execute("SELECT turn, ord, type, time, flags FROM event WHERE id = ?", (stored.id,)).fetchone()
    if staged.flags & before[4] & rows.GUESSED:
        staged.time = before[3]  # of a file's times the one at first sight counts (ruling 22)
    old = writer.content(stored.block, stored.slot)
    work.add(staged, stored.id, stored=True)
    row = work.replaced[-1]
    if (row[3], row[4]) != (before[0], before[1]):
        work.moved = True
    if row[8] != before[3]:
        writer.step_meta("order_rev")
    if (row[7], row[8]) != (before[2], before[3]) or old != content_of(staged.event):
        writer.db.execute("UPDATE event SET rev = rev + 1 WHERE id = ?", (stored.id,))
        todo.append((stored.id, text_class(row[7])))


def _amend(work: SessionWork, uid: bytes, changes: dict[str, Any]) -> None:
    """Change a stored event under its id."""
    writer = work.writer
    row = writer.db.execute(
        "SELECT id, turn, type, time, flags, ends, tool, model, generator, block, slot FROM event WHERE uid = ?", (uid,)
    ).fetchone()
    if row is None:
        return
    id, turn, kind, time, flags, ends, tool, model, generator, block, slot = row
    work.amended.append(id)
    content = writer.content(block, slot)
    event = Event("", EVENT_TYPES[kind], **content)
    staged = Staged(event, uid, "", time, flags, None)
    apply_changes(staged, changes)
    flags = flag_changes(staged.flags, changes)
    changed = content_of(event)
    if changed != content:
        writer.replace_content(block, slot, rows.encode_content(changed))
    if "ends" in changes:
        ends = END_CODE[changes["ends"]] if changes["ends"] is not None else 0
    if staged.time != time:
        writer.step_meta("order_rev")
    searched = ("text", "arguments")
    meaning = (
        staged.time != time or "tool" in changes or any(changed.get(name) != content.get(name) for name in searched)
    )
    if changes.get("cwd"):
        place, _ = writer.place(work.id, changes["cwd"], changes.get("branch") or "")
        writer.db.execute("UPDATE event SET place = ? WHERE id = ?", (place, id))
    writer.db.execute(
        "UPDATE event SET time = ?, flags = ?, ends = ?, tool = ?, model = ?, generator = ?, rev = rev + ?"
        " WHERE id = ?",
        (
            staged.time, flags, ends,
            writer.name(changes["tool"]) if changes.get("tool") else tool,
            writer.name(changes["model"]) if changes.get("model") else model,
            writer.name(changes["generator"]) if changes.get("generator") else generator,
            int(meaning), id,
        ),
    )  # fmt: skip
    if meaning:
        stale(writer, id, kind)
    if {"ends", "superseded", "partial", "time", "text", "tool"} & changes.keys():
        # The row of a turn that this batch adds to is written first and then folded again.
        work.rebuild.add(turn)


def stale(writer: Writer, id: int, kind: int) -> None:
    """Queue an event's document, and those of the next two conversational events, whose context it is."""
    documents = [(id, text_class(kind))]
    if text_class(kind) == CONVERSATION:
        documents += [
            (row[0], CONVERSATION)
            for row in writer.db.execute(
                "SELECT e.id FROM event e JOIN turn t ON t.id = e.turn, event me JOIN turn mine ON mine.id = me.turn"
                " WHERE me.id = ? AND t.session = mine.session AND e.type <= 1 AND t.ord >= mine.ord"
                " AND (t.ord, e.ord) > (mine.ord, me.ord) AND t.ord <= mine.ord + 2 ORDER BY t.ord, e.ord LIMIT 2",
                (id,),
            )
        ]
    writer.todo(documents)


def _settle_guesses(work: SessionWork, time: int) -> None:
    """Give the first recorded time to the events that came before it (ruling 22)."""
    db = work.writer.db
    turns = [
        row[0]
        for row in db.execute(
            "SELECT DISTINCT turn FROM event WHERE turn IN (SELECT id FROM turn WHERE session = ?) AND file = ?"
            " AND flags & ?",
            (work.id, work.file.id, rows.GUESSED),
        )
    ]
    for turn in turns:
        changed = db.execute(
            "UPDATE event SET time = ?, flags = flags & ~?, rev = rev + 1 WHERE turn = ? AND file = ? AND flags & ?"
            " RETURNING id, type",
            (time, rows.GUESSED, turn, work.file.id, rows.GUESSED),
        ).fetchall()
        work.writer.todo((row[0], text_class(row[1])) for row in changed)
        work.rebuild.add(turn)
    if turns:
        work.writer.step_meta("order_rev")


def _count(writer: Writer, file: FileRow, batch: Batch, repeated: set[bytes], sessions: dict[str, int]) -> None:
    counts = batch.counts
    for (version, kind, outcome), made in batch.record_events:
        told = REPEATED if repeated and all(uid in repeated for uid in made) else outcome
        counts[version, kind, told] += 1
    writer.count(file.id, [(*key, n) for key, n in counts.items()])
    for offset, line, reason, detail in batch.problems:
        writer.problem(file.id, offset, line, reason, detail)
    for kept in batch.kept:
        session = None if kept.native is None else sessions.get(kept.native)
        writer.keep(file.id, session, kept.offset, kept.line, kept.reason, kept.hash, kept.origin, kept.data)
