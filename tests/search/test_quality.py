"""What was planted is found: the measurement of docs/quality.md over a small home, held to what it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from homes import many_turns

ROOT = Path(__file__).parents[2]


def test_planted_facts_are_found(tmp_path: Path) -> None:
    home = tmp_path / "home"
    many_turns(home, tmp_path, "q", 40)
    command = [sys.executable, str(ROOT / "bench" / "quality"), "--home", str(home)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    planted = json.loads(ran.stdout)["planted"]
    ours, plain = planted["Outcrop"], planted["plain BM25"]
    assert ours["all"]["n"] > 450
    assert ours["all"]["ten"] >= 0.95 > plain["all"]["ten"]
    assert ours["all"]["first"] >= 0.90 > plain["all"]["first"]
    for kind, cells in ours["kinds"].items():
        for surface, cell in cells.items():
            assert cell["n"] >= 5, (kind, surface)
            assert cell["ten"] >= 0.8, (kind, surface, ours["missed"])
