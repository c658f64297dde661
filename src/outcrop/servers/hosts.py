"""The hosts that this user knows: how each is reached. One file a host, for its owner's eyes: runtimes have a token."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from outcrop.contracts.vault.hosts import Host, HostKind, parse_host
from outcrop.contracts.vault.remote import MethodUnknown, Peer, Unreachable
from outcrop.errors import InvalidRequest
from outcrop.paths import folder_errors, private_folder

FOLDER = "hosts"


class Known(NamedTuple):
    """`command`: where outcrop lies over there, for SSH. `url`, `token`: of a runtime."""

    host: Host
    command: str | None = None
    url: str | None = None
    token: str | None = None


class Hosts:
    """The hosts of one data folder."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def add(self, known: Known) -> None:
        """Remember a host, in the place of what was known of it. Raises BackendFailure where that cannot be written."""
        told = {"host": known.host.id, "command": known.command, "url": known.url, "token": known.token}
        path = self._path(known.host)
        with folder_errors():
            new = private_folder(self._folder) / f"{path.name}.new"
            with suppress(FileNotFoundError):
                new.unlink()
            with open(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump({name: value for name, value in told.items() if value is not None}, file)
            os.replace(new, path)

    def get(self, host: Host) -> Known | None:
        return _read(self._path(host))

    def all(self) -> list[Known]:
        """By id."""
        try:
            with folder_errors("read"):
                names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        found = [_read(self._folder / name) for name in names if name.endswith(".json")]
        return sorted((known for known in found if known is not None), key=lambda known: known.host.id)

    def remove(self, host: Host) -> bool:
        """Whether it was known."""
        try:
            with folder_errors():
                self._path(host).unlink()
        except FileNotFoundError:
            return False
        return True

    def _path(self, host: Host) -> Path:
        return self._folder / f"{host.kind}-{sha256(host.id.encode()).hexdigest()[:24]}.json"


class Absent:
    """A runtime that nobody paired with: it has no service (`remote.Peer`)."""

    def call(self, method: str, params: dict[str, object], seconds: float) -> object:
        raise MethodUnknown("no such runtime is paired")

    def close(self) -> None:
        pass


def peer_of(hosts: Hosts, host: Host) -> Peer:
    """The way to a host, never to another one; close it when done. Raises Unreachable where SSH does not know it."""
    known = hosts.get(host)
    if host.kind is HostKind.SSH:
        if known is None:
            raise Unreachable(f"{host.id} is not known: `outcrop hosts add {host.id}`")
        from outcrop.servers.ssh import COMMAND, SshPeer

        return SshPeer(host.name, known.command or COMMAND)
    if host.kind is HostKind.RUNTIME:
        if known is None or known.url is None:
            return Absent()
        from outcrop.servers.runtime import RuntimePeer

        return RuntimePeer(known.url, known.token or "")
    raise InvalidRequest("this machine is asked in process", "host")


def _read(path: Path) -> Known | None:
    """Raises BackendFailure where a file may not be read: what it names is not unknown."""
    try:
        with folder_errors("read"):
            told = json.loads(path.read_text(encoding="utf-8"))
        return Known(parse_host(told["host"]), told.get("command"), told.get("url"), told.get("token"))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, InvalidRequest):
        return None
