"""One `outcrop mcp` process behind HTTP, because the official conformance runner knows no standard input and output.

It carries frames and nothing else: one POST, one line in, one line out. What HTTP itself asks of a server (hosts,
headers, streams) is not its business, so scenarios about that are not run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STATUS = {-32601: 404, -32700: 400, -32600: 400, -32602: 400, -32022: 400}
"""What the specification's HTTP binding says for errors of the protocol, from 2026-07-28 on."""
STATELESS = "2026-07-28"


class Bridge:
    """A server process, asked one request at a time. Close it when done."""

    def __init__(self, environment: dict[str, str], cwd: str) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "outcrop", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=cwd,
        )
        bridge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                bridge.carry(self, self.rfile.read(length))

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/mcp"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def carry(self, exchange: BaseHTTPRequestHandler, body: bytes) -> None:
        message = json.loads(body)
        told = self.ask(body, message.get("id"))
        if told is None:
            status, payload = 202, b""
        else:
            stateless = exchange.headers.get("MCP-Protocol-Version", "") >= STATELESS
            status = STATUS.get(told.get("error", {}).get("code"), 200) if stateless else 200
            payload = json.dumps(told).encode()
        exchange.send_response(status)
        exchange.send_header("Content-Type", "application/json")
        exchange.send_header("Content-Length", str(len(payload)))
        exchange.end_headers()
        exchange.wfile.write(payload)

    def ask(self, frame: bytes, id: Any) -> dict[str, Any] | None:
        """The answer to a frame; None for a notification."""
        assert self._process.stdin
        assert self._process.stdout
        with self._lock:
            self._process.stdin.write(frame.replace(b"\n", b" ") + b"\n")
            self._process.stdin.flush()
            if id is None:
                return None
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            return answer

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(30)
