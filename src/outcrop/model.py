"""The words of the history: session, turn, event, and what a harness says about them.

A harness turns native records into `Event`, `Amend` and `Fact` values; nothing here knows a file format, a store or a
wire. Times are UTC milliseconds, texts are Unicode scalars (no lone surrogates), paths are data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class EventType(StrEnum):
    """The normalized vocabulary of the MCP specification ("Event Types"), in its order."""

    USER_INPUT = "user_input"
    ASSISTANT_RESPONSE = "assistant_response"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_RESPONSE = "tool_response"
    COMPACTION = "compaction"
    SYSTEM = "system"
    RUNTIME = "runtime"
    UNKNOWN = "unknown"


EVENT_TYPES: tuple[EventType, ...] = tuple(EventType)
"""Position in this tuple is the number that the store keeps for a type."""

TYPE_CODE: dict[EventType, int] = {kind: code for code, kind in enumerate(EVENT_TYPES)}

CONVERSATION = (EventType.USER_INPUT, EventType.ASSISTANT_RESPONSE)
"""The types that a search covers when it names none (ruling 1)."""


class End(StrEnum):
    """How a turn came to its end (specification, "Completion Status"; ruling 6)."""

    FINAL = "final"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"
    EXITED = "exited"
    STOPPED = "stopped"


ENDS: tuple[End, ...] = tuple(End)
END_CODE: dict[End, int] = {end: code for code, end in enumerate(ENDS, 1)}
"""Numbers that the store keeps; 0 is "does not end a turn"."""


class Relation(StrEnum):
    """How a session came from another one."""

    SUBAGENT = "subagent"
    FORK = "fork"
    CONTINUATION = "continuation"


ENCRYPTED_PLACEHOLDER = "[encrypted reasoning omitted]"
"""Text of reasoning that is only there as ciphertext (specification, "Opening A Turn")."""


@dataclass(slots=True)
class Event:
    """One normalized event, as a harness reads it.

    `key` names the event inside its session: the native record id and the block's place where the format has ids,
    otherwise a digest of the meaning with a counter (`ids.digest`). It must not hold times, byte offsets, line numbers,
    paths or the working directory, so that re-reading, archiving and compressing give the same event.

    `session` is the native id of the session that the event belongs to; None means the file's own session.
    `origin` marks history that may stand in several sessions: `(None, key)` for keys that are unique in the whole
    harness, `(native session id, key)` for an event known to be copied from that session. None: nothing is shared.

    `time` None: the record carries no usable time and inherits one (ruling 22).
    `turn` is the native turn id, where the format groups by one. `opens` is True for a user_input that starts a turn.
    `settles` is True for an opener that proves by coming that the agent had gone idle: a turn before it whose last
    activity is a visible answer then ended with that answer.
    `ends` says that this record ends its turn. On an assistant_response FINAL makes it the final answer; on any other
    type FINAL means "the last visible answer of the turn was final".
    `partial` True: visible text that is never the final answer (a commentary phase, a superseded draft).

    `tool` is the canonical tool name; `original_tool` the spelling in the record where that differs. Responses repeat
    the name of the call that they answer. `arguments` is the parsed object, or {"_raw": text} where it does not parse.
    `model` is recorded on this very event; `generator` is the model that produced this part of the turn (ruling 5).
    `extra` keeps small recorded facts that later issues need (usage, phase, result-only paths, native ids).
    `raw` is the whole record of an `unknown` event.
    """

    key: str
    type: EventType
    text: str = ""
    time: int | None = None
    session: str | None = None
    origin: tuple[str | None, str] | None = None
    turn: str | None = None
    opens: bool = False
    settles: bool = False
    ends: End | None = None
    partial: bool = False
    tool: str | None = None
    original_tool: str | None = None
    call_id: str | None = None
    arguments: Any = None
    exit_code: int | None = None
    is_error: bool | None = None
    model: str | None = None
    generator: str | None = None
    cwd: str | None = None
    branch: str | None = None
    by_user: bool = False
    superseded: bool = False
    extra: dict[str, Any] | None = None
    raw: Any = None


@dataclass(slots=True)
class Amend:
    """A later record changes an event that was already emitted: same id, stepped `rev`.

    `changes` maps names of `Event` fields to new values (text, time, tool, exit_code, is_error, ends, superseded,
    partial, model, generator, arguments, cwd); `extra` is merged, everything else replaced. Of a key that does not
    exist nothing comes.
    """

    key: str
    changes: dict[str, Any]
    session: str | None = None


@dataclass(slots=True)
class Fact:
    """Session metadata, from wherever it stands. The newest value of a name in a file wins; None takes it back.

    Names: `title.user`, `title.generated`, `title.summary` (a recorded title: user-set beats generated beats the
    rest), `slug`, `summary`, `label` (first Codex user_message, spec's display_label tier), `version`, `created`
    (UTC ms), `parent` (native id) with `relation` (a `Relation`), `agent` (name or type of a subagent), `machine`
    (True: run by the harness for itself). Facts of a session that has no event yet wait for it.
    """

    name: str
    value: Any
    session: str | None = None


Item = Event | Amend | Fact


@dataclass(slots=True)
class Parsed:
    """What one native record came to. Every record is accounted for: it gives items, or it names a `reason`.

    `kind` is the record's own kind for the census ("assistant", "event_msg/token_count"); `reason` is a short stable
    phrase ("mirrors a response item"). `keep`: what of the record no event holds and nobody else does either; it is
    stored compressed beside the events.
    """

    kind: str
    items: Sequence[Item] = ()
    reason: str | None = None
    keep: Any = None


@dataclass(slots=True, frozen=True)
class Content:
    """The full content of one stored event, as it was recorded (after masking)."""

    text: str = ""
    arguments: Any = None
    original_tool: str | None = None
    call_id: str | None = None
    exit_code: int | None = None
    is_error: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    raw: Any = None


class Preview(NamedTuple):
    """A text cut for a summary: whitespace folded, at most `calls.PREVIEW` scalars; `truncated` tells the truth."""

    event_uid: bytes
    text: str
    truncated: bool


class SessionRow(NamedTuple):
    """A session as stored. Times are UTC ms of its own (not copied) events."""

    id: int
    uid: bytes
    harness: str
    source: str
    native: str
    title: str | None
    summary: str | None
    slug: str | None
    label: str | None
    first_prompt: str | None
    started: int
    updated: int
    completed: bool
    turn_count: int
    event_count: int
    mode: str
    parent_uid: bytes | None
    relation: str | None
    shape: int
    version: str | None
    agent: str | None


class TurnRow(NamedTuple):
    """A turn as stored, with all that a compact summary needs. `ends` None: not completed."""

    id: int
    uid: bytes
    session_id: int
    session_uid: bytes
    ordinal: int
    started: int
    updated: int
    event_count: int
    ends: End | None
    terminal_uid: bytes | None
    user_input: Preview | None
    final_response: Preview | None
    tools: tuple[str, ...]
    types: tuple[EventType, ...]


class EventRow(NamedTuple):
    """An event as stored, without its content. `id` is the arrival number."""

    id: int
    uid: bytes
    session_id: int
    turn_id: int
    ordinal: int
    type: EventType
    time: int
    inferred: bool
    tool: str | None
    model: str | None
    generator: str | None
    copy: bool
    rev: int
    origin: bytes | None
