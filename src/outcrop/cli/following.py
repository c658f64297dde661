"""What a server calls whenever the index is needed: somebody is to follow the files for as long as the server lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from outcrop.config import Config
    from outcrop.servers import start


def follower(settings: Config) -> Callable[[], None] | None:
    """Holds a lease on the indexer, in a thread of its own: it never waits. None where none may be started."""
    if not settings.auto_index:
        return None
    import threading

    lease: list[start.Lease] = []
    renewing = threading.Lock()

    def renew() -> None:
        try:
            if not lease:
                from outcrop.harnesses import Environment
                from outcrop.servers import start

                lease.append(start.Lease(settings.home, Environment.here().told()))
            lease[0].renew()
        finally:
            renewing.release()

    def needed() -> None:
        if renewing.acquire(blocking=False):
            threading.Thread(target=renew, name="lease", daemon=True).start()

    return needed
