"""The two methods: who answers them in this process, and in which order an answer is made.

Validate; no service → a value that says so; wait, where that is asked; search; hold the service's own answer against
the contract; withhold what the transport may not carry.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Protocol

from outcrop.contracts.vault.exposure import Transport, redact_response, redact_status
from outcrop.contracts.vault.request import WAIT, Request, parse_request, parse_status_request
from outcrop.contracts.vault.response import (
    NO_SERVICE,
    Response,
    Results,
    Status,
    Unavailable,
    parse_response,
    parse_status,
)
from outcrop.errors import Cancelled

DEADLINE_SECONDS = 5.0
"""How long `wait-until-current` waits ("Status, freshness, and availability")."""
_LOOK_SECONDS = 0.05
"""Between two looks at whether the client of a search that waits is still there."""

Asked = Callable[[], bool]
"""Whether a call was cancelled."""


class SessionSearchService(Protocol):
    """What searches the sessions of one host."""

    def search(self, request: Request, cancelled: Asked | None = None) -> Response:
        """Raises Cancelled once `cancelled` says so."""

    def status(self) -> Status: ...

    def reconcile(self) -> None:
        """Bring the index up to what lies on disk, with a bounded recent pass. Raises what keeps it from that."""


_registered: list[SessionSearchService] = []


def set_session_search_service(service: SessionSearchService | None) -> None:
    """Name the one service of this process, or take it back."""
    _registered[:] = [] if service is None else [service]


def session_search_service() -> SessionSearchService | None:
    return _registered[0] if _registered else None


def search_sessions(
    params: Any, agents: Collection[str], transport: Transport, cancelled: Asked | None = None
) -> Response:
    """`aiVault.searchSessions`. `agents`: the known tags.

    Raises InvalidRequest, Cancelled once `cancelled` says so, and what the service raises.
    """
    request = parse_request(params, agents)
    service = session_search_service()
    if service is None:
        return Unavailable(NO_SERVICE)
    late = request.freshness == WAIT and not _current(service, cancelled)
    response = parse_response(service.search(request, cancelled).wire())
    if isinstance(response, Results):
        cut = response.truncated._replace(freshness=response.truncated.freshness or late)
        response = response._replace(truncated=cut, debug=response.debug if request.debug else None)
    return redact_response(response, transport)


def search_status(params: Any, transport: Transport) -> Status:
    """`aiVault.searchStatus`. Raises InvalidRequest, and what the service raises."""
    parse_status_request(params)
    service = session_search_service()
    status = Status() if service is None else parse_status(service.status().wire())
    return redact_status(status, transport)


def _current(service: SessionSearchService, cancelled: Asked | None) -> bool:
    """Whether reconciling ended before the deadline; if not it goes on. Its own error before then is raised.

    A process that ends does not wait for it: what must not be cut off keeps the process itself (`jobs.reconcile`).
    """
    errors: list[BaseException] = []

    def reconcile() -> None:
        try:
            service.reconcile()
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=reconcile, name="reconcile", daemon=True)
    worker.start()
    until = time.monotonic() + DEADLINE_SECONDS
    while worker.is_alive():
        if cancelled is not None and cancelled():
            raise Cancelled("the search was cancelled")
        left = until - time.monotonic()
        if left <= 0:
            return False
        worker.join(left if cancelled is None else min(left, _LOOK_SECONDS))
    if errors:
        raise errors[0]
    return True
