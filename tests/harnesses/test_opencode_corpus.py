"""Real sessions of OpenCode and Crush against facts that were read from their raw rows, without the adapters.

`facts/{opencode,crush}/*.json` name the row of each turn's opening prompt with its hash, the tools in order, how the
turn ended, and the first and the last time. Files beginning with `fixture` tell of the invented stores.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from outcrop.harnesses import Form, Harness, SourceFile
from outcrop.harnesses.crush import HARNESS as CRUSH
from outcrop.harnesses.opencode import HARNESS as OPENCODE
from outcrop.model import END_CODE, ENDS, TYPE_CODE, Event, EventType, Fact, Parsed
from outcrop.turns import TurnFold
from reading import NoSide

CORPUS = Path(os.environ.get("OUTCROP_CORPUS", "/nonexistent"))
FIXTURES = Path(__file__).parent.parent / "fixtures"
HARNESSES = {"opencode": OPENCODE, "crush": CRUSH}
FACTS = sorted(path for name in HARNESSES for path in (Path(__file__).parent / "facts" / name).glob("*.json"))
REAL = [path for path in FACTS if not path.stem.startswith("fixture")]
STAGE = "opencode/jazzyalex__agent-sessions/Resources/Fixtures/stage0/agents/opencode"
ROOTS = [
    (OPENCODE, "opencode/jwp23__dotfiles/.local/share/opencode", 2),
    (OPENCODE, "opencode/mule-ai__mule", 7),
    (OPENCODE, f"{STAGE}/storage_legacy", 1),
    (OPENCODE, f"{STAGE}/storage_v2", 2),
    (CRUSH, "crush/Exa-Networks__exabgp", 1),
]

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="OUTCROP_CORPUS does not name the corpus")


def harness_of(path: Path) -> Harness:
    return HARNESSES[path.parent.name]


def placed(told: dict[str, Any], folder: Path) -> Path:
    """A copy of the store that facts tell of: readers of a database write beside it."""
    if told["file"].endswith(".sql"):
        target = folder / Path(told["file"]).with_suffix(".db").name.replace("database", "opencode")
        database = sqlite3.connect(target)
        database.executescript((FIXTURES / told["file"]).read_text(encoding="utf-8"))
        database.commit()
        database.close()
        return target
    origin: Path = CORPUS / told["file"]
    if origin.is_dir():
        shutil.copytree(origin, folder / origin.name)
        return folder / origin.name
    for file in origin.parent.glob(f"{origin.name}*"):
        shutil.copy(file, folder / file.name)
    return folder / origin.name


def read(harness: Harness, file: SourceFile, native: str) -> list[Parsed]:
    container = harness.container(file)
    try:
        list(container.sessions())
        rows = list(container.records(native))
    finally:
        container.close()
    inside = SourceFile(f"{file.path}#{native}", file.source, Form.CONTAINER, "session", native)
    reader = harness.reader(inside, None, NoSide())
    parsed = [reader.feed(row) for row in rows]
    assert reader.session == native
    return parsed


def turns(parsed: list[Parsed]) -> list[dict[str, Any]]:
    """Turns as the ingest cuts them: `place` and `prompt` of the opener, `tools`, `end`."""
    found: list[dict[str, Any]] = []
    for item in (item for one in parsed for item in one.items):
        if not isinstance(item, Event):
            continue
        if not found or item.turn != found[-1]["turn"] or (item.opens and item.turn is None and found[-1]["place"]):
            if found and found[-1]["place"] is None:
                found[-1]["turn"] = item.turn
            else:
                found.append({"turn": item.turn, "place": None, "prompt": "", "tools": [], "fold": TurnFold()})
        turn = found[-1]
        if item.opens:
            turn["place"], turn["prompt"] = item.turn or item.key.split(":")[0], hashed(item.text)
        if item.type is EventType.TOOL_CALL:
            turn["tools"].append(item.original_tool or item.tool)
        flags = 32 if item.superseded else 0
        turn["fold"].add(1, TYPE_CODE[item.type], item.time or 0, flags, END_CODE[item.ends] if item.ends else 0, None)
    return found


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check(path: Path, folder: Path) -> None:
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    harness, place = harness_of(path), placed(told, folder)
    file = next(iter(harness.discover(harness.sources[0], place)))
    parsed = read(harness, file, told["session"])
    assert len(parsed) == told["records"]
    ends = {code: end.value for code, end in enumerate(ENDS, 1)}
    found = [
        {name: turn[name] for name in ("place", "prompt", "tools")} | {"end": ends.get(turn["fold"].ends)}
        for turn in turns(parsed)
    ]
    assert found == told["turns"]
    times = [item.time for one in parsed for item in one.items if isinstance(item, Event) and item.time]
    assert (min(times), max(times)) == (told["first_time"], told["last_time"])
    facts = {item.name: item.value for one in parsed for item in one.items if isinstance(item, Fact)}
    assert facts.get("parent") == told["parent"]


@needs_corpus
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_session_holds_what_its_rows_say(path: Path, tmp_path: Path) -> None:
    check(path, tmp_path)


@pytest.mark.parametrize("path", sorted(set(FACTS) - set(REAL)), ids=lambda path: path.stem)
def test_an_invented_session_holds_what_its_rows_say(path: Path, tmp_path: Path) -> None:
    check(path, tmp_path)


@needs_corpus
def test_every_file_of_the_corpus_is_part_of_a_place(tmp_path: Path) -> None:
    """A database, its log, or a file of a tree; each place holds as many sessions as it should, and nothing unknown."""
    covered: set[Path] = set()
    for number, (harness, root, count) in enumerate(ROOTS):
        target = tmp_path / str(number)
        shutil.copytree(CORPUS / root, target)
        read_files = {Path(path).relative_to(target) for path in _seen(harness, target, count)}
        covered |= {CORPUS / root / path for path in read_files}
    every = {path for name in HARNESSES for path in (CORPUS / name).rglob("*") if path.is_file()}
    assert every - covered == set()


def _seen(harness: Harness, target: Path, count: int) -> set[str]:
    """The files below `target` that belong to its places, all of whose sessions were read."""
    seen: set[str] = set()
    natives: list[str] = []
    for file in harness.discover(harness.sources[0], target):
        below = Path(file.path).rglob("*") if os.path.isdir(file.path) else Path(file.path).parent.glob("*")
        seen |= {str(path) for path in below if path.is_file()}
        container = harness.container(file)
        natives += [native for native, _ in container.sessions()]
        container.close()
        for native in natives:
            keys: Counter[str] = Counter()
            for one in read(harness, file, native):
                assert one.items or one.reason, one.kind
                keys.update(item.key for item in one.items if isinstance(item, Event))
                assert not [item for item in one.items if isinstance(item, Event) and item.type is EventType.UNKNOWN]
            assert not keys or max(keys.values()) == 1
    assert len(natives) == count
    return seen
