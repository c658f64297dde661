"""The reader of one OpenCode session, from whichever of its stores: finds each record's turn and makes its events.

A turn is a prompt and all messages that name it as their parent. A user message without words of the user (a
compaction, its "continue", a command run by hand) stays in the turn before it. Keys are the ids of parts; `origin` is
the meaning at its millisecond, because forks copy history under new ids with the old times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from outcrop.harnesses.charm import CharmReader
from outcrop.harnesses.opencode import entries, parts, steps
from outcrop.harnesses.opencode.records import mapping, text, time_ms
from outcrop.harnesses.outcomes import GENERATED, Outcome
from outcrop.ids import text_digest
from outcrop.model import End, Event, EventType, Fact, Item, Parsed, Relation

TORN = "not a whole JSON document"
REMEMBERED = 64
"""Prompts whose turn is remembered; later messages name the latest ones."""

_NO_TITLE = re.compile(r"^(?:New session|Child session) - \d{4}-\d\d-\d\dT")
_SUBAGENT = re.compile(r"\(@([^()]+) subagent\)$")


class OpenCodeReader:
    """Reads one session; `native` is its id."""

    def __init__(self, native: str | None, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._native = native or known.get("native")
        self._charm: CharmReader | None = CharmReader(native, known["charm"]) if "charm" in known else None
        self.cwd: str | None = known.get("cwd")
        self.turn: str | None = known.get("turn")
        """The turn that is running or was the last one."""
        self.idles: bool = known.get("idles", False)
        self.busy: bool = known.get("busy", False)
        self.ended: bool = known.get("ended", False)
        """The latest prompt's turn came to an end."""
        self._message: str | None = known.get("message")
        self._here: str | None = known.get("here")
        self._place: int = known.get("place", 0)
        self._asked: bool = known.get("asked", False)
        self._turns: dict[str, str | None] = dict(known.get("turns", {}))
        self._shells: list[str] = list(known.get("shells", ()))
        self.of: dict[str, Any] = dict(known.get("of", {}))
        self.reverted = False

    @property
    def session(self) -> str | None:
        return self._native

    def state(self) -> dict[str, Any]:
        if self._charm is not None:
            return {"native": self._native, "charm": self._charm.state()}
        return {
            "native": self._native, "cwd": self.cwd, "turn": self.turn, "idles": self.idles, "busy": self.busy,
            "ended": self.ended,
            "message": self._message, "here": self._here, "place": self._place, "asked": self._asked,
            "turns": dict(self._turns), "shells": list(self._shells), "of": dict(self.of),
        }  # fmt: skip

    def feed(self, record: dict[str, Any]) -> Parsed:
        shape = record.get("record")
        if isinstance(shape, str) and shape.startswith("charm/"):
            if self._charm is None:
                self._charm = CharmReader(self._native, None)
            parsed = self._charm.feed(record)
            self._native = self._native or self._charm.session
            return parsed
        if shape == "session":
            items = self._session(record)
            return Parsed("session", items, None if items else "names the session")
        handler = _SHAPES.get(shape) if isinstance(shape, str) else None
        if handler is None:
            return Parsed("?", reason="no record of OpenCode", keep=record)
        data, id = record.get("data"), text(record, "id")
        kind = _kind(str(shape), record, mapping(data))
        if not isinstance(data, dict) or not id:
            return Parsed(kind, reason=TORN, keep=record)
        self.reverted = record.get("reverted") is True
        outcome, keep = handler(self, record, id, data)
        if outcome is None:
            outcome = [self.event(f"unknown:{id}", EventType.UNKNOWN, "", self.created(), raw=data)]
        if isinstance(outcome, str):
            return Parsed(kind, reason=outcome, keep=keep)
        return Parsed(kind, outcome, None if outcome else "says nothing", keep)

    # What the handlers make events with

    def event(self, key: str, kind: EventType, said: str, time: int | None, **more: Any) -> Event:
        """An event of the present message, in its turn."""
        model = self.of.get("model") if kind in GENERATED else None
        meaning = [kind.value, self.of.get("created"), self._place, said, more.get("tool"), more.get("arguments")]
        self._place += 1
        event = Event(key, kind, said, time, turn=self._here, cwd=self.of.get("cwd") or self.cwd, **more)
        event.origin = (None, text_digest(json.dumps(meaning, sort_keys=True, default=str)))
        event.generator = model
        event.model = model if kind is not EventType.TOOL_RESPONSE else None
        event.superseded = self.reverted
        event.by_user = event.by_user or (self.of.get("parent") in self._shells and kind in GENERATED)
        return event

    def ask(self, key: str, said: str, **more: Any) -> Event:
        """Words of the user. The first ones of a message open its turn."""
        event = self.event(key, EventType.USER_INPUT, said, self.created(), **more)
        event.opens, self._asked = not self._asked, True
        return event

    def created(self) -> int | None:
        return time_ms(self.of.get("created"))

    def enter(self, of: dict[str, Any], turn: str | None) -> None:
        """Begin a message: what it is, and the turn that it belongs to."""
        self._message, self.of, self._here = of.get("id"), of, turn
        self._place, self._asked = 0, False

    # Records

    def _session(self, record: dict[str, Any]) -> list[Item]:
        self._native = self._native or text(record, "id") or None
        self.cwd = text(record, "directory") or None
        self.idles = record.get("idles") is True
        found: list[Item] = [
            Fact(name, record[name]) for name in ("version", "slug") if text(record, name)
        ]  # fmt: skip
        created = time_ms(record.get("created"))
        if created is not None:
            found.append(Fact("created", created))
        title = text(record, "title").strip()
        if title and not _NO_TITLE.match(title):
            found.append(Fact("title.generated", title))
        parent, fork = text(record, "parent"), text(record, "fork")
        if parent or fork:
            found += [Fact("parent", parent or fork), Fact("relation", Relation.SUBAGENT if parent else Relation.FORK)]
        agent = _SUBAGENT.search(title)
        if agent:
            found.append(Fact("agent", agent[1]))
        return found

    def _join(self, of: dict[str, Any]) -> None:
        """Enter the message of a record, unless it is the present one."""
        id, parent = of.get("id"), of.get("parent")
        if id == self._message or not isinstance(id, str):
            return
        if of.get("role") == "user":
            if of.get("prompt"):
                self.turn, self.ended = id, False
            self._turns[id] = turn = self.turn
            if of.get("shell"):
                self._shells = [*self._shells[-REMEMBERED:], id]
            while len(self._turns) > REMEMBERED:
                del self._turns[next(iter(self._turns))]
        else:
            turn = self._turns.get(parent, self.turn) if isinstance(parent, str) else self.turn
        self.enter(of, turn)

    def _part(self, record: dict[str, Any], id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
        of = mapping(record.get("of"))
        self._join(of)
        if not of.get("role"):
            return "its message is gone", data
        handler = parts.HANDLERS.get(text(data, "type"))
        return handler(self, id, data) if handler is not None else (None, None)

    def _end(self, record: dict[str, Any], id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
        """A message, after its parts: how the step of the model ended, and what it cost."""
        of = mapping(record.get("of"))
        self._join(of)
        if of.get("role") == "user":
            if of.get("prompt") and not self._asked:
                return [self.ask(id, "")], None
            return "its parts hold what it says", None
        if of.get("role") != "assistant":
            return None, None
        time = mapping(data.get("time"))
        error = mapping(data.get("error"))
        completed = time_ms(time.get("completed"))
        if not error and completed is None and not text(data, "finish"):
            return "not finished yet", None
        event = self.event(id, EventType.RUNTIME, steps.error_text(error), completed or self.created())
        event.extra = steps.told(data)
        event.ends = self._how(of, data, completed, error)
        self.ended = self.ended or event.ends is not None
        return [event], None

    def _how(
        self, of: dict[str, Any], data: dict[str, Any], completed: int | None, error: dict[str, Any]
    ) -> End | None:
        if error:
            return steps.failed(error)
        finish = text(data, "finish")
        if completed is None or of.get("summary"):
            return None
        if of.get("parent") in self._shells:
            # The user ran a command: a turn that had ended before has still ended.
            return End.FINAL if self.ended else None
        if not finish:
            # The first versions did not record why a step ended: one that called tools went on.
            return None if of.get("tools") else End.FINAL
        return steps.finished(finish)

    def _entry(self, record: dict[str, Any], id: str, data: dict[str, Any]) -> tuple[Outcome, Any]:
        kind = text(record, "type")
        created = time_ms(mapping(data.get("time")).get("created"))
        model = mapping(data.get("model"))
        of = {
            "id": id,
            "role": kind,
            "model": (text(model, "id") or text(model, "modelID") or None) if kind == "assistant" else None,
            "created": created if created is not None else time_ms(record.get("created")),
        }
        if kind == "user" and not self.busy:
            self.turn = id
        self.enter(of, self.turn)
        self._asked = kind == "user" and self.busy
        handler = entries.HANDLERS.get(kind)
        return handler(self, id, data) if handler is not None else (None, None)


def _kind(shape: str, record: dict[str, Any], data: dict[str, Any]) -> str:
    """The census name: `part/text`, `message/user`, `entry/idle`."""
    name = {"part": text(data, "type"), "message": text(data, "role")}.get(shape, text(record, "type"))
    return f"{shape}/{name or '?'}"


_SHAPES: dict[str, Callable[[OpenCodeReader, dict[str, Any], str, dict[str, Any]], tuple[Outcome, Any]]] = {
    "part": OpenCodeReader._part,
    "message": OpenCodeReader._end,
    "entry": OpenCodeReader._entry,
}
