"""Finding events: what matches, in which order, inside which scope, and what is told of it."""

from __future__ import annotations

import pytest
from tests.search.history import History, Line, assistant, user

from outcrop.errors import Cancelled
from outcrop.model import CONVERSATION, ENCRYPTED_PLACEHOLDER, EVENT_TYPES, EventType
from outcrop.search.events import EventHits, EventQuery, search_events
from outcrop.store.embedded.read import EmbeddedStore

ALL = tuple(kind for kind in EVENT_TYPES if kind is not EventType.UNKNOWN)
TOOLS = (EventType.TOOL_CALL, EventType.TOOL_RESPONSE)


def search(
    history: History, text: str, types: tuple[EventType, ...] = CONVERSATION, limit: int = 50, **more: object
) -> EventHits:
    history.drain()
    return search_events(EmbeddedStore(history.home), EventQuery(text, types, limit, **more))  # type: ignore[arg-type]


def found(history: History, text: str, types: tuple[EventType, ...] = CONVERSATION, **more: object) -> list[int]:
    return [hit.found.event.id for hit in search(history, text, types, **more).hits]


@pytest.fixture
def talk(history: History) -> History:
    """Ids: 1, 2 a turn; 3, 4 another; 5 a call, 6 its answer, 7 reasoning, 8 runtime."""
    history.add(
        "k",
        [
            user("Where does the lighthouse beacon timeout come from? See src/net/beam.py", 1000),
            assistant(
                "The beacon waits in resolveTerminalPath and get_user_id, naïve about the café 日本語のテスト", 2000
            ),
            user("beacon", 3000),
            assistant("Done: the parser parses stories", 4000),
            Line(
                EventType.TOOL_CALL, time=5000, tool="Bash", arguments={"command": "pytest -k beam.py", "timeout": 12}
            ),
            Line(EventType.TOOL_RESPONSE, "quasar failed in get_user_id", 6000, tool="Bash"),
            Line(EventType.REASONING, "a lamp maybe", 7000),
            Line(EventType.RUNTIME, "task_complete", 8000),
        ],
    )
    return history


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("lighthouse", [1]),
        ("LIGHTHOUSE!", [1]),
        ("TerminalPath", [2]),
        ("terminal path", [2]),
        ("resolveTerminalPath", [2]),
        ("resolve_terminal_path", [2]),
        ("getUserId", [2]),
        ("get_user_id", [2]),
        ("beam.py", [1]),
        ("net/beam.py", [1]),
        ("./src/net/beam.py:12", [1]),
        ("naive", [2]),
        ("naïve", [2]),
        ("nai\u0308ve", [2]),
        ("café", [2]),
        ("日本語", [2]),
        ("本語", [2]),
        ("テスト", [2]),
        ("日本語のテスト", [2]),
        ("timeouts", [1]),
        ("story", [4]),
        ("parsing", [4]),
        ('"beacon timeout"', [1]),
        ('"waits in"', [2]),
        ("“waits in”", [2]),
        ("harbour", []),
        ("quasar", []),
        ("lamp", []),
        ("!!! ???", []),
        ("", []),
        ("\x00", []),
    ],
)
def test_what_a_query_finds_in_conversations(talk: History, query: str, ids: list[int]) -> None:
    assert found(talk, query) == ids


def test_C072_prompts_and_answers_are_found_by_default(talk: History) -> None:
    assert set(found(talk, "beacon")) == {1, 2, 3}


def test_C073_C074_other_types_only_when_asked_for(talk: History) -> None:
    assert found(talk, "lamp", (EventType.REASONING,)) == [7]
    assert found(talk, "quasar", (EventType.TOOL_RESPONSE,)) == [6]
    assert found(talk, "quasar", (EventType.TOOL_CALL,)) == []


def test_C075_C076_calls_are_found_by_name_and_arguments(talk: History) -> None:
    for query in ("pytest", "beam.py", "Bash", "12", '"pytest k beam"'):
        assert found(talk, query, (EventType.TOOL_CALL,)) == [5], query
    assert found(talk, "get_user_id", TOOLS) == [6]
    assert found(talk, "getUserId", TOOLS) == [6]


def test_C078_C098_types_do_not_leak(talk: History) -> None:
    assert found(talk, "task_complete", (EventType.RUNTIME,)) == [8]
    assert found(talk, "task_complete beacon", (EventType.RUNTIME,)) == [8]
    assert found(talk, "beacon", (EventType.USER_INPUT,)) == found(
        talk, "beacon", (EventType.USER_INPUT, EventType.RUNTIME)
    )
    assert set(found(talk, "beacon", (EventType.USER_INPUT,))) == {1, 3}
    assert set(found(talk, "beacon beam.py", ALL)) == {1, 2, 3, 5}
    talk.add("u", [Line(EventType.UNKNOWN, "beacon", 1)])
    assert 9 not in found(talk, "beacon", ALL)


def test_C086_quotes_and_punctuation_change_nothing_for_words(talk: History) -> None:
    assert set(found(talk, 'BEACON, "timeout"!')) == set(found(talk, "beacon timeout"))


def test_C087_one_word_is_enough(talk: History) -> None:
    assert set(found(talk, "beacon zzzabsent")) == {1, 2, 3}


def test_C094_encrypted_reasoning_is_never_a_hit(history: History) -> None:
    history.add("x", [Line(EventType.REASONING, ENCRYPTED_PLACEHOLDER, 1), Line(EventType.REASONING, "encrypted", 2)])
    assert found(history, "encrypted", (EventType.REASONING,)) == [2]


def test_stop_words_do_not_count_in_questions_but_do_alone(history: History) -> None:
    a, b, c = history.add("a", [user("what is it that we do", 1), user("the gull", 2), user("to be or not to be", 3)])
    assert found(history, "what is the gull?") == [b]
    assert found(history, "the") == [b]
    assert found(history, "to be or not to be")[0] == c
    assert found(history, "what is it")[0] == a


def test_one_letter_words_are_words(history: History) -> None:
    history.add("a", [user("plan x failed", 1), user("plan y", 2)])
    assert found(history, "x") == [1]


def test_exact_forms_come_before_stems(history: History) -> None:
    history.add("a", [user("the tests pass", 9)])
    history.add("b", [user("the test passes", 1)])
    assert found(history, "test") == [2, 1]
    assert found(history, "tests") == [1, 2]


def test_phrases_come_before_near_words_before_scattered_ones(history: History) -> None:
    filler = "one two three four five six seven eight nine"
    history.add("a", [user(f"lamp {filler} oil ten", 4)])
    history.add("b", [user(f"lamp of good oil {filler}", 3)])
    history.add("c", [user(f"lamp oil of good {filler}", 2)])
    history.add("d", [user(f"lamp lamp lamp {filler} ten", 5)])
    assert found(history, "lamp oil") == [3, 2, 1, 4]


def test_a_quoted_phrase_is_demanded_and_given_up_only_for_nothing(history: History) -> None:
    history.add("a", [user("lamp oil", 1), user("oil lamp", 2)])
    assert found(history, '"oil lamp"') == [2]
    answer = search(history, '"oil of lamp"')
    assert len(answer.hits) == 2
    assert answer.warnings[0].startswith("phrase_relaxed:")


def test_a_phrase_in_tool_text_is_checked_on_the_row(history: History) -> None:
    long = "word " * 2000
    history.add(
        "a",
        [Line(EventType.TOOL_RESPONSE, f"{long} disk is full", 1), Line(EventType.TOOL_RESPONSE, "full disk is", 2)],
    )
    assert found(history, '"disk is full"', TOOLS) == [1]
    assert found(history, "full", TOOLS) == [2, 1]


def test_context_adds_to_a_hit_and_never_makes_one(history: History) -> None:
    history.add("a", [user("harbour crane", 1), assistant("the beacon is lit", 1)])
    history.add("b", [user("nothing here at all", 2), assistant("the beacon is lit", 2)])
    assert found(history, "harbour beacon")[:2] == [2, 1] or found(history, "harbour beacon")[:2] == [1, 2]
    assert found(history, "crane beacon").index(2) < found(history, "crane beacon").index(4)
    assert found(history, "crane") == [1]


def test_C071_equal_scores_newer_first_then_the_public_id(history: History) -> None:
    for number in range(30):
        history.add(f"s{number}", [user("same words in each of them", 100 + number // 3)])
    hits = search(history, "same words each").hits
    keys = [(-hit.score, -hit.found.event.time, hit.found.event.uid) for hit in hits]
    assert len(hits) == 30
    assert len({hit.score for hit in hits}) == 1
    assert keys == sorted(keys)


def test_the_order_is_exact_where_hundreds_are_equal(history: History) -> None:
    for number in range(400):
        history.add(f"s{number % 7}", [user("continue please", number % 50)])
        if number % 100 == 50:
            history.drain()
    hits = search(history, "continue please", limit=50).hits
    everything = search(history, "continue please", limit=1000).hits
    assert len(everything) == 400
    assert [hit.found.event.id for hit in hits] == [hit.found.event.id for hit in everything[:50]]
    keys = [(-hit.score, -hit.found.event.time, hit.found.event.uid) for hit in everything]
    assert keys == sorted(keys)


@pytest.mark.parametrize(("limit", "shown", "more"), [(1, 1, True), (2, 2, True), (3, 3, False), (50, 3, False)])
def test_C057_C090_truncated_tells_the_truth(talk: History, limit: int, shown: int, more: bool) -> None:
    answer = search(talk, "beacon", limit=limit)
    assert (len(answer.hits), answer.truncated) == (shown, more)


def test_C070_scores_are_in_bounds_and_fall(talk: History) -> None:
    scores = [hit.score for hit in search(talk, "beacon timeout lighthouse path").hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


def test_C079_C080_C081_scope_is_a_session_or_a_turn(talk: History) -> None:
    talk.add("other", [user("beacon elsewhere", 9000)])
    store = EmbeddedStore(talk.home)
    talk.drain()
    with store.snapshot() as snapshot:
        rows = snapshot.found([1, 3, 9])
    session, turn = rows[1].session.uid, rows[3].turn.uid
    assert set(found(talk, "beacon", session=session)) == {1, 2, 3}
    assert found(talk, "beacon", turn=turn) == [3]
    assert found(talk, "elsewhere", session=session) == []
    assert found(talk, "beacon", session=rows[9].session.uid) == [9]
    assert found(talk, "beacon", session=b"?" * 16) == []
    everywhere = found(talk, "beacon")
    assert found(talk, "beacon", session=session) == [id for id in everywhere if id != 9]


def test_C059_C082_harness_and_source_are_exact(talk: History) -> None:
    talk.add("c", [user("beacon", 9000)], harness="claude-code", source="claude")
    assert found(talk, "beacon", harness="claude-code") == [9]
    assert found(talk, "beacon", source="claude") == [9]
    assert set(found(talk, "beacon", harness="codex")) == {1, 2, 3}
    for more in ({"harness": "codex", "source": "claude"}, {"harness": "Codex"}, {"harness": "c"}, {"source": ""}):
        assert found(talk, "beacon", **more) == []


def test_a_mistyped_word_is_repaired_inside_the_scope(talk: History) -> None:
    for typed, meant in [("lihgthouse", 1), ("lighthose", 1), ("ligthouse", 1), ("timeuot", 1), ("bekaon", None)]:
        answer = search(talk, typed)
        if meant:
            assert [hit.found.event.id for hit in answer.hits] == [meant], typed
            assert answer.warnings == [f"query_repaired: {typed} -> {'timeout' if typed[0] == 't' else 'lighthouse'}"]
        else:
            assert answer.hits == []
    answer = search(talk, "lighthouse timeuot")
    assert answer.hits[0].found.event.id == 1
    assert answer.warnings == ["query_repaired: timeuot -> timeout"]
    assert search(talk, "quasra").hits == []
    assert [hit.found.event.id for hit in search(talk, "quasra", TOOLS).hits] == [6]


def test_nothing_that_lives_is_repaired(talk: History) -> None:
    talk.add("b", [user("beacom", 1)])
    answer = search(talk, "beacom")
    assert [hit.found.event.id for hit in answer.hits] == [9]
    assert answer.warnings == []


def test_words_that_nothing_holds_are_named(talk: History) -> None:
    answer = search(talk, "lighthouse xq7zz")
    assert answer.hits[0].found.event.id == 1
    assert answer.warnings == ["words_dropped: xq7zz"]


def test_a_word_that_nothing_holds_hides_no_hit_with_all_others(history: History) -> None:
    history.add(
        "s", [user("beacon " * 30, 10), user("a beacon, then a very long time of nothing until the timeout", 20)]
    )
    for query in ("beacon timeout", "beacon timeout zzqq", "zzqq beacon 7q7q timeout"):
        hits = search(history, query).hits
        assert [hit.found.event.id for hit in hits] == [2, 1], query
        assert hits[0].score >= 0.5 > hits[1].score


def test_a_word_typed_as_excluded_is_not_looked_for(history: History) -> None:
    history.add("s", [user("the lantern burns oil", 10), user("the lantern of the harbour, harbour, harbour", 20)])
    answer = search(history, "lantern oil -harbour")
    assert [hit.found.event.id for hit in answer.hits] == [1, 2]
    assert answer.warnings == ["words_dropped: -harbour"]
    # alone, as a flag, glued to a word or inside quotes it is what it is
    assert [hit.found.event.id for hit in search(history, "-harbour").hits] == [2]
    history.add("t", [user("rm -rf build, then --force", 30), user("a well-known place", 40)])
    for query, meant in [("rm -rf", 3), ("-rf", 3), ("--force", 3), ("well-known", 4), ('lantern "oil -harbour"', 2)]:
        answer = search(history, query)
        assert answer.hits[0].found.event.id == meant, query
        assert not any(warning.startswith("words_dropped: -") for warning in answer.warnings), query


def test_nothing_found_tells_what_was_searched(talk: History) -> None:
    events, sessions = talk.db.execute("SELECT sum(event_count), count(*) FROM session").fetchone()
    for query in ("quaggaquagga", "?!", ""):
        answer = search(talk, query)
        assert (answer.hits, answer.warnings) == (
            [], [f"nothing_found: searched {events} events of {sessions} session{'s' if sessions > 1 else ''}"],
        ), query  # fmt: skip


def test_what_stands_deep_in_an_output_beats_shorter_texts_with_some_of_the_words(history: History) -> None:
    history.add("s", [user("go", 1), *(Line(EventType.TOOL_RESPONSE, f"valve pressure {n}", 2 + n) for n in range(30))])
    deep = "\n".join([*(f"step {n} finished" for n in range(6000)), "oxbow valve negative pressure"])
    history.add("t", [user("go", 50), Line(EventType.TOOL_RESPONSE, deep, 51)])
    answer = search(history, "oxbow valve negative pressure", TOOLS)
    assert answer.hits[0].found.event.id == 33


def test_a_long_query_keeps_its_rarest_words(talk: History) -> None:
    talk.add("f", [user(" ".join(f"filler{number}" for number in range(80)), 1)] * 2)
    answer = search(talk, " ".join([*(f"filler{number}" for number in range(80)), "stories"]))
    assert {hit.found.event.id for hit in answer.hits} == {4, 9, 10}
    assert answer.warnings[0].startswith("query_cut:")


def test_of_copied_history_the_original_counts(history: History) -> None:
    history.add("parent", [user("the lantern plan", 10), assistant("lantern answer", 20)])
    origin = _uid(history, 1)
    history.add("fork", [user("the lantern plan", 10, origin=origin, copy=True), user("lantern more", 30)])
    assert set(found(history, "lantern")) == {1, 2, 4}
    assert search(history, "lantern plan", limit=3).truncated is False


def test_outside_the_originals_scope_the_oldest_copy_counts(history: History) -> None:
    history.add("parent", [user("the lantern plan", 10)], harness="claude-code", source="claude")
    origin = _uid(history, 1)
    history.add("late", [user("the lantern plan", 40, origin=origin, copy=True)])
    history.add("early", [user("the lantern plan", 20, origin=origin, copy=True)])
    assert found(history, "lantern") == [1]
    assert found(history, "lantern", harness="codex") == [3]
    assert found(history, "lantern", session=_session(history, "late")) == [2]
    history.remove(1)
    assert found(history, "lantern") == [3]


def test_a_page_is_filled_past_hundreds_of_copies(history: History) -> None:
    history.add("parent", [user("lantern oil", 500)])
    origin = _uid(history, 1)
    for number in range(200):
        history.add(f"fork{number}", [user("lantern oil", 600 + number, origin=origin, copy=True)])
    last = history.add("own", [user("a lantern that many words stand around in this long text", 1)])
    answer = search(history, "lantern oil", limit=2)
    assert [hit.found.event.id for hit in answer.hits] == [1, *last]
    assert answer.truncated is False


def test_an_event_in_a_hidden_turn_is_no_hit(talk: History) -> None:
    talk.db.execute("UPDATE turn SET hidden = 1, ord = 0 WHERE id = 1")
    assert found(talk, "beacon") == [3]


def test_a_cancelled_search_stops(talk: History) -> None:
    talk.drain()
    with pytest.raises(Cancelled):
        search_events(EmbeddedStore(talk.home), EventQuery("beacon", CONVERSATION, 5), lambda: True)


def _uid(history: History, event: int) -> bytes:
    uid: bytes = history.db.execute("SELECT uid FROM event WHERE id = ?", (event,)).fetchone()[0]
    return uid


def _session(history: History, native: str) -> bytes:
    uid: bytes = history.db.execute("SELECT uid FROM session WHERE native = ?", (native,)).fetchone()[0]
    return uid
