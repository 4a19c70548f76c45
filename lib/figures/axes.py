"""Axes that the plots of the book share, and names at the ends of curves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, MaxNLocator, NullFormatter

from lib.core.checks import Array, as_float, require_finite

_LINE = 0.085  # the height of a line of text, in that of the axes
_RAISED = str.maketrans("0123456789-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")


def set_axes(
    ax: Axes,
    xlabel: str,
    ylabel: str,
    xlim: tuple[float, float],
    ylim: tuple[float, float],
    log: str,
) -> None:
    """Labels, limits and scales of axes, checked."""
    if not isinstance(log, str) or log not in ("", "x", "y", "xy"):
        raise ValueError(f"log must be one of '', x, y, xy, got {log!r}")
    xlim = require_limits("xlim", xlim, "x" in log)
    ylim = require_limits("ylim", ylim, "y" in log)
    logarithmic(ax, log, xlim, ylim)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    # Few enough ticks that their labels keep apart.
    if "x" not in log:
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    if "y" not in log:
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))


class _Powers(LogFormatterSciNotation):
    """Labels like 10⁻³ as plain text, which is drawn much faster than formulas are."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        label = str(super().__call__(x, pos))
        for word in ("$\\mathdefault{", "}$"):
            label = label.replace(word, "")
        power = re.compile(r"\^\{([^}]*)\}")
        label = power.sub(lambda match: match[1].translate(_RAISED), label)
        return label.replace(r"\times", "×").replace("{", "").replace("}", "")


def plain_powers(fig: Figure) -> None:
    """Write 10⁻³ where matplotlib would set a formula, whose exponent is too small."""
    for axis in (each for ax in fig.axes for each in (ax.xaxis, ax.yaxis)):
        for kind in ("major", "minor"):
            now = getattr(axis, f"get_{kind}_formatter")()
            if type(now) is LogFormatterSciNotation:
                base = getattr(axis.get_transform(), "base", 10.0)
                plain = _Powers(base, now.labelOnlyBase, now.minor_thresholds)
                getattr(axis, f"set_{kind}_formatter")(plain)


def logarithmic(
    ax: Axes, log: str, xlim: tuple[float, float], ylim: tuple[float, float]
) -> None:
    """Make the named axes logarithmic, with limits and labels."""
    ax.set(**{f"{name}scale": "log" for name in log})
    ax.set(xlim=xlim, ylim=ylim)
    for name in log:
        axis, (low, high) = {"x": (ax.xaxis, xlim), "y": (ax.yaxis, ylim)}[name]
        axis.set_major_formatter(_Powers())
        wide = high > 10 * low  # then the ticks between the powers need no labels
        between = NullFormatter() if wide else _Powers(minor_thresholds=(1, 0.4))
        axis.set_minor_formatter(between)


def require_limits(
    name: str, limits: tuple[float, float], log: bool
) -> tuple[float, float]:
    """Return ``limits`` as floats; raise ValueError unless they are an axis's ends."""
    ends = require_finite(name, as_float(name, limits))
    if ends.shape != (2,) or not ends[0] < ends[1] or (log and ends[0] <= 0):
        raise ValueError(f"{name} must be an increasing pair, got {limits!r}")
    return float(ends[0]), float(ends[1])


def name_ends(
    ax: Axes,
    ends: Sequence[tuple[float, float]],
    names: Sequence[str],
    looks: Sequence[Mapping[str, Any]],
) -> None:
    """Write names right of the axes, apart from one another.

    A thin line of its color joins each name to the place where its curve ends. Where
    ends are too close for that, a sample of each curve stands before its name. A curve
    that ends far from the right edge has its name there.
    """
    places = np.array([_in_axes(ax, *end) for end in ends])
    far = places[:, 0] < 0.7
    for i in np.flatnonzero(far).tolist():
        ax.annotate(
            names[i], places[i], (5, 0), "axes fraction",
            textcoords="offset points", va="center",
        )  # fmt: skip
    order = np.flatnonzero(~far)[np.argsort(places[~far, 1])]
    heights = places[order, 1]
    looks = [looks[i] for i in order]
    crowded = bool((np.diff(heights) < _LINE).any())
    samples = crowded and all(a != b for a, b in combinations(looks, 2))
    for height, i, look in zip(_spread(heights), order.tolist(), looks, strict=True):
        x, y = places[i]
        if samples:
            xs, ys, start = [1.04, 1.07, 1.1], [height] * 3, 1.115
            look = {**look, "markevery": [1]}
        else:
            xs, ys, start = [x, 1.045], [y, height], 1.06
            look = {"color": look["color"], "linewidth": 0.8, "marker": ""}
        ax.plot(
            xs, ys, **look, zorder=0.5, transform=ax.transAxes, clip_on=False,
        )  # fmt: skip
        ax.annotate(names[i], (start, height), xycoords="axes fraction", va="center")


def _spread(heights: Array, step: float = _LINE) -> Array:
    """Ascending heights, moved apart by a line of text, up to the top of the axes."""
    placed = heights.copy()
    for k in range(1, len(placed)):
        placed[k] = max(placed[k], placed[k - 1] + step)
    for k in range(len(placed) - 1, -1, -1):
        placed[k] = min(
            placed[k], 1.0 if k == len(placed) - 1 else placed[k + 1] - step
        )
    return placed


def _in_axes(ax: Axes, x: float, y: float) -> tuple[float, float]:
    """A point in fractions of the axes, 0 to 1; 0 for what a logarithm cannot show."""
    if ax.get_xscale() == "log":
        x = max(x, ax.get_xlim()[0])
    if ax.get_yscale() == "log":
        y = max(y, ax.get_ylim()[0])
    place = (ax.transData - ax.transAxes).transform((x, y))
    return tuple(np.clip(place, 0, 1))
