"""What a person or model typed, as units to look for, and the engine queries for them.

All queries are built as objects: nothing of the engine's query syntax can leak through, and punctuation is never an
error. A unit is a word, a name with parts, or a run of a script without spaces; a quoted phrase is a demand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import NamedTuple

from tantivy import Occur, Query

from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded import analysis
from outcrop.store.embedded.analysis import stem_of
from outcrop.store.embedded.text_fields import ROLE_FIELD, TOOL_TYPES, schema

MOST_UNITS = 48
MOST_PARTS = 16
DENSE_WORD = 4
"""Characters of a run without spaces that are still one word; a longer run is a sentence."""
LONGEST_SEQUENCE = 24
"""Tokens of a query that is also tried as one phrase."""
NEAR_UNITS = 4
NEAR_SLOP = 6
NEAR_MOST = 10_000
"""Events that hold the rarest word: beyond, standing near says little and costs the most of all."""
TOGETHER_UNITS = 5
"""Units of a query whose hits that hold all of them come first. Of more, all stand together in the longest texts only,
and these count ALL_FACTOR times."""
FEW_NUMBERS = 150
"""Of a field that are looked up one by one."""
PHRASE_FACTOR = 2.0
NEAR_FACTOR = 1.6
ALL_FACTOR = 1.2

WEIGHT = {"user": 1.2, "assistant": 1.2, "reasoning": 0.9, "other": 0.7, "tool": 0.7, "tool_more": 0.4}
STEM_WEIGHT = 1.0
NAME_WEIGHT = 0.6
CONTEXT_WEIGHT = 0.5
"""Less than half of a message's own weight."""
COMMON = 5_000
"""Messages that hold a word of which a search does better to leave some out."""
EVERYDAY = 20_000
"""Of which it does better to leave out other forms, too, and what tools say."""
LEADING = 500
"""Messages that hold a word behind which the engine finds those with the others at little cost, however these are held.
"""
CONTEXT_MOST = 10_000
"""Messages with a word before them that it still tells something of: scoring more cost a third of a search."""
PARTS_WEIGHT = 0.7
FORMS_WEIGHT = 0.7

_QUOTED = re.compile(r'"([^"]*)"|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»')
_EXCLUDED = re.compile(r"(?<!\S)-([^\W\d_]{3,})(?!\S)")
"""Who types `-word` wants no hits for it; `-rf` and `--force` are a command's."""
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u06d6-\u06ed\u0900-\u0dff\u0f00-\u0fff"
"""Vowel signs and accents that stand on a letter: the analyzer counts some of them in, so it must judge."""
_ATOM = re.compile(rf"{analysis.COMPOUND.pattern}|[A-Za-z]{analysis.LANGUAGE}|(?:[^\W_]|[{_MARKS}])+|{analysis.EMOJI}")
_QUESTION_WORDS = """
a about after again all also am an and any are as at be because been before being but by can could did do does doing
done for from get got had has have having he her here him his how i if in into is it its just me my no not now of
off on once only or our out over she should so some such than that the their them then there these they this those
through to too under until up us very was we were what when where which while who whom why will with would you your
don didn doesn isn wasn aren weren couldn won t s re ve ll d m
"""
STOP_WORDS = frozenset(_QUESTION_WORDS.split())
"""Words of English questions that say nothing, and what an apostrophe leaves of them."""

_POSITIONS = ("user", "assistant", "reasoning", "other")
_TALK = ("user", "assistant")


@dataclass(slots=True, frozen=True)
class Unit:
    """One thing to look for. `word` is its exact form where that is one term; `name` its form as one term of `ident`
    and `parts` what it splits into: all of them together count as the unit too. `forms` are other words for it."""

    typed: str
    word: str | None = None
    stem: str | None = None
    name: str | None = None
    parts: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class Parsed:
    """`phrases` are demanded; `sequence` is all that was typed, in order, and only ever a preference; `excluded` are
    words typed as `-word`, which are not looked for."""

    units: tuple[Unit, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    sequence: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def short(self) -> bool:
        """Whether what holds every unit comes first."""
        return len(self.units) <= TOGETHER_UNITS


def parse(text: str, least: int = 1) -> Parsed:
    """Read a query. Stop words are left out unless fewer than `least` units are left."""
    text = analysis.normal(text)
    exact = analysis.exact()
    phrases: dict[tuple[str, ...], None] = {}
    for match in _QUOTED.finditer(text):
        tokens = tuple(exact.analyze(next(group for group in match.groups() if group is not None)))
        if len(tokens) > 1:
            phrases[tokens[:LONGEST_SEQUENCE]] = None
    units: dict[Unit, None] = {}
    for atom in _ATOM.findall(text):
        for unit in _units(atom):
            units[unit] = None
    sequence = tuple(exact.analyze(text))
    seen = {unit.word for unit in units} | {part for unit in units for part in unit.parts}
    for term in sequence:  # what only the analyzer takes for a word: marks of many scripts
        if term not in seen and not analysis.DENSE_RUN.search(term):
            units[word_unit(term)] = None
    telling = [unit for unit in units if unit.word is None or unit.word not in STOP_WORDS]
    return Parsed(tuple(telling if len(telling) >= least else units), tuple(phrases), sequence)


def parse_excluding(text: str) -> Parsed:
    """`parse`, with words typed as `-word` left out as long as others are left."""
    excluded = tuple(dict.fromkeys(_EXCLUDED.findall(_QUOTED.sub(" ", analysis.normal(text)))))
    parsed = parse(text)
    gone = {word for typed in excluded for word in analysis.exact().analyze(typed)}
    left = tuple(unit for unit in parsed.units if unit.word not in gone)
    return replace(parsed, units=left, excluded=excluded) if excluded and left else parsed


def word_unit(word: str) -> Unit:
    return Unit(word, word, stem_of(word))


def _units(atom: str) -> Iterable[Unit]:
    runs = analysis.DENSE_RUN.findall(atom)
    if runs:
        for run in runs:
            pairs = analysis.grams(run)
            if len(run) <= DENSE_WORD:
                yield Unit(run, run, run, parts=tuple(dict.fromkeys(pairs)))
            else:
                yield from (Unit(pair, pair, pair) for pair in pairs)
        for rest in analysis.DENSE_RUN.split(atom):
            for token in analysis.exact().analyze(rest):
                yield word_unit(token)
        return
    tokens = analysis.exact().analyze(atom)
    if not tokens:
        long = analysis.long_term(atom)
        if long is not None:
            yield Unit(atom, name=long)
        elif not atom.isascii():  # an emoji
            yield Unit(atom, name=atom)
        return
    if atom[-1] in "+#":
        yield replace(word_unit(tokens[0]), typed=atom, name=atom.lower())
        return
    camel = [part for name in analysis.CAMEL.findall(atom) for part in analysis.camel_parts(name)]
    if len(tokens) == 1:
        parts = tuple(dict.fromkeys(camel)) if len(camel) > 1 else ()
        yield replace(word_unit(tokens[0]), typed=atom, parts=parts[:MOST_PARTS])
        return
    names = analysis.parts().analyze(atom)
    yield Unit(atom, name=names[0] if names else None, parts=tuple(dict.fromkeys(tokens))[:MOST_PARTS])


def relaxed(parsed: Parsed) -> Parsed:
    """The same query with nothing demanded and every part of a name a word of its own."""
    units: dict[Unit, None] = {}
    for unit in parsed.units:
        if unit.word is not None:
            units[replace(unit, parts=())] = None
        for part in unit.parts:
            units[Unit(part, part, part, part)] = None
    return replace(parsed, units=tuple(units), phrases=())


@dataclass(slots=True, frozen=True)
class Scope:
    """Where to look; row ids, not uids."""

    types: tuple[EventType, ...]
    session: int | None = None
    turn: int | None = None
    harness: str | None = None
    source: str | None = None
    admitted: frozenset[int] | None = None
    """The sessions that the caller is held to; None: all."""


class Tier(NamedTuple):
    """Hits of one closeness, whose scores count `factor` times. `first`: they come before all hits that are in no such
    tier.

    `only`: what they match beside being among the hits of the tier that holds every unit, with the scores that they
    have there; None: nothing is known of that. `most`: what a hit that is in no other tier counts at most.

    `doubt`: hits that score no more count only where `held` matches them too. `matching`: about how many there are,
    where that is told. `inside`: all of them are among the hits of the tier that comes first.
    """

    query: Query
    factor: float
    first: bool
    only: Query | None = None
    most: float = inf
    doubt: float = 0.0
    held: Query | None = None
    matching: int = 0
    inside: bool = False


class Builder:
    """Engine queries of one scope.

    `frequency` tells how many of the index's `documents`, not of the scope, hold a word in a field.
    """

    def __init__(self, scope: Scope, frequency: Callable[[str, str], int], documents: int) -> None:
        self.scope, self._frequency, self.documents = scope, frequency, documents
        kinds = set(scope.types)
        self.words = list(dict.fromkeys(ROLE_FIELD[kind] for kind in scope.types if kind in ROLE_FIELD))
        if kinds & set(TOOL_TYPES):
            self.words += ["tool", "tool_more"]
        talk = {EventType.USER_INPUT, EventType.ASSISTANT_RESPONSE}
        self.talk = bool(kinds & talk)
        self.names = (["ident"] if self.talk else []) + (["part"] if kinds - talk else [])
        self.positions = [field for field in self.words if field in _POSITIONS]
        # What the fields hold decides whether types must be filtered: the default scope needs no filter.
        held = (talk if self.talk else set()) | ({*ROLE_FIELD, *TOOL_TYPES} - talk if kinds - talk else set())
        # To pass over what others hold is cheaper than to look for what these hold: a history has mostly tool events.
        unwanted = [kind for kind in held if kind not in kinds]
        narrowed = self._narrowed()
        self.filters = [*narrowed, *((Occur.MustNot, _of_type(kind)) for kind in unwanted)]
        self.within = narrowed
        """The same, for what matches nothing else."""
        if unwanted:
            self.within = [*narrowed, (Occur.Must, any_of(map(_of_type, scope.types)))]

    def _narrowed(self) -> list[tuple[Occur, Query]]:
        scope = self.scope
        wanted: list[Query] = []
        if scope.admitted is not None:
            wanted.append(among("session", scope.admitted))
        for name in ("session", "turn"):
            if (number := getattr(scope, name)) is not None:
                wanted.append(Query.term_query(schema(), name, number))
        for name in ("harness", "source"):
            if (text := getattr(scope, name)) is not None:
                wanted.append(Query.term_query(schema(), name, text, "basic"))
        return [(Occur.Must, silent(query)) for query in wanted]

    def unit(self, unit: Unit) -> list[Query]:
        """Ways to match a unit; any is enough, and together they weigh more."""
        ways = self._word(unit.word, unit.stem or unit.word) if unit.word is not None else []
        return [*ways, *self._beside(unit)]

    def _beside(self, unit: Unit) -> list[Query]:
        """Ways to match a unit beside its word."""
        ways: list[Query] = []
        if unit.name is not None:
            ways += [term(field, unit.name, 1.0) for field in self.names]
        if len(unit.parts) > 1:
            together = every(any_of(self._word(part, stem_of(part))) for part in unit.parts)
            ways.append(Query.boost_query(together, PARTS_WEIGHT))
        elif unit.parts and unit.word is None:
            ways += self._word(unit.parts[0], stem_of(unit.parts[0]))
        ways += [Query.boost_query(way, FORMS_WEIGHT) for form in unit.forms for way in self._word(form, form)]
        return ways

    def _held(self, unit: Unit, led: bool) -> tuple[list[Query], list[Query]]:
        """The ways to match a unit of which an event needs one at least, and those that only add to its score.

        A message that holds a word holds its stem. As part of a name a common word says nothing: to look for it among
        the names costs the most of all, unless the search is `led` by a rare one.
        """
        if unit.word is None or not self.talk:
            return self.unit(unit), []
        adding = [term(field, unit.word, WEIGHT[field]) for field in self.words if field in _TALK]
        holding = [term(field, unit.word, WEIGHT[field]) for field in self.words if field not in _TALK]
        holding.append(term("stem", unit.stem or unit.word, STEM_WEIGHT))
        names = [term(field, unit.word, NAME_WEIGHT) for field in self.names]
        if led or self._number(unit) <= COMMON:
            return [*holding, *names, *self._beside(unit)], adding
        return [*holding, *self._beside(unit)], [*adding, *names]

    def _number(self, unit: Unit) -> int:
        """How many messages hold a word, in whatever form."""
        return self._frequency("stem", unit.stem or unit.word or "")

    def _led(self, units: Sequence[Unit]) -> bool:
        return is_led(
            sum(self._frequency(field, unit.word or unit.name or unit.typed) for field in (*self.words, *self.names))
            for unit in units
        )

    def _word(self, word: str, stem: str) -> list[Query]:
        ways = [term(field, word, WEIGHT[field]) for field in self.words]
        if self.talk:
            ways.append(term("stem", stem, STEM_WEIGHT))
        ways += [term(field, word, NAME_WEIGHT) for field in self.names]
        return ways

    def phrase(self, tokens: Sequence[str], slop: int = 0) -> Query:
        """The tokens in this order; in tool text, which has no positions, all of them (to be checked on the row)."""
        ways = [Query.phrase_query(schema(), field, list(tokens), slop) for field in self.positions]
        if "tool" in self.words and not slop:
            ways.append(every(any_of([term("tool", token), term("tool_more", token)]) for token in set(tokens)))
        return any_of(ways)

    def context(self, units: Sequence[Unit]) -> list[tuple[Occur, Query]]:
        """What the messages before add to a hit."""
        return [(Occur.Should, term("context", word, CONTEXT_WEIGHT)) for word in self._around(units)]

    def _around(self, units: Sequence[Unit]) -> dict[str, int]:
        """The words that tell something of the messages behind them, and how many messages that is."""
        words = [unit.word for unit in units if unit.word] if self.talk else []
        standing = {word: self._frequency("context", word) for word in words}
        return {word: number for word, number in standing.items() if number <= CONTEXT_MOST}

    def matching(self, parsed: Parsed, whole: bool = False) -> Query:
        """Everything that makes an event a hit, scored, without the filters; `whole`: it holds every unit."""
        if whole:  # the same sum of scores, over what holds all: the engine need not look at the rest
            led = self._led(parsed.units)
            ways = [self._held(unit, led) for unit in parsed.units]
            adding = [(Occur.Should, way) for _, some in ways for way in some]
            main = Query.boolean_query([*((Occur.Must, any_of(some)) for some, _ in ways), *adding])
        else:
            main = any_of([way for unit in parsed.units for way in self.unit(unit)])
        demands = [(Occur.Must, silent(self.phrase(tokens))) for tokens in parsed.phrases]
        return Query.boolean_query([*demands, (Occur.Must, main)]) if demands else main

    def hits(self, parsed: Parsed, also: Sequence[Query] = (), whole: bool = False) -> Query:
        """The scored hits inside the scope that match every query of `also` too."""
        clauses = [*self.filters, *((Occur.Must, silent(query)) for query in also)]
        clauses += [(Occur.Must, self.matching(parsed, whole)), *self.context(parsed.units)]
        return Query.boolean_query(clauses)

    def tiers(self, parsed: Parsed) -> list[Tier]:
        """The strictest first: the whole query as a phrase, its words near each other, all of its units, any."""
        words = [unit.word for unit in parsed.units if unit.word]
        demanded = {token for tokens in parsed.phrases for token in tokens}
        if len(words) == len(parsed.units) and demanded.issuperset(words):
            return [Tier(self.hits(parsed), 1.0, True)]
        tiers: list[Tier] = []
        if self.positions and 1 < len(parsed.sequence) <= LONGEST_SEQUENCE:
            tiers.append(self._preferred(parsed, parsed.sequence, 0, PHRASE_FACTOR))
        near = self.positions and len(words) == len(parsed.units) and 1 < len(words) <= NEAR_UNITS
        if near and any(sum(self._frequency(field, word) for field in _POSITIONS) <= NEAR_MOST for word in words):
            tiers.append(self._preferred(parsed, words, NEAR_SLOP, NEAR_FACTOR))
        if len(parsed.units) > 1:
            factor = 1.0 if parsed.short else ALL_FACTOR
            if (named := self._in_names(parsed)) is not None:
                tiers.append(Tier(named, factor, parsed.short))
            tiers.append(Tier(self.hits(parsed, whole=True), factor, parsed.short))
        return [*tiers, self._any(parsed)]

    def _in_names(self, parsed: Parsed) -> Query | None:
        """Hits with a name that all units are parts of, which `hits` leaves out where these are common words."""
        words = [unit.word for unit in parsed.units if unit.word]
        common = self.talk and any(self._number(unit) > COMMON for unit in parsed.units)
        if not common or len(words) < len(parsed.units) or self._led(parsed.units):
            return None
        demands = [(Occur.Must, silent(self.phrase(tokens))) for tokens in parsed.phrases]
        named = any_of(every(term(field, word, NAME_WEIGHT) for word in words) for field in self.names)
        return Query.boolean_query([*self.filters, *demands, (Occur.Must, named)])

    def _any(self, parsed: Parsed) -> Tier:
        """Hits that hold a unit.

        As one flat union the engine can leave out what cannot come to the best, which pays where a word is common. What
        only the messages before hold is in it, too, and must be told apart: it scores no more than that can.
        """
        units = parsed.units
        flat = not self.filters and not parsed.phrases and len(units) > 1
        if not flat or all(self._frequency("stem", unit.stem) <= COMMON for unit in units if unit.stem):
            return Tier(self.hits(parsed), 1.0, len(units) == 1)
        doubt = sum(CONTEXT_WEIGHT * most_of(number, self.documents) for number in self._around(units).values())
        ways = [(Occur.Should, way) for unit in units for way in self.unit(unit)]
        held = silent(self.matching(parsed)) if doubt else None
        return Tier(Query.boolean_query([*ways, *self.context(units)]), 1.0, False, doubt=doubt, held=held)

    def _preferred(self, parsed: Parsed, tokens: Sequence[str], slop: int, factor: float) -> Tier:
        """Hits that hold every unit and in which the tokens stand in this order. Where they spell every unit, the order
        alone says so."""
        held = set(tokens)
        spelt = len(parsed.units) > 1 and all(
            unit.word in held or (len(unit.parts) > 1 and held.issuperset(unit.parts)) for unit in parsed.units
        )
        order = any_of([Query.phrase_query(schema(), field, list(tokens), slop) for field in self.positions])
        # As a condition the engine takes slop wider than where it counts for the score: both must ask the same way.
        whole = len(parsed.units) > 1 and not spelt
        return Tier(self.hits(parsed, [order], whole), factor, parsed.short, silent(order) if spelt else None)


def rarity(holding: int, documents: int) -> float:
    """What a match says where `holding` of all documents match: the engine's own inverse document frequency."""
    return log(1 + max(0.0, documents - holding + 0.5) / (holding + 0.5))


def is_led(numbers: Iterable[int]) -> bool:
    """Whether one of several words is rare enough to look for all of them behind it. `numbers`: messages with each."""
    return min(numbers, default=0) <= LEADING


def most_of(holding: int, documents: int) -> float:
    """The most that a match can score before its weight, where the word stands often: BM25 with the engine's k1 of 1.2.
    Deleted documents count for the engine until they are merged away."""
    return 2.2001 * rarity(holding, documents)


def any_of(ways: Iterable[Query]) -> Query:
    some = list(ways)
    return some[0] if len(some) == 1 else Query.boolean_query([(Occur.Should, way) for way in some])


def every(ways: Iterable[Query]) -> Query:
    return Query.boolean_query([(Occur.Must, way) for way in ways])


def among(field: str, numbers: Iterable[int]) -> Query:
    """What has one of these numbers. To walk all numbers of the field costs as much as to look some hundred up."""
    some = list(numbers)
    if 0 < len(some) <= FEW_NUMBERS:
        return any_of(Query.term_query(schema(), field, number) for number in some)
    return Query.term_set_query(schema(), field, some)


def _of_type(kind: EventType) -> Query:
    return Query.term_query(schema(), "type", TYPE_CODE[kind])


def exactly(query: Query) -> Tier:
    """The hits of one query, with their scores as they are."""
    return Tier(query, 1.0, False)


def silent(query: Query) -> Query:
    """A condition that adds nothing to the score."""
    return Query.const_score_query(query, 0.0)


def term(field: str, text: str, weight: float = 1.0) -> Query:
    query = Query.term_query(schema(), field, text, "freq")
    return query if weight == 1.0 else Query.boost_query(query, weight)
