"""Pairing: tokens are shown once, kept as digests, named, listed, expiring, and revoked at once."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from doors import SEARCH, STATUS, document, run, until
from web import pair, serving

from limits import plainly
from outcrop.servers.gate import FREE_TRIES, SLOWEST, delay
from vaults import A, U, Vault
from world import World


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault(tmp_path)
    made.add(U("the needle in the harbour"), A("found it"))
    made.index()
    yield made
    made.close()


def test_a_token_is_shown_once_and_never_written(vault: Vault) -> None:
    done = run(vault, "pair", "laptop")
    token = done.stdout.strip()
    assert token.startswith("outcrop_")
    assert len(token) >= 50
    for path in vault.store.rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes(), path
    [kept] = (vault.store / "pairs").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    [told] = document(run(vault, "pair", "list", "--json"))["pairs"]
    assert (told["name"], told["expires"], told["expired"], told["last_used"]) == ("laptop", None, False, None)


def test_names_are_the_owner_s(vault: Vault) -> None:
    assert run(vault, "pair", "laptop").returncode == 0
    again = run(vault, "pair", "laptop")
    assert (again.returncode, again.stdout) == (2, "")
    for odd in ("../up", "", ".hidden", "a b", "a/b", "x" * 65):
        assert run(vault, "pair", odd).returncode == 2
        assert run(vault, "pair", "revoke", odd).returncode == 1
    assert run(vault, "pair", "revoke").returncode == 2
    assert run(vault, "pair", "x", "--expires", "soon").returncode == 2
    assert run(vault, "pair", "x", "--expires", "0d").returncode == 2
    assert run(vault, "pair", "revoke", "laptop").returncode == 0
    assert run(vault, "pair", "revoke", "laptop").returncode == 1
    assert run(vault, "pair", "list").returncode == 1


def test_a_data_folder_that_may_not_be_written_or_read_is_called_just_that(vault: Vault) -> None:
    for words in (["pair", "laptop"], ["hosts", "add", "ssh:box"]):
        assert run(vault, *words).returncode == 0
    world = World(vault.folder)
    folders = [vault.store / "pairs", vault.store / "hosts"]
    kept = [path for folder in folders for path in folder.iterdir()]
    writing = [["pair", "phone"], ["pair", "revoke", "laptop"]]
    writing += [["hosts", verb, host] for verb, host in (("add", "ssh:new"), ("add", "ssh:box"), ("remove", "ssh:box"))]
    reading = [["pair", "list"], ["hosts", "list"]]
    for mode, commands, done in ((0o500, writing, "written"), (0o000, reading, "read")):
        for folder in folders:
            folder.chmod(mode)
        try:
            for words in commands:
                told = plainly(world, *words)
                assert (told.code, told.out) == (3, ""), (words, told)
                assert told.err == f"outcrop: error: the data folder cannot be {done}: permission denied\n"
        finally:
            for folder in folders:
                folder.chmod(0o700)
    assert [path for folder in folders for path in folder.iterdir()] == kept
    kept[1].chmod(0o000)
    told = plainly(world, "search", "needle", "--host", "ssh:box")
    assert (told.code, told.err) == (3, "outcrop: error: the data folder cannot be read: permission denied\n")


def test_a_revoked_token_is_refused_on_a_connection_that_is_open(vault: Vault) -> None:
    with serving(vault) as web:
        other = pair(vault, "phone")
        connection = web.connect()
        message = {"jsonrpc": "2.0", "id": 1, "method": STATUS, "params": {}}
        assert web.send(message, over=connection).status == 200
        assert web.send(message, token=other).status == 200
        assert run(vault, "pair", "revoke", "laptop").returncode == 0
        assert web.send(message, over=connection).status == 401
        connection.close()
        assert web.send(message, token=other).status == 200


def test_an_answer_that_was_underway_is_withheld_once_its_token_is_revoked(vault: Vault) -> None:
    with serving(vault, OUTCROP_FAULT="slow:list_sessions:4000") as web:
        connection = web.connect()
        arguments = {"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"}
        message = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_sessions","arguments":'
            + str(arguments).replace("'", '"').encode()
            + b"}}"
        )
        connection.putrequest("POST", "/mcp")
        for name, value in (("Content-Type", "application/json"), ("Authorization", f"Bearer {web.token}")):
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(message)))
        connection.endheaders(message)
        # The use is noted before the call begins.
        until(lambda: document(run(vault, "pair", "list", "--json"))["pairs"][0]["last_used"])
        assert run(vault, "pair", "revoke", "laptop").returncode == 0
        with connection.getresponse() as answer:
            assert answer.status == 401
            assert b"result" not in answer.read()
        connection.close()


def test_tokens_expire(vault: Vault) -> None:
    token = pair(vault, "guest", "--expires", "3s")
    with serving(vault, token=token) as web:
        message = {"jsonrpc": "2.0", "id": 1, "method": STATUS, "params": {}}
        until(lambda: web.send(message).status == 401)
    [told] = document(run(vault, "pair", "list", "--json"))["pairs"]
    assert told["expired"]


def test_the_last_use_is_told(vault: Vault) -> None:
    with serving(vault) as web:
        before = time.time()
        web.ask(SEARCH, {"query": "needle"})
        [told] = document(run(vault, "pair", "list", "--json"))["pairs"]
        assert told["last_used"] >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(before - 1))


def test_wrong_tokens_are_answered_later_and_later(vault: Vault) -> None:
    assert [delay(count) for count in range(1, FREE_TRIES + 1)] == [0.0] * FREE_TRIES
    waits = [delay(count) for count in range(FREE_TRIES + 1, 60)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.2, SLOWEST)
    with serving(vault) as web:
        began = time.monotonic()
        for _ in range(FREE_TRIES + 3):
            assert web.send(b"{}", token="outcrop_wrong").status == 401
        assert time.monotonic() - began >= 0.2 + 0.4 + 0.8
        assert web.send({"jsonrpc": "2.0", "id": 1, "method": STATUS}).status == 200
        began = time.monotonic()
        assert web.send(b"{}", token="outcrop_wrong").status == 401
        assert delay(1) == 0.0
        log = (vault.folder / "serve.err").read_text(encoding="utf-8")
        assert web.token not in log
        assert "outcrop_wrong" not in log
