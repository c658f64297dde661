"""The writer of the text index in `text/`: it alone empties `text_todo` into it; `text_reader` searches it.

Rows are the truth. A commit steps `meta.generation`, writes documents and the marker, then forgets exactly the entries
that it read: doing a part twice is harmless, and a kill at any instant loses nothing. An index that is missing,
damaged, of another store or of another schema is built anew from the rows.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tantivy import Document, Index, IndexWriter

from outcrop.errors import ResourceExhausted
from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded import allocator, text_fields, text_files, text_merge
from outcrop.store.embedded.database import CACHE_KIB, DISK_FULL, engine_errors
from outcrop.store.embedded.mapped import Pages
from outcrop.store.embedded.text_fields import CONVERSATION_CODES, Marker
from outcrop.store.embedded.text_reader import FOLDER, TextFailure, engine_error, fits, is_engine_failure, stored_meta
from outcrop.store.embedded.text_rows import TextRows

HEAP_BYTES = 48_000_000
"""16 MB costs twice the CPU, more than 64 gains nothing. One thread for the same reason."""
FIRST_COMMIT = 2_000
"""Documents of a writer's first commit, so that the newest sessions are found soon."""
NEXT_COMMIT = 30_000
"""Of each later one: commits of 20,000 cost a fifth more CPU, as their segments are merged more often."""
QUEUE = 10_000
"""Documents that the engine lets wait for its thread, whatever their size."""
QUEUE_BYTES = 40_000_000
"""Of those that may wait: a commit ends before there are more, as it alone waits for the queue to be empty."""
DOCUMENT_BYTES = 1_000
"""What a document holds besides its texts."""
PAGES_KIB = 8 * 1024
"""Of rows that stay in memory while many documents are made: sessions are read one after another, each once."""
QUIET_MS = 60_000
"""A session of which nothing arrived for this long is quiet: its whole document is written."""
FULL_BYTES = 16 * 1024 * 1024
"""Left on a disk on which a part of an index may have found no room."""
_READ_AT_ONCE = 500
TAIL = 32
"""Documents up to which a small commit writes those of the small commits before it again, all into one segment.

The engine merges eight segments whatever their size, and all small ones with them: with a segment for each message it
would write the newest ten thousand documents again at every eighth message."""
MERGED_A_SECOND = 20_000
"""Documents, at the least."""
_NO_MARKER = 0

ORDERED = 150_000
"""Entries that are put in order at once: all of a long history would hold 100 bytes of memory each."""

_ORDER = """CREATE TEMP TABLE text_order AS
    SELECT q.seq, q.doc, 0 AS whole FROM text_todo q LEFT JOIN event e ON e.id = q.doc
    LEFT JOIN session s ON s.id = e.session LEFT JOIN turn t ON t.id = e.turn
    WHERE q.class <= ? ORDER BY {} s.updated DESC, e.session, t.ord, e.turn, e.ord, q.seq {}"""
"""What one commit holds is read session by session, so that each block is decoded once; of more, talk comes first."""
_ORDER_WHOLE = """CREATE TEMP TABLE text_order AS
    SELECT q.seq, q.doc, 1 AS whole FROM text_todo q LEFT JOIN session s ON s.id = q.doc WHERE q.class = 2
    AND (s.id IS NULL OR s.event_count = 0 OR s.messages >= 2 * s.whole OR q.seq BETWEEN ? AND ? OR abs(? - coalesce(
        (SELECT f.seen_at FROM turn t JOIN file f ON f.id = t.file WHERE t.session = s.id ORDER BY t.ord DESC LIMIT 1),
        0)) >= ?)
    ORDER BY s.updated DESC, q.seq"""
"""Whole sessions that are quiet, gone, twice as long as their document says, or wanted by a rebuild.

When the file of its last turn was read tells when something arrived: what the records say may be of another year."""
_QUEUE_SESSIONS = "INSERT INTO text_todo (doc, class) SELECT id, 2 FROM session WHERE event_count > 0 ORDER BY id"
_QUEUE_ALL = f"""INSERT INTO text_todo (doc, class) SELECT id, type NOT IN {CONVERSATION_CODES} FROM event
    WHERE type <> {TYPE_CODE[EventType.UNKNOWN]} ORDER BY id"""
_STEP = """INSERT INTO meta VALUES ('generation', 1) ON CONFLICT DO UPDATE SET v = v + 1 RETURNING v"""


def rebuild(connection: sqlite3.Connection) -> None:
    """Queue everything into a new `text-<n>`; the old index serves until that is complete. The caller may write."""
    with engine_errors(), _rows(connection):
        meta = stored_meta(connection)
        number = int(meta.get("text_count", 0)) + 1
        if not meta.get("text_dir"):  # nothing serves that older entries could keep fresh
            connection.execute("DELETE FROM text_todo")
        before = _last_entry(connection)
        connection.execute(_QUEUE_ALL)
        connection.execute(_QUEUE_SESSIONS)
        after = _last_entry(connection)
        _set(
            connection,
            text_count=number,
            text_next=f"text-{number}",
            text_started=0,
            text_from=before,  # entries in (from, to] are of the rebuild alone
            text_to=after,
        )


class TextWriter:
    """The one writer of the text index of a data folder. Its process holds the store's writer lock.

    What it finds damaged it builds anew.
    """

    def __init__(self, home: Path) -> None:
        allocator.give_back()
        self.hurry: Callable[[], bool] = lambda: False
        """Whether something more urgent than the rest of a commit waits."""
        self.quiet_ms = 0
        """How long a session is quiet before its whole document is written; who stays to do it later sets QUIET_MS."""
        self._folder = home / FOLDER
        self._pages = Pages(self._folder)
        self._thorough = False
        self._open: dict[str, IndexWriter] = {}
        self._committed = False
        self._tail: dict[int, None] = {}
        """Documents of the newest segment, while it is small."""
        self._looked = False
        """Whether a merge that another process left undone was looked for."""
        self._littered = False
        """Whether files that a killed run left may stand in the way of those that are to be written."""
        self._since = self._newest = 0

    def drain(
        self,
        connection: sqlite3.Connection,
        progress: Callable[[int, int], None] | None = None,
        conversations_only: bool = False,
        most: int | None = None,
        breathe: Callable[[], bool] | None = None,
    ) -> int:
        """Bring the index up to the rows; returns how many stale entries of events were settled.

        `conversations_only` leaves the rest queued: while much is being read, talk is found first. `most` leaves all
        but the first so many queued. `breathe` is called after each commit; true: what should be found before all else
        was queued meanwhile, so that a short commit brings it next. While `hurry` says so, commits end early.

        `progress` is called with (settled, all) after each commit. Raises ResourceExhausted on a full disk,
        BackendFailure where the engine or the database fails; what was not settled stays queued.
        """
        with engine_errors():
            try:
                return self._drain(connection, progress, conversations_only, most, breathe)
            except TextFailure:
                # What it failed on may have been lost or damaged since it was opened: once more, without that.
                self._thorough = self._littered = True
                return self._drain(connection, progress, conversations_only, most, breathe)
            finally:
                connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")

    def _drain(
        self,
        connection: sqlite3.Connection,
        progress: Callable[[int, int], None] | None,
        conversations_only: bool,
        limit: int | None,
        breathe: Callable[[], bool] | None,
    ) -> int:
        self._prepare(connection)
        rows = TextRows(connection)
        done = 0
        most = (0 if conversations_only else 1,)
        whole = False
        while True:
            connection.execute("DROP TABLE IF EXISTS temp.text_order")
            if whole:
                total = self._order_whole(connection)
            else:
                total = int(connection.execute("SELECT count(*) FROM text_todo WHERE class <= ?", most).fetchone()[0])
                at_once = NEXT_COMMIT if self._committed else FIRST_COMMIT
                limited = f"LIMIT {ORDERED}" if total > ORDERED else ""
                connection.execute(_ORDER.format("q.class," if total > at_once else "", limited), most)
            at = 0
            anew = False
            ordered = min(total, ORDERED) if not whole else total
            while at < ordered and not anew and (limit is None or done < limit):
                if total > FIRST_COMMIT:
                    self._pages.watch()
                    connection.execute(f"PRAGMA cache_size=-{PAGES_KIB}")
                at_once = NEXT_COMMIT if self._committed else FIRST_COMMIT
                took = self._commit(connection, rows, at, at_once if limit is None else min(at_once, limit - done))
                self._committed = True
                at += took
                if not whole:  # those derive once more from what is found already: nobody waits for them
                    done += took
                    if progress is not None:
                        progress(done, done + total - at)
                if breathe is not None and breathe():
                    anew, self._committed, whole = True, False, False
            if limit is not None and done >= limit:
                break
            if total == 0:
                if whole or conversations_only or limit is not None:
                    break
                whole = True  # last of all, when every event is found
        connection.execute("DROP TABLE IF EXISTS temp.text_order")
        if total == 0 and not conversations_only:
            self._finish(connection)
        return done

    def _order_whole(self, connection: sqlite3.Connection) -> int:
        meta = stored_meta(connection)
        rebuilt = (int(meta["text_from"]) + 1, int(meta["text_to"])) if meta.get("text_next") else (1, 0)
        connection.execute(_ORDER_WHOLE, (*rebuilt, time.time_ns() // 1_000_000, self.quiet_ms))
        return int(connection.execute("SELECT count(*) FROM text_order").fetchone()[0])

    def doubt(self) -> None:
        """Have the next drain look at all files, not only at those that changed since they were last found sound."""
        self._thorough = True

    def merge(self, connection: sqlite3.Connection, everything: bool = False) -> None:
        """Have the engine merge segments of the serving index where there are many, or as many as it can; that goes on
        after the return.

        Raises as `drain` does.
        """
        with engine_errors():
            meta = stored_meta(connection)
            name = meta.get("text_dir")
            if not name or not (found := text_merge.segments(self._folder / name)):
                return
            again = not self._looked and text_merge.left_over(found)
            self._looked = True
            # What is not sound the next drain sees to.
            if not (again or text_merge.deleted_documents(found, everything)) or not self._sound(name, meta):
                return
            if name in self._open:
                self._end(name)  # what is being merged already would be in no group
            found = text_merge.segments(self._folder / name) or found
            deleted = text_merge.deleted_documents(found, everything)
            if again or deleted:
                self._pages.watch(sum(one.documents for one in found) / MERGED_A_SECOND)
                self._tail = {}
                self._commit_empty(connection, name, deleted)

    def close(self) -> None:
        """Let merges end and give up the engine's lock; what was not committed stays queued."""
        for name in list(self._open):
            self._end(name)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Leave `text_dir`, `text_next` or both naming an index that can be written, and everything it lacks queued."""
        for name in [name for name in self._open if not (self._folder / name / "meta.json").exists()]:
            self._end(name)
        meta = stored_meta(connection)
        self._since = 0 if self._thorough else int(meta.get("text_sound") or 0)
        self._thorough = False
        self._newest = self._since
        current, following = meta.get("text_dir"), meta.get("text_next")
        if current and not self._sound(current, meta):
            with _rows(connection):
                _set(connection, text_dir=None)
            current = None
        if following and not self._sound(following, meta):
            if int(meta.get("text_started", 0)):
                following = None
            else:
                self._remove(following)
        if self._newest != meta.get("text_sound"):
            with _rows(connection):
                _set(connection, text_sound=self._newest)
        if not following and (not current or meta.get("text_next")):
            rebuild(connection)

    def _sound(self, name: str, meta: dict[str, Any]) -> bool:
        """Whether `name` holds an index of this store and schema, not younger than the rows."""
        if name in self._open:
            return True
        try:
            newest = text_files.newest_sound(self._folder / name, self._since)
            index = text_fields.open_index(self._folder / name)
            marker = text_fields.read_marker(index.searcher())
        except BaseException as error:
            if not is_engine_failure(error):
                raise
            return False
        self._newest = max(self._newest, newest)
        return marker is not None and fits(marker, meta) and marker.generation <= int(meta.get("generation", 0))

    def _commit(self, connection: sqlite3.Connection, rows: TextRows, at: int, most: int) -> int:
        """One text commit of up to `most` entries of `text_order` from the row after `at` on; returns their number."""
        took = 0
        with self._engine(connection):
            with _rows(connection):
                meta = stored_meta(connection)
                generation = int(connection.execute(_STEP).fetchone()[0])
                everywhere = [self._writer(name) for key in ("text_dir", "text_next") if (name := meta.get(key))]
                fresh = everywhere[-1:] if meta.get("text_next") else everywhere
                touched = set(fresh)
                rebuilt = range(int(meta.get("text_from") or 0) + 1, int(meta.get("text_to") or 0) + 1)
                rows.forget()
                narrow: dict[int, bool] = {}
                whole = False
                queue = _Queue()
                while took < most and not queue.full and not (took and self.hurry()):
                    entries = connection.execute(
                        "SELECT seq, doc, whole FROM text_order WHERE rowid > ? ORDER BY rowid LIMIT ?",
                        (at + took, min(_READ_AT_ONCE, most - took)),
                    ).fetchall()
                    if not entries:
                        break
                    whole = bool(entries[0][2])  # an order holds one kind alone
                    narrow = {} if whole else dict.fromkeys(self._tail, False)
                    if not whole:
                        self._tail = {}
                    for seq, doc, _ in entries:
                        narrow[doc] = seq in rebuilt and narrow.get(doc, True)
                    settled = set()
                    for doc, document, size in (_wholes if whole else _events)(connection, rows, list(narrow)):
                        writers = fresh if narrow[doc] else everywhere
                        touched.update(writers)
                        for writer in writers:
                            writer.delete_documents_by_term("whole" if whole else "id", doc)
                            if document is not None:
                                writer.add_document(document)
                        settled.add(doc)
                        queue.add(size)
                        if queue.full and entries[0][1] in settled:
                            break
                    took += next((n for n, (_, doc, _) in enumerate(entries) if doc not in settled), len(entries))
            marker = Marker(str(meta.get("epoch", "")), text_fields.SCHEMA, generation)
            for writer in touched:
                writer.delete_documents_by_term("marker", 1)
                writer.add_document(marker.document())
                writer.commit()
        if not whole and took < TAIL and len(narrow) < TAIL:
            self._tail = dict.fromkeys(narrow)
        with _rows(connection):
            connection.execute(
                "DELETE FROM text_todo WHERE seq IN (SELECT seq FROM text_order WHERE rowid > ? AND rowid <= ?)",
                (at, at + took),
            )
            if following := meta.get("text_next"):
                if meta.get("text_dir"):
                    _set(connection, text_started=1)
                else:  # nothing served before: the part that is there serves from now on
                    _set(connection, text_dir=following, text_next=None, text_started=0)
        return took

    def _finish(self, connection: sqlite3.Connection) -> None:
        """Everything is settled: a complete new index takes over, and the folders of others go."""
        meta = stored_meta(connection)
        if following := meta.get("text_next"):
            if following not in self._open:  # a history without one event still gets its index
                self._commit_empty(connection, following)
            with _rows(connection):
                _set(connection, text_dir=following, text_next=None, text_started=0)
            meta["text_dir"] = following
        for other in list(self._open):
            if other != meta.get("text_dir"):
                self._end(other)
        for path in self._folder.glob("text-*"):
            if path.name != meta.get("text_dir"):
                self._remove(path.name)
        if following:
            self.merge(connection, everything=True)

    def _commit_empty(self, connection: sqlite3.Connection, name: str, deleted: int = 0) -> None:
        """A commit of the marker alone, and of so many documents that are deleted with it."""
        with _rows(connection):
            epoch = str(stored_meta(connection).get("epoch", ""))
            generation = int(connection.execute(_STEP).fetchone()[0])
        with self._engine(connection):
            writer = self._writer(name)
            nothing = text_fields.empty_document(text_fields.DELETED)
            for _ in range(deleted):
                writer.add_document(nothing)
            writer.delete_documents_by_term("marker", text_fields.DELETED)
            if deleted:  # with no living one the next commit would drop the segment, and its merge
                writer.delete_documents_by_term("marker", text_fields.KEPT)
                writer.add_document(text_fields.empty_document(text_fields.KEPT))
            writer.delete_documents_by_term("marker", 1)
            writer.add_document(Marker(epoch, text_fields.SCHEMA, generation).document())
            writer.commit()

    @contextmanager
    def _engine(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Work on the writers: after any failure they are dropped, with what they hold uncommitted."""
        try:
            yield
        except BaseException as error:
            self.close()
            if not is_engine_failure(error):
                raise
            failure = engine_error(error)
            # What a thread of the engine that ended leaves behind says nothing of why it did.
            if "writer was killed" in str(error) and self._is_full():
                failure = ResourceExhausted(DISK_FULL)
            meta = stored_meta(connection)
            serving = meta.get("text_dir") if meta.get("text_next") else None
            if serving and not isinstance(failure, ResourceExhausted) and not self._intact(serving):
                with _rows(connection):  # a damaged old index must not keep its successor from being built
                    _set(connection, text_dir=None)
            raise failure from error

    def _is_full(self) -> bool:
        try:
            return shutil.disk_usage(self._folder.parent).free < FULL_BYTES
        except OSError:  # the folder may be gone
            return False

    def _intact(self, name: str) -> bool:
        """Whether the files of an index are what the engine wrote, and tell what it holds: it can go on serving."""
        try:
            text_files.newest_sound(self._folder / name, 0)
            return text_fields.read_marker(text_fields.open_index(self._folder / name).searcher()) is not None
        except BaseException as error:
            if not is_engine_failure(error):
                raise
            return False

    def _end(self, name: str) -> None:
        """End a writer without a commit, and its lock at once: a traceback may hold on to the object."""
        try:
            self._open.pop(name).wait_merging_threads()
        except BaseException as error:
            if not is_engine_failure(error):
                raise

    def _writer(self, name: str) -> IndexWriter:
        writer = self._open.get(name)
        if writer is None:
            path = self._folder / name
            create = not Index.exists(str(path)) if path.is_dir() else True
            if create:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            writer = text_fields.open_index(path, create).writer(HEAP_BYTES, 1)
            # Its first operation has the number of the last commit, and a merge that a kill left undone can lose a
            # deletion of that number: spend it on nothing.
            writer.delete_documents_by_term("marker", _NO_MARKER)
            if self._littered:
                writer.garbage_collect_files()
            self._open[name] = writer
        return writer

    def _remove(self, name: str) -> None:
        import shutil

        self._open.pop(name, None)
        shutil.rmtree(self._folder / name, ignore_errors=True)


def _events(
    connection: sqlite3.Connection, rows: TextRows, ids: list[int]
) -> Iterator[tuple[int, Document | None, int]]:
    """(id, document, bytes of it) of each event, in order; without a document where it holds no text or is gone."""
    del connection
    at = 0
    for source, before in rows.read(ids):
        while ids[at] != source.id:
            yield ids[at], None, 0
            at += 1
        yield source.id, *(text_fields.document(source, before) if source.text else (None, 0))
        at += 1
    for id in ids[at:]:
        yield id, None, 0


def _wholes(
    connection: sqlite3.Connection, rows: TextRows, ids: list[int]
) -> Iterator[tuple[int, Document | None, int]]:
    """The same for whole sessions; notes on their rows what their documents say."""
    for number in ids:
        session = rows.read_whole(number)
        if session is None:
            yield number, None, 0
            continue
        connection.execute("UPDATE session SET whole = messages, opening = ? WHERE id = ?", (session.opening, number))
        yield number, *text_fields.whole_document(session)


class _Queue:
    """What may wait for the engine's thread: the newest documents, as no more than QUEUE of them can."""

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._bytes = 0

    def add(self, size: int) -> None:
        if len(self._sizes) == QUEUE:
            self._bytes -= self._sizes.popleft()
        self._sizes.append(size + DOCUMENT_BYTES)
        self._bytes += size + DOCUMENT_BYTES

    @property
    def full(self) -> bool:
        return self._bytes >= QUEUE_BYTES


def _last_entry(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'text_todo'").fetchone()
    return int(row[0]) if row else 0


class _rows:
    """One row transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._db.execute("COMMIT" if kind is None else "ROLLBACK")


def _set(connection: sqlite3.Connection, **values: Any) -> None:
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())
