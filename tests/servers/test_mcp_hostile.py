"""Hostile clients: whatever comes in, the server stays up, stays small, and loses or crosses no answer."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

from wire import PATIENCE, Client, call, listing, request

SEEDS = [
    request(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}}),
    request("b", "tools/list"),
    request(2, "tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
    call(3, "search_sessions", query="falcon", event_types=["tool_call"], n_hits=5),
    call(4, "open", id="session:ses_01J9Q3N7W6F9A8K2M4V5R6T7Y8", limit=3),
    listing(5),
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
]
ODDITIES = [
    b"\xff",
    b"\x00",
    b'"',
    b"\\",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b"1e999",
    b"null",
    b"true",
    b"-",
    b",",
    b":",
    b"\xc3",
]


def mutated(dice: random.Random) -> bytes:
    frame = bytearray(json.dumps(dice.choice(SEEDS)).encode())
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(frame) or 1)
        match dice.randrange(5):
            case 0:
                frame[at] = dice.randrange(256)
            case 1:
                del frame[at : at + dice.randint(1, 10)]
            case 2:
                frame[at:at] = dice.choice(ODDITIES)
            case 3:
                frame[at:at] = frame[at : at + dice.randint(1, 40)]
            case _:
                frame = frame[: at + 1]
    return bytes(frame).replace(b"\n", b" ").replace(b"\r", b" ")


def test_two_thousand_mutated_frames(tmp_path: Path) -> None:
    dice = random.Random(20260728)
    with Client(tmp_path) as client:
        for number in range(40):
            client.raw(b"\n".join([*(mutated(dice) for _ in range(50)), b""]))
            mark = f"mark {number}"
            client.send(request(mark, "ping"))
            while client.receive().get("id") != mark:
                pass
        assert client.memory() < 150
        client.close_input()
        client.rest()
        assert client.process.wait(PATIENCE) == 0
        assert client.process.stderr
        assert b"Traceback" not in client.process.stderr.read()


def test_a_frame_of_a_hundred_megabytes(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.request("ping")
        block = b"x" * 1_000_000
        for _ in range(100):
            client.raw(block)
        client.raw(b"\n")
        answer = client.receive()
        assert answer["id"] is None
        assert answer["error"]["code"] == -32700
        assert client.request("ping")["result"] == {}
        assert client.memory() < 80


def test_a_large_frame_below_the_limit_is_read(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        result = client.tool("search_sessions", {"query": "x" * 8_000_000})
        assert result["structuredContent"]["error"]["code"] == "invalid_request"


def test_a_thousand_requests_before_the_first_answer_is_read(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.send(*(listing(id) if id % 2 else request(id, "ping") for id in range(1000)))
        answers = client.answers(1000)
        assert sorted(answers) == list(range(1000))
        for id, answer in answers.items():
            assert ("structuredContent" in answer["result"]) == bool(id % 2)
        assert client.memory() < 150


def test_a_client_that_never_reads_cannot_fill_the_memory(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.request("ping")
        os.set_blocking(client.stdin.fileno(), False)
        flood = memoryview(json.dumps(request("x" * 50_000, "ping")).encode() + b"\n")
        sent, rest, quiet_since = 0, flood, time.monotonic()
        while time.monotonic() - quiet_since < 1.0 and sent < 100_000_000:
            try:
                written = os.write(client.stdin.fileno(), rest)
            except BlockingIOError:
                continue
            sent += written
            rest = rest[written:] or flood
            quiet_since = time.monotonic()
        assert sent < 50_000_000
        assert client.memory() < 120
        # Even the thread that reads is held up now; a signal still ends the server.
        client.process.terminate()
        client.process.wait(PATIENCE)


def test_invalid_utf8_inside_a_frame(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping\xc3\x28"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        assert client.receive()["error"]["code"] == -32700
        assert client.receive()["id"] == 2


def test_deep_arguments_are_answered(tmp_path: Path) -> None:
    deep = b"[" * 900 + b"]" * 900
    with Client(tmp_path) as client:
        client.raw(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","arguments":' + deep + b"}}\n"
        )
        assert client.receive()["id"] == 1
        assert client.request("ping")["result"] == {}
