"""Other machines for tests: an sshd of this user's own at a high port, and programs that play a bad far side."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from doors import environment, until

from vaults import Vault

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
SSH = shutil.which("ssh")
PLAYED = """\
import json, sys, time
part = {part!r}
if part == "dead":
    sys.exit("no such thing")
if part == "login":
    print("Welcome to the far side!", flush=True)
    print(json.dumps({{"motd": True}}), flush=True)
if part == "noise":
    while True:
        print("x" * 100_000, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    told = {{"jsonrpc": "2.0", "id": request["id"]}}
    if part == "hung":
        time.sleep(600)
    answers = {answers!r}
    print(json.dumps({{**told, **answers[request["method"]]}}), flush=True)
"""
"""A relay that answers each method with something fixed."""


@contextmanager
def sshd(folder: Path) -> Iterator[dict[str, str]]:
    """A running sshd; the variables under which `ssh far` comes to it."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    for name in ("host", "user"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(keygen, check=True, stdin=subprocess.DEVNULL)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    server = folder / "sshd_config"
    server.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        "UsePAM no\nStrictModes no\nPasswordAuthentication no\nPidFile none\nPermitRootLogin prohibit-password\n"
    )
    config = folder / "ssh_config"
    config.write_text(
        f"Host *\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {folder}/user\n"
        f"  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile {folder}/known\n  LogLevel ERROR\n"
    )
    programs = folder / "bin"
    programs.mkdir()
    script(programs / "ssh", f'exec {SSH} -F {config} "$@"')
    assert SSHD
    with (folder / "sshd.log").open("w") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(server)], stderr=log, stdin=subprocess.DEVNULL)
        try:
            until(lambda: process.poll() is not None or "listening" in (folder / "sshd.log").read_text())
            assert process.poll() is None, (folder / "sshd.log").read_text()
            yield {"PATH": f"{programs}:{os.environ['PATH']}"}
        finally:
            process.terminate()
            process.wait()


def script(path: Path, line: str) -> Path:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def far_outcrop(path: Path, vault: Vault) -> Path:
    """The command as it lies on another machine, with that machine's world."""
    words = " ".join(f"{name}='{value}'" for name, value in environment(vault).items())
    return script(path, f'exec env {words} {sys.executable} -m outcrop "$@"')


def played(path: Path, part: str, answers: dict[str, object] | None = None) -> Path:
    """A far side that plays a part."""
    program = path.with_suffix(".py")
    program.write_text(PLAYED.format(part=part, answers=answers or {}))
    return script(path, f"exec {sys.executable} {program}")
