"""Checkpoints: whether a file is still the one that was read, for every way in which files change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.ingest import checkpoints
from outcrop.ingest.checkpoints import HEAD, TAIL, Verdict
from outcrop.store.embedded.write import FileRow

VERSION = 3


def read_up_to(path: Path, offset: int, version: int = VERSION) -> FileRow:
    """The row of a file that was read up to an offset."""
    row = FileRow(1, str(path), "claude-code", "claude", "jsonl", "transcript", None, None)
    with open(path, "rb") as stream:
        checkpoints.mark(row, stream, offset, 1)
        checkpoints.identify(row, os.fstat(stream.fileno()))
    row.adapter_version = version
    return row


def verdict(row: FileRow, path: Path, version: int = VERSION) -> tuple[Verdict, int]:
    """The verdict, and where the stream stands."""
    with open(path, "rb") as stream:
        return checkpoints.judge(row, os.fstat(stream.fileno()), stream, version), stream.tell()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b'{"n":%d}\n' % n for n in range(100)))
    return path


def test_a_file_that_was_never_read_is_read_from_its_beginning(file: Path) -> None:
    row = FileRow(0, str(file), "claude-code", "claude", "jsonl", "transcript", None, None)
    assert verdict(row, file) == (Verdict.GROWN, 0)


def test_T1_only_what_is_behind_the_offset_is_new(file: Path) -> None:
    data = file.read_bytes()
    row = read_up_to(file, len(data))
    assert verdict(row, file) == (Verdict.SAME, len(data))
    file.write_bytes(data + b'{"half')
    assert verdict(row, file) == (Verdict.GROWN, len(data))


def test_T5_another_inode_with_the_same_beginning_has_grown(file: Path) -> None:
    data = file.read_bytes()
    row = read_up_to(file, len(data))
    other = file.with_name("new")
    other.write_bytes(data + b"{}\n")
    other.rename(file)
    assert verdict(row, file) == (Verdict.GROWN, len(data))


@pytest.mark.parametrize("offset", [1, 10, HEAD - 1, HEAD, HEAD + 1, HEAD + TAIL, 880])
def test_T6_another_content_is_read_anew(file: Path, offset: int) -> None:
    data = file.read_bytes()
    row = read_up_to(file, offset)
    assert verdict(row, file)[0] is Verdict.GROWN
    for place in {0, min(offset, HEAD) - 1, max(0, offset - TAIL), offset - 1}:
        file.write_bytes(data[:place] + b"#" + data[place + 1 :])
        assert verdict(row, file) == (Verdict.OTHER, 0), place
    file.write_bytes(data[: offset - 1])
    assert verdict(row, file) == (Verdict.OTHER, 0)


def test_a_newer_adapter_reads_anew(file: Path) -> None:
    row = read_up_to(file, file.stat().st_size)
    assert verdict(row, file, VERSION + 1) == (Verdict.OTHER, 0)
    assert not checkpoints.untouched(row, file.stat(), VERSION + 1)


def test_a_file_needs_no_opening_while_nothing_of_it_changed(file: Path) -> None:
    row = read_up_to(file, file.stat().st_size)
    assert checkpoints.untouched(row, file.stat(), VERSION)
    row.problem = "not readable"
    assert not checkpoints.untouched(row, file.stat(), VERSION)
    row.problem = None
    before = file.stat()
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert not checkpoints.untouched(row, file.stat(), VERSION)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert checkpoints.untouched(row, file.stat(), VERSION)
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    copy.rename(file)
    assert not checkpoints.untouched(row, file.stat(), VERSION)


def test_marking_leaves_the_position_alone(file: Path) -> None:
    row = read_up_to(file, 9)
    with open(file, "rb") as stream:
        stream.seek(500)
        checkpoints.mark(row, stream, 700, 80)
        assert stream.tell() == 500
    assert (row.offset, row.line) == (700, 80)
    assert verdict(row, file) == (Verdict.GROWN, 700)


@given(
    st.binary(min_size=1, max_size=700), st.lists(st.integers(0, 700), min_size=1, max_size=4), st.binary(max_size=9)
)
def test_marking_in_steps_equals_marking_at_once(data: bytes, stops: list[int], more: bytes) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"outcrop-checkpoint-{os.getpid()}"
    try:
        path.write_bytes(data)
        offsets = sorted(min(stop, len(data)) for stop in stops)
        stepped = read_up_to(path, offsets[0])
        with open(path, "rb") as stream:
            for offset in offsets[1:]:
                checkpoints.mark(stepped, stream, offset, 1)
        assert stepped == read_up_to(path, offsets[-1])
        path.write_bytes(data + more)
        assert verdict(stepped, path)[0] is (Verdict.SAME if offsets[-1] == len(data + more) else Verdict.GROWN)
    finally:
        path.unlink(missing_ok=True)
