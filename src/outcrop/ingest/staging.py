"""Staging: what one batch of records came to, before it is written.

Here a record's events get their ids (of the unmasked record), their times (ruling 22) and their flags, secrets are
masked, later records of the batch amend earlier ones, and every record is counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from outcrop import ids
from outcrop.harnesses import Harness, Reader
from outcrop.harnesses.content import UNKNOWN_BLOCKS
from outcrop.harnesses.jsonl import scalars
from outcrop.harnesses.toolnames import Category, category
from outcrop.ingest.drift import Strange, strange_blocks
from outcrop.ingest.redaction import Masker
from outcrop.model import Amend, Event, EventType, Fact, Parsed
from outcrop.store.embedded import rows

UNKNOWN = "unknown"
FAILED = "failed"
REPEATED = "repeats an event that is stored"
_TOOLS = (EventType.TOOL_CALL, EventType.TOOL_RESPONSE)
_TEXT_FIELDS = ("text", "arguments", "extra", "raw", "tool", "original_tool", "cwd", "branch")
_LOWEST_TIME = 946_684_800_000
_HIGHEST_TIME = 253_402_300_799_999
"""The years 2000 to 9999: no agent ran before, and RFC 3339 cannot write later ones. Other times are no times."""


@dataclass(slots=True)
class Staged:
    """An event ready to be written."""

    event: Event
    uid: bytes
    native: str
    time: int
    flags: int
    origin: bytes | None


@dataclass(slots=True)
class Kept:
    """A record, or a part of one, that no event holds: masked JSON, and the hash of the unmasked."""

    native: str | None
    offset: int
    line: int
    reason: str
    hash: bytes
    origin: str | None
    data: bytes


@dataclass(slots=True)
class Batch:
    """The outcome of some consecutive records of a file."""

    events: dict[bytes, Staged] = field(default_factory=dict)
    amends: list[tuple[str, bytes, dict[str, Any]]] = field(default_factory=list)
    facts: list[tuple[str, str, Any]] = field(default_factory=list)
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    record_events: list[tuple[tuple[str, str, str], list[bytes]]] = field(default_factory=list)
    problems: list[tuple[int, int, str, str]] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    first_time: int | None = None
    """The first recorded time, where the events before it had to guess."""
    records: int = 0
    bytes: int = 0

    @property
    def empty(self) -> bool:
        return not (self.events or self.amends or self.facts or self.counts or self.problems)


class Stager:
    """Folds the records of one file into batches. `state` carries everything over to the next run."""

    def __init__(
        self, harness: Harness, source: str, reader: Reader, state: dict[str, Any], masker: Masker, file_time: int,
        fallback: str,
    ) -> None:  # fmt: skip
        self._harness = harness
        self._group = harness.group(source)
        self._reader = reader
        self._masker = masker
        self._file_time = file_time
        self._fallback = fallback
        self._last: int | None = state.get("last")
        self._guessed: bool = state.get("guessed", False)
        self._pinned: str | None = state.get("session")
        self._version: str = state.get("version", "")
        self._uids: dict[str, bytes] = {}
        self._waiting: list[Staged] = []
        self._early: list[tuple[Parsed, int, int, bool, list[Strange]]] = []
        self.first_time: int | None = state.get("first")
        self.batch = Batch()

    def state(self) -> dict[str, Any]:
        """Plain JSON to go on from."""
        return {
            "reader": self._reader.state(),
            "last": self._last,
            "guessed": self._guessed,
            "session": self._pinned,
            "version": self._version,
            "first": self.first_time,
        }

    @property
    def ready(self) -> bool:
        """Whether the file's own session is known, or must go by the file's name because events came without it."""
        return self._pinned is not None or any(
            isinstance(item, Event) for parsed, *_ in self._early for item in parsed.items
        )

    def take(self) -> Batch:
        """The batch so far; a new one is begun. Records that wait for the session's id take the file's name for it."""
        if self._early:
            self._pin(self._reader.session or self._fallback)
        for staged in self._waiting:
            staged.flags |= rows.GUESSED | rows.INFERRED
            self._guessed = True
        self._waiting = []
        batch, self.batch = self.batch, Batch()
        return batch

    def feed(self, record: dict[str, Any], raw: bytes, offset: int, line: int) -> None:
        """Take the next record."""
        self.batch.records += 1
        masked = self._masker.needed(raw)
        UNKNOWN_BLOCKS.clear()
        try:
            parsed = self._reader.feed(record)
            strange = strange_blocks(parsed, record, UNKNOWN_BLOCKS)
        except Exception as error:
            # One broken record must not stop a file: it is set aside with its reason and kept.
            self._fail(record, offset, line, f"{type(error).__name__} in the {self._harness.name} adapter", str(error))
            return
        if self._pinned is None:
            if (session := self._reader.session) is None:
                self._early.append((parsed, offset, line, masked, strange))
                return
            self._pin(session)
        self._stage(parsed, offset, line, masked, strange)

    def stub(self, size: int, head: bytes, offset: int, line: int) -> None:
        """A record too large to read becomes an event that says so and holds its beginning."""
        self.batch.records += 1
        text = head.decode("utf-8", "replace")
        key = f"oversize:{ids.text_digest(text)}:{size}"
        event = Event(
            key,
            EventType.UNKNOWN,
            text=self._masker.mask(text),
            extra={"oversize": size, "offset": offset, "line": line},
        )
        self.problem(offset, line, "record too large", f"{size} bytes; its first {len(head)} are kept")
        self._stage_or_wait(Parsed("oversize", [event]), offset, line)

    def fault(self, data: bytes, offset: int, line: int, reason: str, sample: str) -> None:
        """A line, or a piece of one, that is no record."""
        self.problem(offset, line, reason, sample)
        self.batch.counts[self._version, "malformed", FAILED] += 1
        text = self._masker.mask(data.decode("utf-8", "replace"))
        self._keep(reason, data, rows.encode_content(text.strip("\0 \r\n")), offset, line, None)

    def problem(self, offset: int, line: int, reason: str, detail: str) -> None:
        self.batch.problems.append((offset, line, reason, self._masker.mask(detail)[:200]))

    # Inside

    def _fail(self, record: dict[str, Any], offset: int, line: int, reason: str, detail: str) -> None:
        self.problem(offset, line, reason, detail)
        self.batch.counts[self._version, str(record.get("type", "?"))[:60], FAILED] += 1
        self._keep(
            reason,
            rows.encode_content(record),
            rows.encode_content(self._masker.mask_value(record)),
            offset,
            line,
            None,
        )

    def _pin(self, session: str) -> None:
        self._pinned = session
        early, self._early = self._early, []
        for parsed, offset, line, masked, strange in early:
            self._stage(parsed, offset, line, masked, strange)

    def _stage_or_wait(self, parsed: Parsed, offset: int, line: int) -> None:
        if self._pinned is None:
            self._early.append((parsed, offset, line, False, []))
        else:
            self._stage(parsed, offset, line, False, [])

    def _uid(self, native: str) -> bytes:
        uid = self._uids.get(native)
        if uid is None:
            uid = self._uids[native] = ids.session_uid(self._harness.name, self._group, native)
        return uid

    def _stage(self, parsed: Parsed, offset: int, line: int, masked: bool, strange: list[Strange]) -> None:
        batch = self.batch
        outcome = parsed.reason or "fact"
        made: list[bytes] = []
        key: str | None = None
        for item in parsed.items:
            if isinstance(item, Event):
                outcome = UNKNOWN if item.type is EventType.UNKNOWN and outcome != "event" else "event"
                key = key or item.key
                made.append(self._event(item, masked))
            elif isinstance(item, Fact):
                if item.name == "version" and isinstance(item.value, str):
                    self._version = item.value
                native = item.session or self._pinned or ""
                batch.facts.append((native, item.name, self._masker.mask_value(item.value) if masked else item.value))
            else:
                outcome = "event" if outcome == "fact" or parsed.reason is None else outcome
                self._amend(item, masked)
        # A record with a strange block is told under the name of that: of several kinds each is.
        blocks = dict.fromkeys(f"{parsed.kind}/block:{one.type}" for one in strange)
        for kind, became in [(block, UNKNOWN) for block in blocks] or [(parsed.kind, outcome)]:
            count = (self._version, kind, became)
            if made:
                batch.record_events.append((count, made))
            else:
                batch.counts[count] += 1
        if parsed.keep is not None:
            self._keep_part(parsed.reason or "part of a record", parsed.keep, masked, offset, line, key)
        for one in strange:
            if not one.held:
                self._keep_part("unknown block", one.block, masked, offset, line, key)

    def _event(self, event: Event, masked: bool) -> bytes:
        batch = self.batch
        native = event.session or self._pinned or ""
        session = self._uid(native)
        uid = ids.event_uid(session, event.key)
        if uid in batch.events:
            return uid
        origin = None
        if event.origin is not None:
            home, key = event.origin
            origin = ids.origin_uid(self._harness.name, key) if home is None else ids.event_uid(self._uid(home), key)
        flags = 0
        time = event.time
        if time is not None and _LOWEST_TIME <= time <= _HIGHEST_TIME:
            self._last = time
            if self.first_time is None:
                self.first_time = time
            if self._waiting or self._guessed:
                self._timed(time)
        elif self._last is not None:
            time, flags = self._last, rows.INFERRED
        else:
            time = self._file_time
        if event.opens:
            flags |= rows.OPENS
        if event.settles:
            flags |= rows.SETTLES
        if event.type in _TOOLS and event.tool is not None:
            kind = category(event.tool, event.original_tool)
            if kind is Category.WEB:
                flags |= rows.WEB
            elif kind is Category.OWN:
                flags |= rows.OWN
        if event.is_error:
            flags |= rows.ERROR
        if event.superseded:
            flags |= rows.SUPERSEDED
        if event.partial:
            flags |= rows.PARTIAL
        if event.by_user:
            flags |= rows.BY_USER
        if not event.text.isascii():
            event.text = scalars(event.text)
        if masked:
            self._mask(event)
        staged = batch.events[uid] = Staged(event, uid, native, time, flags, origin)
        if self._last is None:
            self._waiting.append(staged)
        return uid

    def _timed(self, time: int) -> None:
        """The first recorded time: all before it take it."""
        for staged in self._waiting:
            staged.time = time
            staged.flags |= rows.INFERRED
        self._waiting = []
        if self._guessed:
            self._guessed = False
            self.batch.first_time = time

    def _amend(self, amend: Amend, masked: bool) -> None:
        native = amend.session or self._pinned or ""
        uid = ids.event_uid(self._uid(native), amend.key)
        changes = amend.changes
        if masked:
            changes = {
                name: self._masker.mask_value(value) if name in _TEXT_FIELDS else value
                for name, value in changes.items()
            }
        staged = self.batch.events.get(uid)
        if staged is None:
            self.batch.amends.append((native, uid, changes))
        else:
            apply_changes(staged, changes)

    def _mask(self, event: Event) -> None:
        for name in _TEXT_FIELDS:
            value = getattr(event, name)
            if value:
                setattr(event, name, self._masker.mask_value(value))

    def _keep_part(self, reason: str, part: Any, masked: bool, offset: int, line: int, key: str | None) -> None:
        plain = rows.encode_content(part)
        data = rows.encode_content(self._masker.mask_value(part)) if masked else plain
        self._keep(reason, plain, data, offset, line, key)

    def _keep(self, reason: str, plain: bytes, data: bytes, offset: int, line: int, key: str | None) -> None:
        hash = blake2b(plain, digest_size=ids.SIZE).digest()
        self.batch.kept.append(Kept(self._pinned, offset, line, reason, hash, key, data))


_FLAG_FIELDS = {
    "superseded": rows.SUPERSEDED,
    "partial": rows.PARTIAL,
    "is_error": rows.ERROR,
}


def flag_changes(flags: int, changes: dict[str, Any]) -> int:
    """The flags after a change of the fields that they mirror."""
    for name, bit in _FLAG_FIELDS.items():
        if name in changes:
            flags = flags | bit if changes[name] else flags & ~bit
    return flags


def apply_changes(staged: Staged, changes: dict[str, Any]) -> None:
    """Amend an event that is not written yet."""
    event = staged.event
    for name, value in changes.items():
        if name == "extra":
            event.extra = {**(event.extra or {}), **value}
        elif name == "time":
            if value is not None:
                event.time = staged.time = value
                staged.flags &= ~(rows.INFERRED | rows.GUESSED)
        else:
            setattr(event, name, value)
    staged.flags = flag_changes(staged.flags, changes)


def content_of(event: Event) -> dict[str, Any]:
    """The non-empty fields that a block keeps of an event (`model.Content`)."""
    content: dict[str, Any] = {}
    if event.text:
        content["text"] = event.text
    if event.arguments is not None:
        content["arguments"] = event.arguments
    if event.original_tool is not None:
        content["original_tool"] = event.original_tool
    if event.call_id is not None:
        content["call_id"] = event.call_id
    if event.exit_code is not None:
        content["exit_code"] = event.exit_code
    if event.is_error is not None:
        content["is_error"] = event.is_error
    if event.extra:
        content["extra"] = event.extra
    if event.raw is not None:
        content["raw"] = event.raw
    return content


def searchable(event: Event) -> bool:
    return bool(event.text) or event.type is EventType.TOOL_CALL
