"""Hearing of changes from the real system."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from following import until
from outcrop.ingest.watch import Watch


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_no_unicode_ends_no_watch(tmp_path: Path) -> None:
    heard: set[str] = set()
    watch = Watch([str(tmp_path)], heard.update)
    try:
        until(lambda: (tmp_path / "first").write_text("x") and str(tmp_path / "first") in heard)
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")).write_text("x")
        until(lambda: watch.problem, what="the interruption")
        assert "decode" in str(watch.problem)
        until(lambda: (tmp_path / "later").write_text("x") and str(tmp_path / "later") in heard, 30.0)
        assert watch.problem is None
    finally:
        watch.close()
