"""Checks of the data folder: who may read it, room on the disk, what was left behind, the process that keeps it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcrop.errors import OutcropError, StoreBusy
from outcrop.findings import Finding, Level, Repair, ok
from outcrop.ingest.discover import reason_of
from outcrop.ingest.lock import LOCK, writer_lock
from outcrop.ingest.status import sizes
from outcrop.ingest.survey import SourceSurvey
from outcrop.paths import RUN
from outcrop.store.embedded.database import NAME
from outcrop.store.embedded.salvage import DAMAGED, NEW
from outcrop.store.embedded.text_reader import FOLDER

OTHERS = 0o077
"""Bits that let anybody but the owner in."""
SOCKET = "outcrop.sock"
PROBE = ".doctor-probe"
ASIDE = ".aside"
"""Behind the name of what stood in the place of a folder."""
_PROBE_BYTES = 256 * 1024
_SPARE = 64 * 1000 * 1000
"""Bytes that must be free beside room for a second text index."""
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_watches")


def check_home(home: Path) -> list[Finding]:
    """The folder itself, permissions in it, room for more."""
    try:
        found = os.stat(home)
    except FileNotFoundError:
        return [Finding("data folder", Level.NOTE, "there is no data folder yet", do="run `outcrop index`")]
    except OSError as error:
        return [_no_home(reason_of(error))]
    if not stat.S_ISDIR(found.st_mode):
        return [_no_home("not a directory")]
    try:
        os.listdir(home)
        if not os.access(home, os.R_OK | os.X_OK):
            return [_no_home("permission denied")]
    except OSError as error:
        return [_no_home(reason_of(error))]
    return [_permissions(home), _room(home)]


def _no_home(reason: str) -> Finding:
    return Finding(
        "data folder",
        Level.FAILED,
        f"the data folder cannot be used: {reason}",
        "nothing can be searched or indexed",
        "make it readable and writable for you, or let OUTCROP_HOME name another",
    )


def private_paths(home: Path) -> Iterator[Path]:
    """All that is Outcrop's own in the data folder, the folder itself first; links are left alone."""
    yield home
    for path in [*home.glob(f"{NAME}*"), home / RUN, home / FOLDER]:
        if path.is_symlink() or not path.exists():
            continue
        yield path
        if path.is_dir():
            for folder, folders, names in os.walk(path):
                yield from (Path(folder, name) for name in (*folders, *names) if not Path(folder, name).is_symlink())


def _permissions(home: Path) -> Finding:
    if sys.platform == "win32":
        return ok("permissions", "the folder of a user is private on this system")
    open_to_others, foreign = [], []
    for path in private_paths(home):
        try:
            found = path.stat()
        except OSError:
            continue  # it went meanwhile
        if stat.S_IMODE(found.st_mode) & OTHERS:
            open_to_others.append(f"{path} {stat.S_IMODE(found.st_mode):04o}")
        if found.st_uid != os.geteuid():
            foreign.append(str(path))
    if foreign:
        return Finding(
            "permissions",
            Level.FAILED,
            f"{len(foreign)} files or folders belong to another user",
            "they may not be readable, and the other user can read the history",
            "give them to yourself (`chown`), or run outcrop as that user",
            {"foreign": len(foreign), "open_to_others": len(open_to_others)},
            tuple(foreign),
        )
    if open_to_others:
        return Finding(
            "permissions",
            Level.FAILED,
            f"{len(open_to_others)} files or folders can be read by others",
            "whoever else works on this machine may read what your sessions held",
            "`outcrop doctor --fix` makes them yours alone (0700, 0600)",
            {"open_to_others": len(open_to_others)},
            tuple(open_to_others),
            Repair.PERMISSIONS,
        )
    return ok("permissions", "all that is stored is yours alone")


def _room(home: Path) -> Finding:
    used = sizes(home)
    free = shutil.disk_usage(home).free
    need = used["text"] + _SPARE
    facts: dict[str, int | str] = {"free": free, **{f"bytes_{name}": size for name, size in used.items()}}
    if reason := _refusal(home):
        return Finding(
            "disk",
            Level.FAILED,
            f"nothing can be written to the data folder: {reason}",
            "what is indexed is kept; nothing new is taken in",
            "make room, or make the folder writable; then run `outcrop index`",
            facts,
        )
    if free < need:
        return Finding(
            "disk",
            Level.FAILED,
            f"{free / 1e6:,.0f} MB are free where {need / 1e6:,.0f} MB may be needed",
            "the text index cannot be built anew beside the old one, and indexing may stop",
            "make room on the disk that holds the data folder, or move it (OUTCROP_HOME)",
            facts,
        )
    return Finding("disk", Level.OK, f"{free / 1e9:,.1f} GB are free", facts=facts)


def _refusal(home: Path) -> str | None:
    """Why a small file cannot be written; None where it can. A quota or a limit shows nowhere else."""
    probe = home / f"{PROBE}-{os.getpid()}"
    try:
        try:
            with open(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:
                stream.write(os.urandom(_PROBE_BYTES))
                stream.flush()
                os.fsync(stream.fileno())
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        return reason_of(error)
    return None


def leftovers(home: Path, meta: dict[str, Any]) -> list[Path]:
    """What runs that were killed left behind, and nothing will ever read."""
    named = {meta.get("text_dir"), meta.get("text_next")}
    found = [path for path in (home / FOLDER).glob("text-*") if path.name not in named]
    found += [path for path in (home / FOLDER).glob("*/.tmp*") if path.parent not in found]
    found += [*home.glob(f"{NAME}{NEW}*"), *home.glob(f"{PROBE}-*")]
    return sorted(found)


def check_leftovers(home: Path, meta: dict[str, Any]) -> list[Finding]:
    findings = []
    if kept := [path for path in home.glob(f"{NAME}{DAMAGED}*") if not path.name.endswith(("-wal", "-shm"))]:
        findings.append(
            Finding(
                "damaged history",
                Level.NOTE,
                f"{len(kept)} damaged history databases are kept",
                "they were put aside when a new one was made of what could be read",
                "delete them when you miss nothing",
                {"kept": len(kept), "bytes": sum(path.stat().st_size for path in kept)},
                tuple(map(str, kept)),
            )
        )
    if not (found := leftovers(home, meta)):
        return [*findings, ok("leftovers", "no killed run has left files behind")]
    return [
        *findings,
        Finding(
            "leftovers",
            Level.FAILED,
            f"{len(found)} files or folders were left behind by runs that were killed",
            "they take room, nothing else",
            "the next `outcrop index` or `outcrop doctor --fix` removes them",
            {"leftovers": len(found)},
            tuple(map(str, found)),
            Repair.LEFTOVERS,
        ),
    ]


def strangers(home: Path) -> list[Path]:
    """What stands where a folder of ours belongs, and is none: a file, or a link to nothing."""
    return [path for path in (home / RUN, home / FOLDER) if os.path.lexists(path) and not path.is_dir()]


def put_aside(home: Path) -> int:
    """Give them other names; how many there were."""
    found = strangers(home)
    for path in found:
        os.replace(path, path.with_name(path.name + ASIDE))
    return len(found)


def check_places(home: Path) -> list[Finding]:
    found = strangers(home)
    if not found:
        return []
    return [
        Finding(
            "data folder",
            Level.FAILED,
            f"{len(found)} folders of the data folder are none: something else bears the name",
            "nothing new can be indexed or searched",
            "`outcrop doctor --fix` gives it another name",
            {"in_the_way": len(found)},
            tuple(map(str, found)),
            Repair.PLACES,
        )
    ]


def check_run(home: Path, indexer: dict[str, Any] | None, crashes: int) -> list[Finding]:
    """The process that keeps the index: its lock, its socket, its crashes."""
    folder = home / RUN
    findings = [_lock(home)] if (folder / LOCK).exists() else []
    if indexer is not None:
        facts: dict[str, int | str] = {
            key: value
            for key in ("version", "phase", "memory_bytes", "cpu_seconds", "bytes_written", "watching")
            if isinstance(value := indexer.get(key), (int, str)) and not isinstance(value, bool)
        }  # fmt: skip
        problem = indexer.get("problem")
        if problem:
            findings.append(Finding("indexer", Level.FAILED, f"the indexer runs, but {problem}", facts=facts))
        else:
            findings.append(ok("indexer", "the indexer runs", **facts))
    elif (folder / SOCKET).exists():
        findings.append(_silent_socket(folder / SOCKET))
    else:
        findings.append(ok("indexer", "no indexer runs"))
    if crashes:
        findings.append(
            Finding(
                "crashes",
                Level.NOTE,
                "an indexer crashed within the last hour",
                "what it had read is kept; the next one goes on from there, and waits where there were several",
                "the end of run/indexer.log tells why; report it with `outcrop doctor --report` if it happens again",
                {"crashes": crashes},
            )
        )
    return findings


def _lock(home: Path) -> Finding:
    try:
        with writer_lock(home, wait=0):
            return ok("writer", "nothing writes at the moment")
    except StoreBusy:
        return ok("writer", "another outcrop process writes at the moment")
    except OutcropError as error:
        return Finding(
            "writer",
            Level.FAILED,
            error.message,
            "nothing new can be indexed",
            "see the findings about permissions and the disk",
        )


def _silent_socket(path: Path) -> Finding:
    if _refuses(path):
        return Finding(
            "indexer",
            Level.FAILED,
            "the socket of an indexer is there, and no indexer behind it",
            "it was killed; commands may wait for it in vain",
            "`outcrop doctor --fix` removes the socket",
            repair=Repair.SOCKET,
        )
    return Finding(
        "indexer",
        Level.FAILED,
        "an indexer holds its socket and does not answer",
        "it hangs or is very busy: nothing new may be taken in",
        "look again in a minute; if it stays so, end that process and run `outcrop index`",
    )


def _refuses(path: Path) -> bool:
    """Whether nobody listens behind a socket; something else in its place is not judged."""
    import socket

    if not stat.S_ISSOCK(path.lstat().st_mode) or not hasattr(socket, "AF_UNIX"):
        return False
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(1)
        try:
            door.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def remove_socket(home: Path) -> bool:
    """Remove a socket that nobody listens behind."""
    path = home / RUN / SOCKET
    if not path.exists() or not _refuses(path):
        return False
    path.unlink()
    return True


def check_watching(found: list[SourceSurvey], indexer: dict[str, Any] | None) -> list[Finding]:
    """Whether changes can be followed as they happen."""
    folders = len({folder for each in found for folder in (*each.folders, *each.roots)})
    polls = indexer is not None and indexer.get("watching") == "polling"
    try:
        limit = int(_INOTIFY.read_text(encoding="ascii"))
    except (OSError, ValueError):
        limit = None
    facts: dict[str, int | str] = {"folders": folders, **({} if limit is None else {"limit": limit})}
    if limit is not None and folders >= limit:
        return [
            Finding(
                "file watching",
                Level.FAILED,
                f"{folders} folders hold sessions, and the system lets a user watch {limit}",
                "changes are found by looking from time to time, so later",
                "raise it: `sudo sysctl fs.inotify.max_user_watches=524288`",
                facts,
            )
        ]
    if polls:
        what = "the indexer looks for changes from time to time: the system does not tell it of them"
        return [Finding("file watching", Level.NOTE, what, "new records are found later", facts=facts)]
    return [Finding("file watching", Level.OK, f"{folders} folders can be watched", facts=facts)]
