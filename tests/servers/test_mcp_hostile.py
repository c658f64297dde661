"""Hostile clients: whatever comes in, the server stays up, stays small, and loses or crosses no answer."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.world import World
from wire import PATIENCE, Client, call, listing, request

from outcrop.servers.jsonrpc import RpcError, parse

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


VALUES = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    " ",
    "x" * 5000,
    "\ud800",
    "\x00",
    [],
    [[]],
    ["tool_call", 3],
    {},
    {"a": {}},
]


def distorted(dice: random.Random, value: Any) -> Any:
    """The same with one value anywhere replaced, or under another name."""
    if not isinstance(value, dict) or not value or dice.random() < 0.2:
        return dice.choice(VALUES)
    key = dice.choice(list(value))
    name = key if dice.random() < 0.9 else dice.choice(["", "id", "Query", "\ufeff" + key])
    return {**{other: value[other] for other in value if other != key}, name: distorted(dice, value[key])}


def mutated(dice: random.Random) -> bytes:
    seed = dice.choice(SEEDS)
    if dice.random() < 0.5:
        return json.dumps(distorted(dice, seed)).encode()
    frame = bytearray(json.dumps(seed).encode())
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(frame) or 1)
        match dice.randrange(5):
            case 0:
                frame[at : at + 1] = [dice.randrange(256)]
            case 1:
                del frame[at : at + dice.randint(1, 10)]
            case 2:
                frame[at:at] = dice.choice(ODDITIES)
            case 3:
                frame[at:at] = frame[at : at + dice.randint(1, 40)]
            case _:
                frame = frame[: at + 1]
    return bytes(frame).replace(b"\n", b" ").replace(b"\r", b" ")


FRAMES = 10_000
BATCH = 250


def awaited(frame: bytes) -> tuple[set[str], set[str]]:
    """The ids that a frame's answer may bear, and those that it cancels; both as JSON."""
    if not frame.strip(b" \t\r"):
        return set(), set()
    try:
        message = parse(frame)
    except RpcError as error:
        return {json.dumps(error.id)}, set()
    if message is None:
        return set(), set()
    if message.id is not None:
        return {json.dumps(message.id)}, set()
    return set(), {json.dumps(message.params.get("requestId"))}


def test_ten_thousand_mutated_frames_are_each_answered_once(tmp_path: Path) -> None:
    dice = random.Random(20260728)
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    cancelled: set[str] = set()
    with Client(tmp_path) as client:
        for number in range(FRAMES // BATCH):
            frames = [mutated(dice) for _ in range(BATCH)]
            for frame in frames:
                ids, stopped = awaited(frame)
                sent.update(ids)
                cancelled |= stopped
            mark = f"mark {number}"
            client.raw(b"\n".join([*frames, json.dumps(request(mark, "ping")).encode(), b""]))
            while (id := client.receive()["id"]) != mark:
                received[json.dumps(id)] += 1
        assert client.memory() < 150
        client.close_input()
        received.update(json.dumps(answer["id"]) for answer in client.rest())
        assert client.process.wait(PATIENCE) == 0
        assert client.process.stderr
        assert b"Traceback" not in client.process.stderr.read()
    assert not received - sent, "an answer to no request, or two to one"
    assert set(sent - received) <= cancelled, "a request without an answer that nobody cancelled"


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


def test_a_thousand_unread_calls_into_a_history_cross_no_answers(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("K", "X", "D", "P")
    world.index()
    ids = [row["id"] for row in world.sessions_of_day()]
    with Client(world.home, store=world.store) as client:
        client.tool("open", {"id": ids[0]})
        client.send(*(call(number, "open", id=ids[number % len(ids)], limit=50) for number in range(1000)))
        opened = 0
        for number, answer in client.answers(1000).items():
            envelope = answer["result"]["structuredContent"]
            assert envelope["request"]["id"] == ids[number % len(ids)]
            if "error" in envelope:
                assert envelope["error"]["code"] == "busy"
            else:
                opened += 1
                assert envelope["data"]["session"]["id"] == ids[number % len(ids)]
        assert opened >= 20
        assert client.memory() < 200
    world.close()


@pytest.mark.parametrize(
    "text",
    [
        b"\xc3\x28",  # a head without its tail
        b"\x80",  # a tail without its head
        b"\xc0\xaf",  # longer than need be
        b"\xed\xa0\x80",  # half a surrogate pair
        b"\xf4\x90\x80\x80",  # beyond the last character
        b"\xe6\x97",  # cut short
        b"\xff\xfe",
    ],
)
def test_invalid_utf8_inside_a_frame(tmp_path: Path, text: bytes) -> None:
    with Client(tmp_path) as client:
        client.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping' + text + b'"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        refused = client.receive()
        assert (refused["id"], refused["error"]["code"]) == (None, -32700)
        assert client.receive()["id"] == 2


def test_a_character_may_come_in_pieces(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        for byte in json.dumps(request("日本 🎌", "ping"), ensure_ascii=False).encode() + b"\n":
            client.raw(bytes([byte]))
        assert client.receive() == {"jsonrpc": "2.0", "id": "日本 🎌", "result": {}}


def test_deep_arguments_are_answered(tmp_path: Path) -> None:
    deep = b"[" * 900 + b"]" * 900
    with Client(tmp_path) as client:
        client.raw(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","arguments":' + deep + b"}}\n"
        )
        assert client.receive()["id"] == 1
        assert client.request("ping")["result"] == {}
