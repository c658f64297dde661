"""JSON lines as they are really written: cut anywhere, framed anyhow, broken in every way."""

from __future__ import annotations

import io
import json
import random
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.harnesses import jsonl

MARGINS = st.text("\r\t \0\ufeff", max_size=4).map(str.encode)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(-1e9, 1e9)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
RECORDS = st.dictionaries(st.text(), VALUES, max_size=4)
TYPED = RECORDS.map(lambda record: {"type": "user", **record})


class Dribble(io.BytesIO):
    """A stream that hands out pieces of random sizes, as pipes and network file systems do."""

    def __init__(self, data: bytes, seed: int) -> None:
        super().__init__(data)
        self._sizes = random.Random(seed)

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._sizes.randint(1, 7))


def everything(data: bytes) -> list[dict[str, Any]]:
    """All records of a stream, in order."""
    return [record for line in jsonl.lines(io.BytesIO(data), 0) for record in jsonl.records(line.data)[0]]


def dumped(record: dict[str, Any], plain: bool) -> bytes:
    return json.dumps(record, ensure_ascii=not plain).encode("utf-8", "surrogatepass")


@given(st.binary(max_size=300))
def test_any_bytes_are_lines_and_never_raise(data: bytes) -> None:
    end = 0
    for line in jsonl.lines(io.BytesIO(data), 0):
        assert line.offset == end
        end = line.end
        found, _ = jsonl.records(line.data)
        orjson.dumps(found)
        jsonl.whole(line.data)
    assert end == len(data)


@given(
    st.lists(st.sampled_from([b'{"type"', b":", b'"a"', b"{", b"}", b"[", b"]", b"\\", b'"', b"1e999", b"NaN", b","]))
)
def test_any_shape_of_json_never_raises(pieces: list[bytes]) -> None:
    found, faults = jsonl.records(b"".join(pieces))
    orjson.dumps(found)
    assert found or faults or not pieces


@given(st.lists(st.tuples(RECORDS, MARGINS, MARGINS, st.booleans(), st.booleans())), st.booleans())
def test_objects_come_back_whole_whatever_stands_around_them(parts: list[Any], ended: bool) -> None:
    data = b""
    for record, before, after, glued, plain in parts:
        data += before + dumped(record, plain) + after + (b"" if glued else b"\n")
    if ended:
        data += b"\n"
    found = everything(data)
    assert found == [record for record, *_ in parts]
    for line in jsonl.lines(io.BytesIO(data), 0):
        assert jsonl.records(line.data)[1] == []


@given(st.lists(st.binary(max_size=20) | RECORDS.map(lambda r: dumped(r, True) + b"\n")), st.integers())
def test_cutting_the_stream_anywhere_changes_nothing(pieces: list[bytes], seed: int) -> None:
    data = b"".join(pieces)
    assert list(jsonl.lines(Dribble(data, seed), 0)) == list(jsonl.lines(io.BytesIO(data), 0))


@given(TYPED, st.lists(TYPED, min_size=1, max_size=3), st.data())
def test_whole_records_behind_a_torn_one_are_found(torn: dict[str, Any], rest: list[Any], data: st.DataObject) -> None:
    text = dumped({"key": torn}, False)
    cut = data.draw(st.integers(1, len(text) - 1))
    found, faults = jsonl.records(text[:cut] + b"".join(dumped(record, False) for record in rest))
    assert found[-1:] == rest[-1:] or found == []
    assert faults or found[0] != rest[0]


def test_a_torn_record_with_whole_ones_behind_it() -> None:
    torn = b'{"type":"user","parts":[{"n":1},{"n":2},{"text":"half a wo'
    found, faults = jsonl.records(torn + b'{"type":"user","n":[{"a":1}]}\0\0{"uuid":"x"}\n')
    assert found == [{"type": "user", "n": [{"a": 1}]}, {"uuid": "x"}]
    assert [fault.reason for fault in faults] == ["not JSON"]
    assert faults[0].sample.startswith('{"type":"user","parts"')


@pytest.mark.parametrize(
    ("line", "records", "reasons"),
    [
        (b"", [], []),
        (b"\r\n", [], []),
        (b"null\n", [], []),
        (b"12\n", [], ["not an object"]),
        (b"[1, {}]\n", [], ["not an object"]),
        (b'"text"\n', [], ["not an object"]),
        (b'{"a": 1} 2 {"b": 3} null\n', [{"a": 1}, {"b": 3}], ["not an object"]),
        (b"\xef\xbb\xbf\0 \xef\xbb\xbf{}\r\n", [{}], []),
        (b'{"a": NaN, "b": -Infinity}\n', [{"a": "NaN", "b": "-Infinity"}], []),
        (b'{"a": 123456789012345678901234567890}\n', [{"a": 1.2345678901234568e29}], []),
        (b'{"a": "\xff\xfe"}\n', [{"a": "\ufffd\ufffd"}], []),
        (
            b'{"a": "\\ud800 \\udc00\\ud83d\\ude00", "\\udfff": 1}\n',
            [{"a": "\ufffd \ufffd\U0001f600", "\ufffd": 1}],
            [],
        ),
        ('{"a": "\u2028\u2029\x85"}\n'.encode(), [{"a": "\u2028\u2029\x85"}], []),
        (b'{"a": "\x0b\x0c\x1c\x01"}\n', [{"a": "\x0b\x0c\x1c\x01"}], []),
        (b'{"a": "\0"}\n', [{"a": "\0"}], []),
        (b'{"a": \n', [], ["not JSON"]),
        (b"{'a': 1}\n", [], ["not JSON"]),
    ],
)
def test_T9_T10_what_a_line_holds(line: bytes, records: list[Any], reasons: list[str]) -> None:
    found, faults = jsonl.records(line)
    assert found == records
    assert [fault.reason for fault in faults] == reasons


@pytest.mark.parametrize("depth", [jsonl.DEPTH, jsonl.DEPTH + 1, 300, 1000, 2000, 200_000])
@pytest.mark.parametrize("spoiled", [b"", b"\0"])
def test_nesting_is_read_to_a_limit_that_can_be_stored(depth: int, spoiled: bytes) -> None:
    line = b'{"a":' * depth + b"1" + b"}" * depth
    found, faults = jsonl.records(line + spoiled)
    assert [fault.reason for fault in faults] == ["nested too deeply"] * (depth > jsonl.DEPTH)
    assert len(found) == (depth <= jsonl.DEPTH)
    orjson.dumps(found)
    lists = b"[" * depth + b"]" * depth
    assert [fault.reason for fault in jsonl.records(lists + spoiled)[1]] != []
    if depth > jsonl.DEPTH:
        with pytest.raises(ValueError, match="deep"):
            jsonl.document(line + spoiled)


def test_many_brackets_are_not_deep() -> None:
    record = {"edits": [{"line": [n]} for n in range(5000)]}
    assert jsonl.records(orjson.dumps(record)) == ([record], [])
    assert jsonl.document(orjson.dumps(record)) == record


def test_a_hostile_line_costs_time_in_proportion_to_its_length() -> None:
    """The time of four times the input is held against the time of the input, within one run."""

    def cost(pattern: bytes, count: int) -> float:
        started = time.process_time()
        jsonl.records(b'{"a":x' + pattern * count + b"!")
        return time.process_time() - started

    for pattern in (b'{"', b'{"type":1}', b'{"type":[', b'{"type":"', b'{"a":{"type":1},'):
        assert cost(pattern, 160_000) < 16 * cost(pattern, 40_000) + 0.5


def test_T8_a_line_past_the_limit_is_passed_over() -> None:
    long = b'{"type":"' + b"x" * (jsonl.RECORD_LIMIT + jsonl.CHUNK) + b'"}\n'
    data = b'{"n":1}\n' + long + b'{"n":2}\n'
    first, stub, last = jsonl.lines(io.BytesIO(data), 0)
    assert (first.data, last.data) == (b'{"n":1}\n', b'{"n":2}\n')
    assert (stub.oversize, stub.ended, stub.size, stub.data) == (True, True, len(long), long[: jsonl.STUB])
    assert last.offset == 8 + len(long)
    (unended,) = jsonl.lines(io.BytesIO(long[:-1]), 0)
    assert (unended.oversize, unended.ended, unended.end) == (True, False, len(long) - 1)


@pytest.mark.parametrize("size", [0, -1, 1])
def test_the_limit_is_exact_however_the_line_arrives(size: int) -> None:
    line = b'{"a":"' + b"x" * (jsonl.RECORD_LIMIT - 9 + size) + b'"}\n'
    for data in (line, b"\n" + line):
        assert list(jsonl.lines(io.BytesIO(data), 0))[-1].oversize is (size > 0)


def test_NUL_padding_of_any_size_hides_no_record() -> None:
    holes = b"\0" * (jsonl.RECORD_LIMIT + 5)
    data = b'{"n":1}\n' + holes + b'{"n":2}\n' + holes
    first, second, rest = jsonl.lines(io.BytesIO(data), 0)
    assert (first.data, second.data, second.oversize) == (b'{"n":1}\n', b'{"n":2}\n', False)
    assert second.offset == 8
    assert (rest.data, rest.ended, rest.oversize, rest.end) == (b"", False, False, len(data))
