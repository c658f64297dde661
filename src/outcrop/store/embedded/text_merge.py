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
from typing import NamedTuple

import orjson

AT_ONCE = 8
"""Segments that the policy wants to see in a group."""
_LIVING = 2
"""Documents that live in a segment of deleted ones: the marker, and one that keeps it."""
MOST_SEGMENTS = 16
"""That stay as they are while a history grows: the policy itself keeps to fewer."""


class Segment(NamedTuple):
    """A committed segment: its documents, deleted ones included, and how many are deleted."""

    documents: int
    deleted: int


def segments(folder: Path) -> list[Segment] | None:
    """The segments of an index; None where they cannot be told."""
    try:
        meta = orjson.loads((folder / "meta.json").read_bytes())
        return [
            Segment(one["max_doc"], one["deletes"]["num_deleted_docs"] if one["deletes"] else 0)
            for one in meta["segments"]
        ]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def documents(folder: Path) -> int:
    """All documents of the index, deleted ones included; more than there can be where they cannot be told."""
    found = segments(folder)
    return 1 << 40 if found is None else sum(one.documents for one in found)


def left_over(found: Sequence[Segment]) -> bool:
    """Whether a merge was not begun, such as by a process that was killed: the next commit begins it."""
    return any(
        one.documents - one.deleted <= _LIVING < one.deleted
        and sum(other.documents <= one.documents for other in found) >= AT_ONCE
        for one in found
    )  # fmt: skip


def deleted_documents(found: Sequence[Segment], everything: bool) -> int:
    """How many deleted documents a segment needs for those behind it to become one; 0: they may stay.

    `everything`: nothing is worth keeping as it is. Else a segment with half of all documents stays beside the others,
    so that a long history is not written again for each short one that comes to it.
    """
    merged = sorted((one.documents for one in found), reverse=True)
    if not everything:
        if len(merged) <= MOST_SEGMENTS:
            return 0
        if 2 * merged[0] >= sum(merged):
            del merged[0]
    return merged[0] + 1 if len(merged) >= AT_ONCE - 1 else 0
