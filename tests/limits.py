"""The command with less than all: by a user whom modes can stop, on a disk that is nearly full."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

from world import Run, World

AS_ROOT = os.geteuid() == 0
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


def without_power() -> None:
    """In a child that root starts: from the next exec on, modes deny it what they deny everybody."""
    if AS_ROOT:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "a capability cannot be dropped")


def plainly(world: World, *argv: str) -> Run:
    """The command by a user whom modes can stop."""
    done = subprocess.run(
        [sys.executable, "-m", "outcrop", *argv],
        capture_output=True,
        text=True,
        env=world.environment,
        preexec_fn=without_power,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


IN_SMALL_DISK = """
mount -t tmpfs -o size="$SIZE" tmpfs "$OUTCROP_HOME" && cp -a "$KEPT/." "$OUTCROP_HOME/" || exit 99
"$@"
code=$?
cp -a "$OUTCROP_HOME/." "$KEPT/"
exit $code
"""


def on_small_disk(world: World, size: str, *argv: str) -> Run:
    """The command with its data on a tmpfs of its own; what it leaves there is copied back into the world's store."""
    mount = world.folder / "mount"
    mount.mkdir(exist_ok=True)
    world.store.mkdir(exist_ok=True)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", IN_SMALL_DISK, "sh", sys.executable, "-m", "outcrop", *argv],
        capture_output=True, text=True, check=False,
        env={**world.environment, "OUTCROP_HOME": str(mount), "KEPT": str(world.store), "SIZE": size,
             "PATH": os.environ["PATH"]},
    )  # fmt: skip
    return Run(done.returncode, done.stdout, done.stderr)


def can_mount() -> bool:
    return AS_ROOT and subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0
