"""Asking another host: what is sent, and what of its answer is believed ("Execution host routing").

The host that was addressed is stamped on each hit, whatever the far side claims; what a paired client may not know is
dropped here once more; an answer that the contract does not allow is an error. A far side that does not know the
method has no service, which is a value; everything else that goes wrong is an error.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from outcrop.contracts.vault import SEARCH_METHOD, STATUS_METHOD
from outcrop.contracts.vault.exposure import Transport, redact_response, redact_status
from outcrop.contracts.vault.hosts import Host
from outcrop.contracts.vault.request import WAIT, parse_request
from outcrop.contracts.vault.response import (
    NO_SERVICE,
    Response,
    Results,
    Status,
    Unavailable,
    parse_response,
    parse_status,
)
from outcrop.contracts.vault.service import DEADLINE_SECONDS
from outcrop.errors import OutcropError

CALL_SECONDS = 20.0
"""How long a host may take to answer, beside the waiting that it was asked for."""


class MethodUnknown(OutcropError):
    """The far side is too old to know the method."""


class Unreachable(OutcropError):
    """The far side cannot be asked, did not answer in time, or answered with an error."""

    code = "backend_failure"


class Peer(Protocol):
    """The way to one host."""

    def call(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        """The result as it came. Raises MethodUnknown and Unreachable."""

    def close(self) -> None: ...


def search_sessions(params: Any, agents: Collection[str], host: Host, peer: Peer) -> Response:
    """`aiVault.searchSessions` on `host`.

    Raises InvalidRequest before it is asked, InvalidResponse, and what `peer` raises.
    """
    request = parse_request(params, agents)
    seconds = CALL_SECONDS + (DEADLINE_SECONDS if request.freshness == WAIT else 0.0)
    try:
        response = parse_response(peer.call(SEARCH_METHOD, request.wire(), seconds))
    except MethodUnknown:
        return Unavailable(NO_SERVICE)
    if isinstance(response, Results):
        hits = tuple(hit._replace(execution_host_id=host.id) for hit in response.hits)
        response = response._replace(hits=hits, debug=response.debug if request.debug else None)
    return redact_response(response, Transport.RELAY)


def search_status(peer: Peer) -> Status:
    """`aiVault.searchStatus` of the host behind `peer`. Raises InvalidResponse, and what `peer` raises."""
    try:
        status = parse_status(peer.call(STATUS_METHOD, {}, CALL_SECONDS))
    except MethodUnknown:
        return Status()
    return redact_status(status, Transport.RELAY)
