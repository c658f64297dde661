"""Looking for what should be gone: in the bytes of every file, in every packed value, in every term dictionary."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tantivy import Index

from outcrop.store.embedded import rows
from world import World

FIELDS = ("user", "assistant", "stem", "tool", "tool_more", "reasoning", "other", "ident", "part", "context")


def remains(store: Path, words: tuple[str, ...]) -> list[tuple[str, str]]:
    """(where, word): in the bytes of any file, in any packed value, in any dictionary of the index."""
    found = []
    for path in sorted(store.rglob("*")):
        if path.is_file():
            data = path.read_bytes().lower()
            found += [(path.name, word) for word in words if word.lower().encode() in data]
    db = sqlite3.connect(store / "outcrop.db")
    for table, column in (("block", "z"), ("kept", "z"), ("file", "state")):
        for (z,) in db.execute(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"):
            data = rows.decompress(z).lower()
            found += [(table, word) for word in words if word.lower().encode() in data]
    db.close()
    for folder in (store / "text").iterdir():
        searcher = Index.open(str(folder)).searcher()
        for field in FIELDS:
            terms = {term for term, _ in searcher.terms_with_prefix(field, "")}
            found += [(field, word) for word in words if word.lower() in terms]
    return found


def pending(world: World) -> bool:
    return bool(world.run("status", "--json").json["erasure_pending"])
