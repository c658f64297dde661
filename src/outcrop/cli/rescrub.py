"""`outcrop rescrub`: mask what is stored with today's rules, and prove that the old text is gone."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from outcrop.cli import erasing, output


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: Namespace) -> int:
    from outcrop.cli.context import load_config
    from outcrop.ingest.rescrub import rescrub

    with erasing.writing(load_config()) as (writer, text):
        done = rescrub(writer, text, erasing.step)
    if args.json:
        output.json_line(
            {
                "masked": dict(sorted(done.masked.items())),
                "events": done.events,
                "proof": erasing.proof_json(done.proof),
            }
        )
    else:
        rules = ", ".join(f"{rule} {n:,}" for rule, n in sorted(done.masked.items()))
        print(f"masked in {done.events:,} events: {rules}" if rules else "nothing had to be masked")
        erasing.show_proof(done.proof)
    return erasing.exit_code(done.proof)
