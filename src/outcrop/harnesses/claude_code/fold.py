"""What the reading of a Claude Code transcript remembers: whose records these are, and what later ones may need.

Everything remembered is plain JSON and bounded, so that the reading can be cut between any two records. Keys come
from uuids; where a record has none, from its meaning and the record before it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from outcrop.harnesses import Side
from outcrop.harnesses.claude_code.parts import time_ms
from outcrop.harnesses.claude_code.queue import Queue
from outcrop.ids import text_digest
from outcrop.model import Event, EventType, Fact, Item, Relation

MESSAGES, CALLS, CHAINS, RECENT, SUMMARIES, CHILDREN, SPLIT = 8, 256, 256, 64, 32, 64, 32
"""How many of each the state remembers."""

_FOR_ITSELF = ("agent-acompact", "agent-aprompt_suggestion")
_NAMELESS = frozenset({"summary", "custom-title", "ai-title", "agent-name"})
"""Kinds that give no event: a file whose name tells nothing may wait for its session's id."""


@dataclass(slots=True, frozen=True)
class Identity:
    """What a transcript's place tells: ids where it names them, and where its spilled outputs may lie."""

    native: str | None
    parent: str | None
    stem: str
    agent: str | None
    folder: str
    outputs: str | None
    remote: bool


@dataclass(slots=True)
class Envelope:
    """What all events of one record share."""

    uuid: str | None
    time: int | None
    session: str | None
    cwd: str | None
    branch: str | None


class Fold:
    """The state of a reading, and what every kind of record does with it."""

    def __init__(self, identity: Identity, side: Side, state: dict[str, Any] | None) -> None:
        self._identity = identity
        self._side = side
        known = state or {}
        self._native: str | None = known.get("native", identity.native)
        self._parent: str | None = known.get("parent", identity.parent)
        self._facts: dict[str, Any] = dict(known.get("facts", {}))
        self._begun: bool = known.get("begun", False)
        self._opened: bool = known.get("opened", False)
        self._summaries: dict[str, str] = dict(known.get("summaries", {}))
        self._recent: list[str] = list(known.get("recent", ()))
        self._last: str = known.get("last", "")
        self._counts: dict[str, int] = dict(known.get("counts", {}))
        self._calls: dict[str, list[Any]] = dict(known.get("calls", {}))
        self._messages: dict[str, dict[str, Any]] = json.loads(json.dumps(known.get("messages", {})))
        self._models: dict[str, str] = dict(known.get("models", {}))
        self._caveat: str | None = known.get("caveat")
        self._shell: str | None = known.get("shell")
        self._error: list[Any] | None = known.get("error")
        self._chains: dict[str, str] = dict(known.get("chains", {}))
        self._children: dict[str, int] = dict(known.get("children", {}))
        self._split: dict[str, int] = dict(known.get("split", {}))
        self._queue = Queue(known.get("queue"))

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        kept = {
            "native": self._native,
            "parent": self._parent,
            "facts": self._facts,
            "begun": self._begun,
            "opened": self._opened,
            "summaries": self._summaries,
            "recent": self._recent,
            "last": self._last,
            "counts": self._counts,
            "calls": self._calls,
            "messages": self._messages,
            "models": self._models,
            "caveat": self._caveat,
            "shell": self._shell,
            "error": self._error,
            "chains": self._chains,
            "children": self._children,
            "split": self._split,
            "queue": self._queue.state(),
        }
        # A copy: a caller may write it later than it goes on reading.
        copied: dict[str, Any] = json.loads(json.dumps({name: value for name, value in kept.items() if value}))
        return copied

    def _identify(self, record: dict[str, Any], items: list[Item]) -> None:
        said, kind = string(record.get("sessionId")), string(record.get("type"))
        identity = self._identity
        if identity.agent is not None:
            if self._native is None and said is not None and not said.startswith("agent-"):
                self._parent = said
                self._native = f"{said}/{identity.stem}"
            if self._native is None and kind not in _NAMELESS:
                self._native = identity.stem
            if self._native is not None and not self._begun:
                self._begun = True
                if self._parent is not None:
                    items += [Fact("parent", self._parent), Fact("relation", Relation.SUBAGENT)]
                if identity.stem.startswith(_FOR_ITSELF):
                    items.append(Fact("machine", True))
        elif self._native is None:
            if said is not None or kind not in _NAMELESS:
                self._native, self._begun = said or identity.stem, True
        elif said is not None and not self._begun:
            # History that stands before the file's first own record was copied from the session that it names.
            if said == self._native or identity.remote:
                self._begun = True
            elif "parent" not in self._facts:
                self._facts["parent"] = said
                items += [Fact("parent", said), Fact("relation", Relation.CONTINUATION)]
        fork = record.get("forkedFrom")
        if (
            isinstance(fork, dict)
            and "fork" not in self._facts
            and string(fork.get("sessionId")) not in (None, self._native)
        ):
            self._facts["fork"] = fork["sessionId"]
            items += [Fact("parent", fork["sessionId"]), Fact("relation", Relation.FORK)]
        for name in ("version", "slug"):
            value = record.get(name)
            if isinstance(value, str) and value and value != self._facts.get(name):
                self._facts[name] = value
                items.append(Fact(name, value))

    def _envelope(self, record: dict[str, Any], uuid: str | None, items: list[Item]) -> Envelope:
        session = None
        if record.get("isSidechain") is True and self._identity.agent is None:
            session = self._child(record, uuid, items)
        cwd = string(record.get("cwd"))
        if self._identity.remote and cwd is not None and cwd.startswith("/sessions/"):
            cwd = None
        branch = record.get("gitBranch")
        return Envelope(
            uuid, time_ms(record.get("timestamp")), session, cwd, branch if isinstance(branch, str) else None
        )

    def _child(self, record: dict[str, Any], uuid: str | None, items: list[Item]) -> str:
        """The child session of a sidechain record inside a main file: one a chain."""
        child = f"{self._native or self._identity.stem}/agent-{self._chain(record, uuid)}"
        if child not in self._children:
            self._children[child] = 1
            forget(self._children, CHILDREN)
            items.append(Fact("parent", self._native, child))
            items.append(Fact("relation", Relation.SUBAGENT, child))
            message = record.get("message")
            if isinstance(message, dict) and message.get("content") == "Warmup":
                items.append(Fact("machine", True, child))
        return child

    def _chain(self, record: dict[str, Any], uuid: str | None) -> str:
        """The agent that a sidechain record is of: its id, else the first uuid of its chain of parents."""
        agent = string(record.get("agentId"))
        if agent is None:
            above = string(record.get("parentUuid"))
            agent = (self._chains.get(above) if above else None) or uuid or above or "unnamed"
            if uuid is not None:
                self._chains[uuid] = agent
                forget(self._chains, CHAINS)
        return agent

    def _remember(self, uuid: str, items: list[Item]) -> None:
        self._last = uuid
        if self._counts:
            self._counts = {}
        self._recent.append(uuid[:8])
        if len(self._recent) > RECENT:
            del self._recent[0]
        if self._summaries and uuid in self._summaries:
            items.append(Fact("title.summary", self._summaries.pop(uuid)))

    def _key(self, envelope: Envelope, index: int, meaning: Any) -> str:
        """The uuid and the place of the block; without a uuid, the meaning, counted since the last record with one."""
        if envelope.uuid is not None:
            return f"{envelope.uuid}:{index}"
        digest = text_digest(self._last + json.dumps(meaning, sort_keys=True, default=str))
        count = self._counts.get(digest, 0)
        self._counts[digest] = count + 1
        return f"{digest}:{count}"

    def _event(self, envelope: Envelope, index: int, kind: EventType, text: str, meaning: Any = None) -> Event:
        key = self._key(envelope, index, meaning if meaning is not None else [kind.value, text])
        return Event(
            key,
            kind,
            text,
            envelope.time,
            envelope.session,
            (None, key) if envelope.uuid is not None else None,
            cwd=envelope.cwd,
            branch=envelope.branch,
        )


def forget(kept: dict[str, Any], limit: int) -> None:
    """Drop the oldest entries beyond `limit`."""
    while len(kept) > limit:
        del kept[next(iter(kept))]


def string(value: Any) -> str | None:
    """`value` if it is a text that says something."""
    return value if isinstance(value, str) and value else None
