"""Admission, cancellation and the ends of a server, against a real process whose tools are slow on demand."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest
from wire import Client, call, cancel, listing, notification, request

SLOW = "slow:list_sessions:{}"
FOREVER = SLOW.format(600_000)


def code(answer: dict) -> str | None:
    return answer["result"]["structuredContent"].get("error", {}).get("code")


def saturate(client: Client) -> None:
    """Twenty calls: four run, sixteen wait. The answer to a first call shows that the tools are loaded."""
    client.tool("open", {"id": "x"})
    client.send(*(listing(id) for id in range(20)))


def test_C208_the_call_after_the_queue_is_full_is_busy_at_once(tmp_path: Path) -> None:
    with Client(tmp_path, SLOW.format(300)) as client:
        saturate(client)
        began = time.monotonic()
        client.send(listing(99))
        answer = client.receive()
        assert time.monotonic() - began < 0.2
        assert answer["id"] == 99
        assert code(answer) == "busy"
        envelope = answer["result"]["structuredContent"]
        assert envelope["error"]["details"] == {"reason": "queue_full", "max_executing": 4, "max_queued": 16}
        assert envelope["request"]["limit"] == 20
        answers = client.answers(20)
        assert sorted(answers) == list(range(20))
        assert {code(answer) for answer in answers.values()} == {None}
        # Ruling 31: the last four waited for sixteen others.
        assert answers[19]["result"]["structuredContent"]["performance"]["elapsed_ms"] >= 1500


def test_the_configuration_sets_how_many_run_and_wait(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "config.toml").write_text("[mcp]\nparallel = 1\nqueue = 0\nmax_results = 7\n", "utf-8")
    with Client(tmp_path, FOREVER) as client:
        client.send(listing(1), listing(2))
        envelope = client.receive()["result"]["structuredContent"]
        assert envelope["error"]["details"] == {"reason": "queue_full", "max_executing": 1, "max_queued": 0}
        assert envelope["request"]["limit"] == 7


def test_C007_C209_quick_requests_never_wait(tmp_path: Path) -> None:
    with Client(tmp_path, FOREVER) as client:
        saturate(client)
        client.send(
            request("ping", "ping"),
            request("list", "tools/list"),
            request("hello", "initialize", {}),
            call("blank", "search_sessions", query=" "),
            call("nope", "nope"),
            request("nameless", "tools/call", {}),
        )
        assert sorted(client.answers(6)) == ["blank", "hello", "list", "nameless", "nope", "ping"]


def test_C210_cancelled_calls_get_no_answer_and_free_their_place(tmp_path: Path) -> None:
    with Client(tmp_path, FOREVER) as client:
        saturate(client)
        # Unknown ids, malformed ids and ids of another type cancel nothing.
        client.send(cancel("0"), cancel(4711), cancel(None), cancel([1]), notification("notifications/cancelled"))
        client.send(cancel(0), cancel(19), request("ping", "ping"))
        assert client.receive()["id"] == "ping"
        # Both ids are free again, and so is one place in the queue; the running call frees its own.
        client.send(listing(19), request("ping", "ping"))
        assert client.receive()["id"] == "ping"
        client.send(*(cancel(id) for id in range(20)), call(0, "open", id="session:ses_0"))
        assert client.receive()["id"] == 0
        client.close_input()
        assert client.leave() == 0


def test_C211_end_of_input_lets_admitted_calls_finish(tmp_path: Path) -> None:
    with Client(tmp_path, SLOW.format(400)) as client:
        client.send(listing(1), listing(2), listing(3))
        client.close_input()
        assert sorted(client.answers(3)) == [1, 2, 3]
        assert client.leave() == 0


def test_C211_a_last_line_needs_no_line_end(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        client.close_input()
        assert client.receive()["id"] == 1
        assert client.leave() == 0


@pytest.mark.parametrize("half_first", [True, False])
def test_C211b_a_client_that_is_gone_ends_the_server(tmp_path: Path, half_first: bool) -> None:
    with Client(tmp_path, FOREVER) as client:
        saturate(client)
        ends = (client.stdin, client.stdout) if half_first else (client.stdout, client.stdin)
        for end in ends:
            end.close()
        client.process.wait(10)


def test_a_client_that_only_stops_reading_ends_the_server(tmp_path: Path) -> None:
    with Client(tmp_path, FOREVER) as client:
        saturate(client)
        client.stdout.close()
        client.process.wait(10)


def test_C212_a_duplicate_id_in_flight_is_refused(tmp_path: Path) -> None:
    with Client(tmp_path, SLOW.format(500)) as client:
        client.send(listing(7), listing(7), request(7, "ping"), listing("7"))
        refused = [client.receive(), client.receive()]
        assert [answer["error"]["code"] for answer in refused] == [-32600, -32600]
        assert [answer["id"] for answer in refused] == [7, 7]
        answers = client.answers(2)
        assert code(answers[7]) is None
        assert code(answers["7"]) is None


def test_C212_fifty_calls_in_one_write(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        mixed = [
            (listing(id), call(id, "open", id=f"bad {id}"), request(id, "ping"), call(id, "nope"))[id % 4]
            for id in range(50)
        ]
        client.send(*mixed)
        assert sorted(client.answers(50)) == list(range(50))
        client.send(*(listing(id) for id in range(4)))
        assert len(client.answers(4)) == 4


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_cancels_what_runs_and_what_waits(tmp_path: Path, number: signal.Signals, status: int) -> None:
    with Client(tmp_path, FOREVER) as client:
        saturate(client)
        client.send(cancel(3), request("ping", "ping"))
        assert client.receive()["id"] == "ping"
        client.process.send_signal(number)
        answers = client.answers(19)
        assert sorted(answers) == [id for id in range(20) if id != 3]
        assert {code(answer) for answer in answers.values()} == {"cancelled"}
        assert client.leave() == status


def test_a_signal_ends_an_idle_server(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.request("ping")
        client.process.send_signal(signal.SIGTERM)
        assert client.leave() == 0


def test_a_signal_after_the_end_of_input(tmp_path: Path) -> None:
    with Client(tmp_path, FOREVER) as client:
        client.send(call("loaded", "open", id="x"), listing(1))
        client.receive()
        client.close_input()
        client.process.send_signal(signal.SIGTERM)
        assert code(client.receive()) == "cancelled"
        assert client.leave() == 0


STRAY = """
import os, subprocess, sys, threading
from outcrop.servers import stdio
from outcrop.servers.jsonrpc import Slots

class Printing:
    def answer(self, message):
        print("stray print")
        os.write(1, b"stray write\\n")
        subprocess.run(["sh", "-c", "echo stray child; cat"])
        if message.method == "fail":
            raise KeyError("a fault of the server's own")
        return {}
    def begin(self, message, call):
        return None
    def cancels(self, message):
        return None

sys.exit(stdio.serve(Printing(), Slots()))
"""


def test_stray_output_goes_to_stderr_and_children_eat_no_frames(tmp_path: Path) -> None:
    with Client(tmp_path, argv=[sys.executable, "-c", STRAY]) as client:
        client.send(request(1, "x"), request(2, "fail"), request(3, "x"))
        answers = client.answers(3)
        assert answers[1]["result"] == {}
        assert answers[2]["error"] == {"code": -32603, "message": "request failed"}
        assert answers[3]["result"] == {}
        client.close_input()
        assert client.leave() == 0
        assert client.process.stderr
        told = client.process.stderr.read()
        for word in (b"stray print", b"stray write", b"stray child", b"KeyError"):
            assert word in told


def test_a_server_without_standard_streams_ends(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m outcrop mcp <&- >&- 2>&-"
    with Client(tmp_path, argv=["sh", "-c", command]) as client:
        client.process.wait(20)
