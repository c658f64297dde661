"""What MCP asks of HTTP besides JSON-RPC: headers that repeat the message, and statuses (its 2026-07-28 binding).

A client without handshake names version, method and tool in headers too, for proxies that do not read bodies; where
they differ from the body the request is refused. Older clients name at most the version that they agreed on.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any

from outcrop.servers.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Message,
    RpcError,
)
from outcrop.servers.mcp import HANDSHAKE_VERSIONS, STATELESS_VERSIONS, UNSUPPORTED_VERSION, VERSION_KEY

HEADER_MISMATCH = -32020
STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""HTTP statuses of errors, for clients without handshake; any other answer is 200."""

_VERSION, _METHOD, _NAME = "mcp-protocol-version", "mcp-method", "mcp-name"
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")


def is_stateless(message: Message, version: str | None) -> bool:
    """Whether a message is of the era without handshake, by its body or by its header."""
    meta = message.params.get("_meta")
    if isinstance(meta, dict) and VERSION_KEY in meta:
        return True
    return message.method == "server/discover" or (version is not None and version not in HANDSHAKE_VERSIONS)


def check(message: Message, raw: Iterable[tuple[str, str]]) -> bool:
    """Hold a request's headers against it; whether it is of the era without handshake. Raises RpcError."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key = name.lower()
        if key in headers and key in (_VERSION, _METHOD, _NAME):
            raise RpcError(HEADER_MISMATCH, f"{key} is given twice")
        headers[key] = value
    version = headers.get(_VERSION)
    if not is_stateless(message, version):
        return False
    meta: Any = message.params.get("_meta")
    named = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    if named is None:
        if message.id is None:
            return True
        if version is not None and version not in STATELESS_VERSIONS:
            raise _unsupported(version)
        raise RpcError(INVALID_PARAMS, f"invalid params: _meta lacks {VERSION_KEY}")
    if version != named:
        raise RpcError(HEADER_MISMATCH, f"{_VERSION} must be the version that _meta names")
    if headers.get(_METHOD) != message.method:
        raise RpcError(HEADER_MISMATCH, f"{_METHOD} must be the method of the message")
    if message.method == "tools/call":
        tool = message.params.get("name")
        if tool is not None and decoded(headers.get(_NAME)) != tool:
            raise RpcError(HEADER_MISMATCH, f"{_NAME} must be the name of the tool")
    return True


def _unsupported(version: str) -> RpcError:
    supported = {"supported": list(STATELESS_VERSIONS), "requested": version}
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", supported)


def decoded(value: str | None) -> str | None:
    """A header's text, which may stand as `=?base64?…?=`; None where that is no text."""
    encoded = None if value is None else _ENCODED.fullmatch(value)
    if encoded is None:
        return value
    try:
        data = base64.b64decode(encoded[1], validate=True)
        return data.decode("utf-8") if base64.b64encode(data).decode("ascii") == encoded[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None
