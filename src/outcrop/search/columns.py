"""The columns of session search, as engine queries: what a message or a whole session must hold on each rung.

Scope `conversation` looks at prompts and answers alone; `all` at tool text, parts of names and titles too. A query
names its columns and no other, so that nothing outside the scope can match, suppress a repair or be suggested by one.
Tool text has no positions: whether its words stand side by side is told by its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import NamedTuple

from tantivy import Occur, Query

from outcrop.search.plan import Plan
from outcrop.search.query import (
    COMMON,
    EVERYDAY,
    LONGEST_SEQUENCE,
    Tier,
    Unit,
    among,
    any_of,
    every,
    exactly,
    is_led,
    most_of,
    rarity,
    silent,
    term,
)
from outcrop.store.embedded import analysis
from outcrop.store.embedded.analysis import stem_of
from outcrop.store.embedded.text_fields import schema

CONVERSATION = "conversation"
ALL = "all"
SCOPES = (CONVERSATION, ALL)

WEIGHT = {"user": 3.0, "assistant": 2.0, "tool": 1.0}
NAMES_WEIGHT = 1.0
STEM_WEIGHT = 2.0
TITLE_WEIGHT = 3.0
TALK_WEIGHT = 1.0
ALL_FACTOR = 4.0
"""Of a message that holds all words."""
TYPED_FACTOR = 4.5
"""Of one that holds them as they were typed."""
_ROLES = ("user", "assistant")
_NAMES = ("ident", "part")
_MANY_SESSIONS = 1_000
"""Sessions with a word that say something of it however few others there are."""
_HARDLY = 1e-6
"""What a hit counts that comes after all others."""


class _Ways(NamedTuple):
    """Ways to hold a word: what does holds it one way at least of `holding`; `adding` raise its score. So many messages
    hold it as `number` says. `parts`: it stands in a name, as in `named` messages.

    `most` is what `holding` and `adding` score at most, `most_exactly` what `adding` scores by itself, `most_named`
    what `parts` add.
    """

    holding: list[Query]
    adding: list[Query]
    number: int
    most: float
    most_exactly: float = 0.0
    parts: Sequence[Query] = ()
    named: int = 0
    most_named: float = 0.0

    @property
    def often(self) -> bool:
        """Whether the word is so common that names with it say nothing, and cost the most to look for."""
        return self.number > COMMON

    @property
    def every(self) -> list[Query]:
        """All but names that say nothing."""
        return [*self.holding, *self.adding, *(() if self.often else self.parts)]


class _Word(NamedTuple):
    """A word among what is said and, where these are searched, among what tools say.

    Where a message lacks other words, an everyday one counts as it was typed, and said: enough messages have it so.
    """

    said: _Ways
    tools: _Ways | None

    @property
    def number(self) -> int:
        """How many messages hold the word in some way, about."""
        return self.said.number + (0 if self.tools is None else self.tools.number)

    @property
    def everyday(self) -> bool:
        return self.said.number > EVERYDAY

    @property
    def any(self) -> list[Query]:
        """What counts where a message lacks other words."""
        if self.everyday:
            return self.said.adding or self.said.holding
        return self.said.every if self.tools is None else [*self.said.every, *self.tools.every]

    @property
    def most_said(self) -> float:
        """What a prompt or an answer with the word scores at most in `any`."""
        if self.everyday and self.said.adding:
            return self.said.most_exactly
        return self.said.most + self.said.most_named

    @property
    def most_of_tools(self) -> float:
        """What tool text with the word scores at most in `any`."""
        return 0.0 if self.tools is None or self.everyday else self.tools.most + self.tools.most_named

    @property
    def hardly(self) -> list[Query]:
        """What counts only where all else is lacking."""
        ways = [*(self.said.holding if self.everyday else ()), *(self.said.parts if self.said.often else ())]
        if self.tools is not None:
            ways += self.tools.holding if self.everyday else ()
            ways += self.tools.parts if self.everyday or self.tools.often else ()
        return ways


class Columns:
    """Queries over the columns of one scope.

    `frequency` tells how many of the index's `documents` hold a word in a field; there are so many `sessions`.
    """

    def __init__(self, scope: str, frequency: Callable[[str, str], int], documents: int, sessions: int) -> None:
        self._frequency, self.documents, self._sessions = frequency, documents, sessions
        self.talk = scope == CONVERSATION
        self.words = _ROLES if self.talk else (*_ROLES, "tool")
        self.names = () if self.talk else _NAMES
        self.wholes = (("talk", TALK_WEIGHT),) if self.talk else (("title", TITLE_WEIGHT), ("talk", TALK_WEIGHT))
        self.all = (*self.words, *self.names)

    # Messages

    def phrase(self, tokens: Sequence[str]) -> Query:
        """The tokens side by side, in this order; a single one anywhere. Tool text: `beside`."""
        if len(tokens) == 1:
            return any_of(self._anywhere(tokens[0]))
        ways = [_boost(Query.phrase_query(schema(), field, list(tokens)), WEIGHT[field]) for field in _ROLES]
        return any_of(ways)

    def beside(self, tokens: Sequence[str]) -> Query | None:
        """Tool text that holds all tokens, in whatever order; None where the scope has none, or it needs no asking."""
        if self.talk or len(tokens) == 1:
            return None
        return every(term("tool", token) for token in dict.fromkeys(tokens))

    def together(self, tokens: Sequence[str]) -> Query:
        """All tokens in one message, in any column."""
        different = list(dict.fromkeys(tokens))
        ways = []
        for word, names in zip(self.words, ("ident", "ident", "part"), strict=False):
            fields = (word,) if self.talk else (word, names)
            ways.append(every(any_of(self._in(field, token) for field in fields) for token in different))
        return any_of(ways)

    def either(self, plan: Plan, stems: bool = True) -> list[Tier]:
        """Any word of the plan, a name or a part of one; with `stems` other forms of its words too.

        A message that holds all words counts more, and one that holds the query as it was typed yet more. These are
        asked for by themselves, what is said before what tools say: so the engine leaves out what cannot come to the
        best, and often nothing else needs to be asked. What tools say of a common word, and names that it is part of,
        count where all words are together, and otherwise come last.
        """
        words, loose = dict.fromkeys(plan.terms), plan.alternatives
        every_word = {word: self._word(word, stems) for word in dict.fromkeys([*words, *loose])}
        asked, alternatives = [every_word[word] for word in words], [every_word[word] for word in loose]
        names = [way for unit in plan.units for way in self._names(unit)]
        others = [*(way for word in loose if word not in words for way in every_word[word].any), *names]
        of_tools = [word.tools for word in asked if word.tools is not None]
        tiers: list[Tier] = []
        if len(words) > 1:
            tiers.append(_all_of([word.said for word in asked], others))
        if len(words) > 1 and (_leaves_names([word.said for word in asked]) or _leaves_names(of_tools)):
            named = [every(self._in(name, word) for word in words) for name in self.names]
            tiers.append(Tier(any_of(named), ALL_FACTOR, False))
        if len(plan.sequence) > 1:
            typed = (Occur.Must, silent(self.phrase(plan.sequence)))
            said = [way for word in alternatives for way in word.said.every]
            whole = len(words) > 1 and len(plan.terms) <= LONGEST_SEQUENCE  # a longer query is cut
            tiers.append(Tier(Query.boolean_query([typed, *_some([*said, *names])]), TYPED_FACTOR, False, inside=whole))
        if len(words) > 1 and of_tools:
            tiers.append(_all_of(of_tools, others))
        most = inf
        if len(words) > 1 and not others:
            most = max(
                _lacking_one(word.most_said for word in asked), _lacking_one(word.most_of_tools for word in asked)
            )
        matching = 0  # it is counted, unless it may be left out
        if most < inf:
            matching = self._union(sum(self._frequency(field, word) for field in self.words) for word in loose)
        ways = [*(way for word in alternatives for way in word.any), *names]
        tiers.append(Tier(Query.boolean_query(_some(ways)), 1.0, False, most=most, matching=matching))
        if hardly := [way for word in alternatives for way in word.hardly]:
            matching = self._union(word.number for word in alternatives)
            query = Query.const_score_query(any_of(hardly), _HARDLY)
            tiers.append(Tier(query, 1.0, False, most=_HARDLY, matching=matching))
        return tiers

    def some(self, plan: Plan) -> Tier:
        """Any word of the plan in whatever way, for a few sessions: common words cost nothing there."""
        words = [self._word(word, True) for word in plan.alternatives]
        ways = [way for word in words for way in (*word.any, *word.hardly)]
        return exactly(any_of([*ways, *(way for unit in plan.units for way in self._names(unit))]))

    def _union(self, holding: Iterable[int]) -> int:
        """How many documents hold some of several words, if these stand independently of each other."""
        lacking = 1.0
        for number in holding:
            lacking *= max(0.0, 1 - number / max(1, self.documents))
        return round(self.documents * (1 - lacking))

    def _word(self, word: str, stems: bool) -> _Word:
        return _Word(self._said(word, stems), None if self.talk else self._of_tools(word))

    def _said(self, word: str, stems: bool) -> _Ways:
        """A word of prompts and answers, and its other forms: what holds the word, holds its stem."""
        exact = [self._in(role, word) for role in _ROLES]
        numbers = [self._frequency(role, word) for role in _ROLES]
        most = max(WEIGHT[role] * self._most_of(number) for role, number in zip(_ROLES, numbers, strict=True))
        if not stems:
            return self._named(_Ways(exact, [], sum(numbers), most), "ident", word)
        stem = stem_of(word)
        number = self._frequency("stem", stem)
        way = _boost(term("stem", stem), STEM_WEIGHT)
        return self._named(_Ways([way], exact, number, most + STEM_WEIGHT * self._most_of(number), most), "ident", word)

    def _of_tools(self, word: str) -> _Ways:
        number = self._frequency("tool", word)
        return self._named(_Ways([self._in("tool", word)], [], number, self._most_of(number)), "part", word)

    def _named(self, ways: _Ways, field: str, word: str) -> _Ways:
        """The ways, with the word as a part of names."""
        number = self._frequency(field, word) if field in self.names else 0
        if not number:
            return ways
        most = NAMES_WEIGHT * self._most_of(number)
        return ways._replace(parts=[self._in(field, word)], named=number, most_named=most)

    def _most_of(self, holding: int) -> float:
        return most_of(holding, self.documents)

    # Whole sessions

    def whole_phrase(self, tokens: Sequence[str]) -> Query | None:
        """Titles that hold the tokens side by side."""
        if self.talk:
            return None
        query = term("title", tokens[0]) if len(tokens) == 1 else Query.phrase_query(schema(), "title", list(tokens))
        return _boost(query, TITLE_WEIGHT)

    def whole_together(self, tokens: Sequence[str]) -> Query:
        """Sessions that hold all tokens, however they are spread over title and messages."""
        return every(any_of(self._whole(token)) for token in dict.fromkeys(tokens))

    def whole_either(self, plan: Plan) -> Query | None:
        """Sessions that hold any word; None where that says nothing of one."""
        ways = [way for word in plan.alternatives for way in self._whole(word, telling=True)]
        return any_of(ways) if ways else None

    def _whole(self, word: str, telling: bool = False) -> list[Query]:
        """Sessions that hold a word, scored by how few do. The engine's own score is no use: it would hold a whole
        conversation against the mean length of all documents, which are single messages, so that nothing is left.

        `telling`: not where most of many do.
        """
        numbers = [(field, weight, self._frequency(field, word)) for field, weight in self.wholes]
        return [
            Query.const_score_query(term(field, word), weight * rarity(number, self._sessions))
            for field, weight, number in numbers
            if not telling or number <= max(_MANY_SESSIONS, self._sessions // 2)
        ]

    def _anywhere(self, word: str) -> list[Query]:
        return [self._in(field, word) for field in self.all]

    def _in(self, field: str, word: str) -> Query:
        return _boost(term(field, word), WEIGHT.get(field, NAMES_WEIGHT))

    def _names(self, unit: Unit) -> Iterable[Query]:
        """What stands among the names alone: whole names, C++, emoji, and parts of scripts without spaces.

        The last three are words of the text, so that they count in conversations as well, whose own field they are in.
        """
        dense = analysis.is_dense(unit.typed)
        fields = ("ident",) if self.talk else self.names
        name = unit.word if dense else unit.name
        if name is not None and (not self.talk or dense or unit.word is not None or not unit.parts):
            yield from (_boost(term(field, name), NAMES_WEIGHT) for field in fields)
        if dense and len(unit.parts) > 1:
            for field in fields:
                yield every(term(field, part) for part in unit.parts)


def inside(query: Query, field: str, ids: Iterable[int]) -> Query:
    """What of a query's hits has one of these numbers in `field`."""
    return every([query, silent(among(field, ids))])


def outside(query: Query, field: str, ids: Iterable[int]) -> Query:
    some = list(ids)
    if not some:
        return query
    return Query.boolean_query([(Occur.Must, query), (Occur.MustNot, among(field, some))])


def _all_of(words: Sequence[_Ways], others: Sequence[Query]) -> Tier:
    """Messages that hold each word; others add to their scores."""
    led = is_led(ways.number + ways.named for ways in words)
    held: list[tuple[Occur, Query]] = []
    adding: list[Query] = []
    most = inf if others else 0.0
    for ways in words:
        named = led or not ways.often
        held.append((Occur.Must, any_of([*ways.holding, *(ways.parts if named else ())])))
        adding += ways.adding
        most += ALL_FACTOR * (ways.most + (ways.most_named if named else 0.0))
    return Tier(Query.boolean_query([*held, *_some([*adding, *others])]), ALL_FACTOR, False, most=most)


def _leaves_names(words: Sequence[_Ways]) -> bool:
    """Whether some word counts in no name where messages are looked for that hold each."""
    return any(ways.often and ways.parts for ways in words) and not is_led(ways.number + ways.named for ways in words)


def _lacking_one(most: Iterable[float]) -> float:
    """What a message scores at most that holds all words but one, by the most that each scores."""
    some = list(most)
    return sum(some) - min(some)


def _some(ways: Iterable[Query]) -> list[tuple[Occur, Query]]:
    return [(Occur.Should, way) for way in ways]


def _boost(query: Query, weight: float) -> Query:
    return query if weight == 1.0 else Query.boost_query(query, weight)
