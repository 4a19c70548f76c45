"""Measure every row, print the table and write results.json: ``make bench``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine
from benchmarks.harness import (
    FAR,
    Growth,
    Result,
    Row,
    collect,
    measure,
    measure_growth,
)
from benchmarks.machine import BenchmarkError

RESULTS = Path(__file__).resolve().parent / "results.json"
HEAD = "{:<58} {:>9} {:>9} {:>6} {:>12} {:>8} {:>8} {:>7}"
COLUMNS = ("", "ours", "peer", "ratio", "10–90 %", "our err", "its err", "limit")


def run(rows: list[tuple[str, Row | Growth]]) -> Result:
    """Measure the rows one after the other, under a progress bar."""
    from tqdm import tqdm  # not needed to import this module

    unit_seconds = machine.machine_limits()
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
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine.machine(),
        "versions": machine.versions(sorted(peers)),
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
            words = peer["words"]
            middle = f"{ratio['median']:.3g}"
            cells = (words["seconds"], middle, spread, words["error"])
        time, *comparison, error = cells
        own = ours["words"]
        yield HEAD.format(
            row["name"], own["seconds"], time, *comparison, own["error"], error, over
        )
        yield f"    beside {row['peer_name']}" + (
            f": {row['note']}" if "note" in row else ""
        )
        if ratio and ratio["median"] < 1:
            yield f"    {row.get('reason', 'and nobody has said why we lose')}"
        if "limit" in row and row["limit"]["ours_over_limit"] > FAR:
            yield f"    {row.get('beyond', 'and nobody has said what takes the time')}"
    for growth in results["growths"]:
        yield (
            f"{growth['name']}: exponent {growth['exponent']:.2f}"
            f" ± {growth['stderr']:.2f} (s.e.), expected {growth['expected']:g}"
        )


def main() -> None:
    """Run everything; nothing is written unless all of it was measured."""
    machine.require_one_thread(os.environ)
    machine.stay_on_one_core()
    machine.settle_allocator()
    results = run(collect())
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    part.replace(RESULTS)
    print("\n".join(table(results)))


if __name__ == "__main__":
    try:
        main()
    except BenchmarkError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("error: interrupted; the results of the last run were kept")
