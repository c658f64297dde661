"""Hears from the operating system which paths changed below some folders.

Nothing rests on it: where a folder cannot be watched, where an event is lost or the file system has none, the next
sweep finds what changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

STEP_MS = 200
"""How often the library looks whether events came: its default of 50 costs an idle process four times the CPU."""
DEBOUNCE_MS = 400
"""The longest that a steady stream of events is gathered."""
AGAIN_SECONDS = (2.0, 60.0)
"""Until folders are watched again: doubled with each failure from the one to the other, until it held that long."""
_STOP_SECONDS = 5.0
_REASON = 200
_UNSPEAKABLE = "Unable to decode path"
"""What the library ends with when a name that is no Unicode changes. It cannot leave such a name out."""


class Watch:
    """Calls `heard` with the changed paths, on a thread of its own, until it is closed. `problem`: why it cannot.

    A name that is no Unicode interrupts it for a while, in which `problem` says so and events are lost.
    """

    def __init__(self, folders: Iterable[str], heard: Callable[[set[str]], None]) -> None:
        self.folders = tuple(sorted(set(folders)))
        self.problem: str | None = None
        self._heard = heard
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if self.folders:
            self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        shortest, longest = AGAIN_SECONDS
        pause = shortest
        while True:
            began = time.monotonic()
            try:
                self._listen()
                return
            except Exception as error:  # the system's limits, a folder that went away: the library has no class for all
                self.problem = (str(error) or type(error).__name__)[:_REASON]
                if not self.problem.startswith(_UNSPEAKABLE):
                    return
            pause = shortest if time.monotonic() - began > longest else pause
            if self._stop.wait(pause):
                return
            pause = min(2 * pause, longest)
            self.problem = None

    def _listen(self) -> None:
        from watchfiles import watch

        for changes in watch(
            *self.folders,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            rust_timeout=0,
            stop_event=self._stop,
            raise_interrupt=False,
            force_polling=False,
            ignore_permission_denied=True,
        ):
            self._heard({path for _, path in changes})
