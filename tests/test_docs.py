"""What exists is documented, and what is documented exists."""

import re
from pathlib import Path

import pytest

from outcrop.cli import VERBS
from outcrop.config import SETTINGS, SOURCE_SETTINGS
from outcrop.contracts.mcp_v1 import TOOLS
from outcrop.harnesses import REGISTRY, all_harnesses

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
CODE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_is_documented(verb: str) -> None:
    assert f"outcrop {verb}" in TEXT


def test_every_documented_command_exists() -> None:
    named = set(re.findall(r"(?:^|[`/])outcrop ([a-z]+)", TEXT, re.MULTILINE))
    assert named <= set(VERBS)


@pytest.mark.parametrize(("section", "key"), [(section, key) for section in SETTINGS for key in SETTINGS[section]])
def test_every_setting_is_documented_with_its_default(section: str, key: str) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith(f"| `[{section}]` | `{key}` |")]
    assert len(rows) == 1
    setting = SETTINGS[section][key]
    default = str(setting.default).lower()
    assert f"| `{default}` |" in rows[0]
    if setting.type is int:
        assert f"{setting.least} to {setting.most}" in rows[0]


@pytest.mark.parametrize("key", SOURCE_SETTINGS)
def test_every_setting_of_a_source_is_documented(key: str) -> None:
    assert f"| `[sources.NAME]` | `{key}` |" in TEXT


@pytest.mark.parametrize("name", REGISTRY)
def test_every_harness_is_documented(name: str) -> None:
    page = ROOT / "docs" / "harnesses" / f"{name}.md"
    assert page.exists()
    assert f"`{name}`" in (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_every_source_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for harness in all_harnesses():
        for source in harness.sources:
            assert f"`{source}`" in page


def test_every_tool_is_documented() -> None:
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    for tool in TOOLS:
        assert f"`{tool}`" in page


def test_every_variable_of_the_environment_is_documented() -> None:
    for name in set(re.findall(r"\"(OUTCROP_[A-Z]+)\"", CODE)):
        assert f"`{name}`" in TEXT, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert target.startswith(("https://", "http://")) or (page.parent / target).exists(), target
    for path in re.findall(r"`((?:docs|src|tests|demo|bench|\.ci)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path


def test_every_target_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`?\bmake ([a-z]+)\b`", TEXT)) <= targets
    assert {"help", "demo", "test", "lint", "format", "bench", "clean"} <= targets


def test_nothing_is_left_to_be_written() -> None:
    assert not re.search(r"\b(TODO|FIXME|XXX|TBD)\b", TEXT)
