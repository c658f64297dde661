"""Facts of real sessions, read from their raw lines without the product, and how turns are held to them.

`harnesses/facts/<harness>/*.json` name a session's file, native id, parent, title and number of records, and of each
turn the line of its prompt, its end, its final answer and its tools in order. Texts stand as the first 16 digits of
their SHA-256; a long list of tools as its length and the digest of its names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(os.environ.get("OUTCROP_CORPUS", "/nonexistent"))
FOLDER = Path(__file__).parent / "harnesses" / "facts"
HARNESSES = {"claude": ("claude-code", "claude"), "codex": ("codex", "codex")}
"""Folder of facts → harness and source."""

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="OUTCROP_CORPUS does not name the corpus")


@dataclass
class Turn:
    """A turn as it was told: texts whole, tools under the names of the record. `final` None: no final answer."""

    prompt: str
    tools: list[str]
    completed: bool
    final: str | None
    steers: list[str] = field(default_factory=list)


def facts(folder: str) -> list[dict[str, Any]]:
    """All facts of a harness folder, each with its `name`, `harness` and `source`."""
    harness, source = HARNESSES[folder]
    found = []
    for path in sorted((FOLDER / folder).glob("*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        found.append({"name": path.stem, "harness": harness, "source": source, **told})
    return found


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file of lines; what stands glued on one line is taken apart."""
    decoder = json.JSONDecoder()
    for raw in path.read_bytes().split(b"\n"):
        line = raw.decode("utf-8").strip()
        while line:
            record, end = decoder.raw_decode(line)
            yield record
            line = line[end:].lstrip()


def session_files() -> list[tuple[str, Path]]:
    """Harness and path of every session file of the two harnesses; Codex's list of prompts is none."""
    return [
        (harness, path)
        for folder, harness in (("claude-code", "claude-code"), ("codex", "codex"))
        for path in sorted((CORPUS / folder).rglob("*.jsonl"))
        if path.name != "history.jsonl"
    ]


def hashed(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


def check(turns: list[Turn], told: dict[str, Any]) -> None:
    """Hold the turns of a session to its facts."""
    wanted = told["turns"]
    assert [hashed(turn.prompt) for turn in turns] == [want["prompt"] for want in wanted]
    for turn, want in zip(turns, wanted, strict=True):
        place = f"turn that opens on line {want['line']}"
        if isinstance(want["tools"], dict):
            assert len(turn.tools) == want["tools"]["count"], place
            assert hashed(" ".join(turn.tools)) == want["tools"]["names"], place
        else:
            assert turn.tools == want["tools"], place
        assert turn.completed is (want["ends"] is not None), place
        assert hashed(turn.final) == (want["final"] and want["final"]["text"]), place
        assert [hashed(text) for text in turn.steers] == want.get("steers", []), place
