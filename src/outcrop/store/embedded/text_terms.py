"""Words of erased texts in the term dictionaries of the text index: looked up before and after, known by digests alone.

Of the erased documents, words are taken that no other document holds. The dictionaries of every text field are
enumerated for them. A word that is found afterwards must stand in the present text of an event whose document holds
it; where it does not, the index has kept something.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

from tantivy import Occur, Query, Searcher

from outcrop.store.embedded import analysis
from outcrop.store.embedded.text_fields import CONTEXT, open_index, schema
from outcrop.store.embedded.text_reader import FOLDER
from outcrop.store.embedded.text_rows import TextRows

FIELDS = ("user", "assistant", "reasoning", "other", "tool", "tool_more", "context", "stem", "ident", "part")
SHORTEST = 5
MOST = 256
"""Words that are looked for."""
_CANDIDATES = 5_000
_TEXTS = 20_000
_CHARACTERS = 20_000
_COMMON = 20
"""Words in more documents than this are passed over."""
_LOOKED_AT = 50


def searcher_of(home: Path, name: str) -> Searcher:
    """The present state of the index of that name. Raises ValueError where it cannot be read."""
    return open_index(home / FOLDER / name).searcher()


def words(texts: Iterable[str]) -> set[str]:
    """The words of texts that are long enough to tell something, as the index has them."""
    analyzer = analysis.exact()
    found: set[str] = set()
    for number, text in enumerate(texts):
        if number == _TEXTS:
            break
        found.update(word for word in analyzer.analyze(analysis.normal(text[:_CHARACTERS])) if len(word) >= SHORTEST)
    return found


def distinctive(searcher: Searcher, candidates: Iterable[str], documents: Collection[int]) -> set[bytes]:
    """The marks of words that stand in these documents and in no others, a sample of them."""
    found: set[bytes] = set()
    for word in sorted(candidates, key=term_mark)[:_CANDIDATES]:
        if 0 < sum(searcher.doc_freq(field, word) for field in FIELDS) <= _COMMON and set(
            _holding(searcher, word)
        ) <= set(documents):
            found.add(term_mark(word))
            if len(found) == MOST:
                break
    return found


def term_mark(word: str) -> bytes:
    """Eight bytes of a digest, then the word's first two letters: the dictionary is enumerated for these alone."""
    data = word.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).digest() + word[:2].encode("utf-8", "surrogatepass")


def in_dictionaries(searcher: Searcher, marks: Collection[bytes]) -> set[str]:
    """The words with these marks that any field of the index knows."""
    found: set[str] = set()
    for prefix in {mark[8:].decode("utf-8", "surrogatepass") for mark in marks}:
        for field in FIELDS:
            terms = searcher.terms_with_prefix(field, prefix)
            found.update(word for word, _ in terms if term_mark(word) in marks)
    return found


def unaccounted(connection: sqlite3.Connection, searcher: Searcher, found: Iterable[str]) -> set[str]:
    """Those of the words that no event accounts for, of all whose documents hold them."""
    rows = TextRows(connection)
    left: set[str] = set()
    for word in found:
        holding = _holding(searcher, word)
        present = rows.read(holding)
        accounted = {source.id for source, before in present if word in _terms_of([source.text, *before])}
        if not holding or accounted != set(holding):
            left.add(word)
    return left


def _holding(searcher: Searcher, word: str) -> list[int]:
    """The events whose documents hold a word."""
    either = Query.boolean_query([(Occur.Should, Query.term_query(schema(), field, word)) for field in FIELDS])
    hits = searcher.search(either, _LOOKED_AT, count=False).hits
    if not hits:
        return []
    return [int(id or 0) for id in searcher.fast_field_values("id", [address for _, address in hits])]


def _terms_of(texts: list[str]) -> set[str]:
    found: set[str] = set()
    for text in _normal(texts):
        found.update(analysis.exact().analyze(text))
        found.update(analysis.stem().analyze(text))
        found.update(analysis.parts().analyze(analysis.name_terms(text)))
    return found


def _normal(texts: list[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        yield analysis.normal(text if place == 0 else text[:CONTEXT])
