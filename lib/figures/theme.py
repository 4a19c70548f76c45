"""The style of the book: ink, colors, markers; and what puts other figures into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import is_color_like, to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure

#: Stands for the ink of the page; becomes ``currentColor``.
INK = "#010203"

#: Data colors: contrast of at least 3 : 1 on the light and the dark page.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#767676")

#: Markers that repeat what the colors say.
MARKERS = ("o", "s", "^", "D", "v")

#: File with the settings of matplotlib.
STYLE = Path(__file__).with_name("book.mplstyle")

# What matplotlib's ten default colors become: those of the book, and five more of the
# same contrast.
_MORE = ("#7B61C9", "#997700", "#1B8FA6", "#A0522D", "#E0457B")
_DEFAULT = mpl.rcParamsDefault["axes.prop_cycle"].by_key()["color"]
_BOOK = {to_hex(old): new for old, new in zip(_DEFAULT, COLORS + _MORE, strict=True)}

#: Mark of what has the colors of a color map.
MAPPED = "mapped"

_PAINTED = (
    "color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor",
)  # fmt: skip


@contextmanager
def saving() -> Iterator[None]:
    """Save a figure in the style of the book, with the layout and cycle that it has."""
    kept: dict[Any, Any] = {
        # matplotlib would give a figure without a layout engine this one for good.
        "figure.constrained_layout.use": False,
        # The color "C7" is looked up when it is drawn.
        "axes.prop_cycle": mpl.rcParams["axes.prop_cycle"],
    }
    with mpl.rc_context(kept, fname=STYLE):
        yield


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of the book inside a ``with`` block, and only there."""
    with mpl.rc_context(fname=STYLE):
        yield


def mark_color_maps(fig: Figure) -> None:
    """Mark what has the colors of a color map: they are data, and stay."""
    for ax in fig.axes:
        for artist in ax.collections:
            if artist.get_array() is not None:
                artist.set_gid(MAPPED)


def needs_book_colors(svg: str) -> bool:
    """Say whether a drawing has one of the default colors of matplotlib."""
    return any(color in svg for color in _BOOK)


def use_book_colors(fig: Figure) -> None:
    """Give what is drawn in a default color of matplotlib that of the book instead."""
    for artist in fig.findobj():
        arrow = getattr(artist, "arrow_patch", None)
        for each in (artist, arrow) if arrow else (artist,):
            for name in () if each.get_gid() == MAPPED else _PAINTED:
                _repaint(each, name)


def _repaint(artist: Artist, name: str) -> None:
    get, put = (getattr(artist, f"{verb}_{name}", None) for verb in ("get", "set"))
    if get is None or put is None:
        return
    now = get()
    new = _book_color(now)
    if new is not now:
        put(new)


def _book_color(given: Any) -> Any:
    """Return the book's colors in place of those of matplotlib, others as given."""
    if isinstance(given, np.ndarray) and given.ndim == 2:
        old = [tuple(color) for color in given]
        new = [_book_color(color) for color in old]
        return given if new == old else new
    if not is_color_like(given) or (named := _BOOK.get(to_hex(given))) is None:
        return given
    return (*to_rgb(named), to_rgba(given)[3])
