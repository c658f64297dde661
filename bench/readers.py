"""CPU time per MB of each reader: from a session's bytes to the model's items, without store, masking and text index.

    python bench/readers.py --corpus DIR

The corpus is laid out as a home by the places of the census (`tests/census`). MB are 10^6 bytes: of files as they lie
there, of databases and trees the records of their sessions as JSON. Printed as one JSON document, by source.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS.parent / "src"), str(TESTS), str(TESTS / "census")]

import orjson  # noqa: E402
from corpus_places import laid_out  # noqa: E402

from outcrop.config import load  # noqa: E402
from outcrop.harnesses import Environment, Form, SourceFile, jsonl  # noqa: E402
from outcrop.ingest.discover import Found, discover  # noqa: E402
from outcrop.ingest.reading import FileSide  # noqa: E402
from outcrop.model import Event  # noqa: E402
from world import World  # noqa: E402

ROUNDS = 3
LEAST_SECONDS = 0.25
"""CPU time that each source is read for at least, in whole passes; the fastest counts."""
BASE = "claude"


def read(found: Found) -> tuple[int, int, int, int]:
    """Read one file or place as the ingest does: (bytes, records, events, sessions or files)."""
    harness, file = found.harness, found.file
    if file.form is not Form.CONTAINER:
        return (*_folded(found, file, _records(found)), 1)
    size = records = events = 0
    container = harness.container(file)
    try:
        natives = [native for native, _ in container.sessions()]
        for native in natives:
            inside = SourceFile(f"{file.path}#{native}", file.source, file.form, "session", native)
            one = _folded(found, inside, ((record, 0) for record in container.records(native)))
            size, records, events = size + one[0], records + one[1], events + one[2]
    finally:
        container.close()
    return size, records, events, len(natives)


def _records(found: Found) -> Any:
    """(record, bytes that are done with it) of a file."""
    if found.file.form is Form.LINES:
        with open(found.file.path, "rb") as stream:
            for piece in jsonl.lines(stream, 0):
                size = len(piece.data)
                for record in jsonl.records(piece.data)[0]:
                    yield record, size
                    size = 0
        return
    data = Path(found.file.path).read_bytes()
    text = found.file.form is Form.TEXT
    document = data.decode("utf-8", "replace") if text else jsonl.document(data)
    size = len(data)
    for record in found.harness.records(found.file, document):
        yield record, size
        size = 0


def _folded(found: Found, file: SourceFile, rows: Any) -> tuple[int, int, int]:
    reader = found.harness.reader(file, None, FileSide())
    size = records = events = 0
    for record, read_bytes in rows:
        parsed = reader.feed(record)
        size += read_bytes
        records += 1
        events += sum(isinstance(item, Event) for item in parsed.items)
    return size, records, events


def inside_bytes(found: Found) -> int:
    """What the sessions of a place weigh as JSON."""
    container = found.harness.container(found.file)
    try:
        natives = [native for native, _ in container.sessions()]
        return sum(
            len(orjson.dumps(record, default=repr)) for native in natives for record in container.records(native)
        )
    finally:
        container.close()


def measured(files: list[Found]) -> dict[str, Any]:
    """One source: the fastest of several passes over all its files."""
    counts = [read(found) for found in files]
    size = sum(count[0] for count in counts)
    size += sum(inside_bytes(found) for found in files if found.file.form is Form.CONTAINER)
    best, spent, rounds = float("inf"), 0.0, 0
    while rounds < ROUNDS or spent < LEAST_SECONDS:
        started = time.process_time()
        for found in files:
            read(found)
        took = time.process_time() - started
        best, spent, rounds = min(best, took), spent + took, rounds + 1
    parts = sum(count[3] for count in counts)
    return {
        "mb": round(size / 1e6, 4),
        "files": len(files),
        "sessions_and_files": parts,
        "records": sum(count[1] for count in counts),
        "events": sum(count[2] for count in counts),
        "cpu_ms": round(best * 1000, 3),
        "ms_per_mb": round(best * 1000 / (size / 1e6), 2) if size else None,
        "us_per_record": round(best * 1e6 / max(1, sum(count[1] for count in counts)), 1),
        "bytes_per_record": size // max(1, sum(count[1] for count in counts)),
        "kb_per_file": round(size / 1000 / max(1, parts), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    corpus = parser.parse_args().corpus
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        laid_out(corpus, world)
        here = Environment(world.home, {"OUTCROP_HOME": str(world.store)})
        by_source: dict[str, list[Found]] = {}
        for found in discover(load(here), here).found:
            by_source.setdefault(found.file.source, []).append(found)
        told = {source: measured(files) for source, files in by_source.items()}
    base = told[BASE]["ms_per_mb"]
    for row in told.values():
        row["times_claude"] = round(row["ms_per_mb"] / base, 2) if row["ms_per_mb"] else None
    print(json.dumps({"python": sys.version.split()[0], "sources": told}, indent=1))


if __name__ == "__main__":
    main()
