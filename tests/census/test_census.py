"""The whole corpus in one home, indexed by the command: every file is read or explained, and nothing else changes it.

What is counted here was counted in the raw files as well: records by a reader of lines that knows no harness, times
by looking for whatever looks like a time. The facts of all harnesses' own tests are held to what the doors tell.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from corpus_places import Laid, laid_out

from facts import CORPUS, FOLDER, hashed, needs_corpus, records
from outcrop import config
from outcrop.contracts.mcp_v1.shapes import session_id
from outcrop.harnesses import REGISTRY, Environment, Form, all_sources
from outcrop.ingest.discover import Discovery, Found
from outcrop.ingest.pipeline import index
from outcrop.model import TYPE_CODE, EventType
from outcrop.store.embedded.rows import BY_USER, GUESSED, INFERRED
from projection import projection, stored
from world import World

pytestmark = needs_corpus

# fmt: off
COUNTS = {
    "aider": (2, 8, 26), "antigravity-cli": (2, 3, 22), "claude": (37, 83, 4349), "claude-cowork": (1, 3, 13),
    "codex": (6, 44, 2513), "copilot-cli": (8, 15, 1231), "crush": (1, 3, 35), "cursor": (5, 8, 28),
    "cursor-sqlite": (32, 64, 197), "droid": (6, 7, 31), "gemini-cli": (6, 12, 127), "goose": (0, 0, 1),
    "grok": (2, 3, 18), "hermes": (5, 5, 28), "kimi-cli": (12, 64, 3520), "kiro": (3, 4, 17), "nac": (5, 5, 20),
    "omp": (1, 44, 464), "openclaw": (3, 3, 23), "opencode": (12, 23, 217), "openhands": (5, 5, 35),
    "pi": (2, 90, 1028), "prime-agent": (1, 3, 21), "prime-agent-subagents": (1, 1, 5), "qwen-code": (7, 10, 283),
}
"""Source → sessions, turns, records."""
# fmt: on
NO_FILES = {"antigravity", "cline", "copilot-vscode", "roo"}
"""Sources of which the corpus has no transcript."""

UNKNOWN = {
    ("claude-code", "attachment"): (1, "the fixture's author left out what was attached"),
    ("cursor", "assistant/block:custom_block"): (1, "a block that the author of `schema_drift` made up"),
    ("kiro-cli", "FutureRecord"): (1, "made up by the author, as its name says"),
    ("openclaw", "compact"): (1, "a type that only a test of another reader writes"),
    ("prime-agent", "future_prime_record"): (1, "made up by the author, as its name says"),
    ("prime-agent", "message/assistant/block:futureBlock"): (1, "made up by the author, as its name says"),
}
"""Harness and kind → events of type unknown, and what they are."""

UNTIMED = {
    "cursor/jazzyalex.+": "Cursor's transcripts have no times",
    "gemini-cli/google-gemini__gemini-cli/.+": "a list of what the model saw",
    "grok/.+": "Grok's conversations have no times",
    "kimi/.+/legacy-receipt-anchor.jsonl": "its author took the times out",
    "kimi/.+/archived/context.jsonl": "what the model saw, without times",
    "openhands/.+/output.jsonl": "the resolver's outputs have no times",
    "qwen/.+/system_telemetry.jsonl": "its author took the times out",
}
"""Pattern of files none of whose records tells a time → why; they have the file's (ruling 22)."""

SILENT = {
    "goose/.+": "its one session has no messages",
    "misc-fixtures/.+/kiro_sqlite/.+": "in the older program's database; the same ones in Kiro's own outrank it",
}
"""Pattern of transcripts that bring no event → why."""

OVERLAID = {"misc-fixtures/.+/cursor/projects/.+": "shares its id with the conversation of the database, which wins"}
"""Pattern of files whose sessions are told by another one."""

ZONES = {"openhands": timezone(timedelta(hours=-8))}
"""Clocks that wrote no zone: OpenHands' in Pacific time, seconds behind the models' own answers in UTC."""


@dataclass
class Census:
    world: World
    laid: list[Laid]
    status: dict[str, Any]
    history: dict[str, Any]
    files: list[dict[str, Any]]
    """Rows of the files, with what they brought: `sessions` (native ids), `events`, `facts`, `records`."""
    before: dict[Path, bytes]
    after: dict[Path, bytes]
    """All files of the home, around the first run."""
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Public id → row of the session."""

    def of(self, laid: Laid) -> list[dict[str, Any]]:
        """The rows that a file of the corpus brought: its own, those of sessions inside, or of the place around it."""
        path = str(laid.path).removesuffix("-wal")
        own = [row for row in self.files if row["path"] == path or row["path"].startswith(path + "#")]
        if own:
            return own
        around = [row for row in self.files if row["form"] == Form.CONTAINER and path.startswith(row["path"] + "/")]
        place = max((row["path"] for row in around), key=len, default=None)
        inside = [row for row in self.files if place and row["path"].startswith(place + "#")]
        return [row for row in inside if Path(path).stem.endswith(row["native"])] or inside

    def transcripts(self) -> Iterator[tuple[Laid, list[dict[str, Any]]]]:
        """The files of the corpus that are to be read, with their rows."""
        for laid in self.laid:
            if laid.path is not None and laid.reason is None:
                yield laid, self.of(laid)

    def query(self, sql: str) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.world.store / "outcrop.db")) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(sql)]


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Census]:
    world = World(tmp_path_factory.mktemp("census"))
    laid = laid_out(CORPUS, world)
    before = left_behind(world.home)
    world.index()
    after = left_behind(world.home)
    found = Census(world, laid, world.run("status", "--json").json, projection(world.store), [], before, after)
    found.files = found.query(
        "SELECT id, path, harness, source, role, form, coalesce(native, '') AS native, problem,"
        " (SELECT group_concat(DISTINCT session.native) FROM event JOIN session ON session.id = event.session"
        "  WHERE event.file = file.id) AS sessions,"
        " (SELECT count(*) FROM event WHERE event.file = file.id) AS events,"
        f" (SELECT count(*) FROM event WHERE event.file = file.id AND flags & {GUESSED}) AS guessed,"
        " (SELECT count(*) FROM fact WHERE fact.file = file.id) AS facts,"
        " (SELECT coalesce(sum(n), 0) FROM census WHERE census.file = file.id) AS records FROM file ORDER BY path"
    )
    found.sessions = {str(session_id(row["uid"])): row for row in found.query("SELECT * FROM session")}
    yield found
    world.close()


def explained(name: str, table: dict[str, str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in table)


def counted(census: Census) -> dict[str, tuple[int, int, int]]:
    """Source → sessions, turns, records."""
    told = list(census.history.values())
    sessions = Counter(session["source"] for _, session, _, _ in told)
    turns = Counter(dict.fromkeys(sessions, 0))
    for _, session, own, _ in told:
        turns[session["source"]] += len(own)
    all_records: Counter[str] = Counter()
    for row in census.files:
        all_records[row["source"]] += row["records"]
    return {source: (sessions[source], turns[source], n) for source, n in sorted(all_records.items())}


# What was read


def test_every_file_is_read_or_has_its_reason(census: Census) -> None:
    """A transcript brought events, a file beside one brought facts; what is no transcript stands there unread."""
    assert {laid.origin for laid in census.laid} == {
        path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*") if path.is_file()
    }
    unread = []
    for laid, rows in census.transcripts():
        if not any(row["events"] for row in rows):
            beside = any(row["facts"] for row in rows) and all(row["form"] == Form.DOCUMENT for row in rows)
            if not beside and not explained(laid.origin, SILENT):
                unread.append(laid.origin)
    assert unread == []
    known = {row["path"].partition("#")[0] for row in census.files}
    assert [laid.origin for laid in census.laid if laid.reason and str(laid.path) in known] == []


def test_the_census_is_as_it_was_counted(census: Census) -> None:
    found = counted(census)
    print(f"\n{'source':24}{'sessions':>9}{'turns':>7}{'records':>9}")
    for source, numbers in found.items():
        print(f"{source:24}{numbers[0]:9}{numbers[1]:7}{numbers[2]:9}")
    for laid in census.laid:
        if laid.reason:
            print(f"not read: {laid.origin} ({laid.reason})")
    assert found == COUNTS
    assert set(all_sources()) - set(found) == NO_FILES
    assert sum(sessions for sessions, _, _ in found.values()) == census.status["sessions"] == len(census.history)
    empty = [(session["source"], turns) for _, session, turns, _ in census.history.values() if not turns]
    assert empty == [], "every session has a turn"


def test_every_line_is_a_record_of_the_census(census: Census) -> None:
    """Counted by a reader that knows no harness."""
    compared = 0
    for laid, rows in census.transcripts():
        if len(rows) == 1 and rows[0]["form"] == Form.LINES:
            assert rows[0]["records"] == len(list(records(CORPUS / laid.origin))), laid.origin
            compared += 1
    assert compared > 80


def test_every_file_of_a_tree_is_a_record(census: Census) -> None:
    """OpenCode keeps each message and each part in a file of its own."""
    files = Counter(
        laid.path.relative_to(census.world.home).parts[-3]
        for laid, rows in census.transcripts()
        if laid.path is not None and laid.path.suffix == ".json" and rows and rows[0]["harness"] == "opencode"
        and "message" in laid.path.parts
    )  # fmt: skip
    trees = [row["id"] for row in census.files if row["harness"] == "opencode" and ".db#" not in row["path"]]
    told = census.query(
        "SELECT kind, sum(n) AS n FROM census WHERE kind LIKE 'message/%'"
        f" AND file IN ({','.join(map(str, trees))}) GROUP BY 1"
    )
    assert sum(row["n"] for row in told) == files["message"]


def test_nothing_failed(census: Census) -> None:
    status = census.status
    assert status["complete"]
    assert status["files_with_problems"] == status["unfinished"] == []
    assert status["set_aside"] == {"count": 0, "records": []}
    assert [row for row in status["sources"] if row["missing"] or row["failed"]] == []
    assert [row for row in status["roots"] if row["problem"]] == []


def test_every_unknown_kind_is_explained(census: Census) -> None:
    unknown = census.query(
        f"SELECT file.harness, count(*) AS n FROM event JOIN file ON file.id = event.file"
        f" WHERE type = {TYPE_CODE[EventType.UNKNOWN]} GROUP BY 1"
    )
    by_harness: Counter[str] = Counter()
    for (harness, _), (number, _) in UNKNOWN.items():
        by_harness[harness] += number
    assert {row["harness"]: row["n"] for row in unknown} == by_harness
    told = {(row["harness"], row["kind"]): row["records"] for row in census.status["unknown"]}
    assert {key: number for key, (number, _) in UNKNOWN.items()} == told


# Times

ISO = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
NUMBER = re.compile(rb"(?<![\w.])(1[5-9]\d{8})(\d{3}|\.\d+)?(?![\w.])")
SINCE, UNTIL = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000) for year in (2023, 2027))


def content_of(path: Path) -> bytes:
    """All that stands in a file, of a database all that stands in its tables."""
    data = path.read_bytes()
    if not data.startswith(b"SQLite format 3"):
        return data
    found: list[bytes] = []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        database.text_factory = bytes
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in database.execute(f'SELECT * FROM "{name.decode()}"'):
                found += [cell if isinstance(cell, bytes) else str(cell).encode() for cell in row if cell is not None]
    return b"\n".join(found)


def times_in(data: bytes, zone: timezone | None) -> set[int]:
    """UTC ms of whatever looks like a time: ISO with or without a zone, seconds or milliseconds since 1970."""
    found = set()
    for text in ISO.findall(data):
        moment = datetime.fromisoformat(text.decode().replace("Z", "+00:00"))
        if moment.tzinfo is None and zone is not None:
            moment = moment.replace(tzinfo=zone)
        found.add(int(moment.timestamp() * 1000))
    for seconds, rest in NUMBER.findall(data):
        found.add(int(float(seconds + rest) * 1000) if rest.startswith(b".") else int(seconds + (rest or b"000")))
    return found


def test_every_time_stands_in_its_file(census: Census) -> None:
    """In its own unit and zone; what has none took it from its neighbours, and is marked."""
    stated: dict[int, set[int]] = defaultdict(set)
    for laid, rows in census.transcripts():
        assert laid.path is not None
        if not laid.path.name.endswith("-wal"):
            for row in rows:
                stated[row["id"]] |= times_in(content_of(laid.path), ZONES.get(row["source"]))
    strange, compared = [], 0
    for event in census.query(f"SELECT file, time FROM event WHERE NOT flags & {INFERRED | GUESSED}"):
        compared += 1
        if not {event["time"] - 1, event["time"], event["time"] + 1} & stated[event["file"]]:
            strange.append(event)
    assert strange == []
    assert compared > 9000
    for event in census.query("SELECT DISTINCT time FROM event"):
        assert SINCE < event["time"] < UNTIL


def test_only_what_states_no_time_has_that_of_its_file(census: Census) -> None:
    untimed = [laid.origin for laid, rows in census.transcripts() if any(row["guessed"] for row in rows)]
    assert [name for name in untimed if not explained(name, UNTIMED)] == []
    assert [pattern for pattern in UNTIMED if not any(re.fullmatch(pattern, name) for name in untimed)] == []


# Sessions

FACTS = [
    pytest.param(folder.name, told, id=f"{folder.name}-{path.stem}")
    for folder in sorted(FOLDER.iterdir())
    for path in sorted(folder.glob("*.json"))
    if (told := json.loads(path.read_text(encoding="utf-8"))).get("file")
    and (CORPUS / told["file"]).exists()
    and not explained(told["file"], OVERLAID)
]
"""Folder and content of the facts of all harnesses that are told of the corpus."""


def candidates(census: Census, harness: str, told: dict[str, Any]) -> list[str]:
    """Ids of the sessions that a fact may tell of: by its native id, else those of its file."""
    natives: set[str] = set()
    for laid in census.laid:
        if laid.origin == told["file"] or laid.origin.startswith(told["file"] + "/"):
            for row in census.of(laid):
                natives |= {*(row["sessions"] or row["native"]).split(",")}
    shown = {id: census.sessions[id] for id in census.history if census.sessions[id]["harness"] == harness}
    return [id for id, row in shown.items() if row["native"] == told.get("session")] or [
        id for id, row in shown.items() if row["native"] in natives
    ]


@pytest.mark.parametrize(("folder", "told"), FACTS)
def test_a_session_is_told_through_the_doors_as_its_facts_say(
    census: Census, folder: str, told: dict[str, Any]
) -> None:
    harness = {"claude": "claude-code"}.get(folder, folder)
    by_user = {row["uid"] for row in census.query(f"SELECT hex(uid) AS uid FROM event WHERE flags & {BY_USER}")}
    fitting = []
    for id in candidates(census, harness, told):
        _, session, turns, events = census.history[id]
        texts = {event["id"]: content["text"] for event, _, content in events}
        opened = [turn["user_input"] and hashed(texts[turn["user_input"]["event_id"]]) for turn in turns]
        if opened == [turn["prompt"] for turn in told["turns"]]:
            fitting.append((session, turns, events))
    ((session, turns, events),) = fitting
    assert [turn["completed"] for turn in turns] == [bool(turn.get("ends", turn.get("end"))) for turn in told["turns"]]
    tools: dict[str, list[str]] = defaultdict(list)
    for event, place, content in events:
        if event["type"] == "tool_call" and uid_of(event["id"]) not in by_user:
            tools[place["turn_id"]].append(str(content.get("original_tool_name") or event["tool_name"]))
    for turn, want in zip(turns, told["turns"], strict=True):
        if isinstance(want["tools"], dict):
            assert len(tools[turn["id"]]) == want["tools"]["count"]
            assert hashed(" ".join(tools[turn["id"]])) == want["tools"]["names"]
        else:
            assert tools[turn["id"]] == [str(tool) for tool in want["tools"]]
    if told.get("first_time"):
        times = [round(datetime.fromisoformat(event["timestamp"]).timestamp() * 1000) for event, _, _ in events]
        assert (min(times), max(times)) == (told["first_time"], told["last_time"])
    parent = session.get("parent_session_id")
    assert (parent and census.sessions[parent]["native"]) == told.get("parent")
    if "title" in told:
        assert told["title"] in (session["title"], hashed(session["title"]))


def uid_of(event: str) -> str:
    from outcrop import ids

    return ids.parse(event).uid.hex().upper()


def test_every_registered_harness_is_in_the_census(census: Census) -> None:
    told = {row["harness"] for row in census.files}
    assert set(REGISTRY) - told == {"cline", "copilot-vscode"}, "harnesses whose only ground is not in the corpus"


# Again, and the other way round


def left_behind(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_second_run_reads_nothing_and_changes_nothing(census: Census) -> None:
    before, rows = left_behind(census.world.home), stored(census.world.store)
    done = census.world.run("index", "--json").json
    assert done["problems"] == []
    assert (done["records"], done["events"], done["bytes"], done["set_aside"]) == (0, 0, 0, 0)
    assert stored(census.world.store) == rows
    assert census.world.run("index", "--json", "--full").json["problems"] == []
    assert projection(census.world.store) == census.history
    assert left_behind(census.world.home) == before


def test_reading_changes_no_file_of_the_home(census: Census) -> None:
    """Where a database was left in WAL mode SQLite makes the two files beside it that every reader makes; both bare."""
    new = {path: data for path, data in census.after.items() if path not in census.before}
    assert {path: census.after.get(path) for path in census.before} == census.before
    assert {path.suffix for path in new} <= {".db-shm", ".db-wal"}
    assert [path for path, data in new.items() if path.suffix == ".db-wal" and data] == []


def test_the_order_of_the_files_makes_no_difference(census: Census, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same home, read from its oldest file to its newest, into another store."""
    newest_first = Discovery.newest_first

    def oldest_first(found: Discovery) -> list[Found]:
        return newest_first(found)[::-1]

    monkeypatch.setattr(Discovery, "newest_first", oldest_first)
    other = census.world.folder / "other"
    shutil.rmtree(other, ignore_errors=True)
    other.mkdir()
    shutil.copy(census.world.store / "config.toml", other)
    here = Environment(census.world.home, {"OUTCROP_HOME": str(other)})
    index(config.load(here), here)
    found = projection(other)
    assert set(found) == set(census.history)
    assert [id for id, told in found.items() if told != census.history[id]] == []
