"""`outcrop resume`: a session goes on with its own command, where it ran."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.vaults import U, Vault
from tests.world import Codex, Run, World


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    made = Vault(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("claude", "codex"):
        (programs / name).write_text(
            f'#!/bin/sh\necho "{name} $* in $(pwd) home $CODEX_HOME"\nexit 7\n', encoding="utf-8"
        )
        (programs / name).chmod(0o755)
    (tmp_path / "work").mkdir()
    made.home.mkdir()
    yield made
    made.close()


def resume(vault: Vault, *argv: str, path: bool = True) -> Run:
    places = f"{vault.folder / 'bin'}:{os.environ['PATH']}" if path else "/nonexistent"
    return World(vault.folder).run("resume", *argv, PATH=places)


def test_the_command_runs_in_its_directory_and_its_exit_code_is_ours(vault: Vault) -> None:
    work = vault.folder / "work"
    made = vault.add(U("kestrel"), cwd=str(work))
    vault.index()
    public = World(vault.folder).run("sessions", "--since", "9999d", "--json").json["data"]["sessions"][0]["id"]
    for text in (made, made[:8], public):
        done = resume(vault, text)
        assert (done.code, done.out) == (7, f"claude --resume {made} in {work} home \n"), done.err


def test_print_only_shows(vault: Vault) -> None:
    work = vault.folder / "work"
    made = vault.add(U("kestrel"), cwd=str(work))
    vault.index()
    done = resume(vault, "--print", made)
    assert (done.code, done.out, done.err) == (0, f"cd {work} && claude --resume {made}\n", "")


def test_B66_a_directory_that_is_gone(vault: Vault) -> None:
    made = vault.add(U("kestrel"), cwd=str(vault.folder / "work" / "gone" / "deep"))
    vault.index()
    done = resume(vault, made)
    assert (done.code, done.out) == (1, "")
    assert "is gone" in done.err
    assert f"outcrop resume --in {vault.folder / 'work'} {made}" in done.err
    again = resume(vault, "--in", str(vault.folder / "work"), made)
    assert (again.code, again.out) == (7, f"claude --resume {made} in {vault.folder / 'work'} home \n")
    shown = resume(vault, "--print", made)
    assert (shown.code, shown.out.startswith("cd ")) == (0, True)
    assert "is gone" in shown.err


def test_a_worktree_that_is_gone_can_be_added_again(vault: Vault) -> None:
    main, tree = vault.folder / "work" / "main", vault.folder / "work" / "tree"

    def git(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main", str(main))
    git("-C", str(main), "commit", "-q", "--allow-empty", "-m", "first")
    git("-C", str(main), "worktree", "add", "-q", "-b", "feature", str(tree))
    made = vault.add(U("kestrel"), cwd=str(tree), branch="feature")
    vault.index()
    git("-C", str(main), "worktree", "remove", str(tree))
    done = resume(vault, made)
    assert done.code == 1
    [hint] = [line.removeprefix("hint: ") for line in done.err.splitlines() if "worktree add" in line]
    subprocess.run(["sh", "-c", hint], check=True, capture_output=True)
    assert resume(vault, made).out == f"claude --resume {made} in {tree} home \n"


def test_a_codex_home_of_its_own_goes_along(vault: Vault) -> None:
    other = vault.folder / "codex-home"
    rollout = Codex("A", vault.folder / "work", "09:00:00").begin("09:00:01", "kestrel").answer("09:00:02", "yes")
    World(vault.folder, {"A": rollout})
    path = other / rollout.path(vault.home).relative_to(vault.home / ".codex")
    path.parent.mkdir(parents=True)
    import json

    path.write_text("".join(json.dumps(line) + "\n" for line in rollout.lines), encoding="utf-8")
    done = World(vault.folder).run("index", CODEX_HOME=str(other))
    assert done.code == 0, done.err
    shown = World(vault.folder).run("search", "kestrel", "--json").json["hits"][0]
    assert shown["source"]["codexHome"] == str(other)
    assert shown["resumeCommand"] == f"cd {vault.folder / 'work'} && CODEX_HOME={other} codex resume {rollout.session}"
    done = resume(vault, rollout.session)
    assert done.out == f"codex resume {rollout.session} in {vault.folder / 'work'} home {other}\n"


def test_what_cannot_be_resumed_says_why(vault: Vault) -> None:
    made = vault.add(U("kestrel"), cwd=str(vault.folder / "work"))
    vault.add(U("gull"))
    vault.index()
    assert "not installed" in resume(vault, made, path=False).err
    assert resume(vault, made, path=False).code == 4
    assert resume(vault, "zzzz-unknown").code == 1
    assert resume(vault, "session:ses_?").code == 2
    assert resume(vault, "session:ses_00000000000000000000000000").code == 1
    vault.path(made).unlink()
    vault.index()
    done = resume(vault, made)
    assert done.code == 1
    assert "missing" in done.err


def test_an_id_that_may_mean_several_lists_them(vault: Vault) -> None:
    vault.add(U("kestrel one"), session="abcd1111")
    vault.add(U("kestrel two"), session="abcd2222")
    vault.index()
    done = resume(vault, "abcd")
    assert done.code == 1
    assert "2 sessions" in done.err
    assert done.err.count("session:ses_") == 2
    assert "kestrel two" in done.err


def test_without_a_store(vault: Vault) -> None:
    assert resume(vault, "abcd").code == 3
