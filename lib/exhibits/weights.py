"""The weights: what a query takes of each picture, and a polynomial in its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.attention import softmax, softmax_expansion
from lib.core.checks import (
    Array,
    as_float,
    require_choice,
    require_count,
    require_finite,
    require_square,
    require_within,
)
from lib.exhibits.pictures import pixels, require_pictures, stored
from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Choice, Slider
from lib.figures.live import Exhibit, live
from lib.figures.theme import COLORS, INK, style

State = Mapping[str, Any]
_TEMPERATURES = (1 / 64, 4.0)
# Tops of the axis of weights; the lowest one that has room is taken. Between them is
# the step from "all weights count" to "one counts": on either, hotter is flatter.
_TOPS = (0.4, 1.0)


def weights(
    pictures: npt.ArrayLike,
    logits: npt.ArrayLike,
    names: Sequence[str],
    *,
    temperature: float = 0.06,
    order: int = 1,
    query: int = 0,
    caption: str | None = None,
) -> Exhibit:
    r"""Live exhibit of the softmax weights of one query, beside their expansion.

    Under each picture stands its exact weight, a bar, and the Taylor polynomial of the
    weights in the scores, a line. The reader moves the temperature, chooses the order,
    and taps or clicks another query. It computes by :func:`lib.attention.softmax` and
    :func:`lib.attention.softmax_expansion`.

    Parameters
    ----------
    pictures : array_like, shape (m, side, side)
        Gray levels in [0, 1]: the tokens.
    logits : array_like, shape (m, m)
        Scores at temperature 1, queries along rows.
    names : sequence of str, length m
        What the pictures show.
    temperature : float
        Where it opens, from 1/64 to 4.
    order : {0, 1, 2, 3}
        Degree of the polynomial with which it opens.
    query : int
        Index of the query with which it opens.
    caption : str, optional
        What to see, printed below.

    Returns
    -------
    Exhibit
        As :func:`lib.figures.live`.

    Raises
    ------
    ValueError
        For shapes that do not fit, gray levels or numbers out of range.
    """
    tiles, scores = _tokens(pictures, logits, names)
    temperature = require_within("temperature", temperature, *_TEMPERATURES)
    order = require_choice("order", order, range(4))
    query = require_count("query", query, least=0, most=len(names) - 1)
    hotter = {"temperature": 4 * temperature, "order": order, "query": query}
    state = {
        "logits": scores,
        "pictures": [stored(tile) for tile in tiles],
        "names": [*names],
        "tops": _TOPS,
    }
    return live(
        "weights",
        draw_weights,
        state=state,
        positions=[(state | {"pictures": []}, hotter)],
        controls={
            "temperature": Slider("τ₀", *_TEMPERATURES, temperature, log=True),
            "order": Choice(
                "order of the polynomial", {str(k): float(k) for k in range(4)}, order
            ),
            "query": Choice(
                "query", {name: float(k) for k, name in enumerate(names)}, query
            ),
        },
        kernels={"expand": "softmax-expansion"},
        caption=caption,
    )


def _tokens(
    pictures: npt.ArrayLike, logits: npt.ArrayLike, names: Sequence[str]
) -> tuple[Array, Array]:
    """Pictures and scores as arrays; ValueError unless there is one name for each."""
    scores = require_finite(
        "logits", require_square("logits", as_float("logits", logits))
    )
    tiles = require_pictures(pictures)
    if not hasattr(names, "__len__") or not all(isinstance(n, str) for n in names):
        raise ValueError(f"names must be a list of texts, got {names!r}")
    if scores.ndim != 2 or len({*map(len, (tiles, scores, names))}) > 1:
        raise ValueError(
            "pictures, logits and names must be of one length, got shapes"
            f" {tiles.shape}, {scores.shape} and {len(names)} names"
        )
    return tiles, scores


def draw_weights(
    state: State, *, temperature: float, order: float, query: float
) -> BookFigure:
    """Bars of the exact weights, lines of the polynomial, and the pictures below."""
    names, degree = state["names"], round(order)
    row = state["logits"][round(query)] / temperature
    exact, polynomial = softmax(row), softmax_expansion(row, degree)
    top = next(each for each in (*_TOPS, 1.0) if exact.max() <= each)
    at = np.arange(len(names))
    with style():
        fig = Figure(figsize=(4.2, 2.4))
        ax = fig.subplots()
        ax.set(xlim=(-0.6, len(names) - 0.4), ylim=(-0.72 * top, 1.05 * top))
        ax.bar(at, exact, width=0.62, color=COLORS[0])
        ax.hlines(
            np.clip(polynomial, -0.375 * top, 1.05 * top), at - 0.42, at + 0.42,
            color=COLORS[1], linewidth=2,
        )  # fmt: skip
        ax.tick_params(labelsize=11)
        ax.axhline(0, color=INK, linewidth=0.8)
        ax.axhline(1 / len(names), color=INK, linewidth=0.8, linestyle="--")
        ax.set(yticks=[0, top / 2, top], ylabel="weight", xticks=[])
        ax.spines["bottom"].set_visible(False)
        for i, picture in enumerate(state["pictures"]):
            _place(ax, picture, i, top)
    gap = np.abs(exact - polynomial).max()
    return figure(
        fig,
        alt=f"Query {names[round(query)]} at τ₀ = {temperature:.3g}: the weights of"
        f" {len(names)} garments, from {exact.min():.2f} to {exact.max():.2f}, as bars,"
        f" and the polynomial of order {degree} as lines, with the largest error"
        f" {gap:.2g}.",
        caption=f"Query: {names[round(query)]}; τ₀ = {temperature:.3g}, order {degree}."
        " Bars: exact weights. Lines: the polynomial. Dashed: equal weights.",
    )


def _place(ax: Axes, picture: str, at: int, top: float) -> None:
    """A picture below its bar."""
    ax.imshow(
        pixels(picture), extent=(at - 0.46, at + 0.46, -0.72 * top, -0.39 * top),
        interpolation="none", aspect="auto",
    )  # fmt: skip
