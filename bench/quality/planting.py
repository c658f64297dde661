"""Writes planted sessions into a home as transcripts of Claude Code, between small talk of other sessions.

What surrounds a fact is taken from a fixed list of the sentences that every session is full of, so that its words say
nothing; a tool output around a deep fact is made of numbered lines.
"""

from __future__ import annotations

import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cases import SEED, Place, Planted

_NAMES = uuid.UUID("6f1c2d9e-63c0-4b52-9f0c-2a6d9b1f7c11")
_BEGIN = datetime(2026, 6, 1, 8, tzinfo=UTC)
_ASKED = (
    "Please have a look at the failing build.",
    "Can you run the tests again and tell me what is left?",
    "Thanks, go on with the next one.",
    "Please write that down in the notes.",
    "What do you think we should do first?",
    "Continue, and keep the change small.",
)
_ANSWERED = (
    "I looked at the code and will start with the smaller change.",
    "All tests pass now; the change touches two files.",
    "Done. I also removed the part that nobody used.",
    "Let me read the configuration before I change anything.",
    "The first step is finished, the second one needs a decision of yours.",
    "That works. I will update the documentation next.",
)
_DEEP_LINES = 2400


def session_id(name: str) -> str:
    """The native id of a planted session; of the copy of a fork: `name` + "-copy"."""
    return str(uuid.uuid5(_NAMES, name))


def write(home: Path, sessions: list[Planted]) -> None:
    chance = random.Random(SEED)
    folder = home / ".claude" / "projects" / "-srv-planted"
    folder.mkdir(parents=True, exist_ok=True)
    for number, session in enumerate(sessions):
        made = _Transcript(session_id(session.name), _BEGIN + timedelta(hours=3 * number))
        made.talk(chance, chance.randint(1, 3))
        for place, text in session.parts:
            made.fact(place, text, session.deep, chance)
        made.talk(chance, chance.randint(1, 3))
        if session.title is not None:
            made.lines.append({"type": "custom-title", "customTitle": session.title, "sessionId": made.session})
        made.write(folder)
        if session.fork:
            copy = _Transcript(session_id(f"{session.name}-copy"), made.clock + timedelta(hours=1))
            copy.lines = [{**line, "sessionId": copy.session} for line in made.lines]
            copy.last = made.last
            copy.talk(chance, 2)
            copy.write(folder)


class _Transcript:
    def __init__(self, session: str, clock: datetime) -> None:
        self.session, self.clock = session, clock
        self.lines: list[dict[str, Any]] = []
        self.last: str | None = None

    def talk(self, chance: random.Random, rounds: int) -> None:
        for _ in range(rounds):
            self._say("user", chance.choice(_ASKED))
            self._say("assistant", [{"type": "text", "text": chance.choice(_ANSWERED)}])

    def fact(self, place: Place, text: str, deep: bool, chance: random.Random) -> None:
        if place is Place.PROMPT:
            self._say("user", text)
            return
        if place is Place.ANSWER:
            self._say("assistant", [{"type": "text", "text": text}])
            return
        if place is Place.TALK and chance.random() < 0.5:
            self._say("user", text)
            self._say("assistant", [{"type": "text", "text": chance.choice(_ANSWERED)}])
            return
        self._say("user", chance.choice(_ASKED))
        if place is Place.TALK:
            self._say("assistant", [{"type": "text", "text": text}])
        elif place is Place.REASONING:
            thought = [{"type": "thinking", "thinking": text, "signature": ""}]
            self._say("assistant", [*thought, {"type": "text", "text": chance.choice(_ANSWERED)}])
        else:
            call = f"toolu_{len(self.lines):06}"
            output = _deep(text) if deep else f"$ run\n{text}\nexit 0"
            self._say("assistant", [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "run"}}])
            self._say("user", [{"type": "tool_result", "tool_use_id": call, "content": output}])
            self._say("assistant", [{"type": "text", "text": chance.choice(_ANSWERED)}])

    def _say(self, role: str, content: Any) -> None:
        self.clock += timedelta(seconds=20)
        record = str(uuid.uuid5(_NAMES, f"{self.session} {len(self.lines)}"))
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{record[:12]}", "model": "m", "stop_reason": "end_turn"}
        self.lines.append(
            {
                "type": role, "uuid": record, "parentUuid": self.last, "sessionId": self.session, "cwd": "/srv/planted",
                "timestamp": self.clock.strftime("%Y-%m-%dT%H:%M:%S.000Z"), "message": message, "version": "2.1.0",
            }
        )  # fmt: skip
        self.last = record

    def write(self, folder: Path) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)
        (folder / f"{self.session}.jsonl").write_text(text, encoding="utf-8")


def _deep(text: str) -> str:
    """About 100 KB of lines, the fact behind nine tenths of them."""
    lines = [f"step {at:05} of the run finished without remarks" for at in range(_DEEP_LINES)]
    lines.insert(_DEEP_LINES * 9 // 10, text)
    return "\n".join(lines)
