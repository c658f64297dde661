"""One very long Claude Code session for measurements: records of a real one, repeated under fresh names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import count
from pathlib import Path
from uuid import UUID

import orjson

EVENTS = 50_000
LONGEST_TURN = 20_000
_SESSION = "5e550000-0000-4000-8000-000000000001"
_NAME = re.compile(rb"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:msg|toolu|req)_[0-9a-f]{8,}")


def write_long_session(home: Path, target: Path) -> Path:
    """Make `target` a home with one session of about 50,000 events, the last 20,000 of them one turn.

    The records are those of the largest transcript of `home`; every id but the session's is new in each repetition,
    so that none of them is a copy. Raises ValueError where `home` has no Claude Code transcript.
    """
    transcripts = sorted((home / ".claude" / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    if not transcripts:
        raise ValueError(f"{home} has no Claude Code transcript")
    native = transcripts[-1].stem.encode()
    lines = [line for line in transcripts[-1].read_bytes().splitlines() if _is_message(line)]
    inside = [line for line in lines if not _is_prompt(line)]
    folder = target / ".claude" / "projects" / "-bench"
    folder.mkdir(parents=True)
    path = folder / f"{_SESSION}.jsonl"
    with path.open("wb") as file:
        rounds = count()
        for source, most in ((lines, EVENTS - LONGEST_TURN), (inside, LONGEST_TURN)):
            for line in _repeated(source, native, most, rounds):
                file.write(line + b"\n")
    return path


def _repeated(lines: list[bytes], native: bytes, most: int, rounds: Iterator[int]) -> Iterator[bytes]:
    written = 0
    while written < most:
        seed = str(next(rounds)).encode()

        def renamed(found: re.Match[bytes], seed: bytes = seed) -> bytes:
            name = found[0]
            if name == native:
                return _SESSION.encode()
            digest = blake2b(name, key=seed, digest_size=16).digest()
            prefix, mark, _ = name.partition(b"_")
            return prefix + mark + digest.hex().encode() if mark else str(UUID(bytes=digest)).encode()

        for line in lines[: most - written]:
            yield _NAME.sub(renamed, line)
        written += len(lines)


def _is_message(line: bytes) -> bool:
    return orjson.loads(line).get("type") in ("user", "assistant")


def _is_prompt(line: bytes) -> bool:
    """Whether a record opens a turn, or ends one before its time."""
    record = orjson.loads(line)
    content = record["message"]["content"]
    answers = isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
    return bool(record["type"] == "user" and not answers)
