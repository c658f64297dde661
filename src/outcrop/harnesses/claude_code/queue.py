"""What a person typed while the agent was at work: the queue that Claude Code keeps of it, as its records tell.

`enqueue` brings a text. `dequeue` hands it over as a prompt of its own, which is recorded as such; `popAll` gives all
back to the person. `remove` hands the oldest typed one to the working agent: some versions then record a
`queued_command` with the same text, others nothing more, so that the queue alone tells of it.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.claude_code.prompts import Said, recognise
from outcrop.ids import text_digest

_MOST = 16
_LONGEST = 16_000
"""Characters of a text that is remembered; a longer one is told by its `enqueue` alone."""


class Queue:
    """The texts that wait, and digests of those that were handed over last."""

    def __init__(self, state: dict[str, Any] | None) -> None:
        known = state or {}
        self._waiting: list[str] = list(known.get("waiting", ()))
        self._given: list[str] = list(known.get("given", ()))

    def state(self) -> dict[str, Any] | None:
        if not self._waiting and not self._given:
            return None
        return {"waiting": list(self._waiting), "given": list(self._given)}

    def take(self, operation: str, text: str) -> str | None:
        """Follow a queue operation; the text that it handed to the working agent, where there is one."""
        if operation == "enqueue":
            if text and len(text) <= _LONGEST:
                self._waiting = [*self._waiting, text][-_MOST:]
        elif operation == "popAll":
            self._waiting = []
        elif operation == "dequeue" and self._waiting:
            del self._waiting[0]
        elif operation == "remove":
            # Notices of the program wait in the same queue, but always come as records of their own.
            typed = next((one for one in self._waiting if recognise(one).said in (Said.TYPED, Said.COMMAND)), None)
            if typed is not None:
                self._waiting.remove(typed)
                self._given = [*self._given, text_digest(typed)][-_MOST:]
            return typed
        return None

    def heard(self, text: str) -> None:
        """A user record brought this text, so it waits no longer."""
        if text in self._waiting:
            self._waiting.remove(text)

    def repeats(self, text: str) -> bool:
        """Whether a `queued_command` says what `remove` handed over already; a text that still waits is handed over."""
        digest = text_digest(text)
        if digest in self._given:
            self._given.remove(digest)
            return True
        self.heard(text)
        return False
