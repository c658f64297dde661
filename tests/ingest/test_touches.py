"""Touches of calls and results: every carrier, nothing that is no path, and real sessions held to their raw lines."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facts import CORPUS, needs_corpus
from outcrop.harnesses import SourceFile, load
from outcrop.ingest.touches import Effect, Match, touches_of_call, touches_of_result
from outcrop.ingest.touches.patches import patched
from outcrop.model import Event, EventType
from pi_reading import Beside

HERE = Path(__file__).parent
LABELS: list[dict[str, Any]] = json.loads((HERE / "touch_labels.json").read_text(encoding="utf-8"))
FACTS = sorted((HERE / "facts" / "touches").glob("*.json"))

PATCH = """*** Begin Patch
*** Update File: src/beam.py
@@
-*** Add File: not/this.py
+https://h/x.py
*** Add File: docs/new note.md
+++ b/nor/this.py
*** Delete File: old.py
*** Update File: a/from.py
*** Move to: b/to.py
*** End Patch"""
PATCHED = ["change src/beam.py", "create docs/new note.md", "delete old.py", "rename a/from.py", "rename b/to.py"]


def told(tool: str | None, arguments: Any, cwd: str | None = None) -> list[str]:
    return [f"{touch.effect} {touch.path}" for touch in touches_of_call(tool, arguments, cwd)]


def shell(command: str, cwd: str | None = None) -> list[str]:
    return told("Bash", {"command": command}, cwd)


def places(command: str, cwd: str | None = "/w", home: str | None = None, **more: Any) -> list[str | None]:
    return [touch.absolute for touch in touches_of_call("Bash", {"command": command, **more}, cwd, home)]


# The labelled commands


def test_labels_are_met_with_precision_097_and_recall_095() -> None:
    assert len(LABELS) == 150
    right = wrong = missed = 0
    for row in LABELS:
        assert len(row["command"] if isinstance(row["command"], str) else row["command"][-1]) <= 200
        found = touches_of_call(row["tool"], {row["key"]: row["command"]}, None)
        got, want = {(one.path, one.effect.value) for one in found}, {(path, effect) for path, effect in row["touches"]}
        right, wrong, missed = right + len(got & want), wrong + len(got - want), missed + len(want - got)
        assert all(one.match is Match.SHELL for one in found)
    assert right + missed == 99
    assert right / (right + wrong) >= 0.97
    assert right / (right + missed) >= 0.95


@needs_corpus
@pytest.mark.parametrize("fact", FACTS, ids=lambda path: path.stem)
def test_touches_of_real_sessions(fact: Path) -> None:
    want = json.loads(fact.read_text(encoding="utf-8"))
    path = CORPUS / want["file"]
    reader = load(want["harness"]).reader(SourceFile(str(path), want["source"], native=path.stem), None, Beside())
    got: dict[str, list[list[str]]] = defaultdict(list)
    calls = 0
    decoder = json.JSONDecoder()
    for number, raw in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        line = raw.strip()
        while line:
            record, end = decoder.raw_decode(line)
            line = line[end:].lstrip()
            for item in reader.feed(record).items:
                if isinstance(item, Event) and item.type is EventType.TOOL_CALL:
                    calls += 1
                    for touch in touches_of_call(item.tool, item.arguments, item.cwd):
                        got[str(number)].append([touch.path, touch.effect.value])
    assert calls == want["calls"]
    assert got == want["touches"]


def test_facts_are_ten_sessions_of_five_harnesses() -> None:
    told_of = [json.loads(path.read_text(encoding="utf-8")) for path in FACTS]
    assert len(told_of) == 10
    assert len({fact["harness"] for fact in told_of}) == 5


# Fields


@pytest.mark.parametrize("key", ["path", "file_path", "filePath", "filepath", "absolute_path", "notebook_path",
                                 "target_file", "relativeWorkspacePath", "relative_workspace_path", "file",
                                 "filename", "fileName"])  # fmt: skip
def test_every_key_of_a_path_counts(key: str) -> None:
    assert told("Read", {key: "src/beam.py"}) == ["read src/beam.py"]


def test_C202_nested_fields_and_arrays_count() -> None:
    assert told("edit", {"edits": [{"path": "a.py"}, {"file_path": "b.py"}]}) == ["change a.py", "change b.py"]
    assert told("read_many", {"paths": ["a.py", "b.py"]}) == ["read a.py", "read b.py"]
    assert told("fs_read", {"operations": [{"mode": "Line", "path": "a.py"}]}) == ["read a.py"]
    assert told("view", {"files": [{"path": "a.py"}]}) == ["read a.py"]
    assert told("shell", {"command": ["bash", "-lc", "cat src/beam.py"]}) == ["read src/beam.py"]
    assert told("shell", {"command": ["sed", "-i", "s/a b/c/", "my file.py"]}) == ["change my file.py"]
    assert told("local_shell", {"action": {"command": ["cat", "a.py"], "working_directory": "/w"}}) == ["read a.py"]


def test_100_a_pattern_is_never_a_path() -> None:
    assert told("Glob", {"pattern": "src/**/*.py"}) == []
    assert told("Grep", {"pattern": "src/beam.py", "path": "src", "glob": "*.py"}) == ["read src"]


def test_101_C191_urls_and_texts_are_never_paths() -> None:
    assert told("fetch", {"path": "https://h/src/beam.py"}) == []
    assert told("WebFetch", {"url": "https://h/src/beam.py", "prompt": "src/beam.py"}) == []
    assert told("Agent", {"prompt": "edit src/beam.py", "description": "src/beam.py"}) == []
    assert told("Read", {"file_path": "a\nb"}) == told("Read", {"file_path": " "}) == told("x", {"file": 5}) == []
    assert told("Write", {"file_path": "a.md", "content": PATCH}) == ["change a.md"]
    assert told("Read", {"file_path": "a.md", "additionalDirectories": [{"path": "b"}]}) == ["read a.md"]
    assert shell("curl https://h/src/beam.py | cat; echo src/beam.pyc 'see src/beam.py'") == []


def test_102_one_touch_of_a_path_and_an_effect() -> None:
    assert told("MultiEdit", {"file_path": "a.py", "edits": [{"file_path": "a.py"}] * 5}) == ["change a.py"]
    assert shell("cat a.py; cat a.py; rm a.py") == ["read a.py", "delete a.py"]
    assert places("cat a; cat ./a; cd x; cat a; cd $Y; cat a") == ["/w/a", "/w/a", "/w/x/a"]
    assert places("cd $Y; cat a; cd /w; cat a") == ["/w/a"]


def test_103_windows_paths_and_file_uris() -> None:
    (found,) = touches_of_call("Read", {"file_path": "C:\\w\\x\\..\\a.ts"}, "/w")
    assert (found.path, found.absolute) == ("C:\\w\\x\\..\\a.ts", "C:/w/a.ts")
    (found,) = touches_of_call("Read", {"uri": "file:///w/a%20b.ts"}, None)
    assert (found.path, found.absolute) == ("/w/a b.ts", "/w/a b.ts")
    (found,) = touches_of_call("Read", {"path": "file:///c:/w/a.ts"}, None)
    assert (found.path, found.absolute) == ("c:/w/a.ts", "C:/w/a.ts")
    (found,) = touches_of_call("Read", {"path": "src\\a.ts"}, "c:\\w")
    assert found.absolute == "C:/w/src/a.ts"
    assert told("Read", {"uri": "src/a.ts"}) == told("Read", {"uri": "untitled:src/a.ts"}) == []


def test_104_effects_come_from_what_is_done() -> None:
    for tool in ("read", "Read", "view", "grep", "fs_read", "ReadMediaFile", "view_image", "mcp__fs__read_text_file",
                 "NotebookRead", "list_dir", "search_files"):  # fmt: skip
        assert told(tool, {"path": "a"}) == ["read a"], tool
    for tool in ("edit", "Edit", "edit_file_v2", "search_replace", "StrReplaceFile", "WriteFile", "fs_write",
                 "MultiEdit", "NotebookEdit", "multiedit", "mcp__fs__write_file", "server_edit_file",
                 "save_file"):  # fmt: skip
        assert told(tool, {"path": "a"}) == ["change a"], tool
    assert told("create_file", {"path": "a"}) == ["create a"]
    assert told("delete_file", {"path": "a"}) == ["delete a"]
    assert told("move_file", {"source": "a", "destination": "b"}) == ["rename a", "rename b"]
    assert told("copy_file", {"source": "a", "destination": "b"}) == ["read a", "change b"]
    assert told("frobnicate", {"path": "a"}) == ["unknown a"]
    assert told(None, {"path": "a"}) == ["unknown a"]
    for command, effect in (("view", "read"), ("create", "create"), ("str_replace", "change"), ("insert", "change")):
        assert told("str_replace_editor", {"command": command, "path": "/a"}) == [f"{effect} /a"]


def test_105_C203_its_own_calls_touch_nothing() -> None:
    for name in ("file_attention", "mcp__outcrop__file_attention", "moraine_file_attention", "x_file_attention"):
        assert told(name, {"path": "src/beam.py"}) == []
        assert touches_of_result(name, {"filePath": "/a"}, None) == []


# Patches


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_patch", PATCH),
        ("apply_patch", {"input": PATCH}),
        ("apply_patch", {"_raw": PATCH}),
        ("apply_patch", {"patchText": PATCH}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("shell", {"command": ["bash", "-lc", f"cd x && apply_patch <<EOF\n{PATCH}\nEOF"]}),
    ],
)
def test_C192_C193_patches_in_every_carrier(tool: str, arguments: Any) -> None:
    assert told(tool, arguments) == PATCHED


def test_unified_diffs_name_their_files() -> None:
    diff = (
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n--- a/not.py\n+++ b/not.py\n c\n"
        "--- /dev/null\n+++ b/new.py\t2026-05-01\n@@ -0,0 +1 @@\n+x\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "rename from p.py\nrename to q.py\n"
    )
    named = ["change x.py", "create new.py", "delete old.py", "rename p.py", "rename q.py"]
    assert told("apply_patch", {"patch": diff}) == named
    assert told("server_tool", {"diff": diff}) == named
    assert shell(f"git apply <<'EOF'\n{diff}EOF\n") == named
    assert told("write", {"path": "a.diff", "content": diff}) == ["change a.diff"]
    assert told("chat", {"input": diff}) == []


# Shell commands


@pytest.mark.parametrize(
    ("command", "touched"),
    [
        ("cat a b | head -n 5 | tail -c3 c", "read a, read b, read c"),
        ("head -20 a; tail -f b; nl -ba c; wc -l d; less e", "read a, read b, read c, read d, read e"),
        ("sed -n '1,5p' a; sed -i 's/x/y/' b; sed -i '' -e s/x/y/ c; sed -i.bak s/x/y/ d; sed --in-place s/x/y/ e",
         "read a, change b, change c, change d, change e"),
        ("awk -F: '{print $1}' a; awk -f p.awk b", "read a, read p.awk, read b"),
        ("grep -rn foo src lib | head", "read src, read lib"),
        ("grep -e foo -A 3 a; rg -g '*.py' -t py x.py b; rg --files src; grep foo .", "read a, read b"),
        ("cp a b; cp a b dir; cp x/a dir/; mv c d; mv e dir/", "read a, change b, read b, change dir/a, change dir/b, "
         "read x/a, rename c, rename d, rename e, rename dir/e"),
        ("rm -rf a b/; touch c; chmod +x d; ln -s e f; mkdir -p g", "delete a, create c, change d, read e, create f"),
        ("echo x > a; echo y >> b 2>/dev/null; tee -a c < d; : >| e", "change a, change b, read d, change c, change e"),
        ("python a.py --out b; python3 -m pytest -q t/a.py::test_x -k c.py; node x.js y; uv run python z.py",
         "read a.py, read t/a.py, read x.js, read z.py"),
        ("git add a.py b; git rm c; git mv d e; git checkout -- f; git restore g", "read a.py, read b, delete c, "
         "rename d, rename e, change f, change g"),
        ("git diff main feature/x -- a; git diff v1.2 a.py; git show HEAD~1:src/a.c; git log -n 3 -- b",
         "read a, read a.py, read src/a.c, read b"),
        ("git checkout main; git checkout -b feat/x.y; git checkout release/1.x; git commit -m 'a.py'", ""),
        ("FOO=1 BAR=b.py sudo -u me env X=1 timeout -k 5 10 nohup cat a", "read a"),
        ("find . -name a.py -exec cat {} \\; | xargs -I{} grep foo b", "read b"),
        ("for f in a.py 'b c.py'; do sed -n 1,5p \"$f\"; done", "read a.py, read b c.py"),
        ("F=src/a.py; cat $F ${F}.bak; G=$(pwd); cat $G", "read src/a.py, read src/a.py.bak"),
        ("cat \"$DIR/x/a.py\" $(pwd)/b.py $UNKNOWN *.py a?.py {c,d}.py", "read x/a.py, read b.py"),
        ("if [ -f a ]; then cat b; fi; test -e c && echo d; ls e; cd f; stat g", "read b, read g"),
        ("bash -c 'cat a; bash -c \"cat b\"'; sh run.sh x; source env.sh; . ./e.sh y",
         "read a, read b, read run.sh, read env.sh, read ./e.sh"),
        ("python - <<'E'\nopen('a', 'w'); open(\"b\").read(); Path('c/d').write_text('')\nE",
         "change a, read b, change c/d"),
        ("node -e \"require('fs').writeFileSync('a.js', readFileSync('b.js'))\"", "read b.js, change a.js"),
        ("cat > a.md <<'EOF'\nsee src/b.py\ncat c.py\nEOF", "change a.md"),
        ("git commit -m \"$(cat <<'EOF'\nfix src/a.py > b\nEOF\n)\"", ""),
        ("echo 'cat a' # cat b\necho \"> c\" \\> d", ""),
        ("ssh host 'cat a'; docker exec x cat b; kubectl apply -f c.yaml", ""),
        ("diff -u a b; cmp c d; vim +5 e; jq '.x' f; jq --arg n g . h; yq .a i", "read a, read b, read c, read d, "
         "unknown e, read f, read h, read i"),
        ("patch -p1 < x.patch; patch a.py y.patch; git apply z.patch", "read x.patch, change a.py, read y.patch, "
         "read z.patch"),
        ("curl -sSo out.json https://h/x; wget -O b.html https://h; dd if=c of=d", "change out.json, change b.html, "
         "read c, change d"),
        ("cat 'app/(group)/[id]/page.tsx' app/[slug]/p.tsx", "read app/(group)/[id]/page.tsx, read app/[slug]/p.tsx"),
        ("prettier --write a.ts; ruff format b.py; ruff check c.py; npx eslint d.ts", "change a.ts, change b.py, "
         "read c.py, read d.ts"),
        ("cat src/beam.py | sort -o o.txt -k 2", "read src/beam.py, change o.txt"),
        ("perl -pi -e 's/a/b/' x.txt; perl -ne print y.txt", "change x.txt, read y.txt"),
        ("cat -- -a; cat -; cat /dev/stdin < a; cat ./", "read -a, read a"),
        ("cargo test --test a.rs; go test ./a.go; npm run b.js; make c.o", ""),
    ],
)  # fmt: skip
def test_commands(command: str, touched: str) -> None:
    assert sorted(shell(command)) == sorted(filter(None, touched.split(", ")))


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("cat a", ["/w/a"]),
        ("cd x && cat a ../b", ["/w/x/a", "/w/b"]),
        ("cd /y; cat a; cd z; cat b", ["/y/a", "/y/z/b"]),
        ("(cd x && cat a); cat b", ["/w/x/a", "/w/b"]),
        ("pushd x; cat a; popd; cat b", ["/w/x/a", "/w/b"]),
        ("cd $X && cat a /b", [None, "/b"]),
        ("cd $(git rev-parse --show-toplevel); cat a", [None]),
        ("test x || cd x; cat a", [None]),
        ("if x; then cd y; cat a; fi; cat b", ["/w/y/a", None]),
        ("git -C sub add a; git show HEAD:a.py; git show HEAD:./b.py", ["/w/sub/a", None, "/w/b.py"]),
        ("cat ~/a ~x/b", [None, None]),
        ("cat $D/a", [None]),
        ("cat x > /tmp/../out", ["/out", "/w/x"]),
        ("bash -c 'cd x; cat a'; cat b", ["/w/x/a", "/w/b"]),
        ("cd x | cat; ls | cd y; cat 'a/./b//c'", ["/w/a/b/c"]),
    ],
)
def test_98_absolute_paths_are_given_where_they_are_proved(command: str, where: list[str | None]) -> None:
    assert places(command) == where


def test_directories_of_the_call_of_the_record_and_of_the_person() -> None:
    assert places("cat a", workdir="/v") == places("cat a", None, workdir="/v") == ["/v/a"]
    assert places("cat a", workdir="v") == ["/w/v/a"]
    assert places("cat a", dir_path="v") == places("cat a", directory="/w/v") == ["/w/v/a"]
    assert [one.absolute for one in touches_of_call("list_directory", {"dir_path": "v"}, "/w")] == ["/w/v"]
    assert places("cat a", None) == places("cat a", "relative") == [None]
    assert places("cat ~/a $HOME/b '~/c'; cd; cat d", home="/home/u") == ["/home/u/a", "/home/u/b", "/home/u/d"]
    (found,) = touches_of_call("Read", {"path": "src/a.py"}, "/w/app/sub")
    assert found.absolute == "/w/app/sub/src/a.py"
    (found,) = touches_of_call("Read", {"path": "~/a.py"}, "/w", "/home/u")
    assert (found.path, found.absolute, found.match) == ("~/a.py", "/home/u/a.py", Match.PATH)


def test_powershell_as_far_as_its_words_tell() -> None:
    def seen(command: str) -> list[str]:
        return told("powershell", {"command": command})

    assert seen("Get-Content -Path C:\\w\\a.py -TotalCount 5 | Select-String -Pattern 'b.py'") == ["read C:\\w\\a.py"]
    assert seen("Set-Content a.txt 'b.txt'; Remove-Item -Force c.txt; gc d,e") == [
        "change a.txt", "delete c.txt", "read d", "read e",
    ]  # fmt: skip
    assert seen("Move-Item a b; Copy-Item a -Destination c; 'x' | Out-File -FilePath d") == [
        "rename a", "rename b", "read a", "change c", "change d",
    ]  # fmt: skip
    assert seen("$x = Get-Content $y; New-Item -ItemType Directory -Path z; Get-ChildItem q; git add src/r.py") == [
        "read src/r.py"
    ]
    assert told("shell", {"command": ["powershell.exe", "-NoProfile", "-Command", "Get-Content 'a b.txt'"]}) == [
        "read a b.txt"
    ]


# Results


def test_results_add_what_they_alone_know() -> None:
    changes = {"/w/a.py": {"type": "add"}, "b.py": None, "c.py": {"type": "update", "move_path": "d.py"}}
    found = touches_of_result("apply_patch", {"changes": changes}, "/w")
    assert [(one.path, one.absolute, one.effect) for one in found] == [
        ("/w/a.py", "/w/a.py", Effect.CREATE), ("b.py", "/w/b.py", Effect.CHANGE),
        ("c.py", "/w/c.py", Effect.RENAME), ("d.py", "/w/d.py", Effect.RENAME),
    ]  # fmt: skip
    (found_one,) = touches_of_result("ExitPlanMode", {"filePath": "/plans/a.md", "numFiles": 3}, None)
    assert (found_one.absolute, found_one.effect) == ("/plans/a.md", Effect.UNKNOWN)
    (found_one,) = touches_of_result(None, {"paths": ["/w/a.py"], "hash": "abc"}, None)
    assert found_one.effect is Effect.CHANGE
    assert touches_of_result(None, {"paths": ["/w/picture.png"]}, None) == []
    assert touches_of_result("edit", {"paths": ["a.py", 5, "https://h/b"], "changes": [1]}, None)[0].path == "a.py"
    assert touches_of_result("Bash", {}, None) == []


# Anything


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.sampled_from([PATCH, "a/b", "cat a", "view"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["path", "paths", "command", "cmd", "cwd", "input", "diff", "mode", "from", "x", "uri"]),
            inner, max_size=5,
        ),
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([None, "", "Bash", "apply_patch", "move", "copy", "powershell", "é"]), values,
       st.sampled_from([None, "", "/w", "x", "C:\\w"]))  # fmt: skip
def test_no_arguments_break_it(tool: str | None, arguments: Any, cwd: str | None) -> None:
    found = touches_of_call(tool, arguments, cwd, "/home/u")
    assert len({(one.path, one.absolute, one.effect) for one in found}) == len(found)
    for one in found:
        assert one.path
        assert "://" not in one.path[:12]
        assert "\n" not in one.path
        if one.absolute is not None:
            assert one.absolute[0] == "/" or one.absolute[1] == ":"
            assert "/../" not in one.absolute
            assert "//" not in one.absolute[1:]
    if isinstance(arguments, dict):
        touches_of_result(tool, {**arguments, "changes": arguments, "paths": arguments.get("paths")}, cwd)


@given(st.text())
def test_no_patch_breaks_it(text: str) -> None:
    assert next(iter(patched("*** Update File: a\n" + text)))[0] == "a"
    list(patched("--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + text))


def test_deep_arguments_end() -> None:
    deep: Any = {"path": "a"}
    for _ in range(10_000):
        deep = {"x": [deep]}
    assert told("Read", deep) == []
