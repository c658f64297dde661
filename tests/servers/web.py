"""`outcrop serve` as a process, and requests to it that no library would make."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from doors import Json, document, run, started, until
from wire import PATIENCE

from vaults import Vault


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Web:
    """A server at a port, and the token of one client."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def send(
        self,
        body: bytes | Json = b"",
        path: str = "/rpc",
        method: str = "POST",
        over: http.client.HTTPConnection | None = None,
        token: str | None = "",
        **headers: str | None,
    ) -> Reply:
        """One request; a header of None is left out, `_` in names is a dash."""
        connection = over or self.connect()
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}", "Content-Type": "application/json"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Content-Length", str(len(data)))
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(data)
            with connection.getresponse() as answer:
                return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            if over is None:
                connection.close()

    def ask(self, method: str, params: Any = None, id: Any = 1, path: str = "/rpc", **headers: str | None) -> Json:
        """The answer to a JSON-RPC request that the server takes."""
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {} if params is None else params}
        reply = self.send(message, path, **headers)
        assert reply.status == 200, reply
        answer: Json = reply.json
        assert answer["id"] == id
        return answer

    def raw(self, data: bytes) -> bytes:
        """All that comes back for these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(data)
            held = b""
            while piece := connection.recv(65536):
                held += piece
        return held


def pair(vault: Vault, name: str = "laptop", *options: str) -> str:
    token: str = document(run(vault, "pair", name, "--json", *options))["token"]
    return token


@contextmanager
def serving(vault: Vault, *argv: str, token: str | None = None, **variables: str) -> Iterator[Web]:
    """`outcrop serve` on this vault, at a free port."""
    vault.store.mkdir(parents=True, exist_ok=True)
    command = argv or ("serve", "--port", "0")
    token = token or pair(vault)
    with started(vault, *command, **variables):
        log = vault.folder / f"{command[0]}.err"
        found = until(lambda: re.search(r"http://\S+:(\d+);", log.read_text(encoding="utf-8")))
        yield Web(int(found[1]), token)
