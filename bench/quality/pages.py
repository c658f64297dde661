"""Puts what was measured into a Markdown page, between two marks, and a line into the history below them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cases import Surface
from measure import Json

BEGIN, END = "<!-- measured -->\n", "<!-- /measured -->\n"
HISTORY = "<!-- history -->\n"
"""Lines of the history stand above it."""
_OURS = "Outcrop"


def put(page: Path, found: Json) -> None:
    """Raises ValueError where the page lacks a mark."""
    text = page.read_text(encoding="utf-8")
    for mark in (BEGIN, END, HISTORY):
        if mark not in text:
            raise ValueError(f"{page} lacks the line {mark.strip()}")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1].replace(HISTORY, _history(found) + HISTORY)
    page.write_text(head + BEGIN + "\n" + "\n\n".join(_parts(found)) + "\n\n" + END + tail, encoding="utf-8")


def _parts(found: Json) -> Iterable[str]:
    about = found["conditions"]
    yield (
        f"{about['date']}; {found['events']:,} events in {found['sessions']:,} sessions; outcrop {about['outcrop']}, "
        f"tantivy {about['tantivy']}, sqlite {about['sqlite']}."
    )
    yield "### Planted facts"
    yield "Share of the queries whose fact is the first hit / among the first ten. A dash: not applicable."
    yield _planted(found["planted"])
    yield "### Known items of real sessions"
    yield "Mean reciprocal rank / share among the first ten."
    yield _items(found["known"])
    if any(found["generated"].values()):
        yield "### Facts of the home's own generator"
        yield _items(found["generated"])
    if "without" in found:
        yield "### What each addition is worth"
        yield _levers(found)


def _planted(engines: Json) -> str:
    ours = engines[_OURS]["kinds"]
    others = [name for name in engines if name != _OURS]
    rows = [["kind", "n", *Surface, *(f"{name}, at best" for name in others)]]
    for kind, cells in ours.items():
        n = max(cell["n"] for cell in cells.values())
        row = [kind, str(n), *(_share(cells.get(surface)) for surface in Surface)]
        for name in others:
            best = max(engines[name]["kinds"][kind].values(), key=lambda cell: (cell["ten"], cell["first"]))
            row.append(_share(best))
        rows.append(row)
    total = ["**all**", str(engines[_OURS]["all"]["n"]), "", "", _share(engines[_OURS]["all"])]
    rows.append([*total, *(_share(engines[name]["all"]) for name in others)])
    return _table(rows)


def _items(engines: Json) -> str:
    surfaces = (Surface.DEFAULT, Surface.SESSIONS)
    rows = [["query", "n", *(f"{name}: {surface}" for name in engines for surface in surfaces)]]
    for kind, cells in engines[_OURS].items():
        told = [engines[name][kind][surface] for name in engines for surface in surfaces]
        rows.append([kind, str(cells[surfaces[0]]["n"]), *(f"{one['mrr']:.2f} / {one['ten']:.2f}" for one in told)])
    return _table(rows)


def _levers(found: Json) -> str:
    kinds = [(part, kind) for part in ("known", "generated") for kind in found[part][_OURS]]
    rows = [["without", "planted: first", "planted: ten", *(f"{part}: {kind}" for part, kind in kinds)]]
    whole = {"planted": found["planted"][_OURS]["all"], **{part: found[part][_OURS] for part in ("known", "generated")}}
    for name, one in {"nothing": whole, **found["without"]}.items():
        cells = [one[part][kind] for part, kind in kinds]
        mrr = [f"{cell[Surface.DEFAULT]['mrr']:.3f} · {cell[Surface.SESSIONS]['mrr']:.3f}" for cell in cells]
        rows.append([name, f"{one['planted']['first']:.3f}", f"{one['planted']['ten']:.3f}", *mrr])
    return "Mean reciprocal rank of events · of sessions.\n\n" + _table(rows)


def _history(found: Json) -> str:
    planted, known = found["planted"][_OURS]["all"], found["known"][_OURS]
    mrr = [
        " / ".join(f"{cell[surface]['mrr']:.2f}" for cell in known.values())
        for surface in (Surface.DEFAULT, Surface.SESSIONS)
    ]
    told = [
        found["conditions"]["date"][:10],
        f"{found['events']:,}",
        f"{planted['first']:.3f}",
        f"{planted['ten']:.3f}",
    ]
    return _line([*told, *mrr])


def _share(cell: Json | None) -> str:
    return "-" if cell is None else f"{cell['first']:.2f} / {cell['ten']:.2f}"


def _table(rows: list[list[str]]) -> str:
    return "".join([_line(rows[0]), _line(["---"] * len(rows[0])), *map(_line, rows[1:])]).rstrip()


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
