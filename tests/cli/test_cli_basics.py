"""The command line: what it prints where, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from outcrop.cli import VERBS, main, output, sessions
from world import DAY, WHOLE_DAY, World


def test_version_and_help_import_no_verb(world: World) -> None:
    version = world.run("--version")
    assert (version.code, version.out.split()[0], version.err) == (0, "outcrop", "")
    for words in (["--help"], ["-h"], ["help"]):
        told = world.run(*words)
        assert told.code == 0
        assert all(verb in told.out for verb in VERBS)
    assert world.run().code == 2
    probe = "import sys, outcrop.cli; outcrop.cli.main([sys.argv[1]]); print(*sorted(sys.modules))"
    for option in ("--version", "--help"):
        done = subprocess.run(
            [sys.executable, "-c", probe, option], capture_output=True, text=True, env=world.environment, check=True
        )
        loaded = done.stdout.splitlines()[-1].split()
        assert not {"argparse", "logging", "sqlite3", "tantivy", "orjson", "outcrop.store"} & set(loaded)


def test_descriptions_keep_the_names_of_things(world: World) -> None:
    told = " ".join(world.run("serve", "--help").out.split())
    assert "Serve session search and the MCP tools over HTTP, to paired clients." in told


def test_an_unknown_command_names_the_nearest(world: World) -> None:
    told = world.run("sesions")
    assert (told.code, told.out) == (2, "")
    assert "did you mean `outcrop sessions`?" in told.err
    assert world.run("open", "--nonsense").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["events", "beacon", "-timeout"],
        ["events", "-native"],
        ["search", "--lamp"],
        ["explain", "session:ses_x", "-timeout"],
    ],
)
def test_a_word_that_is_taken_for_an_option_is_told_where_to_stand(world: World, words: list[str]) -> None:
    told = world.run(*words)
    assert (told.code, told.out) == (2, "")
    assert f"stands behind --: outcrop {words[0]} " in told.err.splitlines()[-1]
    assert "hint" not in world.run("events", "beacon", "-n", "many").err, "that is another mistake"
    assert "words_dropped: -timeout" in world.run("events", "--", "lighthouse", "-timeout").err


@pytest.mark.parametrize(
    ("mixed", "plain"),
    [
        (["events", "lighthouse", "-n", "2", "beacon"], ["events", "-n", "2", "lighthouse", "beacon"]),
        (["events", "lighthouse", "-n2", "beacon", "--", "-n"], ["events", "-n2", "--", "lighthouse", "beacon", "-n"]),
        (["events", "-n2", "--", "-timeout", "beacon"], ["events", "-n2", "--", "-timeout beacon"]),
        (["search", "beacon", "--limit", "1", "lighthouse"], ["search", "beacon", "lighthouse", "--limit", "1"]),
        (["search", "beacon", "--agent", "claude", "timeout", "--agent", "codex", "--", "--", "-a"],
         ["search", "--agent", "claude", "--agent", "codex", "--", "beacon", "timeout", "--", "-a"]),
        (["explain", "ID", "beacon", "-n", "2", "timeout"], ["explain", "-n", "2", "ID", "beacon", "timeout"]),
        (["call", "open", "--timeout", "60", '{"id": "ID"}'], ["call", "--timeout", "60", "open", '{"id": "ID"}']),
        (["open", "--limit", "1", "--", "ID"], ["open", "ID", "--limit", "1"]),
        (["pair", "revoke", "--json", "nobody"], ["pair", "revoke", "nobody", "--json"]),
    ],
)  # fmt: skip
def test_options_may_stand_between_the_words(world: World, mixed: list[str], plain: list[str]) -> None:
    session = world.id("K")
    told, expected = (world.run(*(word.replace("ID", session) for word in words)) for words in (mixed, plain))
    assert "usage" not in told.err
    assert re.sub(r'"elapsed_ms":\d+', "", told.out) == re.sub(r'"elapsed_ms":\d+', "", expected.out)
    assert (told.code, told.err) == (expected.code, expected.err)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("open", {"id": "session:ses_00000000000000000000000001"}, 1),
        ("open", {"id": "nope"}, 2),
        ("open", {}, 2),
        ("search_sessions", {"query": "a", "event_types": ["x"]}, 2),
        ("nope", {}, 2),
        ("list_sessions", WHOLE_DAY, 0),
    ],
)
def test_call_prints_one_envelope_and_its_exit_code_tells_the_class(
    world: World, tool: str, arguments: dict[str, str], code: int
) -> None:
    for done in (world.run("call", tool, json.dumps(arguments)), world.run("call", tool, input=json.dumps(arguments))):
        assert done.code == code
        assert done.out.count("\n") == 1
        assert done.json["tool"] == tool
        assert ("error" in done.json) is (code != 0)


def test_call_refuses_what_is_no_json_and_obeys_a_deadline(world: World) -> None:
    broken = world.run("call", "open", "{")
    assert (broken.code, broken.out) == (2, "")
    assert broken.err.startswith("outcrop: error: the arguments are not JSON")
    late = world.run("call", "list_sessions", json.dumps(WHOLE_DAY), "--timeout", "0")
    assert (late.code, late.json["error"]["code"]) == (4, "deadline_exceeded")
    for words in (["call", "open", "{}", "--timeout"], ["status", "--within"]):
        for seconds in ("soon", "-1", "nan", "inf", "1e400", "1e300"):
            told = world.run(*words, seconds)
            assert (told.code, told.out) == (2, ""), (words, seconds)
            assert "is no number of seconds" in told.err or "expected one argument" in told.err


def test_people_and_programs_see_the_same_session(world: World) -> None:
    session = world.id("K")
    shown = world.run("open", session, "--limit", "1")
    assert shown.code == 0
    assert "Beacon timeout" in shown.out
    assert "Please fix the lighthouse beacon timeout" in shown.out
    assert "\x1b" not in shown.out
    assert world.run("open", session, "--limit", "1", "--json").json["data"] == world.data("open", id=session, limit=1)
    more = next(line for line in shown.out.splitlines() if line.startswith("more: outcrop "))
    following = world.run(*more.removeprefix("more: outcrop ").split())
    assert "summarise naïve 日本語 café" in following.out


def test_an_event_is_shown_whole(world: World) -> None:
    event = world.events("L", 1)[1]["id"]
    assert "zephyr" in world.run("open", event).out
    turn = world.turns("K")[0]["id"]
    shown = world.run("open", turn, "--limit", "20").out
    assert "pytest -q tests/test_beam.py" in shown


def test_open_says_what_was_wrong(world: World) -> None:
    for words, code, message in (
        (["nope"], 2, "id is not a valid Moraine MCP ID"),
        (["session:ses_00000000000000000000000001"], 1, "session not found"),
        ([], 2, "an ID or --cursor is needed"),
    ):
        done = world.run("open", *words)
        assert (done.code, done.out) == (code, "")
        assert done.err.startswith(f"outcrop: error: {message}")
        assert "Traceback" not in done.err


def test_sessions_of_a_day_page_by_page(world: World) -> None:
    everything = world.run("sessions", "--since", DAY, "--until", DAY, "--limit", "50", "--json")
    assert everything.code == 0
    assert len(everything.json["data"]["sessions"]) == len(world.sessions)
    page = world.run("sessions", "--since", DAY, "--until", DAY, "--limit", "2", "--harness", "codex")
    more = page.out.splitlines()[-1]
    assert more.startswith("more: outcrop sessions --since ")
    following = world.run(*more.removeprefix("more: outcrop ").split())
    assert following.code == 0
    assert following.out.splitlines()[0] not in page.out


def test_sessions_finds_nothing_or_refuses(world: World) -> None:
    none = world.run("sessions", "--since", "2020-01-01", "--until", "2020-01-02")
    assert (none.code, none.out) == (1, "")
    for words in (["--since", "soon"], ["--limit", "0"], ["--mode", "x"], ["--since", DAY, "--until", "2020-01-01"]):
        assert world.run("sessions", *words).code == 2


def test_events_finds_and_finds_nothing(world: World) -> None:
    found = world.run("events", "lighthouse", "beacon", "--harness", "claude-code")
    assert found.code == 0
    assert "lighthouse beacon timeout" in found.out
    assert "event:evt_" in found.out
    assert world.run("events", "xyzzyplugh").code == 1
    assert world.run("events", "a", "--types", "nonsense").code == 2
    envelope = world.run("events", "quasar", "--types", "tool_response", "-n", "3", "--json").json
    assert envelope["request"]["n_hits"] == 3
    assert envelope["data"]["result_count"] == 1


def test_nothing_indexed_yet_is_not_ready(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.places()
    for words in (["events", "a"], ["sessions"], ["open", "session:ses_00000000000000000000000001"]):
        done = made.run(*words)
        assert (done.code, done.out) == (3, "")
        assert "outcrop index" in done.err
    assert made.run("call", "list_sessions", json.dumps(WHOLE_DAY)).code == 0


def test_a_reader_that_goes_away_is_no_error(world: World) -> None:
    event = world.events("L", 1)[1]["id"]
    with subprocess.Popen(
        [sys.executable, "-m", "outcrop", "open", event],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=world.environment,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


class Interrupted:
    """Standard input at which somebody presses Ctrl-C."""

    def read(self) -> str:
        raise KeyboardInterrupt


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert main(["call", "open"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_broken_configuration_is_one_line(world: World, tmp_path: Path) -> None:
    home = tmp_path / "store"
    home.mkdir()
    (home / "config.toml").write_text("[mcp]\nmax_result = 3\n", encoding="utf-8")
    done = world.run("sessions", OUTCROP_HOME=str(home))
    assert done.code == 2
    assert "max_results" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in world.run("--debug", "sessions", OUTCROP_HOME=str(home)).err
    assert "Traceback" in world.run("sessions", OUTCROP_HOME=str(home), OUTCROP_DEBUG="1").err


def test_stored_text_cannot_steer_a_terminal() -> None:
    assert output.clean("\x1b]0;x\x07\x9b31m\u202eevil\x00\r\n\tok\x7f") == "␛]0;x␇<U+009B>31m<U+202E>evil␀\n\tok␡"


def test_colour_is_asked_for_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
        monkeypatch.delenv(name, raising=False)
    with open("/dev/null", encoding="utf-8") as quiet:
        assert not output.Ink(quiet).on
        monkeypatch.setenv("CLICOLOR_FORCE", "1")
        assert output.Ink(quiet).on
        monkeypatch.setenv("NO_COLOR", "1")
        assert not output.Ink(quiet).on
        assert output.Ink(quiet).bold("x") == "x"


def test_times_for_people() -> None:
    assert [output.ago(seconds) for seconds in (0, 59, 60, 3600 * 3, 86400, -7200, 86400 * 800)] == [
        "just now",
        "just now",
        "1 minute ago",
        "3 hours ago",
        "1 day ago",
        "in 2 hours",
        "2 years ago",
    ]


def test_bounds_of_a_time_range(monkeypatch: pytest.MonkeyPatch) -> None:
    import time
    from datetime import UTC, datetime

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        now = datetime(2026, 5, 3, 12, tzinfo=UTC)
        assert sessions.bound("--since", "2d", now) == "2026-05-01T12:00:00.000Z"
        assert sessions.bound("--since", "90m", now) == "2026-05-03T10:30:00.000Z"
        assert sessions.bound("--since", "2026-05-01", now) == "2026-04-30T15:00:00.000Z"
        assert sessions.bound("--until", "2026-05-01", now, end=True) == "2026-05-01T15:00:00.000Z"
        assert sessions.bound("--since", "2026-05-01T10:00:00+02:00", now) == "2026-05-01T08:00:00.000Z"
        assert sessions.bound("--since", "2026-05-01T10:00", now) == "2026-05-01T01:00:00.000Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_output_that_cannot_be_written_is_an_error(world: World) -> None:
    for words in (["--help"], ["--version"], ["events", "beacon"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "outcrop", *words],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                env=world.environment,
                check=False,
            )
        assert done.returncode == 4, words
        assert done.stderr.startswith("outcrop: error: "), done.stderr
        assert "Traceback" not in done.stderr


def test_a_standard_error_that_cannot_be_written_is_an_error(world: World) -> None:
    for words in (["nonsense"], ["events", "xyzzyplugh"], ["events", "beacon", "--types", "nonsense"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "outcrop", *words],
                stdout=subprocess.PIPE,
                stderr=full,
                text=True,
                env=world.environment,
                check=False,
            )
        assert (done.returncode, done.stdout) == (4, ""), words


def test_a_closed_standard_output_is_no_crash(world: World) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -m outcrop events beacon >&-', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        env={**world.environment, "PATH": "/bin:/usr/bin"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
