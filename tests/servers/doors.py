"""Processes that answer session search, and clients of their sockets, for tests over real connections."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wire import PATIENCE, Client

from outcrop.servers import local
from vaults import Vault

Json = dict[str, Any]
SEARCH, STATUS = "aiVault.searchSessions", "aiVault.searchStatus"
SOURCE = Path(__file__).parent.parent.parent / "src"


def environment(vault: Vault, **variables: str) -> dict[str, str]:
    """Only this vault's world."""
    return {
        "HOME": str(vault.home),
        "OUTCROP_HOME": str(vault.store),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SOURCE),
        "OUTCROP_AUTO_INDEX": "0",
        **variables,
    }


def run(vault: Vault, *argv: str, input: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that ends."""
    return subprocess.run(
        [sys.executable, "-m", "outcrop", *argv],
        input=input,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(vault, **variables),
        cwd=vault.folder,
        timeout=120,
        check=False,
    )


def document(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def until(what: Any, seconds: float = PATIENCE) -> Any:
    """The first true value of `what()`."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@contextmanager
def started(vault: Vault, *argv: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A command that stays until the end of the block; its stderr is a file in the vault's folder."""
    log = (vault.folder / f"{argv[0]}.err").open("w+", encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "outcrop", *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        text=True,
        env=environment(vault, **variables),
        cwd=vault.folder,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(PATIENCE)
        log.close()


@contextmanager
def watching(vault: Vault) -> Iterator[subprocess.Popen[str]]:
    """The vault's indexer, listening."""
    vault.store.mkdir(parents=True, exist_ok=True)
    with started(vault, "watch") as process:
        until(lambda: local.Address.of(vault.store).path.exists())
        yield process


class Local:
    """A bare connection to the indexer's socket."""

    def __init__(self, vault: Vault) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(str(local.Address.of(vault.store).path))
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def line(self) -> Json:
        answer: Json = json.loads(self._file.readline())
        return answer

    def ask(self, method: str, params: Any = None) -> Json:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {} if params is None else params}
        self.raw(json.dumps(request).encode() + b"\n")
        return self.line()


def relay(vault: Vault, **variables: str) -> Client:
    """`outcrop relay` on this vault."""
    command = ["/usr/bin/env", *(f"{k}={v}" for k, v in environment(vault, **variables).items())]
    return Client(vault.home, argv=[*command, sys.executable, "-m", "outcrop", "relay"])


def stop_indexer(vault: Vault) -> None:
    """End whatever indexer was started in the background."""
    record = vault.store / "run" / "indexer.json"
    try:
        os.kill(json.loads(record.read_text())["pid"], signal.SIGTERM)
    except (OSError, ValueError):
        return
    until(lambda: "ended" in json.loads(record.read_text()))
