"""The way to another machine by the system's OpenSSH: one `outcrop relay` over there, kept for all that is asked.

Nothing that a person could be asked is asked (`BatchMode`): keys, agents, known hosts and jumps are those of the user's
own SSH configuration. A target can be no option, and holds nothing that a shell would act on.
"""

from __future__ import annotations

import json
import os
import queue
import re
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

from outcrop.contracts.vault.remote import Unreachable
from outcrop.errors import InvalidRequest
from outcrop.servers import answers
from outcrop.servers.stdio import Lines

CONNECT_SECONDS = 10
STOP_SECONDS = 2.0
COMMAND = "outcrop"
_TARGET = re.compile(r"(?:ssh://)?(?:[\w.+-]+@)?(?:\[[0-9A-Fa-f:.%\w]+\]|[\w.-]+)(?::\d{1,5})?/?")
_OPTIONS = (
    *("BatchMode=yes", f"ConnectTimeout={CONNECT_SECONDS}", "ServerAliveInterval=5", "ServerAliveCountMax=3"),
    *("ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no", "EscapeChar=none"),
)
_CHUNK = 64 * 1024
_AHEAD = 4
"""Lines that wait to be looked at: a host that says more is not listened to meanwhile."""
_COMPLAINT = 2000


def checked_target(target: str) -> str:
    """A target that `ssh` takes for one. Raises InvalidRequest."""
    bare = target.removeprefix("ssh://")
    if not _TARGET.fullmatch(target) or bare.startswith("-") or "@-" in bare:
        raise InvalidRequest(f"{target!r} is no target for ssh: [USER@]HOST, as in your ssh configuration", "host")
    return target


def command_line(target: str, command: str = COMMAND) -> list[str]:
    """The words that start the relay. `command` is where `outcrop` lies over there."""
    options = [word for option in _OPTIONS for word in ("-o", option)]
    return ["ssh", "-T", *options, "--", checked_target(target), f"{shlex.quote(command)} relay"]


class SshPeer:
    """One host (`remote.Peer`). Connects with the first call, and anew after a failure. Close it when done."""

    def __init__(self, target: str, command: str = COMMAND) -> None:
        self._argv = command_line(target, command)
        self._lock = threading.Lock()
        self._relay: _Relay | None = None

    def call(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        with self._lock:
            if self._relay is None:
                self._relay = _Relay(self._argv)
            try:
                return answers.result(self._relay.ask(method, params, time.monotonic() + seconds))
            except _Broken as broken:
                self.close()
                raise Unreachable(str(broken)) from None

    def close(self) -> None:
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()


class _Broken(Exception):
    """The connection is of no use any more."""


class _Relay:
    """A running `ssh`: threads read what it says, so that a time limit holds on every system."""

    def __init__(self, argv: list[str]) -> None:
        pipe = subprocess.PIPE
        try:
            # In a session of its own a Ctrl-C here does not cut it off in the midst of an answer.
            self._process = subprocess.Popen(
                argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=sys.platform != "win32"
            )
        except FileNotFoundError:
            raise Unreachable("there is no `ssh` on this machine") from None
        except OSError as error:
            raise Unreachable(f"`ssh` cannot be started: {error.strerror}") from None
        self._lines: queue.Queue[bytes | None] = queue.Queue(_AHEAD)
        self._said: deque[bytes] = deque(maxlen=8)
        self._last = 0
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._listen)]
        for thread in self._threads:
            thread.start()

    def ask(self, method: str, params: dict[str, Any], until: float) -> dict[str, Any]:
        """The answer to a request. Raises _Broken."""
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError:
            raise _Broken(self._why()) from None
        while True:
            left = until - time.monotonic()
            try:
                if left <= 0:  # a host that never stops talking is late as well
                    raise queue.Empty
                line = self._lines.get(timeout=left)
            except queue.Empty:
                raise _Broken("the host did not answer in time") from None
            if line is None:
                raise _Broken(self._why())
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                continue  # what a login script prints
            if isinstance(answer, dict) and answer.get("id") == self._last and answer.get("jsonrpc") == "2.0":
                return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        until = time.monotonic() + STOP_SECONDS
        while self._threads[0].is_alive() and time.monotonic() < until:
            with suppress(queue.Empty):  # what is still to be said makes room for the end
                self._lines.get(timeout=0.01)
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        for stream, thread in zip((self._process.stdout, self._process.stderr), self._threads, strict=True):
            if stream is not None and not thread.is_alive():
                stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        lines = Lines()
        while data := os.read(self._process.stdout.fileno(), _CHUNK):
            for line in lines.feed(data):
                self._lines.put(b"" if line is None else line)
        self._lines.put(None)

    def _listen(self) -> None:
        assert self._process.stderr is not None
        while data := os.read(self._process.stderr.fileno(), _COMPLAINT):
            self._said.append(data)

    def _why(self) -> str:
        """What `ssh`, or the shell over there, said of it."""
        self._threads[1].join(STOP_SECONDS)
        said = b"".join(self._said).decode("utf-8", "replace").strip().splitlines()
        return f"the connection ended: {said[-1][:300]}" if said else "the connection ended"
