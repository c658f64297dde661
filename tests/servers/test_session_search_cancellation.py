"""A session search that nobody waits for any more ends, and its place is free: over the relay, the socket and HTTP."""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from doors import SEARCH, SOURCE, Json, Local, environment, relay, until, watching
from web import serving
from wire import PATIENCE, notification, request

from cancelling import ends_at_every_look
from outcrop.contracts.vault import service
from outcrop.contracts.vault.exposure import Transport
from outcrop.contracts.vault.response import Response, Status
from outcrop.errors import Cancelled
from outcrop.search.found import SessionPage, SessionSearch
from outcrop.search.sessions import search_sessions
from outcrop.store.embedded.read import EmbeddedStore
from vaults import A, T, U, Vault

SLOW = """
from outcrop.store.embedded import cards

real = cards.admitted

def admitted(db, harnesses, since, cwds):
    if since is not None:
        db.execute("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c").fetchone()
    return real(db, harnesses, since, cwds)

cards.admitted = admitted
"""
"""Run by the interpreter of the processes: a search with `since` has a statement that never ends by itself."""
PLAIN: Json = {"query": "needle", "filters": {"agents": ["claude"]}}
ENDLESS: Json = {"query": "needle", "filters": {"since": "2026-01-01T00:00:00Z"}}


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault(tmp_path)
    made.add(U("the needle in the harbour"), A("found it"), T("needle output"))
    made.add(U("a second needle"), A("needles, yes"))
    made.index()
    (made.store / "config.toml").write_text("[mcp]\nparallel = 1\nqueue = 1\n")
    yield made
    made.close()


@pytest.fixture
def slow(vault: Vault) -> dict[str, str]:
    """Variables of a process whose searches can be endless; one runs, one waits."""
    folder = vault.folder / "slow"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SLOW)
    return {"PYTHONPATH": f"{folder}:{SOURCE}"}


def found(answer: Json) -> int:
    return len(answer["result"]["hits"])


def test_a_cancelled_search_of_a_relay_makes_place_for_the_next(vault: Vault, slow: dict[str, str]) -> None:
    with relay(vault, **slow) as client:
        for round in range(3):
            client.send(
                request(f"endless {round}", SEARCH, ENDLESS),
                request(f"next {round}", SEARCH, PLAIN),
                request("third", SEARCH, PLAIN),
            )
            refused = client.receive()
            assert (refused["id"], refused["error"]["data"]["code"]) == ("third", "busy")
            client.send(notification("rpc.cancel", {"id": f"endless {round}"}))
            answer = client.receive()  # only one search runs at a time, so the endless one is over
            assert (answer["id"], found(answer)) == (f"next {round}", 2)


def test_a_relay_whose_client_is_gone_ends(vault: Vault, slow: dict[str, str]) -> None:
    with relay(vault, **slow) as client:
        client.send(request(1, SEARCH, ENDLESS), request(2, SEARCH, PLAIN), request(3, SEARCH, PLAIN))
        assert client.receive()["id"] == 3
        client.stdout.close()
        client.stdin.close()
        client.process.wait(30)


def busy(answer: Json) -> bool:
    return bool(answer.get("error", {}).get("data", {}).get("code") == "busy")


def test_a_client_of_the_socket_that_leaves_makes_place_for_others(
    vault: Vault, slow: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doors.environment", lambda vault, **more: environment(vault, **{**slow, **more}))
    with watching(vault), Local(vault) as other:
        with Local(vault) as leaver:
            for id in (1, 2, 3):
                leaver.raw(json.dumps(request(id, SEARCH, ENDLESS)).encode() + b"\n")
            assert busy(leaver.line())
            assert busy(other.ask(SEARCH, PLAIN))
        until(lambda: not busy(answer := other.ask(SEARCH, PLAIN)) and found(answer) == 2)


def test_a_client_of_http_that_leaves_makes_place_for_others(vault: Vault, slow: dict[str, str]) -> None:
    with serving(vault, **slow) as web, ExitStack() as open_ones:
        leavers = [open_ones.enter_context(closing(web.connect())) for _ in range(3)]
        for id, connection in enumerate(leavers):
            head = {"Content-Type": "application/json", "Authorization": f"Bearer {web.token}"}
            connection.request("POST", "/rpc", json.dumps(request(id, SEARCH, ENDLESS)), head)
        [socket], _, _ = select.select([connection.sock for connection in leavers], [], [], PATIENCE)
        [refused] = [connection for connection in leavers if connection.sock is socket]
        assert b'"busy"' in refused.getresponse().read()
        assert busy(web.ask(SEARCH, PLAIN))
        for connection in leavers:
            connection.close()
        until(lambda: not busy(answer := web.ask(SEARCH, PLAIN)) and found(answer) == 2)


class Never:
    """A service whose reconciling does not end while the test runs."""

    def __init__(self) -> None:
        self.end = threading.Event()

    def search(self, request: object, cancelled: object = None) -> Response:
        raise AssertionError("it was cancelled before it searched")

    def status(self) -> Status:
        raise AssertionError

    def reconcile(self) -> None:
        self.end.wait(30)


def test_a_search_that_waits_for_what_is_new_ends_as_well() -> None:
    waiting = Never()
    service.set_session_search_service(waiting)
    looks: list[float] = []

    def cancelled() -> bool:
        looks.append(time.monotonic())
        return len(looks) > 2

    try:
        with pytest.raises(Cancelled):
            service.search_sessions({"query": "x", "freshness": "wait-until-current"}, {}, Transport.IPC, cancelled)
    finally:
        waiting.end.set()
        service.set_session_search_service(None)
    assert looks[-1] - looks[0] < service.DEADLINE_SECONDS / 2


QUERIES: dict[str, dict[str, Any]] = {
    "any word": {"text": "needle harbour"},
    "phrase": {"text": '"needle output"'},
    "all words": {"text": '"harbour needle"'},
    "repaired": {"text": "harbuor"},
    "newest": {"text": "needle", "sort": "newest"},
    "operator": {"text": "path:srv"},
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_search_ends_at_the_first_look_that_tells_it_to(vault: Vault, name: str) -> None:
    store = EmbeddedStore(vault.store)

    def search(cancelled: Callable[[], bool]) -> None:
        page = search_sessions(store, SessionSearch(**QUERIES[name]), cancelled)
        assert isinstance(page, SessionPage)
        assert page.hits

    ends_at_every_look(search)
    store.close()
