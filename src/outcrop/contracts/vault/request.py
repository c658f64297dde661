"""A search request as it comes from another process ("Search and pagination").

Unknown fields are stripped, at the top and among the filters; so are `tier` and `refresh` of older clients, and
whatever a request claims about where it comes from. What is known must have its type: null is no value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from outcrop.contracts.moments import instant
from outcrop.errors import InvalidRequest
from outcrop.search.columns import ALL, SCOPES
from outcrop.search.found import RELEVANCE, SORTS

INDEXED, WAIT = "indexed", "wait-until-current"
FRESHNESS = (INDEXED, WAIT)
DEFAULT_LIMIT = 20
MOST_HITS = 100
MOST_PATHS = 64
LONGEST_PATH = 4096


class Filters(NamedTuple):
    """Empty `agents` and `paths`: no restriction. `since` as given, `since_ms` the instant that it names."""

    agents: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    since: str | None = None
    since_ms: int | None = None
    sort: str = RELEVANCE


class Request(NamedTuple):
    """A checked request with its defaults; `limit` is from 1 to 100."""

    query: str
    scope: str = ALL
    freshness: str = INDEXED
    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    filters: Filters = Filters()
    debug: bool = False

    def wire(self) -> dict[str, Any]:
        """The request for another process, defaults left out."""
        told: dict[str, Any] = {"query": self.query, "limit": self.limit}
        if self.scope != ALL:
            told["scope"] = self.scope
        if self.freshness != INDEXED:
            told["freshness"] = self.freshness
        if self.cursor is not None:
            told["cursor"] = self.cursor
        if self.debug:
            told["debug"] = True
        filters: dict[str, Any] = {}
        if self.filters.agents:
            filters["agents"] = list(self.filters.agents)
        if self.filters.paths:
            filters["scopePaths"] = list(self.filters.paths)
        if self.filters.since is not None:
            filters["since"] = self.filters.since
        if self.filters.sort != RELEVANCE:
            filters["sort"] = self.filters.sort
        return {**told, "filters": filters} if filters else told


def parse_request(value: Any, agents: Collection[str]) -> Request:
    """Read a request; `agents` are the known tags. Raises InvalidRequest that names the field at fault."""
    given = _object(value, "the request")
    query = given.get("query")
    if not isinstance(query, str):
        raise InvalidRequest("query must be a string", "query")
    cursor = given.get("cursor")
    if "cursor" in given and not isinstance(cursor, str):
        raise InvalidRequest("cursor must be a string", "cursor")
    debug = given.get("debug", False)
    if not isinstance(debug, bool):
        raise InvalidRequest("debug must be a boolean", "debug")
    return Request(
        query,
        _choice(given, "scope", SCOPES, ALL),
        _choice(given, "freshness", FRESHNESS, INDEXED),
        _limit(given),
        cursor,
        _filters(given["filters"], agents) if "filters" in given else Filters(),
        debug,
    )


def parse_status_request(value: Any) -> None:
    """A status request holds nothing; it must be an object all the same."""
    _object(value, "the request")


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"{name} must be an object")
    return value


def _choice(given: Mapping[str, Any], name: str, options: tuple[str, ...], default: str, field: str = "") -> str:
    value = given.get(name, default)
    if not isinstance(value, str) or value not in options:
        raise InvalidRequest(f"{name} must be {' or '.join(options)}", field or name)
    return value


def _limit(given: Mapping[str, Any]) -> int:
    """Whole numbers are brought into 1 to 100, fractions mean the default."""
    value = given.get("limit", DEFAULT_LIMIT)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest("limit must be a number", "limit")
    if isinstance(value, float):
        if not value.is_integer():  # infinity and what is no number are none either
            return DEFAULT_LIMIT
        value = int(value)
    return min(max(value, 1), MOST_HITS)


def _filters(value: Any, agents: Collection[str]) -> Filters:
    given = _object(value, "filters")
    since = since_ms = None
    if "since" in given:
        if not isinstance(given["since"], str):
            raise InvalidRequest("since must be a string", "filters.since")
        since, since_ms = instant("filters.since", given["since"])
    named = _strings(given, "agents")
    for agent in named:
        if agent not in agents:
            raise InvalidRequest(f"unknown agent: {agent} (known: {', '.join(sorted(agents))})", "filters.agents")
    paths = _strings(given, "scopePaths")
    if len(paths) > MOST_PATHS:
        raise InvalidRequest(f"scopePaths may hold at most {MOST_PATHS} paths", "filters.scopePaths")
    if not all(1 <= len(path) <= LONGEST_PATH for path in paths):
        raise InvalidRequest(f"each of scopePaths must have 1 to {LONGEST_PATH} characters", "filters.scopePaths")
    return Filters(named, paths, since, since_ms, _choice(given, "sort", SORTS, RELEVANCE, "filters.sort"))


def _strings(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = given.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidRequest(f"{name} must be an array of strings", f"filters.{name}")
    return tuple(value)
