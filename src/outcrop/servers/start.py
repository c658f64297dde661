"""Starting the indexer in the background, and holding a lease on it.

Whoever needs the index asks here: where no indexer answers, one is started, in a session of its own, so that it
outlives whoever started it. One that crashes again and again is left alone for a while, and `outcrop status` says so.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from outcrop.errors import OutcropError
from outcrop.paths import HOME_VARIABLE, RUN, private_folder
from outcrop.servers import local

RECORD = "indexer.json"
LOG = "indexer.log"
LOG_BYTES = 256 * 1024
LEAVE_SECONDS = 5.0
"""What an older indexer is given to leave for a newer version."""
AGAIN_SECONDS = 30.0
"""Between two attempts of one process to find or start an indexer."""
CRASHES = 3
"""So many in an hour, and the next start waits: `PAUSE_SECONDS`, doubled with each further crash, an hour at most."""
PAUSE_SECONDS = 60.0
HOUR = 3600.0


def crashes(record: dict[str, Any], now: float) -> list[float]:
    """Times (UTC s) of the crashes in the last hour; of a clock that was set back nothing is left."""
    told = record.get("crashes")
    times = told if isinstance(told, list) else []
    return [float(time) for time in times if isinstance(time, int | float) and now - HOUR <= time <= now]


def pause(record: dict[str, Any], now: float) -> float:
    """Seconds for which no indexer is to be started."""
    recent = crashes(record, now)
    if len(recent) < CRASHES:
        return 0.0
    return max(0.0, recent[-1] + min(PAUSE_SECONDS * 2.0 ** (len(recent) - CRASHES), HOUR) - now)


def read_record(home: Path) -> dict[str, Any]:
    """What the last indexer left of itself: `pid`, `version`, `started`, `ended`, `reason`, `crashes` (UTC s)."""
    try:
        record = json.loads((home / RUN / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def write_record(home: Path, record: dict[str, Any]) -> None:
    """Never raises: on a full disk there is no record, and the indexer waits for room."""
    path = home / RUN / RECORD
    new = path.with_suffix(".new")
    with suppress(OSError):
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.replace(new, path)


def spawn(home: Path) -> bool:
    """Start an indexer, unless those before it crashed too often; whether it was started."""
    if pause(read_record(home), time.time()) > 0:
        return False
    import subprocess

    try:
        run = private_folder(home / RUN)
        log = run / LOG
        with suppress(OSError):
            if log.stat().st_size > LOG_BYTES:
                os.replace(log, run / f"{LOG}.1")
        with open(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "ab") as stderr:
            started = subprocess.Popen(
                [sys.executable, "-P", "-m", "outcrop", "watch", "--background"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd=os.path.abspath(os.sep),
                close_fds=True,
                env=_lasting(home),
                **_detached(),
            )
    except OSError:
        return False
    # Whoever started it may outlive it: somebody must ask how it ended.
    threading.Thread(target=started.wait, name="reaper", daemon=True).start()
    return True


def _lasting(home: Path) -> dict[str, str]:
    """The environment of a process that starts elsewhere: a relative data folder is the starter's."""
    named = {HOME_VARIABLE: str(home)} if os.environ.get(HOME_VARIABLE) else {}
    return {**os.environ, **named}


def _detached() -> dict[str, Any]:
    if sys.platform == "win32":
        import subprocess

        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


class Lease:
    """A long-lived process's hold on an indexer: found, started where there is none, and looked for again later."""

    def __init__(self, home: Path, surroundings: dict[str, Any]) -> None:
        self._home = home
        self._surroundings = surroundings
        self._client: local.Client | None = None
        self._next = 0.0
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Make sure that somebody follows the files. Costs nothing while the connection holds; never raises."""
        with self._lock:
            if self._client is not None and not self._client.ended():
                return
            now = time.monotonic()
            if now < self._next:
                return
            self._next = now + AGAIN_SECONDS
            self._client = attach(self._home, self._surroundings)
            if self._client is None and spawn(self._home):
                self._client = awaited(self._home, self._surroundings)


def attach(
    home: Path, surroundings: dict[str, Any] | None, patience: float = local.CONNECT_SECONDS
) -> local.Client | None:
    """A greeted connection to the indexer, or None where none answers in time. An older one is let leave."""
    client = local.connect(home)
    if client is None:
        return None
    try:
        told = client.greet(surroundings, patience)
        if not client.is_newer_than(told):
            return client
        until = time.monotonic() + LEAVE_SECONDS
        while not client.ended() and time.monotonic() < until:
            time.sleep(0.02)
    except (OSError, OutcropError, ValueError):
        pass
    client.close()
    return None


def awaited(home: Path, surroundings: dict[str, Any], seconds: float = 3.0) -> local.Client | None:
    """A greeted connection to an indexer that was just started; None where it does not come."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.05)
        if (client := attach(home, surroundings)) is not None:
            return client
    return None
