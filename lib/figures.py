"""Figures that follow the page's theme, are described in words, and never vary."""

from __future__ import annotations

from matplotlib.figure import Figure

from lib._figures.axes import COLORS, MARKERS, STYLE, style
from lib._figures.drawings import drawing
from lib._figures.explorer import Explorer, animate, explore
from lib._figures.plots import compare_plot, curve_plot, level_plot, rate_plot
from lib._figures.svg import INK, BookFigure, render

__all__ = [
    "COLORS", "INK", "MARKERS", "BookFigure", "Explorer", "animate",
    "compare_plot", "curve_plot", "drawing", "explore", "figure", "level_plot",
    "rate_plot", "style",
]  # fmt: skip

_LEAST_ALT = 40


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
    return BookFigure(render(fig, str(STYLE)), alt, caption)


def _require_alt(alt: str) -> None:
    if not isinstance(alt, str) or len(alt.strip()) < _LEAST_ALT:
        raise ValueError(
            f"alt must be a sentence of at least 40 characters, got {alt!r}"
        )
    if not alt.strip().endswith((".", "?", "!")):
        raise ValueError(f"alt must be a full sentence with its full stop, got {alt!r}")
