"""Databases that their own program holds open and writes while `outcrop index` reads them.

The writer is a process of its own, with its own connection. In WAL mode it waits for no lock: whatever got in its way
would fail at once. With a rollback journal a reader holds it up for as long as it reads, and it waits as programs do.
Each program writes as it really does: rows in place, rows anew, whole documents.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from outcrop import harnesses
from outcrop.store.embedded.rows import DELETED
from world import World

FIXTURES = Path(__file__).parent.parent / "fixtures"
START = 1780300800
"""UTC seconds of the first message; each later one comes a minute after the one before."""
Statement = tuple[str, list[Any]]

WRITER = """
import json, sqlite3, sys, time
mode = sys.argv[2]
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0 if mode == "WAL" else 5)
database.execute(f"PRAGMA journal_mode = {mode}")
database.execute("PRAGMA wal_autocheckpoint = 0")
for line in sys.stdin:
    try:
        found = []
        for sql, values in json.loads(line):
            found += database.execute(sql, values).fetchall()
    except sqlite3.Error as error:
        found = str(error)
    print(json.dumps(found), flush=True)
"""
"""A program at work: takes lists of statements, one a line; answers with rows, or with the error as a text."""


class Store:
    """One program's database with one session, said into and changed as the program does it."""

    source = ""
    place = ""
    native = "live"
    secrets: tuple[str, ...] = ()
    """Tables, and columns as `table.column`, that nobody but the program may read."""

    def base(self) -> str:
        """Statements that make the database, with its credentials."""
        raise NotImplementedError

    def begin(self) -> list[Statement]:
        raise NotImplementedError

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        """Put in message `number`."""
        raise NotImplementedError

    def edit(self, number: int, text: str) -> list[Statement]:
        """Change what is said in message `number`: odd ones are the assistant's."""
        raise NotImplementedError

    def drop(self, number: int) -> list[Statement]:
        raise NotImplementedError


def second(number: int) -> int:
    return START + 60 * number


def moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def speaker(number: int) -> str:
    return "assistant" if number % 2 else "user"


class OpenCode(Store):
    source, place, native = "opencode", ".local/share/opencode/opencode.db", "ses_live00000001"
    secrets = ("account", "credential", "session.share_url")

    def base(self) -> str:
        return (FIXTURES / "opencode" / "database.sql").read_text(encoding="utf-8")

    def begin(self) -> list[Statement]:
        values = ["ses_live00000001", "p1", "live", "/w/live", "Live", "1.4.0", second(0) * 1000, second(0) * 1000]
        return [
            (
                "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
        ]

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        time = second(number) * 1000
        message = {"role": role, "time": {"created": time, "completed": time}}
        if role == "assistant":
            message |= {"modelID": "gull-4", "finish": "stop"}
        part = json.dumps({"type": "text", "text": text})
        return [
            (
                "INSERT INTO message VALUES (?, 'ses_live00000001', ?, ?, ?)",
                [f"msg_l{number:03}", time, time, json.dumps(message)],
            ),
            (
                "INSERT INTO part VALUES (?, ?, 'ses_live00000001', ?, ?, ?)",
                [f"prt_l{number:03}", f"msg_l{number:03}", time, time, part],
            ),
            ("UPDATE session SET time_updated = ? WHERE id = 'ses_live00000001'", [time]),
        ]

    def edit(self, number: int, text: str) -> list[Statement]:
        part = json.dumps({"type": "text", "text": text})
        return [
            (
                "UPDATE part SET data = ?, time_updated = time_updated + 999 WHERE id = ?",
                [part, f"prt_l{number:03}"],
            )
        ]

    def drop(self, number: int) -> list[Statement]:
        return [
            ("DELETE FROM part WHERE id = ?", [f"prt_l{number:03}"]),
            ("DELETE FROM message WHERE id = ?", [f"msg_l{number:03}"]),
        ]


class Crush(Store):
    source, place = "crush", ".local/share/crush/crush.db"
    secrets = ("files",)

    def base(self) -> str:
        return (FIXTURES / "crush" / "crush.sql").read_text(encoding="utf-8")

    def begin(self) -> list[Statement]:
        return [
            (
                "INSERT INTO sessions (id, title, updated_at, created_at) VALUES ('live', 'Live', ?, ?)",
                [second(0), second(0)],
            )
        ]

    def parts(self, role: str, text: str, number: int) -> str:
        parts: list[Any] = [{"type": "text", "data": {"text": text}}]
        if role == "assistant":
            parts.append({"type": "finish", "data": {"reason": "end_turn", "time": second(number)}})
        return json.dumps(parts)

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        return [
            (
                "INSERT INTO messages (id, session_id, role, parts, model, created_at, updated_at)"
                " VALUES (?, 'live', ?, ?, 'gull-4', ?, ?)",
                [f"l{number}", role, self.parts(role, text, number), second(number), second(number)],
            ),
            (
                "UPDATE sessions SET message_count = message_count + 1, updated_at = ? WHERE id = 'live'",
                [second(number)],
            ),
        ]

    def edit(self, number: int, text: str) -> list[Statement]:
        return [
            (
                "UPDATE messages SET parts = ?, updated_at = updated_at + 5 WHERE id = ?",
                [self.parts(speaker(number), text, number), f"l{number}"],
            )
        ]

    def drop(self, number: int) -> list[Statement]:
        return [
            ("DELETE FROM messages WHERE id = ?", [f"l{number}"]),
            ("UPDATE sessions SET message_count = message_count - 1 WHERE id = 'live'", []),
        ]


class Cursor(Store):
    """Rows are put in anew under their key: the table replaces what is there."""

    source, place = "cursor-sqlite", ".config/Cursor/User/globalStorage/state.vscdb"
    secrets = ("ItemTable.cursorAuth/accessToken",)

    def __init__(self) -> None:
        self.heads: list[dict[str, Any]] = []

    def base(self) -> str:
        return (
            "CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);"
            "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);"
            "INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'never-read-this');"
        )

    def put(self, key: str, value: Any) -> Statement:
        return "INSERT INTO cursorDiskKV VALUES (?, ?)", [key, json.dumps(value)]

    def begin(self) -> list[Statement]:
        head = {"composerId": "live", "name": "Live", "status": "completed", "unifiedMode": "agent",
                "createdAt": second(0) * 1000, "lastUpdatedAt": second(len(self.heads)) * 1000,
                "fullConversationHeadersOnly": self.heads}  # fmt: skip
        return [self.put("composerData:live", head)]

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        kind = 1 if role == "user" else 2
        self.heads.append({"bubbleId": f"l{number}", "type": kind})
        return [self.bubble(number, kind, text), *self.begin()]

    def bubble(self, number: int, kind: int, text: str) -> Statement:
        value = {"type": kind, "bubbleId": f"l{number}", "createdAt": second(number) * 1000, "text": text}
        return self.put(f"bubbleId:live:l{number}", value)

    def edit(self, number: int, text: str) -> list[Statement]:
        return [self.bubble(number, 1 + number % 2, text)]

    def drop(self, number: int) -> list[Statement]:
        self.heads = [head for head in self.heads if head["bubbleId"] != f"l{number}"]
        return [("DELETE FROM cursorDiskKV WHERE key = ?", [f"bubbleId:live:l{number}"]), *self.begin()]


class Hermes(Store):
    """What is undone stays and is marked, what is retried goes."""

    source, place = "hermes", ".hermes/state.db"
    secrets = ("credentials", "sessions.api_key")

    def base(self) -> str:
        return (FIXTURES / "hermes" / "state.sql").read_text(encoding="utf-8")

    def begin(self) -> list[Statement]:
        return [("INSERT INTO sessions (id, source, started_at, title) VALUES ('live', 'cli', ?, 'Live')", [START])]

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        return [
            (
                "INSERT INTO messages (id, session_id, role, content, timestamp, finish_reason)"
                " VALUES (?, 'live', ?, ?, ?, ?)",
                [1000 + number, role, text, second(number), "stop" if role == "assistant" else None],
            )
        ]

    def edit(self, number: int, text: str) -> list[Statement]:
        return [("UPDATE messages SET content = ? WHERE id = ?", [text, 1000 + number])]

    def drop(self, number: int) -> list[Statement]:
        return [("DELETE FROM messages WHERE id = ?", [1000 + number])]


class Goose(Store):
    source, place = "goose", ".local/share/goose/sessions/sessions.db"
    secrets = ("sessions.extension_data", "sessions.recipe_json")

    def base(self) -> str:
        return (FIXTURES / "goose" / "sessions.sql").read_text(encoding="utf-8")

    def begin(self) -> list[Statement]:
        moment = "2026-06-01 08:00:00"
        return [
            (
                "INSERT INTO sessions (id, name, working_dir, created_at, updated_at)"
                " VALUES ('live', 'Live', '/w/live', ?, ?)",
                [moment, moment],
            )
        ]

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        content = json.dumps([{"type": "text", "text": text}])
        return [
            (
                "INSERT INTO messages (id, message_id, session_id, role, content_json, created_timestamp)"
                " VALUES (?, ?, 'live', ?, ?, ?)",
                [1000 + number, f"msg_l{number}", role, content, second(number)],
            ),
            ("UPDATE sessions SET updated_at = datetime(?, 'unixepoch') WHERE id = 'live'", [second(number)]),
        ]

    def edit(self, number: int, text: str) -> list[Statement]:
        content = json.dumps([{"type": "text", "text": text}])
        return [("UPDATE messages SET content_json = ? WHERE id = ?", [content, 1000 + number])]

    def drop(self, number: int) -> list[Statement]:
        return [("DELETE FROM messages WHERE id = ?", [1000 + number])]


class Nac(Store):
    """A log: a message is changed by a later row of its index."""

    source, place = "nac", ".config/nac/store.db"
    secrets = ("sessions.api_key_env", "sessions.extra_headers_json", "sessions.sandbox_json", "sessions.store_path")

    def base(self) -> str:
        return (FIXTURES / "nac" / "store.sql").read_text(encoding="utf-8")

    def begin(self) -> list[Statement]:
        return [
            (
                "INSERT INTO sessions (session_id, cwd, model, messages_json, created_at, updated_at)"
                " VALUES ('live', '/w/live', 'gull-4', '[]', datetime(?, 'unixepoch'), datetime(?, 'unixepoch'))",
                [START, START],
            )
        ]

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        message = json.dumps({"role": role, "content": text})
        event = {"nac_transcript_message": {"idx": number, "kind": role, "message": message}}
        return [
            (
                "INSERT INTO thread_events (session_id, thread_name, event_json, created_at)"
                " VALUES ('live', '__orchestrator__', ?, datetime(?, 'unixepoch'))",
                [json.dumps(event), second(number)],
            )
        ]

    def edit(self, number: int, text: str) -> list[Statement]:
        return self.say(number, speaker(number), text)

    def drop(self, number: int) -> list[Statement]:
        return [
            (
                "DELETE FROM thread_events WHERE session_id = 'live'"
                " AND json_extract(event_json, '$.nac_transcript_message.idx') = ?",
                [number],
            )
        ]


class Kiro(Store):
    """The conversation is one document, written whole."""

    source, place = "kiro", ".local/share/kiro-cli/data.sqlite3"
    secrets = ("auth_kv",)

    def __init__(self) -> None:
        self.said: dict[int, str] = {}

    def base(self) -> str:
        return (FIXTURES / "kiro-cli" / "data.sql").read_text(encoding="utf-8")

    def begin(self) -> list[Statement]:
        history = []
        for number in sorted(number for number in self.said if number % 2 == 0):
            answer = self.said.get(number + 1)
            user = {"timestamp": None, "content": {"Prompt": {"prompt": self.said[number]}}}
            assistant = answer and {"Response": {"message_id": f"l{number + 1}", "content": answer}}
            ended = {"stream_end_timestamp_ms": second(number + 1) * 1000, "model_id": "gull-4"}
            history.append({"user": user, "assistant": assistant, "request_metadata": ended})
        value = json.dumps({"conversation_id": "live", "history": history})
        updated = second(max(self.said, default=0)) * 1000
        return [
            (
                "INSERT INTO conversations_v2 VALUES ('/w/live', 'live', ?, ?, ?) ON CONFLICT (key, conversation_id)"
                " DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at + 1",
                [value, START * 1000, updated],
            )
        ]

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        self.said[number] = text
        return self.begin()

    def edit(self, number: int, text: str) -> list[Statement]:
        return self.say(number, speaker(number), text)

    def drop(self, number: int) -> list[Statement]:
        del self.said[number]
        return self.begin()


class OpenClaw(Store):
    """A row is an entry of the session's tree."""

    source, place = "openclaw", ".openclaw/agents/main/agent/openclaw-agent.sqlite"
    secrets = ("auth_profiles",)

    def base(self) -> str:
        return (
            "CREATE TABLE auth_profiles (secret TEXT); INSERT INTO auth_profiles VALUES ('never-read-this');"
            "CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,"
            " created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq));"
        )

    def put(self, place: int, time: int, entry: dict[str, Any]) -> list[Statement]:
        values = [place, json.dumps({**entry, "timestamp": f"{moment(time)}.000Z"}), time]
        return [("INSERT OR REPLACE INTO transcript_events VALUES ('live', ?, ?, ?)", values)]

    def begin(self) -> list[Statement]:
        return self.put(0, START, {"type": "session", "version": 3, "id": "live", "cwd": "/w/live"})

    def entry(self, number: int, text: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": speaker(number), "content": [{"type": "text", "text": text}]}
        if number % 2:
            message |= {"stopReason": "stop", "model": "gull-4"}
        above = f"l{number - 1}" if number else None
        return {"type": "message", "id": f"l{number}", "parentId": above, "message": message}

    def say(self, number: int, role: str, text: str) -> list[Statement]:
        return self.put(number + 1, second(number), self.entry(number, text))

    def edit(self, number: int, text: str) -> list[Statement]:
        entry = {**self.entry(number, text), "timestamp": f"{moment(second(number))}.000Z"}
        return [("UPDATE transcript_events SET event_json = ? WHERE seq = ?", [json.dumps(entry), number + 1])]

    def drop(self, number: int) -> list[Statement]:
        return [("DELETE FROM transcript_events WHERE seq = ?", [number + 1])]


STORES = [OpenClaw, OpenCode, Crush, Cursor, Hermes, Goose, Nac, Kiro]


class Writer:
    """The program's own process. Every answer must come without an error."""

    def __init__(self, path: Path, mode: str) -> None:
        command = [sys.executable, "-c", WRITER, str(path), mode]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, statements: list[Statement]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(statements) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        found = json.loads(self._process.stdout.readline())
        assert not isinstance(found, str), found
        return found

    def do(self, *statements: list[Statement]) -> Any:
        self.send([one for some in statements for one in some])
        return self.answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


class Live:
    """A program at work in a world, and the history that is made of it."""

    def __init__(self, world: World, store: Store, mode: str = "WAL") -> None:
        self.world, self.store = world, store
        self.path = world.home / store.place
        self.path.parent.mkdir(parents=True)
        world.store.mkdir(parents=True)
        (world.store / "config.toml").write_text("[index]\nauto = false\n", encoding="utf-8")
        with closing(sqlite3.connect(self.path)) as database:
            database.executescript(store.base())
        self.writer = Writer(self.path, mode)

    def index(self, quiet: bool = True) -> dict[str, Any]:
        """A run of the command, which must leave the program's files as they are; `quiet`: so does the program."""
        before = self.files() if quiet else {}
        done: dict[str, Any] = self.world.index("--json", "--source", self.store.source).json
        assert done["problems"] == []
        assert not quiet or self.files() == before
        return done

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Bytes and time of the database and its log: what stands in the `-shm` file are the readers' own marks."""
        found = [self.path, self.path.with_name(self.path.name + "-wal")]
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in found if path.exists()}

    def texts(self) -> dict[str, str]:
        """What was said in the live session → event id."""
        ((uid,),) = self.query(f"SELECT uid FROM session WHERE native = '{self.store.native}'")
        from outcrop.contracts.mcp_v1.shapes import session_id

        found = {}
        for turn in self.world.children(str(session_id(uid)), "turns"):
            for event in self.world.children(turn["id"], "events"):
                if event["type"] in ("user_input", "assistant_response"):
                    found[self.world.data("open", id=event["id"])["content"]["text"]] = event["id"]
        return found

    def hits(self, word: str) -> list[str]:
        return [hit["id"] for hit in self.world.data("search_sessions", query=word)["results"]]

    def flagged(self) -> set[str]:
        """Ids of the events that are gone from the database."""
        from outcrop import ids

        rows = self.query(
            f"SELECT event.uid FROM event JOIN session ON session.id = event.session"
            f" WHERE session.native = '{self.store.native}' AND flags & {DELETED}"
        )
        return {ids.write(ids.Kind.EVENT, uid) for (uid,) in rows}

    def query(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.world.store / "outcrop.db")) as database:
            return database.execute(sql).fetchall()


@pytest.fixture(params=STORES, ids=lambda store: str(store.source))
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Live]:
    yield from at_work(tmp_path, request.param(), "WAL")


@pytest.fixture(params=STORES, ids=lambda store: str(store.source))
def live_in_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Live]:
    yield from at_work(tmp_path, request.param(), "DELETE")


@pytest.fixture(
    params=[(store, mode) for store in STORES for mode in ("WAL", "DELETE")],
    ids=lambda one: f"{one[0].source}-{one[1]}",
)
def live_in_either_mode(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Live]:
    store, mode = request.param
    yield from at_work(tmp_path, store(), mode)


def at_work(folder: Path, store: Store, mode: str) -> Iterator[Live]:
    made = Live(World(folder), store, mode)
    yield made
    made.writer.close()
    made.world.close()


BEGIN: list[Statement] = [("BEGIN IMMEDIATE", [])]
COMMIT: list[Statement] = [("COMMIT", [])]
PAUSE: list[Statement] = [
    ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 120000) SELECT max(i) FROM n", [])
]


def test_a_database_is_followed_while_its_program_writes(live: Live) -> None:
    store, writer = live.store, live.writer
    writer.do(store.begin(), store.say(0, "user", "light the lamp"), store.say(1, "assistant", "halcyon rises"))
    assert b"halcyon" not in live.path.read_bytes(), "the rows are in the log alone"
    live.index()
    assert list(live.texts()) == ["light the lamp", "halcyon rises"]
    assert live.hits("halcyon") == [live.texts()["halcyon rises"]]

    # Gained, while a transaction stands open: nothing of it is seen, and it goes on.
    writer.do(BEGIN, store.say(2, "user", "and the second lamp"))
    live.index()
    assert list(live.texts()) == ["light the lamp", "halcyon rises"]
    writer.do(store.say(3, "assistant", "kittiwake dives"), COMMIT)
    live.index()
    assert list(live.texts()) == ["light the lamp", "halcyon rises", "and the second lamp", "kittiwake dives"]
    assert live.hits("kittiwake") == [live.texts()["kittiwake dives"]]

    before = live.texts()
    writer.do(store.edit(3, "the petrel lands"), store.edit(2, "and the fourth lamp"))
    live.index()
    now = live.texts()
    assert list(now) == ["light the lamp", "halcyon rises", "and the fourth lamp", "the petrel lands"]
    assert list(now.values()) == list(before.values()), "rows changed in place are the same events"
    assert live.hits("kittiwake") == []
    assert live.hits("petrel") == [now["the petrel lands"]]
    assert live.flagged() & set(now.values()) == set()

    before = live.texts()
    last = list(before)[-1]
    writer.do(store.drop(3))
    live.index()
    assert live.texts() == before, "what is gone there is kept here"
    assert live.flagged() & set(before.values()) == {before[last]}
    assert live.hits(last.split()[-1]) == [before[last]]

    assert live.index()["records"] == 0, "nothing new, nothing read"
    assert writer.do([("PRAGMA wal_checkpoint(TRUNCATE)", [])])[0][0] == 0, "nobody holds the log"
    live.index()
    assert live.query("SELECT count(*) FROM problem") == [(0,)]


def test_runs_beside_many_commits_lose_and_disturb_nothing(live: Live) -> None:
    store, writer = live.store, live.writer
    writer.do(store.begin(), store.say(0, "user", "begin"), store.say(1, "assistant", "begun"))
    rounds = 20
    texts = ["begin", "begun"]
    for number in range(2, 2 + 2 * rounds, 2):
        texts += [f"ask {number}", f"tell {number}"]
        said = [*store.say(number, "user", texts[-2]), *store.say(number + 1, "assistant", texts[-1])]
        writer.send(BEGIN + said + PAUSE + COMMIT)
    for _ in range(3):
        done = live.world.index("--json", "--source", store.source).json
        assert done["problems"] == []
    for _ in range(rounds):
        writer.answer()
    live.index()
    assert list(live.texts()) == texts
    assert live.flagged() == set()


def test_rows_of_a_rollback_journal_are_followed_too(live_in_place: Live) -> None:
    live, store, writer = live_in_place, live_in_place.store, live_in_place.writer
    writer.do(store.begin(), store.say(0, "user", "light the lamp"), store.say(1, "assistant", "halcyon rises"))
    writer.do(store.say(2, "user", "and the second lamp"), store.say(3, "assistant", "kittiwake dives"))
    live.index()
    before = live.texts()
    assert list(before) == ["light the lamp", "halcyon rises", "and the second lamp", "kittiwake dives"]
    writer.do(BEGIN, store.edit(1, "halcyon sets"))
    live.index()
    assert live.texts() == before, "a transaction that stands open"
    writer.do(store.drop(3), COMMIT)
    live.index()
    after = live.texts()
    assert list(after) == ["light the lamp", "halcyon sets", "and the second lamp", "kittiwake dives"]
    assert list(after.values()) == list(before.values())
    assert live.flagged() & set(after.values()) == {before["kittiwake dives"]}
    assert (live.hits("rises"), live.hits("sets")) == ([], [after["halcyon sets"]])


def test_changes_beside_runs_come_out_exactly(live_in_either_mode: Live) -> None:
    """Messages come, change and go while the command runs again and again: in the end the history says just that."""
    live, store, writer = live_in_either_mode, live_in_either_mode.store, live_in_either_mode.writer
    writer.do(store.begin(), *(store.say(number, speaker(number), f"word{number}") for number in range(4)))
    live.index()
    first = live.texts()
    rounds = 12
    for number in range(4, 4 + 2 * rounds, 2):
        changes = [
            *store.say(number, "user", f"word{number}"),
            *store.say(number + 1, "assistant", f"word{number + 1}"),
        ]
        changes += store.edit(number - 4, f"changed{number - 4}") + store.edit(number - 1, f"changed{number - 1}")
        writer.send(BEGIN + changes + PAUSE + COMMIT)
    for _ in range(3):
        live.index(quiet=False)
    for _ in range(rounds):
        writer.answer()
    last = 3 + 2 * rounds
    writer.do(store.drop(last))
    live.index()
    edited = {*range(0, last - 4, 2), *range(3, last - 1, 2)}
    said = [f"changed{number}" if number in edited else f"word{number}" for number in range(last + 1)]
    now = live.texts()
    if f"word{last}" not in now:
        said.pop()  # it came and went between two runs
    assert list(now) == said
    assert list(now.values())[:4] == list(first.values())
    assert live.flagged() & set(now.values()) == ({now[f"word{last}"]} if f"word{last}" in now else set())
    assert live.hits("changed0") == [now["changed0"]]
    assert live.hits("word0") == []
    assert live.query("SELECT count(*) FROM problem") == [(0,)]


def test_every_harness_that_reads_a_database_has_its_program_here() -> None:
    from outcrop.harnesses import REGISTRY

    rooms = Path(harnesses.__file__).parent
    reading = set()
    for name, entry in REGISTRY.items():
        module = entry.module.rsplit(".", 1)[1]
        files = [*rooms.glob(f"{module}.py"), *(rooms / module).glob("*.py")]
        if any("open_read_only" in file.read_text("utf-8") for file in files):
            reading.add(name)
    followed = {name for name, entry in REGISTRY.items() if {store.source for store in STORES} & set(entry.sources)}
    assert reading == followed


@pytest.mark.parametrize("made", STORES, ids=lambda store: str(store.source))
def test_credentials_are_never_read(made: type[Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite itself tells of every column that a statement reads."""
    from outcrop import config
    from outcrop.harnesses import Environment
    from outcrop.ingest.pipeline import index

    store = made()
    path = tmp_path / "home" / store.place
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(store.base())
        for statement in [*store.begin(), *store.say(0, "user", "ask"), *store.say(1, "assistant", "tell")]:
            database.execute(*statement)
        database.commit()
    columns: set[tuple[str, str]] = set()
    connect = sqlite3.connect

    def watched(database: Any, *arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(database, *arguments, **named)
        if path.name in str(database):

            def note(action: int, table: str | None, column: str | None, *_: Any) -> int:
                if action == sqlite3.SQLITE_READ:
                    columns.add((table or "", column or ""))
                return sqlite3.SQLITE_OK

            connection.set_authorizer(note)
        return connection

    monkeypatch.setattr(sqlite3, "connect", watched)
    here = Environment(tmp_path / "home", {"OUTCROP_HOME": str(tmp_path / "store")})
    summary = index(config.load(here), here)
    assert summary.events
    assert columns
    read = {table for table, _ in columns} | {f"{table}.{column}" for table, column in columns}
    assert read & set(store.secrets) == set()
    monkeypatch.setattr(sqlite3, "connect", connect)
    for file in (tmp_path / "store").rglob("*"):
        assert not file.is_file() or b"never-read-this" not in file.read_bytes()
