"""A client of `outcrop mcp` that speaks raw lines, and so can misbehave in ways that no library allows."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 30.0
"""Seconds until a missing answer is a failure; the machine may be busy."""

Json = dict[str, Any]


class Client:
    """One server process. `fault` is its OUTCROP_FAULT, `store` its OUTCROP_HOME, `cwd` where it is launched."""

    def __init__(
        self,
        home: Path,
        fault: str | None = None,
        *options: str,
        store: Path | None = None,
        argv: list[str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        environment = {"HOME": str(home), "OUTCROP_HOME": str(store or home / "store"), "PATH": os.environ["PATH"],
                       "OUTCROP_AUTO_INDEX": "0"}  # fmt: skip
        if "PYTHONPATH" in os.environ:
            environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
        if fault is not None:
            environment["OUTCROP_FAULT"] = fault
        self.process = subprocess.Popen(
            argv or [sys.executable, "-m", "outcrop", "mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=cwd or home,
            bufsize=0,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.stdin = self.process.stdin
        self.stdout = self.process.stdout
        self._held = b""
        self._next = 1000

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    def raw(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.stdin.fileno(), view) :]

    def send(self, *messages: Json) -> None:
        """All messages in one write."""
        self.raw(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def line(self, patience: float = PATIENCE) -> bytes | None:
        """The next line; None at the end of output."""
        until = time.monotonic() + patience
        while b"\n" not in self._held:
            ready, _, _ = select.select([self.stdout], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"no answer within {patience} s"
            data = os.read(self.stdout.fileno(), 1 << 20)
            if not data:
                assert not self._held, "output ended inside a line"
                return None
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        return line

    def receive(self, patience: float = PATIENCE) -> Json:
        line = self.line(patience)
        assert line is not None, "the server has left"
        message: Json = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answers(self, count: int) -> dict[Any, Json]:
        """The next `count` answers by id."""
        found: dict[Any, Json] = {}
        for _ in range(count):
            message = self.receive()
            assert message["id"] not in found, "two answers to one request"
            found[message["id"]] = message
        return found

    def request(self, method: str, params: Json | None = None) -> Json:
        """The answer (with `result` or `error`) to one request, when nothing else is in flight."""
        self._next += 1
        self.send(request(self._next, method, params))
        answer = self.receive()
        assert answer["id"] == self._next
        return answer

    def tool(self, name: str, arguments: Any = None) -> Json:
        """The tool result."""
        result: Json = self.request("tools/call", {"name": name, "arguments": arguments})["result"]
        return result

    def rest(self) -> list[Json]:
        """All further messages until the end of output."""
        found = []
        while (line := self.line()) is not None:
            found.append(json.loads(line))
        return found

    def close_input(self) -> None:
        self.stdin.close()

    def leave(self) -> int:
        """The exit code, and nothing may be left to read."""
        assert self.line() is None
        return self.process.wait(PATIENCE)

    def memory(self) -> int:
        """Highest resident memory so far, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def request(id: Any, method: str, params: Json | None = None) -> Json:
    message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else {**message, "params": params}


def call(id: Any, tool: str, /, **arguments: Any) -> Json:
    return request(id, "tools/call", {"name": tool, "arguments": arguments})


def notification(method: str, params: Json | None = None) -> Json:
    message: Json = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def cancel(id: Any) -> Json:
    return notification("notifications/cancelled", {"requestId": id})


def listing(id: Any) -> Json:
    """A call that is valid and needs no history."""
    return call(id, "list_sessions", start_datetime="2026-05-01T00:00:00Z", end_datetime="2026-05-02T00:00:00Z")
