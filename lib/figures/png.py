"""PNG of a matplotlib figure, for programs that show a notebook without its SVG."""

from __future__ import annotations

import io

from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from lib.figures.svg import render
from lib.figures.theme import saving

#: Largest PNG of one figure, in bytes.
BUDGET = 40_000

# One and a half pixels for each of CSS; fewer where the file would be too large.
_RESOLUTIONS = (144, 96, 72, 48, 24, 12)
_COLORS = 64


def still(fig: Figure, svg: str, source: str) -> bytes | None:
    """The figure on white, in few colors, with ``source`` in its metadata.

    None when the figure is no longer what ``svg`` was made of, since the two would
    then not show the same.
    """
    layout = fig.get_layout_engine()
    fig.set_layout_engine("none")  # everything stays where it is in the SVG
    try:
        if render(fig) != svg:
            return None
        sizes = (reduced(_drawn(fig, dpi), source) for dpi in _RESOLUTIONS)
        return next((png for png in sizes if len(png) <= BUDGET), None)
    finally:
        fig.set_layout_engine(layout or "none")


def reduced(png: bytes, source: str) -> bytes:
    """A PNG in few colors, with ``source`` in its metadata."""
    colors: Image.Image = Image.open(io.BytesIO(png))
    if colors.mode != "P":  # else they are few already
        colors = colors.convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE)
    small, info = io.BytesIO(), PngInfo()
    info.add_text("Source", source)
    colors.save(small, "png", optimize=True, pnginfo=info)
    return small.getvalue()


def _drawn(fig: Figure, dpi: int) -> bytes:
    full = io.BytesIO()
    with saving():
        fig.savefig(full, format="png", dpi=dpi, facecolor="white", transparent=False)
    return full.getvalue()
