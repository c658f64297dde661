"""Repairs, each safe to be done without a question: nothing of the history is ever deleted here.

All of them happen under the writer lock, so that no other process is at the same files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from outcrop.config import Config
from outcrop.errors import OutcropError
from outcrop.findings import Repair
from outcrop.harnesses import REGISTRY, Environment, Form, load
from outcrop.ingest import touching
from outcrop.ingest.discover import discover, reason_of
from outcrop.ingest.doctor import places
from outcrop.ingest.history import rebuild_turn
from outcrop.ingest.lock import writer_lock
from outcrop.ingest.sessions import refresh, renumber
from outcrop.paths import keep_private
from outcrop.store.embedded.database import database_path, engine_errors
from outcrop.store.embedded.salvage import LOST, Salvage
from outcrop.store.embedded.text import TextWriter, rebuild
from outcrop.store.embedded.write import Writer

WAIT_SECONDS = 5.0


def mend(config: Config, environment: Environment, wanted: Iterable[Repair]) -> list[tuple[str, bool]]:
    """Do the repairs in their order; (what was done or why not, whether it worked) of each."""
    home = config.home
    told: list[tuple[str, bool]] = []
    asked = set(wanted)
    if Repair.DATABASE in asked:
        asked.add(Repair.TEXT)  # the old index belongs to the old file
    keep_private()
    if Repair.PLACES in asked:
        told.append(_tried(Repair.PLACES, home))  # the lock lies in one of them
        asked.remove(Repair.PLACES)
    try:
        with writer_lock(home, WAIT_SECONDS):
            for repair in Repair:
                if repair in asked:
                    told.append(_tried(repair, home))
                    if repair is Repair.DATABASE and told[-1][1]:
                        _find_lost_files(config, environment)
    except OutcropError as error:
        told.append((f"nothing was repaired: {error.message}", False))
    return told


def _tried(repair: Repair, home: Path) -> tuple[str, bool]:
    try:
        with engine_errors():
            return _REPAIRS[repair](home), True
    except OutcropError as error:
        return f"{repair}: {error.message}", False
    except OSError as error:
        return f"{repair}: {reason_of(error)}", False


def _places(home: Path) -> str:
    return f"gave {places.put_aside(home)} things in the place of a folder a name that ends with {places.ASIDE}"


def _socket(home: Path) -> str:
    return "removed the stale socket" if places.remove_socket(home) else "an indexer listens again: the socket stays"


def _permissions(home: Path) -> str:
    changed = 0
    for path in places.private_paths(home):
        mode = path.stat().st_mode
        if mode & places.OTHERS:
            path.chmod(mode & 0o700)
            changed += 1
    return f"made {changed} files and folders private"


def _leftovers(home: Path) -> str:
    writer = Writer(home)
    try:
        meta = dict(writer.db.execute("SELECT k, v FROM meta"))
    finally:
        writer.close()
    found = places.leftovers(home, meta)
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            os.unlink(path)
    return f"removed {len(found)} leftovers"


def _database(home: Path) -> str:
    if not database_path(home).exists():
        return "there is no history database any more"
    salvage = Salvage(home)
    try:
        done = salvage.copy()
        salvage.replace()
    finally:
        salvage.discard()
    writer = Writer(home)
    try:
        for (session,) in writer.db.execute("SELECT id FROM session ORDER BY id").fetchall():
            _refold(writer, session)
        touching.drain(writer)
    finally:
        writer.close()
    lost = f", {len(done.hurt)} sessions have lost something" if done.hurt else ""
    return (
        f"copied {done.copied['session']} sessions and {done.copied['event']} events into a new database{lost};"
        f" the old one is kept as {done.kept}; `outcrop index` reads again what the agents still have"
    )


def _find_lost_files(config: Config, environment: Environment) -> None:
    """Give a file whose row was lost the path of the one file that bears its session's name, to be read anew.

    Read as a new one, what was lost of it would be put behind what is left.
    """
    writer = Writer(config.home)
    try:
        lost = writer.db.execute("SELECT id, source FROM file WHERE path = ? || id", (LOST,)).fetchall()
        found = discover(config, environment).found if lost else []
        known = {(row.source, row.path) for row in writer.files()}
        for id, source in lost:
            natives = [
                row[0]
                for row in writer.db.execute(
                    "SELECT DISTINCT s.native FROM event e JOIN session s ON s.id = e.session WHERE e.file = ?", (id,)
                )
            ]
            named = [
                one.file
                for one in found
                if one.file.source == source
                and one.file.form is not Form.CONTAINER
                and (source, one.file.path) not in known
                and any(Path(one.file.path).stem.endswith(native) for native in natives)
            ]
            if len(named) == 1:
                file = named[0]
                known.add((source, file.path))
                with writer.transaction():
                    writer.db.execute(
                        "UPDATE file SET path = ?, form = ?, role = ?, native = ?, parent = ?, missing = 0, offset = 1,"
                        " adapter_version = -1,"
                        " generation = (SELECT max(generation) FROM event WHERE file = ?6) WHERE id = ?6",
                        (file.path, file.form.value, file.role, file.native, file.parent, id),
                    )
    finally:
        writer.close()


def _refold(writer: Writer, session: int) -> None:
    """A session whose rows may be lost or wrong: its turns, numbers and counts are made of the events that are left."""
    db = writer.db
    with writer.transaction():
        harness, file = db.execute("SELECT harness, file FROM session WHERE id = ?", (session,)).fetchone()
        for (turn,) in db.execute("SELECT id FROM turn WHERE session = ?", (session,)).fetchall():
            rebuild_turn(writer, turn)
        renumber(writer, session)
        db.execute(
            "UPDATE session SET first_event = NULL, last_event = NULL, mode = 0, shape = shape + 1 WHERE id = ?",
            (session,),
        )
        if harness in REGISTRY:
            refresh(writer, session, file or 0, load(harness), moved=False)


def _text(home: Path) -> str:
    writer = Writer(home)
    text = TextWriter(home)
    text.doubt()
    try:
        from outcrop.store.embedded.check_text import CHECK, check_text

        if any(finding.check == CHECK and finding.repair for finding in check_text(writer.db, home)):
            rebuild(writer.db)
        settled = text.drain(writer.db)
    finally:
        text.close()
        writer.close()
    return f"brought the text index up to the history ({settled} documents)"


_REPAIRS: dict[Repair, Callable[[Path], str]] = {
    Repair.PLACES: _places,
    Repair.SOCKET: _socket,
    Repair.PERMISSIONS: _permissions,
    Repair.DATABASE: _database,
    Repair.LEFTOVERS: _leftovers,
    Repair.TEXT: _text,
}
