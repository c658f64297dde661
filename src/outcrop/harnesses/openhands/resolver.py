"""Outputs of the issue resolver: one issue a line, with the whole history of the run that worked on it.

A run has no id: it is named by its issue, its instruction and the commit that it began from.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.json_values import string
from outcrop.harnesses.openhands.classic import Classic
from outcrop.harnesses.openhands.values import mapping
from outcrop.harnesses.runs import RunsReader
from outcrop.model import End, Event, EventType, Fact, Item, Parsed


class ResolverReader(RunsReader):
    """The `Reader` of a file of outputs."""

    prefix = "resolver-"
    history = "history"

    def naming(self, record: dict[str, Any]) -> Any:
        return [*_issue(record), record.get("issue_type"), record.get("instruction"), record.get("base_commit")]

    def run(self, session: str, record: dict[str, Any], listed: list[Any]) -> Parsed:
        issue = mapping(record.get("issue"))
        found: list[Item] = []
        if string(issue, "title").strip():
            found.append(Fact("title.generated", string(issue, "title").strip(), session))
        classic = Classic(None, session)
        for place, one in enumerate(listed):
            event = one if isinstance(one, dict) else {"record": one}
            # Numbers of a history are not unique in every version.
            found += classic.feed({**event, "id": None}, place).items
        end = Event(
            "run", EventType.RUNTIME, string(record, "error") or string(record, "result_explanation"), session=session
        )
        told = {"success": record.get("success"), "metrics": record.get("metrics"), "issue": _issue(record)}
        end.extra = {name: value for name, value in told.items() if value is not None}
        ended = any(item.ends is not None for item in found if isinstance(item, Event))
        end.ends = End.CRASHED if string(record, "error") else None if ended else End.STOPPED
        kept = {name: record[name] for name in ("git_patch", "comment_success") if record.get(name)}
        return Parsed("run", [*found, end], keep=kept or None)


def _issue(record: dict[str, Any]) -> list[Any]:
    """Owner, repository and number of the issue."""
    issue = mapping(record.get("issue"))
    return [issue.get(name) for name in ("owner", "repo", "number")]
