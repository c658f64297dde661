"""Session search asks the engine in tiers and leaves out what cannot come to the best: the answer must not show it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.search.history import History, Line, assistant, user

from outcrop.model import EventType
from outcrop.search import columns, gather, plan, sessions
from outcrop.search.events import EventQuery, search_events
from outcrop.search.found import Refused, SessionPage, SessionSearch
from outcrop.search.query import Tier, any_of, every
from outcrop.search.sessions import search_sessions
from outcrop.store.embedded.read import EmbeddedStore

WORDS = ["beacon", "harbour", "lamp", "gull", "tide", "quay"]
COMMON = ["the lamp", "gull and tide"]


@contextmanager
def searched(history: History) -> Iterator[EmbeddedStore]:
    """The store of a history that is complete."""
    history.drain()
    history.close()
    opened = EmbeddedStore(history.home)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    """Some hundred sessions of prompts, answers and outputs with the same few words in them."""
    home = tmp_path_factory.mktemp("tiers") / "home"
    history = History(home)
    chance = random.Random(3)
    for number in range(150):
        lines = []
        for at in range(chance.randint(1, 5)):
            words = chance.choices(WORDS, k=chance.randint(1, 4)) + chance.choices(["x1", "x2", "x3"], k=9)
            words += chance.choices(["gullTide", "lampQuayBeacon", "tide-lamp", ""], [1, 1, 1, 9])
            chance.shuffle(words)
            kind = chance.choice([user, assistant])
            lines.append(kind(" ".join(words), 1000 * number + 10 * at))
            output = " ".join(chance.choices([*WORDS, "trace", "line", "lampTide"], k=chance.randint(1, 30)))
            lines.append(Line(EventType.TOOL_RESPONSE, output, 1000 * number + 10 * at + 5, tool="Bash"))
        history.add(f"s{number}", lines)
    with searched(history) as opened:
        yield opened


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds so short that a small history fills them."""
    monkeypatch.setattr(gather, "ROUNDS", (8, 16, 64, 32768))
    monkeypatch.setattr(sessions, "FIRST_SESSIONS", 2)
    monkeypatch.setattr(sessions, "NEXT_SESSIONS", (4, 600))


def found(store: EmbeddedStore, query: str, scope: str, limit: int) -> list[tuple[int, float]]:
    page = search_sessions(store, SessionSearch(query, limit=limit, scope=scope))
    assert isinstance(page, SessionPage)
    return [(hit.card.id, round(hit.score, 3)) for hit in page.hits]


queries = some.lists(some.sampled_from(WORDS), min_size=2, max_size=4, unique=True).map(" ".join)


@settings(deadline=None, max_examples=60)
@given(queries, some.sampled_from(["all", "conversation"]), some.sampled_from([1, 3]), some.sampled_from([5000, 60, 0]))
def test_what_is_left_out_would_not_have_been_shown(
    store: EmbeddedStore, query: str, scope: str, limit: int, common: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns, "COMMON", common)
        pruned = found(store, query, scope, limit)
        patched.setattr(columns, "most_of", lambda *_: 1e9)
        patched.setattr(columns, "LONGEST_SEQUENCE", 0)
        assert found(store, query, scope, limit) == pruned


def test_parts_of_names_that_are_common_words_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "home")
    history.add("named", [user("gullTide is a name", 1)])
    history.add("piped", [user("look", 2), Line(EventType.TOOL_RESPONSE, "gullTide", 3, tool="Bash")])
    for number in range(3):
        history.add(f"said{number}", [user(f"a gull and other birds, number {number}, in a longer text", 10 + number)])
    with searched(history) as opened:
        natives = {}
        for common in (5000, 2):
            monkeypatch.setattr(columns, "COMMON", common)
            page = search_sessions(opened, SessionSearch("gull", limit=20))
            assert isinstance(page, SessionPage)
            natives[common] = [hit.card.native for hit in page.hits]
        assert set(natives[2]) == set(natives[5000]) == {"named", "piped", "said0", "said1", "said2"}
        assert set(natives[2][3:]) == {"named", "piped"}


def test_tiers_are_left_out_where_many_messages_hold_all_words(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[bool]] = []
    best = gather.Gatherer._best

    def noting(self: gather.Gatherer, tiers: list[Tier], *rest: object) -> object:
        found = best(self, tiers, *rest)  # type: ignore[arg-type]
        asked.append([tier.most > found.bound for tier in tiers])
        return found

    monkeypatch.setattr(gather.Gatherer, "_best", noting)
    found(store, "lamp tide", "all", 1)
    assert asked[0][0] is True
    assert asked[0][-1] is False
    asked.clear()
    found(store, "lamp zzyzx", "all", 1)
    assert asked[0] == [True, True, True, True]


def test_a_name_of_all_words_comes_before_some_of_the_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "COMMON", 20)
    history = History(tmp_path / "home")
    history.add("named", [user("look at gullTideQuay", 1)])
    for number in range(40):
        for at, word in enumerate(("gull", "tide", "quay")):
            said = (
                f"a {word} in lampPost{number}, fogHorn{number} and rock.py, and much else that is told here at length"
            )
            history.add(f"{word}{number}", [user(said, 100 * at + number)])
    with searched(history) as opened:
        view = opened.text.view(opened.connection())
        assert view is not None
        asked = columns.Columns("all", view.searcher.doc_freq, view.documents, 121)
        _, planned = plan.make("gull tide quay")
        rows = gather.Gatherer(view.searcher, None, set, lambda: None).rows(asked.either(planned), 20).rows
        assert len(rows) >= 20
        assert max(rows.values(), key=lambda row: row.score).session == 1


@pytest.mark.parametrize("scope", ["all", "conversation"])
def test_no_message_scores_more_than_its_words_can(store: EmbeddedStore, scope: str) -> None:
    """The bound is the engine's own formula at its end; a change of either must show."""
    view = store.text.view(store.connection())
    assert view is not None
    searcher = view.searcher
    asked = columns.Columns(scope, searcher.doc_freq, view.documents, 150)
    for words in ("lamp tide", "gull beacon quay"):
        _, planned = plan.make(words)
        *_, tools, loosest = asked.either(planned)
        if scope == "all":
            hits = searcher.search(tools.query, 1, count=False).hits
            assert 0 < hits[0][0] * tools.factor <= tools.most < 1e6
        for left in planned.terms:
            others = (asked._said(word, True).every for word in planned.terms if word != left)
            hits = searcher.search(every(any_of(ways) for ways in others), 1, count=False).hits
            assert 0 < hits[0][0] <= loosest.most < 1e6


@pytest.mark.parametrize("query", ["what is the lamp zzqxv.py", '"the lamp" with zzqxv', "the lamp with a zzqxv"])
def test_question_words_find_nothing_by_themselves(tmp_path: Path, query: str) -> None:
    """The terms of a literal query hold them, and so must its messages; on the last rungs they say nothing."""
    history = History(tmp_path / "home")
    history.add("lamp", [user("a lamp", 1)])
    for number in range(40):
        history.add(f"other{number}", [user(f"what is the weather with number {number}", 10 + number)])
    with searched(history) as opened:
        assert len(found(opened, query, "all", 20)) == 1


def test_the_first_page_tells_that_more_may_match(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of matches is told of a tier, too, that was left out."""
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 30)
    monkeypatch.setattr(sessions, "NEXT_SESSIONS", (4, 30))
    told = []
    for query in ("lamp tide", "gull beacon quay", "harbour lamp"):
        for limit in (1, 100):
            page = search_sessions(store, SessionSearch(query, limit=limit))
            assert isinstance(page, SessionPage)
            told.append(page.candidates)
    assert all(told)


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("run", ["please keep it running"] * 40 + ["run it"]),
        ("gull", [f"gullTide{number}" for number in range(40)] + ["a gull"]),
        ("alpha beta gamma delta", ["alpha", "beta", "gamma", "delta"] * 10),
    ],
)
@pytest.mark.parametrize("everyday", [20_000, 5])
def test_the_first_page_tells_so_of_other_forms_and_names_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, lines: list[str], everyday: int
) -> None:
    monkeypatch.setattr(columns, "EVERYDAY", everyday)
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 30)
    monkeypatch.setattr(sessions, "NEXT_SESSIONS", (4, 30))
    history = History(tmp_path / "home")
    for number, line in enumerate(lines):
        history.add(f"s{number}", [user(f"{line} in the morning of day {number}", number)])
    with searched(history) as opened:
        page = search_sessions(opened, SessionSearch(query, limit=5))
        assert isinstance(page, SessionPage)
        assert page.candidates


def test_nothing_is_missing_where_there_are_fewer_sessions_than_one_rung_looks_at(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for common in (5000, 60, 0):
        monkeypatch.setattr(columns, "COMMON", common)
        monkeypatch.setattr(columns, "EVERYDAY", common)
        for query in ("lamp", "lamp tide", "gull beacon quay x1 x2", "tides lamps"):
            for limit in (1, 3, 20):
                page = search_sessions(store, SessionSearch(query, limit=limit))
                assert isinstance(page, SessionPage)
                assert not page.candidates, (common, query, limit)


@pytest.mark.parametrize("word", ["İstanbul", "İşlem", "Ǧazal", "bɪt", "ʀust", "⑴", "running"])
def test_words_whose_letters_fold_twice_are_held_with_others(tmp_path: Path, word: str) -> None:
    """Their stems are of the terms that the index has, which are not to be folded once more."""
    history = History(tmp_path / "home")
    history.add("both", [user(f"we say {word} harbour here, and {'much else ' * 9}", 1)])
    for number in range(30):
        history.add(f"harbour{number}", [user(f"harbour {number}", 10 + number)])
    for number in range(3):
        history.add(f"alone{number}", [user(f"{word} {word} {word} alone {number}", 100 + number)])
    with searched(history) as opened:
        page = search_sessions(opened, SessionSearch(f"{word} harbour", limit=5))
        assert isinstance(page, SessionPage)
        assert page.hits[0].card.native == "both"
        events = search_events(opened, EventQuery(f"{word} harbour", (EventType.USER_INPUT,), 5))
        assert events.hits[0].found.session.native == "both"
        assert events.hits[0].score > 0.5


def test_a_merge_between_two_pages_is_told(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes scores without a commit: a next page in the new order could show one session twice, and lose one."""
    page = search_sessions(store, SessionSearch("lamp tide", limit=3))
    assert isinstance(page, SessionPage)
    following = SessionSearch("lamp tide", limit=3, cursor=page.cursor)
    assert isinstance(search_sessions(store, following), SessionPage)
    view = store.text.view
    monkeypatch.setattr(
        store.text, "view", lambda db: (found := view(db)) and replace(found, documents=found.documents - 1)
    )
    assert search_sessions(store, following) == Refused(page.generation)
