"""`outcrop forget` as a process: what it erases, everywhere; what it leaves; and that nothing brings it back."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from erased import pending, remains
from homes import forked, many_turns, resumed, with_subagents, write_lines
from outcrop.harnesses import Environment
from outcrop.ingest import pipeline
from world import DAY, Claude, Codex, Run, World, at, say, use

SECRETS = ("zirconium", "periwinkle", "quagmire", "halibut", "brontosaurus", "Xylophone")
"""Words that the session Q alone holds: in its prompt, answer, call, title, an unknown record, a broken line."""
GOOSE = Path(__file__).parent.parent / "fixtures" / "goose" / "sessions.sql"
STEPS = (
    *("purge-rows", "purge-erased", "purge-text", "purge-renewed", "purge-vacuumed", "purge-truncated"),
    "purge-checked",
)


def q(folder: Path) -> Claude:
    """A session with something of everything that is stored."""
    return (
        Claude("Q", folder)
        .user("20:00:00", "Please reconcile the zirconium ledger of the harbour")
        .assistant(
            "20:00:02",
            say("I look at the periwinkle register."),
            use("toolu_q", "Edit", file_path=str(folder / "quagmire.py"), old_string="a", new_string="b"),
        )
        .result("20:00:04", ("toolu_q", "quagmire.py was edited"))
        .record("hologram", at("20:00:05"), beam={"word": "a halibut of light"})
        .answer("20:00:09", "The zirconium ledger and the periwinkle register agree.")
        .bare(type="ai-title", aiTitle="Brontosaurus ledger brontosaurus")
    )


@pytest.fixture
def world(small_world: World) -> World:
    """Some sessions, and Q, which is to be forgotten."""
    small_world.write("K", "X", "D")
    folder = small_world.places().plain
    path = write_lines(q(folder).path(small_world.home), q(folder).lines)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write('{"type": "user", "Xylophone broken": \n')
    small_world.index()
    return small_world


def sessions(world: World) -> dict[str, str]:
    """First prompt, title or harness label → typed id, of all sessions of the day."""
    told = world.run("sessions", "--since", DAY, "--until", DAY, "--limit", "50", "--json").json
    return {row["session"]["display_label"]: row["id"] for row in told["data"]["sessions"]}


def id_of(world: World, harness: str, native: str) -> str:
    """The typed id of a session, as `--dry-run` tells it."""
    for source in ("claude", "codex"):
        found = world.run("forget", "--source", source, "--dry-run", "--json")
        for session in found.json["sessions"]:
            if (session["harness"], session["native"]) == (harness, native):
                return str(session["id"])
    raise AssertionError("no such session")


def id_of_q(world: World) -> str:
    return id_of(world, "claude-code", q(world.places().plain).session)


def forget(world: World, *argv: str, **variables: str) -> Run:
    return world.run("forget", *argv, "--yes", "--json", **variables)


def hits(world: World, query: str) -> int:
    types = "user_input,assistant_response,tool_call,tool_response"
    told = world.run("events", query, "--types", types, "--json")
    assert told.code in (0, 1), told
    return len(told.json["data"]["results"])


def test_everything_that_a_session_left_is_gone_from_every_byte(world: World) -> None:
    assert {word for _, word in remains(world.store, SECRETS)} == set(SECRETS), "the look can fail"
    assert hits(world, "zirconium") > 0
    assert world.run("touches", "quagmire.py", "--scope", "all").code == 0
    done = forget(world, "--session", id_of_q(world))
    assert done.code == 0, done
    told = done.json
    assert told["proof"]["status"] == "proven"
    assert told["found_before"]["marks"] >= told["proof"]["marks"] > 5
    assert told["found_before"]["words"] == told["proof"]["words"] > 3
    assert (told["proof"]["marks_left"], told["proof"]["words_left"]) == (0, 0)
    assert told["events"] == told["sessions"][0]["events"] > 5
    assert remains(world.store, SECRETS) == []
    assert hits(world, "zirconium") == 0
    assert hits(world, "beacon") > 0, "others stay"
    assert not (world.store / "outcrop.db-wal").exists() or (world.store / "outcrop.db-wal").stat().st_size == 0
    assert world.run("open", told["sessions"][0]["id"]).code == 1
    assert world.run("touches", "quagmire.py", "--scope", "all").code == 1


def test_no_reading_brings_it_back_but_one_after_undo(world: World) -> None:
    target = id_of_q(world)
    path = q(world.places().plain).path(world.home)
    before = world.run("open", target, "--json").json
    forget(world, "--session", target)

    def gone(*argv: str) -> None:
        world.index(*argv)
        assert remains(world.store, SECRETS) == []
        assert world.run("open", target).code == 1

    gone()
    gone("--full")
    with open(path, "a", encoding="utf-8") as stream:
        more = Claude("Q2", world.places().plain, q(world.places().plain).session).user("20:10:00", "zirconium again")
        stream.write(json.dumps(more.lines[0]) + "\n")
    gone()
    gone("--full")
    moved = path.with_name("moved.jsonl")
    path.rename(moved)
    gone()
    shutil.copy(moved, path.parent / f"{q(world.places().plain).session}.jsonl")
    gone("--full")
    assert [found["id"] for found in world.run("forget", "--list", "--json").json["forgotten"]] == [target]

    moved.unlink()
    write_lines(path, q(world.places().plain).lines)
    undone = world.run("forget", "--undo", target, "--json")
    assert (undone.code, undone.json) == (0, {"lifted": [target]})
    assert world.run("open", target).code == 1, "not before it is read"
    world.index()
    after = world.run("open", target, "--json").json
    assert after["data"] == before["data"]
    assert hits(world, "zirconium") > 0
    assert world.run("forget", "--undo", target).code == 1
    assert world.run("forget", "--list").code == 1


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_next_index_finishes(world: World, step: str) -> None:
    target = id_of_q(world)
    assert forget(world, "--session", target, OUTCROP_FAULT=f"kill:{step}").code == -9
    if step == "purge-rows":
        assert not pending(world), "nothing was committed, so nothing is erased"
        assert hits(world, "zirconium") > 0
        assert forget(world, "--session", target).code == 0
    else:
        assert pending(world)
        assert hits(world, "zirconium") == 0, "erased at once, proven later"
        assert world.run("open", target).code == 1
    assert world.index().err == ""
    assert not pending(world)
    assert remains(world.store, SECRETS) == []
    assert hits(world, "beacon") > 0


@pytest.mark.parametrize("step", ["purge-vacuumed", "purge-truncated", "purge-text"])
def test_a_full_disk_leaves_it_pending_and_the_command_finishes_it(world: World, step: str) -> None:
    failed = forget(world, "--session", id_of_q(world), OUTCROP_FAULT=f"fail:{step}")
    assert failed.code == 4
    assert "full" in failed.err
    assert pending(world)
    done = world.run("forget", "--finish", "--json")
    assert (done.code, done.json["proof"]["status"]) == (0, "proven")
    assert done.json["proof"]["marks"] > 0
    assert remains(world.store, SECRETS) == []
    again = world.run("forget", "--finish", "--json")
    assert (again.code, again.json["proof"]) == (0, None)


@pytest.mark.slow
def test_killed_at_random_instants_the_next_index_finishes(world: World) -> None:
    many_turns(world.home, world.places().plain, "long", 120)
    world.index()
    whole = world.folder / "whole"
    shutil.copytree(world.store, whole)
    target = id_of_q(world)
    began = time.monotonic()
    assert forget(world, "--session", target).code == 0
    length = time.monotonic() - began
    instants = random.Random(7)
    struck = 0
    for _ in range(25):
        shutil.rmtree(world.store)
        shutil.copytree(whole, world.store)
        child = subprocess.Popen(
            [sys.executable, "-m", "outcrop", "forget", "--session", target, "--yes"],
            env=world.environment, cwd=world.home, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            child.wait(timeout=instants.uniform(0.3, 1.0) * length)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            struck += 1
        begun = world.run("open", target).code == 1
        world.index()
        if not begun:
            assert forget(world, "--session", target).code == 0
        assert not pending(world)
        assert remains(world.store, SECRETS) == []
        assert world.run("open", target).code == 1
    assert struck >= 10


def test_a_reader_that_holds_an_older_state_makes_the_proof_wait(world: World) -> None:
    reader = sqlite3.connect(f"file:{world.store / 'outcrop.db'}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    count = reader.execute("SELECT count(*) FROM session").fetchone()
    told = forget(world, "--session", id_of_q(world))
    assert told.code == 1
    assert (
        told.json["proof"] | {"status": "pending", "reason": "a reader still holds an older state of the history"}
        == (told.json["proof"])
    )
    assert hits(world, "zirconium") == 0, "erased for everybody who looks now"
    assert reader.execute("SELECT count(*) FROM session").fetchone() == count, "the reader's state stands"
    assert pending(world)
    assert "proof pending" in world.index().err
    reader.execute("COMMIT")
    assert world.index().err == ""
    reader.close()
    assert not pending(world)
    assert remains(world.store, SECRETS) == []


def test_a_server_that_only_waits_holds_nothing(world: World) -> None:
    server = World(world.folder, world.sessions, "mcp")
    try:
        assert server.data("search_sessions", query="zirconium")["results"]
        assert forget(world, "--session", id_of_q(world)).code == 0
        assert server.data("search_sessions", query="zirconium")["results"] == []
        assert server.data("search_sessions", query="beacon")["results"]
    finally:
        server.close()
    assert remains(world.store, SECRETS) == []


# Copies


def test_copies_in_forks_go_and_their_own_words_stay(small_world: World) -> None:
    first, second, third = forked(small_world.home, small_world.places().plain)
    small_world.index()
    ids = {rollout.letter: id_of(small_world, "codex", rollout.session) for rollout in (first, second, third)}
    assert hits(small_world, '"chart the bay"') > 0
    told = forget(small_world, "--session", ids["F0"]).json
    assert {copy["session"] for copy in told["copies"]} == {ids["F1"], ids["F2"]}
    assert told["children"] == [ids["F1"]]
    phrases = ("chart the bay", "The bay is charted")

    def checked() -> None:
        assert remains(small_world.store, phrases) == []
        one, two = "chart the cape 1", "chart the cape 2"
        for letter, words in (("F1", [one]), ("F2", [one, two])):
            opened = small_world.run("open", ids[letter], "--limit", "9", "--json").json["data"]
            prompts = [turn["user_input"]["text"] for turn in opened["turns"] if turn["user_input"]]
            assert prompts[: len(words)] == words
        assert two in sessions(small_world)

    checked()
    small_world.index("--full")
    checked()
    # A fork of the forgotten session that nobody had read yet, and one that goes on.
    late = Codex("F3", small_world.places().plain, "09:30:00")
    late.lines[0]["payload"]["forked_from_id"] = first.session
    late.lines += [{**line, "timestamp": late.start} for line in first.lines]
    late.begin("09:30:10", "chart the strait").answer("09:30:19", "Strait charted.")
    write_lines(late.path(small_world.home), late.lines)
    second.begin("09:00:00", "chart the narrows").answer("09:00:09", "Narrows charted.")
    write_lines(second.path(small_world.home), second.lines)
    small_world.index()
    checked()
    assert "chart the strait" in sessions(small_world)
    assert hits(small_world, "narrows") == 2
    small_world.run("forget", "--undo", ids["F0"])
    small_world.index()
    assert len(small_world.run("open", ids["F1"], "--limit", "9", "--json").json["data"]["turns"]) == 3


def test_forgetting_a_fork_leaves_what_it_had_copied_with_its_owner(small_world: World) -> None:
    old, new = resumed(small_world.home, small_world.places().plain)
    small_world.index()
    told = forget(small_world, "--session", id_of(small_world, "claude-code", new.session)).json
    assert told["copies"] == []
    assert remains(small_world.store, ("The anchor is black",)) == []
    assert hits(small_world, '"paint the buoy"') == 1
    opened = small_world.run("open", id_of(small_world, "claude-code", old.session), "--limit", "9", "--json")
    assert len(opened.json["data"]["turns"]) == 1


def test_copies_of_a_parent_go_from_its_subagents_which_stay(small_world: World) -> None:
    main = with_subagents(small_world.home, small_world.places().plain)
    small_world.index()
    told = forget(small_world, "--session", id_of(small_world, "claude-code", main.session)).json
    assert len(told["children"]) == 2
    assert len(told["copies"]) == 1
    assert told["proof"]["status"] == "proven"
    assert remains(small_world.store, ("survey the reef", "Two agents will look")) == []
    for child in told["children"]:
        assert small_world.run("open", child).code == 0
    assert hits(small_world, "coral") == 2
    small_world.index("--full")
    assert remains(small_world.store, ("survey the reef", "Two agents will look")) == []


def test_equal_words_of_another_session_are_listed_and_stay(world: World) -> None:
    folder = world.places().plain
    same = "Please reconcile the zirconium ledger of the harbour"
    other = Claude("same", folder).user("21:00:00", same).answer("21:00:05", "Of which harbour?")
    write_lines(other.path(world.home), other.lines)
    world.index()
    done = forget(world, "--session", id_of_q(world))
    assert done.code == 0
    told = done.json
    assert told["equal_count"] == 1
    assert told["equal"][0]["session"] == id_of(world, "claude-code", other.session)
    assert same in world.run("open", told["equal"][0]["event"]).out
    assert {word for _, word in remains(world.store, SECRETS)} == {"zirconium"}


def test_one_session_of_a_database_is_forgotten_whatever_becomes_of_it_there(small_world: World) -> None:
    place = small_world.home / ".local" / "share" / "goose" / "sessions" / "sessions.db"
    place.parent.mkdir(parents=True)
    db = sqlite3.connect(place)
    db.executescript(GOOSE.read_text(encoding="utf-8"))
    small_world.index()

    def told() -> dict[str, str]:
        found = small_world.run("forget", "--source", "goose", "--dry-run", "--json").json["sessions"]
        return {session["native"]: session["id"] for session in found if session["events"]}

    before = told()
    assert len(before) > 1
    native, target = next(iter(before.items()))
    done = forget(small_world, "--session", target)
    assert (done.code, done.json["proof"]["status"]) == (0, "proven")
    assert set(told()) == set(before) - {native}
    for _ in range(2):
        with db:
            db.execute("UPDATE sessions SET updated_at = '2031-01-01 00:00:00' WHERE id = ?", (native,))
            db.execute("UPDATE messages SET created_timestamp = created_timestamp + 1 WHERE session_id = ?", (native,))
        small_world.index()
        small_world.index("--full")
        assert set(told()) == set(before) - {native}
    assert small_world.run("forget", "--undo", target).code == 0
    small_world.index()
    assert told() == before
    db.close()


def test_an_older_folder_that_somebody_keeps_makes_the_proof_wait(world: World) -> None:
    """As on systems where a file that is read cannot be removed: something stands in its place."""
    kept = world.store / "text" / "kept-by-somebody"
    kept.mkdir()
    told = forget(world, "--session", id_of_q(world))
    assert (told.code, told.json["proof"]["status"]) == (1, "pending")
    assert "older folder" in told.json["proof"]["reason"]
    kept.rmdir()
    assert world.index().err == ""
    assert not pending(world)


# Choosing


def test_selectors_narrow_each_other_and_a_dry_run_erases_nothing(world: World) -> None:
    def chosen(*argv: str) -> set[str]:
        run = world.run("forget", *argv, "--dry-run", "--json")
        assert run.code in (0, 1)
        return {session["label"] for session in run.json["sessions"]} if run.code == 0 else set()

    places = world.places()
    k, x = "Beacon timeout", "Migrate the harbour schema"
    d, mine = "continue", "Brontosaurus ledger brontosaurus"
    assert chosen("--source", "codex") == {x, d}
    assert chosen("--source", "claude") == {k, mine}
    assert chosen("--project", str(places.repository)) == {k, x}, "worktrees of one repository are one project"
    assert chosen("--project", str(places.plain)) == {d, mine}
    assert chosen("--project", str(places.plain), "--source", "claude") == {mine}
    assert chosen("--before", f"{DAY}T12:00:00Z") == {k, x}
    assert chosen("--before", f"{DAY}T12:00:00Z", "--source", "codex") == {x}
    assert chosen("--before", "2020-01-01") == set()
    assert chosen("--before", "1d") == {k, x, d, mine}
    both = [id_of_q(world), id_of(world, "codex", world.sessions["X"].session)]
    assert chosen("--session", both[0], "--session", both[1]) == {mine, x}
    assert chosen("--session", both[0], "--source", "codex") == set()
    assert hits(world, "zirconium") > 0


def test_a_dry_run_lifts_nothing_and_a_session_is_lifted_once(world: World) -> None:
    id = id_of_q(world)
    assert "erased 1 session, " in world.run("forget", "--session", id, "--yes").out
    assert world.run("forget", "--undo", id, "--dry-run").code == 2
    assert world.run("forget", "--list").out.startswith(id)
    assert world.run("forget", "--undo", id, id, "--json").json == {"lifted": [id]}


def test_a_project_is_found_by_its_path_when_it_is_gone(world: World) -> None:
    folder = str(world.places().plain)
    shutil.rmtree(folder)
    told = world.run("forget", "--project", folder, "--source", "claude", "--dry-run", "--json").json
    assert len(told["sessions"]) == 1


def test_forgetting_all_leaves_an_empty_store_that_works(world: World) -> None:
    told = forget(world, "--before", "2030-01-01")
    assert told.code == 0, told
    assert len(told.json["sessions"]) == 4
    assert remains(world.store, (*SECRETS, "harbour", "beacon timeout")) == []
    assert world.run("events", "beacon").code in (1, 3)
    world.index()
    fresh = Claude("fresh", world.places().plain).user("22:00:00", "a new beacon").answer("22:00:01", "Lit.")
    write_lines(fresh.path(world.home), fresh.lines)
    world.index()
    assert hits(world, "beacon") == 1


def test_a_session_is_named_by_the_id_of_its_harness_or_the_beginning_of_it(small_world: World) -> None:
    folder = small_world.places().plain
    for native, word in (("abcd1111", "heron"), ("abcd2222", "egret"), ("abce3333", "bittern")):
        made = Claude(native, folder, native).user("10:00:00", f"a {word}").answer("10:00:02", "Seen.")
        write_lines(made.path(small_world.home), made.lines)
    small_world.index()
    told = forget(small_world, "--session", "abcd")
    assert (told.code, told.out) == (1, ""), "nothing is erased"
    assert told.err.startswith("outcrop: error: abcd may be any of 2 sessions\n")
    assert (told.err.count("session:ses_"), "bittern" in told.err) == (2, False)
    assert forget(small_world, "--session", "abce", "--session", "abcd").code == 1, "all or none"
    done = forget(small_world, "--session", "abcd1", "--session", "abce3333")
    assert {one["native"] for one in done.json["sessions"]} == {"abcd1111", "abce3333"}
    assert [hits(small_world, word) for word in ("heron", "egret", "bittern")] == [0, 1, 0]
    assert small_world.run("forget", "--undo", "abcd1111", "abce").code == 0
    small_world.index()
    assert [hits(small_world, word) for word in ("heron", "egret", "bittern")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        ((), 2, "say what to forget"),
        (("--source", "codex", "--list"), 2, "say what to forget"),
        (("--source", "codex"), 2, "--yes is needed"),
        (("--source", "nowhere", "--yes"), 2, "unknown source"),
        (("--session", "session:ses_0", "--yes"), 2, "session:ses_0 is no session id: "),
        (("--session", "no-such-id", "--yes"), 1, "no session has the id no-such-id"),
        (("--session", "c", "--yes"), 1, "no session has the id c"),
        (("--undo", "no-such-id"), 1, "no session has the id no-such-id"),
        (("--session", "event:evt_00000000000000000000000000", "--yes"), 2, "is no session id: it names another thing"),
        (("--before", "yesterweek", "--yes"), 2, "is no time"),
        (("--session", "session:ses_00000000000000000000000000", "--yes"), 1, "no session fits"),
        (("--undo", "session:ses_00000000000000000000000000"), 1, "not found"),
        (("--project", "", "--yes"), 2, "--project must not be empty"),
        (("--undo", "all", "--dry-run"), 2, "--dry-run is about sessions to forget"),
    ],
)
def test_what_cannot_be_done_is_told(world: World, argv: tuple[str, ...], code: int, says: str) -> None:
    told = world.run("forget", *argv)
    assert (told.code, told.out) == (code, "")
    assert says in told.err
    assert hits(world, "zirconium") > 0


def test_without_a_store_there_is_nothing_to_forget(small_world: World) -> None:
    assert small_world.run("forget", "--source", "codex", "--yes").code == 3
    assert small_world.run("rescrub").code == 3
    assert not small_world.store.exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_at_a_terminal_it_asks(world: World, answer: str, code: int) -> None:
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "outcrop", "forget", "--session", id_of_q(world)],
        env=world.environment, cwd=world.home, stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.write(parent, answer.encode())
    out, err = process.communicate(timeout=60)
    os.close(child)
    os.close(parent)
    assert process.returncode == code
    assert "Brontosaurus ledger" in err
    assert "Erase 1 session for good? [y/N]" in err
    assert ("erased 1 session, " in out) is (code == 0)
    assert (hits(world, "zirconium") > 0) is (code == 1)


def test_the_check_is_able_to_fail(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that no row accounts for is left behind: it is not said to be proven, and found at the next try."""
    from outcrop import config
    from outcrop.ids import parse
    from outcrop.ingest import forget as forgetting
    from outcrop.ingest import purge
    from outcrop.store.embedded.text import TextWriter
    from outcrop.store.embedded.write import Writer

    target = parse(id_of_q(world)).uid
    assert target is not None
    environment = Environment(world.home, {"OUTCROP_HOME": str(world.store)}, "linux")
    writer = Writer(world.store)
    text = TextWriter(world.store)
    [(leftover,)] = writer.db.execute(
        "SELECT z FROM block WHERE session = (SELECT id FROM session WHERE uid = ?) LIMIT 1", (target,)
    ).fetchall()
    renew = purge._renew_text

    def leave_behind(writer: Writer, *rest: Any) -> None:
        with writer.transaction():
            writer.db.execute("INSERT OR REPLACE INTO block VALUES (999999, 999999, 1, 1, ?)", (leftover,))
        renew(writer, *rest)

    monkeypatch.setattr(purge, "_renew_text", leave_behind)
    report = forgetting.forget(writer, text, forgetting.Selection((target,)))
    assert report.proof is not None
    assert not report.proof.proven
    assert report.proof.marks_left > 0
    assert report.proof.tables == ["block"]
    monkeypatch.undo()
    with writer.transaction():
        writer.db.execute("DELETE FROM block WHERE id = 999999")
    text.close()
    writer.close()
    assert pending(world)
    summary = pipeline.index(config.load(environment), environment)
    assert summary.pending is None
    assert remains(world.store, SECRETS) == []
