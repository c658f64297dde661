"""The evidence of a session hit: where its piece of the text begins and ends."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from outcrop.search.marks import WORDS, Looked, _window, marked
from outcrop.search.texts import stands, stands_in
from outcrop.store.embedded import analysis


@given(st.text("ab \n.", max_size=300), st.data())
def test_a_piece_is_some_words_before_the_match_and_twelve_in_all(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, max(0, len(text) - 1)))
    begin = place
    while begin > 0 and not text[begin - 1].isspace() and place - begin < 40:
        begin -= 1
    back = max(0, begin - 120)
    earlier = [match.start() for match in re.finditer(r"\S+", text[back:begin])][1 if back else 0 :]
    if earlier and (begin == 0 or text[begin - 1].isspace()):
        begin = back + earlier[-3:][0]
    words = list(re.finditer(r"\S+", text[begin:]))[:WORDS]
    end = begin + (words[-1].end() if words else 0)
    assert _window(text, [(place, place + 1)]) == (begin, end, False)


def test_many_blanks_take_no_longer() -> None:
    text = ("a" + " " * 200) * 2000 + "beacon"
    assert marked(text, Looked(("beacon",)))[0].endswith("[[beacon]]")


@given(
    st.text(st.characters(codec="ascii"), max_size=200), st.lists(st.text("ab1", min_size=1, max_size=2), min_size=1)
)
@example("a_b, A--b", ["a", "b"])
@example("ab", ["a", "b"])
@example("\x1ca\x00b\x7f", ["a", "b"])
def test_words_of_ascii_stand_as_the_analyzer_has_them(text: str, phrase: list[str]) -> None:
    assert stands(phrase, text) == stands_in(phrase, analysis.exact().analyze(text))


def test_words_of_other_texts_stand_as_the_index_has_them() -> None:
    assert stands(["naive", "cafe"], "Naïve—café!")
    assert stands(["strasse", "a"], "Straße a")
    assert not stands(["naive", "cafe"], "naïve, the café")
    for text in (f"curl {'A' * 300} failed", f"cürl {'A' * 300} failed", f"curl {'A' * 256} failed"):
        assert stands(["curl", "failed"], text) is (len(text) > 268)  # words too long for the index are passed over
