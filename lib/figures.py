"""Figures that follow the page's theme, are described in words, and never vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib._checks import Array, as_float, require_finite, require_positive
from lib._explorer import Explorer, explore
from lib._svg import INK, BookFigure, render

__all__ = [
    "COLORS", "INK", "MARKERS", "BookFigure", "Explorer",
    "explore", "figure", "level_plot", "rate_plot", "style",
]  # fmt: skip

#: Data colors: contrast of at least 3 : 1 on the light and the dark page.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#767676")

#: Markers that repeat what the colors say.
MARKERS = ("o", "s", "^", "D", "v")

_STYLE = Path(__file__).with_name("book.mplstyle")
_LEAST_ALT = 40


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of the book inside a ``with`` block, and only there."""
    with mpl.rc_context(fname=_STYLE):
        yield


def figure(fig: Figure, *, alt: str, caption: str | None = None) -> BookFigure:
    """Turn a matplotlib figure into inline SVG that follows the page's theme.

    The ink becomes ``currentColor``, identifiers are made unique by a digest of the
    content, coordinates are rounded to two decimals, and nothing volatile is kept:
    the same figure gives the same bytes.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
        Drawn with explicit axis limits.
    alt : str
        What the figure shows, a full sentence of at least 40 characters.
    caption : str, optional
        What to see, printed below.

    Returns
    -------
    BookFigure
        Its ``_repr_html_()`` is the static form.

    Raises
    ------
    ValueError
        For a description that is too short or no sentence, or an axis whose limits
        were left to matplotlib.
    """
    if not isinstance(fig, Figure):
        raise ValueError(f"fig must be a matplotlib Figure, got {type(fig).__name__}")
    _require_alt(alt)
    if not isinstance(caption, str | None):
        raise ValueError(f"caption must be a text, got {caption!r}")
    for number, ax in enumerate(fig.axes):
        if ax.axison and (ax.get_autoscalex_on() or ax.get_autoscaley_on()):
            raise ValueError(f"fig.axes[{number}] has no explicit limits: set both")
    return BookFigure(render(fig, str(_STYLE)), alt, caption)


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
        ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
        ax.set(xlim=xlim, ylim=ylim)  # first, so that matplotlib looks for none
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
    dots = require_finite("measured", as_float("measured", measured))
    lines = require_finite("predicted", as_float("predicted", predicted))
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


def _checked_curves(
    sizes: Sequence[float] | Array,
    errors: Mapping[str, Sequence[float] | Array],
    orders: Mapping[str, float],
) -> tuple[Array, dict[str, Array]]:
    """Arguments of :func:`rate_plot` as arrays."""
    x = require_finite("sizes", as_float("sizes", sizes))
    if x.ndim != 1 or not (x > 0).all() or len(set(x)) < 2:
        raise ValueError(f"sizes must be positive and differ, got {sizes!r}")
    for argument, value in (("errors", errors), ("orders", orders)):
        if not isinstance(value, Mapping):
            raise ValueError(f"{argument} must map names to values, got {value!r}")
    if set(errors) != set(orders) or not errors:
        raise ValueError(
            f"errors and orders must name the same curves, got {[*errors]}, {[*orders]}"
        )
    curves = {}
    for name in errors:
        y = require_finite("errors", as_float(f"errors[{name!r}]", errors[name]))
        if y.shape != x.shape or not (y > 0).all():
            raise ValueError(
                f"errors[{name!r}] must be positive, one for each of sizes"
            )
        curves[name] = y
        slope = require_finite("orders", as_float(f"orders[{name!r}]", orders[name]))
        if slope.ndim:
            raise ValueError(f"orders[{name!r}] must be one number")
    return x, curves


def _log_limits(x: Array, y: Array) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of the axes of :func:`rate_plot`, with room for labels on the right."""
    with np.errstate(over="ignore"):
        room = (x.max() / x.min()) ** 0.3
        xlim = (x.min() / room**0.2, x.max() * room)
        ylim = (y.min() / 3, y.max() * 3)
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
        fontsize=10,
    )


def _require_alt(alt: str) -> None:
    if not isinstance(alt, str) or len(alt.strip()) < _LEAST_ALT:
        raise ValueError(
            f"alt must be a sentence of at least 40 characters, got {alt!r}"
        )
    if not alt.strip().endswith((".", "?", "!")):
        raise ValueError(f"alt must be a full sentence with its full stop, got {alt!r}")
