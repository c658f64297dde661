"""What a contract may know of harnesses: their names, put together by whoever may import them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple


class Resume(NamedTuple):
    """The command that takes a session up again: program and arguments, and variables beside its environment."""

    argv: Sequence[str]
    variables: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True, frozen=True)
class Catalog:
    """Names of harnesses and sources, as values.

    `harnesses` maps the specification's harness value to a title for people; `sources` are the configured sources;
    `agents` maps an agent tag of the session search contract to (harness, source) pairs, source None where the tag
    stands for all of a harness. `holding` tells which sources hold data at this moment (ruling 7); without it all
    configured ones are named. `resume` takes harness, source, native id and path of a session.
    """

    harnesses: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    agents: Mapping[str, tuple[tuple[str, str | None], ...]] = field(default_factory=dict)
    holding: Callable[[], tuple[str, ...]] | None = None
    resume: Callable[[str, str, str, str | None], Resume | None] = lambda *_: None

    def title(self, harness: str) -> str:
        return self.harnesses.get(harness, harness)

    def sources_with_data(self) -> tuple[str, ...]:
        return self.sources if self.holding is None else self.holding()

    def agent(self, harness: str, source: str) -> str:
        """The tag of a session; of a harness that none is known for, its name."""
        for tag, pairs in self.agents.items():
            if (harness, None) in pairs or (harness, source) in pairs:
                return tag
        return harness
