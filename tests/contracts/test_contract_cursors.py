"""Cursors: what is written is read, and whatever else comes is refused with a word on how to go on."""

from __future__ import annotations

import string
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.contracts.mcp_v1 import cursors
from outcrop.contracts.mcp_v1.arguments import MAX_CURSOR
from outcrop.contracts.mcp_v1.cursors import ListCursor, OpenCursor
from outcrop.errors import InvalidRequest

EPOCH = "0f" * 16
BIG = 2**63 - 1
numbers = st.integers(0, BIG)
open_cursors = st.builds(
    OpenCursor, st.from_regex(r"turn:turn_[0-9A-Z]{26}", fullmatch=True), numbers, numbers, numbers, numbers
)
signatures = st.builds(
    cursors.filter_signature,
    numbers,
    numbers,
    st.none() | st.just("chat"),
    st.none() | st.text(),
    st.none() | st.text(),
)
list_cursors = st.builds(
    ListCursor,
    signatures,
    st.sampled_from(["desc", "asc"]),
    st.integers(-BIG, BIG),
    st.binary(min_size=16, max_size=16),
    numbers,
    numbers,
)
ALPHABET = string.ascii_letters + string.digits + "-_=+/ é\0"


@given(open_cursors, list_cursors)
def test_a_cursor_comes_back_as_it_was(one: OpenCursor, other: ListCursor) -> None:
    for text, back in (
        (cursors.write_open(one, EPOCH), cursors.read_open(cursors.write_open(one, EPOCH), EPOCH) == one),
        (cursors.write_list(other, EPOCH), cursors.read_list(cursors.write_list(other, EPOCH), EPOCH) == other),
    ):
        assert back
        assert len(text) <= MAX_CURSOR
        assert text.startswith("A")
        assert set(text) <= set(string.ascii_letters + string.digits + "-_")


@given(open_cursors, st.data())
def test_C169_no_character_can_change_unseen(cursor: OpenCursor, data: st.DataObject) -> None:
    text = cursors.write_open(cursor, EPOCH)
    place = data.draw(st.integers(0, len(text) - 1))
    char = data.draw(st.sampled_from(ALPHABET))
    for changed in (
        text[:place] + char + text[place + 1 :],
        text[:place],
        text + char,
        text[:place] + text[place + 1 :],
    ):
        if changed != text:
            with pytest.raises(InvalidRequest, match="open the typed id again"):
                cursors.read_open(changed, EPOCH)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda noise: urlsafe_b64encode(noise).decode()))
def test_C115_noise_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        cursors.read_open(text, EPOCH)
    with pytest.raises(InvalidRequest, match="start the listing again"):
        cursors.read_list(text, EPOCH)


@given(open_cursors, list_cursors)
def test_another_tools_cursor_and_another_stores_cursor_are_refused(one: OpenCursor, other: ListCursor) -> None:
    with pytest.raises(InvalidRequest):
        cursors.read_list(cursors.write_open(one, EPOCH), EPOCH)
    with pytest.raises(InvalidRequest):
        cursors.read_open(cursors.write_list(other, EPOCH), EPOCH)
    with pytest.raises(InvalidRequest, match="stale"):
        cursors.read_open(cursors.write_open(one, "1f" * 16), EPOCH)
    with pytest.raises(InvalidRequest, match="stale"):
        cursors.read_list(cursors.write_list(other, "1f" * 16), EPOCH)
