"""How far a file has been read, and whether it is still the file that was read.

A checkpoint holds the file's identity, the bytes consumed and digests of its first bytes and of those just before
the offset. It is written in the transaction of the events that it covers, so it is never ahead of them.
"""

from __future__ import annotations

import os
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from outcrop.store.embedded.write import FileRow

HEAD = 256
TAIL = 64


class Verdict(StrEnum):
    SAME = "same"
    """Nothing to read."""
    GROWN = "grown"
    """Go on from the offset."""
    OTHER = "other"
    """Another content: read it anew."""


def untouched(file: FileRow, found: os.stat_result, adapter_version: int) -> bool:
    """Whether the file needs no opening at all."""
    return (
        file.adapter_version == adapter_version
        and file.problem is None
        and (file.device, file.inode, file.size, file.mtime_ns)
        == (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    )


def judge(file: FileRow, found: os.stat_result, stream: BinaryIO, adapter_version: int) -> Verdict:
    """Compare the checkpoint with the open file. Leaves the stream at the offset to read from, or at 0."""
    if file.offset == 0 and file.generation == 0 and file.head is None:
        stream.seek(0)
        return Verdict.GROWN
    if file.adapter_version != adapter_version or found.st_size < file.offset:
        stream.seek(0)
        return Verdict.OTHER
    stream.seek(0)
    if _digest(stream.read(file.head_size)) != file.head:
        stream.seek(0)
        return Verdict.OTHER
    start = max(0, file.offset - TAIL)
    stream.seek(start)
    if _digest(stream.read(file.offset - start)) != file.tail:
        stream.seek(0)
        return Verdict.OTHER
    stream.seek(file.offset)
    return Verdict.SAME if found.st_size == file.offset else Verdict.GROWN


def mark(file: FileRow, stream: BinaryIO, offset: int, line: int) -> None:
    """Note in the row that the file has been read up to `offset`. Leaves the stream's position alone."""
    position = stream.tell()
    if file.head_size < HEAD:
        stream.seek(0)
        head = stream.read(min(HEAD, offset))
        file.head, file.head_size = _digest(head), len(head)
    start = max(0, offset - TAIL)
    stream.seek(start)
    file.tail = _digest(stream.read(offset - start))
    stream.seek(position)
    file.offset, file.line = offset, line


def identify(file: FileRow, found: os.stat_result) -> None:
    """Note the identity that `untouched` compares."""
    file.device, file.inode, file.size, file.mtime_ns = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def proven_gone(path: str, root: str) -> bool:
    """Whether a file is deleted: some folder between it and its root lists, and the next step is absent."""
    parts = Path(path).parts
    top = Path(root).parts
    if parts[: len(top)] != top or len(parts) <= len(top):
        return False
    for depth in range(len(parts) - 1, len(top) - 1, -1):
        folder = Path(*parts[:depth])
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return False
        return parts[depth] not in names
    return False


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=8).digest()
