"""The plots of the book, in its style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.core.checks import Array, as_float, require_finite, require_positive
from lib.figures.axes import logarithmic, name_ends, set_axes
from lib.figures.theme import COLORS, INK, MARKERS, style

Look = dict[str, Any]  # properties of a line


def rate_plot(
    sizes: Array,
    errors: Mapping[str, Array],
    orders: Mapping[str, float],
    *,
    xlabel: str,
    ylabel: str,
) -> Figure:
    """Errors against sizes, log–log, each with a line of its predicted slope.

    Parameters
    ----------
    sizes : array_like, shape (k,)
        Positive.
    errors : mapping of name to array_like, shape (k,)
        Positive; drawn as dots and labeled at the right end.
    orders : mapping of name to float
        Predicted exponent of each curve, drawn as an ink line through its last point.
    xlabel, ylabel : str
        Axis labels, with units or symbols.

    Returns
    -------
    matplotlib.figure.Figure
        With explicit limits.

    Raises
    ------
    ValueError
        For values that are not positive, lengths that differ, or unequal names.
    """
    x, curves = _checked_curves(sizes, errors, orders)
    xlim, ylim = _log_limits(x, np.concatenate(list(curves.values())))
    with style():
        fig = Figure()
        ax = fig.subplots()
        logarithmic(ax, "xy", xlim, ylim)  # first, so that matplotlib looks for none
        ax.set(xlabel=xlabel, ylabel=ylabel)
        for i, (name, y) in enumerate(curves.items()):
            _rate_curve(ax, x, y, orders[name], name, i)
        ax.grid(True)
    return fig


def level_plot(
    measured: Array,
    predicted: Array,
    *,
    labels: Sequence[object],
    xlabel: str,
    ylabel: str,
    top: float,
) -> Figure:
    """Measured values as dots, predicted ones as short ink lines, side by side.

    Parameters
    ----------
    measured, predicted : array_like, shape (k,)
        Values at the positions 0, ..., k − 1.
    labels : sequence of length k
        Printed below the positions.
    xlabel, ylabel : str
        Axis labels, with units or symbols.
    top : float
        Upper limit of the vertical axis; the lower one is −top/3. What lies outside
        is not drawn.

    Returns
    -------
    matplotlib.figure.Figure
        With explicit limits.

    Raises
    ------
    ValueError
        For lengths that differ or a limit that is not positive.
    """
    dots, lines = _finite("measured", measured), _finite("predicted", predicted)
    if not hasattr(labels, "__len__"):
        raise ValueError(f"labels must be a list, got {labels!r}")
    if dots.ndim != 1 or dots.shape != lines.shape or len(labels) != len(dots):
        raise ValueError(
            f"measured, predicted and labels must be of one length, got shapes"
            f" {dots.shape}, {lines.shape} and length {len(labels)}"
        )
    require_positive("top", top)
    at = np.arange(len(dots))
    with style():
        fig = Figure()
        ax = fig.subplots()
        # First, so that matplotlib looks for none.
        ax.set(xlim=(-0.6, len(dots) - 0.4), ylim=(-top / 3, top))
        ax.hlines(lines, at - 0.35, at + 0.35, color=INK, linewidth=1.6)
        ax.plot(at, dots, linestyle="none", marker="o", color=COLORS[0])
        ax.axhline(0, color=COLORS[4], linewidth=0.8)
        ax.set(xlabel=xlabel, ylabel=ylabel, xticks=at)
        ax.set(xticklabels=[str(label) for label in labels])
    return fig


def curve_plot(
    x: Sequence[float] | Array,
    curves: Mapping[str, Sequence[float] | Array],
    *,
    xlabel: str,
    ylabel: str,
    xlim: tuple[float, float],
    ylim: tuple[float, float],
    log: str = "",
    dashed: Sequence[str] = (),
) -> Figure:
    """Curves over one variable, each with markers and its name at the right end.

    Parameters
    ----------
    x : array_like, shape (k,)
        Finite.
    curves : mapping of name to array_like, shape (k,)
        Finite values; at most five curves.
    xlabel, ylabel : str
        Axis labels, with units or symbols.
    xlim, ylim : tuple of float
        Limits of the axes, the lower one first.
    log : {"", "x", "y", "xy"}
        The axes that are logarithmic.
    dashed : sequence of str
        Those of ``curves`` that are dashed.

    Returns
    -------
    matplotlib.figure.Figure
        With explicit limits.

    Raises
    ------
    ValueError
        For values that are not finite or of another length, limits that an axis
        cannot have, or a dashed curve that is none.
    """
    at = _finite("x", x)
    if at.ndim != 1 or not at.size:
        raise ValueError(f"x must be a non-empty list, got shape {at.shape}")
    lines = _named_curves(at, curves)
    dashes = _dashes(lines, dashed)
    looks: dict[str, Look] = {
        name: {"color": color, "marker": marker, **dashes[name]}
        for name, color, marker in zip(lines, COLORS, MARKERS, strict=False)
    }
    with style():
        fig = Figure()
        ax = fig.subplots()
        set_axes(ax, xlabel, ylabel, xlim, ylim, log)
        if at.size <= 8 and "x" not in log:
            ax.set(xticks=at)
        every = max(1, at.size // 12)  # about twelve markers on a curve
        for name, y in lines.items():
            ax.plot(at, y, **looks[name], markevery=every)
        last = int(np.argmax(at))
        ends = [(at[last], y[last]) for y in lines.values()]
        name_ends(ax, ends, [*lines], [*looks.values()])
    return fig


def compare_plot(
    measured: Mapping[str, Sequence[npt.ArrayLike]],
    predicted: Mapping[str, Sequence[npt.ArrayLike]],
    *,
    xlabel: str,
    ylabel: str,
    xlim: tuple[float, float],
    ylim: tuple[float, float],
    log: str = "",
    dashed: Sequence[str] = (),
) -> Figure:
    """Measured values as dots with ±2 standard errors, over predicted ink lines.

    Parameters
    ----------
    measured : mapping of name to (x, y) or (x, y, stderr)
        Of one length each; at most five.
    predicted : mapping of name to (x, y)
        Lines, named at their right end unless the name is one of ``measured``.
    xlabel, ylabel : str
        Axis labels, with units or symbols.
    xlim, ylim : tuple of float
        Limits of the axes, the lower one first.
    log : {"", "x", "y", "xy"}
        The axes that are logarithmic.
    dashed : sequence of str
        Those of ``predicted`` whose lines are dashed.

    Returns
    -------
    matplotlib.figure.Figure
        With explicit limits.

    Raises
    ------
    ValueError
        For values that are not finite or of another length, limits that an axis
        cannot have, or a dashed line that is not predicted.
    """
    dots = _named_points("measured", measured, (2, 3), len(COLORS))
    lines = _named_points("predicted", predicted, (2,), 12)
    dashes = _dashes(lines, dashed)
    drawn = {name: {"color": INK, "linewidth": 1.4, **dashes[name]} for name in lines}
    marked: dict[str, Look] = {
        name: {"color": color, "marker": marker, "linestyle": "none"}
        for name, color, marker in zip(dots, COLORS, MARKERS, strict=False)
    }
    with style():
        fig = Figure()
        ax = fig.subplots()
        set_axes(ax, xlabel, ylabel, xlim, ylim, log)
        for name, (x, y) in lines.items():
            ax.plot(x, y, **drawn[name], zorder=1)
        for name, (x, y, *noise) in dots.items():
            if noise:
                color = marked[name]["color"]
                ax.errorbar(
                    x, y, 2 * noise[0], fmt="none", ecolor=color, elinewidth=1.2
                )
            ax.plot(x, y, **marked[name])
        named = {**dots, **lines}  # dots with a line are named where the line ends
        last = [int(np.argmax(x)) for x, *_ in named.values()]
        ends = [
            (x[k], y[k]) for k, (x, y, *_) in zip(last, named.values(), strict=True)
        ]
        looks = {**drawn, **marked}
        name_ends(ax, ends, [*named], [looks[name] for name in named])
    return fig


def _dashes(lines: Mapping[str, object], dashed: Sequence[str]) -> dict[str, Look]:
    """Look of each of the lines: dashed for those that are named."""
    several = isinstance(dashed, list | tuple)
    if not several or any(name not in [*lines] for name in dashed):
        raise ValueError(f"dashed must name some of {[*lines]}, got {dashed!r}")
    return {
        name: {"linestyle": (0, (2.5, 1.2))} if name in dashed else {} for name in lines
    }


def _finite(name: str, value: npt.ArrayLike) -> Array:
    """Finite numbers as an array."""
    return require_finite(name, as_float(name, value))


def _require_named(
    argument: str, given: object, what: str, most: int | None = None
) -> None:
    """Raise ValueError unless names are mapped, of which ``most`` can be drawn."""
    if not isinstance(given, Mapping) or (most and not 0 < len(given) <= most):
        many = f"1 to {most} names" if most else "names"
        raise ValueError(f"{argument} must map {many} to {what}, got {given!r}")


def _named_points(
    argument: str, given: Mapping[str, Any], lengths: tuple[int, ...], most: int
) -> dict[str, list[Array]]:
    """Arguments of :func:`compare_plot` as arrays."""
    _require_named(argument, given, "points", most)
    points = {}
    for name, value in given.items():
        if not isinstance(value, list | tuple) or len(value) not in lengths:
            raise ValueError(
                f"{argument}[{name!r}] must hold {lengths[-1]} lists, got {value!r}"
            )
        arrays = [_finite(f"{argument}[{name!r}]", item) for item in value]
        shapes = {array.shape for array in arrays}
        if len(shapes) > 1 or arrays[0].ndim != 1 or not arrays[0].size:
            raise ValueError(
                f"{argument}[{name!r}] must hold lists of one length, got {value!r}"
            )
        points[name] = arrays
    return points


def _named_curves(
    at: Array, curves: Mapping[str, Sequence[float] | Array]
) -> dict[str, Array]:
    """Curves of :func:`curve_plot` as arrays."""
    _require_named("curves", curves, "values", len(COLORS))
    lines = {}
    for name, values in curves.items():
        y = _finite(f"curves[{name!r}]", values)
        if y.shape != at.shape:
            raise ValueError(f"curves[{name!r}] must have one value for each x")
        lines[name] = y
    return lines


def _checked_curves(
    sizes: Sequence[float] | Array,
    errors: Mapping[str, Sequence[float] | Array],
    orders: Mapping[str, float],
) -> tuple[Array, dict[str, Array]]:
    """Arguments of :func:`rate_plot` as arrays."""
    x = _finite("sizes", sizes)
    if x.ndim != 1 or not (x > 0).all() or len(set(x)) < 2:
        raise ValueError(f"sizes must be positive and differ, got {sizes!r}")
    _require_named("errors", errors, "values")
    _require_named("orders", orders, "values")
    if set(errors) != set(orders) or not errors:
        raise ValueError(
            f"errors and orders must name the same curves, got {[*errors]}, {[*orders]}"
        )
    curves = {}
    for name in errors:
        y = _finite(f"errors[{name!r}]", errors[name])
        if y.shape != x.shape or not (y > 0).all():
            raise ValueError(
                f"errors[{name!r}] must be positive, one for each of sizes"
            )
        curves[name] = y
        if _finite(f"orders[{name!r}]", orders[name]).ndim:
            raise ValueError(f"orders[{name!r}] must be one number")
    return x, curves


def _log_limits(x: Array, y: Array) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of the axes of :func:`rate_plot`, with room for labels on the right."""
    with np.errstate(over="ignore"):
        room = (x.max() / x.min()) ** 0.3
        xlim = (x.min() / room**0.2, x.max() * room)
        # Below, room for the label of a curve that ends lowest, over any range.
        below = max(3.0, (y.max() / y.min()) ** 0.08)
        ylim = (y.min() / below, y.max() * 3)
    for argument, limits in (("sizes", xlim), ("errors", ylim)):
        if not (limits[0] > 0 and np.isfinite(limits[1])):
            raise ValueError(f"{argument} are too large or too small to draw")
    return xlim, ylim


def _rate_curve(
    ax: Axes, x: Array, y: Array, order: float, name: str, number: int
) -> None:
    """One curve of :func:`rate_plot`: dots, the predicted slope, and its label."""
    color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
    line = y[-1] * (x / x[-1]) ** order
    ax.plot(x, line, color=INK, linewidth=1.1, zorder=1)
    ax.plot(x, y, linestyle="none", marker=marker, color=color, zorder=2)
    ax.annotate(
        f"{name}\nslope {order:g}".replace("-", "−"),
        (x.max(), y[np.argmax(x)]),
        xytext=(9, 0),
        textcoords="offset points",
        va="center",
    )
