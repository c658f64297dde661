"""What a session search asks and answers, as values."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from outcrop.search import cursor as cursors
from outcrop.search.columns import ALL
from outcrop.store.embedded.cards import Card, Origin, Where

RELEVANCE, NEWEST = "relevance", "newest"
SORTS = (RELEVANCE, NEWEST)


class SessionSearch(NamedTuple):
    """What to look for. `harnesses` holds (harness, source or None) pairs; `since` UTC ms; `paths` None: anywhere.

    `agents` are the tags that the pairs came from: they alone go into the cursor's key.
    """

    text: str
    scope: str = ALL
    sort: str = RELEVANCE
    limit: int = 20
    cursor: str | None = None
    agents: tuple[str, ...] = ()
    harnesses: tuple[tuple[str, str | None], ...] = ()
    paths: tuple[str, ...] = ()
    since: int | None = None

    @property
    def key(self) -> str:
        return cursors.query_key(self.text, self.scope, self.sort, self.since, self.agents, self.paths)


class Route(StrEnum):
    """The rung that found the answer."""

    PHRASE = "phrase"
    AND = "and"
    OR = "or"
    TYPO_PHRASE = "typo+phrase"
    TYPO_AND = "typo+and"
    TYPO_OR = "typo+or"
    LOOSE = "loose"


class Shown(NamedTuple):
    """The message that tells why a session was found. `time` in UTC ms; None: not recorded."""

    role: str
    time: int | None
    snippet: str
    cut: bool


class SessionHit(NamedTuple):
    """`evidence` None: found by operators or by its title alone."""

    card: Card
    where: Where
    origin: Origin
    score: float
    evidence: Shown | None


class SessionPage(NamedTuple):
    """Hits in their total order. `candidates`: sessions that match may be missing; `cut`: part of the query was not
    searched. `repaired`: the words that were searched, where they are not those that were typed."""

    hits: list[SessionHit]
    cursor: str | None
    generation: int
    candidates: bool = False
    cut: bool = False
    route: Route = Route.OR
    repaired: tuple[str, ...] | None = None
    milliseconds: float = 0.0


class Refused(NamedTuple):
    """A cursor that does not go on. `generation`: of now, where the cursor was good once; `expected`: the cursor's,
    where that is what changed (ruling 46)."""

    generation: int | None = None
    expected: int | None = None
