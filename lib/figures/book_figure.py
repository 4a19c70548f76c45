"""A figure of the book: a drawing, its description, and its caption."""

from __future__ import annotations

import sys
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from lib.figures.axes import plain_powers
from lib.figures.markup import below, digest, picture, stored_forms
from lib.figures.png import reduced, still
from lib.figures.svg import own_ids, render
from lib.figures.theme import mark_color_maps, needs_book_colors, use_book_colors

_LEAST_ALT = 40


@dataclass(frozen=True)
class BookFigure:
    """Inline SVG with its description; the text form is the description.

    ``source`` is the matplotlib figure, from which a notebook's PNG is drawn when the
    figure is displayed; one that was changed in the meantime gives none. For a drawing
    made by hand it is the PNG itself.
    """

    svg: str
    alt: str
    caption: str | None = None
    source: Figure | bytes | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return self.alt

    def _repr_html_(self) -> str:
        key = digest(self.svg, self.alt, self.caption)
        drawing = picture(own_ids(self.svg, key), self.alt)
        return f'<figure class="book-figure">{drawing}{below(self.caption)}</figure>'

    def _repr_mimebundle_(
        self,
        include: Container[str] | None = None,
        exclude: Container[str] | None = None,
    ) -> dict[str, Any]:
        return stored_forms(self._repr_html_(), self.alt, self._still, include, exclude)

    def _still(self, note: str) -> bytes | None:
        """PNG of the drawing with a note in its metadata; None without ``source``."""
        if self.source is None:
            return None
        if isinstance(self.source, bytes):
            return reduced(self.source, note)
        return still(self.source, self.svg, note)


def figure(fig: Figure, *, alt: str, caption: str | None = None) -> BookFigure:
    """Turn a matplotlib figure into inline SVG that follows the page's theme.

    Ink and black become ``currentColor``, matplotlib's default colors those of the
    book (in ``fig`` itself), white backgrounds transparent. Identifiers are made unique
    by a digest of the content, coordinates are rounded to two decimals, and nothing
    volatile is kept: the same figure gives the same bytes. A figure of pyplot is
    closed, so that a notebook does not show it once more.

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
            raise ValueError(
                f"fig.axes[{number}] has no explicit limits: set both, as in"
                " ax.set(xlim=(0, 1), ylim=(0, 1))"
            )
    mark_color_maps(fig)
    plain_powers(fig)
    svg = render(fig)
    if needs_book_colors(svg):
        use_book_colors(fig)
        svg = render(fig)
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close(fig)
    return BookFigure(svg, alt, caption, fig)


def _require_alt(alt: str) -> None:
    if not isinstance(alt, str) or len(alt.strip()) < _LEAST_ALT:
        raise ValueError(
            f"alt must be a sentence of at least 40 characters, got {alt!r}"
        )
    if not alt.strip().endswith((".", "?", "!")):
        raise ValueError(f"alt must be a full sentence with its full stop, got {alt!r}")
