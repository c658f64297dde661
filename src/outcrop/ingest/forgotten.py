"""Leaving out what was forgotten, whenever a batch of records is about to be written.

A session with a tombstone is not written again, whichever file tells it. Of other sessions the events go that are
copies of forgotten ones, and with them what may repeat their words: generated titles and labels, records that no
event holds. Forgetting weighs more than keeping.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from outcrop import ids
from outcrop.harnesses import Harness
from outcrop.ingest.staging import Batch
from outcrop.store.embedded.write import Writer

FORGOTTEN = "of a forgotten session"
"""What the census says of such records."""
_DERIVED = ("title.generated", "title.summary", "summary", "slug")
"""Facts that may be made of a session's first words, and those words themselves."""
_LABEL = "label"


def repeats(name: str, value: Any, gone: list[str]) -> bool:
    """Whether a fact of a session that lost copied events may repeat their texts (`gone`)."""
    if name != _LABEL:
        return name in _DERIVED
    label = " ".join(str(value).split())
    return any(label in " ".join(text.split()) for text in gone)


def is_forgotten(writer: Writer, harness: Harness, source: str, native: str | None) -> bool:
    """Whether a session has a tombstone."""
    tombs = writer.tombstones.uids
    return bool(tombs) and native is not None and ids.session_uid(harness.name, harness.group(source), native) in tombs


def leave_out(writer: Writer, harness: Harness, source: str, batch: Batch) -> bool:
    """Take out of a batch what was forgotten; whether there was anything of it."""
    if not writer.tombstones.uids:
        return False
    named = {staged.native for staged in batch.events.values()}
    named |= {amend[0] for amend in batch.amends} | {fact[0] for fact in batch.facts}
    named |= {kept.native for kept in batch.kept if kept.native is not None}
    gone = {native for native in named if is_forgotten(writer, harness, source, native)}
    origins = writer.tombstones.origins_among(
        {staged.origin or uid for uid, staged in batch.events.items() if staged.native not in gone}
    )
    dropped: set[bytes] = set()
    robbed: dict[str, list[str]] = defaultdict(list)
    for uid, staged in list(batch.events.items()):
        copied = (staged.origin or uid) in origins
        if copied or staged.native in gone:
            del batch.events[uid]
            dropped.add(uid)
            if staged.native not in gone:
                robbed[staged.native].append(staged.event.text)
    if not gone and not robbed:
        return False
    batch.amends = [amend for amend in batch.amends if amend[0] not in gone and amend[1] not in dropped]
    batch.facts = [
        (native, name, value)
        for native, name, value in batch.facts
        if native not in gone and not (native in robbed and repeats(name, value, robbed[native]))
    ]
    group = harness.group(source)
    kept = []
    for record in batch.kept:
        if record.native is None or record.native in gone:
            continue
        if record.native in robbed:
            uid = ids.session_uid(harness.name, group, record.native)
            if record.origin is None or ids.event_uid(uid, record.origin) in dropped:
                continue
        kept.append(record)
    batch.kept = kept
    batch.problems = [(offset, line, reason, "") for offset, line, reason, _ in batch.problems]
    batch.record_events = [
        ((version, kind, outcome if not dropped.issuperset(made) else FORGOTTEN), made)
        for (version, kind, outcome), made in batch.record_events
    ]
    return True
