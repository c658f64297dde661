"""The service of this machine: the session search of one store, in the words of the contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Protocol, cast

from outcrop.contracts.catalog import Catalog
from outcrop.contracts.moments import timestamp
from outcrop.contracts.vault.request import Request
from outcrop.contracts.vault.response import (
    DISABLED,
    NOT_READY,
    Debug,
    DegradedRoot,
    Evidence,
    Hit,
    MalformedCursor,
    Response,
    Results,
    Source,
    StaleCursor,
    Status,
    Truncated,
    Unavailable,
)
from outcrop.contracts.vault.resume import shell_line
from outcrop.errors import BackendFailure, StoreMissing, TextIndexRebuilding
from outcrop.search.found import Refused, SessionHit, SessionPage, SessionSearch
from outcrop.search.sessions import search_sessions
from outcrop.store import Store
from outcrop.store.embedded.cards import Presence
from outcrop.store.embedded.state import state
from outcrop.store.embedded.text_reader import TextReader, TextRefused

UNTITLED = "Untitled session"


class _Embedded(Protocol):
    """What a store with a text index has beside `Store`."""

    @property
    def text(self) -> TextReader: ...

    def connection(self) -> sqlite3.Connection: ...


class LocalService:
    """Searches one store. `reconcile` is given by whoever may index; `enabled` is what the configuration says."""

    def __init__(self, store: Store, catalog: Catalog, reconcile: Callable[[], None], enabled: bool = True) -> None:
        self._store = store
        self._catalog = catalog
        self._reconcile = reconcile
        self._enabled = enabled

    def reconcile(self) -> None:
        if self._enabled:
            self._reconcile()

    def search(self, request: Request, cancelled: Callable[[], bool] | None = None) -> Response:
        if not self._enabled:
            return Unavailable(DISABLED)
        filters = request.filters
        try:
            cast(_Embedded, self._store).connection()
        except (StoreMissing, BackendFailure):
            return Unavailable(NOT_READY)
        try:
            found = search_sessions(
                self._store,
                SessionSearch(
                    request.query,
                    request.scope,
                    filters.sort,
                    request.limit,
                    request.cursor,
                    filters.agents,
                    tuple(pair for agent in filters.agents for pair in self._catalog.agents[agent]),
                    filters.paths,
                    filters.since_ms,
                ),
                cancelled,
            )
        except TextIndexRebuilding:
            return Unavailable(NOT_READY)
        if isinstance(found, Refused):
            return MalformedCursor() if found.generation is None else StaleCursor(found.generation, found.expected)
        return self._results(found, request.scope)

    def status(self) -> Status:
        """What the store tells; the indexer of a process that has one tells more."""
        if not self._enabled:
            return Status()
        try:
            store = cast(_Embedded, self._store)
            db = store.connection()
            known = state(db)
        except (StoreMissing, BackendFailure):
            return Status(enabled=True)
        try:
            view = store.text.view(db)
        except (TextIndexRebuilding, TextRefused):
            view = None
        return Status(
            True,
            known.phase,
            known.indexed,
            known.due,
            known.failed,
            tuple(DegradedRoot(reason, root) for root, reason in known.degraded),
            known.last_pass,
            known.last_pass,
            0 if view is None else view.marker.generation,
        )

    def _results(self, page: SessionPage, scope: str) -> Results:
        return Results(
            tuple(self._hit(hit) for hit in page.hits),
            page.generation,
            round(page.milliseconds, 3),
            page.cursor,
            Truncated(
                page.candidates, sum(hit.evidence is not None and hit.evidence.cut for hit in page.hits), page.cut
            ),
            Debug(page.route, scope, page.repaired),
        )

    def _hit(self, hit: SessionHit) -> Hit:
        card = hit.card
        resume = self._catalog.resume(card.harness, card.source, card.native, hit.origin.path)
        present = hit.origin.presence is Presence.PRESENT
        return Hit(
            self._catalog.agent(card.harness, card.source),
            card.native,
            card.title or card.first_prompt or UNTITLED,
            card.messages,
            hit.score,
            Source(hit.origin.presence, hit.origin.path, resume.variables.get("CODEX_HOME") if resume else None),
            None
            if hit.evidence is None
            else Evidence(
                hit.evidence.snippet,
                hit.evidence.role,
                None if hit.evidence.time is None else timestamp(hit.evidence.time),
            ),
            hit.where.cwd,
            hit.where.branch,
            timestamp(card.updated) if card.updated else None,
            shell_line(resume, hit.where.cwd) if resume is not None and present else None,
        )
