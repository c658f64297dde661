"""How one step of the model ended and what is recorded about it, in the messages of every generation."""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.opencode.records import mapping, text
from outcrop.model import End

GOES_ON = ("tool-calls", "unknown")
"""Ends of a step after which the loop goes on."""

_TOLD = ("finish", "cost", "agent", "mode", "retry", "variant")


def error_text(error: dict[str, Any]) -> str:
    """`APIError: the message` of a recorded error; empty where there is none."""
    name = text(error, "name") or text(error, "type")
    said = text(mapping(error.get("data")), "message") or text(error, "message")
    return ": ".join(filter(None, (name, said)))


def failed(error: dict[str, Any]) -> End:
    """Whether an error is the user's own doing."""
    return End.CANCELLED if "Aborted" in (text(error, "name") or text(error, "type")) else End.CRASHED


def finished(finish: str) -> End | None:
    """The end that a completed step gives its turn; None where the loop goes on."""
    if finish in GOES_ON:
        return None
    return End.CRASHED if finish == "error" else End.FINAL


def told(data: dict[str, Any]) -> dict[str, Any] | None:
    """What is recorded about a step: its end, its counts, its agent, its provider."""
    found = {name: data[name] for name in _TOLD if data.get(name)}
    if isinstance(data.get("tokens"), dict):
        found["usage"] = data["tokens"]
    provider = text(data, "providerID") or text(mapping(data.get("model")), "providerID")
    return (found | ({"provider": provider} if provider else {})) or None
