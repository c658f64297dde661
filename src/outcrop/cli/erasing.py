"""What `forget` and `rescrub` have in common: the writer under its lock, steps on a terminal, and how a proof reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from outcrop.cli import jobs, output
from outcrop.errors import EXIT_NOTHING, EXIT_OK, StoreMissing

if TYPE_CHECKING:
    import sqlite3

    from outcrop.config import Config
    from outcrop.ingest.purge import Proof
    from outcrop.store.embedded.text import TextWriter
    from outcrop.store.embedded.write import Writer


@contextmanager
def writing(config: Config) -> Iterator[tuple[Writer, TextWriter]]:
    """The writer of an existing store and its text index. Raises StoreMissing, StoreBusy and the store's errors."""
    from outcrop.paths import keep_private
    from outcrop.store.embedded.database import database_path, engine_errors
    from outcrop.store.embedded.text import TextWriter
    from outcrop.store.embedded.write import Writer

    if not database_path(config.home).exists():
        raise StoreMissing
    keep_private()
    with jobs.writing(config.home), engine_errors():
        writer = Writer(config.home)
        text = TextWriter(config.home)
        try:
            yield writer, text
        finally:
            text.close()
            writer.close()


@contextmanager
def reading(config: Config) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing. Raises StoreMissing and the store's errors."""
    from outcrop.store.embedded.database import engine_errors, open_for_reading

    connection = open_for_reading(config.home)
    try:
        with engine_errors():
            yield connection
    finally:
        connection.close()


def step(what: str) -> None:
    """Tell a person at a terminal what is being done; nobody else."""
    if sys.stderr.isatty():
        print(f"{what} …", file=sys.stderr)


def proof_json(proof: Proof | None) -> dict[str, Any] | None:
    """A proof as `--json` has it."""
    if proof is None:
        return None
    return {
        "status": "proven" if proof.proven else "pending",
        "reason": proof.reason,
        "marks": proof.marks,
        "marks_left": proof.marks_left,
        "words": proof.words,
        "words_left": proof.words_left,
        "secrets_left": proof.secrets_left,
        "tables": proof.tables,
    }


def show_proof(proof: Proof | None) -> None:
    """One line: what is proven, or why it is not yet."""
    if proof is None:
        return
    if proof.proven:
        print("proven: nothing of it is left in any row, in the text index, in free pages or in the log")
        return
    output.error(
        f"erased, proof pending: {proof.reason}",
        "no search finds it any more; the next `outcrop index` goes on, `outcrop forget --finish` at once",
    )


def exit_code(proof: Proof | None) -> int:
    return EXIT_OK if proof is None or proof.proven else EXIT_NOTHING
