"""A session whose records tell no time, in a place of many files: it has the time of those files (ruling 22)."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

from world import World

NATIVE = "019f0000-0000-7000-8000-00000000000a"
SAID, MADE = 1780300800, 1780387200
"""When the conversation was last written, and when a name last came into its folder."""


def test_a_folder_of_its_own_does_not_date_what_lies_in_it(small_world: World) -> None:
    folder = small_world.home / ".grok" / "sessions" / "-w" / NATIVE
    folder.mkdir(parents=True)
    rows = [{"type": "user", "content": [{"type": "text", "text": "sound the foghorn"}]},
            {"type": "assistant", "content": "It sounds."}]  # fmt: skip
    chat = folder / "chat_history.jsonl"
    chat.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    os.utime(chat, (SAID, SAID))
    os.utime(folder, (MADE, MADE))
    small_world.index()
    always = {"start_datetime": "2026-01-01T00:00:00Z", "end_datetime": "2027-01-01T00:00:00Z"}
    (row,) = small_world.data("list_sessions", **always)["sessions"]
    wanted = datetime.fromtimestamp(SAID, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert row["session"]["started_at"] == row["session"]["updated_at"] == wanted
