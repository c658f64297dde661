"""Which folders are followed: those in which a harness finds files, of all surroundings that any harness looks at."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from outcrop.config import Config
from outcrop.harnesses import REGISTRY, VARIABLES, Environment, Form, Harness, all_harnesses
from outcrop.ingest.discover import Discovery, absolute_roots, discover, discover_at, known_roots
from outcrop.ingest.places import Places
from outcrop.ingest.told import remember
from outcrop.store.embedded.write import FileRow, Writer

SOURCES = [(harness, source) for harness in all_harnesses() for source in harness.sources]
NAMES = [source for _, source in SOURCES]
OF_THE_SYSTEM = {"HOME", "USERPROFILE"}
"""Variables that the surroundings hold as their home."""


class Recording(Mapping[str, str]):
    """Variables that note which of them were asked for; each leads somewhere."""

    def __init__(self, home: str, empty: bool = False) -> None:
        self.asked: set[str] = set()
        self._home = home
        self._empty = empty

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        if self._empty:
            raise KeyError(name)
        return f"{self._home}/{name.lower()}"

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a harness must ask for what it needs by name")

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_what_any_harness_asks_its_surroundings_for_is_told_to_the_indexer(platform: str, tmp_path: Path) -> None:
    asked: set[str] = set()
    for empty in (True, False):
        for harness, source in SOURCES:
            variables = Recording(str(tmp_path), empty)
            harness.roots(source, Environment(tmp_path, variables, platform))
            asked |= variables.asked
    assert asked - OF_THE_SYSTEM <= set(VARIABLES)


def test_every_variable_that_is_told_is_one_that_some_harness_asks_for() -> None:
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in (Path(__file__).parent.parent.parent / "src" / "outcrop" / "harnesses").rglob("*.py")
    )
    for name in VARIABLES:
        assert len(re.findall(rf"\b{name}\b", text)) > 1, name


def test_surroundings_arrive_as_they_were_told(tmp_path: Path) -> None:
    here = Environment(tmp_path, {"CODEX_HOME": "/elsewhere", "CLAUDE_CONFIG_DIR": "", "PATH": "/bin"})
    told = here.told()
    assert told == {"home": str(tmp_path), "variables": {"CODEX_HOME": "/elsewhere"}}
    again = Environment.of(told)
    assert (again.home, dict(again.variables), again.folder) == (tmp_path, {"CODEX_HOME": "/elsewhere"}, None)
    assert Environment.of(Environment(tmp_path, {}, folder=tmp_path / "w").told()).folder == tmp_path / "w"
    assert Environment.of({**told, "folder": "not/absolute"}).folder is None
    for broken in (None, [], {}, {"home": 1}, {"home": "/h"}, {"home": "/h", "variables": []}):
        with pytest.raises(ValueError):
            Environment.of(broken)


def test_a_relative_folder_in_a_variable_is_the_one_of_whoever_tells_of_it(tmp_path: Path) -> None:
    codex = next(harness for harness, source in SOURCES if source == "codex")
    told = Environment(tmp_path, {"CODEX_HOME": "mine/codex"}, folder=tmp_path / "work").told()
    roots = absolute_roots(codex, "codex", Environment.of(told))
    assert roots == [tmp_path / "work" / "mine" / "codex"]
    assert absolute_roots(codex, "codex", Environment(tmp_path, {"CODEX_HOME": "mine/codex"})) == []


def test_a_root_that_nothing_needs_any_more_is_forgotten_after_90_days(tmp_path: Path) -> None:
    gone, there, held = (tmp_path / name for name in ("gone", "there", "held"))
    there.mkdir()
    told = [Environment(tmp_path, {"CODEX_HOME": str(folder)}) for folder in (gone, there, held)]
    (tmp_path / "store").mkdir()
    writer = Writer(tmp_path / "store")
    try:
        with writer.transaction():
            writer.save_file(
                FileRow(0, str(held / "sessions" / "a.jsonl"), "codex", "codex", "jsonl", "transcript", None, None)
            )
        day = 86_400_000
        now = 20_000 * day
        assert remember(writer, told, now)["codex"] == [str(gone), str(there), str(held)]
        assert str(gone) in remember(writer, [], now + 89 * day)["codex"]
        remember(writer, told[:1], now + 89 * day)  # it is named again
        assert str(gone) in remember(writer, [], now + 120 * day)["codex"]
        before = writer.db.total_changes
        assert remember(writer, [], now + 120 * day)["codex"] == [str(gone), str(there), str(held)]
        assert writer.db.total_changes == before
        assert remember(writer, [], now + 180 * day)["codex"] == [str(there), str(held)]
        assert known_roots(writer.db)["codex"] == [str(there), str(held)]
    finally:
        writer.close()


def copied(harness: Harness, source: str, home: Path) -> list[Path]:
    """Each fixture of a harness as each of its roots: those in which something is found."""
    fixtures = Path(__file__).parent.parent / "fixtures" / harness.name
    found = []
    for folder in (fixtures, *sorted(path for path in fixtures.rglob("*") if path.is_dir())):
        if any(True for _ in harness.discover(source, folder)):
            root = home / str(len(found)) / folder.name  # some names mean something
            shutil.copytree(folder, root)
            found.append(root)
    return found


@pytest.mark.parametrize(("harness", "source"), SOURCES, ids=NAMES)
def test_every_file_that_is_found_is_followed(harness: Harness, source: str, tmp_path: Path) -> None:
    """By the folders that are watched, or because it is looked at each second."""
    for root in copied(harness, source, tmp_path):
        config = Config(tmp_path, tmp_path / "config.toml")
        environment = Environment(tmp_path)
        listing = discover(config, environment, source, {source: [str(root)]})
        assert listing.found
        places = Places.of(listing, config, environment, {source: [str(root)]})
        polled = {spot.file.path for spot in places.polled}
        for found in listing.found:
            path = os.path.realpath(found.file.path)
            heard = any(path == folder or path.startswith(os.path.join(folder, "")) for folder in places.watched)
            assert heard or found.file.path in polled, found.file.path
            if found.file.form is Form.CONTAINER and os.path.isfile(path):
                assert found.file.path in polled
            assert places.find(path) is not None
            assert source in places.sources_of(path) or found.file.path in polled


@pytest.mark.parametrize(("harness", "source"), SOURCES, ids=NAMES)
def test_what_is_found_at_a_path_is_what_a_listing_finds_there(harness: Harness, source: str, tmp_path: Path) -> None:
    config, environment = Config(tmp_path, tmp_path / "config.toml"), Environment(tmp_path)
    for root in copied(harness, source, tmp_path):
        (root / "a link").symlink_to(root.parent)
        also = {source: [str(root)]}
        listed = {found.file.path: found.file for found in discover(config, environment, source, also).found}
        for path in root.rglob("*"):
            met = discover_at(config, environment, source, str(path), also)
            if met is None:
                assert source not in ("claude", "codex")
                continue
            below = os.path.join(path, "")
            there = {place: file for place, file in listed.items() if place == str(path) or place.startswith(below)}
            assert {found.file.path: found.file for found in met} == there, path


@pytest.mark.parametrize(("harness", "source"), SOURCES, ids=NAMES)
def test_a_root_is_awaited_and_then_all_in_it_is_seen(harness: Harness, source: str, tmp_path: Path) -> None:
    """Whatever comes first into a root that was not there: a folder that is watched, or a file beside it."""
    config, environment = Config(tmp_path, tmp_path / "config.toml"), Environment(tmp_path / "home")
    root = tmp_path / "root"
    places = Places.of(Discovery(), config, environment, {source: [str(root)]})
    assert places.shifted() == set()
    root.mkdir()
    assert source in places.shifted()
    places = Places.of(Discovery(), config, environment, {source: [str(root)]})
    assert places.shifted() == set()
    assert str(root) in places.watched


def test_a_file_beside_the_folders_that_are_watched_is_a_newcomer(tmp_path: Path) -> None:
    config, environment = Config(tmp_path, tmp_path / "config.toml"), Environment(tmp_path / "home")
    root = tmp_path / "root"
    (root / "storage").mkdir(parents=True)
    places = Places.of(Discovery(), config, environment, {"opencode": [str(root)]})
    assert str(root) not in places.watched
    assert places.newcomers() == []
    (root / "opencode.db").touch()
    assert places.newcomers() == [str(root / "opencode.db")]
    assert places.sources_of(str(root / "opencode.db")) == {"opencode"}
    assert places.newcomers() == []


def test_every_harness_is_looked_at() -> None:
    assert {harness.name for harness, _ in SOURCES} == set(REGISTRY)
