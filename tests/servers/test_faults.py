"""The fault hook itself, in processes of its own: it is read once, at import."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def run(fault: str | None, code: str) -> subprocess.CompletedProcess[str]:
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    if fault is not None:
        environment["OUTCROP_FAULT"] = fault
    program = f"from outcrop import faults\n{code}"
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


THRICE = "for n in range(3):\n  print(n, flush=True); faults.at('there'); faults.at('elsewhere')"


@pytest.mark.parametrize(
    ("fault", "status", "printed"),
    [
        (None, 0, "0\n1\n2\n"),
        ("", 0, "0\n1\n2\n"),
        ("kill:nowhere,slow:open:5", 0, "0\n1\n2\n"),
        ("kill:there", -9, "0\n"),
        ("kill:there:2", -9, "0\n1\n"),
        ("fail:nowhere,fail:elsewhere:3", 1, "0\n1\n2\n"),
    ],
)
def test_a_fault_strikes_where_it_is_named(fault: str | None, status: int, printed: str) -> None:
    done = run(fault, THRICE)
    assert (done.returncode, done.stdout) == (status, printed)
    assert ("No space left" in done.stderr) == (status == 1)


def test_the_delay_of_a_tool() -> None:
    done = run("slow:open:250", "print(faults.ACTIVE, faults.delay('open'), faults.delay('search_sessions'))")
    assert done.stdout == "True 0.25 0.0\n"


@pytest.mark.parametrize("fault", ["slow:open", "kill", "fail:there:x", "slow:open:fast", "burn:there"])
def test_a_fault_that_is_not_understood_is_an_error(fault: str) -> None:
    assert run(fault, "").returncode == 1
