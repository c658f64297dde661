"""Turns what `bench/history.py` and `bench/mcp.py` printed into the tables of docs/performance.md.

    python bench/tables.py HISTORY.json MCP.json [--page docs/performance.md]

Prints Markdown; with `--page` it replaces what stands between the two marks of that page. Budgets stand here, beside
the place of each figure, and nowhere else in this folder.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]
BEGIN, END = "<!-- measured -->\n", "<!-- /measured -->"

INDEX = (
    # (what, where in `index`, unit, bound, True where more is better)
    ("whole pass, rows and text", "mb_per_cpu_s", "MB raw per CPU-second", 15.0, True),
    ("rows alone", "mb_per_cpu_s_rows_alone", "MB raw per CPU-second", None, True),
    ("CPU of the rows", "rows_cpu_s", "s", None, False),
    ("CPU of the text index", "text_cpu_s", "s", None, False),
    ("of that on the main thread", "text_cpu_s_main_thread", "s", None, False),
    ("events", "events_per_cpu_s", "per CPU-second", None, True),
    ("events", "events_per_s_wall", "per second of wall", None, True),
    ("newest 50 sessions searchable after", "newest_50_sessions_searchable_s", "s wall", 3.0, False),
    ("all conversations searchable after", "all_conversations_searchable_s", "s wall", None, False),
    ("anonymous memory, peak", "anonymous_peak_mb", "MB", None, False),
    ("private memory, peak", "private_peak_mb", "MB", 300.0, False),
    ("resident memory, peak", "resident_peak_mb", "MB", None, False),
    ("handed to `write` per byte read", "wchar_per_raw_byte", "bytes", 2.0, False),
    ("of that by the rows", "wchar_per_raw_byte_rows_alone", "bytes", None, False),
    ("sent to storage per byte read", "write_bytes_per_raw_byte", "bytes", None, False),
)
STARTS = {
    "outcrop --version": 60,
    "outcrop events, piped": 120,
    "initialize answered": 60,
    "first search answered": 150,
}
STDIO = {"search_sessions(3 words)": 8, "open(event)": 3, "list_sessions(day)": 5}
MEMORY = {"idle": 40, "after 1000 calls": 80}
TOOLS_LIST = 9 * 1024
DISK_RATIO = 0.60
CONVERSATIONS_SHARE = 0.40

Row = tuple[object, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description="Tables of measured figures beside their budgets.")
    parser.add_argument("history", type=Path)
    parser.add_argument("mcp", type=Path)
    parser.add_argument("--page", type=Path, help="replace the part between the marks of this page")
    args = parser.parse_args()
    history, mcp = (json.loads(path.read_text(encoding="utf-8")) for path in (args.history, args.mcp))
    text = "\n".join([*_history(history), *_mcp(mcp)])
    if args.page is None:
        print(text)
        return 0
    page = args.page.read_text(encoding="utf-8")
    replaced, found = re.subn(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{text}\n{END}", page, flags=re.DOTALL)
    if found != 1:
        parser.error(f"{args.page} lacks the marks {BEGIN.strip()} and {END}")
    args.page.write_text(replaced, encoding="utf-8")
    return 0


def _history(found: Json) -> Iterable[str]:
    index, disk, again, plain = found["index"], found["disk"], found["second_run"], found["plain_loop"]
    yield _conditions("Indexing, size, calls in process", found["conditions"])
    yield (
        f"Input: {index['files']:,} files, {index['raw_mb']:,.0f} MB, {index['records']:,} records,"
        f" {index['events']:,} events.\n"
    )
    yield "### Indexing from nothing\n"
    rows: list[Row] = [
        (what, f"{index[place]:,} {unit}", *_against(index[place], bound, more))
        for what, place, unit, bound, more in INDEX
    ]
    share = index["all_conversations_searchable_s"] / index["wall_s"]
    rows += [
        ("all conversations searchable, share of the time", f"{share:.0%}", *_against(share, CONVERSATIONS_SHARE)),
        ("CPU against the plain loop", f"{plain['outcrop_costs_times']} times", "", ""),
        ("the plain loop itself", f"{plain['mb_per_cpu_s']} MB per CPU-second", "", ""),
        ("second run, nothing new", f"{again['cpu_s'] * 1000:.0f} ms CPU, {again['wchar']:,} bytes written", "", ""),
    ]
    yield _table(("what", "measured", "budget", ""), rows)
    yield f"The plain loop {plain['does']}.\n"
    yield "### On disk\n"
    sizes: list[Row] = [("rows, `outcrop.db`", disk["rows_mb"]), ("text index", disk["text_mb"])]
    sizes += [(f"table `{name}` with its indexes", size) for name, size in disk["tables_mb"].items()]
    yield _table(("what", "MB"), sizes)
    ratio = disk["ratio_to_raw"]
    verdict = "met" if ratio <= DISK_RATIO else "short"
    yield f"Together {disk['total_mb']} MB, {ratio} of the input; budget {DISK_RATIO:.2f}: {verdict}.\n"
    yield "### `open` and `list_sessions`, in process, warm\n"
    latency = found["latency"]
    yield f"Over {latency['events']:,} events in {latency['sessions']:,} sessions; random ids.\n"
    yield _latencies(latency)
    long = found["long_session"]
    yield (
        f"A session of {long['events']:,} events in {long['turns']:,} turns, the last of"
        f" {long['events_of_longest_turn']:,} events; {long['raw_mb']:.0f} MB, indexed at {long['mb_per_cpu_s']} MB"
        f" per CPU-second with {long['anonymous_peak_mb']:.0f} MB anonymous memory at most. Pages of 50.\n"
    )
    yield _latencies(long)


def _mcp(found: Json) -> Iterable[str]:
    yield _conditions("The MCP server on stdio", found["conditions"])
    yield f"Over {found['events']:,} events.\n"
    yield "### Start, median of 20\n"
    yield _table(
        ("what", "CPU ms", "least", "wall ms", "budget, CPU ms", ""),
        [
            (name, cost["cpu_ms"], cost["cpu_ms_least"], cost["wall_ms"], *_against(cost["cpu_ms"], STARTS.get(name)))
            for name, cost in found["start"].items()
        ],
    )
    yield "### Memory and size\n"
    rows: list[Row] = [
        (
            f"private memory, {when} (of that anonymous)",
            f"{now['private_mb']} ({now['anonymous_mb']}) MB",
            *_against(now["private_mb"], MEMORY.get(when)),
        )
        for when, now in found["memory"].items()
    ]
    clients = found["clients"]
    each = f"private memory of each of {clients['clients']} servers on one store"
    rows.append((each, f"{clients['private_mb_each']} MB", "", ""))
    size = found["tools_list_bytes"]["frame"]
    rows.append(("answer to `tools/list`", f"{size:,} bytes", *_against(size, TOOLS_LIST)))
    yield _table(("what", "measured", "budget", ""), rows)
    yield "### Round trips\n"
    yield _latencies(found["latency"], STDIO)
    beside = found["clients_beside_a_writer"]
    for told, where in ((clients, ""), (beside, ", beside a writer of twenty documents four times a second")):
        wall = told["wall_ms"]
        yield (
            f"{told['clients']} clients at once, each with a server of its own{where}: {told['calls_per_s']} calls a"
            f" second, {told['server_cpu_ms_per_call']} ms CPU a call, p50 {wall['p50']} ms, p95 {wall['p95']} ms,"
            f" {told['errors']} errors.\n"
        )
    yield f"Its text commits took p50 {beside['commit']['wall_ms']['p50']} ms.\n"


def _latencies(found: Json, budgets: Mapping[str, float] | None = None) -> str:
    """Milliseconds as p50 / p95 / p99. A budget is held against the p50 of CPU."""
    rows: list[Row] = []
    for name, spread in found.items():
        if isinstance(spread, dict) and "wall_ms" in spread:
            times = [" / ".join(f"{value:.2f}" for value in spread[kind].values()) for kind in ("cpu_ms", "wall_ms")]
            rows.append((name, spread["n"], *times))
            if budgets is not None:
                rows[-1] += _against(spread["cpu_ms"]["p50"], budgets.get(name))
    head = ("call", "n", "CPU ms, p50 / p95 / p99", "wall ms, p50 / p95 / p99")
    return _table(head if budgets is None else (*head, "budget, p50 ms", ""), rows)


def _against(value: float, bound: float | None, more: bool = False) -> tuple[str, str]:
    """The budget and whether it is met."""
    if bound is None:
        return "", ""
    met = value >= bound if more else value <= bound
    return f"{'≥' if more else '≤'} {bound:,g}", "met" if met else "**short**"


def _conditions(title: str, found: Json) -> str:
    versions = ", ".join(f"{name} {found[name]}" for name in ("outcrop", "python", "sqlite", "tantivy", "orjson"))
    return (
        f"## {title}\n\n{found['date']}; {found['cores']} cores ({found['processor']}),"
        f" {found['memory_mb'] // 1000} GB, {found['system']}; load {found['load_1m']} at the start; {versions}.\n"
    )


def _table(head: Row, rows: list[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
