"""Homes for tests of the ingest: sessions that share history, and ways to write a home in pieces."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from world import Claude, Codex, World, say


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


def resumed(home: Path, folder: Path) -> tuple[Claude, Claude]:
    """An old transcript, and a newer one that begins with a copy of it under another session id and goes on."""
    old = Claude("R1", folder).user("08:00:00", "paint the buoy").answer("08:00:05", "The buoy is red.")
    new = Claude("R2", folder)
    new.lines = [{**line, "sessionId": new.session} for line in old.lines]
    new.user("09:00:00", "and the anchor").answer("09:00:05", "The anchor is black.")
    write_lines(old.path(home), old.lines)
    write_lines(new.path(home), new.lines)
    return old, new


def forked(home: Path, folder: Path, depth: int = 2) -> list[Codex]:
    """A rollout, a fork of it, and a fork of that fork; copied lines carry the time of the fork."""
    chain = [Codex("F0", folder, "06:00:00")]
    chain[0].begin("06:00:01", "chart the bay").answer("06:00:09", "The bay is charted.")
    for step in range(1, depth + 1):
        parent = chain[-1]
        clock = f"0{6 + step}:00:00"
        child = Codex(f"F{step}", folder, clock)
        child.lines[0]["payload"]["forked_from_id"] = parent.session
        child.lines += [{**line, "timestamp": child.start} for line in parent.lines]
        child.begin(f"0{6 + step}:00:10", f"chart the cape {step}").answer(
            f"0{6 + step}:00:19", f"Cape {step} charted."
        )
        chain.append(child)
    for rollout in chain:
        write_lines(rollout.path(home), rollout.lines)
    return chain


def with_subagents(home: Path, folder: Path) -> Claude:
    """A transcript with one subagent of its own words and one that begins with a copy of its parent's history."""
    main = Claude("S", folder).user("07:00:00", "survey the reef").answer("07:00:05", "Two agents will look.")
    path = write_lines(main.path(home), main.lines)
    own = Claude("S-own", folder, main.session).user("07:01:00", "dive at the reef").answer("07:01:05", "Coral seen.")
    copying = Claude("S-copy", folder, main.session)
    copying.lines = [dict(line) for line in main.lines]
    copying.user("07:02:00", "sum up the survey").answer("07:02:05", "A reef with coral.")
    for agent, transcript in (("a1", own), ("acompact-b2", copying)):
        lines = [{**line, "isSidechain": True, "agentId": agent} for line in transcript.lines]
        write_lines(path.with_suffix("") / "subagents" / f"agent-{agent}.jsonl", lines)
    return main


def many_turns(home: Path, folder: Path, letter: str, turns: int) -> Claude:
    """A longer transcript, for runs that are killed or cut."""
    made = Claude(letter, folder)
    for turn in range(turns):
        minute, second = divmod(turn * 7, 60)
        clock = f"{5 + minute // 60:02}:{minute % 60:02}:{second:02}"
        made.user(clock, f"{letter} question {turn} " + "about the tide " * 20)
        made.assistant(clock, say(f"looking at {turn}"), {"type": "tool_use", "id": f"t{turn}", "name": "Bash",
                                                          "input": {"command": f"tide {turn}"}})  # fmt: skip
        made.result(clock, (f"t{turn}", "high water " * 40))
        made.answer(clock, f"{letter} answer {turn}")
    write_lines(made.path(home), made.lines)
    return made


def full_home(root: Path) -> World:
    """Everything at once: all lettered sessions, shared histories, subagents, long ones."""
    world = World(root)
    world.write()
    home = world.home
    folder = root / "shore"
    folder.mkdir()
    resumed(home, folder)
    forked(home, folder)
    with_subagents(home, folder)
    for letter in ("long1", "long2", "long3"):
        many_turns(home, folder, letter, 60)
    return world


def corpus_home(corpus: Path, root: Path) -> World:
    """The real sessions of Claude Code and Codex, laid out as a home."""
    world = World(root)
    for path in sorted((corpus / "claude-code").rglob("*.jsonl")):
        parts = path.relative_to(corpus / "claude-code").parts
        inner = parts[parts.index("transcripts") + 1 :] if "transcripts" in parts else parts[-1:]
        copy(path, world.home / ".claude" / "projects" / parts[0] / Path(*inner))
    for path in sorted((corpus / "codex").rglob("*.jsonl")):
        if path.name != "history.jsonl":
            name = path.name if path.name.startswith("rollout-") else f"rollout-2026-06-17T00-00-00-{path.name}"
            copy(path, world.home / ".codex" / "sessions" / "2026" / "06" / "17" / name)
    return world


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def session_files(home: Path) -> list[Path]:
    return sorted(path for name in (".claude", ".codex") for path in (home / name).rglob("*") if path.is_file())


def grow(source: Path, target: Path, steps: int, seed: int) -> Iterable[int]:
    """Write the session files of one home into another in `steps` pieces cut anywhere; yields after each."""
    cuts = random.Random(seed)
    files = session_files(source)
    ends = {
        path: [*sorted(cuts.randint(0, path.stat().st_size) for _ in range(steps - 1)), path.stat().st_size]
        for path in files
    }
    for step in range(steps):
        for path in files:
            out = target / path.relative_to(source)
            out.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes()
            if path.suffix == ".json":
                if step == steps // 2:
                    out.write_bytes(data)
                continue
            have = out.stat().st_size if out.exists() else 0
            with open(out, "ab") as stream:
                stream.write(data[have : ends[path][step]])
            os.utime(out, (path.stat().st_atime, path.stat().st_mtime))
        yield step
