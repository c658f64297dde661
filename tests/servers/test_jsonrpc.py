"""Lines, messages and admission, without a process."""

from __future__ import annotations

import json
import threading
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.servers.jsonrpc import Message, RpcError, Slots, error_frame, parse, result_frame
from outcrop.servers.stdio import Lines

LIMIT = 20
streams = st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b" ", b"0123456789", b"{}", b"\xff"]), max_size=30).map(
    b"".join
)


def expected(stream: bytes) -> list[bytes | None]:
    found: list[bytes | None] = []
    for line in stream.split(b"\n"):
        if len(line) > LIMIT:
            found.append(None)
        elif line.strip(b" \t\r"):
            found.append(line.strip(b" \t\r"))
    return found


@given(streams, st.lists(st.integers(0, 200)))
def test_lines_do_not_depend_on_how_the_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    lines = Lines(LIMIT)
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    found = [line for a, b in pairwise(places) for line in lines.feed(stream[a:b])]
    assert [*found, *lines.finish()] == expected(stream)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def answered(frame: bytes) -> None:
    """A frame is a message, or its error can be sent."""
    try:
        assert isinstance(parse(frame), Message | None)
    except RpcError as error:
        told = json.loads(error_frame(error))
        assert told["error"]["code"] in (-32700, -32600, -32602)


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_any_frame_is_a_message_or_an_error_that_can_be_sent(frame: bytes) -> None:
    answered(frame)


@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result"]), values | st.just("2.0")))
def test_any_object_is_a_message_or_an_error_that_can_be_sent(value: dict[str, object]) -> None:
    answered(json.dumps(value).encode())


@given(st.text(st.characters(categories=("Cs", "Zl", "Zp", "Cc", "Lo", "So"))))
def test_a_frame_is_one_line_of_utf8(text: str) -> None:
    frame = result_frame(text, {"text": text})
    assert b"\n" not in frame
    assert json.loads(frame.decode()) == {"jsonrpc": "2.0", "id": text, "result": {"text": text}}


@pytest.mark.parametrize(("running", "waiting"), [(1, 0), (1, 4), (4, 2)])
def test_slots_take_so_many_jobs_and_run_every_one(running: int, waiting: int) -> None:
    slots, gate, ran = Slots(running, waiting), threading.Event(), []

    def job() -> None:
        gate.wait()
        ran.append(1)

    taken = [slots.submit(job) for _ in range(running + waiting + 2)]
    assert taken == [True] * (running + waiting) + [False] * 2
    assert not slots.idle()
    gate.set()
    assert slots.close(10)
    assert slots.idle()
    assert len(ran) == running + waiting


def test_waiting_jobs_run_in_order() -> None:
    slots, order = Slots(1, 9), []
    assert all(slots.submit(partial(order.append, number)) for number in range(10))
    assert slots.close(10)
    assert order == list(range(10))


def test_a_withdrawn_job_frees_its_place_and_never_runs() -> None:
    slots, gate, ran = Slots(1, 1), threading.Event(), []
    started = threading.Event()

    def hold() -> None:
        started.set()
        gate.wait()

    def waiting() -> None:
        ran.append(1)

    slots.submit(hold)
    started.wait()
    assert slots.submit(waiting)
    assert not slots.submit(waiting)
    slots.withdraw(waiting)
    assert slots.submit(lambda: ran.append(2))
    gate.set()
    assert slots.close(10)
    assert ran == [2]


@pytest.mark.parametrize("frame", [b'{"result":{},"id":1}', b'{"jsonrpc":"2.0","error":{},"id":null}'])
def test_responses_are_no_messages(frame: bytes) -> None:
    assert parse(frame) is None
