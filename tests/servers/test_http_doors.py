"""`outcrop serve` over real connections: what is let in, what is answered, and how it ends."""

from __future__ import annotations

import json
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from doors import SEARCH, STATUS, environment, run, started, until
from web import Web, pair, serving
from wire import PATIENCE

from outcrop.servers.http import BODY_LIMIT
from vaults import A, U, Vault

STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MODERN = {"MCP_Protocol_Version": STATELESS}
LISTING = {"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    made = Vault(tmp_path_factory.mktemp("served"))
    made.add(U("the needle in the harbour"), A("found it"))
    made.add(U("a second needle"), A("yes"))
    made.index()
    yield made
    made.close()


@pytest.fixture(scope="module")
def web(vault: Vault) -> Iterator[Web]:
    with serving(vault) as made:
        yield made


def test_a_paired_client_searches_and_sees_no_places(web: Web) -> None:
    found = web.ask(SEARCH, {"query": "needle", "clientKind": "local"})["result"]
    assert len(found["hits"]) == 2
    for hit in found["hits"]:
        assert hit["source"] == {"presence": "present"}
        assert "resumeCommand" not in hit
    assert web.ask(STATUS)["result"]["filesIndexed"] == 2
    assert web.ask("aiVault.nothing")["error"]["code"] == -32601
    assert web.ask(SEARCH, {"query": 5})["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (421, {"Host": "evil.example"}),
        (421, {"Host": "evil.example:80"}),
        (421, {"Host": "127.0.0.1.evil.example"}),
        (421, {"Host": "127.0.0.1@evil.example"}),
        (421, {"Host": "localhost:port"}),
        (403, {"Origin": "https://evil.example"}),
        (403, {"Origin": "null"}),
        (403, {"Origin": "http://127.0.0.1.evil.example"}),
        (401, {"Authorization": None}),
        (401, {"Authorization": "Basic abc"}),
        (401, {"Authorization": "Bearer"}),
        (415, {"Content_Type": "text/plain"}),
        (415, {"Content_Encoding": "gzip"}),
        (406, {"Accept": "text/html"}),
        (200, {"Host": "localhost"}),
        (200, {"Host": "LOCALHOST.:99"}),
        (200, {"Host": "[::1]:99"}),
        (200, {"Origin": "http://localhost:3000"}),
        (200, {"Accept": "application/json, text/event-stream"}),
        (200, {"Content_Type": "application/json; charset=utf-8"}),
    ],
)
def test_what_is_let_in(web: Web, status: int, headers: dict[str, str | None]) -> None:
    for path in ("/rpc", "/mcp"):
        reply = web.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, path, **headers)
        assert reply.status == status, reply
        assert (b"jsonrpc" in reply.body) is (status == 200)
        assert "server" not in reply.headers


@pytest.mark.parametrize(
    ("status", "name", "first", "second"),
    [
        (403, "Origin", "http://localhost", "https://evil.example"),
        (403, "Origin", "https://evil.example", "http://localhost"),
        (200, "Origin", "http://localhost", "http://127.0.0.1"),
        (401, "Authorization", "Bearer TOKEN", "Bearer other"),
        (401, "Authorization", "Bearer other", "Bearer TOKEN"),
    ],
)
def test_headers_that_are_there_twice_must_all_be_let_in(
    web: Web, status: int, name: str, first: str, second: str
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": STATUS, "params": {}})
    lines = ["POST /rpc HTTP/1.1", "Host: localhost", "Connection: close", "Content-Type: application/json"]
    lines += [f"{name}: {value.replace('TOKEN', web.token)}" for value in (first, second)]
    lines += [
        f"Content-Length: {len(body)}",
        *([] if name == "Authorization" else [f"Authorization: Bearer {web.token}"]),
    ]
    assert web.raw("\r\n".join([*lines, "", body]).encode()).startswith(f"HTTP/1.1 {status} ".encode())


def test_an_unpaired_client_is_told_how_to_come_in_and_nothing_else(web: Web) -> None:
    for path in ("/rpc", "/mcp", "/", "/elsewhere", "/rpc?token=" + web.token):
        reply = web.send({"jsonrpc": "2.0", "id": 1, "method": STATUS}, path, token=None)
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
    assert web.send(path="/elsewhere").status == 404
    for method in ("GET", "DELETE", "PUT"):
        refused = web.send(path="/mcp", method=method)
        assert (refused.status, refused.headers["allow"]) == (405, "POST")


def test_bodies_that_are_too_long_or_never_come(web: Web) -> None:
    lines = ["POST /rpc HTTP/1.1", "Host: localhost", f"Authorization: Bearer {web.token}"]
    head = "\r\n".join([*lines, "Content-Type: application/json", ""])
    assert b" 413 " in web.raw(f"{head}Content-Length: {BODY_LIMIT + 1}\r\n\r\n".encode())
    chunk = b"%x\r\n" % (1 << 20) + b"a" * (1 << 20) + b"\r\n"
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(BODY_LIMIT >> 20):
            connection.sendall(chunk)
        connection.sendall(b"1\r\na\r\n")
        assert b" 413 " in connection.recv(65536)
    assert b" 400 " in web.raw(b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000)  # a head without end
    with ThreadPoolExecutor() as pool:
        head_stops = pool.submit(web.raw, b"POST /rpc HTTP/1.1\r\nHost: loc")
        body_stops = pool.submit(web.raw, f"{head}Content-Length: 10\r\n\r\n{{".encode())
        assert head_stops.result() == b""
        assert b" 408 " in body_stops.result()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"[]", -32600),
        (b"5", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', -32600),
    ],
)
def test_what_is_no_message(web: Web, body: bytes, code: int) -> None:
    for path in ("/rpc", "/mcp"):
        reply = web.send(body, path)
        assert (reply.status, reply.json["error"]["code"]) == (400, code)


def test_notifications_are_taken_and_not_answered(web: Web) -> None:
    for path, method in (("/rpc", "rpc.cancel"), ("/mcp", "notifications/initialized"), ("/mcp", "notifications/x")):
        reply = web.send({"jsonrpc": "2.0", "method": method, "params": {}}, path)
        assert (reply.status, reply.body) == (202, b"")
    assert web.send({"jsonrpc": "2.0", "id": 7, "result": {}}, "/mcp").status == 202


def tool(name: str, arguments: Any, **meta: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, **meta}


def test_both_eras_of_mcp_are_served(web: Web) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    assert web.ask("initialize", hello, path="/mcp")["result"]["protocolVersion"] == "2025-11-25"
    legacy = web.ask("tools/call", tool("list_sessions", LISTING), path="/mcp", MCP_Protocol_Version="2025-11-25")
    assert legacy["result"]["structuredContent"]["data"]["result_count"] == 2
    modern = {"MCP_Protocol_Version": STATELESS, "Mcp_Method": "tools/call", "Mcp_Name": "list_sessions"}
    found = web.ask("tools/call", tool("list_sessions", LISTING, _meta=META), path="/mcp", **modern)
    assert found["result"]["resultType"] == "complete"
    encoded = {**modern, "Mcp_Name": "=?base64?bGlzdF9zZXNzaW9ucw==?="}
    assert "result" in web.ask("tools/call", tool("list_sessions", LISTING, _meta=META), path="/mcp", **encoded)


@pytest.mark.parametrize(
    ("status", "code", "method", "headers"),
    [
        (400, -32020, "tools/list", {"Mcp_Method": "tools/list"}),
        (400, -32020, "tools/list", {"MCP_Protocol_Version": "2025-11-25", "Mcp_Method": "tools/list"}),
        (400, -32020, "tools/list", MODERN),
        (400, -32020, "tools/list", {**MODERN, "Mcp_Method": "tools/call"}),
        (400, -32020, "tools/call", {**MODERN, "Mcp_Method": "tools/call"}),
        (400, -32020, "tools/call", {**MODERN, "Mcp_Method": "tools/call", "Mcp_Name": "open"}),
        (400, -32020, "tools/call", {**MODERN, "Mcp_Method": "tools/call", "Mcp_Name": "=?base64?b?="}),
        (404, -32601, "ping", {**MODERN, "Mcp_Method": "ping"}),
    ],
)
def test_headers_that_say_something_else_than_the_body(
    web: Web, status: int, code: int, method: str, headers: dict[str, str]
) -> None:
    params = tool("list_sessions", LISTING, _meta=META)
    reply = web.send({"jsonrpc": "2.0", "id": 3, "method": method, "params": params}, "/mcp", **headers)
    assert (reply.status, reply.json["id"], reply.json["error"]["code"]) == (status, 3, code)


def test_versions_that_nobody_speaks(web: Web) -> None:
    for version in ("1900-01-01", "not-a-version"):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        reply = web.send(message, "/mcp", MCP_Protocol_Version=version)
        assert (reply.status, reply.json["error"]["code"]) == (400, -32022)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert web.send(message, "/mcp", MCP_Protocol_Version=STATELESS).json["error"]["code"] == -32602


def test_the_directory_of_a_client_is_not_known(web: Web) -> None:
    envelope = web.ask("tools/call", tool("file_attention", {"path": "/srv/app/a.py", "scope": "project"}), path="/mcp")
    content = envelope["result"]["structuredContent"]
    assert content["data"]["sessions" if "sessions" in content["data"] else "results"] == []
    assert content["warnings"]


def test_more_calls_than_there_are_places_are_busy(vault: Vault) -> None:
    (vault.store / "config.toml").write_text("[mcp]\nparallel = 1\nqueue = 1\n")
    try:
        with serving(vault, token=pair(vault, "crowd"), OUTCROP_FAULT="slow:list_sessions:2500") as web:
            answers: list[Any] = []
            threads = [
                threading.Thread(
                    target=lambda: answers.append(web.ask("tools/call", tool("list_sessions", LISTING), path="/mcp"))
                )
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            codes = [a["result"]["structuredContent"].get("error", {}).get("code") for a in answers]
            assert sorted(map(str, codes)) == ["None", "None", "busy", "busy"]
            assert "result" in web.ask("ping", path="/mcp")
    finally:
        (vault.store / "config.toml").unlink()


def test_a_client_that_leaves_cancels_its_call(vault: Vault) -> None:
    (vault.store / "config.toml").write_text("[mcp]\nparallel = 1\nqueue = 0\n")
    try:
        with serving(vault, token=pair(vault, "leaver"), OUTCROP_FAULT="slow:list_sessions:60000") as web:
            connection = web.connect()
            body = json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool("list_sessions", LISTING)}
            )
            head = {"Content-Type": "application/json", "Authorization": f"Bearer {web.token}"}
            connection.request("POST", "/mcp", body, head)
            search = tool("search_sessions", {"query": "needle"})

            def busy() -> bool:
                content = web.ask("tools/call", search, path="/mcp")["result"]["structuredContent"]
                return content.get("error", {}).get("code") == "busy"

            def held() -> bool:
                if select.select([connection.sock], [], [], 0)[0]:  # a search had the place: ask once more
                    connection.getresponse().read()
                    connection.request("POST", "/mcp", body, head)
                return busy()

            until(held)
            connection.close()
            until(lambda: not busy())
    finally:
        (vault.store / "config.toml").unlink()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_after_the_last_answers(vault: Vault, number: int, code: int) -> None:
    token = pair(vault, f"ending-{number}")
    with started(vault, "serve", "--port", "0", OUTCROP_FAULT="slow:list_sessions:60000") as process:
        log = vault.folder / "serve.err"
        found = until(lambda: re.search(r":(\d+);", log.read_text(encoding="utf-8")))
        web = Web(int(found[1]), token)
        answers: list[Any] = []
        thread = threading.Thread(
            target=lambda: answers.append(web.ask("tools/call", tool("list_sessions", LISTING), path="/mcp"))
        )
        thread.start()
        until(lambda: web.ask("ping", path="/mcp"))
        time.sleep(0.3)  # until the call has begun
        process.send_signal(number)
        assert process.wait(PATIENCE) == code
        thread.join()
        assert answers[0]["result"]["structuredContent"]["error"]["code"] == "cancelled"
        assert "Traceback" not in log.read_text(encoding="utf-8")


def test_the_tools_alone_over_http(vault: Vault) -> None:
    with serving(vault, "mcp", "--http", "127.0.0.1:0", token=pair(vault, "tools")) as web:
        assert len(web.ask("tools/list", path="/mcp")["result"]["tools"]) == 4
        assert web.send({"jsonrpc": "2.0", "id": 1, "method": STATUS}).status == 404
    assert run(vault, "mcp", "--http", "127.0.0.1:0", "--project-only").returncode == 2
    assert run(vault, "mcp", "--http", "nowhere").returncode == 2


def test_places_to_listen_at(vault: Vault) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = run(vault, "serve", "--port", str(taken.getsockname()[1]))
        assert refused.returncode == 4
        assert "cannot listen" in refused.stderr
    assert run(vault, "serve", "--port", "70000").returncode == 2
    token = pair(vault, "wide")
    with serving(vault, "serve", "--host", "0.0.0.0", "--port", "0", "--name", "box.example", token=token) as web:
        log = (vault.folder / "serve.err").read_text(encoding="utf-8")
        assert "TLS" in log
        assert web.ask(STATUS, Host="box.example")["result"]["enabled"]
        assert web.ask(STATUS, Host=f"127.0.0.1:{web.port}")["result"]["enabled"]
        assert web.send(b"{}", Host="other.example").status == 421


def test_starting_loads_nothing_else_into_other_commands(vault: Vault) -> None:
    program = "import sys; from outcrop.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program, "search", "needle", "--json"],
        capture_output=True,
        text=True,
        env=environment(vault),
        check=True,
    )
    assert not {"starlette", "uvicorn", "asyncio", "http.client", "ssl"} & set(done.stderr.split())
