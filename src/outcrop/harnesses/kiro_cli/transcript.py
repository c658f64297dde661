"""Kiro's transcript `<id>.jsonl` and its sidecar `<id>.json`.

The transcript tells what was said; folder, title, model and how each turn ended stand in the sidecar, which is written
later. So the transcript is read with the sidecar beside it, and a sidecar that comes after brings what it adds to the
latest turns. Only prompts have a time, in seconds.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from outcrop.harnesses import Side, SourceFile, jsonl
from outcrop.harnesses.content import base64_size
from outcrop.harnesses.documents import FactsReader
from outcrop.harnesses.json_values import digest, object_of, objects, string
from outcrop.harnesses.kiro_cli.talk import Talk, blocks, model_of, tool_of
from outcrop.harnesses.moments import time_ms
from outcrop.model import Amend, End, Event, EventType, Fact, Item, Parsed, Relation

_SIDECAR_LIMIT = 8 << 20
_TRANSCRIPT_LIMIT = 32 << 20
_ENDS = {
    "UserTurnEnd": End.FINAL,
    "Cancelled": End.CANCELLED,
    "ToolUseRejected": End.CANCELLED,
    "Error": End.CRASHED,
    "DidNotRun": End.STOPPED,
}
_LATEST = 2
"""Turns at the end of a sidecar that it may still tell something new of."""


class Ends:
    """How the turns ended, by the sidecar: from ids of messages to what the sidecar says of their turn."""

    def __init__(self, document: Any) -> None:
        state = object_of(document, "session_state")
        metadata = object_of(state, "conversation_metadata")
        self.turns = objects(metadata.get("user_turn_metadatas"))
        self.model = model_of(object_of(state, "rts_model_state"))
        self.cwd = string(document, "cwd") or None
        self._turn: dict[str, dict[str, Any]] = {}
        self._last: set[str] = set()
        for turn in self.turns:
            ids = [id for id in turn.get("message_ids") or () if isinstance(id, str)] if _listed(turn) else []
            self._turn.update(dict.fromkeys(ids, turn))
            self._last.update(ids[-1:])

    def of(self, id: str) -> dict[str, Any] | None:
        return self._turn.get(id)

    def last(self, id: str) -> bool:
        """Whether a message is the last one of its turn."""
        return id in self._last


class TranscriptReader:
    """Reads one transcript."""

    def __init__(self, file: SourceFile, state: dict[str, Any] | None, side: Side, ends: Ends | None = None) -> None:
        known = state or {}
        self._file = file
        self._talk = Talk.of(known.get("talk"))
        self.prompt: str = known.get("prompt", "")
        """Id of the message that opened the turn."""
        self._ends = ends or Ends(_beside(file, side, ".json", _SIDECAR_LIMIT))

    @property
    def session(self) -> str | None:
        return self._file.native

    def state(self) -> dict[str, Any]:
        return {"talk": self._talk.state(), "prompt": self.prompt}

    def feed(self, record: dict[str, Any]) -> Parsed:
        kind, data = string(record, "kind"), object_of(record, "data")
        id = string(data, "message_id")
        items: list[Item] = []
        keep: Any = None
        if kind == "Prompt":
            items = self._user(data, id, string(data, "timestamp") or object_of(data, "meta").get("timestamp"))
            context = string(object_of(data, "meta"), "additional_context")
            keep = {"additional_context": context} if context else None
        elif kind == "AssistantMessage":
            items = self._assistant(data, id)
        elif kind == "ToolResults":
            items = self._user(data, id, None)
        elif kind == "Compaction":
            items = [self._talk.compacted(string(data, "summary"))]
            self._talk.begin_behind(string(data, "summary"))
        elif kind == "Clear":
            items = [Event(self._talk.keys.key("clear"), EventType.SYSTEM, "conversation cleared", by_user=True)]
        else:
            items = [self._talk.unknown(digest(record), record)]
        for item in items:
            if isinstance(item, Event):
                item.cwd = self._ends.cwd
        self._end(items, id)
        return Parsed(kind or "?", items, None if items else "says nothing", keep)

    def _user(self, data: dict[str, Any], id: str, stamp: Any) -> list[Item]:
        """A prompt, results, or both: words that came with results are what the user typed instead of waiting."""
        time = time_ms(stamp)
        found: list[Item] = []
        said: list[str] = []
        seen: list[str] = []
        named = object_of(data, "results")
        for block in blocks(data):
            kind, value = string(block, "kind"), block.get("data")
            if kind == "text" and isinstance(value, str):
                said.append(value)
            elif kind == "image":
                seen.append(_image(value))
            elif kind == "toolResult":
                call = string(value, "toolUseId")
                content = [one.get("data") for one in objects(object_of(block, "data").get("content"))]
                name = tool_of(named.get(call))
                found.append(self._talk.result(call, string(value, "status"), content, name))
            else:
                found.append(self._talk.unknown(digest(block), block))
        text = "\n".join(filter(None, said))
        if text or seen:
            if found:
                found.append(self._talk.cancelled())
            self.prompt = id
            found.append(self._talk.prompt(text, seen))
        for item in found:
            if isinstance(item, Event):
                item.time = time
        return found

    def _assistant(self, data: dict[str, Any], id: str) -> list[Item]:
        found: list[Event] = []
        answer: Event | None = None
        called = False
        placed = self._placed(id)
        for block in blocks(data):
            kind, value = string(block, "kind"), block.get("data")
            if kind == "text":
                if isinstance(value, str) and value:
                    answer = self._talk.said(EventType.ASSISTANT_RESPONSE, value, id)
                    found.append(answer)
            elif kind in ("thinking", "redactedThinking"):
                found.append(self._talk.thought(value, id))
            elif kind == "toolUse":
                called = True
                name = string(value, "name")
                given = value.get("input") if isinstance(value, dict) else None
                found.append(self._talk.call(string(value, "toolUseId"), name, given))
            else:
                found.append(self._talk.unknown(digest(block), block))
        for event in found:
            event.generator = self._ends.model if event.type is not EventType.UNKNOWN else None
        if answer is not None and not placed:
            # The program itself put it there after the turn was cut short, to keep roles alternating.
            answer.type, answer.generator = EventType.SYSTEM, None
        elif answer is not None and not called:
            answer.ends = End.FINAL
        return [*found]

    def _placed(self, id: str) -> bool:
        """Whether a message of the model is one, as far as the sidecar knows: those of a cut turn are listed."""
        turn = self._ends.of(self.prompt)
        cut = turn is not None and _ENDS.get(string(turn, "end_reason"), End.FINAL) is not End.FINAL
        return not id or not cut or self._ends.of(id) is not None

    def _end(self, items: list[Item], id: str) -> None:
        """How the turn ended, and what it cost, on the last event of its last message."""
        turn = self._ends.of(id)
        events = [item for item in items if isinstance(item, Event)]
        if turn is None or not events or not self._ends.last(id):
            return
        ends = _ENDS.get(string(turn, "end_reason"))
        if ends is not None:
            for event in events:
                event.ends = None
            events[-1].ends = ends
        events[-1].extra = {**(events[-1].extra or {}), **_costs(turn)} or None


class SidecarReader(FactsReader):
    """Reads one sidecar: what it tells of the session, and of the end of its latest turns where these stand already."""

    kind = "sidecar"

    def __init__(self, file: SourceFile, side: Side) -> None:
        super().__init__(file)
        self._side = side

    def facts(self, record: dict[str, Any]) -> list[Item]:
        items: list[Item] = []
        title = string(record, "title").strip()
        if title:
            items.append(Fact("title.generated", title))
        # Of a conversation that was written out of the database it is the moment of that.
        created = time_ms(record.get("created_at"))
        if created is not None and not record.get("exported_from_v1"):
            items.append(Fact("created", created))
        if parent := string(record, "parent_session_id"):
            items += [Fact("parent", parent), Fact("relation", Relation.SUBAGENT)]
            if agent := string(object_of(record, "session_state"), "agent_name"):
                items.append(Fact("agent", agent))
        return items + self._amends(record)

    def _amends(self, record: dict[str, Any]) -> list[Item]:
        ends = Ends(record)
        text = self._side.text(*_place(self.file, ".jsonl"), _TRANSCRIPT_LIMIT) if ends.turns else None
        if not text:
            return []
        latest = ends.turns[-_LATEST:]
        names = ("ends", "generator") if len(ends.turns) == 1 else ("ends",)  # a model is known of what comes, not was
        bare = TranscriptReader(self.file, None, self._side, Ends(None))
        told = TranscriptReader(self.file, None, self._side, ends)
        found: list[Item] = []
        for line in text.encode("utf-8", "replace").split(b"\n"):
            for one in jsonl.records(line)[0]:
                pairs = zip(_events(bare.feed(one)), _events(told.feed(one)), strict=True)
                turn = ends.of(string(object_of(one, "data"), "message_id")) or ends.of(told.prompt)
                if turn is None or not any(turn is known for known in latest):
                    continue
                for old, new in pairs:
                    if changes := _changes(old, new, names, _ENDS.get(string(turn, "end_reason"))):
                        found.append(Amend(old.key, changes))
        return found


def _changes(old: Event, new: Event, names: tuple[str, ...], ends: End | None) -> dict[str, Any]:
    """What a sidecar changes of an event. A type cannot change: what is no answer becomes one that does not count."""
    if old.type is not new.type:
        return {"partial": True, "ends": ends}
    changes = {name: getattr(new, name) for name in names if getattr(new, name) != getattr(old, name)}
    if new.extra != old.extra and new.extra:
        changes["extra"] = new.extra
    return changes


def _events(parsed: Parsed) -> list[Event]:
    return [item for item in parsed.items if isinstance(item, Event)]


def _listed(turn: dict[str, Any]) -> bool:
    return isinstance(turn.get("message_ids"), list)


def _costs(turn: dict[str, Any]) -> dict[str, Any]:
    """Credits and, where they are counted, tokens of a turn."""
    found: dict[str, Any] = {}
    spent = [one.get("value") for one in objects(turn.get("metering_usage")) if one.get("unit") == "credit"]
    numbers = [value for value in spent if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers:
        found["credits"] = sum(numbers)
    counts = {"input": turn.get("input_token_count"), "output": turn.get("output_token_count")}
    usage = {name: value for name, value in counts.items() if type(value) is int and value > 0}
    return {**found, "usage": usage} if usage else found


def _image(value: Any) -> str:
    source = object_of(value, "source").get("bytes")
    size = f"{base64_size(source)} bytes" if isinstance(source, str) else None
    size = f"{len(source)} bytes" if isinstance(source, list) else size
    kind = f"image/{string(value, 'format') or '?'}"
    return f"[image {', '.join(filter(None, (kind, size)))}]"


def _place(file: SourceFile, ending: str) -> tuple[str, str]:
    path = PurePath(file.path)
    return str(path.with_suffix(ending)), str(path.parent)


def _beside(file: SourceFile, side: Side, ending: str, limit: int) -> Any:
    text = side.text(*_place(file, ending), limit)
    try:
        return None if text is None else jsonl.document(text.encode("utf-8", "replace"))
    except ValueError:
        return None  # it is being written
