"""Session search over the local socket and over the relay: who sees what, and what keeps it going."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from doors import SEARCH, STATUS, Local, relay, stop_indexer, until, watching
from wire import notification, request

from outcrop.contracts.vault.response import Status
from outcrop.contracts.vault.watched import WatchedService
from outcrop.ingest.observed import Observed
from outcrop.servers.jsonrpc import Call, Connection, Message, Slots
from vaults import A, T, U, Vault

FRAME = 16 * 1024 * 1024


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault(tmp_path)
    made.add(U("the needle in the harbour"), A("found it"), T("needle output"))
    made.add(U("a second needle"), A("yes"))
    yield made
    made.close()


def test_the_socket_answers_this_user_in_full(vault: Vault) -> None:
    with watching(vault), Local(vault) as client:
        status = until(lambda: (s := client.ask(STATUS)["result"])["phase"] == "current" and s)
        assert status["enabled"]
        assert (status["filesIndexed"], status["filesDue"], status["filesFailed"]) == (2, 0, 0)
        assert status["lastSweepCompletedAt"] >= 1_700_000_000_000
        found = client.ask(SEARCH, {"query": "needle"})["result"]
        assert found["kind"] == "results"
        assert found["generation"] == client.ask(STATUS)["result"]["generation"]  # S139
        assert len(found["hits"]) == 2
        for hit in found["hits"]:
            assert hit["source"]["presence"] == "present"
            assert Path(hit["source"]["filePath"]).exists()
            assert "claude --resume" in hit["resumeCommand"]
        assert not {"status", "phase"} & set(found)  # S137


def test_the_socket_tells_what_is_wrong_with_a_request(vault: Vault) -> None:
    with watching(vault), Local(vault) as client:
        wrong = client.ask(SEARCH, {"query": 5})
        assert (wrong["error"]["code"], wrong["error"]["data"]["details"]["field"]) == (-32602, "query")
        assert client.ask(SEARCH, [])["error"]["code"] == -32602
        assert client.ask(STATUS, [])["error"]["code"] == -32602
        assert client.ask("aiVault.setSearchEnabled")["error"]["code"] == -32600  # jobs want a greeting first


def test_wait_until_current_reads_what_was_just_written(vault: Vault) -> None:
    with watching(vault), Local(vault) as client:
        until(lambda: client.ask(STATUS)["result"]["phase"] == "current")
        vault.add(U("a flamingo arrives"), A("indeed"))
        found = client.ask(SEARCH, {"query": "flamingo", "freshness": "wait-until-current"})["result"]
        assert [hit["title"] for hit in found["hits"]] == ["a flamingo arrives"]
        assert found["truncated"]["freshness"] is False


class Waits:
    """Work that lasts until it is let go."""

    answered = None

    def __init__(self) -> None:
        self.go = threading.Event()

    def run(self) -> dict:
        assert self.go.wait(30)
        return {}

    def refuse(self, error: Exception) -> dict:
        return {"refused": str(error)}


class Searching:
    """A handler whose `search` never ends by itself."""

    def __init__(self) -> None:
        self.work = Waits()

    def begin(self, message: Message, call: Call) -> object:
        done = Waits()
        done.go.set()
        return self.work if message.method == "search" else done

    def answer(self, message: Message) -> dict:
        raise AssertionError

    def cancels(self, message: Message) -> None:
        return None


def test_searches_never_hold_up_jobs() -> None:
    answers: list[dict] = []
    came = threading.Event()

    def send(frame: bytes) -> None:
        answers.append(json.loads(frame))
        came.set()

    handler = Searching()
    connection = Connection(handler, Slots(1, 0), send, {"search": Slots(1, 1)})
    for id in (1, 2, 3):
        connection.receive(json.dumps(request(id, "search")).encode(), 0.0)
    assert [answer["result"] for answer in answers] == [{"refused": "the queue of calls is full; try again later"}]
    came.clear()
    connection.receive(json.dumps(request(4, "job")).encode(), 0.0)
    assert came.wait(30)
    assert answers[-1]["id"] == 4
    handler.work.go.set()
    until(lambda: {answer["id"] for answer in answers} == {1, 2, 3, 4})


class Stored:
    """A store's own answers."""

    def __init__(self, status: Status) -> None:
        self.told = status

    def search(self, request: object) -> object:
        raise AssertionError

    def status(self) -> Status:
        return self.told

    def reconcile(self) -> None:
        raise AssertionError


def phase(seen: Observed, **counts: int) -> str:
    return WatchedService(Stored(Status(True, "current", **counts)), seen).status().phase  # type: ignore[arg-type]


def test_S136_phases_come_in_their_order() -> None:
    seen = Observed()
    assert phase(seen) == "idle"
    seen.begin()
    assert phase(seen) == "indexing"
    seen.end()
    seen.last_sweep_completed_at = 1
    assert phase(seen) == "current"
    assert phase(seen, files_due=1) == "indexing"
    assert phase(seen, files_failed=1) == "degraded"
    seen.degraded_roots = [{"root": "/r", "reason": "permission denied"}]
    assert phase(seen) == "degraded"
    seen.closed = True
    assert phase(seen, files_due=1) == "closed"
    assert WatchedService(Stored(Status()), seen).status() == Status()  # type: ignore[arg-type]


def test_the_relay_withholds_what_a_paired_client_may_not_know(vault: Vault) -> None:
    vault.index()
    with relay(vault) as client:
        found = client.request(SEARCH, {"query": "needle", "clientKind": "local", "transport": "ipc"})["result"]  # S122
        assert len(found["hits"]) == 2
        for hit in found["hits"]:
            assert hit["source"] == {"presence": "present"}  # S121
            assert "resumeCommand" not in hit
            assert hit["cwd"] == "/srv/app"
            assert "[[needle]]" in hit["evidence"]["snippet"]
        assert client.request(STATUS, {})["result"]["filesIndexed"] == 2
        client.close_input()
        assert client.leave() == 0


def test_S155_S156_S157_lines_that_are_odd(vault: Vault) -> None:
    vault.index()
    with relay(vault) as client:
        client.raw(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"a" * FRAME + b'"}}\n')
        assert client.receive()["error"]["code"] == -32700
        client.send({**request(2, STATUS), "jsonrpc": "1.0"}, request(3, STATUS), request(4, STATUS))
        assert set(client.answers(2)) == {3, 4}
        line = json.dumps(request(5, STATUS)).encode() + b"\n"
        for start in range(0, len(line), 1 + len(line) // 13):
            client.raw(line[start : start + 1 + len(line) // 13])
        assert client.receive()["id"] == 5
        unknown = client.request("aiVault.listSessions", {})
        assert unknown["error"]["code"] == -32601
        client.send(notification("rpc.cancel", {"id": 99}))
        assert "result" in client.request(STATUS, {})


def test_a_cancelled_search_gets_no_answer(vault: Vault) -> None:
    vault.index()
    with relay(vault) as client:
        for id in range(1, 15):
            client.send(request(id, SEARCH, {"query": "needle"}))
        client.send(notification("rpc.cancel", {"id": 14}), request(15, STATUS))
        client.close_input()
        answered = [message["id"] for message in client.rest()]
        assert len(answered) == len(set(answered))
        assert set(range(1, 14)) | {15} <= set(answered)


def test_the_relay_starts_an_indexer_and_outlives_it(vault: Vault) -> None:
    with relay(vault, OUTCROP_AUTO_INDEX="1") as client:
        first = client.request(SEARCH, {"query": "needle"})["result"]
        assert first["kind"] in ("results", "unavailable")
        until(lambda: client.request(STATUS, {})["result"]["phase"] == "current")
        assert len(client.request(SEARCH, {"query": "needle"})["result"]["hits"]) == 2
        record = json.loads((vault.store / "run" / "indexer.json").read_text())
        os.kill(record["pid"], signal.SIGKILL)
        assert len(client.request(SEARCH, {"query": "needle"})["result"]["hits"]) == 2
        assert client.request(STATUS, {})["result"]["filesIndexed"] == 2
        vault.add(U("a pelican lands"), A("so it does"))
        fresh = client.request(SEARCH, {"query": "pelican", "freshness": "wait-until-current"})["result"]
        assert len(fresh["hits"]) == 1
    stop_indexer(vault)


def test_nothing_is_searched_where_it_is_switched_off(vault: Vault) -> None:
    vault.index()
    (vault.store / "config.toml").write_text("[search]\nenabled = false\n")
    with relay(vault) as client:
        assert client.request(SEARCH, {"query": "needle"})["result"] == {"kind": "unavailable", "reason": "disabled"}
        assert client.request(STATUS, {})["result"]["enabled"] is False  # S129
