"""What of an answer its receiver may see ("Evidence and exposure"). The one place that decides it; pure functions.

Sender and remote receiver both apply them. Which transport a connection is, is decided by how it authenticated itself,
never by what a request says (ruling 49).
"""

from __future__ import annotations

from enum import StrEnum

from outcrop.contracts.vault.response import PRESENT, DegradedRoot, Hit, Response, Results, Source, Status

WITHHELD_REASON = "Source root could not be verified."


class Transport(StrEnum):
    IPC = "ipc"
    """In process, or between processes of one user on this machine."""
    RUNTIME = "runtime"
    """RPC of the same machine."""
    RELAY = "relay"
    """Everything else: a relay, a paired runtime, a browser, a phone."""


def redact_for_transport(hit: Hit, transport: Transport) -> Hit:
    """A hit without what its receiver has no use for or may not know; the hit itself is left as it is."""
    source = Source(hit.source.presence) if transport is Transport.RELAY else hit.source
    keeps = transport is not Transport.RELAY and source.presence == PRESENT
    return hit._replace(source=source, resume_command=hit.resume_command if keeps else None)


def redact_response(response: Response, transport: Transport) -> Response:
    if not isinstance(response, Results):
        return response
    return response._replace(hits=tuple(redact_for_transport(hit, transport) for hit in response.hits))


def redact_status(status: Status, transport: Transport) -> Status:
    """Roots and reasons can both hold paths: a paired client learns how many there are, no more."""
    if transport is not Transport.RELAY:
        return status
    return status._replace(degraded_roots=tuple(DegradedRoot(WITHHELD_REASON) for _ in status.degraded_roots))
