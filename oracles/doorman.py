"""`outcrop serve` for a client that cannot be told a token, as the official conformance runner.

A forwarder in front of the real server: it adds the Authorization line to each request and carries everything else as
it came, in both directions. One request a connection, so nothing of a body has to be understood.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from contextlib import suppress

_CHUNK = 64 * 1024


class Doorman:
    """A paired server at `url`. Close it when done."""

    def __init__(self, environment: dict[str, str], cwd: str) -> None:
        command = [sys.executable, "-m", "outcrop"]
        paired = subprocess.check_output([*command, "pair", "oracle", "--json"], env=environment, cwd=cwd)
        self._line = f"Authorization: Bearer {json.loads(paired)['token']}\r\nConnection: close\r\n".encode()
        self._process = subprocess.Popen(
            [*command, "serve", "--port", "0"], env=environment, cwd=cwd, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr
        found = re.search(r":(\d+);", self._process.stderr.readline())
        assert found, "the server did not start"
        self._port = int(found[1])
        threading.Thread(target=self._process.stderr.read, daemon=True).start()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://localhost:{self._listener.getsockname()[1]}/mcp"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self._process.terminate()
        self._process.wait(30)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            held = b""
            while b"\r\n\r\n" not in held:
                data = client.recv(_CHUNK)
                if not data:
                    return
                held += data
            start, _, rest = held.partition(b"\r\n")
            rest = re.sub(rb"(?im)^connection:.*\r\n", b"", rest, count=1)
            with socket.create_connection(("127.0.0.1", self._port)) as server:
                server.sendall(start + b"\r\n" + self._line + rest)
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Carry bytes until one side ends; then the other is told."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
