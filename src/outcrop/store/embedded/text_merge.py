"""Which segments the engine should merge that its own policy leaves side by side, and how it is brought to.

The policy merges eight segments of about one size, so that a first build may leave seven of each size behind; each
costs every search a share and holds words of its own. The binding has no merge on demand. But the policy walks the
segments by falling number of documents, deleted ones included, and begins a new group only at a segment that has far
fewer *living* documents than the group's first: behind one whose documents are deleted, all that is smaller is one
group. An engine with another policy would leave the segments as they are, and nothing else would change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson

AT_ONCE = 8
"""Segments that the policy wants to see in a group."""
MOST_SEGMENTS = 16
"""That stay as they are while a history grows: the policy itself keeps to fewer."""


def sizes(folder: Path) -> list[int]:
    """The documents of each committed segment, deleted ones included."""
    meta = orjson.loads((folder / "meta.json").read_bytes())
    return [int(segment["max_doc"]) for segment in meta["segments"]]


def documents(folder: Path) -> int:
    """All documents of the index, deleted ones included; more than there can be where they cannot be told."""
    try:
        return sum(sizes(folder))
    except (OSError, ValueError, LookupError):
        return 1 << 40


def deleted_documents(segments: Sequence[int], everything: bool) -> int:
    """How many deleted documents a segment needs for those of `segments` behind it to become one; 0: they may stay.

    `everything`: nothing is worth keeping as it is. Else a segment with half of all documents stays beside the others,
    so that a long history is not written again for each short one that comes to it.
    """
    merged = sorted(segments, reverse=True)
    if not everything:
        if len(merged) <= MOST_SEGMENTS:
            return 0
        if 2 * merged[0] >= sum(merged):
            del merged[0]
    return merged[0] + 1 if len(merged) >= AT_ONCE - 1 else 0
