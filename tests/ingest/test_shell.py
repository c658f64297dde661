"""The shell lexer: words as a shell would see them, commands in order, and no text that breaks it."""

from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outcrop.ingest.touches.commands import Script
from outcrop.ingest.touches.shell import Command, Edge, commands

MARKS = ["'", '"', "\\", "`", "$(", ")", "$((", "${", "}", "((", "[[", "<<EOF\n", "EOF\n", ">", ">>", "<(", "|", "&&",
         ";", "\n", "#", " ", "a/b.py", "cat ", "cd ", "-c ", "bash ", "git ", "sed -i ", "*", "{a,b}", "$x",
         "for x in ",
         "do ", "done", "x=", "@'\n", "C:\\a", "@@ -1 +1 @@"]  # fmt: skip


def simple(script: str, powershell: bool = False) -> list[Command]:
    return [step for step in commands(script, powershell) if isinstance(step, Command)]


def words(script: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in simple(script)]


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ('cat a\\ b \'c d\' "e\\"f" g\'h\'"i"', ["cat", "a b", "c d", 'e"f', "ghi"]),
        ("echo '$x' \\$y \"\\n\"", ["echo", "$x", "$y", "\\n"]),
        ("echo $'a\\'b' x", ["echo", "a'b", "x"]),
        ("a \\\n b", ["a", "", "b"]),
        ("cat x#y # a comment > f", ["cat", "x#y"]),
        ("cat a 2>&1 >/dev/null", ["cat", "a"]),
        ("ls 2> err", ["ls"]),
        ("cat c:\\Users\\u\\a.py src\\b.py", ["cat", "c:\\Users\\u\\a.py", "src\\b.py"]),
    ],
)
def test_words_are_those_that_the_command_sees(script: str, seen: list[str]) -> None:
    assert words(script) == [seen]


def test_operators_part_commands_and_are_remembered() -> None:
    found = simple("a && b || c | d; e & f\ng")
    assert [(c.words[0].text, c.after) for c in found] == [
        ("a", ""), ("b", "&&"), ("c", "||"), ("d", "|"), ("e", ";"), ("f", ";"), ("g", ";"),
    ]  # fmt: skip


def test_a_line_that_ends_in_an_operator_goes_on() -> None:
    assert [c.after for c in simple("a &&\n  b |\n c")] == ["", "&&", "|"]


def test_redirections_name_their_files() -> None:
    (command,) = simple("sort < in.txt > out.txt 2>> err.txt &> all.txt 2>&1 >&2 <<< 'text'")
    assert [(sign, word.text) for sign, word in command.redirections] == [
        ("<", "in.txt"), (">", "out.txt"), (">>", "err.txt"), ("&>", "all.txt"), ("<<<", "text"),
    ]  # fmt: skip


def test_here_documents_belong_to_their_commands() -> None:
    found = simple("cat > a <<'EOF' && tee b <<-END\nit's > x\nEOF\n\ttabs\n\tEND\ncat c")
    assert [(c.words[0].text, c.documents) for c in found] == [("cat", ["it's > x"]), ("tee", ["tabs"]), ("cat", [])]


def test_a_here_document_without_an_end_takes_the_rest() -> None:
    assert [c.documents for c in simple("cat <<EOF\na\nb")] == [["a\nb"]]


def test_substitutions_are_commands_and_leave_a_mark_in_the_word() -> None:
    found = simple("git commit -m \"$(cat <<'E'\nfix (a)\nE\n)\" && cat `pwd`/x <(sort y)")
    assert [[w.text for w in c.words] for c in found] == [
        ["cat"], ["git", "commit", "-m", "$()"], ["pwd"], ["sort", "y"], ["cat", "$()/x", "$()"],
    ]  # fmt: skip
    assert not found[-1].words[1].literal
    assert found[-1].words[1].fixed == 2


def test_variables_and_globs_are_not_literal() -> None:
    (command,) = simple('cat "$R/a.py" ${X}/b *.py {a,b}.c app/[id]/p.tsx "[x].c" \'*.d\' [Aa].e a{')
    assert [word.literal for word in command.words] == [
        True, False, False, False, False, True, True, True, False, True,
    ]  # fmt: skip
    assert command.words[1].fixed == len("/a.py")


def test_subshells_are_enclosed_and_tests_compare_nothing() -> None:
    steps = commands("(cd a; b) && [[ x < y ]] && ((i > 3)) && c")
    assert [step if step is Edge.OPEN or step is Edge.CLOSE else step.words[0].text for step in steps] == [
        Edge.OPEN, Edge.OPEN, "cd", "b", Edge.CLOSE, "c", Edge.CLOSE,
    ]  # fmt: skip


def test_powershell_has_other_escapes() -> None:
    (command,) = simple("gc C:\\w\\a.py 'it''s' \"a`\"b\" src\\b.py", powershell=True)
    assert [word.text for word in command.words] == ["gc", "C:\\w\\a.py", "it''s", 'a"b', "src\\b.py"]


@given(st.lists(st.text(alphabet="ab.*$'\"\\ /-\n;|&<>()#`~=é", min_size=1), min_size=1, max_size=6))
def test_quoted_words_come_back(given_words: list[str]) -> None:
    assert words(shlex.join(["cat", *given_words])) == [["cat", *given_words]]


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(MARKS), max_size=60).map("".join)), st.booleans())
def test_no_text_breaks_it(script: str, powershell: bool) -> None:
    steps = commands(script, powershell)
    depth = 0
    for step in steps:
        depth += (step is Edge.OPEN) - (step is Edge.CLOSE)
        assert depth >= 0
    assert depth == 0
    Script("/home/u").run(script, powershell)


@pytest.mark.parametrize(
    "piece",
    ["'", '"', "$(", "`", "(", "<<E\n", "((", "$((", "[[ ", "${", "\\", "a ", "> f ", "x=$x$x;",
     "for x in a b; do cat $x;",
     'bash -c "', "eval ", "sudo ", "--- a\n+++ b\n", "\\`", "{", "if ", "$x", "cd a;",
     "git -C a ", "git ", "-C a ", "env a=b ", "perl -e ", "a=b ", "x[", "`$(", "npx ", "cat a/b.py;", "for ", "a|"],
)  # fmt: skip
def test_time_grows_with_length_alone(piece: str) -> None:
    head = "git " if piece.startswith("-C") else ""

    def seconds(times: int) -> float:
        start = time.process_time()
        Script("/home/u").run(head + piece * times)
        return time.process_time() - start

    seconds(100)
    small, large = min(seconds(1000) for _ in range(3)), min(seconds(8000) for _ in range(2))
    assert large < 32 * max(small, 0.002), "eight times the text, not sixty-four times the time"
