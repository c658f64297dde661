"""Start-up is a feature: every agent starts a server of its own, every command is a process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"

HEAVY = {
    *("asyncio", "http", "email", "typing_extensions", "importlib.metadata", "unittest", "multiprocessing"),
    *("concurrent", "ssl", "socket", "subprocess", "tomllib", "sqlite3", "logging", "argparse", "difflib", "inspect"),
    *("rich", "platformdirs", "filelock", "zstandard", "tantivy", "orjson", "mcp", "jsonschema", "pydantic"),
}
"""Not needed to say a version or to list the commands."""

PROGRAM = """
import sys
before = set(sys.modules)
sys.argv = ["outcrop", *sys.argv[1:]]
from outcrop.cli import main
code = main()
print(*sorted(set(sys.modules) - before), file=sys.stderr)
sys.exit(code)
"""


def modules_after(*arguments: str, home: Path) -> set[str]:
    """What a process has imported when the command is done, beyond what the interpreter itself brings."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(SOURCE), "OUTCROP_AUTO_INDEX": "0"}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, encoding="utf-8")
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_the_version_and_the_help_import_nothing_heavy(argument: str, tmp_path: Path) -> None:
    modules = modules_after(argument, home=tmp_path)
    assert "outcrop.cli" in modules
    heavy = {name for name in modules if name in HEAVY or name.split(".")[0] in HEAVY}
    assert heavy == set()
    rooms = {name for name in modules if name.startswith("outcrop.") and name.count(".") > 1}
    assert rooms == set(), "no verb and no room is needed"


def test_settings_alone_import_no_toml_and_no_library(tmp_path: Path) -> None:
    program = PROGRAM.replace("from outcrop.cli import main", "from outcrop.config import load").replace(
        "main()", "load()"
    )
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(SOURCE), "OUTCROP_AUTO_INDEX": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program.replace("sys.exit(code)", "")],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    modules = set(done.stderr.split())
    assert "outcrop.config" in modules
    assert not modules & {"tomllib", "platformdirs", "difflib"}
