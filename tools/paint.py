"""Times of the first sight of the landing page and the chapters, weight and movement.

A part of ``make bench``. The browser is held to 1.6 Mbit/s and a round trip of 150 ms,
a slow phone connection, with a cold cache. The bytes are those on the wire, headers
included. The first movement is the first frame of an exhibit, on a processor that is
slowed four times as well. How fast an exhibit moves is measured on the one that
computes most in a frame, the globe with its most tokens; nothing slows the processor.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from tools.browser import browser_path, cold_visit, first_movement, frames, launched
from tools.command import ROOT, replace, run_main, today
from tools.serve import build, served

RECORD = Path("chapters/reference/paint.json")
SLOW = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1.6e6 / 8,
    "uploadThroughput": 0.75e6 / 8,
}
PHONE = {"width": 390, "height": 844}
SLOWED = 4
DESK = {"width": 1280, "height": 900}
GLOBE, MOST = "chapters/4-mean-field-sphere.html", ("tokens", 256)
CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.md"))
PAGES = ("chapters/index.html", *(f"chapters/{path.stem}.html" for path in CHAPTERS))


def paint(repetitions: int = 5) -> list[dict[str, Any]]:
    """Median seconds to the first paint and the first movement, and bytes."""
    path = browser_path()
    if path is None:
        return [{"page": name, "note": "no browser found"} for name in PAGES]
    with served(build()) as site, launched(path) as browser:
        rows = []
        for name in PAGES:
            runs = [
                cold_visit(browser, site + name, SLOW, viewport=PHONE)
                for _ in range(repetitions)
            ]
            seconds, sizes = zip(*runs, strict=True)
            rows.append({"page": name, "seconds": median(seconds), "bytes": max(sizes)})
            moves = [
                first_movement(browser, site + name, SLOW, SLOWED, viewport=PHONE)
                for _ in range(repetitions)
            ]
            if None not in moves:
                rows[-1]["moves"] = round(median(moves), 3)
    return rows


def globe(seconds: int = 5) -> dict[str, Any]:
    """Median frames a second of the globe with its most tokens, and their cost."""
    path = browser_path()
    if path is None:
        return {"note": "no browser found"}
    with served(build()) as site, launched(path) as browser:
        counts, cost = frames(browser, site + GLOBE, MOST, seconds, viewport=DESK)
    return {
        "tokens": MOST[1],
        "frames": round(median(counts)),
        "script": round(cost, 2),
    }


def told_of_globe(globe: dict[str, Any]) -> str:
    """The globe in a sentence."""
    if "note" in globe:
        return f"The globe was not measured: {globe['note']}."
    return (
        f"The globe with {globe['tokens']} tokens draws {globe['frames']} frames a"
        f" second, of the 60 shown, with {globe['script']:.1f} ms of script each."
    )


def told(row: dict[str, Any]) -> str:
    """One page in a line."""
    facts = row.get("note") or (
        f"first contentful paint after {row['seconds']:.2f} s at 1.6 Mbit/s,"
        f" {row['bytes'] / 1000:.0f} kB"
        + (f"; first movement after {row['moves']:.2f} s" if "moves" in row else "")
    )
    return f"paint: {row['page']}: {facts}"


def main() -> None:
    pages, moved = paint(), globe()
    record = {"date": today(), "pages": pages, "globe": moved}
    replace(ROOT / RECORD, json.dumps(record, indent=1) + "\n")
    print("\n".join([*map(told, pages), f"paint: {told_of_globe(moved)}"]))


if __name__ == "__main__":
    run_main(main, "the record of the last run was kept")
