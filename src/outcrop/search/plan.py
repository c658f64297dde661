"""How a session search goes about a query: how much of it is searched, whether it is meant literally, and its terms.

Sections 1.2 to 1.5 of the behaviour that ruling 43 names. Lengths count Unicode scalars (ruling 53).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from outcrop.search import operators
from outcrop.search import query as queries
from outcrop.search.operators import Asked
from outcrop.search.query import LONGEST_SEQUENCE, STOP_WORDS, Unit
from outcrop.store.embedded import analysis

MOST_CHARACTERS = 512
MOST_TERMS = 48
MOST_ALTERNATIVES = 64
"""Terms of the `or` rung, parts of names included."""
_SHORTEST_QUOTE = 3
_SUFFIXES = "py pyi js jsx ts tsx mjs cjs rs go java kt c h cc cpp hpp cs rb php swift sh bash zsh ps1 sql md rst toml"
_SUFFIXES += " yaml yml json jsonl lock html css scss vue svelte ipynb txt xml ini cfg env proto gradle tf lua ex exs"
_LITERAL = re.compile(
    r"[a-z0-9][A-Z]|\b[A-Z]+_[A-Z_]+\b|[A-Za-z0-9]{2}[._][A-Za-z0-9]{2}|\w/\w"
    rf"|\w\.(?:{'|'.join(_SUFFIXES.split())})\b"
    r"|#\d{3}|\b[A-Z]{2,6}-\d{2,}\b|[(){};=]|::|->|--\w|\b(?:Error|Exception|Traceback)\b",
    re.ASCII,
)
"""What code looks like: names, paths, tickets, calls, flags, errors."""


class Plan(NamedTuple):
    """`terms` are searched as they stand, in order; `literal`: first as one phrase, then all in one message.

    `sequence` is all that was typed, in order, question words included: only ever a preference. `cut`: the query had
    more than is searched.
    """

    terms: tuple[str, ...]
    literal: bool
    units: tuple[Unit, ...]
    sequence: tuple[str, ...] = ()
    cut: bool = False

    @property
    def alternatives(self) -> list[str]:
        """The words of the `or` rung: the terms, other forms of them, and the parts of names, each once."""
        found: dict[str, None] = {}
        for unit in self.units:
            if unit.word is not None:
                found[unit.word] = None
            found |= dict.fromkeys(unit.forms)
        for unit in self.units:
            for part in unit.parts:
                if unit.word is None or part not in STOP_WORDS:
                    found[part] = None
        return list(found)[:MOST_ALTERNATIVES]

    def instead(self, terms: tuple[str, ...]) -> Plan:
        """The same plan over other words: it stays as literal as it was typed."""
        forms = {unit.word: unit.forms for unit in self.units}
        units = tuple(replace(unit, forms=forms.get(unit.word, ())) for unit in _units(" ".join(terms)))
        return self._replace(terms=terms, units=units, sequence=terms[:LONGEST_SEQUENCE])


def make(query: str) -> tuple[Asked, Plan]:
    """Read a query. A plan without terms and units searches nothing."""
    text = analysis.normal(query)
    asked = operators.read(text[:MOST_CHARACTERS])
    cut = len(text) > MOST_CHARACTERS
    tokens = analysis.exact().analyze(asked.text)
    body = asked.text
    if len(tokens) > MOST_TERMS:
        tokens, cut = tokens[:MOST_TERMS], True
        body = " ".join(tokens)
    sequence = tokens
    literal = any(len(span) >= _SHORTEST_QUOTE for span in asked.quoted) or bool(_LITERAL.search(asked.text))
    if not literal:
        telling = [token for token in tokens if token not in STOP_WORDS]
        tokens = telling if len(telling) > 1 else tokens
    return asked, Plan(tuple(tokens), literal, _units(body), tuple(sequence[:LONGEST_SEQUENCE]), cut)


def left_out(asked: Asked, planned: Plan) -> list[str]:
    """Words, as they were typed, of which the `or` rung looks for nothing; letters count as the index has them."""
    searched = set(planned.alternatives)
    own = {word: Plan((), False, _units(word)).alternatives for word in asked.text.split()}
    return [word for word, terms in own.items() if terms and searched.isdisjoint(terms)]


def _units(body: str) -> tuple[Unit, ...]:
    return queries.parse(body, least=2).units
