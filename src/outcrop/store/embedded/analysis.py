"""How text becomes terms, the same for documents and for queries.

Two engine analyzers: `exact` (words, lower case, accents folded) and `stem` (the same, English stems). What they cannot
do is computed here and indexed beside: the parts of camelCase names, names with separators as one term, and the
bigrams of scripts that write no spaces. Change anything here and `text_fields.SCHEMA` must step.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

# What the engine does on damaged files is one line on stderr, unless this asks for a stack of it.
os.environ.pop("RUST_BACKTRACE", None)

EXACT = "outcrop_exact"
STEM = "outcrop_stem"
PARTS = "outcrop_parts"
LONGEST_TERM = 256
"""Bytes. The engine's own default analyzer drops 40 and more: no hash could be found."""
LONG_HEAD = 240
"""Bytes of a longer word that are indexed among the names."""
LONGEST_NAME = 120
"""Characters of a word that is split: longer ones are base64 and the like."""
LONGEST_CHUNK = 20_000
"""Characters without a blank that are still looked at."""

_CHUNK = re.compile(r"[\w.\-]+")
_BLANKS = {code: " " for code in range(128) if not _CHUNK.match(chr(code))}
"""What ends a chunk of plain ASCII: `translate` and `split` cost half of the pattern."""
_CHUNKS_KEPT = 50_000
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
DENSE_RUN = re.compile(f"[{_DENSE}]+")
"""A run of a script without spaces: Han, kana, Hangul, Thai, Lao, Burmese, Khmer. The analyzer makes it one term."""
_MIXED = re.compile(rf"(?<![^\W_])[^\W_]*[{_DENSE}][^\W_]*")
COMPOUND = re.compile(r"(?<![^\W_])[^\W_]+(?:[._\-]+[^\W_]+)+")
"""Names with separators inside: `get_user_id`, `beam.py`, `v1.2`, one segment of a path."""
EMOJI = "[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
LANGUAGE = r"(?:#(?<=(?<![^\W_])[A-Za-z]#)|\+\+(?<=(?<![^\W_])[A-Za-z]\+\+))(?![\w+#])"
"""What makes C++, C# and F# of a letter, which is all that the analyzer sees of them. The signs come first: a pattern
that begins by looking behind is tried at every letter."""
_EMOJI = re.compile(EMOJI)
_LANGUAGE = re.compile(LANGUAGE)
CAMEL = re.compile(r"(?<![^\W_])(?:[A-Z]*[a-z0-9]+[A-Z]|[A-Z]{2,}[a-z]{2,})[A-Za-z0-9]*")
# All start where a word does, and neighbouring quantifiers are over disjoint classes: linear on a megabyte of base64.
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


@cache
def exact() -> TextAnalyzer:
    return _words(Tokenizer.simple()).build()


@cache
def stem() -> TextAnalyzer:
    return _words(Tokenizer.simple()).filter(Filter.stemmer("english")).build()


@cache
def _stemmer() -> TextAnalyzer:
    return TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.stemmer("english")).build()


def stem_of(term: str) -> str:
    """What `stem` makes of the word that `exact` made this term of. To analyze the term anew would not do: folding
    leaves some letters that lower or fold once more, or that are none (`bɪt` is `bIt`, `⑴` is `(1)`)."""
    return _stemmer().analyze(term)[0]


@cache
def parts() -> TextAnalyzer:
    """For the terms that `name_terms` makes."""
    return _words(Tokenizer.whitespace()).build()


def _words(tokenizer: Tokenizer) -> TextAnalyzerBuilder:
    return (
        TextAnalyzerBuilder(tokenizer)
        .filter(Filter.remove_long(LONGEST_TERM))
        .filter(Filter.lowercase())
        .filter(Filter.ascii_fold())
    )


def normal(text: str) -> str:
    """Composed form, so that an accent is part of its letter, and no lone surrogates, which the engine refuses."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))


def camel_parts(name: str) -> list[str]:
    """`resolveTerminalPath` → resolve, terminal, path; `HTTPServer2` → http, server, 2."""
    return [part.lower() for part in _HUMP.findall(name)]


def grams(run: str) -> list[str]:
    """The bigrams of a run; a run of one character is its own."""
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def is_dense(text: str) -> bool:
    """Whether it holds a script without spaces, whose words are found by their bigrams alone."""
    return not text.isascii() and DENSE_RUN.search(text) is not None


def name_terms(text: str) -> str:
    """What `ident` holds of a normal text: terms joined by blanks, in the order of the text, each word once."""
    chunks = text.translate(_BLANKS).split() if text.isascii() else _CHUNK.findall(text)
    if len(_TERMS_OF) > _CHUNKS_KEPT:
        _TERMS_OF.clear()
    return " ".join((*filter(None, map(_TERMS_OF.__getitem__, dict.fromkeys(chunks))), *_sign_terms(text)))


class _TermsOf(dict[str, str]):
    """By chunk, the terms that it adds; few texts hold many chunks that no text before them held."""

    def __missing__(self, chunk: str) -> str:
        terms = " ".join(_chunk_terms(chunk)) if len(chunk) <= LONGEST_CHUNK else ""
        if len(chunk) <= LONGEST_NAME:
            self[chunk] = terms
        return terms


_TERMS_OF = _TermsOf()


def long_term(word: str) -> str | None:
    """What stands for a word that is too long to be a term: its beginning. None for other words."""
    data = word.lower().encode("utf-8", "replace")
    if len(data) < LONGEST_TERM:
        return None
    return data[:LONG_HEAD].decode("utf-8", "ignore")


def _chunk_terms(chunk: str) -> Iterator[str]:
    if len(chunk) >= LONG_HEAD and (long := long_term(chunk)) is not None:
        yield long
    # Most words are plain, and asking that with string methods costs a tenth of a pattern.
    if not chunk.isascii():
        yield from _dense_terms(chunk)
    if not (chunk.islower() or chunk[1:].islower() or chunk.isupper() or chunk.isdigit()):
        for name in CAMEL.findall(chunk):
            if len(name) <= LONGEST_NAME:
                yield from camel_parts(name)
    if not chunk.isalnum():
        name = chunk.strip("._-")  # a chunk is words and separators: what is left is a COMPOUND, or one word
        if len(name) <= LONGEST_NAME and not name.isalnum():
            yield name


def _sign_terms(text: str) -> Iterator[str]:
    """Emoji, and names of languages that end in signs."""
    if not text.isascii():
        yield from dict.fromkeys(_EMOJI.findall(text))
    if "#" in text or "++" in text:
        yield from dict.fromkeys(text[sign.start() - 1] + sign[0] for sign in _LANGUAGE.finditer(text))


def _dense_terms(chunk: str) -> Iterator[str]:
    """Characters and bigrams of runs without spaces, and what a word holds beside them."""
    for mixed in _MIXED.findall(chunk):
        for run in DENSE_RUN.findall(mixed):
            yield from run
            if len(run) > 1:
                yield from grams(run)
        for rest in DENSE_RUN.split(mixed):
            if rest and len(rest) < len(mixed):
                yield rest
