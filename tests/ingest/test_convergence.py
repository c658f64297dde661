"""However the reading goes, the history is the same: killed, in pieces, in any order of files, twice, anew."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homes import corpus_home, full_home, grow
from outcrop import config
from outcrop.harnesses import Environment
from outcrop.ingest import pipeline
from projection import projection, stored
from world import World

SLOW = pytest.mark.slow
"""Rare orders and instants are looked for before a release; each suite looks at a few."""


@pytest.fixture(scope="module", params=["made", "corpus"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A home of invented sessions, and one of real ones."""
    root = tmp_path_factory.mktemp(request.param)
    if request.param == "made":
        yield full_home(root)
        return
    corpus = os.environ.get("OUTCROP_CORPUS")
    if not corpus:
        pytest.skip("OUTCROP_CORPUS names no folder of real session files")
    yield corpus_home(Path(corpus), root)


@pytest.fixture(scope="module")
def undisturbed(home: World) -> dict[str, Any]:
    read(home.home, home.folder / "undisturbed")
    return projection(home.folder / "undisturbed")


def read(home: Path, store: Path, **options: Any) -> pipeline.Summary:
    """One pass in this process."""
    environment = Environment(home, {"OUTCROP_HOME": str(store)}, "linux")
    return pipeline.index(config.load(environment), environment, **options)


def test_a_second_run_reads_nothing_and_changes_nothing(home: World, undisturbed: dict[str, Any]) -> None:
    store = home.folder / "undisturbed"
    before = stored(store)
    assert read(home.home, store).records == 0
    assert stored(store) == before


def test_looking_at_every_file_again_changes_nothing(home: World, undisturbed: dict[str, Any]) -> None:
    store = home.folder / "undisturbed"
    before = stored(store)
    assert read(home.home, store, full=True).records == 0
    assert stored(store) == before


@pytest.mark.parametrize("seed", [None, 1, *(pytest.param(seed, marks=SLOW) for seed in (2, 3, 4))])
def test_the_order_of_files_does_not_matter(
    home: World, undisturbed: dict[str, Any], tmp_path: Path, seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_order = pipeline.Discovery.newest_first

    def another_order(discovery: pipeline.Discovery) -> list[Any]:
        files = in_order(discovery)[::-1]
        if seed is not None:
            random.Random(seed).shuffle(files)
        return files

    monkeypatch.setattr(pipeline.Discovery, "newest_first", another_order)
    read(home.home, tmp_path)
    assert projection(tmp_path) == undisturbed


@pytest.mark.parametrize("pieces", [12, pytest.param(100, marks=SLOW)])
def test_files_that_grow_in_pieces_cut_anywhere(
    home: World, undisturbed: dict[str, Any], tmp_path: Path, pieces: int
) -> None:
    for _ in grow(home.home, tmp_path / "home", pieces, seed=7):
        read(tmp_path / "home", tmp_path / "store")
    assert projection(tmp_path / "store") == undisturbed


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=SLOW)])
def test_kill_9_at_random_instants(home: World, undisturbed: dict[str, Any], tmp_path: Path, kills: int) -> None:
    """Runs are killed until one comes to its end by itself; then a new store is begun, until all kills are struck."""
    instants = random.Random(11)
    stores = [tmp_path / "0"]
    killed = 0
    while killed < kills:
        environment = {**home.environment, "OUTCROP_HOME": str(stores[-1])}
        child = subprocess.Popen(index_command(), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            child.wait(instants.uniform(0.15, 0.6))
            stores.append(tmp_path / str(len(stores)))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            killed += 1
    read(home.home, stores[-1])
    for store in stores:
        assert projection(store) == undisturbed


@pytest.mark.parametrize("point", ["before-commit", "after-commit"])
def test_kill_9_around_the_commit_of_every_batch(
    home: World, undisturbed: dict[str, Any], tmp_path: Path, point: str
) -> None:
    for passing in (1, 2, 5, 9, 20):
        environment = {**home.environment, "OUTCROP_HOME": str(tmp_path), "OUTCROP_FAULT": f"kill:{point}:{passing}"}
        subprocess.run(index_command(), env=environment, check=False, capture_output=True)
    read(home.home, tmp_path)
    assert projection(tmp_path) == undisturbed


def index_command() -> list[str]:
    return [sys.executable, "-m", "outcrop", "index"]
