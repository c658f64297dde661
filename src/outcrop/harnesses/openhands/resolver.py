"""Outputs of the issue resolver: one issue a line, with the whole history of the run that worked on it.

A run has no id: it is named by its issue, its instruction and the commit that it began from.
"""

from __future__ import annotations

import json
from typing import Any

from outcrop.harnesses.openhands.classic import Classic
from outcrop.harnesses.openhands.values import mapping, text
from outcrop.ids import text_digest
from outcrop.model import End, Event, EventType, Fact, Item, Parsed

RESOLVER_IDS = "resolver-"
REMEMBERED = 512
"""Latest runs among which those of one name are told apart."""


class ResolverReader:
    """The `Reader` of a file of outputs. The file has no session of its own: each event names that of its run."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._seen: dict[str, int] = dict(known.get("seen", {}))

    @property
    def session(self) -> str | None:
        return None

    def state(self) -> dict[str, Any]:
        return {"seen": dict(self._seen)}

    def feed(self, record: dict[str, Any]) -> Parsed:
        issue = mapping(record.get("issue"))
        whose = [issue.get(name) for name in ("owner", "repo", "number")]
        named = [*whose, record.get("issue_type"), record.get("instruction"), record.get("base_commit")]
        name = text_digest(json.dumps(named, sort_keys=True, default=str))
        number = self._seen.pop(name, 0) + 1
        self._seen[name] = number
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        session = f"{RESOLVER_IDS}{name}" if number == 1 else f"{RESOLVER_IDS}{name}.{number}"
        history = record.get("history")
        if not isinstance(history, list):
            return Parsed("?", [Event("run", EventType.UNKNOWN, session=session, raw=record)])
        found: list[Item] = []
        if text(issue, "title").strip():
            found.append(Fact("title.generated", text(issue, "title").strip(), session))
        classic = Classic(None, session)
        for place, one in enumerate(history):
            event = one if isinstance(one, dict) else {"record": one}
            # Numbers of a history are not unique in every version.
            found += classic.feed({**event, "id": None}, place).items
        end = Event(
            "run", EventType.RUNTIME, text(record, "error") or text(record, "result_explanation"), session=session
        )
        told = {"success": record.get("success"), "metrics": record.get("metrics"), "issue": whose}
        end.extra = {name: value for name, value in told.items() if value is not None}
        ended = any(item.ends is not None for item in found if isinstance(item, Event))
        end.ends = End.CRASHED if text(record, "error") else None if ended else End.STOPPED
        kept = {name: record[name] for name in ("git_patch", "comment_success") if record.get(name)}
        return Parsed("run", [*found, end], keep=kept or None)
