"""The fields of the text index, and how an event becomes a document.

Each role has its own field, so that the default search needs no filter and the engine may skip. A session has a
document of its own beside, for its title and whole conversation, in fields of its own (`whole_document`). Every
number is signed: deleting by an unsigned one does nothing, silently (trap 1). The analyzers must be registered again
in each process (trap 2). A marker document says which state of which store the index shows (trap 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from tantivy import Document, Index, Query, Schema, SchemaBuilder, Searcher

from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded import analysis

SCHEMA = 4
"""Steps with every change of fields or analysis: indexes of another number are rebuilt."""
DELETED, KEPT = 2, 3
"""In place of the marker's 1: documents that say nothing (`text_merge`)."""
TOOL_HEAD = 3072
"""Characters of a tool event in `tool`; the rest is in `tool_more` (ruling 44)."""
SHORT_OUTPUT = 2048
"""Characters of a tool response whose names are still worth splitting: 2,048 cost 4 % of the CPU of all indexing."""
CONTEXT = 1000
"""Characters taken of each of the two conversational messages before."""
_FILLER = " \u0374"
"""One term that no text holds: NFC replaces this letter."""
_FILLED = dict.fromkeys(("user", "assistant", "stem"), (96, 48))
"""Fillers of a document with and without the field. BM25 measures a text against the mean length of *all* documents,
so that among tool events, which lack these fields, any message of two lines would count as endless and lose to every
"yes, go on". The stand-ins mend the mean; the longer filling keeps the length of a message from deciding."""
LONGEST_TALK = 8_000_000
"""Characters of a conversation in its whole-session document; what lies beyond is found by its events alone."""

ROLE_FIELD = {
    EventType.USER_INPUT: "user",
    EventType.ASSISTANT_RESPONSE: "assistant",
    EventType.REASONING: "reasoning",
    EventType.COMPACTION: "other",
    EventType.SYSTEM: "other",
    EventType.RUNTIME: "other",
}
"""Where the text of a type is, with positions. Tool events are in `tool`, without; unknown ones nowhere."""
TOOL_TYPES = (EventType.TOOL_CALL, EventType.TOOL_RESPONSE)
CONVERSATION_CODES = (TYPE_CODE[EventType.USER_INPUT], TYPE_CODE[EventType.ASSISTANT_RESPONSE])


@dataclass(slots=True)
class Source:
    """An event as the index needs it; `text` is what is searched, `origin` names what it may be a copy of."""

    id: int
    uid: bytes
    type: EventType
    session: int
    turn: int
    harness: str
    source: str
    time: int
    copy: bool
    rev: int
    origin: bytes
    text: str


@cache
def schema() -> Schema:
    builder = SchemaBuilder()
    for name in ("user", "assistant", "reasoning", "other"):
        builder.add_text_field(name, tokenizer_name=analysis.EXACT, index_option="position")
    for name in ("tool", "tool_more", "context"):
        builder.add_text_field(name, tokenizer_name=analysis.EXACT, index_option="freq")
    builder.add_text_field("stem", tokenizer_name=analysis.STEM, index_option="freq")
    builder.add_text_field("title", tokenizer_name=analysis.EXACT, index_option="position")
    builder.add_text_field("talk", tokenizer_name=analysis.EXACT, index_option="freq")
    for name in ("ident", "part"):
        builder.add_text_field(name, tokenizer_name=analysis.PARTS, index_option="freq")
    for name in ("harness", "source"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("id", "type", "session", "turn", "origin", "whole"):
        builder.add_integer_field(name, indexed=True, fast=True)
    for name in ("time", "rev", "copy", "order"):
        builder.add_integer_field(name, fast=True)
    builder.add_integer_field("marker", indexed=True)
    builder.add_text_field("state", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def open_index(path: Path, create: bool = False) -> Index:
    """The index in `path`, with our analyzers. Raises ValueError where there is none of ours or it cannot be read."""
    index = Index(schema(), path=str(path)) if create else Index.open(str(path))
    if index.schema != schema():  # asked for fields that it does not have, the engine would panic
        raise ValueError("the index has other fields")
    index.register_tokenizer(analysis.EXACT, analysis.exact())
    index.register_tokenizer(analysis.STEM, analysis.stem())
    index.register_tokenizer(analysis.PARTS, analysis.parts())
    return index


def signed(uid: bytes) -> int:
    """The first eight bytes of an id as a signed number that keeps their order."""
    return int.from_bytes(uid[:8], "big") - (1 << 63)


def document(event: Source, before: list[str]) -> tuple[Document, int]:
    """The document of an event, and its bytes; `before`: the two conversational texts before it, the nearer last."""
    text = analysis.normal(event.text)
    fields: dict[str, Any] = {
        "id": event.id,
        "type": TYPE_CODE[event.type],
        "session": event.session,
        "turn": event.turn,
        "harness": event.harness,
        "source": event.source,
        "time": event.time,
        "rev": event.rev,
        "copy": int(event.copy),
        "origin": signed(event.origin),
        "order": signed(event.uid),
    }
    if event.type in TOOL_TYPES:
        fields["tool"] = head = text[:TOOL_HEAD]
        if len(text) > TOOL_HEAD:
            fields["tool_more"] = text[TOOL_HEAD:]
        if event.type is EventType.TOOL_CALL or len(text) <= SHORT_OUTPUT or analysis.is_dense(head):
            fields["part"] = analysis.name_terms(head)
    elif event.type in ROLE_FIELD:
        fields[ROLE_FIELD[event.type]] = text
        if fields["type"] in CONVERSATION_CODES:
            fields["stem"] = text
            fields["ident"] = analysis.name_terms(text)
            fields["context"] = "\n".join(analysis.normal(part[:CONTEXT]) for part in before)
        else:
            fields["part"] = analysis.name_terms(text)
    for name, (present, absent) in _FILLED.items():
        fields[name] = fields[name] + _FILLER * present if name in fields else _FILLER * absent
    return _weighed(fields)


@dataclass(slots=True, frozen=True)
class WholeSession:
    """A session as the index needs it. `texts` are its prompts and answers in order; `opening`: see `text_rows`."""

    id: int
    title: str
    texts: list[str]
    opening: bytes


def whole_document(session: WholeSession) -> tuple[Document, int]:
    """The document of a whole session, for session search alone, and its bytes.

    Events are found as if it were not there.
    """
    fields: dict[str, Any] = {"whole": session.id}
    if session.title:
        fields["title"] = analysis.normal(session.title)
    if session.texts:
        fields["talk"] = [analysis.normal(text) for text in session.texts]
    for name, (_, absent) in _FILLED.items():
        fields[name] = _FILLER * absent
    return _weighed(fields)


def _weighed(fields: dict[str, Any]) -> tuple[Document, int]:
    """A document, and the bytes of its texts: so much it holds until the engine has taken it in."""
    texts = [value for value in fields.values() if isinstance(value, str)] + fields.get("talk", [])
    size = sum(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return Document.from_dict(fields, schema()), size


@dataclass(slots=True, frozen=True)
class Marker:
    """Which state of which store an index shows."""

    epoch: str
    schema: int
    generation: int

    def document(self) -> Document:
        state = orjson.dumps([self.epoch, self.schema, self.generation]).decode()
        return Document.from_dict({"marker": 1, "state": state}, schema())


def empty_document(kind: int) -> Document:
    """A document without any text, DELETED or KEPT."""
    return Document.from_dict({"marker": kind}, schema())


def read_marker(searcher: Searcher) -> Marker | None:
    """The marker of this very state of the index, or None where it is missing or says nothing."""
    hits = searcher.search(Query.term_query(schema(), "marker", 1), 1, count=False).hits
    if not hits:
        return None
    try:
        epoch, number, generation = orjson.loads(searcher.doc(hits[0][1])["state"][0])
        return Marker(str(epoch), int(number), int(generation))
    except (ValueError, TypeError, LookupError):
        return None
