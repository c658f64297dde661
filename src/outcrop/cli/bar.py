"""How far a pass over the files or a rebuild of the text index is: a bar on stderr, where a person looks at it."""

from __future__ import annotations

import sys
from typing import Any


class Bar:
    """A progress bar, drawn from the first word of progress on; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> Bar:
        return self

    def tell(self, path: str, done: int, total: int, events: int) -> None:
        """Bytes done of a pass that is at `path`, or without a path documents of a rebuild (`outcrop.ingest.jobs`)."""
        if not sys.stderr.isatty():
            return
        if self._progress is None:
            self._start()
        total = max(total, done)
        if path:
            amount = f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB, {events:,} events"
        else:
            amount = f"{done:,} of {total:,} documents"
        self._progress.update(self._task, completed=done, total=total, amount=amount)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("indexing"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("indexing", total=None, amount="")
        self._progress.start()

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()
