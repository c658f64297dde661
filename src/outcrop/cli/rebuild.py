"""`outcrop rebuild`: build the text index anew from the history. The old one serves until the new one is complete."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from outcrop.errors import EXIT_OK, StoreMissing


def add_arguments(parser: ArgumentParser) -> None:
    del parser


def run(args: Namespace) -> int:
    from outcrop.cli.context import load_config
    from outcrop.ingest.lock import writer_lock
    from outcrop.paths import keep_private
    from outcrop.store.embedded.database import database_path, engine_errors
    from outcrop.store.embedded.text import TextWriter, rebuild
    from outcrop.store.embedded.write import Writer

    config = load_config()
    if not database_path(config.home).exists():
        raise StoreMissing("nothing is indexed yet: run `outcrop index`")
    keep_private()
    with writer_lock(config.home), engine_errors():
        writer = Writer(config.home)
        text = TextWriter(config.home)
        try:
            rebuild(writer.db)
            settled = text.drain(writer.db)
        finally:
            text.close()
            writer.close()
    print(f"{settled:,} documents indexed anew")
    return EXIT_OK
