"""Drawings made by hand, which come with the package: notebooks need no file."""

from __future__ import annotations

from importlib.resources import files

from lib.figures.book_figure import BookFigure

# What each shows, in words, and what to see.
_DRAWINGS = {
    "transformer-block": (
        "A transformer block from tokens at the bottom to the law of the next token at "
        "the top; a number beside an arrow names the chapter that studies it.",
        "A block. A number beside an arrow is that of the chapter that studies it.",
    )
}


def drawing(name: str) -> BookFigure:
    """A drawing of the book by its name, ``"transformer-block"``.

    Raises ValueError for a name that no drawing has.
    """
    if not isinstance(name, str) or name not in _DRAWINGS:
        known = ", ".join(map(repr, _DRAWINGS))
        raise ValueError(f"name must be that of a drawing ({known}), got {name!r}")
    svg, png = (files("lib.figures") / f"{name}.{kind}" for kind in ("svg", "png"))
    return BookFigure(svg.read_text("utf-8"), *_DRAWINGS[name], png.read_bytes())
