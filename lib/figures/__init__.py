"""Figures that follow the page's theme, are described in words, and never vary.

Draw with matplotlib, or with one of the plots of the book; :func:`figure` makes inline
SVG of it, with a PNG for readers whose program shows no SVG. :func:`explore` lets a
reader move the arguments of a drawing function: on a page between frames drawn
beforehand, in a kernel with the function itself. :func:`live` shows a state that moves
by itself: on a page too it is computed, by functions of lib that the site carries as
JavaScript.
"""

from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Choice, Slider
from lib.figures.drawings import drawing
from lib.figures.explorer import Explorer, explore
from lib.figures.live import Exhibit, live
from lib.figures.plots import compare_plot, curve_plot, level_plot, rate_plot
from lib.figures.theme import COLORS, INK, MARKERS, style

__all__ = [
    "COLORS", "INK", "MARKERS", "BookFigure", "Choice", "Exhibit", "Explorer",
    "Slider", "compare_plot", "curve_plot", "drawing", "explore", "figure",
    "level_plot", "live", "rate_plot", "style",
]  # fmt: skip
