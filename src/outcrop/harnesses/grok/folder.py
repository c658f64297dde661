"""A session's folder as one place: the conversation is written anew by compactions, and its summary stands beside it.

It is read whole when one of the two files changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from outcrop.harnesses import jsonl
from outcrop.harnesses.grok.reader import SUMMARY
from outcrop.harnesses.json_values import object_of, some, string

_CHAT, _SUMMARY = "chat_history.jsonl", "summary.json"
_LIMIT, _SAMPLE = 4 * 1024 * 1024, 1024
_TOLD = (
    "info", "session_summary", "created_at", "session_kind", "head_branch", "generated_title", "agent_name",
    "parent_session_id", "inherited_prefix_len",
)  # fmt: skip
"""What of a summary is read."""


class Folder:
    """A session's folder. It is read whole: what a compaction takes out of the conversation stays in the history."""

    def __init__(self, path: str) -> None:
        self._chat, self._path = os.path.join(path, _CHAT), path
        self._summary = _document(os.path.join(path, _SUMMARY))

    def sessions(self) -> Iterable[tuple[str, str]]:
        named = string(object_of(self._summary, "info"), "id")
        yield named or os.path.basename(self._path), repr(signs_of(self._path))

    def records(self, native: str) -> Iterable[dict[str, Any]]:
        if self._summary:
            yield {**some(self._summary, *_TOLD), "type": SUMMARY}
        with open(self._chat, "rb") as stream:
            for line in jsonl.lines(stream, 0):
                if not line.oversize and (line.ended or jsonl.whole(line.data)):
                    found, faults = jsonl.records(line.data)
                    yield from found
                    yield from ({"fault": fault.reason, "sample": fault.sample} for fault in faults)
                elif line.oversize:
                    yield {"fault": "too large", "sample": line.data[:_SAMPLE].decode("utf-8", "replace")}

    def close(self) -> None:
        """Nothing stays open."""


def signs_of(folder: str) -> list[tuple[int, int]]:
    """Sizes and times of what is read; the summary may not be there yet."""
    found = [os.stat(os.path.join(folder, _CHAT))]
    try:
        found.append(os.stat(os.path.join(folder, _SUMMARY)))
    except FileNotFoundError:
        pass
    return [(sign.st_size, sign.st_mtime_ns) for sign in found]


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as stream:
            found = jsonl.document(stream.read(_LIMIT))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
