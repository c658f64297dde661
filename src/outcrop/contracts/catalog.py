"""What a contract may know of harnesses: their names, put together by whoever may import them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True, frozen=True)
class Catalog:
    """Names of harnesses and sources, as values.

    `harnesses` maps the specification's harness value to a title for people; `sources` are the configured sources;
    `agents` maps an agent tag of the session search contract to its harness. `holding` tells which sources hold data
    at this moment (ruling 7); without it all configured ones are named.
    """

    harnesses: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    agents: Mapping[str, str] = field(default_factory=dict)
    holding: Callable[[], tuple[str, ...]] | None = None

    def title(self, harness: str) -> str:
        return self.harnesses.get(harness, harness)

    def sources_with_data(self) -> tuple[str, ...]:
        return self.sources if self.holding is None else self.holding()
