"""Other hosts: a real sshd, a real second `outcrop serve`, and far sides that are dead, hung, old, lying or slow."""

from __future__ import annotations

import json
import os
import resource
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from doors import SEARCH, STATUS, document, run
from far import SSH, SSHD, far_outcrop, played, sshd
from web import Web, pair, serving

from outcrop.contracts.vault.hosts import parse_host
from outcrop.contracts.vault.remote import MethodUnknown, Unreachable, search_sessions, search_status
from outcrop.contracts.vault.response import InvalidResponse, Status, Unavailable
from outcrop.errors import InvalidRequest
from outcrop.servers.runtime import RuntimePeer, checked_url, is_open
from outcrop.servers.ssh import SshPeer, checked_target, command_line
from vaults import A, U, Vault

HAS_SSHD = pytest.mark.skipif(not SSHD or not SSH, reason="no sshd and ssh here: apt-get install openssh-server")
AGENTS = ("claude",)
RUNTIME = parse_host("runtime:box")
HIT = {
    "agent": "claude",
    "executionHostId": "local",
    "sessionId": "s1",
    "title": "t",
    "cwd": "/srv/app",
    "messageCount": 2,
    "score": 1.0,
    "source": {"presence": "present", "filePath": "/secret/place.jsonl", "codexHome": "/secret"},
    "evidence": None,
    "resumeCommand": "rm -rf /",
    "surprise": 1,
}
RESULTS = {
    "kind": "results",
    "hits": [HIT],
    "page": {"cursor": None, "hasMore": False},
    "generation": 3,
    "truncated": {"candidates": False, "snippets": 0, "query": False, "freshness": False},
    "durationMs": 1,
    "debug": {"route": "or", "plannerReport": {"route": "or", "scope": "all"}},
}
STATUS_TOLD = {
    **Status(True, "degraded", 1).wire(),
    "degradedRoots": [{"root": "/secret", "reason": "/secret cannot be read"}],
}
UNVERIFIABLE = {**RESULTS, "hits": [{**HIT, "source": {"presence": "unverifiable"}}]}
OLD = {"error": {"code": -32601, "message": "method not found"}}
ANGRY = {"error": {"code": -32000, "message": "no"}}


@pytest.fixture(scope="module")
def vaults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Vault, Vault]]:
    """This machine and another one; each knows one needle."""
    here, there = Vault(tmp_path_factory.mktemp("here")), Vault(tmp_path_factory.mktemp("there"))
    here.add(U("the needle of this machine"), A("yes"))
    there.add(U("the needle of the far machine"), A("yes"))
    here.index()
    there.index()
    yield here, there
    here.close()
    there.close()


def test_S148_ids_that_are_none_are_refused_for_search_and_status(vaults: tuple[Vault, Vault]) -> None:
    here, _ = vaults
    for id in ("all", "nope", "ssh:", "runtime:a|b", "ssh:%zz", "ssh: ", "runtime:%00", ""):
        for command in (("search", "needle"), ("status",)):
            done = run(here, *command, "--host", id, "--json")
            assert (done.returncode, done.stdout) == (2, ""), id
    assert run(here, "hosts", "add", "local").returncode == 2
    assert len(document(run(here, "search", "needle", "--host", " local ", "--json"))["hits"]) == 1  # S147


def test_S149_S150_hosts_that_are_not_known_never_mean_this_machine(vaults: tuple[Vault, Vault]) -> None:
    here, _ = vaults
    done = run(here, "search", "needle", "--host", "ssh:nowhere", "--json")
    assert (done.returncode, done.stdout) == (4, "")
    assert "not known" in done.stderr
    done = run(here, "search", "needle", "--host", "runtime:nowhere", "--json")
    assert (done.returncode, document(done)) == (3, {"kind": "unavailable", "reason": "no-service"})
    done = run(here, "status", "--host", "runtime:nowhere", "--json")
    assert document(done) == Status().wire()  # S128


@pytest.mark.parametrize(
    "target",
    ["-oProxyCommand=id", "--", "a b", "a;id", "$(id)", "`id`", "a@-oProxyCommand=id", "ssh://-oX", "a\nb", "a'b"],
)
def test_a_target_is_never_an_option_nor_a_command(vaults: tuple[Vault, Vault], target: str) -> None:
    here, _ = vaults
    with pytest.raises(InvalidRequest):
        checked_target(target)
    with pytest.raises(InvalidRequest):
        SshPeer(target)
    if target == "-oProxyCommand=id":
        assert run(here, "hosts", "add", f"ssh:{target}").returncode == 2
        assert run(here, "hosts", "list").returncode == 1


@pytest.mark.parametrize("target", ["box", "me@box.example", "10.0.0.7", "me@[::1]", "ssh://me@box:2222", "a_b-c.d"])
def test_what_ssh_is_asked_to_do(target: str) -> None:
    words = command_line(target, "/opt/out crop; id")
    assert words[0] == "ssh"
    assert "BatchMode=yes" in words
    assert words[-3:] == ["--", target, "'/opt/out crop; id' relay"]


def test_what_is_known_of_hosts_is_kept_for_this_user(vaults: tuple[Vault, Vault]) -> None:
    here, _ = vaults
    try:
        secret = "outcrop_" + "s" * 43
        added = run(
            here, "hosts", "add", "runtime:box", "--url", "https://box.example/x/", "--token-stdin", input=secret
        )
        assert (added.returncode, added.stderr) == (0, "")
        open_one = run(here, "hosts", "add", "runtime:open", "--url", "http://10.1.2.3:7717", "--token", secret)
        assert "without https" in open_one.stderr
        assert run(here, "hosts", "add", "ssh:me@box", "--command", "/opt/outcrop").returncode == 0
        for path in (here.store / "hosts").iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        listed = run(here, "hosts", "list", "--json")
        assert secret not in listed.stdout
        assert document(listed)["hosts"] == [
            {"host": "runtime:box", "url": "https://box.example/x"},
            {"host": "runtime:open", "url": "http://10.1.2.3:7717"},
            {"host": "ssh:me%40box", "command": "/opt/outcrop"},
        ]
        for wrong in (
            ("runtime:x", "--url", "https://box"),
            ("runtime:x", "--token", "t"),
            ("runtime:x", "--url", "ftp://box", "--token", "t"),
            ("runtime:x", "--url", "https://me:pw@box", "--token", "t"),
            ("runtime:x", "--url", "https://box", "--token", "t t"),
            ("ssh:x", "--url", "https://box"),
        ):
            assert run(here, "hosts", "add", *wrong).returncode == 2, wrong
    finally:
        for host in ("runtime:box", "runtime:open", "ssh:me@box"):
            assert run(here, "hosts", "remove", host).returncode == 0
        assert run(here, "hosts", "remove", "ssh:me@box").returncode == 1


def test_urls() -> None:
    assert [is_open(url) for url in ("http://127.0.0.1:1", "http://localhost", "http://[::1]", "https://x")] == [
        False
    ] * 4
    assert [is_open(url) for url in ("http://10.0.0.1", "http://x.example")] == [True] * 2
    assert checked_url("https://x:1/a/") == "https://x:1/a"
    for wrong in ("", "x", "https://", "https://x:port", "https://x?token=1", "file:///x"):
        with pytest.raises(InvalidRequest):
            checked_url(wrong)


def added_runtime(here: Vault, web: Web) -> None:
    done = run(here, "hosts", "add", "runtime:box", "--url", web.url, "--token-stdin", input=web.token + "\n")
    assert done.returncode == 0, done.stderr


def test_a_paired_runtime_is_asked_and_no_other_host(vaults: tuple[Vault, Vault]) -> None:
    here, there = vaults
    with serving(there) as web:
        added_runtime(here, web)
        found = document(run(here, "search", "needle", "--host", "runtime:box", "--json"))
        assert [hit["title"] for hit in found["hits"]] == ["the needle of the far machine"]
        [hit] = found["hits"]
        assert hit["executionHostId"] == "runtime:box"
        assert hit["source"] == {"presence": "present"}
        assert "resumeCommand" not in hit
        shown = run(here, "search", "needle", "--host", "runtime:box")
        assert "the needle of the far machine" in shown.stdout
        assert document(run(here, "status", "--host", "runtime:box", "--json"))["filesIndexed"] == 1
        tested = run(here, "hosts", "test", "runtime:box", "--json")
        assert (tested.returncode, document(tested)["ok"]) == (0, True)
        run(there, "pair", "revoke", "laptop")
        refused = run(here, "search", "needle", "--host", "runtime:box", "--json")  # S153
        assert (refused.returncode, refused.stdout) == (4, "")
        assert "token" in refused.stderr
        assert web.token not in refused.stderr
    dead = run(here, "search", "needle", "--host", "runtime:box", "--json")
    assert (dead.returncode, dead.stdout) == (4, "")
    assert run(here, "hosts", "test", "runtime:box").returncode == 4


@contextmanager
def answering(*pieces: bytes, pause: float = 0.0) -> Iterator[tuple[str, list[bytes]]]:
    """A server that reads a request and says the pieces, whatever was asked; its URL and what it read."""
    asked: list[bytes] = []
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    asked.append(connection.recv(1 << 20))
                    for piece in pieces:
                        connection.sendall(piece)
                        if ended.wait(pause):
                            return
                    if not pieces:
                        ended.wait(30)
                except OSError:
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def http_of(told: Any, status: str = "200 OK", id: int = 1) -> bytes:
    body = told if isinstance(told, bytes) else json.dumps({"jsonrpc": "2.0", "id": id, **told}).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def asked_runtime(*pieces: bytes, pause: float = 0.0, seconds: float = 5.0) -> Any:
    with answering(*pieces, pause=pause) as (url, _):
        peer = RuntimePeer(url, "t")
        try:
            return peer.call(SEARCH, {"query": "x"}, seconds)
        finally:
            peer.close()


class Fixed:
    """A peer with one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def call(self, method: str, params: Any, seconds: float) -> Any:
        return json.loads(json.dumps(self.answer))

    def close(self) -> None:
        raise AssertionError


def test_S151_S124_what_a_far_side_claims() -> None:
    found = search_sessions({"query": "x"}, AGENTS, RUNTIME, Fixed(RESULTS))
    told = found.wire()
    [hit] = told["hits"]
    assert hit["executionHostId"] == "runtime:box"
    assert hit["source"] == {"presence": "present"}
    assert "resumeCommand" not in hit
    assert "debug" not in told
    assert "secret" not in json.dumps(told)
    status = search_status(Fixed(STATUS_TOLD)).wire()
    assert status["degradedRoots"] == [{"reason": "Source root could not be verified."}]
    with pytest.raises(InvalidResponse):
        search_sessions({"query": "x"}, AGENTS, RUNTIME, Fixed(UNVERIFIABLE))
    for missing in RESULTS.keys() - {"debug"}:
        broken = {name: value for name, value in RESULTS.items() if name != missing}
        with pytest.raises(InvalidResponse):
            search_sessions({"query": "x"}, AGENTS, RUNTIME, Fixed(broken))  # S154
    for wrong in (None, [], "x", {"kind": "other"}, {**RESULTS, "hits": [{**HIT, "executionHostId": ""}]}):
        with pytest.raises(InvalidResponse):
            search_sessions({"query": "x"}, AGENTS, RUNTIME, Fixed(wrong))
    with pytest.raises(InvalidRequest):
        search_sessions({"query": 5}, AGENTS, RUNTIME, Fixed(RESULTS))


def test_S152_S153_a_runtime_that_is_old_or_answers_errors() -> None:
    for old in (OLD, {"ok": False, "error": {"code": "method_not_found", "message": "?"}}):
        with pytest.raises(MethodUnknown):
            asked_runtime(http_of(old, "404 Not Found"))
    with answering(http_of(OLD)) as (url, _):
        peer = RuntimePeer(url, "t")
        assert search_sessions({"query": "x"}, AGENTS, RUNTIME, peer) == Unavailable("no-service")
        peer.close()
    for piece in (
        http_of(ANGRY),
        http_of(b"{}", "401 Unauthorized"),
        http_of(b"<html>", "404 Not Found"),
        http_of(b"{}", "404 Not Found"),
        http_of(b"no json"),
        http_of({"result": {}}, id=9),
        http_of(b"{}", "500 Oops"),
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
    ):
        with pytest.raises(Unreachable):
            asked_runtime(piece)


def test_a_runtime_that_hangs_or_trickles_is_let_go_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(Unreachable, match="in time"):
        asked_runtime(seconds=1.0)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    with pytest.raises(Unreachable, match="in time"):
        asked_runtime(head, *[b"{"] * 200, pause=0.1, seconds=1.0)
    with pytest.raises(Unreachable, match="in time"):
        asked_runtime(*[b"H"] * 200, pause=0.1, seconds=1.0)
    assert time.monotonic() - began < 20
    slow = http_of({"result": RESULTS})
    assert asked_runtime(slow[:20], slow[20:90], slow[90:], pause=0.2) == RESULTS


@HAS_SSHD
def test_another_machine_over_ssh(vaults: tuple[Vault, Vault], tmp_path: Path) -> None:
    here, there = vaults
    command = far_outcrop(tmp_path / "outcrop", there)
    with sshd(tmp_path / "sshd") as variables:
        assert run(here, "hosts", "add", "ssh:far", "--command", str(command)).returncode == 0
        done = run(here, "search", "needle", "--host", "ssh:far", "--json", **variables)
        assert done.returncode == 0, done.stderr + (tmp_path / "sshd" / "sshd.log").read_text()
        [hit] = document(done)["hits"]
        assert (hit["title"], hit["executionHostId"]) == ("the needle of the far machine", "ssh:far")
        assert hit["source"] == {"presence": "present"}
        assert "resumeCommand" not in hit
        shown = run(here, "search", "needle", "--host", "ssh:far", **variables)
        assert "the needle of the far machine" in shown.stdout
        assert document(run(here, "status", "--host", "ssh:far", "--json", **variables))["filesIndexed"] == 1
        assert run(here, "hosts", "test", "ssh:far", **variables).returncode == 0
    dead = run(here, "search", "needle", "--host", "ssh:far", "--json", **variables)
    assert (dead.returncode, dead.stdout) == (4, "")
    assert "refused" in dead.stderr.lower()
    assert run(here, "hosts", "remove", "ssh:far").returncode == 0


@HAS_SSHD
def test_far_sides_over_ssh_that_misbehave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = parse_host("ssh:far")
    answers = {SEARCH: {"result": RESULTS}, STATUS: {"result": STATUS_TOLD}}
    with sshd(tmp_path / "sshd") as variables:
        monkeypatch.setenv("PATH", variables["PATH"])

        def asked(part: str, told: dict[str, Any], seconds: float = 20.0) -> Any:
            peer = SshPeer("far", str(played(tmp_path / part, part, told)))
            try:
                return peer.call(SEARCH, {"query": "x"}, seconds)
            finally:
                peer.close()

        assert asked("login", answers) == RESULTS  # what a login script says is no answer
        with pytest.raises(MethodUnknown):
            asked("old", {SEARCH: OLD})
        with pytest.raises(Unreachable, match="no such thing"):
            asked("dead", {})
        with pytest.raises(Unreachable, match="the host answered an error: no"):
            asked("angry", {SEARCH: ANGRY})
        began = time.monotonic()
        with pytest.raises(Unreachable, match="in time"):
            asked("hung", {}, 2.0)
        assert time.monotonic() - began < 15
        room = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(Unreachable, match="in time"):
            asked("noise", {}, 4.0)  # one that never stops talking
        assert time.monotonic() - began < 30
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - room < 64 * 1024, "KiB of what nobody looks at"
        lying = SshPeer("far", str(played(tmp_path / "lying", "lying", answers)))
        [hit] = search_sessions({"query": "x"}, AGENTS, host, lying).wire()["hits"]
        assert hit["executionHostId"] == "ssh:far"
        first = relays(tmp_path / "lying.py")
        assert len(search_status(lying).degraded_roots) == 1
        assert relays(tmp_path / "lying.py") == first  # one connection for both
        for pid in first:
            os.kill(pid, 9)
        with pytest.raises(Unreachable):
            search_status(lying)
        assert len(search_status(lying).degraded_roots) == 1  # and a new one after it broke
        lying.close()
        missing = SshPeer("far", str(tmp_path / "no" / "outcrop"))
        with pytest.raises(Unreachable, match=r"(?i)no such file|not found"):
            missing.call(SEARCH, {"query": "x"}, 20.0)


def relays(program: Path) -> list[int]:
    """Processes that run a program, by /proc."""
    found = subprocess.run(["pgrep", "-f", f"python.* {program}$"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def test_without_ssh_there_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="no `ssh`"):
        SshPeer("far").call(SEARCH, {}, 1.0)


def test_the_exit_of_a_pairing_is_its_revocation(vaults: tuple[Vault, Vault]) -> None:
    """The name of a pair can be used again; the old token stays dead."""
    _, there = vaults
    old = pair(there, "again")
    assert run(there, "pair", "revoke", "again").returncode == 0
    assert pair(there, "again") != old
