"""What paired clients are told never holds a path of a source: the roots lie under a marker that is nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from doors import SEARCH, STATUS, document, relay, run
from web import serving

from vaults import A, T, U, Vault

MARKER = "quarzmarke"
QUERIES = (
    *("needle", "harbour needle", '"needle in"', "needel harbuor", "repo:app", "path:jsonl", "path:claude"),
    *("repo:app needle", "", "--", "absent words", f"path:{MARKER}", f"{MARKER}", "x" * 600, "C++", "output"),
)


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    made = Vault(tmp_path_factory.mktemp(MARKER))
    for number in range(12):
        made.add(U(f"the needle in the harbour {number}"), A(f"found {number}"), T(f"needle output {number}"))
    broken = made.home / ".claude" / "projects" / "-work" / "broken.jsonl"
    broken.symlink_to(broken)
    made.index()
    gone = made.add(U("the needle that is gone"), A("yes"))
    made.index()
    made.path(gone).unlink()
    made.index()
    # A root that cannot be listed, whoever asks: it leads to itself.
    (made.home / ".codex").symlink_to(made.home / ".codex")
    made.index()
    yield made
    made.close()


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """200 varied ones."""
    scopes, sorts, limits, extras = ("all", "conversation"), ("relevance", "newest"), (1, 20), (False, True)
    varied = list(product(QUERIES, scopes, sorts, limits, extras))[:: 1 + len(QUERIES) * 16 // 190]
    for query, scope, sort, limit, debug in varied:
        yield (
            SEARCH,
            {"query": query, "scope": scope, "limit": limit, "debug": debug, "filters": {"sort": sort}},
        )
    for wrong in ({"query": 5}, {"query": "x", "filters": {"agents": ["bogus"]}}, {"query": "x", "cursor": "abc"}):
        yield SEARCH, wrong
    for _ in range(8):
        yield STATUS, {}
    yield SEARCH, {"query": "needle", "freshness": "wait-until-current"}
    yield "aiVault.listSessions", {}


def test_B14_B15_S126_nothing_of_a_path_crosses_a_paired_connection(vault: Vault) -> None:
    full = document(run(vault, "search", "needle", "--json", "--limit", "50"))
    assert MARKER in json.dumps(full), "this machine is told"
    seen = [{**hit, "source": None, "resumeCommand": None} for hit in full["hits"]]
    assert MARKER not in json.dumps(seen), "it is in places of sources alone"
    asked = list(requests())
    told = 0
    with relay(vault) as client, serving(vault) as web:
        for method, params in asked:
            for answer in (client.request(method, params), web.ask(method, params)):
                assert MARKER not in json.dumps(answer), (method, params)
                told += 1
        statuses = [web.ask(STATUS)["result"], client.request(STATUS)["result"]]
        logged = (vault.folder / "serve.err").read_text(encoding="utf-8")
    assert told >= 200
    roots = document(run(vault, "status", "--host", "local", "--json"))["degradedRoots"]
    assert roots, "there is something to withhold"
    assert all(MARKER in root["root"] for root in roots)
    for status in statuses:
        assert status["degradedRoots"] == [{"reason": "Source root could not be verified."}] * len(roots)
    assert "needle" not in logged


def test_a_store_that_is_broken_tells_no_path_either(tmp_path: Path) -> None:
    made = Vault(tmp_path / MARKER)
    made.add(U("the needle"), A("yes"))
    made.index()
    for path in made.store.glob("outcrop.db*"):
        path.write_bytes(b"no database at all" * 1000)
    with relay(made) as client:
        for method in (SEARCH, STATUS):
            answer = client.request(method, {"query": "needle"})
            assert MARKER not in json.dumps(answer)
    made.close()
