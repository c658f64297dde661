import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from outcrop.harnesses import Environment
from outcrop.paths import config_file, data_home, expand, keep_private, private_folder

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("platform", "variables", "data", "config"),
    [
        ("linux", {}, "/home/ada/.local/share/outcrop", "/home/ada/.config/outcrop/config.toml"),
        ("linux", {"XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"}, "/d/outcrop", "/c/outcrop/config.toml"),
        ("linux", {"XDG_DATA_HOME": "rel"}, "/home/ada/.local/share/outcrop", "/home/ada/.config/outcrop/config.toml"),
        ("linux", {"OUTCROP_HOME": ""}, "/home/ada/.local/share/outcrop", "/home/ada/.config/outcrop/config.toml"),
        ("linux", {"OUTCROP_HOME": "/o", "XDG_CONFIG_HOME": "/c"}, "/o", "/o/config.toml"),
        ("linux", {"OUTCROP_HOME": "~/o"}, "/home/ada/o", "/home/ada/o/config.toml"),
        (
            "darwin",
            {},
            "/home/ada/Library/Application Support/outcrop",
            "/home/ada/Library/Application Support/outcrop/config.toml",
        ),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/outcrop", "/local/outcrop/config.toml"),
        ("win32", {}, "/home/ada/AppData/Local/outcrop", "/home/ada/AppData/Local/outcrop/config.toml"),
    ],
)
def test_places_of_each_system(platform: str, variables: dict[str, str], data: str, config: str) -> None:
    environment = Environment(HOME, variables, platform)
    assert data_home(environment) == Path(data)
    assert config_file(environment) == Path(config)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("variables", [{}, {"XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"}, {"XDG_DATA_HOME": "rel"}])
def test_places_are_those_of_platformdirs(
    platform: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from platformdirs.macos import MacOS
    from platformdirs.unix import Unix

    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": str(HOME), **variables}.items():
        monkeypatch.setenv(name, value)
    oracle = {"linux": Unix, "darwin": MacOS}[platform]("outcrop", appauthor=False)
    environment = Environment(HOME, variables, platform)
    assert data_home(environment) == Path(oracle.user_data_dir)
    assert config_file(environment) == Path(oracle.user_config_dir) / "config.toml"


def test_a_relative_home_is_made_absolute() -> None:
    assert data_home(Environment(HOME, {"OUTCROP_HOME": "here"})) == Path.cwd() / "here"


def test_without_surroundings_the_process_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OUTCROP_HOME", str(tmp_path))
    assert data_home() == tmp_path
    monkeypatch.delenv("OUTCROP_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if sys.platform == "linux":
        assert data_home() == tmp_path / ".local" / "share" / "outcrop"


@pytest.mark.parametrize(
    ("text", "path"),
    [("~", "/home/ada"), ("~/x", "/home/ada/x"), ("~bob/x", "~bob/x"), ("/x/~", "/x/~"), ("~\\x", "/home/ada/x")],
)
def test_a_tilde_is_the_given_home(text: str, path: str) -> None:
    assert expand(text, HOME) == Path(path)


def test_new_folders_are_private_and_old_ones_stay_as_they_are(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    made = private_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert private_folder(made) == made


def test_a_file_where_the_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError):
        private_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        private_folder(tmp_path / "file" / "below")


def test_files_of_a_writer_are_private(tmp_path: Path) -> None:
    program = "import sys; from outcrop.paths import keep_private; keep_private(); open(sys.argv[1], 'w').close()"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "x")], check=True, env={**os.environ})
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600
    assert keep_private.__doc__
