"""The two methods of session search over any transport, for one kind of receiver.

What a connection may see is decided where it is accepted (ruling 49) and given here as its `Transport`; nothing that a
request says changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from outcrop.contracts.vault import SEARCH_METHOD, STATUS_METHOD, service
from outcrop.contracts.vault.exposure import Transport
from outcrop.errors import InvalidRequest, OutcropError
from outcrop.servers.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Call, Id, Message, RpcError

SERVICE_ERROR = -32000
"""The service failed; `data.code` is the code of the error tree."""
METHODS = (SEARCH_METHOD, STATUS_METHOD)


@dataclass(slots=True, frozen=True)
class VaultMethods:
    """The handler of a connection that does nothing else (`jsonrpc.Handler`).

    `agents` are the tags that a request may name. `needed` is called with each search: somebody is to follow the files.
    """

    transport: Transport
    agents: Collection[str]
    needed: Callable[[], None] | None = None

    def answer(self, message: Message) -> dict[str, Any]:
        raise RpcError(METHOD_NOT_FOUND, f"method not found: {message.method}")

    def begin(self, message: Message, call: Call) -> VaultCall | None:
        if message.method not in METHODS:
            return None
        if self.needed is not None:
            self.needed()
        return VaultCall(self, message, call)

    def cancels(self, message: Message) -> Id | None:
        return cancelled_id(message)


@dataclass(slots=True)
class VaultCall:
    """A search or a question for the status (`jsonrpc.Work`). A search ends soon after its client left or cancelled."""

    methods: VaultMethods
    message: Message
    call: Call
    answered: dict[str, Any] | None = None

    def run(self) -> dict[str, Any]:
        transport, params = self.methods.transport, self.message.params
        try:
            if self.message.method == STATUS_METHOD:
                return service.search_status(params, transport).wire()
            agents = self.methods.agents
            return service.search_sessions(params, agents, transport, self.call.cancelled).wire()
        except OutcropError as error:
            return self.refuse(error)

    def refuse(self, error: OutcropError) -> dict[str, Any]:
        told = {"code": error.code}
        if isinstance(error, InvalidRequest):
            raise RpcError(INVALID_PARAMS, error.message, {**told, "details": error.details}) from None
        raise RpcError(SERVICE_ERROR, error.message, told) from None


def cancelled_id(message: Message) -> Id | None:
    """The request that an `rpc.cancel` names."""
    target = message.params.get("id")
    is_id = isinstance(target, str | int | float) and not isinstance(target, bool)
    return target if message.method == "rpc.cancel" and is_id else None
