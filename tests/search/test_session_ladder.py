"""Session search, groups B, C and D of the numbered cases: what of a query is searched, and on which rung."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.vaults import A, Message, T, U, Vault

Make = Callable[..., Vault]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """A vault of sessions, each given by its messages, indexed."""
    made = Vault(tmp_path)

    def fill(*sessions: Message | tuple[Message, ...]) -> Vault:
        for session in sessions:
            made.add(*([session] if isinstance(session, Message) else session))
        made.index()
        return made

    yield fill
    made.close()


# B. Truncation of the query


def test_S025_a_long_query_is_cut_and_says_so(make: Make) -> None:
    vault = make(U("the needle lies here"))
    response = vault.results("needle " + "x" * 593)
    assert len(response["hits"]) == 1
    assert response["truncated"]["query"] is True
    assert vault.results("needle")["truncated"]["query"] is False


def test_S026_of_more_than_48_words_the_last_are_not_searched(make: Make) -> None:
    vault = make(U("the needle lies here"))
    response = vault.results(" ".join([*(f"m{n}" for n in range(55)), "needle"]))
    assert response["hits"] == []
    assert response["truncated"]["query"] is True


def test_S027_48_words_are_all_searched(make: Make) -> None:
    vault = make(U("the needle lies here"))
    response = vault.results(" ".join([*(f"m{n}" for n in range(47)), "needle"]))
    assert len(response["hits"]) == 1
    assert response["truncated"]["query"] is False


def test_S028_a_word_of_4000_characters_finds_the_one_of_512(make: Make) -> None:
    vault = make(U("w" * 512))
    for scope in ("all", "conversation"):
        response = vault.results("w" * 4000, scope=scope)
        assert len(response["hits"]) == 1
        assert response["truncated"]["query"] is True


def test_S029_the_cut_breaks_no_character(make: Make) -> None:
    vault = make(U("the needle 🪝 lies here"))
    response = vault.results("needle " + "x" * 504 + "🪝" * 4)
    assert len(response["hits"]) == 1
    assert response["truncated"]["query"] is True


# C. Ladder


def test_S030_a_quoted_phrase_is_found_as_one(make: Make) -> None:
    vault = make(U("the alpha beta gamma line"), U("beta separated alpha"))
    assert vault.route('"alpha beta"') == ("phrase", None, 1)


def test_S031_without_the_phrase_all_of_its_words(make: Make) -> None:
    assert make(U("beta separated alpha"), U("alpha alone")).route('"alpha beta"') == ("and", None, 1)


def test_S032_prose_is_searched_for_any_word_and_its_forms(make: Make) -> None:
    vault = make(U("the relay dropped a frame"))
    assert vault.route("relay frames dropped") == ("or", None, 1)


def test_S033_a_misspelt_word_is_repaired(make: Make) -> None:
    vault = make(U("coalesces one"), U("coalesces two"))
    assert vault.route("coalescs") == ("typo+or", ["coalesces"], 2)


def test_S034_a_word_of_one_message_is_no_correction(make: Make) -> None:
    vault = make(U("coalesces one"))
    assert vault.route("coalescs") in (("or", None, 0), ("loose", ["coalesces"], 1))


def test_S035_a_word_that_lives_is_not_repaired(make: Make) -> None:
    assert make(U("coalesces one")).route("coalesces") == ("or", None, 1)


def test_S036_the_repaired_query_is_told_in_full(make: Make) -> None:
    vault = make(U("parseJson the data one"), U("parseJson the data two"))
    route, repaired, found = vault.route("parseJsonn(the, data)")
    assert (repaired, found) == (["parsejson", "the", "data"], 2)
    assert route in ("typo+phrase", "typo+and")


def test_S037_repair_comes_before_any_word(make: Make) -> None:
    vault = make(U("coalesces one"), U("coalesces two"), *(U(f"relay {n}") for n in range(4)))
    route, repaired, found = vault.route("coalescs relay")
    assert (route, repaired, found) == ("typo+or", ["coalesces", "relay"], 6)


def test_S038_the_first_letter_must_be_right_or_have_changed_places(make: Make) -> None:
    vault = make(U("coalesces one"), U("coalesces two"))
    assert vault.route("zoalesces")[0] in ("or", "loose")
    assert vault.route("ocalesces") == ("typo+or", ["coalesces"], 2)


@pytest.mark.parametrize(
    ("typed", "stored", "repaired"), [("dok", "dog", False), ("tokan", "token", False), ("secter", "sector", True)]
)
def test_S039_short_words_bear_fewer_mistakes(make: Make, typed: str, stored: str, repaired: bool) -> None:
    vault = make(U(f"{stored} one"), U(f"{stored} two"))
    route, terms, found = vault.route(typed)
    if repaired:
        assert (route, terms, found) == ("typo+or", [stored], 2)
    else:
        assert route in ("or", "loose")


@pytest.mark.parametrize("typed", ["zebr", "zebara", "crosing"])
def test_a_word_of_a_title_alone_is_loosened_too(make: Make, typed: str) -> None:
    vault = make(U("kiwi"))
    titled = vault.add(U("how wide is it"), title="Zebra Crossing")
    vault.index()
    assert vault.ids(typed) == [titled]
    assert vault.ids(typed, scope="conversation") == []


def test_S040_B01_tool_text_does_not_suppress_a_repair_of_prose(make: Make) -> None:
    vault = make(U("coalesces one"), U("coalesces two"), T("coalescs in a log"))
    assert vault.route("coalescs", scope="conversation") == ("typo+or", ["coalesces"], 2)
    assert vault.route("coalescs")[:2] == ("or", None)


def test_S041_B02_what_the_scope_cannot_return_is_not_suggested(make: Make) -> None:
    vault = make(T("coalesces one"), T("coalesces two"), U("nothing of the kind"))
    route, repaired, found = vault.route("coalescs", scope="conversation")
    assert (route, repaired, found) == ("or", None, 0)
    assert vault.route("coalescs") == ("typo+or", ["coalesces"], 2)


def test_S042_a_path_of_one_word_is_a_phrase(make: Make) -> None:
    vault = make(U("look at src/a/b.ts please"), U("b.ts in a src"))
    assert vault.route("src/a/b.ts") == ("phrase", None, 1)


def test_S043_B12_a_phrase_elsewhere_hides_nothing_in_the_asked_folder(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.add(U("the alpha beta line"), cwd="/srv/first")
    second = vault.add(U("beta alone"), cwd="/srv/second")
    vault.index()
    assert vault.ids('"alpha beta" repo:second') == [second]
    assert vault.route('"alpha beta" repo:second')[0] == "or"
    vault.close()


def test_S044_diagnostics_only_where_they_are_asked_for(make: Make) -> None:
    vault = make(U("needle"))
    assert "debug" not in vault.ask("needle")
    told = vault.ask("needle", debug=True)
    assert set(told) - set(vault.ask("needle")) == {"debug"}
    assert told["debug"] == {"route": "or", "plannerReport": {"route": "or", "scope": "all"}}
    assert vault.ask("needle", debug=True, scope="conversation")["debug"]["plannerReport"]["scope"] == "conversation"


def test_B13_a_rung_that_was_left_counts_for_candidates(make: Make) -> None:
    vault = make(*((T("beta then alpha"),) for _ in range(60)), U("alpha is not beta"))
    told = vault.results('"alpha beta"', debug=True)
    assert told["debug"]["route"] == "and"
    assert told["truncated"]["candidates"] is True  # more tool texts than could be read for the phrase


def test_B71_an_absent_word_does_not_hide_the_others(make: Make) -> None:
    assert make(U("kestrel over the quay")).route("kestrel absentword")[2] == 1


# D. Scope and columns


def test_S045_S046_conversation_never_shows_tool_text(make: Make) -> None:
    vault = make(U("harbor pilot"), T("harbor out"), T("lagoon out"))
    assert len(vault.hits("harbor", scope="conversation")) == 1
    assert len(vault.hits("harbor", scope="all")) == 2
    assert vault.hits("lagoon", scope="conversation") == []


def test_S047_B07_no_word_of_a_query_reaches_tool_text_in_conversations(make: Make) -> None:
    vault = make((U("uonly"), T("tonly")))
    for query in ("uonly tonly", '"uonly tonly"', "uonly(tonly)"):
        [hit] = vault.hits(query, scope="conversation")
        assert hit["evidence"]["role"] == "user"
        assert "tonly" not in hit["evidence"]["snippet"]
    assert vault.hits("tonly", scope="conversation") == []


def test_S048_S049_parts_of_names_are_found_in_all_alone(make: Make) -> None:
    vault = make(U("call resolveTerminalPath now"))
    for query in ("terminal path", "TerminalPath", "path"):
        assert len(vault.hits(query)) == 1, query
        assert vault.hits(query, scope="conversation") == [], query
    assert len(vault.hits("resolveTerminalPath", scope="conversation")) == 1


def test_S050_tool_text_is_searched_up_to_3072_characters(make: Make) -> None:
    text = "inside " + "x " * 1532 + "beyond"
    assert text.index("beyond") >= 3071
    vault = make(T(text))
    assert len(vault.hits("inside")) == 1
    assert vault.hits("beyond") == []


def test_S051_a_long_answer_is_searched_to_its_last_word(make: Make) -> None:
    vault = make((U("go"), A("filler words here " * 56_000 + "zephyr")))
    [hit] = vault.hits("zephyr")
    assert "[[zephyr]]" in hit["evidence"]["snippet"]


def test_S052_B16_a_word_across_the_8000th_character_is_found(make: Make) -> None:
    for before in (7_990, 7_995, 7_999):
        vault = make(U("a " * (before // 2) + f"quartzite{before} end"))
        assert len(vault.hits(f"quartzite{before}")) == 1


def test_S053_a_phrase_in_a_long_message(make: Make) -> None:
    vault = make(U("x " * 3_998 + "basalt column stands"))
    assert vault.route('"basalt column"')[2] == 1


@pytest.mark.parametrize("query", ["café", "cafe", "cafe\u0301", "CAFÉ"])
def test_S054_accents_and_their_spelling_do_not_count(make: Make, query: str) -> None:
    assert len(make(U("meet at the café"), U("cafe\u0301 again"), U("the cafe")).hits(query)) == 3


@pytest.mark.parametrize("word", ["C", "R", "x"])
def test_S055_one_letter_is_a_word(make: Make, word: str) -> None:
    assert len(make(U(f"written in {word} today")).hits(word)) == 1


@pytest.mark.parametrize("query", ["안녕하세요", "안녕", "하세요"])
@pytest.mark.parametrize("scope", ["all", "conversation"])
def test_S056_B70_any_part_of_a_run_without_spaces(make: Make, query: str, scope: str) -> None:
    [hit] = make(U("그는 안녕하세요 라고 말했다"), U("hello")).hits(query, scope=scope)
    assert "[[" in hit["evidence"]["snippet"]


def test_S057_a_full_stop_belongs_to_no_word(make: Make) -> None:
    vault = make(U("it failed at restart."))
    assert len(vault.hits("restart", scope="conversation")) == 1


def test_S058_a_number_sign_belongs_to_no_number(make: Make) -> None:
    vault = make(U("see #123 for more"))
    assert len(vault.hits("#123")) == len(vault.hits("123")) == 1


def test_titles_are_searched_and_alone_give_no_evidence(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    named = vault.add(U("please look at this"), title="Quarterly ledger review")
    vault.index()
    [hit] = vault.hits("ledger")
    assert (hit["sessionId"], hit["title"], hit["evidence"]) == (named, "Quarterly ledger review", None)
    assert vault.hits("ledger", scope="conversation") == []
    vault.close()


def test_words_spread_over_a_session_are_found_together(make: Make) -> None:
    vault = make((U("rotate the certificate"), A("done"), U("now the gateway")), U("the gateway alone"))
    assert vault.route('"certificate gateway"') == ("and", None, 1)
    assert len(vault.hits("certificate gateway")) == 2
    [first, _] = vault.hits("certificate gateway", scope="conversation")
    assert first["messageCount"] == 3


def test_a_literal_phrase_in_tool_text_is_told_from_its_words(make: Make) -> None:
    vault = make(T("error in parse stage then"), T("stage error in a parse"))
    assert vault.route('"parse stage"') == ("phrase", None, 1)
