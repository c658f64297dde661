"""What developers paste into a search: syntax of other engines, names, paths, hashes, signs, every script."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.search.history import History, Line, assistant, user

from outcrop.model import CONVERSATION, EventType
from outcrop.search.events import EventHits, EventQuery, search_events
from outcrop.search.query import MOST_UNITS, STOP_WORDS
from outcrop.store.embedded.read import EmbeddedStore

FULL = "9fceb02d0ae598e95dc970b74767f19372d61af8"
TEXTS = {
    "error": "fails with error[E0277]: the trait bound is not satisfied",
    "languages": "templates in C++ and generics in C# and functions in F#",
    "letter": "vitamin c is healthy, a b c",
    "dotenv": "copy the .env file over",
    "flags": "pass --no-verify and --dry-run=3 to git commit -m",
    "shell": "echo $HOME and ${XDG_CONFIG_HOME} please",
    "issue": "see issue #123 and PR #4567",
    "user": "ask @octocat or @user/package about it",
    "version": "upgrade to v1.2.3-rc.1 from 1.2.2",
    "windows": r"open C:\Users\me\project\main.cpp now",
    "emoji": "the 🪝 hook and 🚀🚀 rocket 👩‍💻 ❤️",
    "hebrew": "שלום עולם",
    "arabic": "مرحبا بالعالم",
    "mixed": "用React写的组件 and テストrunner",
    "hash": f"bisect says {FULL} broke it",
    "short": "reverted 3f2a9c1 again",
    "constant": "SOME_VERY_LONG_CONSTANT_NAME_FOR_CONFIGURATION_OF_RETRY and aVeryLongCamelCaseIdentifierForTheThing",
    "foo": "foo went wrong",
    "foobar": "foobar foobaz",
    "regex": r"the pattern ^qux.*bar$ and \d+",
    "url": "http://example.com:8080/api/v2/users?id=5&q=a%20b",
    "cpp": "std::vector<int>::iterator and self.do_it()",
    "german": "Straße Ünïcödé ŁÓDŹ",
    "code": "error 0x80070005 and ECONNREFUSED 127.0.0.1:5432",
    "pytest": "tests/search/test_properties.py::test_any_query",
    "korean": "안녕하세요 세계",
    "thai": "สวัสดีชาวโลก",
    "wide": "ＦＵＬＬＷＩＤＴＨ １２３４",
    "russian": "привет мир",
    "greek": "Ελληνικά κείμενο",
    "hindi": "हिन्दी पाठ",
    "numeronym": "i18n l10n k8s utf-8",
    "acronym": "getHTTPResponseCode parseJSON IOError",
    "date": "at 10:30 on 2026-05-01T10:00:00Z",
}
FOUND = [
    ("E0277", "error"), ("error[E0277]", "error"), ("e0277", "error"),
    ("C++", "languages"), ("c++?", "languages"), ("C#", "languages"), ("F#", "languages"),
    (".env", "dotenv"), ("--no-verify", "flags"), ("no-verify", "flags"), ("--dry-run", "flags"), ("-m", "flags"),
    ("$HOME", "shell"), ("${XDG_CONFIG_HOME}", "shell"), ("XDG_CONFIG_HOME", "shell"), ("config home", "shell"),
    ("#123", "issue"), ("#4567", "issue"), ("@octocat", "user"), ("@user/package", "user"), ("user/package", "user"),
    ("v1.2.3", "version"), ("1.2.3", "version"), ("v1.2.3-rc.1", "version"), ("1.2.2", "version"),
    (r"C:\Users\me\project\main.cpp", "windows"), (r"project\main.cpp", "windows"), ("project/main.cpp", "windows"),
    ("main.cpp", "windows"), ("🪝", "emoji"), ("🚀", "emoji"), ("👩‍💻", "emoji"), ("❤️", "emoji"), ("🪝 hook", "emoji"),
    ("שלום", "hebrew"), ("\u202bשלום עולם\u202c", "hebrew"), ("مرحبا", "arabic"), ("React", "mixed"), ("写的", "mixed"),
    ("组件", "mixed"), ("用React写的组件", "mixed"), ("テスト", "mixed"), ("テストrunner", "mixed"),
    ("react 组件", "mixed"),
    (FULL, "hash"), (FULL.upper(), "hash"), (FULL[:7], "hash"), (FULL[:12], "hash"),
    ("3f2a9c1", "short"), ("3f2a9c1" + "0d" * 16, "short"),
    ("SOME_VERY_LONG_CONSTANT_NAME_FOR_CONFIGURATION_OF_RETRY", "constant"), ("CONSTANT_NAME", "constant"),
    ("aVeryLongCamelCaseIdentifierForTheThing", "constant"), ("CamelCaseIdentifier", "constant"),
    ("^qux.*bar$", "regex"), (r"qux", "regex"), ("http://example.com:8080/api/v2/users", "url"), ("api/v2", "url"),
    ("example.com", "url"), ("std::vector", "cpp"), ("vector<int>", "cpp"), ("self.do_it()", "cpp"), ("doIt", "cpp"),
    ("Straße", "german"), ("strasse", "german"), ("unicode", "german"), ("łódź", "german"), ("lodz", "german"),
    ("0x80070005", "code"), ("ECONNREFUSED", "code"), ("127.0.0.1:5432", "code"), ("127.0.0.1", "code"),
    ("test_any_query", "pytest"), ("test_properties.py", "pytest"), ("tests\\search\\test_properties.py", "pytest"),
    ("안녕", "korean"), ("세계", "korean"), ("สวัสดี", "thai"), ("ชาวโลก", "thai"), ("fullwidth", "wide"),
    ("1234", "wide"),
    ("ПРИВЕТ", "russian"), ("Ελληνικά", "greek"), ("हिन्दी", "hindi"), ("पाठ", "hindi"), ("i18n", "numeronym"),
    ("UTF-8", "numeronym"), ("HTTPResponse", "acronym"), ("json", "acronym"),
    ("2026-05-01", "date"), ("10:30", "date"),
    ("foo*", "foo"), ("foo~", "foo"), ("foo^3", "foo"), ("title:foo", "foo"), ("user:foo", "foo"),
    ("+foo -wrong", "foo"),
    ('"foo', "foo"), ("(foo", "foo"), ("foo AND", "foo"), ("NOT foo", "foo"), ("foo OR", "foo"), ("/foo/", "foo"),
    ("\\foo", "foo"), ("foo\\", "foo"), ("{foo}", "foo"), ("foo\x00", "foo"), ("«foo»", "foo"), ("foo\u200b", "foo"),
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    history = History(tmp_path_factory.mktemp("typed") / "home")
    for number, (name, text) in enumerate(TEXTS.items()):
        history.add(name, [user(text, number)])
        history.add(f"{name} tool", [Line(EventType.TOOL_RESPONSE, text, number)])
    history.drain()
    yield EmbeddedStore(history.home)
    history.close()


def ask(store: EmbeddedStore, text: str, *types: EventType, limit: int = 50) -> EventHits:
    return search_events(store, EventQuery(text, types or CONVERSATION, limit))


def names(store: EmbeddedStore, text: str, *types: EventType) -> list[str]:
    return [hit.found.session.native.removesuffix(" tool") for hit in ask(store, text, *types).hits]


@pytest.mark.parametrize(("query", "name"), FOUND)
def test_it_is_found_before_all_else_in_conversations_and_in_tool_text(
    store: EmbeddedStore, query: str, name: str
) -> None:
    assert names(store, query)[:1] == [name]
    assert name in names(store, query, EventType.TOOL_RESPONSE)[:3]


@pytest.mark.parametrize(
    "query", ["[1 TO 2]", "a AND b", "-x", '"unclosed', "\\\\", "*", "?:", "title:", "a^", "~", "()"]
)
def test_syntax_of_engines_is_text(store: EmbeddedStore, query: str) -> None:
    assert len(ask(store, query).hits) < len(TEXTS) / 2


def test_a_field_name_reaches_no_field(store: EmbeddedStore) -> None:
    for query in ("type:zz", "marker:77", "state:zz", "harness:codex", "source:codex", "origin:zz", "id:*"):
        assert set(names(store, query)) <= {"url"}, query  # which holds the word "id"


def test_a_minus_and_a_not_exclude_nothing(store: EmbeddedStore) -> None:
    assert set(names(store, "foo -wrong")) == set(names(store, "foo wrong")) == set(names(store, "foo NOT wrong"))


def test_stop_words_alone_find_the_texts_that_hold_them(store: EmbeddedStore) -> None:
    assert names(store, "the") == names(store, "The?")
    assert set(names(store, "is it the")) >= {"error", "emoji"}
    assert len(STOP_WORDS) > len(ask(store, " ".join(sorted(STOP_WORDS))).hits) > 5


def test_a_query_as_long_as_the_contract_allows_answers_fast(store: EmbeddedStore) -> None:
    for query in ("foo " * 1024, "x" * 4096, "日" * 4096, "a.b" * 1365, '"' * 4096, "aB" * 2048, "🪝" * 4096):
        start = time.process_time()
        assert len(query) <= 4096
        ask(store, query)
        assert time.process_time() - start < 2, query[:10]
    words = [f"w{number}" for number in range(900)]
    answer = ask(store, " ".join([*words, "E0277"])[-4096:])
    assert [hit.found.session.native for hit in answer.hits] == ["error"]
    assert answer.warnings[0].startswith(f"query_cut: searched the {MOST_UNITS} rarest")


def test_a_thousand_equal_texts_are_in_one_exact_order(history: History) -> None:
    for number in range(20):
        history.add(f"s{number}", [assistant("Tests pass.", number % 10) for _ in range(50)])
    history.drain()
    store = EmbeddedStore(history.home)
    for number in range(20):  # `context` differs for the first two messages of a session alone
        history.add(f"t{number}", [user("another thing", 1)])
    page, everything = ask(store, "tests pass"), ask(store, "tests pass", limit=2000)
    assert len(everything.hits) == 1000
    assert (page.truncated, everything.truncated) == (True, False)
    keys = [(-hit.score, -hit.found.event.time, hit.found.event.uid) for hit in everything.hits]
    assert keys == sorted(keys)
    assert page.hits == everything.hits[:50]


def test_a_long_message_is_found_by_its_subject_among_short_ones_and_many_tool_events(history: History) -> None:
    """Lengths are measured against messages, not against the many events that are none."""
    history.add("noise", [Line(EventType.TOOL_RESPONSE, f"output {number}", 1) for number in range(2000)])
    history.add("short", [user("yes, go on", number) for number in range(30)])
    history.add("other", [user("it goes down the road", number) for number in range(30)])
    story = "We looked at many things before and after, and wrote each of them up for the others to read. " * 8
    (wanted,) = history.add("long", [user(f"{story} The harbor sequencer went down over a stale entry. {story}", 1)])
    history.drain()
    hits = ask(EmbeddedStore(history.home), "what made the harbor sequencer go down").hits
    assert hits[0].found.event.id == wanted


def test_the_letters_that_fill_short_fields_are_no_words(store: EmbeddedStore) -> None:
    for query in ("\u0374", "\u02b9", "\u0374 \u0374", '"\u0374 \u0374"'):
        assert ask(store, query).hits == []
