"""One state of text index and rows that belong together, for whatever searches them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from outcrop.errors import TextIndexRebuilding
from outcrop.store import Snapshot, Store
from outcrop.store.embedded.text_reader import TextReader, View, engine_error, is_engine_failure

Answer = TypeVar("Answer")
_ATTEMPTS = 5


class TextStore(Protocol):
    """What a store with a text index has beside `Store`."""

    @property
    def text(self) -> TextReader: ...

    def connection(self) -> sqlite3.Connection: ...


def looked_at(
    store: Store,
    answer: Callable[[Snapshot, View, sqlite3.Connection], Answer],
    nothing: Callable[[Snapshot], Answer],
    cancelled: Callable[[], bool] | None = None,
    project: str | None = None,
) -> Answer:
    """What `answer` makes of one state; `nothing` where the store holds no event at all.

    Raises TextIndexRebuilding where no index can answer, Cancelled once `cancelled` says so, and the store's errors.
    """
    embedded = cast(TextStore, store)
    for _ in range(_ATTEMPTS):
        view = embedded.text.view(embedded.connection())
        if view is None:
            with store.snapshot(cancelled, project) as snapshot:
                return nothing(snapshot)
        with store.snapshot(cancelled, project) as snapshot:
            if not embedded.text.current(embedded.connection(), view):
                continue
            try:
                return answer(snapshot, view, embedded.connection())
            except BaseException as error:
                if is_engine_failure(error):
                    raise engine_error(error) from error
                raise
    raise TextIndexRebuilding
