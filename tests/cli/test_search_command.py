"""`outcrop search`: sessions for people, and the contract's response, from the real command."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.following import Follower, followed
from tests.vaults import A, T, U, Vault
from tests.world import SOURCE, Run, World

from outcrop.contracts.vault.response import Results, parse_response

CONTRACT = {"kind", "hits", "page", "generation", "truncated", "durationMs"}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    made = Vault(tmp_path_factory.mktemp("search"))
    hour = datetime.now(UTC) - timedelta(hours=3)
    made.add(
        U("Fix the lighthouse beacon"),
        A("Raised it, é."),
        cwd="/srv/code/lighthouse",
        branch="feature",
        at=hour,
        title="Beacon",
    )
    made.add(U("the beacon of the harbour"), T("if [[ -f beacon ]]; then"), cwd="/srv/code/harbour")
    made.index()
    yield made
    made.close()


def run(vault: Vault, *argv: str, **variables: str) -> Run:
    return World(vault.folder).run(*argv, **variables)


def search(vault: Vault, *argv: str, **variables: str) -> Run:
    return run(vault, "search", *argv, **variables)


def test_the_response_of_the_contract(vault: Vault) -> None:
    done = search(vault, "beacon", "--json")
    assert done.code == 0, done.err
    assert set(done.json) == CONTRACT
    parsed = parse_response(done.json)
    assert isinstance(parsed, Results)
    assert len(parsed.hits) == 2
    assert done.err == ""


def test_debug_adds_the_diagnostics_of_the_contract(vault: Vault) -> None:
    done = search(vault, "baecon", "--json", "--debug")
    assert set(done.json) == {*CONTRACT, "debug"}
    assert done.json["debug"]["repairedTerms"] == ["beacon"]
    assert parse_response(done.json)


def test_a_list_for_people(vault: Vault) -> None:
    done = search(vault, "lighthouse beacon")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "1. Beacon"
    assert lines[1] == "   claude  lighthouse (feature)  3 hours ago  2 messages"
    assert lines[2] == "   user: Fix the lighthouse beacon"
    assert re.fullmatch(r"   cd /srv/code/lighthouse && claude --resume [0-9a-f-]{36}", lines[3])
    assert "[[" not in done.out
    assert "\x1b" not in done.out
    assert done.err == "outcrop: found by any of the words\n"


def test_the_match_is_marked_by_colour_and_brackets_of_the_text_stay(vault: Vault) -> None:
    done = search(vault, "beacon", "--path", "/srv/code/harbour", "--scope", "all", FORCE_COLOR="1")
    assert "the \x1b[1;33mbeacon\x1b[0m of the harbour" in done.out
    done = search(vault, '"-f beacon"', FORCE_COLOR="1")
    assert "if [[ \x1b[2m" not in done.out
    assert "[[ -\x1b[1;33mf beacon\x1b[0m ]]" in done.out


def test_rungs_and_words_are_told(vault: Vault) -> None:
    assert "found by the words as a phrase" in search(vault, '"lighthouse beacon"').err
    assert "found by all words in one session" in search(vault, '"beacon lighthouse"').err
    assert "; baecon → beacon" in search(vault, "baecon").err
    assert "left out: the, of" in search(vault, "the beacon of lighthouse").err


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("É", ""),
        ("e\u0301", ""),
        ("béacon harbour", ""),
        ("BE\u0301ACON harbour", ""),
        ("The Béacon of harbour", "; left out: The, of"),
        ("don't beacon harbour", "; left out: don't"),
        ("the red_beacon of harbour", "; left out: the, of"),
        ("the baecon", "; baecon → beacon"),
        ("the baecon of lighthouse", "; baecon → beacon; left out: the, of"),
    ],
)
def test_what_is_told_as_left_out_was_not_searched(vault: Vault, query: str, told: str) -> None:
    assert search(vault, "--", query).err == f"outcrop: found by any of the words{told}\n"


def test_nothing_found_says_what_was_searched(vault: Vault) -> None:
    done = search(vault, "absentword", "--agent", "claude", "--path", "/srv/code", "--since", "900d")
    assert (done.code, done.out) == (1, "")
    assert (
        "nothing found in the prompts, answers, tool text and titles of 2 session files of claude, in /srv/code"
        in done.err
    )
    assert "--fresh" in done.err
    done = search(vault, "absentword", "--json")
    assert done.code == 1
    assert done.json["hits"] == []


def test_the_next_page_is_one_command_away(vault: Vault) -> None:
    first = search(
        vault, "beacon", "--limit", "1", "--agent", "claude", "--path", "/srv", "--sort", "newest", "--since", "9999d"
    )
    [again] = [line for line in first.out.splitlines() if line.startswith("more: ")]
    done = subprocess.run(
        ["sh", "-c", again.removeprefix("more: ").replace("outcrop", f"{sys.executable} -m outcrop", 1)],
        env={**World(vault.folder).environment, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1. ")
    assert done.stdout.splitlines()[0] != first.out.splitlines()[0]
    assert "more:" not in done.stdout


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("beacon", "--since", "2026-08-01"),
        ("beacon", "--since", "yesterday"),
        ("beacon", "--limit", "0"),
        ("beacon", "--limit", "101"),
        ("beacon", "--limit", "1.5"),
        ("beacon", "--limit", "many"),
        ("beacon", "--agent", "bogus"),
        ("beacon", *(["--path", "/a"] * 65)),
        ("beacon", "--cursor"),
        ("beacon", "--cursor", "abc"),
        ("beacon", "--scope", "files"),
        ("beacon", "--sort", "oldest"),
    ],
)
def test_S158_usage_errors(vault: Vault, argv: tuple[str, ...]) -> None:
    done = search(vault, *argv)
    assert done.code == 2
    assert done.out == ""
    assert done.err


@pytest.mark.parametrize(
    ("host", "code"),
    [("all", 2), ("nope", 2), ("ssh:", 2), ("runtime:a|b", 2), ("ssh:%zz", 2), ("ssh:box", 4), ("runtime:env", 3)],
)
def test_S148_S149_no_other_host_is_known(vault: Vault, host: str, code: int) -> None:
    done = search(vault, "beacon", "--host", host)
    assert done.code == code
    assert done.out == ""
    assert "host" in done.err
    assert search(vault, "beacon", "--host", "local").code == 0


@pytest.mark.parametrize("path", [".", "lighthouse", "../x", "~/x", "~"])
def test_a_folder_of_this_machine_is_none_of_another_host(vault: Vault, path: str) -> None:
    done = search(vault, "beacon", "--host", "ssh:box", "--path", "/srv", "--path", path)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"outcrop: error: --path: {path!r} is relative; beside --host give the whole path over there\n"
    for whole in ("/srv", "C:\\code", "\\\\wsl$\\X\\code"):
        assert "ssh:box is not known" in search(vault, "beacon", "--host", "ssh:box", "--path", whole).err
    assert search(vault, "beacon", "--host", "local", "--path", path).code == 1


def test_S159_fresh_reads_what_is_new(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.add(U("kestrel"))
    assert search(vault, "kestrel").code == 3
    done = search(vault, "kestrel", "--json")
    assert (done.code, done.json) == (3, {"kind": "unavailable", "reason": "not-ready"})
    done = search(vault, "kestrel", "--fresh", "--json")
    assert done.code == 0
    assert len(done.json["hits"]) == 1
    made = vault.add(U("a gull"))
    assert search(vault, "gull").code == 1
    assert made in search(vault, "gull", "--fresh").out


def test_who_asks_for_what_is_fresh_waits_five_seconds_and_no_longer(tmp_path: Path) -> None:
    with followed(tmp_path) as world:
        world.follows = False
        vault = Vault(world.folder)
        vault.add(U("kestrel"))
        assert run(vault, "index").code == 0
        vault.add(U("a late kestrel"))
        with Follower(world, OUTCROP_FAULT="slow:file:60000"):
            began = time.monotonic()
            done = search(vault, "kestrel", "--fresh")
            assert time.monotonic() - began < 40
            assert done.code == 0, done.err
            assert "takes longer than five seconds" in done.err
            assert "late" not in done.out


def test_S129_switched_off(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.add(U("kestrel"))
    vault.index()
    (vault.store / "config.toml").write_text("[search]\nenabled = false\n", encoding="utf-8")
    done = search(vault, "kestrel", "--json")
    assert (done.code, done.json) == (3, {"kind": "unavailable", "reason": "disabled"})
    assert "switched off" in search(vault, "kestrel").err


def test_stale_cursors_and_odd_stores_have_exit_codes(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    for _ in range(3):
        vault.add(U("kestrel"))
    vault.index()
    cursor = search(vault, "kestrel", "--limit", "1", "--json").json["page"]["cursor"]
    vault.add(U("kestrel"))
    vault.index()
    done = search(vault, "kestrel", "--cursor", cursor)
    assert done.code == 2
    assert "the history changed" in done.err
    done = search(vault, "kestrel", "--cursor", cursor, "--json")
    assert (done.code, done.json["kind"]) == (2, "stale-cursor")
    assert search(vault, "other", "--cursor", cursor[:-2], "--json").json == {"kind": "malformed-cursor"}


def test_B72_a_first_build_says_that_there_may_be_more(tmp_path: Path) -> None:
    import sqlite3

    vault = Vault(tmp_path)
    vault.add(U("kestrel"))
    vault.index()
    with sqlite3.connect(vault.store / "outcrop.db") as db:
        db.execute("UPDATE meta SET v = 'running' WHERE k = 'first_build'")
    db.close()
    assert "still being read" in search(vault, "kestrel").err


def test_text_of_a_session_cannot_steer_the_terminal(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.add(U("kestrel \x1b[2J\x07 here\nand\tthere"), cwd="/srv/\x1b]0;x\x07", branch="b\x1b[1m")
    vault.index()
    done = search(vault, "kestrel")
    assert "\x1b" not in done.out
    assert "\x07" not in done.out
    assert "user: kestrel ␛[2J␇ here and there" in done.out


def test_a_terminal_gets_colour(vault: Vault) -> None:
    parent, child = pty.openpty()
    environment = {**World(vault.folder).environment, "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-m", "outcrop", "search", "lighthouse"],
        env=environment,
        stdout=child,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    os.close(child)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    assert done.returncode == 0
    assert "\x1b[1;33mlighthouse\x1b[0m" in shown


def test_a_piped_search_imports_nothing_heavy(vault: Vault) -> None:
    program = (
        "import sys; sys.argv = ['outcrop', 'search', 'beacon', '--json']\n"
        "from outcrop.cli import main\ncode = main()\nprint(*sorted(sys.modules), file=sys.stderr)\nsys.exit(code)"
    )
    environment = {**World(vault.folder).environment, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    modules = set(done.stderr.split())
    assert json.loads(done.stdout)["kind"] == "results"
    heavy = {
        *(
            "rich",
            "filelock",
            "platformdirs",
            "tomllib",
            "subprocess",
            "asyncio",
            "logging",
            "jsonschema",
        ),
        *("outcrop.contracts.mcp_v1", "outcrop.ingest", "outcrop.servers", "concurrent.futures", "http"),
    }
    assert not heavy & modules


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("truncate -s 5000 outcrop.db", "the history database is damaged"),
        ("rm -r text", "the text index"),
    ],
)
def test_a_store_that_cannot_be_searched_says_why(tmp_path: Path, damage: str, says: str) -> None:
    made = Vault(tmp_path)
    made.add(U("the beacon"))
    made.index()
    made.close()
    subprocess.run(["sh", "-c", damage], cwd=made.store, check=True)
    done = search(made, "beacon")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"outcrop: error: {says}")
    assert "outcrop doctor" in done.err
    assert search(made, "beacon", "--json").json == {"kind": "unavailable", "reason": "not-ready"}


@pytest.mark.parametrize("query", ["", "  ", '"', "*", "repo:"])
def test_a_query_of_nothing_is_told_so(vault: Vault, query: str) -> None:
    done = search(vault, "--", query)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("outcrop: the query holds nothing that can be looked for")
