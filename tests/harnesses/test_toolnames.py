"""Names of own tools under every spelling (ruling 11) and the category of a call (ruling 29)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outcrop.harnesses.toolnames import OWN_TOOLS, Category, canonical, category


@pytest.mark.parametrize(
    "spelling",
    [
        "mcp__moraine__{}",
        "mcp__outcrop__{}",
        "mcp__outcrop__{}__2",
        "MCP__Outcrop__{}",
        "mcp__plugin_outcrop_outcrop__{}",
        "mcp__plugin_tools_moraine__{}",
        "outcrop__{}",
        "outcrop.{}",
        "moraine/{}",
    ],
)
@pytest.mark.parametrize("tool", sorted(OWN_TOOLS))
def test_own_tools_keep_one_name(spelling: str, tool: str) -> None:
    spelled = spelling.format(tool)
    assert canonical(spelled) == tool
    assert category(tool, spelled) is Category.OWN


@pytest.mark.parametrize(
    "name",
    ["open", "mcp__browser__open", "mcp__outcrop__delete", "outcrop", "mcp__outcropping__open", "", "__", "Bash"],
)
def test_tools_of_others_keep_their_names(name: str) -> None:
    assert canonical(name) == name
    assert category(name) is Category.TOOL


@pytest.mark.parametrize("name", ["WebSearch", "WebFetch", "web_search", "web_search_call", "mcp__brave__web_search"])
def test_web_searches_and_fetches(name: str) -> None:
    assert category(name) is Category.WEB


@given(st.text(max_size=40))
def test_any_text_is_a_name(name: str) -> None:
    assert canonical(canonical(name)) == canonical(name)
    assert isinstance(category(name), Category)
