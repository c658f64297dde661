"""The store: one normalized history, and the text index derived from it.

Readers see a `Snapshot`: one consistent state, whatever the writer does meanwhile. The ingest writes through the
engine's own writer. The engine is chosen here and nowhere else, so that another one can stand beside `embedded`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from outcrop.model import Content, EventRow, SessionRow, TurnRow


@dataclass(slots=True, frozen=True)
class SessionQuery:
    """Which sessions to list, and from where on. Times in UTC ms.

    Sessions match when updated >= start and started < end; both as of `arrival`: a session that gained events later
    keeps the place that it had then (ruling 15). `after` is the (updated, uid) of the last one already shown.
    """

    start: int
    end: int
    arrival: int
    limit: int
    mode: str | None = None
    harness: str | None = None
    source: str | None = None
    descending: bool = True
    after: tuple[int, bytes] | None = None


class Found(NamedTuple):
    """An event with its parents, for a search hit."""

    event: EventRow
    turn: TurnRow
    session: SessionRow


@dataclass(slots=True, frozen=True)
class Rooted:
    """A path inside a working tree: the tree's root, the project that it belongs to, and the path below the root."""

    worktree: str
    project: str
    tail: str


@dataclass(slots=True, frozen=True)
class TouchQuery:
    """Which touches of a file to find: of all paths that end in `tail`, by whole components. Times in UTC ms.

    An absolute tail is one path. `project` None: of any project. `tool` is compared without case. At most `most`
    touches, the newest, are looked at.
    """

    tail: str
    project: str | None = None
    start: int | None = None
    end: int | None = None
    tool: str | None = None
    harness: str | None = None
    source: str | None = None
    mutations_only: bool = False
    most: int = 2_000


class Touched(NamedTuple):
    """One event that touched a file. `event` and `session` are row ids; `root` None: unknown.

    `effects` are some of read, change, create, delete, rename, unknown; `match` is path_suffix or shell_path.
    """

    event: int
    session: int
    time: int
    tool: str | None
    effects: tuple[str, ...]
    match: str
    root: str | None


@dataclass(slots=True, frozen=True)
class TouchScan:
    """Touches, newest first; `truncated`: there are older ones that nobody looked at."""

    touches: list[Touched]
    truncated: bool


class Snapshot(Protocol):
    """One state of the history. Ids are row ids unless they are called uid."""

    epoch: str
    """Random identity of this store."""
    arrival: int
    """Highest arrival number in this state."""
    admitted: frozenset[int] | None
    """Row ids of the sessions that this snapshot holds; None: all (ruling 30)."""
    order_rev: int
    """Steps when an existing event's time or existence changes; list cursors hold it."""

    def coverage(self) -> float | None:
        """The share of the history that is searchable; None where that is all of it (ruling 23)."""

    def sources(self) -> tuple[str, ...]:
        """Names of the sources that hold data, sorted."""

    def session(self, uid: bytes) -> SessionRow | None: ...

    def turn(self, uid: bytes) -> TurnRow | None: ...

    def event(self, uid: bytes) -> EventRow | None: ...

    def parents(self, event: EventRow) -> tuple[TurnRow, SessionRow]: ...

    def sessions(self, query: SessionQuery) -> list[SessionRow]:
        """Up to `query.limit` sessions in the asked order, as of the pinned arrival."""

    def turns(self, session: int, after: int, limit: int, arrival: int) -> list[TurnRow]:
        """Turns with ordinal > `after`, ascending, as they were at `arrival` (later events do not show)."""

    def events(self, turn: int, after: int, limit: int, arrival: int) -> list[EventRow]:
        """Events with ordinal > `after`, ascending, that had arrived by `arrival`."""

    def contents(self, events: Sequence[EventRow]) -> list[Content]:
        """Full contents, in the order asked."""

    def events_at(self, ids: Sequence[int]) -> dict[int, EventRow]:
        """Events by arrival number; ids that are gone are left out."""

    def found(self, ids: Sequence[int]) -> dict[int, Found]:
        """Events by arrival number, with turn and session; ids that are gone are left out."""

    def around_session(self, session: SessionRow) -> tuple[bytes | None, bytes | None]:
        """uid of the sessions before and after by (updated, uid)."""

    def around_turn(self, turn: TurnRow) -> tuple[bytes | None, bytes | None]: ...

    def around_event(self, event: EventRow) -> tuple[bytes | None, bytes | None]:
        """Neighbours inside the turn (ruling 4)."""

    def edges(self, row: SessionRow | TurnRow) -> tuple[bytes | None, bytes | None]:
        """uid of the first and last turn of a session, or of the first and last event of a turn."""

    def touches(self, query: TouchQuery) -> TouchScan:
        """Who touched a file."""

    def actions(self, events: Sequence[int]) -> dict[int, str]:
        """The head of what touching calls were given, by row id of the event."""

    def root_of(self, path: str) -> Rooted | None:
        """The deepest working tree ever seen that contains an absolute path, whether or not it still exists."""

    def touches_waiting(self) -> float | None:
        """The share of the events whose touches are known; None where that is all of them (but for a live trickle)."""


class Store(Protocol):
    def snapshot(
        self, cancelled: Callable[[], bool] | None = None, project: str | None = None
    ) -> AbstractContextManager[Snapshot]:
        """`cancelled` is asked while the engine works; Cancelled is raised once it says so.

        With a `project` the snapshot holds the sessions of that project alone, whatever is asked (ruling 30).

        Raises BackendFailure where the database cannot be read, StoreMissing where nothing was ever indexed.
        """

    def close(self) -> None: ...


def open_store(home: Path) -> Store:
    """The store of a data folder, for reading; any number of processes may."""
    from outcrop.store.embedded.read import EmbeddedStore

    return EmbeddedStore(home)
