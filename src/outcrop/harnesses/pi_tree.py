"""Session files of pi and the programs that grew from it: one header, then entries that form a tree.

An entry names the one before it, so that a session may branch inside its file; entries of the first version have no
ids and are known by their meaning inside their turn. A file that names a parent session may begin with entries
copied from there: they keep their ids and their times, which lie before the file's own header.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from outcrop.harnesses import Form, Side, SourceFile
from outcrop.harnesses.json_values import objects, string
from outcrop.harnesses.memory import kept, recalled
from outcrop.harnesses.moments import time_ms
from outcrop.harnesses.outcomes import GENERATED, Outcome
from outcrop.harnesses.pi_values import last_part, named_id
from outcrop.ids import text_digest
from outcrop.model import Event, EventType, Fact, Item, Parsed, Relation

CAP = 256
"""Entries of any one memory."""
HEAD = 64 * 1024
"""Bytes of a parent's file that are looked through for its header."""
SUBAGENT = "subagent"
"""Role of a file that lies where only agents' sessions lie."""


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TIMES = frozenset({"timestamp", "id", "parentId", "firstKeptEntryId", "firstKeptEntryIndex"})


@dataclass(slots=True)
class Memory:
    """All that the next entry may need.

    `turn` is the key of the running turn's prompt; `chain` maps ids of entries to the turn that they stand in; `calls`
    maps a call id to [tool, original spelling]; `open` says that the turn's end is not known, `silent` that its last
    message did not say why it stopped, `steering` that the next prompt was waiting for a tool; `task` is the key of
    a task whose prompt may follow.
    """

    native: str | None = None
    header: bool = False
    parent: str | None = None
    created: int | None = None
    copying: bool = False
    subagent: bool = False
    slot: bool = False
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    turn: str | None = None
    last: str | None = None
    open: bool = False
    silent: bool = False
    steering: bool = False
    task: list[str] | None = None
    chain: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[Any]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    spill: int = 0


class PiReader:
    """Reads one session. `roles` and `entries` say what becomes of messages by role, and of other entries by type."""

    def __init__(
        self,
        file: SourceFile,
        state: dict[str, Any] | None,
        side: Side,
        roles: dict[str, Handler],
        entries: dict[str, Handler],
    ) -> None:
        self.memory = recalled(Memory, state)
        self.file = file
        if file.form is Form.CONTAINER:
            self.memory.native = file.native
        self._side = side
        self._roles = roles
        self._entries = entries
        self.keep: Any = None
        """What the present entry holds that no event does."""
        self.base = ""
        """Key of the present entry."""
        self.time: int | None = None

    @property
    def session(self) -> str | None:
        return self.memory.native

    def state(self) -> dict[str, Any]:
        return kept(self.memory)

    def feed(self, record: dict[str, Any]) -> Parsed:
        m = self.memory
        kind = string(record, "type")
        if kind == "session":
            outcome = self._header(record)
            keep, self.keep = self.keep, None
            return Parsed(kind, reason=outcome, keep=keep) if isinstance(outcome, str) else Parsed(kind, outcome)
        if kind == "title" and not m.header:
            m.slot = True
            return Parsed(kind, [title(record)])
        if m.native is None:
            m.native = self.file.native
        message = record.get("message")
        handler, name, body = self._entries.get(kind), kind or "?", record
        if kind == "message":
            role = string(message, "role")
            handler, name = self._roles.get(role), f"message/{role or '?'}"
            body = message if isinstance(message, dict) else record
        elif kind in ("custom", "custom_message") and string(record, "customType"):
            name = f"{kind}/{record['customType']}"
        self.time = time_ms(record.get("timestamp"))
        if self.time is None and isinstance(message, dict):
            self.time = time_ms(message.get("timestamp"))
        self._place(record)
        if m.copying and self.time is not None and m.created is not None and self.time >= m.created:
            m.copying = False
        found = handler(self, body) if handler is not None else None
        if found is None:
            found = [self.event(EventType.UNKNOWN, raw=record, extra={"kind": name})]
        self._passed(record)
        keep, self.keep = self.keep, None
        if isinstance(found, str):
            return Parsed(name, reason=found, keep=keep)
        if m.copying:
            found = [item for item in found if not isinstance(item, Fact)]
        return Parsed(name, found, None if found else "copied from the parent session", keep)

    # Where an entry stands

    def _place(self, record: dict[str, Any]) -> None:
        """Find the entry's key, and the turn of the entry that it follows."""
        m = self.memory
        parent = string(record, "parentId")
        if parent and parent != m.last and parent in m.chain and m.chain[parent] != m.turn:
            self.enter(m.chain[parent])
        native = string(record, "id")
        if native:
            self.base = native
            return
        meaning = {name: value for name, value in record.items() if name not in _TIMES}
        message = meaning.get("message")
        if isinstance(message, dict):
            meaning["message"] = {name: value for name, value in message.items() if name not in _TIMES}
        digest = _digest(meaning)
        count = m.counts.get(digest, 0)
        if not count and len(m.counts) >= CAP:
            m.spill += 1
            self.base = f"{m.turn or 'head'}/{digest}+{m.spill}"
            return
        m.counts[digest] = count + 1
        self.base = f"{m.turn or 'head'}/{digest}.{count}"

    def _passed(self, record: dict[str, Any]) -> None:
        m = self.memory
        native = string(record, "id")
        m.last = native or None
        if native and m.turn is not None:
            m.chain.pop(native, None)
            m.chain[native] = m.turn
            bound(m.chain)

    def enter(self, turn: str) -> None:
        """Go on in a turn: what is counted by the turn starts again."""
        m = self.memory
        m.turn, m.open, m.silent, m.steering = turn, False, False, False
        m.counts, m.spill = {}, 0

    def opening(self) -> str:
        """The key of the turn that the present entry opens."""
        if "/" not in self.base:
            return self.base
        # Without ids, a turn is known by its prompt and by all prompts before it.
        return f"t{text_digest(self.base)}"

    # Items

    def event(self, kind: EventType, text: str = "", block: int | str | None = None, **more: Any) -> Event:
        """An event of the present entry, or of one block of it."""
        m = self.memory
        key = self.base if block is None else f"{self.base}:{block}"
        origin = (m.parent, key) if m.copying else None
        generator = m.model if kind in GENERATED and not more.get("by_user") else None
        more = {"cwd": m.cwd, "branch": m.branch, "generator": generator, "turn": m.turn, **more}
        return Event(key, kind, text, self.time, origin=origin, **more)

    def remember(self, call: str, tool: str, original: str | None) -> None:
        calls = self.memory.calls
        calls.pop(call, None)
        calls[call] = [tool, original]
        bound(calls)

    # The header

    def _header(self, record: dict[str, Any]) -> list[Item] | str:
        m = self.memory
        native = string(record, "id")
        if m.header:
            if native == m.native:
                return "repeats the session's header"
            self.keep = record
            return "header of another session"
        m.header = True
        m.native = m.native or native or self.file.native
        m.created = self.time = time_ms(record.get("timestamp"))
        m.cwd = string(record, "cwd") or None
        git = record.get("git")
        m.branch = string(git, "branch") or None
        model = string(record, "modelId")
        m.model = model or m.model
        known = {"type", "id", "timestamp", "cwd", "title", "titleSource", "providerPromptCacheKey"}
        extra = {name: value for name, value in record.items() if name not in known and value is not None}
        self.base = "session"
        items: list[Item] = [self.event(EventType.SYSTEM, extra=extra or None)]
        if m.created is not None:
            items.append(Fact("created", m.created))
        if not m.slot and string(record, "title"):
            items.append(title({"title": record["title"], "source": record.get("titleSource")}))
        return items + self._ancestry(record)

    def _ancestry(self, record: dict[str, Any]) -> list[Item]:
        """What the header and the file's place tell of the session's parent."""
        m = self.memory
        named = string(record, "parentSession") or string(record, "branchedFrom")
        depth = record.get("rlmDepth")
        m.subagent = self.file.role == SUBAGENT or (type(depth) is int and depth > 0)
        parent = self._session_of(named) if named else None
        if parent is None and m.subagent:
            parent = self.file.parent or self._session_of(os.path.dirname(self.file.path) + ".jsonl")
        items: list[Item] = []
        if parent is not None and parent != m.native:
            m.parent = parent
            m.copying = m.created is not None
            relation = Relation.SUBAGENT if m.subagent else Relation.FORK
            items += [Fact("parent", parent), Fact("relation", relation)]
        stem = last_part(self.file.path).removesuffix(".jsonl")
        if self.file.role == SUBAGENT and not _ID.fullmatch(stem):
            items += [Fact("slug", stem), Fact("agent", stem)]
        return items

    def _session_of(self, named: str) -> str | None:
        """The id of a session that is named by its id or by the path of its file."""
        if not named.endswith(".jsonl"):
            return named_id(last_part(named)) or last_part(named)
        stem = last_part(named).removesuffix(".jsonl")
        found = named_id(stem) or (stem if _ID.fullmatch(stem) else None)
        if found is not None:
            return found
        # The file bears the name of an agent, or one that the user gave: only its own header tells.
        inside = os.path.dirname(self.file.path)
        for _ in range(2):
            inside = os.path.dirname(inside)
        if os.path.dirname(inside) == inside:
            inside = os.path.dirname(self.file.path)
        for line in (self._side.text(named, inside, HEAD) or "").split("\n")[:4]:
            try:
                one = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if string(one, "type") == "session" and string(one, "id"):
                return string(one, "id")
        return None


Handler = Callable[[PiReader, dict[str, Any]], Outcome]
"""Takes the reader and the entry, or the message of a message entry."""


def _digest(meaning: dict[str, Any]) -> str:
    """A short name for what an entry says. The fallback is for what no JSON file holds: it reads the same each time."""
    try:
        data = orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return text_digest(json.dumps(meaning, sort_keys=True, default=str))
    return blake2b(data, digest_size=8).hexdigest()


def title(record: dict[str, Any]) -> Fact:
    """The title in a slot, a header or a change of title; an empty one takes it back."""
    name = "title.user" if record.get("source") == "user" else "title.generated"
    return Fact(name, string(record, "title").strip() or None)


def bound(memory: dict[str, Any]) -> None:
    """Forget the oldest entries above the cap."""
    while len(memory) > CAP:
        del memory[next(iter(memory))]


def tool_calls(content: Any) -> bool:
    """Whether message content asks for a tool."""
    return any(string(block, "type") == "toolCall" for block in objects(content))
