"""Session search, groups E to I of the numbered cases: order, operators, filters, pages, evidence."""

from __future__ import annotations

import json
import random
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.vaults import START, A, T, U, Vault

from outcrop.errors import OutcropError
from outcrop.store.embedded.text import rebuild
from outcrop.store.embedded.write import Writer


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault(tmp_path)
    yield made
    made.close()


# E. Ranking, aggregation


def test_S059_prompts_before_answers_before_tool_text(vault: Vault) -> None:
    tool = vault.add(U("one two"), T("the kestrel flew"))
    answer = vault.add(U("one two"), A("the kestrel flew"))
    prompt = vault.add(U("the kestrel flew"), A("one two"))
    vault.index()
    assert vault.ids("kestrel") == [prompt, answer, tool]


def test_a_title_beats_messages_with_one_of_its_words(vault: Vault) -> None:
    for n in range(40):
        vault.add(U(f"the contrast of photo {n}"), A("audit passed"))
    titled = vault.add(U("go on"), A("done"), title="Mustard contrast audit")
    vault.index()
    assert vault.ids("mustard contrast audit")[0] == titled


def test_words_spread_over_a_session_beat_some_of_them_in_one_message(vault: Vault) -> None:
    for n in range(40):
        vault.add(U(f"photo {n} of a kestrel and a heron"), A("fine"))
    spread = vault.add(U("we saw a kestrel"), A("where?"), U("beside the heron"), A("and the quarry"))
    vault.index()
    assert vault.ids("quarry kestrel heron")[0] == spread


def test_all_words_of_a_quotation_in_one_message_beat_the_same_words_in_several(vault: Vault) -> None:
    for n in range(40):
        vault.add(U(f"photo {n}"), A("fine"))
    several = {vault.add(U(f"a kestrel {n}"), A("where?"), U(f"a heron {n}")) for n in range(3)}
    together = vault.add(U("go on"), A("the heron stood beside the kestrel"))
    vault.index()
    found = vault.ids('"kestrel heron"')
    assert found[0] == together
    assert set(found[1:]) == several


def test_a_hash_is_found_by_its_first_digits_and_the_other_way_round(vault: Vault) -> None:
    whole = vault.add(U("bisect ends at 9f31c7ab02de44518c0b6a7715de903aa41b22c7"), A("ok"))
    short = vault.add(U("revert 4be81d6 please"), A("ok"))
    tool = vault.add(U("go"), T("HEAD is now at f2b8a6019c5d3e74ab901c6e28d457f03b9ea815"))
    vault.index()
    assert vault.ids("9f31c7ab02") == [whole]
    assert vault.ids("4be81d60fa9932c7710c55ad2e8b64f0917ad3e2") == [short]
    assert vault.ids("f2b8a60") == [tool]
    assert vault.ids("f2b8a60", scope="conversation") == []
    [hit] = vault.results("9f31c7ab02")["hits"]
    assert "[[9f31c7ab02de44518c0b6a7715de903aa41b22c7]]" in hit["evidence"]["snippet"]


def test_S060_a_session_of_650_messages_hides_no_other(vault: Vault) -> None:
    long = vault.add(*(U(f"kestrel number {n}") for n in range(650)))
    short = vault.add(U("one kestrel in a much longer sentence about other birds of the coast and the harbour"))
    vault.index()
    for sort in ("relevance", "newest"):
        assert sorted(vault.ids("kestrel", filters={"sort": sort})) == sorted([long, short])


def test_S061_B38_B78_filters_come_before_any_cut(vault: Vault) -> None:
    for _ in range(610):
        vault.add(U("kestrel kestrel kestrel"), cwd="/srv/other")
    inside = vault.add(U("a kestrel in a long sentence that scores low among all of those others"), cwd="/srv/mine")
    vault.index()
    assert vault.ids("kestrel", filters={"scopePaths": ["/srv/mine"]}) == [inside]
    assert vault.ids("kestrel repo:mine") == [inside]
    told = vault.results("kestrel")
    assert told["truncated"]["candidates"] is True
    assert vault.results("kestrel", filters={"scopePaths": ["/srv/mine"]})["truncated"]["candidates"] is False


def test_S062_S063_B48_a_fork_is_one_hit_the_newer_one(vault: Vault) -> None:
    shared = (U("kestrel plan"), A("kestrel answer"))
    vault.add(*shared)
    newer = vault.add(*shared)
    other = vault.add(shared[0], A("another kestrel answer"))
    vault.index()
    assert sorted(vault.ids("kestrel")) == sorted([newer, other])


def test_B49_a_stub_gives_way_to_the_session_that_went_on(vault: Vault) -> None:
    shared = (U("kestrel plan"), A("kestrel answer"))
    vault.add(*shared)
    whole = vault.add(*shared, U("and then"), A("kestrel more"), U("and on"))
    vault.index()
    assert vault.ids("kestrel") == [whole]


def test_sessions_that_go_on_differently_are_two(vault: Vault) -> None:
    shared = (U("hi"), A("Hello! How can I help?"))
    made = [vault.add(*shared, U(f"kestrel {n}")) for n in range(2)]
    vault.index()
    assert sorted(vault.ids("kestrel")) == sorted(made)


def test_S064_forks_fold_alike_with_and_without_words(vault: Vault) -> None:
    shared = (U("kestrel plan"), A("kestrel answer"))
    vault.add(*shared)
    newer = vault.add(*shared)
    vault.index()
    assert vault.ids("repo:app") == vault.ids("kestrel repo:app") == [newer]


def test_S065_S067_equal_sessions_have_one_order(vault: Vault) -> None:
    made = [vault.add(U("kestrel"), at=START) for _ in range(6)]
    vault.index()
    first = vault.results("kestrel", limit=3)
    second = vault.results("kestrel", limit=3, cursor=first["page"]["cursor"])
    seen = [hit["sessionId"] for page in (first, second) for hit in page["hits"]]
    assert sorted(seen) == sorted(made)
    assert seen == vault.ids("kestrel") == vault.ids("kestrel")


def test_S066_newest_first(vault: Vault) -> None:
    made = [vault.add(U("kestrel"), at=START + timedelta(days=day)) for day in (3, 1, 2)]
    vault.index()
    with Writer(vault.store).db as db:  # a time that nothing recorded
        db.execute("UPDATE session SET updated = 0 WHERE native = ?", (made[0],))
    db.close()
    told = vault.hits("kestrel", filters={"sort": "newest"})
    assert [hit["sessionId"] for hit in told] == [made[2], made[1], made[0]]
    assert ["updatedAt" in hit for hit in told] == [True, True, False]


def test_newest_finds_what_is_old_and_common(vault: Vault) -> None:
    old = [
        vault.add(*(U(f"kestrel {day} {n}") for n in range(300)), at=START + timedelta(days=day)) for day in range(3)
    ]
    for number in range(150):
        vault.add(U("gull"), at=START + timedelta(days=9, seconds=number))
    vault.index()
    assert vault.ids("kestrel", filters={"sort": "newest"}) == old[::-1]


def test_S068_of_equal_texts_the_shorter_session_is_first(vault: Vault) -> None:
    long = vault.add(U("the kestrel flew"), *(A(f"filler {n}") for n in range(40)))
    short = vault.add(U("the kestrel flew"), A("filler"))
    vault.index()
    assert vault.ids("kestrel") == [short, long]


def test_B75_a_hit_is_told_by_its_own_session(vault: Vault) -> None:
    vault.add(U("first thing"), title="Root", at=START)
    own = vault.add(U("kestrel thing"), at=START + timedelta(days=1))
    vault.index()
    [hit] = vault.hits("kestrel")
    assert (hit["sessionId"], hit["title"], hit["updatedAt"]) == (own, "kestrel thing", "2026-05-02T09:00:00.000Z")


def test_B51_B53_agents_of_a_session_are_no_sessions(vault: Vault) -> None:
    parent = vault.add(U("delegate the kestrel"))
    records = vault.records("x", (U("kestrel kestrel work"),), "/srv/app", "main", START)
    place = vault.path(parent).with_suffix("") / "subagents" / "agent-a1.jsonl"
    place.parent.mkdir(parents=True)
    agent = [{**record, "sessionId": parent, "isSidechain": True, "agentId": "a1"} for record in records]
    place.write_text("".join(json.dumps(record) + "\n" for record in agent), encoding="utf-8")
    vault.index()
    assert vault.ids("kestrel") == [parent]


# F. Operators


def test_S069_S070_operators_alone_list_the_newest(vault: Vault) -> None:
    made = [vault.add(U(f"words {day}"), at=START + timedelta(days=day)) for day in (2, 3, 1)]
    vault.index()
    for sort in ("relevance", "newest"):
        told = vault.hits("repo:app", filters={"sort": sort})
        assert [hit["sessionId"] for hit in told] == [made[1], made[0], made[2]]
        assert all(hit["evidence"] is None and hit["score"] < 0 for hit in told)
    assert vault.results("repo:app", debug=True)["debug"]["route"] == "or"


def test_S071_S072_all_operators_must_hold(vault: Vault) -> None:
    app = vault.add(U("crane"), cwd="/srv/team/app")
    vault.add(U("crane"), cwd="/srv/team/lib")
    vault.add(U("heron"), cwd="/srv/team/app")
    both = vault.add(U("gull"), cwd="/srv/app/service")
    vault.index()
    assert vault.ids("crane repo:app") == [app]
    assert vault.ids("repo:app repo:service") == [both]
    assert vault.ids("repo:app path:lib") == []


def test_S073_S074_S075_operators_know_no_case(vault: Vault) -> None:
    made = vault.add(U("words"), cwd="/srv/App/CAFÉ")
    vault.index()
    for query in (
        "REPO:app",
        "repo:App",
        "path:café",
        "path:cafe\u0301",
        "path:jsonl",
        'path:"app/café"',
        "Path:'CAFÉ'",
    ):
        assert vault.ids(query) == [made], query


def test_S076_S077_S079_what_is_no_operator(vault: Vault) -> None:
    made = vault.add(U("myrepo x https h path repo it's a thing"), cwd="/srv/orca")
    vault.index()
    for query in (
        "myrepo:x",
        "https://h/path:x",
        '"repo:x"',
        'repo:"" thing',
        'path:"  " thing',
        "it's a repo:orca thing's",
    ):
        assert vault.ids(query) == [made], query
    assert vault.ids("it's a repo:other thing's") == []
    assert vault.ids('repo:""') == []


def test_S078_a_quoted_value_may_hold_blanks(vault: Vault) -> None:
    made = vault.add(U("words"), cwd="/srv/my dir/app")
    vault.add(U("words"), cwd="/srv/my/dir")
    vault.index()
    assert vault.ids('path:"my dir"') == [made]


def test_S080_operators_are_never_repaired(vault: Vault) -> None:
    vault.add(U("harbor one"))
    vault.add(U("harbor two"))
    vault.index()
    assert vault.route("repo:harbo") == ("or", None, 0)


def test_S081_B05_giving_up_is_told(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    from outcrop.search import sessions

    for number in range(12):
        vault.add(U("words"), at=START + timedelta(days=number))
    vault.add(U("words"), cwd="/srv/rare", at=START - timedelta(days=9))
    vault.index()
    assert vault.results("repo:absent")["truncated"]["candidates"] is False
    assert len(vault.ids("repo:rare")) == 1
    monkeypatch.setattr(sessions, "_WALK_PAGE", 2)
    monkeypatch.setattr(sessions, "_WALK_PAGES", 1)
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 4)
    told = vault.results("path:rare")
    assert (told["hits"], told["truncated"]["candidates"]) == ([], True)


@pytest.mark.parametrize("query", ["agent:claude words", "-words", "before:2026 words", "NOT words", "role:user words"])
def test_S082_everything_else_is_text(vault: Vault, query: str) -> None:
    made = vault.add(U("words"))
    vault.index()
    assert vault.ids(query) == [made]


# G. Filters


def scoped(vault: Vault, *paths: str) -> set[str]:
    return {hit["cwd"] for hit in vault.hits("words", filters={"scopePaths": list(paths)}, limit=100)}


def test_S083_to_S092_scope_paths(vault: Vault) -> None:
    folders = [
        "/srv/app", "/srv/app/src", "/srv/app-other", "/srv/APP", "/srv/a_b", "/srv/axb", "/srv/a%b", "/srv/cafe\u0301",
        "C:\\Work\\App", "C:\\Work\\App\\src", "C:\\Work\\Apple",
        "\\\\wsl$\\Ubuntu\\home\\me", "\\\\wsl$\\Debian\\home\\me",
        "\\\\Server\\Share\\Dir",
    ]  # fmt: skip
    for folder in folders:
        vault.add(U("words"), cwd=folder)
    vault.add(U("words"), cwd=None)
    vault.index()
    assert scoped(vault, "/srv/app") == {"/srv/app", "/srv/app/src"}
    assert scoped(vault, "/srv/app/") == scoped(vault, "/srv//app") == scoped(vault, "/srv/app")
    assert scoped(vault, "/srv/a_b") == {"/srv/a_b"}
    assert scoped(vault, "/srv/a%b") == {"/srv/a%b"}
    assert scoped(vault, "c:/work/app") == {"C:\\Work\\App", "C:\\Work\\App\\src"}
    assert scoped(vault, "/") == set(folders[:8])
    assert scoped(vault, "/srv/caf\u00e9") == {"/srv/cafe\u0301"}
    assert scoped(vault, "/srv/app/src", "/srv/axb") == {"/srv/app/src", "/srv/axb"}
    assert scoped(vault, "//wsl.localhost/ubuntu/home") == {"\\\\wsl$\\Ubuntu\\home\\me"}
    assert scoped(vault, "\\\\server\\share") == {"\\\\Server\\Share\\Dir"}
    assert len(vault.hits("words", filters={"agents": ["claude"], "scopePaths": ["/srv/app"]})) == 2
    assert vault.hits("words", filters={"agents": ["codex"], "scopePaths": ["/srv/app"]}) == []


def test_B09_folders_that_are_none_hold_nothing(vault: Vault) -> None:
    vault.add(U("words"))
    vault.index()
    assert vault.hits("words", filters={"scopePaths": ["relative", "also/relative"]}) == []


def test_B62_B64_a_folder_shows_all_of_its_sessions_however_old(vault: Vault) -> None:
    old = [vault.add(U("words"), cwd="/srv/old", at=START - timedelta(days=500 + n)) for n in range(3)]
    for _ in range(30):
        vault.add(U("words"))
    vault.index()
    assert sorted(vault.ids("words", filters={"scopePaths": ["/srv/old"]})) == sorted(old)


def test_S093_since_is_an_instant(vault: Vault) -> None:
    made = vault.add(U("words"), at=datetime(2026, 5, 2, 9, 0, tzinfo=UTC))
    vault.add(U("words"), at=datetime(2026, 5, 2, 8, 59, tzinfo=UTC))
    vault.index()
    for since in ("2026-05-02T09:00:00Z", "2026-05-02T11:00:00+02:00", "2026-05-02T02:30:00-06:30"):
        assert vault.ids("words", filters={"since": since}) == [made], since
    assert vault.ids("words", filters={"since": "2026-05-02T09:00:00.001Z"}) == []


def test_S094_a_scope_and_an_operator_outside_of_it(vault: Vault) -> None:
    vault.add(U("words"), cwd="/srv/app")
    vault.add(U("words"), cwd="/opt/lib")
    vault.index()
    assert vault.ids("words repo:lib", filters={"scopePaths": ["/srv"]}) == []


# H. Paging


def pages(vault: Vault, query: str, limit: int, **request: Any) -> list[list[str]]:
    found: list[list[str]] = []
    cursor: dict[str, str] = {}
    while True:
        told = vault.results(query, limit=limit, **request, **cursor)
        found.append([hit["sessionId"] for hit in told["hits"]])
        if told["page"]["cursor"] is None:
            return found
        cursor = {"cursor": told["page"]["cursor"]}


def test_S095_S097_pages_hold_each_session_once(vault: Vault) -> None:
    made = [vault.add(U("kestrel " * (1 + n % 3))) for n in range(25)]
    vault.index()
    for sort in ("relevance", "newest"):
        found = pages(vault, "kestrel", 10, filters={"sort": sort})
        assert [len(page) for page in found] == [10, 10, 5]
        assert sorted([*chain(*found)]) == sorted(made)


def test_pages_beyond_the_first_sessions_hold_each_once(vault: Vault) -> None:
    made = [vault.add(U("kestrel " * (1 + n % 7) + "filler " * (n % 11))) for n in range(150)]
    vault.index()
    found = pages(vault, "kestrel", 20)
    assert sorted([*chain(*found)]) == sorted(made)
    assert [*chain(*pages(vault, "kestrel", 33))] == [*chain(*found)] == [*chain(*pages(vault, "kestrel", 100))]


def test_S096_the_page_size_may_change(vault: Vault) -> None:
    made = [vault.add(U("kestrel")) for _ in range(12)]
    vault.index()
    first = vault.results("kestrel", limit=5)
    rest = vault.results("kestrel", limit=20, cursor=first["page"]["cursor"])
    assert len(first["hits"]) + len(rest["hits"]) == len(made)
    assert rest["page"] == {"cursor": None, "hasMore": False}


def test_S098_S099_S100_a_cursor_belongs_to_its_query(vault: Vault) -> None:
    for _ in range(9):
        vault.add(U("kestrel flew"))
    vault.index()
    filters = {"agents": ["claude", "codex"], "scopePaths": ["/srv", "/opt"]}
    cursor = vault.results("kestrel", limit=2, filters=filters)["page"]["cursor"]
    turned = {"agents": ["codex", "claude"], "scopePaths": ["/opt", "/srv"], "sort": "relevance"}
    assert len(vault.hits("kestrel", limit=3, filters=turned, cursor=cursor, debug=True, scope="all")) == 3
    plain = vault.results("kestrel", limit=2)["page"]["cursor"]
    assert len(vault.hits("kestrel", cursor=plain, filters={"agents": [], "scopePaths": []}, freshness="indexed")) == 7
    other: list[tuple[str, dict[str, Any]]] = [
        ("kestrels", {}),
        (" kestrel", {}),
        ("kestrel", {"scope": "conversation"}),
        ("kestrel", {"filters": {"sort": "newest"}}),
        ("kestrel", {"filters": {"agents": ["claude"]}}),
        ("kestrel", {"filters": {"scopePaths": ["/srv"]}}),
        ("kestrel", {"filters": {"since": "2026-01-01T00:00:00Z"}}),
    ]
    for query, request in other:
        assert vault.ask(query, cursor=plain, **request) == {"kind": "malformed-cursor"}, (query, request)


@pytest.mark.parametrize("change", ["add", "append", "remove"])
def test_S101_S102_S103_S106_a_moved_index_refuses_once(vault: Vault, change: str) -> None:
    made = [vault.add(U("kestrel")) for _ in range(6)]
    vault.index()
    first = vault.results("kestrel", limit=2)
    cursor, before = first["page"]["cursor"], first["generation"]
    if change == "add":
        vault.add(U("kestrel again"))
    elif change == "append":
        vault.append(made[0], U("more words"))
    else:
        vault.path(made[0]).unlink()
    vault.index()
    told = vault.ask("kestrel", cursor=cursor)
    assert told["kind"] == "stale-cursor"
    if change == "remove":  # its text stays: only what pages show of it moved
        assert told == {"kind": "stale-cursor", "generation": before}
    else:
        assert told["expectedGeneration"] == before < told["generation"]
    assert vault.ask("kestrel", cursor=cursor) == told
    assert vault.ask("other words", cursor=cursor) == told
    again = vault.results("kestrel", limit=2)
    assert again["generation"] == told["generation"]


def test_B03_B06_what_moves_pages_without_the_index_refuses_too(vault: Vault) -> None:
    for _ in range(4):
        vault.add(U("kestrel"))
    vault.index()
    first = vault.results("kestrel", limit=2)
    with Writer(vault.store).db as db:
        db.execute("UPDATE session SET updated = updated + 1 WHERE id = 1")
    db.close()
    told = vault.ask("kestrel", cursor=first["page"]["cursor"])
    assert told == {"kind": "stale-cursor", "generation": first["generation"]}


def test_S104_no_invented_cursor_is_a_page(vault: Vault) -> None:
    for _ in range(4):
        vault.add(U("kestrel"))
    vault.index()
    good = vault.results("kestrel", limit=2)["page"]["cursor"]
    bad = ["", "abc", urlsafe_b64encode(b"[1,2]").decode(), urlsafe_b64encode(b'"x"').decode(), good[:-4], good + "A"]
    bad += [good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1 :] for at in range(0, len(good), 7)]
    for cursor in bad:
        assert vault.ask("kestrel", cursor=cursor) == {"kind": "malformed-cursor"}, cursor


def test_B10_odd_numbers_in_a_cursor_are_malformed() -> None:
    from outcrop.search import cursor

    for content in ([-1, 0, 0, "k"], [1.5, 0, 0, "k"], [1, 0, -2, "k"], ["1", 0, 0, "k"], [1, 0, 0], [True]):
        assert cursor.read_page(cursor.write("sessions", content, "e"), "e") is None or content == [True]


def test_S104b_S107_B34_a_cursor_of_another_store_is_malformed(vault: Vault, tmp_path: Path) -> None:
    other = Vault(tmp_path / "other")
    for made in (vault, other):
        for _ in range(4):
            made.add(U("kestrel"))
        made.index()
    cursor = vault.results("kestrel", limit=2)["page"]["cursor"]
    assert other.ask("kestrel", cursor=cursor) == {"kind": "malformed-cursor"}
    other.close()


def test_S107_a_rebuild_never_gives_a_generation_again(vault: Vault) -> None:
    for _ in range(4):
        vault.add(U("kestrel"))
    vault.index()
    first = vault.results("kestrel", limit=2)
    writer = Writer(vault.store)
    rebuild(writer.db)
    writer.close()
    vault.index()
    told = vault.ask("kestrel", cursor=first["page"]["cursor"])
    assert told["kind"] == "stale-cursor"
    assert told["generation"] > first["generation"]


def test_S108_cursors_of_one_generation_are_independent(vault: Vault) -> None:
    for _ in range(6):
        vault.add(U("kestrel gull"))
    vault.index()
    one, two = (vault.results(query, limit=2)["page"]["cursor"] for query in ("kestrel", "gull"))
    assert len(vault.hits("gull", cursor=two)) == 4
    assert len(vault.hits("kestrel", cursor=one)) == 4


def test_a_cursor_behind_the_end_is_an_empty_page(vault: Vault) -> None:
    from outcrop.search.cursor import read_page, write_page
    from outcrop.store.embedded.read import EmbeddedStore

    vault.add(U("kestrel"))
    vault.add(U("kestrel too"))
    vault.index()
    store = EmbeddedStore(vault.store)
    epoch = dict(store.connection().execute("SELECT k, v FROM meta"))["epoch"]
    store.close()
    cursor = read_page(vault.results("kestrel", limit=1)["page"]["cursor"], epoch)
    assert cursor is not None
    assert vault.results("kestrel", limit=1, cursor=write_page(cursor._replace(offset=99), epoch))["hits"] == []


# I. Evidence


def snippet(vault: Vault, query: str, **request: Any) -> str:
    [hit] = vault.hits(query, **request)
    return str(hit["evidence"]["snippet"])


def balanced(text: str) -> bool:
    return len(re.findall(r"\[\[", text)) == len(re.findall(r"\]\]", text))


def test_S109_S110_B04_matches_are_marked_and_brackets_of_the_text_are_not_marks(vault: Vault) -> None:
    vault.add(U("if [[ -f needle ]]; then echo ok; fi"))
    vault.index()
    assert "[[ -f [[needle]] ]]" in snippet(vault, "needle")
    assert balanced(snippet(vault, "needle"))


def test_S111_B11_private_signs_are_no_marks(vault: Vault) -> None:
    vault.add(U("odd \ue000needle\ue001 text"))
    vault.index()
    assert snippet(vault, "needle") == "odd \ue000[[needle]]\ue001 text"


@pytest.mark.parametrize("text", ["needle " + "x" * 4000, "needle" + "." + "x" * 4000, "x" * 4000 + " needle"])
def test_S112_an_endless_word_is_cut_and_counted(vault: Vault, text: str) -> None:
    vault.add(U(text))
    vault.index()
    told = vault.results("needle")
    shown = told["hits"][0]["evidence"]["snippet"]
    assert "[[needle]]" in shown
    assert len(shown) < 600
    assert balanced(shown)
    assert told["truncated"]["snippets"] == (0 if text.startswith("xx") and len(shown) < 100 else 1)


def test_S113_S116_evidence_is_the_sessions_own_message(vault: Vault) -> None:
    vault.add(U("no match"), A("the kestrel of one"), at=START)
    vault.add(T("the kestrel of two"), at=START + timedelta(days=1))
    vault.index()
    one, two = sorted(vault.hits("kestrel"), key=lambda hit: hit["updatedAt"])
    assert one["evidence"] == {
        "snippet": "the [[kestrel]] of one",
        "role": "assistant",
        "timestamp": "2026-05-01T09:00:00.000Z",
    }
    assert two["evidence"] == {
        "snippet": "the [[kestrel]] of two",
        "role": "tool",
        "timestamp": "2026-05-02T09:00:00.000Z",
    }


def test_S114_prose_is_shown_rather_than_a_part_of_a_name(vault: Vault) -> None:
    vault.add(U("openTerminal first and many other words of the same message stand before this: the terminal hangs"))
    vault.index()
    assert "the [[terminal]] hangs" in snippet(vault, "terminal")


def test_S115_the_repaired_word_is_marked(vault: Vault) -> None:
    vault.add(U("it coalesces one"))
    vault.add(U("it coalesces two"))
    vault.index()
    assert {hit["evidence"]["snippet"] for hit in vault.hits("coalescs")} == {
        "it [[coalesces]] one",
        "it [[coalesces]] two",
    }


def test_a_long_text_is_shown_around_its_best_place(vault: Vault) -> None:
    vault.add(U("beacon here. " + "filler " * 400 + "the beacon timeout of the lamp " + "filler " * 400))
    vault.index()
    shown = snippet(vault, "beacon timeout")
    assert "the [[beacon]] [[timeout]] of the lamp" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown.replace("[[", "").replace("]]", "").split()) <= 12


def test_a_changed_message_is_shown_only_while_it_matches(vault: Vault) -> None:
    """The rows moved on, the text index did not yet."""
    made = vault.add(U("the kestrel"), A("nothing"), U("another kestrel"))
    gone = vault.add(U("a kestrel alone"))
    vault.index()
    writer = Writer(vault.store)
    with writer.transaction():
        for native in (made, gone):
            [event] = writer.db.execute(
                "SELECT e.id FROM event e JOIN session s ON s.id = e.session WHERE s.native = ? AND e.type = 0"
                " ORDER BY e.id",
                (native,),
            ).fetchone()
            writer.db.execute("DELETE FROM event WHERE id = ?", (event,))
    writer.close()
    told = vault.hits("kestrel")
    assert [(hit["sessionId"], hit["evidence"]["snippet"]) for hit in told] == [(made, "another [[kestrel]]")]


def test_an_error_of_the_engine_is_told_as_one(vault: Vault) -> None:
    vault.add(*(U(f"kestrel {n}") for n in range(300)))
    vault.index()
    for path in (vault.store / "text").glob("*/*.idx"):
        data = path.read_bytes()
        path.write_bytes(random.Random(1).randbytes(len(data) // 2) + data[len(data) // 2 :])
    with pytest.raises(OutcropError) as caught:
        vault.ask("kestrel flew")
    assert str(vault.store) not in caught.value.message
