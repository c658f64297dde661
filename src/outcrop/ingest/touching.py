"""Derives which files the stored calls touched: a drain like that of the text index, run before it after each pass.

Works from stored events alone, so what is indexed already needs no reading anew. Each batch is one transaction with
its mark (`meta.touches_upto`): a killed run goes on where it stopped. Events that changed since stand in `touch_todo`
(triggers of the schema) and are derived again; another `VERSION` derives everything again.
"""

from __future__ import annotations

import json
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from outcrop.calls import RAW
from outcrop.ingest.project import Cache, locate
from outcrop.ingest.touches import Touch, touches_of_call, touches_of_result
from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded import rows
from outcrop.store.embedded.blocks import Blocks
from outcrop.store.embedded.touches import EFFECTS, MATCHES, TouchRows
from outcrop.store.embedded.write import Writer
from outcrop.tails import above, is_absolute, unified

log = logging.getLogger(__name__)

VERSION = 1
"""Step it when a call's touches are found in another way."""
AT_ONCE = 4_000
"""Events of a transaction."""
ACTION = 160
"""Characters kept of what a call was given: the `action_preview` of an answer."""
_CALL = TYPE_CODE[EventType.TOOL_CALL]
_RESULT = TYPE_CODE[EventType.TOOL_RESPONSE]
_SNAPSHOT = TYPE_CODE[EventType.SYSTEM]
_LOOK_BACK = 200
"""Calls of one turn among which the one that a result answers is looked for."""
_CALLS_KEPT = 4_096
_BLOCKS_KEPT = 64
_EVENTS = f"""SELECT e.id, e.session, e.turn, e.type, e.time, e.flags, t.hidden, e.tool, n.text, p.cwd, e.block, e.slot
    FROM event e JOIN turn t ON t.id = e.turn LEFT JOIN name n ON n.id = e.tool LEFT JOIN place p ON p.id = e.place
    WHERE e.type IN ({_CALL}, {_RESULT}, {_SNAPSHOT}) AND {{}} ORDER BY e.id"""
_CHANGED_BEFORE = """SELECT p.text FROM event e JOIN touch t ON t.event = e.id JOIN path p ON p.id = t.path
    WHERE e.turn = ? AND e.id < ? AND t.effects <> 1"""
_STALE = "SELECT event FROM touch_todo WHERE event <= ? ORDER BY event LIMIT ?"


def drain(writer: Writer, breathe: Callable[[], object] | None = None) -> int:
    """Bring the touches up to the events; returns how many events were looked at.

    `breathe` is called between two transactions; what arrives there is left for the next drain.
    """
    if writer.meta("touches_version") != VERSION:
        with writer.transaction():
            TouchRows(writer.db).forget_all()
            writer.set_meta("touches_upto", 0)
            writer.set_meta("touches_version", VERSION)
    newest = int(writer.db.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0])
    if writer.meta("touches_upto") >= newest and writer.db.execute("SELECT 1 FROM touch_todo").fetchone() is None:
        return 0
    deriving = _Deriving(writer, newest)
    with writer.transaction():
        deriving.learn_roots(writer.meta("touches_upto"))
    looked = 0
    while True:
        with writer.transaction():
            took = deriving.again() or deriving.further()
        looked += took
        if not took:
            return looked
        if breathe is not None:
            breathe()


class _Deriving:
    """One drain."""

    def __init__(self, writer: Writer, newest: int) -> None:
        self._writer = writer
        self._db = writer.db
        self._newest = newest
        self._rows = TouchRows(writer.db)
        self._home = os.path.expanduser("~")
        self._places: Cache = {}
        self._folders: dict[str, None] = {}
        self._blocks = Blocks(writer.db, _BLOCKS_KEPT)
        self._calls: OrderedDict[tuple[int, str], list[Touch]] = OrderedDict()
        self._cwds: dict[int, str | None] = {}

    def learn_roots(self, upto: int) -> None:
        """The working trees in which sessions ran, as their paths spell them; most are gone one day.

        Those of the sessions with new events alone: what follows one message must not cost more in a longer history.
        """
        for cwd, worktree, project in self._db.execute(
            "SELECT DISTINCT cwd, worktree, common_dir FROM place WHERE worktree IS NOT NULL"
            " AND session IN (SELECT session FROM event WHERE id > ?)",
            (upto,),
        ).fetchall():
            self._rows.add_root(worktree, worktree, project)
            self._add_spelling(unified(cwd), worktree, project)

    def again(self) -> int:
        """Derive a batch of the changed events again."""
        upto = self._writer.meta("touches_upto")
        stale = [row[0] for row in self._db.execute(_STALE, (upto, AT_ONCE))]
        if stale:
            self._rows.forget(stale)
            listed = "e.id IN (SELECT value FROM json_each(?))"
            self._derive(self._db.execute(_EVENTS.format(listed), (json.dumps(stale),)).fetchall())
            self._db.executemany("DELETE FROM touch_todo WHERE event = ?", [(event,) for event in stale])
        return len(stale)

    def further(self) -> int:
        """Derive a batch of the events that nobody has looked at."""
        upto = self._writer.meta("touches_upto")
        found = self._db.execute(_EVENTS.format("e.id > ?") + " LIMIT ?", (upto, AT_ONCE)).fetchall()
        self._derive(found)
        upto = found[-1][0] if len(found) == AT_ONCE else max(upto, self._newest)
        self._writer.set_meta("touches_upto", upto)
        self._db.execute("DELETE FROM touch_todo WHERE event <= ?", (upto,))  # seen as they are now
        return len(found)

    def _derive(self, events: Iterable[tuple[Any, ...]]) -> None:
        touches: list[tuple[Any, ...]] = []
        actions: list[tuple[int, str]] = []
        for id, session, turn, kind, time, flags, hidden, tool, name, cwd, block, slot in events:
            content = self._blocks.content(block, slot)
            if flags & (rows.COPY | rows.OWN) or hidden:
                continue
            folder = cwd if cwd is not None else self._only_cwd(session)
            call_id = content.get("call_id")
            if kind == _CALL:
                found = self._found(touches_of_call, name, content.get("arguments"), folder)
                self._remember(session, call_id, found)
            else:
                extra = content.get("extra")
                found = self._found(touches_of_result, name, extra, folder) if extra else []
                if found:  # what the call says itself is the call's
                    if kind == _RESULT:
                        said = self._call_of(id, session, turn, call_id)
                    else:
                        self._rows.add(touches, actions)  # what the turn changed is looked up there
                        touches, actions = [], []
                        said = self._changed(id, turn)
                    found = [touch for touch in found if not any(_same(_text(touch), other) for other in said)]
            if found:
                given = content.get("arguments") if kind == _CALL else content.get("text")
                touches += [
                    (path, time, id, session, effects, match, tool)
                    for path, (effects, match) in self._by_path(found).items()
                ]
                actions.append((id, action(given)))
        self._rows.add(touches, actions)

    def _found(self, look: Any, tool: str | None, given: Any, folder: str | None) -> list[Touch]:
        try:
            touches: list[Touch] = look(tool, given, folder, self._home)
        except Exception as error:
            # A fault of this program in one call must not keep the touches of all later ones from being found.
            log.error("finding the files of a call failed", exc_info=error)
            return []
        return touches

    def _by_path(self, found: list[Touch]) -> dict[int, tuple[int, int]]:
        """(effects, match) by the number of the path."""
        touches: dict[int, tuple[int, int]] = {}
        for touch in found:
            path = _text(touch)
            if is_absolute(path):
                self._look_around(path)
            number = self._rows.path(path)
            effects, match = touches.get(number, (0, len(MATCHES)))
            bit = 1 << EFFECTS.index(touch.effect.value)
            touches[number] = (effects | bit, min(match, MATCHES.index(touch.match.value)))
        return touches

    def _look_around(self, path: str) -> None:
        """Note the working tree that holds a path now, if its folder still exists: sessions touch other trees too."""
        folder = path.rpartition("/")[0]
        if folder in self._folders:
            return
        self._folders[folder] = None
        place = locate(folder, cache=self._places)
        if place is not None:
            self._rows.add_root(place.worktree, place.worktree, place.common_dir)
            self._add_spelling(folder, place.worktree, place.common_dir)

    def _add_spelling(self, folder: str, worktree: str, project: str) -> None:
        """Where a path leads to the worktree through symbolic links, that spelling of it is a root too."""
        if folder == worktree or folder.startswith(worktree + "/"):
            return
        spelling = None
        for ancestor in (folder, *above(folder)):
            if os.path.realpath(ancestor) != worktree:
                if spelling is not None:
                    break
                continue
            spelling = ancestor
        if spelling is not None:
            self._rows.add_root(spelling, worktree, project)

    def _only_cwd(self, session: int) -> str | None:
        """The working directory of a session that names one alone, for records that name none."""
        if session not in self._cwds:
            found = self._db.execute("SELECT DISTINCT cwd FROM place WHERE session = ? LIMIT 2", (session,)).fetchall()
            self._cwds[session] = found[0][0] if len(found) == 1 else None
        return self._cwds[session]

    def _remember(self, session: int, call_id: str | None, found: list[Touch]) -> None:
        if call_id is not None and found:
            self._calls[session, call_id] = found
            if len(self._calls) > _CALLS_KEPT:
                self._calls.popitem(last=False)

    def _changed(self, event: int, turn: int) -> list[str]:
        """The paths that calls of a turn changed before an event: a snapshot tells of them once more."""
        return [row[0] for row in self._db.execute(_CHANGED_BEFORE, (turn, event))]

    def _call_of(self, event: int, session: int, turn: int, call_id: str | None) -> list[str]:
        """The paths of the call that a result answers."""
        if call_id is None:
            return []
        if (session, call_id) not in self._calls:
            self._calls[session, call_id] = []
            for name, cwd, block, slot in self._db.execute(
                "SELECT n.text, p.cwd, e.block, e.slot FROM event e LEFT JOIN name n ON n.id = e.tool"
                f" LEFT JOIN place p ON p.id = e.place WHERE e.turn = ? AND e.type = {_CALL}"
                " AND e.ord < (SELECT ord FROM event WHERE id = ?) ORDER BY e.ord DESC LIMIT ?",
                (turn, event, _LOOK_BACK),
            ).fetchall():
                content = self._blocks.content(block, slot)
                if content.get("call_id") == call_id:
                    folder = cwd if cwd is not None else self._only_cwd(session)
                    found = self._found(touches_of_call, name, content.get("arguments"), folder)
                    self._calls[session, call_id] = found
                    break
        return [_text(touch) for touch in self._calls[session, call_id]]


def action(given: Any) -> str:
    """The head of what a call was given, as JSON where it is structured."""
    if isinstance(given, dict) and list(given) == [RAW]:
        given = given[RAW]
    if given is None:
        return ""
    if isinstance(given, str):
        text = " ".join(given[: ACTION * 4].split())
    else:
        if isinstance(given, dict):  # long texts need not be written out to be cut
            given = {key: value[:ACTION] if isinstance(value, str) else value for key, value in given.items()}
        text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), default=str)
    return text[:ACTION]


def _text(touch: Touch) -> str:
    return unified(touch.absolute or touch.path)


def _same(one: str, two: str) -> bool:
    """Whether a result's path is the one that its call names, absolute or as the end of it."""
    return one == two or one.endswith("/" + two) or two.endswith("/" + one)
