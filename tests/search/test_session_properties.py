"""Session search: what must hold for any query, text, path and history."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from tests.vaults import A, U, Vault

from outcrop.search import operators, places, plan
from outcrop.search.cursor import PageCursor, read_page, write_page
from outcrop.search.forks import folded
from outcrop.search.marks import CHARACTERS, CLOSE, OPEN, WORDS, Looked, marked
from outcrop.search.respell import similarity
from outcrop.store.embedded.cards import Card
from outcrop.store.embedded.text_rows import DIGEST

ODD = some.text(some.sampled_from("ab \"'[]{}:/.\\-_+#repopath\u0301é日本🪝\0\n"), max_size=60)


@given(some.text() | ODD)
@example("repo:")
@example("repo:\"a' path:'b\"")
def test_any_text_is_a_query(query: str) -> None:
    asked, planned = plan.make(query)
    assert len(planned.terms) <= plan.MOST_TERMS
    assert len(planned.alternatives) <= plan.MOST_ALTERNATIVES
    assert all(value == value.strip() != "" for value in (*asked.repo, *asked.path))
    again, _ = plan.make(query)
    assert again == asked


@given(ODD)
def test_text_without_a_colon_holds_no_operator_and_loses_no_word(query: str) -> None:
    query = query.replace(":", " ").replace('"', " ").replace("'", " ")
    asked = operators.read(query)
    assert not asked.narrows
    assert asked.text.split() == query.split()


@given(
    some.text(some.sampled_from("ab \n[]é.x"), max_size=3000),
    some.lists(some.text("abx", min_size=1, max_size=5), min_size=1, max_size=4),
)
def test_evidence_is_a_piece_of_the_text_with_marks(text: str, words: list[str]) -> None:
    looked = Looked(tuple(words))
    shown, cut = marked(text, looked)
    assert shown.count(OPEN) - text.count(OPEN) <= len(looked.spans(text)) or OPEN in text
    if "[" not in text and "]" not in text:
        plain = shown.replace(OPEN, "").replace(CLOSE, "")
        assert shown.count(OPEN) == shown.count(CLOSE)
        assert plain.strip("…") in " ".join(text.split())
        assert len(plain.strip("…").split()) <= WORDS
        assert len(plain) <= CHARACTERS + 2
        if looked.spans(text):
            assert OPEN in shown
    assert cut or len(shown) <= CHARACTERS + 4 * WORDS + 2


def test_marks_cost_no_more_than_the_text() -> None:
    import time

    start = time.process_time()
    for text in ("a" * 1_000_000, "a " * 500_000, "ab " * 300_000, "[[" * 300_000):
        marked(text, Looked(("a", "ab"), frozenset({"ab"}), ("b",)))
    assert time.process_time() - start < 3


PATHS = some.sampled_from(
    ["/", "/srv", "/srv/app", "/srv/app/", "/srv/APP", "/srv/a_b", "C:\\", "C:\\Work", "c:/work/x", "\\\\s\\d",
     "\\\\wsl$\\U\\h",
     "//wsl.localhost/u/h", "rel", "", ".", "/srv/../etc", "/srv/cafe\u0301", "\\\\?\\C:\\Work"]
)  # fmt: skip


@given(PATHS | some.text(max_size=20), PATHS | some.text(max_size=20))
def test_a_folder_holds_itself_and_what_is_in_it(folder: str, other: str) -> None:
    key = places.key(folder)
    inside = places.Folders([folder])
    if key is None:
        assert not inside.hold(other)
        assert not inside.hold(folder)
        return
    assert key.endswith(("/", ":"))
    assert inside.hold(folder)
    assert inside.hold(folder + ("\\x" if key[0] == "w" else "/x"))
    if inside.hold(other):
        assert places.key(other)[0] == key[0]  # type: ignore[index]


@given(some.text("abcde", max_size=9), some.text("abcde", max_size=9))
def test_similarity_is_the_longest_common_part(left: str, right: str) -> None:
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left, 1):
        for j, b in enumerate(right, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if a == b else max(table[i - 1][j], table[i][j - 1])
    if left or right:
        true = 2 * table[-1][-1] / (len(left) + len(right))
        assert similarity(left, right) in (pytest.approx(true), 0.0)
        assert (similarity(left, right) >= 0.82) is (true >= 0.82)


OPENINGS = some.lists(some.text("ab", max_size=4), min_size=1, max_size=6)


@given(OPENINGS)
def test_forks_leave_one_of_each_beginning(openings: list[str]) -> None:
    def chain(messages: str) -> bytes:
        return b"".join(messages[: at + 1].encode().ljust(DIGEST, b".") for at in range(len(messages)))

    made = [Card(n, b"", "h", "s", "n", None, None, -n, 1, chain(text), None) for n, text in enumerate(openings)]
    gone = folded(made)
    kept = [openings[card.id] for card in made if card.id not in gone]
    assert kept
    for text in openings:
        if len(text) < 2:
            assert text in kept
        else:
            assert any(one[: len(text)] == text or text.startswith(one) for one in kept if len(one) >= 2)


@given(some.integers(0, 2**40), some.integers(0, 2**40), some.integers(0, 2**31), some.text(max_size=30))
def test_a_cursor_says_what_was_written(generation: int, revision: int, offset: int, key: str) -> None:
    cursor = PageCursor(generation, revision, offset, key)
    text = write_page(cursor, "epoch")
    assert text[0] == "A"
    assert read_page(text, "epoch") == cursor
    assert read_page(text, "other") is None
    assert read_page(text[:-1], "epoch") is None


@given(some.text(max_size=200))
def test_any_text_is_no_cursor(text: str) -> None:
    assert read_page(text, "epoch") is None


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    made = Vault(tmp_path_factory.mktemp("vault"))
    for number in range(40):
        made.add(
            U(f"alpha {number % 3} beta{'' if number % 2 else ' gamma'} getUserId"), A("delta epsilon" * (number % 4))
        )
    made.index()
    yield made
    made.close()


WORDS_TYPED = some.lists(
    some.sampled_from(
        ["alpha", "beta", "gamma", "delta", "alhpa", "getUserId", '"alpha', '"', "repo:app", "zzz", "日本"]
    ),
    max_size=5,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(words=WORDS_TYPED, limit=some.integers(1, 9), sort=some.sampled_from(["relevance", "newest"]))
def test_pages_are_the_whole_answer_cut(vault: Vault, words: list[str], limit: int, sort: str) -> None:
    query = " ".join(words)
    whole = vault.ids(query, limit=100, filters={"sort": sort})
    assert len(set(whole)) == len(whole)
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = vault.results(query, limit=limit, filters={"sort": sort}, **cursor)
        found += [hit["sessionId"] for hit in page["hits"]]
        if page["page"]["cursor"] is None:
            break
        cursor = {"cursor": page["page"]["cursor"]}
    assert found == whole


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(words=WORDS_TYPED)
def test_conversations_are_a_part_of_all(vault: Vault, words: list[str]) -> None:
    narrow = vault.results(" ".join(words), limit=100, scope="conversation", debug=True)
    wide = vault.results(" ".join(words), limit=100, debug=True)
    if narrow["debug"]["route"] == wide["debug"]["route"] == "or":
        assert {hit["sessionId"] for hit in narrow["hits"]} <= {hit["sessionId"] for hit in wide["hits"]}


def test_S105_a_page_is_of_one_state_whatever_is_written(tmp_path: Path) -> None:
    """Sessions come in pairs; a page never holds half of one, and a cursor is good or refused."""
    vault = Vault(tmp_path)
    vault.add(U("kestrel 0 left"))
    vault.add(U("kestrel 0 right"))
    vault.index()
    done = threading.Event()
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for number in range(1, 8):
                writing = Vault(tmp_path, written=100 * number)
                writing.add(U(f"kestrel {number} left"))
                writing.add(U(f"kestrel {number} right"))
                writing.index()
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while not done.is_set():
        page = vault.results("kestrel", limit=2)
        everything = vault.results("kestrel", limit=100)
        assert len(everything["hits"]) == len({hit["sessionId"] for hit in everything["hits"]})
        seen.add(everything["generation"])
        if page["page"]["cursor"] is not None:
            told = vault.ask("kestrel", limit=100, cursor=page["page"]["cursor"])
            if told["kind"] == "results":
                assert told["generation"] == page["generation"]
            else:
                assert told["kind"] == "stale-cursor"
    thread.join()
    assert errors == []
    assert len(vault.hits("kestrel", limit=100)) == 16
    assert len(seen) > 1
    vault.close()
