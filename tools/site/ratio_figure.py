"""Figures of the benchmarks: the time of peers and of the machine's limit over ours."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.figures import COLORS, INK, MARKERS, BookFigure, figure, style
from lib.figures.axes import logarithmic

ROW = 0.27  # inches
PEER, LIMIT = 1, 2  # places of their color and marker


def ratio_figure(module: str, rows: list[dict[str, Any]]) -> BookFigure:
    """Rows of a module of the benchmarks, numbered from the top, in one figure.

    Ours is a line of ink at 1. Peers have the range of the middle 80 % of their turns.
    """
    with style():
        fig = Figure(figsize=(4.8, 1.1 + ROW * len(rows)))
        ax = fig.subplots()
        logarithmic(ax, "x", _limits(rows), (len(rows) + 0.6, 0.4))
        for place, row in enumerate(rows, 1):
            _draw(ax, place, row)
        ax.set(xlabel="time over ours", yticks=range(1, len(rows) + 1))
        ax.tick_params("y", length=0)
        ax.grid(True)
        _name(ax)
    faster = sum(ratio < 1 for ratio in ratios(rows))
    caption = "Left of the line the peer is faster" if faster else "No peer is faster"
    if faster:
        caption += f": in {faster} of {len(rows)} rows"
    return figure(fig, alt=_told(module, rows), caption=f"{caption}.")


def ratios(rows: list[dict[str, Any]]) -> list[float]:
    """Times of the peers over ours, of the rows whose peer was present."""
    return [row["ratio"]["median"] for row in rows if "ratio" in row]


def limits(rows: list[dict[str, Any]]) -> list[float]:
    """Times that the machine takes at least, over ours, where they are known."""
    return [1 / row["limit"]["ours_over_limit"] for row in rows if "limit" in row]


def shown(number: float) -> str:
    """A ratio as the table has it."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"


def _draw(ax: Axes, place: int, row: dict[str, Any]) -> None:
    """The limit and the peer of a row."""
    if "limit" in row:
        at = 1 / row["limit"]["ours_over_limit"]
        ax.plot([at], [place], MARKERS[LIMIT], color=COLORS[LIMIT])
    if "ratio" in row:
        ratio, color = row["ratio"], COLORS[PEER]
        ax.plot([ratio["low"], ratio["high"]], [place] * 2, color=color, linewidth=3)
        ax.plot([ratio["median"]], [place], MARKERS[PEER], color=color)


def _name(ax: Axes) -> None:
    """Draw our line, and say above the axes what the marks are."""
    ax.plot([], [], MARKERS[LIMIT], color=COLORS[LIMIT], label="limit")
    ax.axvline(1, color=INK, label="ours", zorder=1)
    ax.plot([], [], MARKERS[PEER], color=COLORS[PEER], label="peer")
    ax.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False,
        handletextpad=0.4, borderpad=0,
    )  # fmt: skip


def _limits(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Ends of the axis, which all marks are inside of."""
    ends = [
        row["ratio"][end] for row in rows if "ratio" in row for end in ("low", "high")
    ]
    marks = [*ends, *limits(rows), 1]
    return min(0.5, min(marks) / 2), max(2, max(marks) * 2)


def _told(module: str, rows: list[dict[str, Any]]) -> str:
    """The figure in words."""
    parts = []
    for values, what in (
        (ratios(rows), "the peers take {} times our time"),
        (limits(rows), "the limit of the machine is {} of it"),
    ):
        if values:
            ends = [shown(min(values)), shown(max(values))]
            parts.append(what.format(" to ".join(dict.fromkeys(ends))))
    count = f"{len(rows)} rows" if len(rows) > 1 else "One row"
    told = ", and ".join(parts) or "no peer was present"
    return f"{count} of the benchmarks of {module} on a logarithmic scale: {told}."
