"""Measures how well Outcrop finds what was asked, beside plain full-text search over the same texts.

    python bench/quality --home DIR [--real DIR] [--store DIR] [--levers] [--page FILE]

DIR of `--home` is a home folder full of sessions, in which facts are planted (in a copy: it is only read); DIR of
`--real` one with real sessions, of which known items are asked. A store that is absent or empty is built first.
`--levers` asks all of it again with each addition switched off. `--page` puts the table into a Markdown page. Prints
one JSON document.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cases
import engines
import known
import levers
import pages
import planting
from cases import Case, Surface
from engines import Engine, Hit
from measure import Json, conditions, environment, report, run

from outcrop.model import CONVERSATION, TYPE_CODE, EventType
from outcrop.store.embedded.read import EmbeddedStore
from outcrop.store.embedded.text_rows import DIGEST, OPENING

SESSIONS = (Path(".claude/projects"), Path(".codex/sessions"))
MOST_ITEMS = 150


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/quality", description="Measure what is found.")
    parser.add_argument("--home", type=Path, required=True, help="a home folder full of session files")
    parser.add_argument("--real", type=Path, help="a home folder with real sessions, for known items")
    parser.add_argument("--store", type=Path, help="the store of both, which is made where it is absent and stays")
    parser.add_argument("--levers", action="store_true", help="ask again with each addition switched off")
    parser.add_argument("--page", type=Path, help="a Markdown page to put the tables into")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outcrop-bench-") as work:
        folder = (args.store or Path(work) / "store").resolve()
        if not (folder / "outcrop.db").exists():
            build(Path(work) / "home", folder, [home for home in (args.home, args.real) if home])
        store = EmbeddedStore(folder)
        real = {path.stem for root in SESSIONS for path in (args.real / root).rglob("*.jsonl")} if args.real else set()
        found = measure(store, real, generated(args.home), args.levers)
        store.close()
    report(found)
    if args.page:
        pages.put(args.page, found)
    return 0


def build(home: Path, folder: Path, sources: Iterable[Path]) -> None:
    """A home that holds the sessions of others and what is planted, and its store."""
    for source in sources:
        for root in SESSIONS:
            if (source / root).is_dir():
                shutil.copytree(source / root, home / root, dirs_exist_ok=True)
    planting.write(home, [session for session, _ in cases.planted()])
    with tempfile.TemporaryDirectory(prefix="outcrop-bench-") as bytecode:
        run([sys.executable, "-m", "outcrop", "index"], environment(home, folder, Path(bytecode)))


def generated(home: Path) -> list[Json]:
    """The facts that the generator of the home left in its `needles.json`, if there is one, with queries by class."""
    path = home / "needles.json"
    if not path.exists():
        return []
    told = json.loads(path.read_text(encoding="utf-8"))
    return [fact for fact in [*told["needles"], *told["decoys"]] if EventType(fact["event_type"]) in CONVERSATION]


def measure(store: EmbeddedStore, real: set[str], others: list[Json], with_levers: bool) -> Json:
    db = store.connection()
    natives = dict(db.execute("SELECT native, id FROM session"))
    asked = [case for _, some in cases.planted() for case in some]
    items = known.items(_messages(store, real), _folded(store), MOST_ITEMS)
    ours = engines.outcrop(store)
    every = {
        "Outcrop": ours,
        "plain BM25": engines.plain(store, "OR"),
        "plain FTS5": engines.plain(store, "AND"),
    }
    found: Json = {
        "conditions": conditions(),
        "events": db.execute("SELECT count(*) FROM event").fetchone()[0],
        "sessions": db.execute("SELECT count(*) FROM session WHERE event_count > 0").fetchone()[0],
        "planted": {name: facts_found(engine, asked, natives) for name, engine in every.items()},
        "known": {name: items_found(engine, items) for name, engine in every.items()},
        "generated": {name: others_found(engine, others, natives) for name, engine in every.items()},
    }
    if with_levers:
        found["without"] = {}
        for name in levers.LEVERS:
            with levers.without(name):
                found["without"][name] = {
                    "planted": facts_found(ours, asked, natives)["all"],
                    "known": items_found(ours, items),
                    "generated": others_found(ours, others, natives),
                }
    return found


def facts_found(engine: Engine, asked: list[Case], natives: dict[str, int]) -> Json:
    """By kind and surface, and over all that must be found: hit@1, hit@10, the mean reciprocal rank, what is missed."""
    ranks: dict[tuple[str, Surface], list[int]] = defaultdict(list)
    missed: list[Json] = []
    for case in asked:
        sessions = {
            natives[id]
            for id in (planting.session_id(case.name), planting.session_id(f"{case.name}-copy"))
            if id in natives
        }
        for surface in Surface:
            if surface in case.surfaces:
                rank = _rank(engine(case.query, surface), sessions, case.texts, once=len(sessions) > 1)
                ranks[case.kind, surface].append(rank)
                if rank != 1:
                    missed.append({"kind": case.kind, "surface": surface, "query": case.query, "rank": rank})
    return {
        "all": _summary([rank for some in ranks.values() for rank in some]),
        "kinds": _by_kind(ranks),
        "missed": missed,
    }


def items_found(engine: Engine, items: list[known.Item]) -> Json:
    """By kind of query and surface: the same of what was drawn from real sessions."""
    ranks: dict[tuple[str, Surface], list[int]] = defaultdict(list)
    for item in items:
        for kind, query in item.queries.items():
            for surface in (Surface.DEFAULT, Surface.SESSIONS):
                ranks[kind, surface].append(_rank(engine(query, surface), set(item.sessions), (item.text,)))
    return _by_kind(ranks)


def others_found(engine: Engine, others: list[Json], natives: dict[str, int]) -> Json:
    """By class of query and surface: the same of the facts of the home's own generator."""
    ranks: dict[tuple[str, Surface], list[int]] = defaultdict(list)
    for fact in others:
        for kind, query in fact["queries"].items():
            for surface in (Surface.DEFAULT, Surface.SESSIONS):
                rank = _rank(engine(query, surface), {natives[fact["session_id"]]}, (fact["fact"],))
                ranks[kind, surface].append(rank)
    return _by_kind(ranks)


def _by_kind(ranks: dict[tuple[str, Surface], list[int]]) -> Json:
    kinds = dict.fromkeys(kind for kind, _ in ranks)
    return {kind: {surface: _summary(ranks[kind, surface]) for surface in Surface if (kind, surface) in ranks}
            for kind in kinds}  # fmt: skip


def _rank(hits: list[Hit], sessions: set[int], texts: tuple[str, ...], once: bool = False) -> int:
    """Place of the first hit that answers, 0 for none. `once`: two hits of the same history are none, too."""
    wanted = [" ".join(text.split()) for text in texts]
    places = [
        place
        for place, hit in enumerate(hits, 1)
        if hit.session in sessions and (hit.text is None or any(text in " ".join(hit.text.split()) for text in wanted))
    ]
    return 0 if not places or (once and len(places) > 1) else places[0]


def _summary(ranks: list[int]) -> Json:
    n = max(1, len(ranks))
    return {
        "n": len(ranks),
        "first": round(sum(rank == 1 for rank in ranks) / n, 3),
        "ten": round(sum(rank > 0 for rank in ranks) / n, 3),
        "mrr": round(sum(1 / rank for rank in ranks if rank) / n, 3),
    }


def _messages(store: EmbeddedStore, real: set[str]) -> list[tuple[int, str]]:
    """(session, text) of the prompts and answers of real sessions that both searches look at."""
    if not real:
        return []
    codes = {TYPE_CODE[kind] for kind in CONVERSATION}
    select = """SELECT s.id, f.path FROM session s JOIN file f ON f.id = s.file
        WHERE s.event_count > 0 AND s.parent IS NULL AND NOT s.machine"""
    sessions = {id for id, path in store.connection().execute(select) if Path(path).stem in real}
    return [(session, text) for text, code, session in engines.texts(store) if code in codes and session in sessions]


def _folded(store: EmbeddedStore) -> dict[int, int]:
    """Sessions that begin with the same messages → one of them, by the rule that session search folds by."""
    first: dict[bytes, int] = {}
    rows = store.connection().execute("SELECT id, opening FROM session WHERE opening IS NOT NULL ORDER BY id")
    return {id: first.setdefault(opening, id) for id, opening in rows if len(opening) == OPENING * DIGEST}


if __name__ == "__main__":
    sys.exit(main())
