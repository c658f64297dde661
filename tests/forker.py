"""Runs commands, each in a process of its own, forked from one that has imported the program already.

A command costs a fork instead of a start, so that hundreds of contract cases can go through the real `outcrop call`.
Reads one JSON list of arguments a line; answers with one JSON object: exit code and standard output.
"""

from __future__ import annotations

import json
import os
import sys

from outcrop.cli import call, main

assert call  # imported so that the children need not


def run(argv: list[str]) -> tuple[int, str]:
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        os.dup2(writable, 1)
        code = 70
        try:
            code = main(argv)
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(writable)
    with open(readable, encoding="utf-8") as stream:
        told = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told


for line in sys.stdin:
    code, out = run(json.loads(line))
    print(json.dumps({"code": code, "out": out}), flush=True)
