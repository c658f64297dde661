"""How commands speak: JSON documents, plain text for people, errors, exit codes.

Text from the history is data of unknown origin: control characters in it are made visible before they can reach a
terminal. Colour only where a person looks, and never the only sign of anything.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from outcrop.errors import EXIT_IO, EXIT_NOT_READY, EXIT_NOTHING, EXIT_OK, EXIT_USAGE

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_EXITS = {
    "not_found": EXIT_NOTHING,
    "invalid_request": EXIT_USAGE,
    "invalid_id": EXIT_USAGE,
    "unsupported_event_type": EXIT_USAGE,
    "busy": EXIT_NOT_READY,
    "backend_failure": EXIT_NOT_READY,
}
_UNITS = ((86400 * 365, "year"), (86400 * 30, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))


def exit_code(envelope: dict[str, Any]) -> int:
    """The exit code for an envelope: 0 for every success."""
    from outcrop.contracts.mcp_v1.envelope import NO_STORE

    if "error" not in envelope:
        return EXIT_OK
    error = envelope["error"]
    if error.get("details", {}).get("reason") in (NO_STORE, "read_model_refresh"):
        return EXIT_NOT_READY
    return _EXITS.get(error["code"], EXIT_IO)


def exit_code_of_list(envelope: dict[str, Any]) -> int:
    """The same for a command that may find nothing."""
    from outcrop.contracts.mcp_v1.envelope import NOTHING_INDEXED

    if "error" in envelope or envelope["data"]["result_count"]:
        return exit_code(envelope)
    return EXIT_NOT_READY if NOTHING_INDEXED in envelope["warnings"] else EXIT_NOTHING


def json_line(value: Any) -> None:
    """One JSON document on one line."""
    print(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def error(message: str, hint: str | None = None) -> None:
    """One line on stderr, and one more where something can be done about it."""
    print(f"outcrop: error: {clean(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {clean(hint)}", file=sys.stderr)


def answer(envelope: dict[str, Any], as_json: bool, show: Callable[[dict[str, Any]], None]) -> None:
    """An envelope as it is, or its error, or its warnings and what `show` prints of it for people."""
    if as_json:
        json_line(envelope)
    elif "error" in envelope:
        envelope_error(envelope)
    else:
        warnings(envelope)
        show(envelope)


def envelope_error(envelope: dict[str, Any]) -> None:
    told = envelope["error"]
    reason = told.get("details", {}).get("reason")
    error(f"{told['message']} ({reason})" if told["code"] == "invalid_id" and reason else told["message"])


def warnings(envelope: dict[str, Any]) -> None:
    for warning in envelope["warnings"]:
        print(f"outcrop: warning: {clean(warning)}", file=sys.stderr)


def clean(text: str) -> str:
    """Text that cannot steer a terminal: control and direction characters become visible stand-ins."""
    return _CONTROL.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


class Ink:
    """Emphasis on a stream, or none."""

    def __init__(self, stream: TextIO | None) -> None:
        self.on = _colour(stream)

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)

    def mark(self, text: str) -> str:
        """What a search was for."""
        return self._wrap("1;33", text)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on else text


def _colour(stream: TextIO | None) -> bool:
    """NO_COLOR before CLICOLOR_FORCE and FORCE_COLOR before the terminal before CLICOLOR=0."""
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return (
        stream is not None
        and stream.isatty()
        and os.environ.get("TERM") != "dumb"
        and os.environ.get("CLICOLOR") != "0"
    )


def moment(text: str, now: datetime | None = None) -> str:
    """A timestamp of an envelope for people: local time, and how long ago."""
    then = datetime.fromisoformat(text)
    passed = ((now or datetime.now(UTC)) - then).total_seconds()
    try:
        shown = f"{then.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError):
        shown = text
    return f"{shown} ({ago(passed)})"


def ago(seconds: float) -> str:
    """`3 hours ago`, `in 2 days`, `just now`."""
    size = abs(seconds)
    for unit, name in _UNITS:
        if size >= unit:
            count = int(size // unit)
            span = f"{count} {name}{'' if count == 1 else 's'}"
            return f"{span} ago" if seconds > 0 else f"in {span}"
    return "just now"
