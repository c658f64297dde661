"""Where every file of the corpus lies in a home, as its program would have put it, and which are no transcripts.

A file of the corpus matches one line of `PLACES`, or of `NOT_TRANSCRIPTS`, or of both: what lies in a program's own
folders and is no transcript must stand there unread. Whatever matches neither is unexplained.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from world import World

Put = Callable[[Path, Path], None]
"""Puts (a file of the corpus, where it belongs)."""


def copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def from_sql(source: Path, target: Path) -> None:
    """The corpus has the statements that make the database."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(target)) as database:
        database.executescript(source.read_text(encoding="utf-8"))
        database.commit()


def cursor_rows(source: Path, target: Path) -> None:
    """The corpus has the rows of Cursor's table of keys and values, one a line."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(target)) as database:
        database.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        for row in map(json.loads, source.read_text(encoding="utf-8").splitlines()):
            database.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (row["key"], json.dumps(row["value"])))
        database.commit()


def kiro_row(source: Path, target: Path) -> None:
    """The corpus has the values of two rows of Kiro's table of conversations."""
    target.parent.mkdir(parents=True, exist_ok=True)
    value = source.read_text(encoding="utf-8")
    with closing(sqlite3.connect(target)) as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS conversations_v2 (key TEXT, conversation_id TEXT, value TEXT,"
            " created_at INTEGER, updated_at INTEGER, PRIMARY KEY (key, conversation_id))"
        )
        native = json.loads(value)["conversation_id"]
        database.execute("INSERT INTO conversations_v2 VALUES ('/w', ?, ?, 1, 1)", (native, value))
        database.commit()


STAGE = r"jazzyalex__agent-sessions/Resources/Fixtures/stage0/agents"
MORAINE = r"misc-fixtures/eric-tramel__moraine/fixtures"
VIEW = r"kenn-io__agentsview/internal/parser/testdata"
KIMI = r"kimi/MoonshotAI__kimi-code/packages"
BRAIN = ".gemini/antigravity-cli/brain"
COWORK = "Library/Application Support/Claude/local-agent-mode-sessions"

PLACES: list[tuple[str, str] | tuple[str, str, Put]] = [
    (r"aider/([^/]+)/(\.aider\.chat\.history\.md)", r"code/\1/\2"),
    (rf"antigravity/{STAGE}/antigravity/(cli_\w+)\.jsonl", rf"{BRAIN}/\1/.system_generated/logs/transcript.jsonl"),
    (rf"antigravity/{STAGE}/antigravity/(small\.md)", r".gemini/antigravity/brain/small/\1"),
    (r"claude-code/([^/]+)/(?:test/fixtures/transcripts/(.+)|(?:.*/)?([^/]+))", r".claude/projects/\1/\2\3"),
    (rf"{MORAINE}/claude-cowork/local-agent-mode-sessions/(.+)", rf"{COWORK}/\1"),
    (r"codex/Hoper-J__cpolar-connect/(\.codex/.+)", r"\1"),
    (r"codex/EntityProcess__agentv/(.+)", r".codex/sessions/2026/06/17/rollout-2026-06-17T00-00-00-\1"),
    (r"copilot-cli/softwaresalt__agent-engram/(.+)", r"\1"),
    (r"copilot-cli/EntityProcess__agentv/(.+)\.jsonl", r".copilot/session-state/\1/events.jsonl"),
    (rf"copilot-cli/{STAGE}/copilot/(?:subdir_v1/)?(.+)", r".copilot/session-state/\1"),
    (r"crush/Exa-Networks__exabgp/(.+)", r"code/exabgp/\1"),
    (rf"cursor/{STAGE}/cursor/(\w+)\.jsonl", r".cursor/projects/w/agent-transcripts/\1/\1.jsonl"),
    (rf"cursor/{STAGE}/cursor/subagent/(\w+)\.jsonl", r".cursor/projects/w/agent-transcripts/\1/\1.jsonl"),
    (rf"cursor/{STAGE}/cursor/subagent/(subagents/.+)", r".cursor/projects/w/agent-transcripts/parent/\1"),
    (r"cursor/slevin48__cursor-history/(.+)", r".config/Cursor/User/workspaceStorage/aa/\1"),
    (rf"{MORAINE}/cursor/(projects/.+)", r".cursor/\1"),
    (rf"{MORAINE}/cursor/state-vscdb-kv\.jsonl", r".config/Cursor/User/globalStorage/state.vscdb", cursor_rows),
    (rf"droid/{STAGE}/droid/(session_store_.+)", r".factory/sessions/-tmp/\1"),
    (rf"droid/{STAGE}/droid/(stream_json_.+)", r".factory/projects/-tmp/\1"),
    # A document, though the collection calls it lines.
    (r"gemini-cli/entireio__cli/(.+)\.jsonl", r".gemini/tmp/entire/chats/session-\1.json"),
    (r"gemini-cli/google-gemini__gemini-cli/(.+)", r".gemini/tmp/gemini/chats/\1"),
    (rf"gemini-cli/{STAGE}/gemini/(.+)", r".gemini/tmp/stage/chats/\1"),
    (r"goose/jwp23__dotfiles/(.+)", r"\1"),
    (rf"grok/{STAGE}/grok/(\w+\.jsonl?)", r".grok/sessions/%2Ftmp/019f6851-7ec4-7ef0-97d3-03f3eee38755/\1"),
    (rf"grok/{STAGE}/grok/subagent/(.+)", r".grok/sessions/%2Ftmp/019f6851-7ec4-7ef0-97d3-03f3eee38756/\1"),
    (rf"hermes/{STAGE}/hermes/(\w+)\.json", r".hermes/sessions/session_20260429_hermes_\1.json"),
    (rf"{MORAINE}/hermes/(.+)", r".hermes/\1"),
    (
        rf"{KIMI}/agent-core-v2/test/spine/fixtures/(.+)\.jsonl",
        r".kimi-code/sessions/wd_spine/\1/agents/main/wire.jsonl",
    ),
    (rf"{KIMI}/migration-legacy/test/fixtures/(.+)", r".kimi/sessions/fixtures/\1"),
    (rf"kimi/{STAGE}/kimi/(\w+)\.jsonl", r".kimi-code/sessions/wd_stage/\1/agents/main/wire.jsonl"),
    (rf"kimi/{STAGE}/kimi/(state\.json)", r".kimi-code/sessions/wd_stage/small/\1"),
    (rf"kiro/{VIEW}/kiro_sqlite/.+", r".local/share/kiro-cli/data.sqlite3", kiro_row),
    (rf"misc-fixtures/{VIEW}/kiro_sqlite/.+", r".local/share/amazon-q/data.sqlite3", kiro_row),
    (rf"{MORAINE}/kiro/session\.(jsonl?)", r".kiro/sessions/cli/11111111-2222-4333-8444-555555555555.\1"),
    (rf"{MORAINE}/nac/store\.sql", r".config/nac/store.db", from_sql),
    (rf"{MORAINE}/prime-agent/session\.jsonl", r".prime/agent/sessions/12345678-1234-4234-8234-123456789abc.jsonl"),
    (
        rf"{MORAINE}/prime-agent/child\.jsonl",
        r".prime/agent/session-artifacts/12345678-1234-4234-8234-123456789abc/sub-abcdefab/"
        r"abcdefab-cdef-4abc-8def-abcdefabcdef.jsonl",
    ),
    (rf"openclaw/{STAGE}/openclaw/(.+)", r".openclaw/agents/main/sessions/\1"),
    (rf"opencode/{STAGE}/opencode/(storage_\w+)/(.+)", r".local/share/opencode/project/\1/storage/\2"),
    (r"opencode/jwp23__dotfiles/(.+)", r"\1"),
    (r"opencode/mule-ai__mule/(.+)", r"\1"),
    (r"openhands/enyst__playground/tests/[\w/]+/(trajs|mock_output)/(.+)", r"exports/openhands/\1/\2"),
    (r"pi/badlogic__pi-mono/.*/(.+)", r".pi/agent/sessions/--mono--/\1"),
    (rf"pi/{STAGE}/pi/(.+)", r".pi/agent/sessions/--stage--/\1"),
    (r"pi/can1357__oh-my-pi/(.+)", r".omp/agent/sessions/--pi--/\1"),
    (rf"qwen/{STAGE}/qwen/(.+)", r".qwen/projects/-stage/chats/\1"),
    (r"qwen/kamillayarullina__hockeyscrapper/(.+)", r"\1"),
]
"""Pattern of the whole path in the corpus → place in the home, and how it gets there (copied by default)."""

CONFIGURED = {
    "aider": ["code"],
    "claude-cowork": [COWORK],
    "openhands": ["exports/openhands"],
}
"""Roots that somebody has to name: no fixed place (exports, projects), or another system's."""

NOT_TRANSCRIPTS: list[tuple[str, str]] = [
    (r"(ATTRIBUTION|FILES)\.tsv|LICENSES/.+", "tells of the corpus itself"),
    (r"antigravity/.+/small\.md", "a paper that an agent wrote for its user; no conversation"),
    (r"codex/.+/history\.jsonl", "what was typed into the prompt, for the arrow keys; the rollouts hold the sessions"),
    (rf"{MORAINE}/claude-cowork/.+/audit\.jsonl", "the application's log beside the transcripts of the same session"),
    (rf"{KIMI}/.+/with-subagent-collapsed/context\.jsonl", "the session's `wire.jsonl` stands beside it and says more"),
    (rf"{MORAINE}/nac/normalized\.jsonl", "what another reader made of the database beside it"),
    (rf"misc-fixtures/{VIEW}/qwenpaw/.+", "QwenPaw: left out, one made-up example is no ground"),
    (rf"misc-fixtures/{VIEW}/vibe/.+", "Mistral Vibe: left out, two made-up examples are no ground"),
    (r"misc-fixtures/kenn-io__agentsview/testdata/visualstudio-copilot/.+", "spans of single model calls, redacted"),
    (r"swe-agent/.+\.traj", "recorded evaluations: no session id, no times, no user"),
]
"""Pattern of the whole path in the corpus → why nothing is read of it."""


@dataclass(frozen=True)
class Laid:
    """A file of the corpus in the home. `reason`: why it is not read."""

    origin: str
    path: Path | None
    reason: str | None


def placed(name: str) -> tuple[str, Put] | None:
    """Where a file of the corpus belongs and how it gets there."""
    found = [(re.fullmatch(row[0], name), row) for row in PLACES]
    matching = [(match, row) for match, row in found if match]
    assert len(matching) <= 1, f"{name} has several places"
    for match, row in matching:
        return match.expand(row[1]), row[2] if len(row) == 3 else copied
    return None


def reason_of(name: str) -> str | None:
    return next((reason for pattern, reason in NOT_TRANSCRIPTS if re.fullmatch(pattern, name)), None)


def laid_out(corpus: Path, world: World) -> list[Laid]:
    """Every file of the corpus put into the world's home, the roots configured."""
    laid = list(_laid(corpus, world.home))
    listed = [{"path": str(world.home / "code" / "exabgp"), "data_dir": ".crush"}]
    projects = world.home / ".local" / "share" / "crush" / "projects.json"
    projects.parent.mkdir(parents=True)
    projects.write_text(json.dumps({"projects": listed}), encoding="utf-8")
    world.store.mkdir(parents=True)
    (world.store / "config.toml").write_text(
        "".join(
            f"[sources.{source}]\nroots = {json.dumps([str(world.home / root) for root in roots])}\n"
            for source, roots in CONFIGURED.items()
        ),
        encoding="utf-8",
    )
    return laid


def _laid(corpus: Path, home: Path) -> Iterator[Laid]:
    for source in sorted(path for path in corpus.rglob("*") if path.is_file()):
        name = source.relative_to(corpus).as_posix()
        place, reason = placed(name), reason_of(name)
        assert place or reason, f"unexplained: {name}"
        target = None
        if place:
            target = home / place[0]
            place[1](source, target)
        yield Laid(name, target, reason)
