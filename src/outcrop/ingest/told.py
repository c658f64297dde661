"""The roots of all surroundings that the indexer ever heard of: kept in the store, forgotten when nothing needs them.

A root is forgotten when nobody named it for 90 days, nothing is at its place, and no file below it has history: a
drive that is away still has its files in the store, and a folder that is there may get sessions at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from outcrop.harnesses import Environment, all_harnesses
from outcrop.ingest.discover import absolute_roots, known_roots
from outcrop.store.embedded.write import Writer

KEPT_DAYS = 90
_DAY_MS = 86_400_000


def remember(writer: Writer, surroundings: Iterable[Environment], now: int) -> dict[str, list[str]]:
    """The known roots by source, with those of the surroundings, as the store keeps them from now on. `now`: UTC ms.

    Writes only where something changed; when a root was last named is kept to the day.
    """
    today = now // _DAY_MS
    before = known_roots(writer.db)
    days_before: dict[str, int] = json.loads(writer.meta("known_roots_days") or "{}")
    known = {source: list(roots) for source, roots in before.items()}
    days = {root: days_before.get(root, today) for roots in known.values() for root in roots}
    for environment in surroundings:
        for harness in all_harnesses():
            for source in harness.sources:
                roots = known.setdefault(source, [])
                for root in map(str, absolute_roots(harness, source, environment)):
                    days[root] = today
                    if root not in roots:
                        roots.append(root)
    for source, roots in known.items():
        roots[:] = [root for root in roots if today - days[root] < KEPT_DAYS or _needed(writer, source, root)]
    days = {root: days[root] for roots in known.values() for root in roots}
    if known != before or days != days_before:
        with writer.transaction():
            writer.set_meta("known_roots", json.dumps(known))
            writer.set_meta("known_roots_days", json.dumps(days))
    return known


def _needed(writer: Writer, source: str, root: str) -> bool:
    if os.path.lexists(root):
        return True
    below = str(Path(root) / "x")[:-1]
    return bool(
        writer.db.execute(
            "SELECT 1 FROM file WHERE source = ?1 AND (path = ?2 OR substr(path, 1, length(?3)) = ?3) LIMIT 1",
            (source, root, below),
        ).fetchone()
    )
