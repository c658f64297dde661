"""Snippets: at most 320 characters around the match, honest about the rest."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from outcrop.search.snippet import LENGTH, Words, fold, places, snippet

LONG = "lorem ipsum dolor sit amet " * 100


def test_a_short_text_is_shown_whole() -> None:
    assert snippet("  a beacon\n\tis lit ", Words(["beacon"])) == ("a beacon is lit", False)


def test_C084_C093_the_match_is_inside_wherever_it_is() -> None:
    for before in (0, 1, 10, 99, 100):
        text = "lorem ipsum dolor sit amet " * before + "zephyr" + " lorem ipsum dolor sit amet" * (100 - before)
        shown, more = snippet(text, Words(["zephyr"]))
        assert more
        assert "zephyr" in shown
        assert len(shown) <= LENGTH


def test_the_window_with_most_words_wins_and_a_phrase_before_all() -> None:
    text = f"beacon {LONG} beacon and timeout {LONG} beacon timeout {LONG}"
    assert "beacon and timeout" in snippet(text, Words(["beacon", "timeout"]))[0]
    assert "beacon timeout" in snippet(text, Words(["beacon", "timeout"]), [("beacon", "timeout")])[0]


def test_accents_and_capitals_do_not_hide_the_match() -> None:
    assert "NAÏVE" in snippet(f"{LONG}É NAÏVE ﬁ İstanbul {LONG}", Words(["naive"]))[0]


def test_no_match_shows_the_beginning() -> None:
    assert snippet(f"begin {LONG}", Words(["zephyr"]))[0].startswith("begin")


@given(st.text(max_size=1500), st.lists(st.text(max_size=8), max_size=4))
def test_any_text_keeps_the_bounds(text: str, words: list[str]) -> None:
    assert len(fold(text)) == len(text)
    shown, more = snippet(text, Words(words), [tuple(words)] if len(words) > 1 else [])
    assert len(shown) <= LENGTH
    assert more == (len(text.strip()) > LENGTH)


@settings(deadline=None, max_examples=50)
@given(st.text("abc .\n", max_size=300), st.lists(st.text("abc", min_size=1, max_size=4), max_size=6), st.booleans())
def test_matches_are_those_of_a_pattern_of_all_words(text: str, words: list[str], long: bool) -> None:
    text = text * (300 if long else 1)  # more than is gathered at once
    pattern = "|".join(sorted(set(words), key=len, reverse=True)) or r"(?!)"
    assert list(places(text, Words(words))) == [
        (
            found.start(),
            found.end(),
            found[0] if found.start() == 0 or not text[found.start() - 1].isalnum() else "",
        )
        for found in re.finditer(pattern, text)
    ]


@given(st.text(st.characters(codec="utf-8"), max_size=60))
@example("ΟΔΟΣ ΑΣ Ϲ İstanbul")
def test_folding_a_text_is_folding_its_characters(text: str) -> None:
    assert fold(text) == "".join(fold(character) for character in text)
    assert fold(fold(text)) == fold(text)
