"""Where the data and the configuration lie, and how they are kept private.

`OUTCROP_HOME` holds everything when it is set; otherwise each system's own places do (the rules of the XDG base
directories, macOS and Windows, as `platformdirs` reads them; a test holds the two together). All of it follows from
an environment value, so that any system can be tested on any other. Folders that are created here are for their
owner alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from outcrop.errors import BackendFailure, ConfigError

NAME = "outcrop"
HOME_VARIABLE = "OUTCROP_HOME"
CONFIG_FILE = "config.toml"
RUN = "run"
"""The folder, in that of the data, of what belongs to processes: locks, sockets, records."""


class Surroundings(Protocol):
    """What decides where things lie; `harnesses.Environment` is one."""

    @property
    def home(self) -> Path: ...

    @property
    def variables(self) -> Mapping[str, str]: ...

    @property
    def platform(self) -> str: ...


class _Here:
    """The process's own surroundings."""

    variables: Mapping[str, str] = os.environ
    platform = sys.platform

    @property
    def home(self) -> Path:
        return Path.home()


HERE: Surroundings = _Here()


def data_home(surroundings: Surroundings | None = None) -> Path:
    """The folder of `outcrop.db`, `text/` and `run/`. It need not exist yet.

    Raises ConfigError where its name is no text: the text index cannot lie there.
    """
    surroundings = surroundings or HERE
    own = _own_home(surroundings)
    folder = own or _system_place(surroundings, "XDG_DATA_HOME", ".local/share")
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        what = HOME_VARIABLE if own else "the path of the data folder"
        raise ConfigError(f"{what} is not valid UTF-8; let {HOME_VARIABLE} name another folder") from None
    return folder


def config_file(surroundings: Surroundings | None = None) -> Path:
    """The configuration file, whether or not it exists. With `OUTCROP_HOME` set no other place is looked at."""
    surroundings = surroundings or HERE
    folder = _own_home(surroundings) or _system_place(surroundings, "XDG_CONFIG_HOME", ".config")
    return folder / CONFIG_FILE


def expand(text: str, home: Path) -> Path:
    """`text` with a leading `~` as `home`; other users' homes are not looked up."""
    if text == "~":
        return home
    if text[:2] in ("~/", "~\\"):
        return home / text[2:]
    return Path(text)


def private_folder(path: Path) -> Path:
    """`path`, made (with its parents) for its owner alone where it is missing. An existing folder stays as it is."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is not a folder")
    return path


def folder_error(error: OSError, done: str = "written") -> BackendFailure:
    """The typed error where the data folder cannot be `done`: what the system says of it, without the path."""
    return BackendFailure(f"the data folder cannot be {done}: {(error.strerror or 'not a folder').lower()}")


@contextmanager
def folder_errors(done: str = "written") -> Iterator[None]:
    """Raise `folder_error` for what the system refuses; that a file is not there stays as it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise folder_error(error, done) from error


def keep_private() -> None:
    """From now on every file that this process creates is its owner's alone (0600). Writers call it once, first."""
    os.umask(0o077)


def _own_home(surroundings: Surroundings) -> Path | None:
    text = surroundings.variables.get(HOME_VARIABLE)
    return Path(os.path.abspath(expand(text, surroundings.home))) if text else None


def _system_place(surroundings: Surroundings, variable: str, folder: str) -> Path:
    home = surroundings.home
    if surroundings.platform == "win32":
        local = surroundings.variables.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / NAME
    named = surroundings.variables.get(variable, "").strip()
    if named.startswith("/"):  # the XDG rules call a relative path invalid, to be ignored
        return Path(named) / NAME
    if surroundings.platform == "darwin":
        return home / "Library" / "Application Support" / NAME
    return home / folder / NAME
