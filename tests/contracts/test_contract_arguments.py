"""Reading arguments: the checks that no store takes part in, and their messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.contracts import mcp_v1, moments
from outcrop.contracts.catalog import Catalog
from outcrop.contracts.mcp_v1 import list_sessions, open, search_sessions
from outcrop.contracts.mcp_v1.envelope import Context
from outcrop.errors import InvalidRequest, OutcropError


class NoStore:
    """Stands where a store would: a check that reaches for it is a fault."""

    def snapshot(self, cancelled: object = None, project: object = None) -> Any:
        raise AssertionError("arguments are checked before any store is opened")

    def close(self) -> None:
        pass


CONTEXT = Context(NoStore(), Catalog({"codex": "Codex"}, ("codex",)), max_results=25)
EVENT = "event:evt_00000000000000000000000001"
SESSION = "session:ses_00000000000000000000000001"
TIMES = {"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"}


def refused(tool: str, given: Any) -> dict[str, Any]:
    envelope = mcp_v1.call(tool, given, CONTEXT)
    assert envelope["request"] == given
    return envelope["error"]


@pytest.mark.parametrize(
    ("given", "code", "field", "message"),
    [
        ({"query": "   "}, "invalid_request", "query", "query must be a non-empty string"),  # C039
        ({}, "invalid_request", "query", None),  # C040
        ({"query": 5}, "invalid_request", "query", None),  # C041
        ({"query": None}, "invalid_request", "query", None),
        ({"query": []}, "invalid_request", "query", None),
        ({"query": "x" * 4097}, "invalid_request", "query", "query must be at most 4096 characters"),  # C042
        ({"query": "a", "event_types": []}, "invalid_request", "event_types", None),  # C047
        ({"query": "a", "event_types": "user_input"}, "invalid_request", "event_types", None),  # C052
        ({"query": "a", "event_types": [1]}, "invalid_request", "event_types", None),
        *[
            ({"query": "a", "n_hits": hits}, "invalid_request", "n_hits", None)  # C053 to C055
            for hits in (0, -1, 51, 2.5, "3", True, 2.0)
        ],
        (
            {"query": "a", "harness": " "},
            "invalid_request",
            "harness",
            "harness must be a non-empty string when provided",
        ),
        ({"query": "a", "source": ""}, "invalid_request", "source", None),  # C058
        (
            {"query": "a", "within_id": EVENT},
            "invalid_request",
            "within_id",
            "within_id accepts session and turn IDs, not event IDs",  # C061
        ),
        ({"query": "a", "within_id": "nope"}, "invalid_id", "within_id", "id is not a valid Moraine MCP ID"),  # C062
        ({"query": "a", "within_id": ""}, "invalid_id", "within_id", None),
        ({"query": "a", "foo": 1}, "invalid_request", "foo", None),  # C064
        ({"query": "\ud800"}, "invalid_request", "query", "query must be valid Unicode text"),
    ],
)
def test_C039_to_C064_search_arguments_at_fault(given: Any, code: str, field: str, message: str | None) -> None:
    error = refused("search_sessions", given)
    assert error["code"] == code
    assert error["details"]["field"] == field
    assert message in (None, error["message"])


@pytest.mark.parametrize("name", ["debug_trace", "unknown", "USER_INPUT", " user_input"])
def test_C048_C049_C050_event_types_that_cannot_be_searched(name: str) -> None:
    error = refused("search_sessions", {"query": "migration", "event_types": ["user_input", name]})
    assert error["code"] == "unsupported_event_type"
    assert error["message"] == f"unsupported event type: {name}"
    assert error["details"]["supported"] == [
        "user_input",
        "assistant_response",
        "reasoning",
        "tool_call",
        "tool_response",
        "compaction",
        "system",
        "runtime",
    ]


@pytest.mark.parametrize("query", ["x" * 4096, "日" * 4096, "  " + "x" * 4096 + "\n"])
def test_C042_C043_the_longest_query_counts_characters_after_trimming(query: str) -> None:
    assert search_sessions.parse({"query": query}, CONTEXT).query == query.strip()


def test_C044_C045_C046_C051_canonical_search_request() -> None:
    defaults = {
        "query": "beacon",
        "within_id": None,
        "event_types": ["user_input", "assistant_response"],
        "harness": None,
        "source": None,
        "n_hits": 10,
    }
    assert search_sessions.parse({"query": "  beacon "}, CONTEXT).canonical() == defaults
    nulls = dict.fromkeys(defaults) | {"query": "beacon"}
    assert search_sessions.parse(nulls, CONTEXT).canonical() == defaults
    mixed = {"query": "beacon", "event_types": ["tool_response", "user_input", "tool_response"]}
    assert search_sessions.parse(mixed, CONTEXT).canonical()["event_types"] == ["user_input", "tool_response"]


def test_C065_the_first_fault_in_order_is_told() -> None:
    two = {"query": "a", "n_hits": 99, "event_types": []}
    assert {refused("search_sessions", two)["details"]["field"] for _ in range(5)} == {"event_types"}
    assert refused("search_sessions", {"query": "", "x": 1, "n_hits": 99})["details"]["field"] == "x"


@pytest.mark.parametrize("tool", list(mcp_v1.TOOLS))
@pytest.mark.parametrize("given", [None, [], ["x"], "x", 5])
def test_C021_C022_arguments_that_are_no_object(tool: str, given: Any) -> None:
    assert refused(tool, given)["code"] == "invalid_request"


def test_C011_an_unknown_tool_is_an_invalid_request_that_names_it() -> None:
    error = refused("nope", {"a": 1})
    assert error["code"] == "invalid_request"
    assert "nope" in error["message"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"start_datetime": None}, "start_datetime"),  # C103
        ({"end_datetime": None}, "end_datetime"),
        ({"start_datetime": "2026-05-01T00:00:00"}, "start_datetime"),  # C104
        ({"start_datetime": "yesterday"}, "start_datetime"),  # C105
        ({"start_datetime": " "}, "start_datetime"),
        ({"end_datetime": TIMES["start_datetime"]}, "end_datetime"),  # C106
        ({"end_datetime": "2026-04-30T00:00:00Z"}, "end_datetime"),
        ({"start_datetime": "2026-05-01"}, "start_datetime"),  # C107
        *[({"limit": limit}, "limit") for limit in (0, 26, 1.5, "2", True)],  # C109
        ({"cursor": ""}, "cursor"),  # C115
        ({"cursor": "x" * 10_000}, "cursor"),
        ({"mode": "x"}, "mode"),  # C117
        ({"sort": "up"}, "sort"),
        ({"foo": 1}, "foo"),  # C118
        ({"harness": " "}, "harness"),  # C119
        ({"source": ""}, "source"),
    ],
)
def test_C103_to_C119_list_arguments_at_fault(changes: dict[str, Any], field: str) -> None:
    error = refused("list_sessions", {**TIMES, **changes})
    assert (error["code"], error["details"]["field"]) == ("invalid_request", field)


def test_limits_are_checked_before_datetimes() -> None:
    assert refused("list_sessions", {"limit": 0})["message"] == "limit must be between 1 and 25"


def test_canonical_list_request_has_every_key() -> None:
    request = list_sessions.parse({**TIMES, "start_datetime": " 2026-05-01T00:00:00+02:00 "}, CONTEXT)
    assert request.canonical() == {
        "start_datetime": "2026-05-01T00:00:00+02:00",
        "end_datetime": TIMES["end_datetime"],
        "mode": None,
        "harness": None,
        "source": None,
        "sort": "desc",
        "limit": 20,
        "cursor": None,
    }


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({}, "invalid_request", "id"),  # C162
        ({"id": ""}, "invalid_request", "id"),
        ({"id": "  "}, "invalid_request", "id"),
        ({"id": None}, "invalid_request", "id"),
        ({"limit": 2}, "invalid_request", "id"),  # C163
        ({"id": EVENT, "limit": 2}, "invalid_request", "limit"),  # C164
        ({"id": SESSION, "limit": 0}, "invalid_request", "limit"),  # C165
        ({"id": SESSION, "limit": 26}, "invalid_request", "limit"),
        ({"id": SESSION, "cursor": "x"}, "invalid_request", "cursor"),  # C166
        ({"limit": 2, "cursor": "x"}, "invalid_request", "cursor"),
        ({"id": SESSION, "x": 1}, "invalid_request", "x"),  # C167
        ({"id": 5}, "invalid_request", "id"),  # C168
        ({"cursor": "x" * 4097}, "invalid_request", "cursor"),  # C172
        ({"cursor": " "}, "invalid_request", "cursor"),
        ({"id": "not-a-valid-id"}, "invalid_id", "id"),  # C030
        ({"id": " " + SESSION}, "invalid_id", "id"),  # C033
    ],
)
def test_C162_to_C172_open_arguments_at_fault(given: Any, code: str, field: str) -> None:
    error = refused("open", given)
    assert (error["code"], error["details"]["field"]) == (code, field)


def test_open_echoes_just_what_was_given() -> None:
    assert open.parse({"id": SESSION, "limit": None, "cursor": None}, CONTEXT).canonical() == {"id": SESSION}
    assert open.parse({"id": SESSION, "limit": 3}, CONTEXT).canonical() == {"id": SESSION, "limit": 3}
    assert open.parse({"cursor": "x"}, CONTEXT).canonical() == {"cursor": "x"}


@given(
    st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
)
def test_an_instant_is_its_utc_milliseconds_whatever_its_offset(moment: datetime, minutes: int) -> None:
    there = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    _, found = moments.instant("start_datetime", there.isoformat())
    assert found == (moment - datetime(1970, 1, 1)) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2026-05-01t10:00:00z", "2026-05-01T10:00:00Z"),  # C108
        ("2026-05-01 10:00:00Z", "2026-05-01T10:00:00Z"),
        ("2026-05-01T10:00Z", "2026-05-01T10:00:00Z"),
        ("2026-05-01T10:00:00.1239999Z", "2026-05-01T10:00:00.123Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),  # C129
        ("9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59-14:00"),
    ],
)
def test_C108_C129_spellings_of_an_instant(text: str, same_as: str) -> None:
    assert moments.instant("x", text)[1] == moments.instant("x", same_as)[1]


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30T00:00:00Z",
        "2026-05-01T24:00:00Z",
        "2026-05-01T00:60:00Z",
        "2026-05-01T00:00:61Z",
        "2026-05-01T00:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "２０２６-05-01T00:00:00Z",
        "2026-05-01T00:00:00Zz",
        "20260501T000000Z",
    ],
)
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(InvalidRequest, match="RFC 3339"):
        moments.instant("end_datetime", text)


likely = st.sampled_from([SESSION, "desc", "chat", *TIMES.values(), ["reasoning"], 1, 25])
json_values = likely | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["query", "id", "limit", "cursor", "n_hits", "event_types", "within_id", "start_datetime", "sort", "path", "tool"]
)


@given(st.sampled_from(list(mcp_v1.TOOLS)), st.dictionaries(names, json_values, max_size=4))
def test_any_arguments_are_either_read_or_refused_with_an_envelope(tool: str, given: dict[str, Any]) -> None:
    begun = mcp_v1.begin(tool, given, CONTEXT, 0.0)
    if begun.rejected is None:
        assert begun.parsed.canonical() == begun.request
        jsonschema.validate(given, mcp_v1.TOOLS[tool].input_schema(CONTEXT))
    else:
        assert begun.rejected["error"]["code"] in ("invalid_request", "invalid_id", "unsupported_event_type")


def test_a_refused_call_echoes_its_canonical_request() -> None:
    begun = mcp_v1.begin("search_sessions", {"query": " a "}, CONTEXT, 0.0)
    envelope = begun.refuse(OutcropError("full", {"reason": "queue_full"}))
    assert envelope["request"]["query"] == "a"
    assert envelope["error"]["details"] == {"reason": "queue_full"}
