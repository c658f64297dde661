"""Files of whole runs, one a line, whose runs have no ids: each is named by what it says of itself.

So the same run in two files is one session; of runs of one name in a file each counts.
"""

from __future__ import annotations

import json
from typing import Any

from outcrop.ids import text_digest
from outcrop.model import Event, EventType, Parsed

REMEMBERED = 512
"""Latest names among which runs of one name are told apart."""


class RunsReader:
    """The `Reader` of a file of runs. The file has no session of its own: each event names that of its run."""

    prefix = ""
    """How the ids of such sessions begin."""
    history = ""
    """Name of the list that a run consists of; a record without one is not understood."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._seen: dict[str, int] = dict(known.get("seen", {}))

    @property
    def session(self) -> str | None:
        return None

    def state(self) -> dict[str, Any]:
        return {"seen": dict(self._seen)}

    def feed(self, record: dict[str, Any]) -> Parsed:
        name = text_digest(json.dumps(self.naming(record), sort_keys=True, default=str))
        number = self._seen.pop(name, 0) + 1
        self._seen[name] = number
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        session = f"{self.prefix}{name}" if number == 1 else f"{self.prefix}{name}.{number}"
        listed = record.get(self.history)
        if not isinstance(listed, list):
            return Parsed("?", [Event("run", EventType.UNKNOWN, session=session, raw=record)])
        return self.run(session, record, listed)

    def naming(self, record: dict[str, Any]) -> Any:
        """What of a record makes it the same run elsewhere."""
        return record

    def run(self, session: str, record: dict[str, Any], listed: list[Any]) -> Parsed:
        """One run as events of `session`."""
        raise NotImplementedError
