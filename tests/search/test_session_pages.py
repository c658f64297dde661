"""Small pages look at less than large ones, and show the same: more sessions and messages than are ranked at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.vaults import START, A, Message, U, Vault

FILLING = ["tide", "gull", "rope", "mast", "oar", "anchor", "buoy", "reef", "sand", "shell", "wave", "foam"]
STRONG, SPREAD, COPIES = 70, 24, 6


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    """Sessions with both words in every message, and others with both in their titles but apart from each other in what
    was said; of the latter some are copied, and were used last at the same moment."""
    made = Vault(tmp_path_factory.mktemp("pages"))
    chance = random.Random(5)

    def said(*words: str, filling: int) -> str:
        some = [*words, *chance.choices(FILLING, k=filling)]
        chance.shuffle(some)
        return " ".join(some)

    for _ in range(STRONG):
        short = [U(said("kestrel", "harbour", filling=chance.randint(0, 9))) for _ in range(9)]
        made.add(*short, A(said(filling=chance.randint(1000, 2000))))  # as a whole they say little of it
    for number in range(SPREAD):
        messages: list[Message] = []
        for _ in range(chance.randint(3, 8)):
            messages += [U(said("kestrel", filling=30)), A(said("harbour", filling=chance.randint(20, 40)))]
        messages.append(U(said("lamp", filling=25)))
        title = said("kestrel", "harbour", filling=number % 9)
        made.add(*messages, title=title)
        if number < COPIES:  # the same beginning, another end, the same moment
            moment = START + timedelta(minutes=made.written)
            made.add(*messages[:-1], U(said("lamp", "harbour", filling=12)), title=title, at=moment)
    made.index()
    yield made
    made.close()


def paged(vault: Vault, query: str, limit: int, **request: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = vault.results(query, limit=limit, **request, **cursor)
        found += page["hits"]
        if page["page"]["cursor"] is None:
            return found
        cursor = {"cursor": page["page"]["cursor"]}


@pytest.mark.parametrize("sort", ["relevance", "newest"])
@pytest.mark.parametrize("query", ["kestrel harbour", "lamp kestrel harbour", "harbours lamp", "kestrell harbour"])
def test_small_pages_show_what_one_large_page_shows(vault: Vault, query: str, sort: str) -> None:
    filters = {"sort": sort}
    whole = vault.hits(query, limit=100, filters=filters)
    assert len(whole) > 64
    assert all("[[" in hit["evidence"]["snippet"] for hit in whole)
    for limit in (1, 7, 40):
        small = paged(vault, query, limit, filters=filters)
        assert [hit["sessionId"] for hit in small] == [hit["sessionId"] for hit in whole]
        assert [hit["evidence"] for hit in small] == [hit["evidence"] for hit in whole]
        assert [hit["score"] for hit in small] == pytest.approx([hit["score"] for hit in whole])


def test_the_newest_page_says_whether_more_may_match(vault: Vault) -> None:
    first = vault.results("kestrel harbour", limit=5, filters={"sort": "newest"})
    assert first["truncated"]["candidates"] is False, "there are fewer than a search can tell apart"
