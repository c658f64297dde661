"""`outcrop rebuild`: build the text index anew from the history. The old one serves until the new one is complete."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from outcrop.errors import EXIT_OK, StoreMissing


def add_arguments(parser: ArgumentParser) -> None:
    del parser


def run(args: Namespace) -> int:
    from outcrop.cli import jobs
    from outcrop.cli.bar import Bar
    from outcrop.cli.context import load_config
    from outcrop.harnesses import Environment
    from outcrop.ingest.lock import writer_lock
    from outcrop.ingest.pipeline import Pipeline
    from outcrop.paths import keep_private
    from outcrop.store.embedded.database import database_path, engine_errors

    config = load_config()
    if not database_path(config.home).exists():
        raise StoreMissing

    with Bar() as bar:

        def alone(wait: float) -> dict[str, Any]:
            keep_private()
            with writer_lock(config.home, wait), engine_errors():
                pipeline = Pipeline(config, Environment.here())
                try:
                    return {"settled": pipeline.rebuild(lambda done, total: bar.tell("", done, total, done))}
                finally:
                    pipeline.close()

        settled = jobs.done(config, "rebuild", {}, alone, bar.tell)["settled"]
    print(f"{settled:,} documents indexed anew")
    return EXIT_OK
