"""Times in every spelling that programs use, and what is no time."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.harnesses.moments import clock_ms, epoch_ms, iso_ms, local_ms, number_ms, time_ms, written_ms

MOMENT = 1793610901120


def test_an_iso_time_needs_a_zone_unless_one_is_given() -> None:
    assert iso_ms("2026-11-02T09:15:01.120Z") == iso_ms("2026-11-02T10:15:01.120+01:00") == MOMENT
    assert iso_ms("2026-11-02T09:15:01.120") is None
    assert iso_ms("2026-11-02T09:15:01.120", UTC) == MOMENT
    assert iso_ms("2026-11-02T10:15:01.120", timezone(timedelta(hours=1))) == MOMENT
    assert iso_ms("2026-11-02T09:15:01.120Z", timezone(timedelta(hours=1))) == MOMENT


def test_a_fraction_of_a_millisecond_is_rounded_or_cut() -> None:
    assert iso_ms("2026-11-02T09:15:01.1206Z") == MOMENT + 1
    assert iso_ms("2026-11-02T09:15:01.1206Z", whole=int) == MOMENT
    assert (number_ms(MOMENT + 0.75), number_ms(MOMENT + 0.75, int)) == (MOMENT + 1, MOMENT)


def test_small_numbers_are_seconds() -> None:
    assert number_ms(1793610901) == number_ms(1793610901000) == 1793610901000
    assert time_ms(1793610901.12) == time_ms("2026-11-02T09:15:01.12") == MOMENT
    assert (epoch_ms(MOMENT), epoch_ms(1793610901), epoch_ms(str(MOMENT))) == (MOMENT, None, None)
    assert (written_ms(MOMENT), written_ms(str(MOMENT)), written_ms("1793610901")) == (MOMENT, MOMENT, None)


def test_times_without_a_zone_are_of_this_machine_where_that_is_meant() -> None:
    assert local_ms("2026-11-02T09:15:01") == clock_ms("2026-11-02T09-15-01", "%Y-%m-%dT%H-%M-%S")
    assert local_ms("2026-11-02T09:15:01.120Z") == MOMENT
    assert clock_ms("yesterday", "%Y") is None


@pytest.mark.parametrize("value", [None, True, "", "soon", 0, -5, 1e14, float("nan"), float("inf"), [], {}])
def test_what_says_no_time_is_none(value: Any) -> None:
    for read in (iso_ms, local_ms, number_ms, time_ms, epoch_ms, written_ms):
        assert read(value) is None


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes().map(str))
def test_nothing_is_an_error(value: Any) -> None:
    for read in (iso_ms, local_ms, number_ms, time_ms, epoch_ms, written_ms):
        moment = read(value)
        assert moment is None or type(moment) is int
