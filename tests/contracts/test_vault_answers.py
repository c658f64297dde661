"""The session search contract, groups J, K, L of the numbered cases: exposure, presence, freshness, status, hosts."""

from __future__ import annotations

import copy
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.vaults import START, A, T, U, Vault

from outcrop.contracts.catalog import Resume
from outcrop.contracts.vault import service
from outcrop.contracts.vault.exposure import WITHHELD_REASON, Transport, redact_for_transport, redact_status
from outcrop.contracts.vault.hosts import LOCAL, Host, HostKind, parse_host
from outcrop.contracts.vault.local import LocalService
from outcrop.contracts.vault.request import Request
from outcrop.contracts.vault.response import (
    Debug,
    DegradedRoot,
    Evidence,
    Hit,
    Response,
    Results,
    Source,
    StaleCursor,
    Status,
    Truncated,
)
from outcrop.contracts.vault.resume import shell_line
from outcrop.errors import BackendFailure, InvalidRequest
from outcrop.harnesses import Environment, all_agents, load
from outcrop.store.embedded.read import EmbeddedStore
from outcrop.store.embedded.write import Writer

FULL = Hit(
    "codex", "id", "title", 3, 1.5, Source("present", "/f", "/c"), Evidence("[[x]]", "user"), "/w", "main",
    resume_command="codex resume id",
)  # fmt: skip


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault(tmp_path)
    yield made
    made.close()
    service.set_session_search_service(None)


# J. Presence and exposure


def test_S117_a_source_that_is_there(vault: Vault) -> None:
    made = vault.add(U("kestrel"), cwd="/srv/my app")
    vault.index()
    for transport in (Transport.IPC, Transport.RUNTIME):
        vault.transport = transport
        [hit] = vault.hits("kestrel")
        assert hit["source"] == {"presence": "present", "filePath": str(vault.path(made))}
        assert hit["resumeCommand"] == f"cd '/srv/my app' && claude --resume {made}"


def test_S118_B60_a_root_that_cannot_be_listed_loses_nothing(vault: Vault) -> None:
    vault.add(U("kestrel"))
    vault.index()
    root = vault.home / ".claude" / "projects"
    root.rename(root.with_name("elsewhere"))
    root.symlink_to(root)  # as a mount that does not answer: there is something, and it cannot be listed
    vault.index()
    [hit] = vault.hits("kestrel")
    assert hit["source"]["presence"] == "unverifiable"
    assert "resumeCommand" not in hit
    status = vault.status()
    assert status["phase"] == "degraded"
    assert [told["root"] for told in status["degradedRoots"]] == [str(root)]
    root.unlink()
    root.with_name("elsewhere").rename(root)
    vault.index()
    assert vault.hits("kestrel")[0]["source"]["presence"] == "present"


def test_a_degraded_root_makes_its_sessions_unverifiable(vault: Vault) -> None:
    vault.add(U("kestrel"))
    vault.index()
    root = str(vault.home / ".claude" / "projects")
    told(
        vault,
        "UPDATE meta SET v = ? WHERE k = 'roots'",
        json.dumps([{"source": "claude", "root": root, "problem": "gone"}]),
    )
    [hit] = vault.hits("kestrel")
    assert hit["source"]["presence"] == "unverifiable"
    assert "resumeCommand" not in hit
    status = vault.status()
    assert (status["phase"], status["degradedRoots"]) == ("degraded", [{"root": root, "reason": "gone"}])
    vault.transport = Transport.RELAY
    assert vault.status()["degradedRoots"] == [{"reason": WITHHELD_REASON}]


def told(vault: Vault, sql: str, *values: Any) -> None:
    db = Writer(vault.store).db
    db.execute(sql, values)
    db.close()


def test_S119_B31_a_deleted_file_keeps_its_history_and_cannot_be_resumed(vault: Vault) -> None:
    made = vault.add(U("kestrel"))
    vault.add(U("gull"))
    vault.index()
    vault.path(made).unlink()
    vault.index()
    [hit] = vault.hits("kestrel")
    assert hit["source"]["presence"] == "missing"
    assert "resumeCommand" not in hit


def test_S120_a_session_without_a_file_is_unverifiable(vault: Vault) -> None:
    vault.add(U("kestrel"))
    vault.index()
    told(vault, "DELETE FROM file")
    [hit] = vault.hits("kestrel")
    assert hit["source"] == {"presence": "unverifiable"}
    assert "resumeCommand" not in hit


def test_S121_S122_a_relay_gets_no_paths_and_no_command(vault: Vault) -> None:
    vault.add(U("kestrel"))
    vault.index()
    vault.transport = Transport.RELAY
    [hit] = vault.send({"query": "kestrel", "clientKind": "local", "transport": "ipc"})["hits"]
    assert hit["source"] == {"presence": "present"}
    assert "resumeCommand" not in hit
    assert hit["cwd"] == "/srv/app"
    assert hit["branch"] == "main"
    assert "[[kestrel]]" in hit["evidence"]["snippet"]


def test_S123_S125_redaction_leaves_its_input_alone() -> None:
    before = copy.deepcopy(FULL)
    assert redact_for_transport(FULL, Transport.IPC) == FULL == before
    told = redact_for_transport(FULL, Transport.RELAY)
    assert before == FULL
    assert (told.source, told.resume_command, told.cwd, told.evidence) == (Source("present"), None, "/w", FULL.evidence)
    absent = FULL._replace(source=Source("unverifiable", "/f"))
    for transport in Transport:
        assert redact_for_transport(absent, transport).resume_command is None
    assert "codexHome" not in FULL._replace(source=Source("present", "/f")).wire()["source"]


def test_S126_B14_a_status_over_a_relay_holds_no_path() -> None:
    status = Status(
        True, "degraded", degraded_roots=(DegradedRoot("EACCES /home/me/.codex", "/home/me"), DegradedRoot("x", "/y"))
    )
    told = redact_status(status, Transport.RELAY).wire()
    assert told["degradedRoots"] == [{"reason": WITHHELD_REASON}] * 2
    assert "/" not in json.dumps(told)
    for transport in (Transport.IPC, Transport.RUNTIME):
        assert redact_status(status, transport) == status


def test_S127_B76_credentials_were_masked_before_they_were_stored(vault: Vault) -> None:
    vault.add(U("the kestrel key is AKIAIOSFODNN7EXAMPLE and sk-ant-api03-" + "a1B2" * 24))
    vault.index()
    [hit] = vault.hits("kestrel")
    assert "REDACTED" in hit["evidence"]["snippet"]
    assert vault.hits("AKIAIOSFODNN7EXAMPLE", scope="conversation") == []


def test_a_codex_home_is_told_where_it_is_not_the_default() -> None:
    here = Environment(Path("/home/me"))
    codex = load("codex")
    assert codex.resume_variables("/home/me/.codex/sessions/2026/05/01/r.jsonl", here) == {}
    other = {"CODEX_HOME": "/data/codex"}
    for folder in ("sessions/2026/05/01", "archived_sessions"):
        assert codex.resume_variables(f"/data/codex/{folder}/r.jsonl", here) == other
    assert codex.resume_variables("/odd/place.jsonl", here) == {}
    assert load("claude-code").resume_variables("/x", here) == {}


@pytest.mark.parametrize(
    ("resume", "cwd", "posix", "windows"),
    [
        (Resume(["codex", "resume", "a1"]), None, "codex resume a1", 'cmd /d /s /c "codex resume a1"'),
        (
            Resume(["pi", "--session", "it's"], {"X": "a b"}), "/srv/my app",
            "cd '/srv/my app' && X='a b' pi --session 'it'\"'\"'s'",
            'cmd /d /s /c "cd /d ""/srv/my app"" && set ""X=a b"" && pi --session ""it\'s"""',
        ),
        (
            Resume(["claude", "--resume", "a&b"]), "C:\\Work\\App",
            "cd 'C:\\Work\\App' && claude --resume 'a&b'",
            'cmd /d /s /c "cd /d ""C:\\Work\\App"" && claude --resume ""a&b"""',
        ),
        (Resume(["claude", "--resume", "a%PATH%b"]), None, "claude --resume a%PATH%b", None),
        (Resume(["claude", "--resume", 'a"b']), None, "claude --resume 'a\"b'", None),
    ],
)  # fmt: skip
def test_B65_B67_B68_a_command_is_quoted_for_the_shell_of_its_machine(
    resume: Resume, cwd: str | None, posix: str, windows: str | None
) -> None:
    assert shell_line(resume, cwd, "linux") == posix
    assert shell_line(resume, cwd, "win32") == windows


def test_B65_the_directory_is_the_one_that_a_session_started_in(vault: Vault) -> None:
    made = vault.add(U("kestrel"), cwd="/srv/start")
    vault.append(made, U("moved on"), cwd="/srv/later")
    vault.index()
    [hit] = vault.hits("kestrel")
    assert hit["cwd"] == "/srv/start"
    assert hit["resumeCommand"].startswith("cd /srv/start && ")
    assert vault.ids("kestrel repo:later") == [made]


def test_B51_B52_a_title_given_later_is_shown_and_found(vault: Vault) -> None:
    made = vault.add(U("please see to the kestrel"))
    vault.index()
    assert vault.hits("kestrel")[0]["title"] == "please see to the kestrel"
    with vault.path(made).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"type": "custom-title", "customTitle": "Heronry", "sessionId": made}) + "\n")
    vault.index()
    assert vault.hits("kestrel")[0]["title"] == "Heronry"
    assert vault.ids("heronry") == [made]


# K. Freshness, status, availability


class Told:
    """A service that answers what it is told to, and how long it takes to become current."""

    def __init__(self, answer: Response | None = None, wait: threading.Event | None = None) -> None:
        self.answer = answer or Results((FULL,), 1, 2.0, debug=Debug("or", "all"))
        self.wait = wait
        self.calls: list[str] = []
        self.error: Exception | None = None

    def search(self, request: Request, cancelled: object = None) -> Response:
        self.calls.append("search")
        return self.answer

    def status(self) -> Status:
        return Status(True, "current")

    def reconcile(self) -> None:
        self.calls.append("reconcile")
        if self.error is not None:
            raise self.error
        if self.wait is not None:
            self.wait.wait(30)
            self.calls.append("reconciled")


def ask(told: Any, **request: Any) -> dict[str, Any]:
    service.set_session_search_service(told)
    try:
        return service.search_sessions({"query": "x", **request}, {"codex"}, Transport.IPC).wire()
    finally:
        service.set_session_search_service(None)


def test_S128_without_a_service(vault: Vault) -> None:
    service.set_session_search_service(None)
    assert service.search_sessions({"query": "x"}, {}, Transport.IPC).wire() == {
        "kind": "unavailable",
        "reason": "no-service",
    }
    assert service.search_status({}, Transport.IPC).wire() == {
        "enabled": False, "phase": "idle", "filesIndexed": 0, "filesDue": 0, "filesFailed": 0, "degradedRoots": [],
        "lastReconcileAt": None, "lastSweepCompletedAt": None, "generation": 0,
    }  # fmt: skip


def test_S129_switched_off_or_not_there_yet(vault: Vault) -> None:
    store = EmbeddedStore(vault.store)
    off = LocalService(store, vault.catalog, lambda: pytest.fail("it is switched off"), enabled=False)
    assert ask(off, freshness="wait-until-current") == {"kind": "unavailable", "reason": "disabled"}
    assert off.status() == Status()
    not_yet = LocalService(store, vault.catalog, lambda: None)
    assert ask(not_yet) == {"kind": "unavailable", "reason": "not-ready"}
    assert not_yet.status() == Status(enabled=True)
    vault.store.mkdir()
    (vault.store / "outcrop.db").write_bytes(b"no database at all" * 300)
    assert ask(not_yet) == {"kind": "unavailable", "reason": "not-ready"}


def test_S130_S134_waiting_finds_what_is_new_and_is_not_counted(vault: Vault) -> None:
    vault.add(U("kestrel"))
    vault.index()
    vault.add(U("a gull"))
    assert vault.hits("gull") == []
    told = vault.results("gull", freshness="wait-until-current")
    assert len(told["hits"]) == 1
    assert told["truncated"]["freshness"] is False


def test_S131_S134_after_the_deadline_the_search_goes_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "DEADLINE_SECONDS", 0.05)
    done = threading.Event()
    slow = Told(wait=done)
    told = ask(slow, freshness="wait-until-current")
    assert told["truncated"]["freshness"] is True
    assert told["durationMs"] == 2.0
    assert slow.calls == ["reconcile", "search"]
    done.set()
    for thread in threading.enumerate():
        if thread.name == "reconcile":
            thread.join()
    assert slow.calls[-1] == "reconciled", "it was not cancelled"


def test_S132_an_error_of_reconciling_is_told() -> None:
    broken = Told()
    broken.error = BackendFailure("the disk went away")
    with pytest.raises(BackendFailure):
        ask(broken, freshness="wait-until-current")
    assert broken.calls == ["reconcile"]


def test_S133_nothing_is_reconciled_unasked() -> None:
    plain = Told()
    ask(plain)
    ask(plain, freshness="indexed")
    assert plain.calls == ["search", "search"]


def test_S135_other_kinds_carry_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "DEADLINE_SECONDS", 0.01)
    done = threading.Event()
    stale = Told(StaleCursor(4, 3), done)
    assert ask(stale, freshness="wait-until-current") == {
        "kind": "stale-cursor",
        "generation": 4,
        "expectedGeneration": 3,
    }
    done.set()


def test_a_service_may_raise_its_own_flag_and_its_answer_is_held_against_the_contract() -> None:
    assert ask(Told(Results((), 1, 1.0, truncated=Truncated(freshness=True))))["truncated"]["freshness"] is True
    assert "debug" not in ask(Told())
    assert ask(Told(), debug=True)["debug"]["route"] == "or"
    with pytest.raises(Exception, match="messageCount"):
        ask(Told(Results((FULL._replace(message_count=-1),), 1, 1.0)))


def test_S136_S137_S139_the_status_tells_the_state(vault: Vault) -> None:
    vault.add(U("kestrel"))
    summary = vault.index()
    told = vault.status()
    assert (told["enabled"], told["phase"], told["filesIndexed"], told["filesFailed"]) == (
        True,
        "current",
        summary.files,
        0,
    )
    assert told["lastReconcileAt"] == told["lastSweepCompletedAt"] > 1_700_000_000_000
    found = vault.results("kestrel")
    assert told["generation"] == found["generation"] > 0
    assert not set(found) & (set(told) - {"generation"})
    vault.add(U("gull"))
    vault.index()
    assert vault.status()["generation"] > told["generation"]


def test_S136_B32_one_file_that_cannot_be_read_is_told(vault: Vault) -> None:
    vault.add(U("kestrel"))
    (vault.home / ".claude" / "projects" / "-work" / "11111111-1111-4111-8111-111111111111.jsonl").mkdir()
    vault.index()
    told(vault, "UPDATE file SET problem = 'permission denied' WHERE id = 1")
    status = vault.status()
    assert (status["phase"], status["filesFailed"]) == ("degraded", 1)


def test_S140_S143_a_session_that_grows(vault: Vault) -> None:
    made = vault.add(U("kestrel"), A("yes"))
    vault.index()
    assert vault.hits("kestrel")[0]["messageCount"] == 2
    vault.append(made, U("a gull"), A("and a tern"), T("log"))
    vault.index()
    [hit] = vault.hits("gull")
    assert hit["messageCount"] == 4
    with vault.path(made).open("a", encoding="utf-8") as stream:
        stream.write('{"type":"user","message":{"role":"user","content":"half a puff')
    vault.index()
    assert vault.hits("puff") == []


def test_S141_S142_B19_B20_a_file_with_another_history_replaces_its_own(vault: Vault) -> None:
    made = vault.add(U("kestrel"), A("the tern"), U("more"))
    vault.index()
    vault.add(U("a gull"), session=made)
    vault.index()
    assert vault.hits("kestrel") == vault.hits("tern") == []
    [hit] = vault.hits("gull")
    assert (hit["sessionId"], hit["messageCount"]) == (made, 1)


def test_S144_what_did_not_change_is_not_read_again(vault: Vault) -> None:
    vault.add(U("kestrel"))
    vault.index()
    assert vault.index().changed == 0


def test_S145_a_text_index_that_is_damaged_is_built_anew(vault: Vault) -> None:
    vault.add(U("kestrel"))
    vault.index()
    before = vault.results("kestrel")["generation"]
    for path in (vault.store / "text").glob("*/meta.json"):
        path.write_text("{", encoding="utf-8")
    assert vault.ask("kestrel") == {"kind": "unavailable", "reason": "not-ready"}
    vault.index()
    after = vault.results("kestrel")
    assert len(after["hits"]) == 1
    assert after["generation"] > before


def test_B47_a_file_seen_twice_is_one_session(vault: Vault) -> None:
    made = vault.add(U("kestrel"))
    twin = vault.home / ".claude" / "projects" / "-other" / f"{made}.jsonl"
    twin.parent.mkdir()
    os.link(vault.path(made), twin)
    vault.index()
    assert vault.ids("kestrel") == [made]


def test_messages_are_counted_once_however_they_arrive(vault: Vault) -> None:
    made = vault.add(*(U(f"kestrel {n}") for n in range(70)), at=START)
    vault.index()
    vault.append(made, U("more"), A("and more"))
    vault.index()
    vault.index(full=True)
    assert vault.hits("kestrel")[0]["messageCount"] == 72


# L. Hosts


@pytest.mark.parametrize(
    ("text", "host"),
    [
        (None, LOCAL),
        ("local", LOCAL),
        (" local ", LOCAL),
        ("ssh:box", Host(HostKind.SSH, "box")),
        ("ssh:me%40box%3A22", Host(HostKind.SSH, "me@box:22")),
        ("runtime:env-1", Host(HostKind.RUNTIME, "env-1")),
        ("runtime:gr%C3%BCn", Host(HostKind.RUNTIME, "grün")),
    ],
)
def test_S147_ids_of_hosts(text: str | None, host: Host) -> None:
    assert parse_host(text) == host
    assert parse_host(host.id) == host


@pytest.mark.parametrize(
    "text",
    [
        "all",
        "nope",
        "",
        "ssh:",
        "runtime:",
        "runtime:a|b",
        "ssh:%zz",
        "ssh:%ff",
        "LOCAL",
        "http:x",
        "ssh",
        "ssh:%7C",
        "ssh:%00",
    ],
)
def test_S148_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_host(text)


@given(some.text())
def test_any_text_is_a_host_or_is_refused(text: str) -> None:
    try:
        host = parse_host(text)
    except InvalidRequest:
        return
    assert parse_host(host.id) == host


def test_every_agent_tag_leads_to_a_harness() -> None:
    tags = all_agents()
    assert tags["claude"] == (("claude-code", None),)
    assert (tags["pi"], tags["omp"]) == ((("pi-coding-agent", "pi"),), (("pi-coding-agent", "omp"),))
    assert {"kimi", "kiro", "qwen", "nac", "codex", "cursor", "gemini", "hermes"} <= set(tags)
    for tag, pairs in tags.items():
        for name, source in pairs:
            harness = load(name)
            assert tag == (harness.agent if source is None else harness.agent_of(source))
