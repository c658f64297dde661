"""Whether the files of a text index still are what the engine wrote.

The engine never changes a file of a segment once it is written, and ends each with a checksum that it does not look at
again: damage shows late, in a search, or not at all. So each file is read once after it was last changed.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import orjson

_TAIL = struct.Struct("<II")
"""The last eight bytes: length of the footer before them, a JSON document; and the number that tells a footer."""
_FOOTER = 1337
_LONGEST_FOOTER = 4096
_PIECE = 1 << 20


def newest_sound(folder: Path, since: int) -> int:
    """The latest change of any file in `folder` (UTC ns), at least `since`.

    Raises ValueError where a file that was changed after `since` is not what its checksum says. Files without a
    footer are left to the engine, which refuses those that it needs: others are the rest of a run that was killed.
    """
    newest = since
    with os.scandir(folder) as entries:
        for entry in entries:
            changed = entry.stat().st_mtime_ns
            if changed > since and entry.is_file() and not _sound(entry.path):
                raise ValueError(f"{entry.name} is damaged")
            newest = max(newest, changed)
    return newest


def _sound(path: str) -> bool:
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size < _TAIL.size:
            return True
        stream.seek(size - _TAIL.size)
        length, number = _TAIL.unpack(stream.read(_TAIL.size))
        left = size - _TAIL.size - length
        if number != _FOOTER or length > _LONGEST_FOOTER or left < 0:
            return True
        stream.seek(left)
        wanted = orjson.loads(stream.read(length))["crc"]
        stream.seek(0)
        found = 0
        while left and (piece := stream.read(min(left, _PIECE))):
            found = zlib.crc32(piece, found)
            left -= len(piece)
        return bool(found == wanted)
