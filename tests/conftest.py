"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """All sessions, indexed once for a module. Tests must not change it."""
    made = World(tmp_path_factory.mktemp("world"))
    made.write()
    made.index()
    yield made
    made.close()


@pytest.fixture
def small_world(tmp_path: Path) -> Iterator[World]:
    """An empty world for a test that writes, indexes and changes it as it likes."""
    made = World(tmp_path)
    made.places()
    yield made
    made.close()
