"""Reading the answer of another host to one JSON-RPC request: a result, or the error that it stands for."""

from __future__ import annotations

import json
from typing import Any

from outcrop.contracts.vault.remote import MethodUnknown, Unreachable
from outcrop.servers.jsonrpc import METHOD_NOT_FOUND

METHOD_NOT_FOUND_NAME = "method_not_found"
"""What runtimes of other makes call it."""


def object_of(data: bytes) -> dict[str, Any]:
    """The object of one message. Raises Unreachable for anything else."""
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Unreachable("the host answered something that is no JSON") from None
    if not isinstance(value, dict):
        raise Unreachable("the host answered something that is no message")
    return value


def result(answer: dict[str, Any]) -> Any:
    """The result of an answer. Raises MethodUnknown and Unreachable."""
    error = answer.get("error")
    if error is None:
        if "result" not in answer:
            raise Unreachable("the host answered neither a result nor an error")
        return answer["result"]
    code = error.get("code") if isinstance(error, dict) else None
    if code in (METHOD_NOT_FOUND, METHOD_NOT_FOUND_NAME):
        raise MethodUnknown("the host does not know session search")
    message = error.get("message") if isinstance(error, dict) else None
    raise Unreachable(f"the host answered an error: {str(message)[:300]} ({str(code)[:40]})")
