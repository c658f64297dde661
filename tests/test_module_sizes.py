"""Rooms stay small enough to be read at once."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "src").rglob("*.py"))
LIMIT = 600
LARGER: dict[str, str] = {}
"""Modules above the limit, by path below src/outcrop, each with its reason."""


def name(path: Path) -> str:
    return path.relative_to(ROOT / "src" / "outcrop").as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_has_at_most_600_lines(path: Path) -> None:
    lines = path.read_bytes().count(b"\n")
    if name(path) in LARGER:
        assert lines > LIMIT, "it has become small enough: take it off the list"
    else:
        assert lines <= LIMIT


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_opens_with_what_it_holds(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_bytes()))
    assert text, "a module begins with a docstring"
    assert text[0].isupper() or text[0] == "`"


def test_the_list_names_modules_that_exist() -> None:
    assert set(LARGER) <= {name(path) for path in MODULES}
