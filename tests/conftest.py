"""Fixtures of the whole suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from facts import CORPUS
from homes import corpus_home
from world import World

# Machines are shared and busy: how long one example takes says nothing. Each run draws other examples, so many short
# runs see as much as a long one. OUTCROP_EXAMPLES asks for a long one.
settings.register_profile(
    "outcrop",
    deadline=None,
    max_examples=int(os.environ.get("OUTCROP_EXAMPLES", "30")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("outcrop")


@pytest.fixture(scope="session", params=["call", "mcp"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """All sessions, indexed once for all modules, asked through either door. Tests must not change it."""
    made = World(tmp_path_factory.mktemp("world"), door=request.param)
    made.write()
    made.index()
    yield made
    made.close()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The real sessions of Claude Code and Codex, indexed once. Tests must not change it."""
    made = corpus_home(CORPUS, tmp_path_factory.mktemp("corpus"))
    made.index()
    yield made
    made.close()


@pytest.fixture
def small_world(tmp_path: Path) -> Iterator[World]:
    """An empty world for a test that writes, indexes and changes it as it likes."""
    made = World(tmp_path, door="call")
    made.places()
    yield made
    made.close()
