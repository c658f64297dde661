"""Ids of execution hosts: `local`, `ssh:<target>`, `runtime:<environment>` ("Execution host routing").

A request goes to exactly the host that it names. What is no such id, `all` included, is refused: nothing widens a
request to other hosts, and nothing falls back to this machine.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from outcrop.errors import InvalidRequest

_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


class HostKind(StrEnum):
    LOCAL = "local"
    SSH = "ssh"
    RUNTIME = "runtime"


class Host(NamedTuple):
    """`name`: the target or the environment, decoded; empty for this machine."""

    kind: HostKind
    name: str = ""

    @property
    def id(self) -> str:
        from urllib.parse import quote

        return str(self.kind) if self.kind is HostKind.LOCAL else f"{self.kind}:{quote(self.name, safe='')}"


LOCAL = Host(HostKind.LOCAL)


def parse_host(text: str | None) -> Host:
    """The host that an id names; None: this machine. Raises InvalidRequest."""
    if text is None:
        return LOCAL
    trimmed = text.strip()
    if trimmed == HostKind.LOCAL:
        return LOCAL
    from urllib.parse import unquote_to_bytes

    kind, colon, encoded = trimmed.partition(":")
    if not colon or kind not in (HostKind.SSH, HostKind.RUNTIME):
        raise _invalid(text)
    if _PERCENT.search(encoded):
        raise _invalid(text)
    try:
        name = unquote_to_bytes(encoded).decode("utf-8")
    except UnicodeError:
        raise _invalid(text) from None
    if not name.strip() or "|" in name or "\0" in name:
        raise _invalid(text)
    return Host(HostKind(kind), name)


def _invalid(text: str) -> InvalidRequest:
    return InvalidRequest(f"no execution host: {text!r} (local, ssh:TARGET or runtime:ENVIRONMENT)", "host")
