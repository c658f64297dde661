"""Session files of Claude Code and Codex, written record by record as the programs themselves write them.

All of it happens on one day, so that a record's time is given as a clock time alone.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

DAY = "2026-05-01"


def at(clock: str) -> str:
    """`10:00:05.250` as a timestamp of the day."""
    return f"{DAY}T{clock if '.' in clock else clock + '.000'}Z"


def milliseconds(timestamp: str) -> int:
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000)


def uuid7(timestamp: str, name: str) -> str:
    """A version 7 UUID of that time; the same for the same name."""
    tail = uuid.uuid5(uuid.NAMESPACE_URL, name).hex
    head = f"{milliseconds(timestamp):012x}"
    return str(uuid.UUID(f"{head}7{tail[:3]}8{tail[3:18]}"))


class Claude:
    """A transcript of Claude Code, written record by record."""

    def __init__(self, letter: str, cwd: Path, session: str | None = None) -> None:
        self.letter = letter
        self.cwd = str(cwd)
        self.session = session or str(uuid.uuid5(uuid.NAMESPACE_URL, f"claude {letter}"))
        self.lines: list[dict[str, Any]] = []

    def record(self, kind: str, timestamp: str, **rest: Any) -> Claude:
        place = len(self.lines)
        parent = next((line["uuid"] for line in reversed(self.lines) if "uuid" in line), None)
        self.lines.append(
            {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": self.cwd,
                "sessionId": self.session,
                "version": "2.1.39",
                "gitBranch": "main",
                "type": kind,
                "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"claude {self.letter} {place}")),
                "timestamp": timestamp,
                **rest,
            }
        )
        return self

    def bare(self, **record: Any) -> Claude:
        """A record without an envelope, such as a title."""
        self.lines.append({**record, "sessionId": self.session})
        return self

    def user(self, clock: str, content: Any, **rest: Any) -> Claude:
        return self.record("user", at(clock), message={"role": "user", "content": content}, **rest)

    def assistant(self, clock: str, *blocks: dict[str, Any], stop: str | None = None, timestamp: str = "") -> Claude:
        message = {
            "id": f"msg_{self.letter}_{len(self.lines)}",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": list(blocks),
            "stop_reason": stop,
            "usage": {"input_tokens": 3, "output_tokens": 5},
        }
        request = f"req_{self.letter}_{len(self.lines)}"
        return self.record("assistant", timestamp or at(clock), message=message, requestId=request)

    def answer(self, clock: str, text: str) -> Claude:
        return self.assistant(clock, say(text), stop="end_turn")

    def result(self, clock: str, *results: tuple[str, str], is_error: bool = False) -> Claude:
        blocks = [
            {"type": "tool_result", "tool_use_id": call, "content": text, **({"is_error": True} if is_error else {})}
            for call, text in results
        ]
        return self.user(clock, blocks)

    def path(self, home: Path) -> Path:
        folder = re.sub(r"[^A-Za-z0-9]", "-", self.cwd)
        return home / ".claude" / "projects" / folder / f"{self.session}.jsonl"


def say(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def think(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl"}


def use(call: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": tool, "input": arguments}


class Codex:
    """A rollout of Codex, written record by record."""

    def __init__(self, letter: str, cwd: Path, clock: str, session: str | None = None) -> None:
        self.letter = letter
        self.cwd = str(cwd)
        self.start = at(clock)
        self.session = session or uuid7(self.start, f"codex {letter}")
        self.lines: list[dict[str, Any]] = []
        self.turns = 0
        self.turn_id = ""
        meta = {
            "id": self.session,
            "timestamp": self.start,
            "cwd": self.cwd,
            "originator": "codex_cli_rs",
            "cli_version": "0.150.0",
            "source": "cli",
            "model_provider": "openai",
            "git": {"branch": "main"},
        }
        self.record("session_meta", clock, **meta)

    def record(self, kind: str, clock: str, **payload: Any) -> Codex:
        self.lines.append({"timestamp": at(clock), "type": kind, "payload": payload})
        return self

    def item(self, clock: str, kind: str, **payload: Any) -> Codex:
        return self.record("response_item", clock, type=kind, **payload)

    def message(self, clock: str, kind: str, **payload: Any) -> Codex:
        return self.record("event_msg", clock, type=kind, **payload)

    def begin(self, clock: str, prompt: str, *, mirrored: bool = True) -> Codex:
        """A turn with its prompt, as the program writes it."""
        self.turns += 1
        self.turn_id = uuid7(at(clock), f"codex {self.letter} turn {self.turns}")
        self.message(clock, "task_started", turn_id=self.turn_id, model_context_window=200000)
        self.record("turn_context", clock, turn_id=self.turn_id, cwd=self.cwd, model="gpt-x", effort="high")
        self.item(clock, "message", role="user", content=[{"type": "input_text", "text": prompt}])
        if mirrored:
            self.message(clock, "user_message", message=prompt, images=[])
        return self

    def call(self, clock: str, call: str, tool: str, **arguments: Any) -> Codex:
        return self.item(clock, "function_call", name=tool, arguments=json.dumps(arguments), call_id=call)

    def output(self, clock: str, call: str, text: str) -> Codex:
        return self.item(clock, "function_call_output", call_id=call, output=text)

    def answer(self, clock: str, text: str, mirror: str = "", *, ends: bool = True) -> Codex:
        content = [{"type": "output_text", "text": text}]
        self.item(clock, "message", role="assistant", content=content, phase="final_answer" if ends else "commentary")
        self.message(mirror or clock, "agent_message", message=text)
        return self.complete(mirror or clock, text) if ends else self

    def complete(self, clock: str, text: str) -> Codex:
        return self.message(clock, "task_complete", turn_id=self.turn_id, last_agent_message=text)

    def path(self, home: Path) -> Path:
        year, month, day = DAY.split("-")
        stamp = self.start[:19].replace(":", "-")
        return home / ".codex" / "sessions" / year / month / day / f"rollout-{stamp}-{self.session}.jsonl"
