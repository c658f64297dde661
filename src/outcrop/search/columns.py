"""The columns of session search, as engine queries: what a message or a whole session must hold on each rung.

Scope `conversation` looks at prompts and answers alone; `all` at tool text, parts of names and titles too. A query
names its columns and no other, so that nothing outside the scope can match, suppress a repair or be suggested by one.
Tool text has no positions: whether its words stand side by side is told by its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from tantivy import Occur, Query

from outcrop.search.plan import Plan
from outcrop.search.query import COMMON, Tier, Unit, among, any_of, every, most_of, rarity, silent, stem_of, term
from outcrop.store.embedded import analysis
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
_NAMES = ("ident", "part")
_HARDLY = 1e-6
"""What a hit counts that comes after all others."""


class _Ways(NamedTuple):
    """Ways to hold a word: what does holds it one way at least of `holding`; `adding` raise its score.

    It scores `most` at most. `common`: parts of names, where the word is so common that they count for nothing.
    """

    holding: list[Query]
    adding: list[Query]
    most: float
    common: Sequence[Query] = ()

    @property
    def every(self) -> list[Query]:
        return [*self.holding, *self.adding]


class Columns:
    """Queries over the columns of one scope.

    `frequency` tells how many of the index's `documents` hold a word in a field; there are so many `sessions`.
    """

    def __init__(self, scope: str, frequency: Callable[[str, str], int], documents: int, sessions: int) -> None:
        self._frequency, self._documents, self._sessions = frequency, documents, sessions
        self.talk = scope == CONVERSATION
        self.words = ("user", "assistant") if self.talk else ("user", "assistant", "tool")
        self.names = () if self.talk else _NAMES
        self.wholes = (("talk", TALK_WEIGHT),) if self.talk else (("title", TITLE_WEIGHT), ("talk", TALK_WEIGHT))
        self.all = (*self.words, *self.names)
        self.of_tools = () if self.talk else ("tool", *self.names[1:])

    # Messages

    def phrase(self, tokens: Sequence[str]) -> Query:
        """The tokens side by side, in this order; a single one anywhere. Tool text: `beside`."""
        if len(tokens) == 1:
            return any_of(self._anywhere(tokens[0]))
        ways = [
            _boost(Query.phrase_query(schema(), field, list(tokens)), WEIGHT[field]) for field in ("user", "assistant")
        ]
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
        best, and often nothing else needs to be asked. Parts of names that are common words count where a name has all
        words, and otherwise come last.
        """
        words, loose = dict.fromkeys(plan.terms), plan.alternatives
        said = {word: self._said(word, stems) for word in dict.fromkeys([*words, *loose])}
        tools = {word: self._of_tools(word) for word in said} if self.of_tools else {}
        names = [way for unit in plan.units for way in self._names(unit)]
        others = [way for word in loose if word not in words for ways in (said, tools) for way in _every(ways, word)]
        others += names
        every_way = _some([*(way for word in loose for ways in (said, tools) for way in _every(ways, word)), *names])
        tiers: list[Tier] = []
        if len(words) > 1:
            tiers.append(_all_of([said[word] for word in words], others))
        if len(words) > 1 and any(ways[word].common for word in words for ways in (said, tools) if ways):
            named = [every(self._in(field, word) for word in words) for field in self.names]
            tiers.append(Tier(any_of(named), ALL_FACTOR, False))
        if len(plan.sequence) > 1:
            typed = (Occur.Must, silent(self.phrase(plan.sequence)))
            tiers.append(Tier(Query.boolean_query([typed, *every_way]), TYPED_FACTOR, False))
        most, most_of_tools = inf, inf
        if len(words) > 1 and not others:
            by_tools = {word: tools[word].most if tools else 0.0 for word in words}
            at_all = {word: max(said[word].most, by_tools[word]) for word in loose}
            most = sum(at_all.values()) - min(at_all.get(word, 0.0) for word in words)
            most_of_tools = ALL_FACTOR * sum(by_tools.values())
        if len(words) > 1 and tools:
            tiers.append(_all_of([tools[word] for word in words], others)._replace(most=most_of_tools))
        matching = self._union(sum(self._frequency(field, word) for field in self.words) for word in loose)
        tiers.append(Tier(Query.boolean_query(every_way), 1.0, False, most=most, matching=matching))
        if common := [way for word in loose for ways in (said, tools) if word in ways for way in ways[word].common]:
            tiers.append(Tier(Query.const_score_query(any_of(common), _HARDLY), 1.0, False, most=_HARDLY))
        return tiers

    def _union(self, holding: Iterable[int]) -> int:
        """How many documents hold some of several words, if these stand independently of each other."""
        lacking = 1.0
        for number in holding:
            lacking *= max(0.0, 1 - number / max(1, self._documents))
        return round(self._documents * (1 - lacking))

    def _said(self, word: str, stems: bool) -> _Ways:
        """A word of prompts and answers, and its other forms: who holds the word, holds its stem."""
        exact = [self._in(field, word) for field in ("user", "assistant")]
        roles = [self._frequency(role, word) for role in ("user", "assistant")]
        most = max(WEIGHT[role] * self._most_of(n) for role, n in zip(("user", "assistant"), roles, strict=True))
        if not stems:
            return self._with_parts(_Ways(exact, [], most), "ident", word, sum(roles))
        stem = stem_of(word)
        often = self._frequency("stem", stem)
        way = _boost(term("stem", stem), STEM_WEIGHT)
        return self._with_parts(_Ways([way], exact, most + STEM_WEIGHT * self._most_of(often)), "ident", word, often)

    def _of_tools(self, word: str) -> _Ways:
        often = self._frequency("tool", word)
        return self._with_parts(_Ways([self._in("tool", word)], [], self._most_of(often)), "part", word, often)

    def _with_parts(self, ways: _Ways, field: str, word: str, often: int) -> _Ways:
        """With the word as a part of names. Of a common one that says nothing, and to look for it costs the most."""
        number = 0 if self.talk else self._frequency(field, word)
        if not number:
            return ways
        part = self._in(field, word)
        if often > COMMON:
            return ways._replace(common=[part])
        return ways._replace(holding=[*ways.holding, part], most=ways.most + NAMES_WEIGHT * self._most_of(number))

    def _most_of(self, holding: int) -> float:
        return most_of(holding, self._documents)

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
        ways = [way for word in plan.alternatives for way in self._whole(word)]
        return any_of(ways) if ways else None

    def _whole(self, word: str) -> list[Query]:
        """Sessions that hold a word, scored by how few do. The engine's own score is no use: it would hold a whole
        conversation against the mean length of all documents, which are single messages, so that nothing is left."""
        return [
            Query.const_score_query(term(field, word), weight * rarity(self._frequency(field, word), self._sessions))
            for field, weight in self.wholes
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


def _all_of(words: Iterable[_Ways], others: Iterable[Query]) -> Tier:
    """Messages that hold each word; others add to their scores."""
    some = list(words)
    held = [(Occur.Must, any_of(ways.holding)) for ways in some]
    adding = [way for ways in some for way in ways.adding]
    return Tier(Query.boolean_query([*held, *_some([*adding, *others])]), ALL_FACTOR, False)


def _every(ways: Mapping[str, _Ways], word: str) -> list[Query]:
    return ways[word].every if word in ways else []


def _some(ways: Iterable[Query]) -> list[tuple[Occur, Query]]:
    return [(Occur.Should, way) for way in ways]


def _boost(query: Query, weight: float) -> Query:
    return query if weight == 1.0 else Query.boost_query(query, weight)
