"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from world import World

# Machines are shared and busy: how long one example takes says nothing.
settings.register_profile("outcrop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outcrop")


@pytest.fixture(scope="module", params=["call", "mcp"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """All sessions, indexed once for a module, asked through either door. Tests must not change it."""
    made = World(tmp_path_factory.mktemp("world"), door=request.param)
    made.write()
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
