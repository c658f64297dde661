"""What exists is documented, and what is documented exists."""

import argparse
import re
from importlib import import_module
from pathlib import Path

import pytest

from outcrop.cli import VERBS
from outcrop.config import SETTINGS, SOURCE_SETTINGS
from outcrop.contracts.catalog import Catalog
from outcrop.contracts.mcp_v1 import TOOLS, Context, envelope, file_attention
from outcrop.errors import CODES
from outcrop.harnesses import REGISTRY, all_harnesses
from outcrop.servers import jsonrpc, mcp, mcp_http, stdio
from outcrop.store import open_store

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
MCP_PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
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


def options(verb: str) -> set[str]:
    """Every option of a command, those of its own verbs included."""
    parser = argparse.ArgumentParser()
    import_module(VERBS[verb][0]).add_arguments(parser)
    actions = list(parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            actions += [below for verb in action.choices.values() for below in verb._actions]
    return {name for action in actions for name in action.option_strings} | {"--debug", "--help"}


def test_every_documented_option_exists() -> None:
    for line in TEXT.splitlines():
        for verb, rest in re.findall(r"outcrop ([a-z]+)([^`|·]*)", line):
            if verb in VERBS:
                assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)) <= options(verb), line


def test_every_option_of_the_server_is_documented() -> None:
    for option in options("mcp") - {"-h", "--debug", "--help"}:
        assert f"`{option}`" in MCP_PAGE


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_is_documented_with_its_arguments(name: str, tmp_path: Path) -> None:
    [section] = re.findall(rf"^### {name}$(.*?)(?=^###? )", MCP_PAGE, re.MULTILINE | re.DOTALL)
    schema = TOOLS[name].input_schema(Context(open_store(tmp_path), Catalog({}, (), {}, None)))
    table = set(re.findall(r"`([a-z_]+)`", "".join(re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE))))
    assert table == set(schema["properties"])
    [row] = re.findall(rf"^\| `{name}` \|.*$", MCP_PAGE, re.MULTILINE)
    assert all(f"`{argument}`" in row for argument in table)


def test_every_error_of_the_tools_is_documented() -> None:
    assert re.findall(r"^\| `([a-z_]+)` \|", MCP_PAGE.partition("| `error.code` |")[2], re.MULTILINE)[
        : len(CODES)
    ] == list(CODES)


def test_every_error_of_the_protocol_is_documented() -> None:
    codes = {
        value
        for module in (jsonrpc, mcp, mcp_http)
        for name, value in vars(module).items()
        if type(value) is int and value < 0
    }
    assert {int(code) for code in re.findall(r"`(-32\d{3})`", MCP_PAGE)} == codes


def test_every_warning_is_documented() -> None:
    rooms = [
        *(ROOT / "src" / "outcrop" / "search").glob("*.py"),
        Path(envelope.__file__),
        Path(file_attention.__file__),
    ]
    told = set(re.findall(r"\"([a-z]+_[a-z]+): ", "".join(path.read_text(encoding="utf-8") for path in rooms)))
    assert told == set(re.findall(r"`([a-z_]+)` \(", MCP_PAGE.partition("### Warnings")[2].partition("\n## ")[0]))


def test_versions_and_limits_of_the_server_are_documented() -> None:
    for version in (mcp.HANDSHAKE_VERSIONS[0], mcp.HANDSHAKE_VERSIONS[-1], *mcp.STATELESS_VERSIONS):
        assert f"`{version}`" in MCP_PAGE
    for key, setting in SETTINGS["mcp"].items():
        assert re.search(rf"\| {setting.default} \| `mcp\.{key}` \|", MCP_PAGE), key
    assert {stdio.FRAME_LIMIT, stdio.PENDING_LIMIT} == {16 << 20}
    assert MCP_PAGE.count("| 16 MiB |") == 2


def test_every_kind_of_fault_is_documented() -> None:
    kinds = set(re.findall(r"\"(slow|kill|fail)\"", CODE))
    assert kinds == set(re.findall(r"^\| `([a-z]+):<", MCP_PAGE, re.MULTILINE))


def test_every_room_is_in_the_architecture() -> None:
    package = ROOT / "src" / "outcrop"
    table = ARCHITECTURE.partition("## Rooms")[2].partition("\n## ")[0]
    for room in package.iterdir():
        if (room / "__init__.py").exists():
            assert f"| `{room.name}/` |" in table
        elif room.suffix == ".py" and not room.name.startswith("__"):
            assert f"`{room.stem}`" in table


def test_every_variable_of_the_environment_is_documented() -> None:
    for name in set(re.findall(r"\"(OUTCROP_[A-Z]+)\"", CODE)):
        assert f"`{name}`" in TEXT, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert target.startswith(("https://", "http://")) or (page.parent / target).exists(), target
    for path in re.findall(r"`((?:docs|src|tests|demo|bench|oracles|\.ci)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path


def test_every_target_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`?\bmake ([a-z]+)\b`", TEXT)) <= targets
    assert {"help", "demo", "test", "lint", "format", "oracles", "bench", "clean"} <= targets


def test_nothing_is_left_to_be_written() -> None:
    assert not re.search(r"\b(TODO|FIXME|XXX|TBD)\b", TEXT)
