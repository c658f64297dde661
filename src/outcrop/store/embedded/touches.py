"""Touches of files as rows: written by the one writer, found again by the end of a path.

A path is stored once, absolute where that is proven, with the working tree that contains it. What a touch's project
is follows from its path; outside of Git, and where a path is not proven, from the directory that its call ran in.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from outcrop.store import Rooted, Touched, TouchQuery, TouchScan
from outcrop.tails import above, ends_with, is_absolute, isolated, name_of

EFFECTS = ("read", "change", "create", "delete", "rename", "unknown")
"""Names of the bits of `touch.effects`."""
MATCHES = ("path_suffix", "shell_path")
"""Names of `touch.match`: a structured argument or a patch, or a word of a shell command."""
READ_ALONE = 1
_EFFECTS = [tuple(name for place, name in enumerate(EFFECTS) if bits >> place & 1) for bits in range(1 << len(EFFECTS))]
"""The names of every combination of bits."""
_ROWS = "SELECT t.event, t.time, t.session, t.path, t.effects, t.match, t.tool FROM touch t WHERE t.path"
_NEWEST = " ORDER BY 2 DESC, 1 DESC LIMIT :most"
_MERGED = 32
"""So many paths are merged as each of them lies in the table, newest first; the rows of more are sorted."""
_OF_PROJECT = """ AND (t.path IN (SELECT value FROM json_each(:inside)) OR EXISTS (
    SELECT 1 FROM event e JOIN place p ON p.id = e.place JOIN path x ON x.id = t.path
    WHERE e.id = t.event AND x.root IS NULL AND p.project = :project
    AND (NOT x.absolute OR substr(x.text, 1, length(p.cwd) + 1) = p.cwd || '/')))"""
_OF_SESSION = " AND EXISTS (SELECT 1 FROM session s WHERE s.id = t.session AND s.{0} = :{0})"
_OF_FLOOR = " AND t.session IN (SELECT session FROM place WHERE project = :floor)"


def scan(db: sqlite3.Connection, query: TouchQuery, floor: str | None) -> TouchScan:
    """The newest touches of the files that a tail names, one for each event, at most `query.most` rows looked at."""
    paths = _paths(db, query.tail)
    if not paths:
        return TouchScan([], False)
    clauses = []
    values: dict[str, Any] = {"paths": json.dumps(list(paths)), "most": query.most + 1}
    if query.project is not None:
        clauses.append(_OF_PROJECT)
        inside = [id for id, path in paths.items() if path.project == query.project]
        values |= {"inside": json.dumps(inside), "project": query.project}
    if floor is not None:
        clauses.append(_OF_FLOOR)
        values["floor"] = floor
    for column, value in (("harness", query.harness), ("source", query.source)):
        if value is not None:
            clauses.append(_OF_SESSION.format(column))
            values[column] = value
    for bound, sign in (("start", ">="), ("end", "<")):
        value = getattr(query, bound)
        if value is not None:
            clauses.append(f" AND t.time {sign} :{bound}")
            values[bound] = value
    if query.mutations_only:
        clauses.append(f" AND t.effects <> {READ_ALONE}")
    if query.tool is not None:
        clauses.append(" AND t.tool IN (SELECT value FROM json_each(:tools))")
        wanted = query.tool.casefold()
        named = [row[0] for row in db.execute("SELECT id, text FROM name") if row[1].casefold() == wanted]
        values["tools"] = json.dumps(named)
    narrowed = "".join(clauses)
    each = [f" = {id}" for id in paths] if len(paths) <= _MERGED else [" IN (SELECT value FROM json_each(:paths))"]
    statement = " UNION ALL ".join(f"{_ROWS}{which}{narrowed}" for which in each)
    found = db.execute(statement + _NEWEST, values).fetchall()
    return TouchScan(_touched(db, found[: query.most], paths), len(found) > query.most)


def actions(db: sqlite3.Connection, events: Sequence[int]) -> dict[int, str]:
    """What the calls were given, cut, by event."""
    listed = json.dumps(list(events))
    return dict(db.execute("SELECT event, text FROM action WHERE event IN (SELECT value FROM json_each(?))", (listed,)))


def root_of(db: sqlite3.Connection, path: str) -> Rooted | None:
    """The deepest working tree ever seen that contains an absolute path, whether or not it still exists."""
    folders = list(above(path))
    rows = db.execute(
        "SELECT prefix, worktree, project FROM root WHERE prefix IN (SELECT value FROM json_each(?))"
        " ORDER BY length(prefix) DESC LIMIT 1",
        (json.dumps(folders),),
    ).fetchall()
    for prefix, worktree, project in rows:
        return Rooted(worktree, project, path[len(prefix) + 1 :])
    return None


def waiting(db: sqlite3.Connection) -> tuple[int, int]:
    """How many events have not been looked at for touches, and how many there are, both counted by their numbers."""
    newest = int(db.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0])
    row = db.execute("SELECT v FROM meta WHERE k = 'touches_upto'").fetchone()
    return newest - min(int(row[0]) if row else 0, newest), newest


class _Path(NamedTuple):
    text: str
    absolute: int
    worktree: str | None
    project: str | None


def _paths(db: sqlite3.Connection, tail: str) -> dict[int, _Path]:
    rows = db.execute(
        "SELECT p.id, p.text, p.absolute, r.worktree, r.project FROM path p LEFT JOIN root r ON r.id = p.root"
        " WHERE p.name = ?",
        (name_of(tail),),
    )
    alone = "/" not in tail  # then the name was all there is to compare
    return {row[0]: _Path(*row[1:]) for row in rows if alone or ends_with(row[1], tail)}


def _touched(db: sqlite3.Connection, rows: list[Any], paths: dict[int, _Path]) -> list[Touched]:
    """One touch for each event; rows of one event stand together."""
    listed = json.dumps(list({row[6] for row in rows} - {None}))
    names = dict(db.execute("SELECT id, text FROM name WHERE id IN (SELECT value FROM json_each(?))", (listed,)))
    known = {id: path.worktree for id, path in paths.items()}
    folders = _plain_folders(db, [row[0] for row in rows if known[row[3]] is None])
    found: list[Touched] = []
    before = None
    for event, time, session, path, bits, match, tool in rows:
        root = known[path] or _within(paths[path], folders.get(event))
        if event == before:
            last = found.pop()
            bits |= sum(1 << EFFECTS.index(effect) for effect in last.effects)
            match = min(match, MATCHES.index(last.match))
            # A call that names the file in two working trees belongs to neither.
            root = root if root == last.root else None
        found.append(Touched(event, session, time, names.get(tool), _EFFECTS[bits], MATCHES[match], root))
        before = event
    return found


def _plain_folders(db: sqlite3.Connection, events: list[int]) -> dict[int, str]:
    """The working directories of events that ran outside of Git."""
    return dict(
        db.execute(
            "SELECT e.id, p.cwd FROM event e JOIN place p ON p.id = e.place"
            " WHERE p.worktree IS NULL AND e.id IN (SELECT value FROM json_each(?))",
            (json.dumps(events),),
        )
    )


def _within(path: _Path, folder: str | None) -> str | None:
    """`folder`, if it contains the path: without Git the directory of the session is the root."""
    return folder if folder and path.absolute and path.text.startswith(folder.rstrip("/") + "/") else None


# Writing


class TouchRows:
    """Statements of the one writer. The caller holds a transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._paths: dict[str, int] = {}
        self._roots: dict[str, int] = dict(db.execute("SELECT prefix, id FROM root"))

    def forget_all(self) -> None:
        """Drop what was derived; the roots stay, as most of them cannot be found again."""
        for table in ("touch", "action", "path", "touch_todo"):
            self._db.execute(f"DELETE FROM {table}")
        self._paths.clear()

    def forget(self, events: Iterable[int]) -> None:
        given = [(event,) for event in events]
        self._db.executemany("DELETE FROM touch WHERE event = ?", given)
        self._db.executemany("DELETE FROM action WHERE event = ?", given)

    def add_root(self, prefix: str, worktree: str, project: str) -> None:
        """A working tree; paths below it that belonged to none, or to one around it, are its own from now on."""
        if prefix in self._roots:
            return
        added = self._db.execute(
            "INSERT INTO root (prefix, worktree, project) VALUES (?, ?, ?)", (prefix, worktree, project)
        )
        self._roots[prefix] = int(added.lastrowid or 0)
        below = "text > ?1 || '/' AND text < ?1 || '0'"  # '0' is the character after the slash
        self._db.execute(
            f"UPDATE path SET root = ?2 WHERE {below}"
            " AND (root IS NULL OR root IN (SELECT id FROM root WHERE length(prefix) < length(?1)))",
            (prefix, self._roots[prefix]),
        )
        for (text,) in self._db.execute(
            f"SELECT text FROM path WHERE {below}", (f"{prefix}/.claude/worktrees",)
        ).fetchall():
            self._isolated(text, prefix)

    def path(self, text: str) -> int:
        """The number of a unified path."""
        number = self._paths.get(text)
        if number is None:
            row = self._db.execute("SELECT id FROM path WHERE text = ?", (text,)).fetchone()
            number = self._paths[text] = row[0] if row else self._add_path(text)
        return number

    def add(self, touches: Iterable[Sequence[Any]], actions: Iterable[tuple[int, str]]) -> None:
        """`touches` in the order of the columns of `touch`; `actions`: what their events were given."""
        self._db.executemany("INSERT OR REPLACE INTO touch VALUES (?, ?, ?, ?, ?, ?, ?)", touches)
        self._db.executemany("INSERT OR REPLACE INTO action VALUES (?, ?)", actions)

    def _add_path(self, text: str) -> int:
        absolute = is_absolute(text)
        root = self._deepest(text) if absolute else None
        if root is not None:
            root = self._isolated(text, root)
        added = self._db.execute(
            "INSERT INTO path (text, name, absolute, root) VALUES (?, ?, ?, ?)",
            (text, name_of(text), absolute, None if root is None else self._roots[root]),
        )
        return int(added.lastrowid or 0)

    def _deepest(self, text: str) -> str | None:
        return next((folder for folder in above(text) if folder in self._roots), None)

    def _isolated(self, text: str, root: str) -> str:
        """The working tree of an agent inside `root` that contains the path, else `root`: such are soon deleted."""
        own = isolated(text[len(root) + 1 :])
        if own is None:
            return root
        prefix = f"{root}/{own}"
        if prefix not in self._roots:
            worktree, project = self._db.execute(
                "SELECT worktree, project FROM root WHERE prefix = ?", (root,)
            ).fetchone()
            self.add_root(prefix, f"{worktree}/{own}", project)
        return prefix
