"""The same questions to Outcrop and to what one would build in an afternoon: a plain FTS5 table.

An answer is the list of the best hits as `Hit`s. For session search a hit is a session; the plain tables tell the
session of their best rows, each once.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cases import Surface

from outcrop.model import CONVERSATION, TYPE_CODE, EventType
from outcrop.search.events import EventQuery, search_events
from outcrop.search.found import SessionPage, SessionSearch
from outcrop.search.sessions import search_sessions
from outcrop.store.embedded.read import EmbeddedStore
from outcrop.store.embedded.text_rows import TextRows

BEST = 10
_ROWS = 400
"""Rows of a plain table that are read to find ten sessions."""
_AT_ONCE = 500
TYPES = {
    Surface.DEFAULT: tuple(CONVERSATION),
    Surface.TYPES: tuple(kind for kind in EventType if kind is not EventType.UNKNOWN),
    Surface.SESSIONS: (
        EventType.USER_INPUT, EventType.ASSISTANT_RESPONSE, EventType.TOOL_CALL, EventType.TOOL_RESPONSE,
    ),
}  # fmt: skip


class Hit(NamedTuple):
    """A found event with its text, or a session (`text` None). `session` is a row id."""

    session: int
    text: str | None


Engine = Callable[[str, Surface], list[Hit]]


def outcrop(store: EmbeddedStore) -> Engine:
    def search(query: str, surface: Surface) -> list[Hit]:
        if surface is Surface.SESSIONS:
            page = search_sessions(store, SessionSearch(query, limit=BEST))
            assert isinstance(page, SessionPage)
            return [Hit(hit.card.id, None) for hit in page.hits]
        hits = search_events(store, EventQuery(query, TYPES[surface], BEST)).hits
        read = TextRows(store.connection()).read([hit.found.event.id for hit in hits])
        return [Hit(source.session, source.text) for source, _ in read]

    return search


def plain(store: EmbeddedStore, joined: str) -> Engine:
    """FTS5 as it comes, the words of a query `joined` by AND or OR; ranked by its BM25. OR is plain BM25."""
    table = sqlite3.connect(":memory:")
    table.execute("CREATE VIRTUAL TABLE row USING fts5(text, type UNINDEXED, session UNINDEXED)")
    table.executemany("INSERT INTO row (text, type, session) VALUES (?, ?, ?)", texts(store))

    def search(query: str, surface: Surface) -> list[Hit]:
        words = f" {joined} ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        codes = ",".join(str(TYPE_CODE[kind]) for kind in TYPES[surface])
        select = f"SELECT session, text FROM row WHERE row MATCH ? AND type IN ({codes}) ORDER BY rank LIMIT ?"
        if surface is not Surface.SESSIONS:
            return [Hit(*row) for row in table.execute(select, (words, BEST))]
        sessions = dict.fromkeys(row[0] for row in table.execute(select, (words, _ROWS)))
        return [Hit(session, None) for session in list(sessions)[:BEST]]

    return search


def texts(store: EmbeddedStore) -> Iterator[tuple[str, int, int]]:
    """(text, type code, session) of every event."""
    rows = TextRows(store.connection())
    ids = [row[0] for row in store.connection().execute("SELECT id FROM event ORDER BY session, id")]
    for at in range(0, len(ids), _AT_ONCE):
        for source, _ in rows.read(ids[at : at + _AT_ONCE]):
            yield source.text, TYPE_CODE[source.type], source.session
