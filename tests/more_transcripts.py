"""Session files of Kimi CLI and Qwen Code for the contract cases that name these harnesses: short chats.

Under letters of their own: ZK is the chat Z of the cases, UK a raw id with a blank and an accent, VK and VQ one raw id
in two harnesses.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from transcripts import at, milliseconds

VERSION = "0.21.13"
TWICE = "0d5e7c1a-94b2-4f60-8a3d-2b6c9e1f7a50"
"""Raw session id of both VK and VQ."""


class Kimi:
    """A wire log of Kimi CLI; `session` names its folder."""

    def __init__(self, letter: str, cwd: Path, session: str | None = None) -> None:
        self.letter = letter
        self.cwd = str(cwd)
        self.session = session or str(uuid.uuid5(uuid.NAMESPACE_URL, f"kimi {letter}"))
        self.lines: list[dict[str, Any]] = [{"type": "metadata", "protocol_version": "1.9"}]

    def event(self, clock: str, kind: str, **payload: Any) -> Kimi:
        seconds = milliseconds(at(clock)) / 1000
        self.lines.append({"timestamp": seconds, "message": {"type": kind, "payload": payload}})
        return self

    def user(self, clock: str, text: str) -> Kimi:
        return self.event(clock, "TurnBegin", user_input=text)

    def answer(self, clock: str, text: str) -> Kimi:
        self.event(clock, "StepBegin", n=1).event(clock, "ContentPart", type="text", text=text)
        return self.event(clock, "TurnEnd")

    def path(self, home: Path) -> Path:
        bucket = hashlib.md5(self.cwd.encode(), usedforsecurity=False).hexdigest()
        return home / ".kimi" / "sessions" / bucket / self.session / "wire.jsonl"


class Qwen:
    """A session file of Qwen Code."""

    def __init__(self, letter: str, cwd: Path, session: str | None = None) -> None:
        self.letter = letter
        self.cwd = str(cwd)
        self.session = session or str(uuid.uuid5(uuid.NAMESPACE_URL, f"qwen {letter}"))
        self.lines: list[dict[str, Any]] = []

    def record(self, clock: str, kind: str, role: str, text: str, **rest: Any) -> Qwen:
        self.lines.append(
            {
                "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"qwen {self.letter} {len(self.lines)}")),
                "parentUuid": self.lines[-1]["uuid"] if self.lines else None,
                "sessionId": self.session,
                "timestamp": at(clock),
                "type": kind,
                "cwd": self.cwd,
                "version": VERSION,
                "message": {"role": role, "parts": [{"text": text}]},
                **rest,
            }
        )
        return self

    def user(self, clock: str, text: str) -> Qwen:
        return self.record(clock, "user", "user", text)

    def answer(self, clock: str, text: str) -> Qwen:
        return self.record(clock, "assistant", "model", text, model="qwen-x")

    def path(self, home: Path) -> Path:
        folder = re.sub(r"[^a-z0-9]", "-", self.cwd.lower())
        return home / ".qwen" / "projects" / folder / "chats" / f"{self.session}.jsonl"


def written(timestamp: str | float) -> str:
    """A record's time as the doors write it; Kimi CLI keeps seconds."""
    if isinstance(timestamp, str):
        return timestamp
    moment = datetime.fromtimestamp(timestamp, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def kimi_chat(cwd: Path) -> Kimi:
    return Kimi("ZK", cwd).user("13:00:00", "hello gannet").answer("13:00:02", "hi")


def kimi_odd_name(cwd: Path) -> Kimi:
    return Kimi("UK", cwd, "odd séance 2").user("18:11:00", "hello razorbill").answer("18:11:02", "hello")


def kimi_twice(cwd: Path) -> Kimi:
    return Kimi("VK", cwd, TWICE).user("18:20:00", "hello from kimi").answer("18:20:02", "one")


def qwen_twice(cwd: Path) -> Qwen:
    return Qwen("VQ", cwd, TWICE).user("18:30:00", "hello from qwen").answer("18:30:02", "two")
