import os
import subprocess
from pathlib import Path

import pytest

from outcrop.ingest.project import Cache, Place, locate


def git(folder: Path, *arguments: str) -> None:
    named = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **named}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def repository(home: Path) -> Path:
    folder = home / "code" / "app"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "start")
    return folder


def test_a_folder_inside_a_repository_belongs_to_it(home: Path, repository: Path) -> None:
    inside = repository / "src" / "deep"
    inside.mkdir(parents=True)
    assert locate(str(inside), str(home)) == Place(str(repository), str(repository / ".git"))
    assert locate(str(repository), str(home)) == Place(str(repository), str(repository / ".git"))


def test_linked_worktrees_share_the_common_directory(home: Path, repository: Path) -> None:
    linked = home / "elsewhere" / "app-fix"
    git(repository, "worktree", "add", "-q", str(linked))
    (linked / "src").mkdir()
    found = locate(str(linked / "src"), str(home))
    assert found == Place(str(linked), str(repository / ".git"))


def test_a_worktree_with_a_relative_gitdir_is_found(home: Path, repository: Path) -> None:
    linked = home / "code" / "fix"
    git(repository, "worktree", "add", "-q", str(linked))
    (linked / ".git").write_text("gitdir: ../app/.git/worktrees/fix\n")
    assert locate(str(linked), str(home)) == Place(str(linked), str(repository / ".git"))


def test_a_submodule_is_a_project_of_its_own(home: Path, repository: Path) -> None:
    library = home / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "start")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor")
    found = locate(str(repository / "vendor"), str(home))
    assert found == Place(str(repository / "vendor"), str(repository / ".git" / "modules" / "vendor"))


def test_a_symbolic_link_leads_to_the_same_project(home: Path, repository: Path) -> None:
    (home / "link").symlink_to(repository)
    assert locate(str(home / "link"), str(home)) == locate(str(repository), str(home))


def test_the_search_ends_at_home(home: Path) -> None:
    inner = home / "user"
    (inner / "notes").mkdir(parents=True)
    (home / ".git").mkdir()
    assert locate(str(inner / "notes"), str(inner)) is None
    (inner / ".git").mkdir()
    assert locate(str(inner / "notes"), str(inner)) == Place(str(inner), str(inner / ".git"))


def test_without_a_home_the_users_own_is_taken(home: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "user" / "x").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(repository / "user"))
    assert locate(str(repository / "user" / "x")) is None
    monkeypatch.setenv("HOME", str(home))
    assert locate(str(repository / "user" / "x")) is not None


@pytest.mark.parametrize(
    "cwd",
    [
        "",
        ".",
        "src",
        "~/code",
        "C:\\code\\app",
        "\\\\server\\share\\app",
        "//server/share/app",
        "ssh://host/code",
        "vscode-remote://ssh-remote+host/code",
        "host:/code",
        "/no/such/folder/at/all",
        "/dev/null",
        "/proc/self/mem",
        "/\0",
        "/" + "x" * 5000,
        "/" + "x/" * 3000,
        "/\ud800",
    ],
)
def test_what_is_not_a_local_folder_has_no_place(cwd: str) -> None:
    assert locate(cwd, "/") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"gitdir: ",
        b"gitdir: \n",
        b"gitdir: /no/such/folder\n",
        b"gitdir: .git\n",
        b"gitdir: /tmp\n",
        b"gitdir: //server/share/.git\n",
        b"gitdir: /etc/passwd\n",
        b"gitdir: /tmp\ngitdir: /usr\n",
        b"gitdir: /tmp\0/x\n",
        b"elsewhere\n",
        bytes(range(256)) * 8,
        b"gitdir: " + b"a/" * 3000 + b"\n",
        b"gitdir: " + b"x" * 1_000_000,
    ],
)
def test_a_broken_git_file_has_no_place(home: Path, content: bytes) -> None:
    (home / ".git").write_bytes(content)
    assert locate(str(home), str(home)) is None


def test_an_enormous_git_file_is_not_read(home: Path) -> None:
    with (home / ".git").open("wb") as file:
        file.write(b"gitdir: .\n")
        file.truncate(2**40)
    assert locate(str(home), str(home)) is None


def test_pipes_and_loops_have_no_place_and_do_not_block(home: Path) -> None:
    for name in ("pipe", "loop", "common-pipe", "common-loop", "dangling"):
        (home / name).mkdir()
    os.mkfifo(home / "pipe" / ".git")
    (home / "loop" / ".git").symlink_to(".git")
    (home / "dangling" / ".git").symlink_to("nowhere")
    (home / "admin").mkdir()
    os.mkfifo(home / "admin" / "commondir")
    (home / "common-pipe" / ".git").write_text(f"gitdir: {home}/admin\n")
    (home / "admin2").mkdir()
    (home / "admin2" / "commondir").symlink_to("commondir")
    (home / "common-loop" / ".git").write_text(f"gitdir: {home}/admin2\n")
    for name in ("admin", "admin2"):
        (home / name / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("pipe", "loop", "common-pipe", "common-loop", "dangling"):
        assert locate(str(home / name), str(home)) is None


def test_one_pass_looks_at_a_folder_once(home: Path, repository: Path) -> None:
    cache: Cache = {}
    (repository / "a" / "b").mkdir(parents=True)
    first = locate(str(repository / "a" / "b"), str(home), cache)
    assert first is not None
    (repository / ".git").rename(repository / "moved")
    assert locate(str(repository / "a" / "b"), str(home), cache) == first
    assert locate(str(repository / "a"), str(home), cache) == first
    assert locate(str(repository / "a"), str(home)) is None
    assert locate("relative", str(home), cache) is None
