"""Figures that follow the page's theme, are described in words, and never vary."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib._checks import Array

#: Stands for the ink of the page; becomes ``currentColor``.
INK = "#010203"

#: Data colors: contrast of at least 3 : 1 on the light and the dark page.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#767676")

#: Markers that repeat what the colors say.
MARKERS = ("o", "s", "^", "D", "v")

_STYLE = Path(__file__).with_name("book.mplstyle")
_LEAST_ALT = 40


class BookFigure:
    """Inline SVG with its description; the text form is the description."""

    def __init__(self, html: str, alt: str) -> None:
        self._html, self.alt = html, alt

    def __repr__(self) -> str:
        return self.alt

    def _repr_html_(self) -> str:
        return self._html


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
    for number, ax in enumerate(fig.axes):
        if ax.axison and (ax.get_autoscalex_on() or ax.get_autoscaley_on()):
            raise ValueError(f"fig.axes[{number}] has no explicit limits: set both")
    svg = _svg(fig)
    digest = hashlib.sha256(f"{svg}{alt}{caption}".encode()).hexdigest()[:8]
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    html = (
        f'<figure class="book-figure"><div role="img" aria-label="{escape(alt)}">'
        f"{_own_ids(svg, digest)}</div>{below}</figure>"
    )
    return BookFigure(html, alt)


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
    x = np.asarray(sizes, dtype=float)
    curves = {name: np.asarray(y, dtype=float) for name, y in errors.items()}
    if set(curves) != set(orders) or not curves:
        raise ValueError(f"orders must name the curves {list(curves)}, got {orders}")
    for name, y in curves.items():
        if y.shape != x.shape or not (x > 0).all() or not (y > 0).all():
            raise ValueError(f"errors[{name!r}] must be positive, one for each size")
    with style():
        fig = Figure()
        ax = fig.subplots()
        ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
        for i, (name, y) in enumerate(curves.items()):
            _rate_curve(ax, x, y, orders[name], name, i)
        every = np.concatenate(list(curves.values()))
        room = (x.max() / x.min()) ** 0.3  # for the labels on the right
        ax.set_xlim(x.min() / room**0.2, x.max() * room)
        ax.set_ylim(every.min() / 3, every.max() * 3)
        ax.grid(True)
    return fig


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


def _svg(fig: Figure) -> str:
    """SVG text of a figure, without anything that varies between two runs."""
    buffer = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with style():
        fig.savefig(buffer, format="svg", metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.S)
    svg = svg.replace(INK, "currentColor")
    # Two decimals are a hundredth of a point; text nodes (tick labels) stay as drawn.
    return re.sub(r"<[^>]*>", lambda tag: _two_decimals(tag.group()), svg)


def _two_decimals(tag: str) -> str:
    def short(number: re.Match[str]) -> str:
        text = f"{float(number.group()):.2f}".rstrip("0").rstrip(".")
        return "0" if text in ("-0", "") else text

    return re.sub(r"-?\d+\.\d{3,}", short, tag)


def _own_ids(svg: str, digest: str) -> str:
    """Drop the ids nothing refers to; prefix the others and every reference."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))

    def rename(match: re.Match[str]) -> str:
        name = match.group(1)
        return f' id="{digest}-{name}"' if name in used else ""

    svg = re.sub(r'\s+id="([^"]+)"', rename, svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{digest}-", svg)
