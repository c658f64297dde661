"""The registry is the only list of harnesses, and tells the truth about each."""

from __future__ import annotations

from pathlib import Path

import pytest

from outcrop.harnesses import REGISTRY, all_sources, load

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs" / "harnesses"


@pytest.mark.parametrize("name", REGISTRY)
def test_an_entry_says_what_its_harness_says(name: str) -> None:
    harness, entry = load(name), REGISTRY[name]
    assert (harness.name, harness.title, tuple(harness.sources)) == (name, entry.title, entry.sources)
    assert harness.agent
    assert harness.version >= 1


@pytest.mark.parametrize("name", REGISTRY)
def test_a_harness_has_fixtures_tests_facts_and_a_page(name: str) -> None:
    word = name.replace("-", "_")
    assert any((HERE.parent / "fixtures" / name).rglob("*")), "invented session files"
    assert (HERE / f"test_{word}.py").exists()
    assert (DOCS / f"{name}.md").exists()
    facts = {"claude-code": "claude", "codex": "codex"}.get(name, name)
    assert len(list((HERE / "facts" / facts).glob("*.json"))) >= 3


def test_no_two_harnesses_share_a_source() -> None:
    assert len(set(all_sources())) == len(all_sources())
