"""An empty history to write into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.search.history import History


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path / "home")
    yield made
    made.close()
