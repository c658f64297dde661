"""The Kiro adapter on an invented home and database: its three layouts, which may hold one session twice."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import CORPUS, FOLDER, hashed, needs_corpus
from outcrop.harnesses import Environment, Form, SourceFile
from outcrop.harnesses.kiro_cli import HARNESS
from outcrop.model import ENCRYPTED_PLACEHOLDER, Event, EventType, Parsed, Relation
from reading import events_of, facts_of, read_named, scalars, sound, turns_of, values

FIXTURES = Path(__file__).parent.parent / "fixtures" / "kiro-cli"
FACTS = [{"name": path.stem, **json.loads(path.read_text("utf-8"))} for path in sorted((FOLDER / "kiro-cli").glob("*"))]
ROPE = "cccccccc-0000-4000-8000-000000000001"
CHILD = ROPE[:-1] + "2"
COIL = ROPE[:-1] + "7"
DINGHY = ROPE[:-1] + "9"
ANCHOR = "sess_dddddddd-0000-4000-8000-000000000001"
START = 1780300800000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of the program with its database in it."""
    shutil.copytree(FIXTURES / "kiro", tmp_path / "kiro")
    with closing(sqlite3.connect(tmp_path / "kiro" / "data.sqlite3")) as database:
        database.executescript((FIXTURES / "data.sql").read_text("utf-8"))
    return tmp_path / "kiro"


def file_of(home: Path, role: str, native: str | None = None) -> SourceFile:
    return next(one for one in HARNESS.discover("kiro", home) if one.role == role and one.native == native)


def rows_of(file: SourceFile) -> list[dict[str, Any]]:
    text = Path(file.path).read_text("utf-8")
    if file.form is Form.DOCUMENT:
        return [json.loads(text)]
    return [json.loads(line) for line in text.split("\n") if line]


def fold(file: SourceFile, rows: list[dict[str, Any]], cuts: frozenset[int] = frozenset()) -> list[Parsed]:
    return read_named(HARNESS, file, rows, cuts)


def read(home: Path, role: str, native: str) -> list[Parsed]:
    file = file_of(home, role, native)
    return fold(file, rows_of(file))


def stored(home: Path, native: str) -> list[Parsed]:
    place = file_of(home, "database")
    with closing(HARNESS.container(place)) as container:
        rows = list(container.records(native))
    file = SourceFile(f"{place.path}#{native}", "kiro", Form.CONTAINER, "session", native)
    return fold(file, rows, frozenset(range(len(rows))))


def by_text(parsed: list[Parsed]) -> dict[str, Event]:
    return {event.text: event for event in events_of(parsed)}


@pytest.mark.parametrize(
    ("platform", "variables", "folders"),
    [
        ("linux", {}, [".local/share/kiro-cli", ".local/share/amazon-q"]),
        ("linux", {"XDG_DATA_HOME": "/x"}, ["/x/kiro-cli", "/x/amazon-q"]),
        ("darwin", {}, ["Library/Application Support/kiro-cli", "Library/Application Support/amazon-q"]),
        (
            "win32",
            {"LOCALAPPDATA": "/local"},
            ["/local/kiro-cli", "/local/amazon-q", "AppData/Roaming/kiro-cli", "AppData/Roaming/amazon-q"],
        ),
    ],
)
def test_places_of_every_platform(platform: str, variables: dict[str, str], folders: list[str]) -> None:
    user = Path("/home/gull")
    wanted = [user / ".kiro", *(user / folder for folder in folders)]
    assert HARNESS.roots("kiro", Environment(user, variables, platform)) == wanted
    chosen = HARNESS.roots("kiro", Environment(user, {"KIRO_HOME": "/k"}, platform))
    assert chosen[0] == Path("/k")


def test_discover_names_every_layout(home: Path) -> None:
    assert [(one.role, one.native) for one in HARNESS.discover("kiro", home)] == [
        ("database", None),
        ("messages", ANCHOR),
        ("session", ANCHOR),
        ("sidecar", ROPE),
        ("transcript", ROPE),
        ("sidecar", CHILD),
        ("transcript", CHILD),
    ]
    assert [one.path for one in HARNESS.discover("kiro", home / "data.sqlite3")] == [str(home / "data.sqlite3")]
    assert HARNESS.resume_command(ROPE) == ["kiro-cli", "chat", "--resume-id", ROPE]
    assert HARNESS.resume_command(f"{ANCHOR}/s1") is None


def test_a_transcript_is_read_in_its_turns(home: Path) -> None:
    parsed = read(home, "transcript", ROPE)
    events = events_of(parsed)
    assert [(turn.prompt, turn.ends, turn.tools) for turn in turns_of(events)] == [
        ("Splice the rope\n[image image/png, 3 bytes]", "final", ["execute_bash", "@outcrop/open"]),
        ("Splice the rope", "cancelled", ["fs_write"]),
        ("Tie a knot", "cancelled", ["read"]),
        ("No, a bowline", "final", []),
    ]
    assert {event.cwd for event in events} == {"/w/boat"}
    assert {event.generator for event in events if event.generator} == {"gull-4"}
    shell = by_text(parsed)["no rope"]
    assert (shell.exit_code, shell.is_error, shell.tool, shell.call_id) == (2, True, "execute_bash", "t1")
    assert by_text(parsed)["opened"].is_error is False
    sealed = by_text(parsed)[ENCRYPTED_PLACEHOLDER]
    assert sealed.extra == {"encrypted_content": {"signature": "c2VhbGVk"}}
    assert by_text(parsed)["The rope is spliced."].extra == {"credits": 0.75, "usage": {"output": 7}}
    assert by_text(parsed)["Ropes were spliced."].type is EventType.COMPACTION
    assert [event.raw["kind"] for event in events if event.raw] == ["Mooring"]
    assert [one.keep for one in parsed if one.keep] == [{"additional_context": "hook says hi"}]


def test_T65_only_prompts_have_a_time_in_seconds(home: Path) -> None:
    events = events_of(read(home, "transcript", ROPE))
    assert [event.time for event in events if event.time is not None] == [START, START + 100_000, START + 200_000]
    assert all(event.type is EventType.USER_INPUT for event in events if event.time is not None)


def test_T66_a_sidecar_that_comes_later_changes_no_key(home: Path) -> None:
    side = Path(file_of(home, "sidecar", ROPE).path)
    document = json.loads(side.read_text("utf-8"))
    side.unlink()
    before = read(home, "transcript", ROPE)
    assert {event.cwd for event in events_of(before)} == {None}
    assert [turn.ends for turn in turns_of(events_of(before))] == ["final", "final", "cancelled", "final"]
    side.write_text(json.dumps(document), "utf-8")
    later = read(home, "sidecar", ROPE)
    assert facts_of(later) == {"title.generated": "Splice the rope", "created": START + 123}
    turns = turns_of(events_of([*read_without(home), *later]))
    assert [turn.ends for turn in turns] == ["final", "cancelled", "cancelled", "final"]
    assert turns[0].events[-1].extra == {"credits": 0.75, "usage": {"output": 7}}
    whole = events_of(read(home, "transcript", ROPE))
    assert [event.key for event in events_of(before) if event.text != "Tool use was cancelled."] == [
        event.key for event in whole if event.text != "Tool use was cancelled."
    ]


def read_without(home: Path) -> list[Parsed]:
    """The transcript as it is read while there is no sidecar."""
    side = Path(file_of(home, "sidecar", ROPE).path)
    side.rename(side.with_suffix(".away"))
    try:
        return read(home, "transcript", ROPE)
    finally:
        side.with_suffix(".away").rename(side)


def test_T66_the_first_sidecar_brings_the_model(home: Path) -> None:
    side = Path(file_of(home, "sidecar", ROPE).path)
    document = json.loads(side.read_text("utf-8"))
    del document["session_state"]["conversation_metadata"]["user_turn_metadatas"][1]
    side.write_text(json.dumps(document), "utf-8")
    events = events_of([*read_without(home), *read(home, "sidecar", ROPE)])
    assert {event.generator for event in turns_of(events)[0].events if event.generator} == {"gull-4"}


def test_T66_a_half_written_sidecar_is_none(home: Path) -> None:
    side = Path(file_of(home, "sidecar", ROPE).path)
    side.write_text('{"session_id": ', "utf-8")
    assert turns_of(events_of(read(home, "transcript", ROPE)))[0].ends == "final"


def test_T67_a_placeholder_after_a_cancel_is_no_answer(home: Path) -> None:
    parsed = read(home, "transcript", ROPE)
    turn = turns_of(events_of(parsed))[1]
    assert (turn.ends, turn.final) == ("cancelled", None)
    assert by_text(parsed)["Tool use was cancelled."].type is EventType.SYSTEM
    later = turns_of(events_of([*read_without(home), *read(home, "sidecar", ROPE)]))[1]
    assert (later.ends, later.final) == ("cancelled", None)
    assert later.events[-1].partial


def test_T14_a_conversation_of_both_stores_is_one_session(home: Path) -> None:
    new = {event.key: event for event in events_of(read(home, "transcript", ROPE))}
    old = events_of(stored(home, ROPE))
    assert [event.text or event.tool for event in old] == [
        "Splice the rope",
        "I look.",
        "execute_bash",
        "@outcrop/open",
        "no rope",
        "opened",
        "The rope is spliced.",
    ]
    for event in old:
        assert (new[event.key].type, new[event.key].exit_code) == (event.type, event.exit_code)


def test_what_is_changed_in_the_database_is_the_same_event(home: Path) -> None:
    for native in (ROPE, COIL):
        before = {event.key: event.text for event in events_of(stored(home, native))}
        changes = [
            ("Splice the rope", "Cut the rope"),
            ("spliced.", "cut."),
            ("Coil it", "Roll it"),
            ("Left.", "Right."),
        ]
        with closing(sqlite3.connect(file_of(home, "database").path)) as database:
            for old, new in changes:
                database.execute("UPDATE conversations_v2 SET value = replace(value, ?, ?)", (old, new))
            database.commit()
        after = {event.key: event.text for event in events_of(stored(home, native))}
        assert after.keys() == before.keys()
        assert len([key for key in after if after[key] != before[key]]) == 2
        with closing(sqlite3.connect(file_of(home, "database").path)) as database:
            for old, new in changes:
                database.execute("UPDATE conversations_v2 SET value = replace(value, ?, ?)", (new, old))
            database.commit()


def test_turns_behind_a_summary_are_counted_from_there(home: Path) -> None:
    """A conversation loses its head when it is compacted: what comes then is not what stood in its place before."""
    summary = "Knots were tied."
    with_head = [event for event in events_of(stored(home, COIL)) if event.type is EventType.USER_INPUT]
    with closing(sqlite3.connect(file_of(home, "database").path)) as database:
        database.execute(
            "UPDATE conversations_v2 SET value = json_set(value, '$.latest_summary', NULL) WHERE conversation_id = ?",
            (COIL,),
        )
        database.commit()
    without = [event for event in events_of(stored(home, COIL)) if event.type is EventType.USER_INPUT]
    assert {event.key for event in with_head} & {event.key for event in without} == set()
    rows = [{"kind": "Prompt", "data": {"content": [{"kind": "text", "data": text}]}} for text in ("before", "Coil it")]
    rows.insert(1, {"kind": "Compaction", "data": {"summary": summary}})
    told = events_of(fold(file_of(home, "transcript", CHILD), rows))
    assert [event.key for event in told if event.text == "Coil it"] == [with_head[0].key]


def test_the_older_database(home: Path) -> None:
    place = file_of(home, "database")
    with closing(HARNESS.container(place)) as container:
        listed = dict(container.sessions())
    assert set(listed) == {ROPE, COIL, DINGHY, "broken-1", next(one for one in listed if one.startswith("folder-"))}
    parsed = stored(home, COIL)
    events = events_of(parsed)
    assert [(turn.prompt, turn.ends, turn.tools) for turn in turns_of(events)] == [
        ("Coil it", "cancelled", ["read"]),
        ("No, leave it", "final", []),
    ]
    assert by_text(parsed)["Knots were tied."].type is EventType.COMPACTION
    assert {event.cwd for event in events} == {"/w/boat"}
    assert {event.generator for event in events if event.generator} == {"gull-2"}
    assert facts_of(parsed) == {"created": 1780301400000}
    assert by_text(parsed)["Left."].time == 1780301461000
    assert [event.time for event in events_of(stored(home, ROPE))][:2] == [START, START + 1000], "with its zone"
    assert [event.raw is not None for event in events].count(True) == 1
    assert [turn.prompt for turn in turns_of(events_of(stored(home, DINGHY)))] == ["Splice the rope"]
    (broken,) = stored(home, "broken-1")
    assert (broken.reason, broken.keep) == ("not a whole JSON document", '{"conversation_id": ')


def test_credentials_are_never_read(home: Path) -> None:
    place = file_of(home, "database")
    with closing(HARNESS.container(place)) as container:
        told = [list(container.records(native)) for native, _ in container.sessions()]
    assert "never-read-this" not in json.dumps(told)


def test_T11_a_conversation_that_grew_in_the_wal_has_another_fingerprint(home: Path) -> None:
    place = file_of(home, "database")
    with closing(sqlite3.connect(place.path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("PRAGMA wal_autocheckpoint=0")
        with closing(HARNESS.container(place)) as container:
            before, stamp = dict(container.sessions()), HARNESS.stamp(place)
        grown = "UPDATE conversations_v2 SET value = replace(value, 'Left.', 'Left it.'), updated_at = 1780301999000"
        writer.execute(f"{grown} WHERE conversation_id = ? AND key = '/w/boat'", (COIL,))
        with closing(HARNESS.container(place)) as container:
            after = dict(container.sessions())
        assert {native for native in after if after[native] != before[native]} == {COIL}
        assert HARNESS.stamp(place) != stamp
        assert "Left it." in by_text(stored(home, COIL))


def test_T13_databases_of_other_versions(tmp_path: Path) -> None:
    for sql in (
        "CREATE TABLE history (id INTEGER)",
        "CREATE TABLE conversations_v2 (conversation_id TEXT, value TEXT)",
    ):
        with closing(sqlite3.connect(tmp_path / "data.sqlite3")) as database:
            database.execute(sql)
        with closing(HARNESS.container(file_of(tmp_path, "database"))) as container:
            assert list(container.sessions()) == []
            assert list(container.records("x")) == []


def test_a_child_names_its_parent(home: Path) -> None:
    assert facts_of(read(home, "sidecar", CHILD)) == {
        "parent": ROPE,
        "relation": Relation.SUBAGENT,
        "agent": "counter",
    }
    (turn,) = turns_of(events_of(read(home, "transcript", CHILD)))
    assert (turn.prompt, turn.ends, turn.final and turn.final.generator) == ("Count the ropes", "final", None)


def test_the_newest_layout(home: Path) -> None:
    parsed = read(home, "messages", ANCHOR)
    events = events_of(parsed)
    assert [(turn.prompt, turn.ends, turn.tools) for turn in turns_of(events)] == [
        ("Drop the anchor", "final", ["execute_bash"]),
        ("Weigh it", "cancelled", []),
        ("Flat words", None, []),
    ]
    assert by_text(parsed)["be steady"].type is EventType.SYSTEM
    assert by_text(parsed)["9 m"].is_error
    assert events[0].time == 1788249601500
    assert {event.cwd for event in events} == {"/w/boat"}
    assert {event.generator for event in events if event.generator} == {"gull-5"}
    assert [event.extra for event in events if event.extra and "credits" in event.extra] == [{"credits": 0.75}]
    assert [event.raw["payload"]["type"] for event in events if event.raw] == ["sonar"]
    child = f"{ANCHOR}/s1"
    assert [event.text for event in events_of(parsed, child)] == ["Counting links."]
    assert facts_of(parsed, child) == {"parent": ANCHOR, "relation": Relation.SUBAGENT}
    assert facts_of(read(home, "session", ANCHOR)) == {"title.generated": "Anchor", "created": 1788249600000}


LINES = [one for one in HARNESS.discover("kiro", FIXTURES / "kiro") if one.form is Form.LINES]


@given(st.sampled_from(LINES), st.frozensets(st.integers(0, 20)))
def test_cut_anywhere_gives_the_same_items(file: SourceFile, cuts: frozenset[int]) -> None:
    rows = rows_of(file)
    assert fold(file, rows, cuts) == fold(file, rows)


NAMES = [
    "kind", "data", "message_id", "content", "meta", "timestamp", "toolUseId", "name", "input", "status", "results",
    "tool", "text", "summary", "record", "user", "assistant", "Prompt", "prompt", "ToolUseResults", "CancelledToolUses",
    "tool_use_results", "tool_use_id", "Text", "Json", "Response", "ToolUse", "tool_uses", "id", "args", "payload",
    "type", "operationType", "toolCallId", "toolName", "subExecutionId", "stopReason", "promptTurnSummaries", "usage",
    "exit_status", "stdout", "source", "bytes", "format", "session_state", "conversation_metadata",
    "user_turn_metadatas", "message_ids", "end_reason", "metering_usage", "value", "unit", "request_metadata", "cwd",
]  # fmt: skip
KINDS = [
    "Prompt", "AssistantMessage", "ToolResults", "Compaction", "text", "image", "thinking", "toolUse", "toolResult",
    "step", "conversation", "user", "assistant", "Say", "tool_call", "tool_result", "turn_end", "usage_summary",
    "shell", "Cancelled", "m1",
]  # fmt: skip
VALUE = values(NAMES, scalars(KINDS), 12)
KIND = st.sampled_from(KINDS)
BLOCK = st.fixed_dictionaries({"kind": KIND, "data": VALUE})
ROW = (
    st.fixed_dictionaries(
        {"kind": KIND, "data": st.fixed_dictionaries({"content": st.lists(BLOCK | VALUE, max_size=3)}, optional={
            "message_id": VALUE, "meta": VALUE, "results": VALUE})}
    )
    | st.fixed_dictionaries({"record": st.just("step")}, optional={"user": VALUE, "assistant": VALUE,
                                                                 "request_metadata": VALUE})
    | st.fixed_dictionaries({"payload": st.fixed_dictionaries({"type": KIND}, optional={
        "content": VALUE, "operationType": VALUE, "toolCallId": VALUE, "args": VALUE, "promptTurnSummaries": VALUE})})
    | st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=6)
)  # fmt: skip


@given(st.sampled_from(["transcript", "sidecar", "messages", "session", "database"]), st.lists(ROW, max_size=6))
def test_wrong_shapes_are_no_errors(role: str, rows: list[dict[str, Any]]) -> None:
    form = Form.CONTAINER if role == "database" else Form.LINES
    sound(fold(SourceFile("/k/x.jsonl", "kiro", form, role, "x"), rows, frozenset(range(6))))


@given(VALUE)
def test_a_sidecar_of_any_shape_is_no_error(document: Any) -> None:
    class Shown:
        def text(self, path: str, inside: str, limit: int) -> str | None:
            if path.endswith(".json"):
                return json.dumps(document)
            return Path(LINES[1].path).read_text("utf-8")

    file = SourceFile("/k/x.jsonl", "kiro", Form.LINES, "transcript", "x")
    for row in rows_of(LINES[1]):
        assert HARNESS.reader(file, None, Shown()).feed(row).items
    if isinstance(document, dict):
        HARNESS.reader(SourceFile("/k/x.json", "kiro", Form.DOCUMENT, "sidecar", "x"), None, Shown()).feed(document)


def corpus_files() -> list[Path]:
    return sorted(path for path in CORPUS.glob("*/**/*kiro*/**/*.json*") if "kiro" in str(path))


def laid_out(path: Path, home: Path) -> list[tuple[str, SourceFile, list[dict[str, Any]]]]:
    """A file of the corpus where Kiro has such a one: rows of the database, or a transcript with its sidecar."""
    if path.parent.name == "kiro_sqlite":
        value = path.read_text("utf-8")
        native = json.loads(value)["conversation_id"]
        home.mkdir(parents=True)
        with closing(sqlite3.connect(home / "data.sqlite3")) as database:
            database.execute(
                "CREATE TABLE conversations_v2 (key TEXT, conversation_id TEXT, value TEXT, created_at INTEGER,"
                " updated_at INTEGER)"
            )
            database.execute("INSERT INTO conversations_v2 VALUES ('/w', ?, ?, 1, 1)", (native, value))
            database.commit()
        place = file_of(home, "database")
        with closing(HARNESS.container(place)) as container:
            rows = list(container.records(native))
        return [(native, SourceFile(f"{place.path}#{native}", "kiro", Form.CONTAINER, "session", native), rows)]
    folder = home / "sessions" / "cli"
    folder.mkdir(parents=True)
    for beside in path.parent.glob("session.json*"):
        shutil.copyfile(beside, folder / beside.name)
    found = list(HARNESS.discover("kiro", home))
    return [(file.native or "", file, rows_of(file)) for file in found if Path(file.path).name == path.name]


@needs_corpus
def test_every_record_of_the_corpus_gives_items_or_a_reason(tmp_path: Path) -> None:
    files = corpus_files()
    assert len(files) == 6
    for number, path in enumerate(files):
        ((_, file, rows),) = laid_out(path, tmp_path / str(number))
        unknown = [one for one in events_of(fold(file, rows)) if one.type is EventType.UNKNOWN]
        assert [one.raw["kind"] for one in unknown] == (["FutureRecord"] if path.suffix == ".jsonl" else [])


@needs_corpus
@pytest.mark.parametrize("told", FACTS, ids=lambda told: str(told["name"]))
def test_a_session_is_told_as_its_records_say(told: dict[str, Any], tmp_path: Path) -> None:
    ((native, file, rows),) = laid_out(CORPUS / told["file"], tmp_path / "home")
    parsed = fold(file, rows)
    events = events_of(parsed)
    turns = turns_of(events)
    assert (native, len(rows)) == (told["session"], told["records"])
    opening = [n for n, one in enumerate(parsed, 1) if any(getattr(item, "opens", False) for item in one.items)]
    assert opening == [want["record"] for want in told["turns"]]
    assert [hashed(turn.prompt) for turn in turns] == [want["prompt"] for want in told["turns"]]
    assert [turn.ends for turn in turns] == [want["ends"] for want in told["turns"]]
    assert [turn.tools for turn in turns] == [want["tools"] for want in told["turns"]]
    times = [event.time for event in events if event.time is not None]
    assert (min(times), max(times)) == (told["first_time"], told["last_time"])
    assert facts_of(parsed).get("parent") == told["parent"]
