"""Measures how the cost of a search grows with the history, and draws it.

    python bench/growth.py HOME:STORE HOME:STORE ... [--calls N] [--svg FILE]

Each pair is a home folder with a `needles.json` and its store, as for `bench/search.py`; both exist already. For every
class of queries of `bench/search.py` and `bench/session_search.py` the median of CPU is told by number of events, with
the exponent of the power of the events that fits it best: below 1 a search grows slower than the history. Prints one
JSON document; `--svg` draws the medians, both axes logarithmic.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from html import escape
from math import floor, log, log10
from pathlib import Path

import session_search
from measure import Json, Spread, conditions, report

import search
from outcrop.search.events import search_events
from outcrop.search.sessions import search_sessions
from outcrop.store.embedded.read import EmbeddedStore

WARM = 10
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 860, 480, 64, 24, 48, 230
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0")
DRAWN = (
    "rare", "mid", "common words", "12-word question", "phrase", "one session", "typo", "all common words",
    "sessions: or, common words", "sessions: or, question",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure search over histories of several sizes.")
    parser.add_argument("pairs", nargs="+", metavar="HOME:STORE", help="a home with needles.json, and its store")
    parser.add_argument("--calls", type=int, default=60, help="queries of each class")
    parser.add_argument("--svg", type=Path, help="where to draw")
    args = parser.parse_args()
    points: dict[str, list[tuple[int, float]]] = {}
    for home, store in (map(Path, pair.split(":", 1)) for pair in args.pairs):
        events, medians = _medians(home, store.resolve(), args.calls)
        for name, median in medians.items():
            points.setdefault(name, []).append((events, median))
    told: Json = {name: {"cpu_ms_p50": dict(sorted(some)), "exponent": exponent(some)} for name, some in points.items()}
    report({"conditions": conditions(), "classes": told})
    if args.svg:
        args.svg.write_text(drawn({name: sorted(points[name]) for name in DRAWN}), encoding="utf-8")
    return 0


def _medians(home: Path, store: Path, calls: int) -> tuple[int, dict[str, float]]:
    """Events of the store; milliseconds of CPU by class."""
    with closing(sqlite3.connect(f"file:{store / 'outcrop.db'}?mode=ro", uri=True)) as db:
        events = int(db.execute("SELECT count(*) FROM event").fetchone()[0])
    found: dict[str, float] = {}
    with closing(EmbeddedStore(store)) as ours:
        asked: dict[str, list[Callable[[], object]]] = {}
        for name, kind in search.kinds(home, store, calls).items():
            queries = [kind.query(number) for number in range(min(calls, len(kind.texts)))]
            asked[name] = [lambda query=query: search_events(ours, query) for query in queries]
        for name, sessions in session_search.kinds(home, store, calls).items():
            some = [lambda query=query: search_sessions(ours, query) for query in sessions[:calls]]
            asked[f"sessions: {name}"] = list(some)
        for name, calls_ in asked.items():
            for ask in calls_[:WARM]:
                ask()
            spread = Spread()
            for ask in calls_:
                spread.time(ask)
            if spread.cpu:
                found[name] = spread.summary()["cpu_ms"]["p50"]
    return events, found


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """The slope of the line through the logarithms; 0 for a single point."""
    xs, ys = [log(x) for x, _ in points], [log(max(y, 1e-3)) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    width = sum((x - mean_x) ** 2 for x in xs)
    rise = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return round(rise / width, 2) if width else 0.0


def drawn(lines: dict[str, list[tuple[int, float]]]) -> str:
    """An SVG document: milliseconds over events."""
    xs = [x for some in lines.values() for x, _ in some]
    ys = [max(y, 0.1) for some in lines.values() for _, y in some]
    x0, x1 = log10(min(xs)), log10(max(xs))
    y0, y1 = floor(log10(min(ys))), log10(max(ys)) + 0.1
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - x0) / ((x1 - x0) or 1)
        up = (log10(max(y, 0.1)) - y0) / ((y1 - y0) or 1)
        return round(LEFT + across * (right - LEFT), 1), round(bottom - up * (bottom - TOP), 1)

    def parts() -> Iterator[str]:
        yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
        yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        for y in (step * 10.0**power for power in range(y0, 3) for step in (1, 2, 5)):
            if y0 <= log10(y) <= y1:
                _, at = place(10**x0, y)
                yield f'<path d="M{LEFT} {at}H{right}" stroke="#ddd"/>'
                yield f'<text x="{LEFT - 8}" y="{at + 4}" font-size="12" text-anchor="end">{y:g}</text>'
        for x in sorted(set(xs)):
            at, _ = place(x, 1)
            yield f'<path d="M{at} {TOP}V{bottom}" stroke="#eee"/>'
            yield f'<text x="{at}" y="{bottom + 18}" font-size="12" text-anchor="middle">{_short(x)}</text>'
        yield f'<text x="{LEFT}" y="{TOP - 8}" font-size="12">CPU, p50, ms</text>'
        yield f'<text x="{right}" y="{HEIGHT - 10}" font-size="12" text-anchor="end">events</text>'
        for number, (name, some) in enumerate(lines.items()):
            colour = COLOURS[number % len(COLOURS)]
            path = " ".join(f"{x},{y}" for x, y in (place(*point) for point in some))
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
            label = TOP + 16 + 22 * number
            yield f'<path d="M{right + 14} {label - 4}h18" stroke="{colour}" stroke-width="3"/>'
            yield f'<text x="{right + 38}" y="{label}" font-size="12">{escape(name)}</text>'
        yield "</svg>"

    return "\n".join(parts()) + "\n"


def _short(events: int) -> str:
    return f"{events / 1e6:.2g}M" if events >= 1e6 else f"{round(events / 1e3)}k"


if __name__ == "__main__":
    sys.exit(main())
