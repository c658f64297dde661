"""Text of message content, whatever its shape."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.harnesses.content import (
    base64_size,
    block_text,
    content_text,
    parsed_arguments,
    persisted_output,
    persisted_path,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["type", "text", "source", "data", "image_url", "url", "content"]), inner)
    ),
    max_leaves=12,
)
NOTE = (
    "<persisted-output>\nOutput too large (40KB). Full output saved to: {}\n\n"
    "Preview (first 2KB):\nhead\n</persisted-output>"
)


class Shelf:
    """Side files by path, with a record of what was asked for."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files, self.asked = files, []

    def text(self, path: str, inside: str, limit: int) -> str | None:
        self.asked.append((path, inside))
        return self.files.get(path) if path.startswith(inside + "/") else None


def test_strings_and_blocks() -> None:
    assert content_text("plain") == "plain"
    assert content_text([{"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}, "c"]) == "a\nb\nc"
    assert content_text([{"type": "tool_reference", "tool_name": "WebFetch"}]) == "[tool WebFetch]"
    assert [content_text(value) for value in (None, 7, [], {})] == ["", "", "", ""]


def test_images_become_media_type_and_size() -> None:
    data = base64.b64encode(b"x" * 68).decode()
    claude = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    codex = {"type": "input_image", "image_url": f"data:image/jpeg;base64,{data}"}
    assert block_text(claude) == "[image image/png, 68 bytes]"
    assert block_text(codex) == "[image image/jpeg, 68 bytes]"
    assert block_text({"type": "image", "source": {"type": "url", "url": "https://x.invalid/a.png"}}) == (
        "[image https://x.invalid/a.png]"
    )
    assert block_text({"type": "document", "source": {"type": "text", "data": "whole text"}}) == "whole text"


@given(st.binary(max_size=100))
def test_size_of_base64_is_exact(data: bytes) -> None:
    assert base64_size(base64.b64encode(data).decode()) == len(data)


@given(JSON)
def test_any_shape_gives_text(value: object) -> None:
    assert isinstance(content_text(value), str)


def test_T33_arguments_that_do_not_parse_are_kept() -> None:
    assert parsed_arguments('{"a": 1}') == {"a": 1}
    assert parsed_arguments("{broken") == {"_raw": "{broken"}


def test_T50_persisted_outputs_are_read_inside_their_folder_alone() -> None:
    inside = "/p/s/tool-results"
    shelf = Shelf({f"{inside}/a.txt": "the whole output", "/etc/passwd": "no"})
    assert persisted_path(NOTE.format("/etc/passwd")) == "/etc/passwd"
    assert persisted_output(NOTE.format(f"{inside}/a.txt"), shelf, inside) == "the whole output"
    assert persisted_output(NOTE.format("/etc/passwd"), shelf, inside) == NOTE.format("/etc/passwd")
    assert shelf.asked[-1] == ("/etc/passwd", inside)


@pytest.mark.parametrize("text", ["", "quoted: <persisted-output>", "<persisted-output>no path"])
def test_other_texts_ask_for_no_file(text: str) -> None:
    shelf = Shelf({})
    assert persisted_output(text, shelf, "/p") == text
    assert not shelf.asked
