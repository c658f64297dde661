"""The session search contract, group A of the numbered cases and the shapes of both methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.vaults import T, U, Vault

from outcrop.contracts.vault import service
from outcrop.contracts.vault.exposure import Transport
from outcrop.contracts.vault.request import Request, parse_request
from outcrop.contracts.vault.response import (
    Debug,
    DegradedRoot,
    Evidence,
    Hit,
    InvalidResponse,
    MalformedCursor,
    Response,
    Results,
    Source,
    StaleCursor,
    Status,
    Truncated,
    Unavailable,
    parse_response,
    parse_status,
)
from outcrop.errors import InvalidRequest

AGENTS = {"claude", "codex"}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    """A needle in two prompts and in one tool text."""
    made = Vault(tmp_path_factory.mktemp("vault"))
    made.add(U("one needle here"))
    made.add(U("another needle there"))
    made.add(T("pinecone in a log"))
    made.index()
    yield made
    made.close()


class Deaf:
    """A service that must not be asked."""

    def search(self, request: Request, cancelled: object = None) -> Response:
        raise AssertionError("the request was not refused")

    def status(self) -> Status:
        raise AssertionError("the request was not refused")

    def reconcile(self) -> None:
        raise AssertionError("the request was not refused")


def refused(request: Any) -> str | None:
    """The field that a refused request is told of."""
    service.set_session_search_service(Deaf())
    try:
        with pytest.raises(InvalidRequest) as caught:
            service.search_sessions(request, AGENTS, Transport.IPC)
    finally:
        service.set_session_search_service(None)
    return (caught.value.details or {}).get("field")


def test_S001_a_query_is_enough(vault: Vault) -> None:
    assert parse_request({"query": "needle"}, AGENTS) == Request("needle")
    told = vault.results("needle")
    assert len(told["hits"]) == 2
    assert set(told) == {"kind", "hits", "page", "generation", "truncated", "durationMs"}
    assert told["truncated"] == {"candidates": False, "snippets": 0, "query": False, "freshness": False}
    assert told["durationMs"] > 0


@pytest.mark.parametrize(
    ("given", "limit"),
    [(0, 1), (-4, 1), (1, 1), (200, 100), (100, 100), (2.5, 20), (3.0, 3), (10**30, 100), (float("inf"), 20)],
)
def test_S002_S003_S004_S005_limits_are_resolved(given: float, limit: int) -> None:
    assert parse_request({"query": "x", "limit": given}, AGENTS).limit == limit


def test_S006_a_page_of_one(vault: Vault) -> None:
    told = vault.results("needle", limit=1)
    assert len(told["hits"]) == 1
    assert told["page"]["hasMore"] is True
    assert len(vault.hits("needle", limit=0)) == 1


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"query": "x", "limit": "5"}, "limit"),
        ({"query": "x", "limit": None}, "limit"),
        ({"query": "x", "limit": True}, "limit"),
        ({"query": 5}, "query"),
        ({}, "query"),
        ({"query": None}, "query"),
        ({"query": "x", "scope": "files"}, "scope"),
        ({"query": "x", "freshness": "now"}, "freshness"),
        ({"query": "x", "filters": {"sort": "oldest"}}, "filters.sort"),
        ({"query": "x", "debug": "yes"}, "debug"),
        ({"query": "x", "filters": {"agents": ["bogus"]}}, "filters.agents"),
        ({"query": "x", "filters": {"agents": "claude"}}, "filters.agents"),
        ({"query": "x", "filters": {"scopePaths": ["/a"] * 65}}, "filters.scopePaths"),
        ({"query": "x", "filters": {"scopePaths": [""]}}, "filters.scopePaths"),
        ({"query": "x", "filters": {"scopePaths": ["/" + "a" * 4096]}}, "filters.scopePaths"),
        ({"query": "x", "filters": {"since": "2026-08-01"}}, "filters.since"),
        ({"query": "x", "filters": {"since": "2026-08-01T00:00:00"}}, "filters.since"),
        ({"query": "x", "filters": {"since": 5}}, "filters.since"),
        ({"query": "x", "filters": []}, None),
        ({"query": "x", "cursor": 5}, "cursor"),
        ({"query": "x", "cursor": None}, "cursor"),
        ("x", None),
        (None, None),
        ([], None),
    ],
)
def test_S007_to_S020_what_is_refused_before_the_service_is_asked(request_: Any, field: str | None) -> None:
    assert refused(request_) == field


def test_S010_S011_S122_what_is_not_known_is_stripped(vault: Vault) -> None:
    legacy = {"query": "pinecone", "tier": "conversation", "refresh": True, "clientKind": "local", "odd": {"x": 1}}
    assert parse_request({**legacy, "filters": {"odd": 1}}, AGENTS) == Request("pinecone")
    assert parse_request(legacy, AGENTS).wire() == {"query": "pinecone", "limit": 20}
    assert vault.send({**legacy, "filters": {"odd": 1}})["hits"]


def test_S017_S018_S019_S020_what_is_accepted(vault: Vault) -> None:
    filters = {"agents": [], "scopePaths": ["/" + "a" * 4095, *["/srv"] * 63], "since": "2026-01-01T00:00:00+02:00"}
    assert len(vault.hits("needle", filters=filters)) == 2
    assert len(vault.hits("needle", filters={"since": "2026-01-01T00:00:00Z"})) == 2


@pytest.mark.parametrize("query", ["", "   ", "--", "...", "\n\t", '""', "repo:", "\u3000"])
def test_S021_S022_a_query_of_nothing(vault: Vault, query: str) -> None:
    told = vault.results(query)
    assert told["hits"] == []
    assert told["page"] == {"cursor": None, "hasMore": False}
    assert told["truncated"]["candidates"] is False


@pytest.mark.parametrize(
    "query",
    [
        "needle AND",
        '"unclosed needle',
        "needle*",
        "NEAR(needle",
        "needle:x",
        "^needle",
        "(((",
        "needle\\",
        "'",
        "+needle",
    ],
)
def test_S023_punctuation_is_never_an_error(vault: Vault, query: str) -> None:
    assert len(vault.hits(query)) == (0 if query in ("(((", "'") else 2)


@pytest.mark.parametrize("query", ["needle\0", "\ud800 needle", "needle \udfff\ud800", "\0"])
def test_S024_what_is_no_text_does_no_harm(vault: Vault, query: str) -> None:
    assert len(vault.hits(query)) == (0 if query == "\0" else 2)


def test_a_status_request_is_an_object(vault: Vault) -> None:
    assert vault.status({"odd": 1})["enabled"] is True
    for request in ([], "x", 5):
        with pytest.raises(InvalidRequest):
            vault.status(request)


# Responses of another process

HIT = Hit(
    "claude", "id", "title", 3, 1.5, Source("present", "/f", "/home/c"), Evidence("[[x]]", "user", None), "/w", "main",
    "2026-01-01T00:00:00.000Z", "claude --resume id", "ssh:x",
)  # fmt: skip
ANSWERS = [
    Results((HIT,), 7, 1.25, "cursor", Truncated(True, 2, True, True), Debug("typo+or", "all", ("a", "b"))),
    Results((), 0, 0.0),
    StaleCursor(7, 6),
    StaleCursor(7),
    MalformedCursor(),
    Unavailable("not-ready"),
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_survives_the_wire(answer: Response) -> None:
    assert parse_response(answer.wire()) == answer
    assert type(parse_response(answer.wire())) is type(answer)


def test_a_status_survives_the_wire() -> None:
    status = Status(True, "degraded", 5, 1, 2, (DegradedRoot("no", "/r"), DegradedRoot("no")), 10, None, 3)
    assert parse_status(status.wire()) == status
    assert parse_status(Status().wire()) == Status()


def test_S154_unknown_fields_are_ignored_and_missing_ones_are_errors() -> None:
    whole = ANSWERS[0].wire()
    grown = {**whole, "new": 1, "page": {**whole["page"], "new": 1}, "hits": [{**whole["hits"][0], "new": 1}]}
    assert parse_response(grown) == ANSWERS[0]
    for name in ("hits", "page", "generation", "truncated", "durationMs", "kind"):
        with pytest.raises(InvalidResponse):
            parse_response({key: value for key, value in whole.items() if key != name})
    for name in ("agent", "sessionId", "title", "messageCount", "score", "source", "evidence"):
        with pytest.raises(InvalidResponse):
            parse_response({**whole, "hits": [{key: value for key, value in whole["hits"][0].items() if key != name}]})
    for name in Status().wire():
        with pytest.raises(InvalidResponse):
            parse_status({key: value for key, value in Status().wire().items() if key != name})


@pytest.mark.parametrize(
    "changes",
    [
        {"source": {"presence": "unverifiable"}},
        {"source": {"presence": "missing"}},
        {"source": {"presence": "elsewhere"}},
        {"messageCount": -1},
        {"messageCount": 1.5},
        {"score": "high"},
        {"score": float("nan")},
        {"executionHostId": ""},
        {"evidence": {"snippet": "x", "role": "system", "timestamp": None}},
        {"evidence": {"snippet": "x", "role": "user"}},
    ],
)
def test_S124_S151_impossible_hits_are_errors(changes: dict[str, Any]) -> None:
    whole = ANSWERS[0].wire()
    with pytest.raises(InvalidResponse):
        parse_response({**whole, "hits": [{**whole["hits"][0], **changes}]})


@pytest.mark.parametrize(
    "page", [{"cursor": None, "hasMore": True}, {"cursor": "x", "hasMore": False}, {"hasMore": False}]
)
def test_a_cursor_stands_exactly_where_there_is_more(page: dict[str, Any]) -> None:
    with pytest.raises(InvalidResponse):
        parse_response({**ANSWERS[0].wire(), "page": page})


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.dictionaries(
            some.sampled_from(["kind", "hits", "page", "generation", "query", "limit", "filters", "agents", "cursor"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_value_breaks_the_parsers(value: Any) -> None:
    for parse, error in ((parse_response, InvalidResponse), (parse_status, InvalidResponse)):
        with pytest.raises(error):
            parse(value)
    try:
        parsed = parse_request(value, AGENTS)
    except InvalidRequest:
        return
    assert parse_request(parsed.wire(), AGENTS) == parsed
