"""Measure every row, print the table and write results.json: ``make bench``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks import _machine, _paint
from benchmarks._machine import BenchmarkError
from benchmarks._timing import duration
from benchmarks.harness import (
    Growth,
    Result,
    Row,
    collect,
    error_text,
    measure,
    measure_growth,
)
from tools.command import replace, run_main
from tools.notebooks import today

RESULTS = Path(__file__).resolve().parent / "results.json"
HEAD = "{:<58} {:>9} {:>9} {:>6} {:>12} {:>8} {:>8} {:>7}"
COLUMNS = ("", "ours", "peer", "ratio", "10–90 %", "our err", "its err", "limit")


def run(rows: list[tuple[str, Row | Growth]]) -> Result:
    """Measure the rows one after the other, under a progress bar."""
    from tqdm import tqdm  # not needed to import this module

    unit_seconds = _machine.machine_limits()
    measured: dict[str, list[Result]] = {"rows": [], "growths": []}
    with tqdm(rows, unit="row", disable=None) as bar:
        for module, row in bar:
            bar.set_description(row.name)
            if isinstance(row, Growth):
                result, kind = measure_growth(row), "growths"
            else:
                result, kind = measure(row, unit_seconds), "rows"
            measured[kind].append({"module": module, **result})
    peers = {row.needs for _, row in rows if isinstance(row, Row) and row.needs}
    return {
        "date": today(),
        "machine": _machine.machine(),
        "versions": _machine.versions(sorted(peers)),
        "unit_seconds": unit_seconds,
        **measured,
    }


def table(results: Result) -> Iterator[str]:
    """Lines of the table of all results."""
    unit = results["unit_seconds"]
    yield (
        f"one thread of this machine: {1e-9 / unit['bytes']:.1f} GB/s of memory,"
        f" {1e9 * unit['exp']:.2f} ns an exp, {1e9 * unit['normals']:.2f} ns a normal,"
        f" {1e-9 / unit['flop']:.1f} Gflop/s"
    )
    yield (
        "ratio: peer over ours, above 1 where we win, and the middle 80 % of the pairs;"
        " limit: ours over the least the machine allows"
    )
    yield HEAD.format(*COLUMNS)
    for row in results["rows"]:
        ours, peer, ratio = row["ours"], row.get("peer"), row.get("ratio")
        over = f"{row['limit']['ours_over_limit']:.3g} x" if "limit" in row else ""
        cells = ("", "", "", "")
        if peer:
            spread = f"{ratio['low']:.3g}–{ratio['high']:.3g}"
            error = error_text(row, "peer")
            cells = (duration(peer["seconds"]), f"{ratio['median']:.3g}", spread, error)
        time, *comparison, error = cells
        own = error_text(row, "ours")
        yield HEAD.format(
            row["name"], duration(ours["seconds"]), time, *comparison, own, error, over
        )
        yield f"    beside {row['peer_name']}" + (
            f": {row['note']}" if "note" in row else ""
        )
    for growth in results["growths"]:
        yield (
            f"{growth['name']}: exponent {growth['exponent']:.2f}"
            f" ± {growth['stderr']:.2f} (s.e.), expected {growth['expected']:g}"
        )
    for row in results.get("paint", []):
        facts = row.get("note") or (
            f"first contentful paint after {row['seconds']:.2f} s at 1.6 Mbit/s,"
            f" {row['bytes'] / 1000:.0f} kB"
        )
        yield f"{row['page']}: {facts}"


def main() -> None:
    """Run everything; nothing is written unless all of it was measured."""
    _machine.require_one_thread(os.environ)
    _machine.stay_on_one_core()
    _machine.settle_allocator()
    results = {**run(collect()), "paint": _paint.paint()}
    replace(RESULTS, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print("\n".join(table(results)))


if __name__ == "__main__":
    run_main(main, "the results of the last run were kept", BenchmarkError)
