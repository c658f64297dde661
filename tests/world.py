"""A whole world in a temporary folder: a HOME with native session files of known content, and the real command on it.

The sessions are those of the numbered contract cases (`tests/CASES.md`), each under its letter; all of them ran on
2026-05-01. `World.call` goes through a real `outcrop mcp` process and holds every envelope against the schema that the
process publishes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from more_transcripts import Kimi, Qwen, kimi_chat, kimi_odd_name, kimi_twice, qwen_twice, written
from transcripts import DAY, Claude, Codex, at, milliseconds, say, think, use

__all__ = ["DAY", "Claude", "Codex", "Places", "Run", "World", "at", "milliseconds", "say", "think", "use"]

AUTO_VARIABLE = "OUTCROP_AUTO_INDEX"
SOURCE = Path(__file__).parent.parent / "src"
FORKER = Path(__file__).parent / "forker.py"
WHOLE_DAY = {"start_datetime": f"{DAY}T00:00:00Z", "end_datetime": "2026-05-02T00:00:00Z"}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SHARED_ID = "5f0d6a1e-3b7c-4d2a-9e8f-1a2b3c4d5e6f"
"""Raw session id of both V1 and V2."""
BROKEN_TIME = "not a time"


Session = Claude | Codex | Kimi | Qwen


@dataclass
class Places:
    """Working directories: a repository with two worktrees, another repository, and a plain folder."""

    repository: Path
    worktree: Path
    agent: Path
    other: Path
    plain: Path


def k(places: Places) -> Session:
    beam = str(places.repository / "src" / "beam.py")
    check = "pytest -q tests/test_beam.py && cat src/beam.py"
    return (
        Claude("K", places.repository)
        .user("10:00:00", "Please fix the lighthouse beacon timeout in src/beam.py")
        .assistant(
            "10:00:05.250",
            think("check the lamp first"),
            say("I will read the beam module."),
            use("toolu_1", "Read", file_path=beam),
        )
        .result("10:00:06", ("toolu_1", "def beam(): timeout=5"))
        .assistant("10:00:10", use("toolu_2", "Edit", file_path=beam, old_string="5", new_string="30"))
        .result("10:00:11", ("toolu_2", "ok"))
        .assistant("10:00:12", use("toolu_3", "Bash", command=check), stop="tool_use")
        .result("10:00:20", ("toolu_3", "1 failed AssertionError quasar"), is_error=True)
        .answer("10:00:30", "Raised the beacon timeout to thirty seconds.")
        .user("10:05:00", "Thanks, now summarise naïve 日本語 café")
        .answer("10:05:04", "Summary: beacon fixed.")
        .bare(type="ai-title", aiTitle="Beacon timeout")
    )


def x(places: Places) -> Session:
    root = str(places.worktree)
    patch = (
        "*** Begin Patch\n*** Update File: src/beam.py\n@@\n-timeout=5\n+timeout=30\n"
        "*** Add File: docs/new note.md\n+note\n*** End Patch\n"
    )
    failed = "Exit code: 101\nWall time: 5.1 seconds\nOutput:\nerror: could not compile `harbour`\n"
    patched = json.dumps({"output": "Success. Updated the following files:\n", "metadata": {"exit_code": 0}})
    return (
        Codex("X", places.worktree, "11:00:00")
        .begin("11:00:01", "Migrate the harbour schema")
        .item("11:00:02", "reasoning", id="rs_1", summary=[], content=None, encrypted_content="gAAAAB" + "Zx9k" * 40)
        .call("11:00:03", "call_1", "exec_command", cmd="cargo test --workspace", workdir=root)
        .output("11:00:09", "call_1", failed)
        .item("11:00:10", "custom_tool_call", status="completed", call_id="call_2", name="apply_patch", input=patch)
        .item("11:00:11", "custom_tool_call_output", call_id="call_2", output=patched)
        .answer("11:00:20", "Harbour schema migrated.", "11:00:20.003")
        .begin("11:10:00", "Keep going")
        .call("11:10:05", "call_3", "exec_command", cmd="ls")
        .message("11:10:09", "turn_aborted", reason="interrupted")
    )


def y(places: Places) -> Session:
    """Its prompt has no mirror: nothing gives it a label."""
    return (
        Codex("Y", places.other, "12:00:00")
        .begin("12:00:00", "Check whether the buoy monitor starts", mirrored=False)
        .call("12:00:08", "call_1", "exec_command", cmd="sed -n 1,5p src/beam.py")
    )


def z(places: Places) -> Session:
    return Claude("Z", places.plain).user("13:00:00", "hello gannet").answer("13:00:02", "hi")


def w(places: Places) -> Session:
    return (
        Claude("W", places.agent)
        .user("14:00:00", "look up cormorant")
        .assistant("14:00:03", use("toolu_1", "WebSearch", query="cormorant"))
        .result("14:00:06", ("toolu_1", "a seabird"))
        .assistant("14:00:09", use("toolu_2", "Write", file_path=str(places.agent / "src" / "beam.py"), content="x"))
        .result("14:00:10", ("toolu_2", "File created"))
        .answer("14:00:20", "Cormorants dive.")
    )


def m(places: Places) -> Session:
    return (
        Codex("M", places.repository, "15:00:00")
        .begin("15:00:01", "What did we do before?")
        .call("15:00:02", "call_1", "mcp__moraine__search_sessions", query="lighthouse")
        .output("15:00:03", "call_1", '1 hit for "lighthouse": please fix the lighthouse beacon')
        .call("15:00:04", "call_2", "mcp__moraine__file_attention", path="src/beam.py")
        .output("15:00:05", "call_2", "no touches")
        .answer("15:00:09", "Nothing of note.")
    )


def d(places: Places) -> Session:
    rollout = Codex("D", places.plain, "15:30:00")
    for place, word in enumerate(("one", "two", "three")):
        rollout.begin(f"15:3{place}:01", "continue").answer(f"15:3{place}:05", f"alpha {word}")
    return rollout


LONG_TEXT = (
    ("the tide table goes on " * 20_000)[:249_999] + " zephyr" + (" and on it goes" * 5_000)[: 300_000 - 250_006]
)


def long(places: Places) -> Session:
    return Claude("L", places.plain).user("16:00:00", "print the tides").answer("16:00:09", LONG_TEXT)


def p(places: Places) -> Session:
    rollout = Codex("P", places.plain, "17:00:00")
    for turn in range(1, 61):
        clock = f"17:{turn - 1:02}:01"
        rollout.begin(clock, f"gull number {turn}")
        if turn == 7:
            for step in range(58):
                rollout.call(clock, f"call_{step}", "exec_command", cmd=f"count {step}")
                rollout.output(clock, f"call_{step}", f"counted {step}")
        rollout.answer(clock, f"Counted {turn}.")
    return rollout


def u(places: Places) -> Session:
    """A raw session id with a blank and a letter outside ASCII."""
    return Claude("U", places.plain, "odd séance 1").user("18:10:00", "hello puffin").answer("18:10:02", "hello")


def v1(places: Places) -> Session:
    return Claude("V1", places.plain, SHARED_ID).user("18:20:00", "hello from one").answer("18:20:02", "one")


def v2(places: Places) -> Session:
    rollout = Codex("V2", places.plain, "18:30:00", SHARED_ID)
    return rollout.begin("18:30:01", "hello from two").answer("18:30:02", "two")


def compacted(places: Places) -> Session:
    """A prompt, a compaction that replays it, and work that goes on in the same turn."""
    replay = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Sort the nets"}]}
    return (
        Codex("C", places.plain, "18:40:00")
        .begin("18:40:01", "Sort the nets")
        .call("18:40:02", "call_1", "exec_command", cmd="ls nets")
        .output("18:40:03", "call_1", "red blue")
        .record("compacted", "18:40:04", message="The nets are being sorted.", replacement_history=[replay])
        .answer("18:40:09", "Nets sorted.")
    )


AGENTS = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>"
ENVIRONMENT = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"


def injected_codex(places: Places) -> Session:
    """Context that the program wrote under the user's name; the true prompt has a long first line."""
    rollout = Codex("I1", places.plain, "18:50:00")
    for text in (AGENTS, ENVIRONMENT):
        rollout.item("18:50:00", "message", role="user", content=[{"type": "input_text", "text": text}])
    return rollout.begin("18:50:01", "🪝" * 200 + "\nsecond line").answer("18:50:02", "Hooked.")


def injected_claude(places: Places) -> Session:
    return (
        Claude("I2", places.plain)
        .user("18:55:00", "Caveat: injected by the program", isMeta=True)
        .user("18:55:01", "count the oars")
        .answer("18:55:03", "Eight oars.")
        .user("18:55:04", "A reminder from the program", isMeta=True)
    )


def parallel(places: Places) -> Session:
    """Three calls in one record, answered in another order."""
    return (
        Claude("G", places.plain)
        .user("19:00:00", "look at all three")
        .assistant(
            "19:00:02",
            use("toolu_a", "Read", file_path="/w/a"),
            use("toolu_b", "Grep", pattern="b"),
            use("toolu_c", "Bash", command="echo c"),
        )
        .result("19:00:04", ("toolu_c", "c"), ("toolu_a", "a"), ("toolu_b", "b"))
        .answer("19:00:06", "All three seen.")
    )


def broken_time(places: Places) -> Session:
    return (
        Claude("T", places.plain)
        .user("19:10:00", "what time is it")
        .assistant("", say("let me look"), timestamp=BROKEN_TIME)
        .answer("19:10:05", "late")
    )


def unfinished(places: Places) -> Session:
    """Said something on the way, then nothing more came."""
    return (
        Claude("N", places.plain)
        .user("19:20:00", "mend the sail")
        .assistant("19:20:02", say("I will look at the sail..."), use("toolu_1", "Bash", command="ls sail"))
    )


def strange(places: Places) -> Session:
    """A record of a kind that no adapter knows."""
    return (
        Claude("R", places.plain)
        .user("19:30:00", "turn the rudder")
        .record("hologram", at("19:30:01"), beam={"angle": 30, "colour": "grün"})
        .answer("19:30:02", "Turned.")
    )


SESSIONS: dict[str, Callable[[Places], Session]] = {
    "K": k,
    "X": x,
    "Y": y,
    "Z": z,
    "W": w,
    "M": m,
    "D": d,
    "L": long,
    "P": p,
    "U": u,
    "V1": v1,
    "V2": v2,
    "C": compacted,
    "I1": injected_codex,
    "I2": injected_claude,
    "G": parallel,
    "T": broken_time,
    "N": unfinished,
    "R": strange,
}


OTHERS: dict[str, Callable[[Places], Session]] = {
    "ZK": lambda places: kimi_chat(places.plain),
    "UK": lambda places: kimi_odd_name(places.plain),
    "VK": lambda places: kimi_twice(places.plain),
    "VQ": lambda places: qwen_twice(places.plain),
}
"""Sessions of other harnesses, written where they are named only."""


@dataclass
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class World:
    """A HOME of its own and the command on it. Close it when done."""

    folder: Path
    sessions: dict[str, Session] = field(default_factory=dict)
    door: str = "mcp"
    """Where tool calls go in: `mcp`, one server that stays, or `call`, one `outcrop call` process each."""
    launch: Path | None = None
    """Where its processes are started; None: the home."""
    follows: bool = False
    """Whether its processes may start an indexer in the background."""
    _processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _schemas: dict[str, Any] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def environment(self) -> dict[str, str]:
        environment = {"HOME": str(self.home), "OUTCROP_HOME": str(self.store), "PYTHONPATH": str(SOURCE)}
        return environment if self.follows else {**environment, AUTO_VARIABLE: "0"}

    def write(self, *letters: str) -> None:
        """Write the session files of these letters, all of them by default."""
        places = self.places()
        for letter in letters or SESSIONS:
            self.sessions[letter] = {**SESSIONS, **OTHERS}[letter](places)
            self.save(letter)

    def save(self, letter: str) -> Path:
        """Write a session's records as they stand now."""
        path = self.sessions[letter].path(self.home)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in self.sessions[letter].lines]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def places(self) -> Places:
        self.home.mkdir(parents=True, exist_ok=True)
        code = self.home / "code"
        found = Places(
            repository=code / "lighthouse",
            worktree=code / "lighthouse-feature",
            agent=code / "lighthouse" / ".claude" / "worktrees" / "agent-1",
            other=code / "buoy",
            plain=self.home / "notes",
        )
        if not code.exists():
            found.plain.mkdir()
            for repository in (found.repository, found.other):
                (repository / "src").mkdir(parents=True)
                (repository / "src" / "beam.py").write_text("def beam(): timeout=5\n", encoding="utf-8")
                self._git(repository, "init", "-q", "-b", "main")
                self._git(repository, "add", ".")
                self._git(repository, "commit", "-q", "-m", "first")
            for place, branch in ((found.worktree, "feature"), (found.agent, "agent-1")):
                self._git(found.repository, "worktree", "add", "-q", "-b", branch, str(place))
        return found

    def at(self, launch: Path) -> World:
        """The same world, entered from another directory. Close it when done."""
        return World(self.folder, self.sessions, self.door, launch)

    def run(self, *argv: str, input: str | None = None, **variables: str) -> Run:
        """The command as a process of its own, with nothing in its environment but this world."""
        done = subprocess.run(
            [sys.executable, "-m", "outcrop", *argv],
            input=input,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**self.environment, **variables},
            cwd=self.launch or self.home,
            timeout=120,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def index(self, *argv: str) -> Run:
        done = self.run("index", *argv)
        assert done.code == 0, done.err
        return done

    def call(self, tool: str, arguments: Any = None, /, **named: Any) -> dict[str, Any]:
        """One tool call through the world's door: the envelope, checked against the published schema."""
        given = arguments if arguments is not None else named
        if self.door == "call":
            told = self._tell("forker.py", json.dumps(["call", tool, json.dumps(given)]))
            envelope = json.loads(told["out"])
            assert (told["code"] == 0) is ("error" not in envelope)
        else:
            result = self._ask("tools/call", {"name": tool, "arguments": given})
            envelope = result["structuredContent"]
            assert result["isError"] is ("error" in envelope)
        self.conforms(tool, envelope)
        return envelope

    def data(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The data of a call that must succeed."""
        envelope = self.call(tool, **arguments)
        assert "error" not in envelope, envelope
        return envelope["data"]

    def conforms(self, tool: str, envelope: dict[str, Any]) -> None:
        if not self._schemas:
            self._schemas = {entry["name"]: entry["outputSchema"] for entry in self._ask("tools/list", {})["tools"]}
        jsonschema.validate(envelope, self._schemas[tool])
        for moment in _timestamps(envelope.get("data")):
            assert TIMESTAMP.fullmatch(moment), moment

    def sessions_of_day(self, **filters: Any) -> list[dict[str, Any]]:
        """Every listed session, page by page."""
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = self.data("list_sessions", **WHOLE_DAY, **filters, cursor=cursor)
            found += page["sessions"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def id(self, letter: str) -> str:
        """The typed id of a session, found by when it began: no id is ever computed."""
        if letter not in self._ids:
            rows = {row["session"]["started_at"]: row["id"] for row in self.sessions_of_day()}
            self._ids[letter] = rows[self.first_time(letter)]
        return self._ids[letter]

    def first_time(self, letter: str) -> str:
        return min(written(line["timestamp"]) for line in self.sessions[letter].lines if "timestamp" in line)

    def turns(self, letter: str) -> list[dict[str, Any]]:
        """Every turn of a session, page by page."""
        return self.children(self.id(letter), "turns")

    def events(self, letter: str, turn: int) -> list[dict[str, Any]]:
        """Every event summary of a turn."""
        return self.children(self.turns(letter)[turn - 1]["id"], "events")

    def contents(self, letter: str, turn: int) -> list[dict[str, Any]]:
        """Every event of a turn, opened."""
        return [self.data("open", id=event["id"]) for event in self.events(letter, turn)]

    def children(self, target: str, kind: str, limit: int = 50) -> list[dict[str, Any]]:
        page = self.data("open", id=target, limit=limit)
        found = list(page[kind])
        while page["next_cursor"]:
            page = self.data("open", cursor=page["next_cursor"])
            found += page[kind]
        return found

    def close(self) -> None:
        for process in self._processes.values():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(timeout=30)
            process.stdout.close()
        self._processes.clear()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = self._tell("mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        assert "result" in answer, answer
        return answer["result"]

    def _tell(self, who: str, line: str) -> dict[str, Any]:
        """Write a line to a process that stays, and read its answer."""
        process = self._processes.get(who)
        if process is None:
            command = [str(FORKER)] if who == "forker.py" else ["-m", "outcrop", "mcp"]
            process = self._processes[who] = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env=self.environment,
                cwd=self.launch or self.home,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def _git(self, place: Path, *words: str) -> None:
        identity = {"NAME": "A", "EMAIL": "a@example.org"}
        names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in identity.items()}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", **names}
        subprocess.run(["git", "-C", str(place), *words], check=True, env=environment, capture_output=True)


def _timestamps(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ("timestamp", "started_at", "updated_at"):
                yield item
            elif name not in ("arguments", "content"):
                yield from _timestamps(item)
    elif isinstance(value, list):
        for item in value:
            yield from _timestamps(item)
