"""The rungs of a session search: from the words as a phrase to words that are nearly the same.

Words are repaired before any of them is enough: a common neighbour would hide the mistake. What all words lack in the
scope is found by stems, beginnings and single letters, on the last rung.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tantivy import Query

from outcrop.search.columns import Columns
from outcrop.search.found import Route
from outcrop.search.plan import Plan
from outcrop.search.query import Tier, exactly
from outcrop.search.respell import Speller

_MOST_LOOSE = 6
"""Words of a query that is still worth loosening."""


class Rung(NamedTuple):
    """What messages and whole sessions must match, a message by one tier at least, the last of which holds all others.

    `beside`: tool text in which the terms must stand side by side.

    `loose`: a session that is found as a whole is told by the same messages as all others.
    """

    route: Route
    plan: Plan
    rows: Sequence[Tier]
    wholes: Query | None = None
    beside: Query | None = None
    loose: bool = False

    @property
    def strict(self) -> bool:
        """Whether all words must be there."""
        return not self.loose and not self.route.endswith(Route.OR)


def rungs(columns: Columns, speller: Speller, asked: Plan) -> Iterator[Rung]:
    """The rungs for a plan, the strictest first; words are spelt anew once the strict ones found nothing."""
    yield from _strict(columns, asked, Route.PHRASE, Route.AND)
    terms = speller.respelt(asked.terms)
    repaired = asked if terms == asked.terms else asked.instead(terms)
    if repaired is not asked:
        yield from _strict(columns, repaired, Route.TYPO_PHRASE, Route.TYPO_AND)
    living = speller.lives(repaired.terms)
    yield _loosely(columns, Route.OR if repaired is asked else Route.TYPO_OR, repaired, living)
    if not living and len(asked.terms) <= _MOST_LOOSE:
        yield _loosely(columns, Route.LOOSE, asked.instead(speller.loosened(asked.terms)), stems=True)


def _strict(columns: Columns, asked: Plan, phrase: Route, every: Route) -> Iterator[Rung]:
    """The rungs of a literal query."""
    terms = asked.terms
    if asked.literal and terms:
        whole = columns.whole_phrase(terms)
        yield Rung(phrase, asked, [exactly(columns.phrase(terms))], whole, columns.beside(terms))
        if len(terms) > 1:
            yield Rung(every, asked, [exactly(columns.together(terms))], columns.whole_together(terms))


def _loosely(columns: Columns, route: Route, asked: Plan, stems: bool) -> Rung:
    return Rung(route, asked, columns.either(asked, stems), columns.whole_either(asked), loose=stems)
