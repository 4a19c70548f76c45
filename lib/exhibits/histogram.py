"""The histogram: an output of attention over many networks, or inside one."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from lib.core.checks import Array, require_count, require_flag, require_within
from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Choice, Slider
from lib.figures.live import Exhibit, live
from lib.figures.theme import COLORS, INK, style
from lib.hierarchical import AttentionLimit, FiniteAttention, orthonormal_constant

State = Mapping[str, Any]
TOKENS = 16
SCALES, HEADS, WIDTHS = (0.0, 8.0), (1.0, 64.0), (16.0, 16384.0)
CHOICES = {"many networks": 0.0, "one network": 1.0}
NETWORKS = 60_000  # and heads in all: with many heads there are fewer networks
HEADS_IN_ALL = 400_000
BINS, REACH, LEAST = 40, 5.0, 3e-5  # of the axes; in standard deviations
PALE = 0.35  # of the bars, so that the bell on them is seen
FEW = 5  # bars of fewer draws are hollow: beside empty ones they look like heavy tails
# Draws of the limit on the page, and the scales at which c is known there.
LIMIT_HEADS, LIMIT_NETWORKS = 16_000, 4000
TABLE = np.linspace(*SCALES, 129)
_PARTS = 4  # pictures in a kernel until all has been drawn; each has four times as much


def histogram(
    score_scale: float = 2.0,
    *,
    heads: int = 1,
    width: int = 1024,
    one: bool = False,
    seed: int = 0,
    caption: str | None = None,
) -> Exhibit:
    r"""Live exhibit of the law of an output coordinate of one attention layer.

    A histogram grows, on a logarithmic axis: of one coordinate in more and more
    networks, or of the coordinates of one. Bars of fewer than five draws are hollow;
    what the others have above the bell is dense. Beside them stand the density of the
    limit, which is a law over networks, and the bell, the normal density with the
    variance of what has been drawn. In a browser the bells of the networks drawn before
    stay as thin lines. The reader switches between many networks and one, and moves the
    score scale, heads and width. The 16 tokens are orthogonal, of unit size. It draws
    from the law of :class:`lib.hierarchical.FiniteAttention`, exact at every width, and
    its limit is :class:`lib.hierarchical.AttentionLimit`.

    Parameters
    ----------
    score_scale : float
        σ at which it opens, from 0 to 8.
    heads : int
        H at which it opens, from 1 to 64.
    width : int
        n at which it opens, from 16 to 16384.
    one : bool
        Whether it opens with the coordinates of one network.
    seed : int
        Seed of the weights: of those that are stored, and of others on the page.
    caption : str, optional
        What to see, printed below.

    Returns
    -------
    Exhibit
        As :func:`lib.figures.live`.

    Raises
    ------
    ValueError
        For numbers out of range.
    """
    scale = require_within("score_scale", score_scale, *SCALES)
    require_count("heads", heads, least=int(HEADS[0]), most=int(HEADS[1]))
    require_count("width", width, least=int(WIDTHS[0]), most=int(WIDTHS[1]))
    one = require_flag("one", one)
    seed = require_count("seed", seed, least=0)
    state = {
        "tokens": TOKENS, "networks": NETWORKS, "in_all": HEADS_IN_ALL, "bins": BINS,
        "few": FEW, "reach": REACH, "least": LEAST, "table": constants(),
        "limit": [LIMIT_NETWORKS, LIMIT_HEADS], "weights": seed, "missing": 0,
    }  # fmt: skip
    values = {
        "one": float(one), "scale": scale, "heads": float(heads), "width": float(width),
    }  # fmt: skip
    return live(
        "histogram",
        draw_histogram,
        state=state,
        positions=[
            (state, values | {"one": float(not one)}),
            (state, values | {"heads": min(16.0 * heads, HEADS[1])}),
        ],
        controls={
            "one": Choice("draw", CHOICES, float(one)),
            "scale": Slider("σ", *SCALES, scale),
            "heads": Slider("heads H", *HEADS, float(heads), log=True, whole=True),
            "width": Slider("width n", *WIDTHS, float(width), log=True, whole=True),
        },
        kernels={"variance": "attention-variances", "density": "scale-mixture-density"},
        advance=advance_histogram,
        again=lambda state, rng, **values: {
            **state, "weights": int(rng.integers(2**32)), "missing": 0,
        },
        seed=seed,
        caption=caption,
    )  # fmt: skip


def constants() -> Array:
    """Excess kurtosis c of one head in the limit, at the scales of the table."""
    return np.array([orthonormal_constant(TOKENS, float(s)) for s in TABLE])


def count_of(state: State, one: float, heads: float, width: float) -> int:
    """Number of draws in the whole histogram."""
    if one:
        return round(width)
    return int(min(state["networks"], state["in_all"] // round(heads)))


def advance_histogram(state: State, **values: float) -> State:
    """The same draws, four times as many; after the last of them the first few."""
    missing = state["missing"]
    return {**state, "missing": missing - 1 if missing else _PARTS}


def drawn(
    state: State, *, one: float, scale: float, heads: float, width: float
) -> Array:
    """The numbers of the histogram: coordinates of one network, or one of each."""
    law = FiniteAttention(np.eye(state["tokens"]), round(width), round(heads), scale)
    rng = np.random.default_rng(state["weights"])
    count = count_of(state, one, heads, width)
    v = law.conditional_variance(1 if one else count, rng=rng)
    return np.asarray(np.sqrt(v) * rng.standard_normal(count))


def draw_histogram(
    state: State, *, one: float, scale: float, heads: float, width: float
) -> BookFigure:
    """The histogram so far, the limit, and the bell of the variance so far."""
    y = drawn(state, one=one, scale=scale, heads=heads, width=width)
    y = y[: max(1, len(y) // 4 ** state["missing"])]
    H, n = round(heads), round(width)
    limit = AttentionLimit(np.eye(state["tokens"]), H, scale, nodes=2**14)
    unit = sqrt(limit.variance())
    squares = (y**2).mean()
    with style():
        fig = Figure(figsize=(3.8, 3.0))
        _draw(fig.subplots(), state, y / unit, limit, unit, bool(one))
    kurtosis = (y**4).mean() / squares**2 - 3
    wanted = orthonormal_constant(state["tokens"], scale) / H
    whose = f"{len(y):,} " + ("coordinates of one network" if one else "networks")
    place = f"width {n}, H = {H}, σ = {scale:.3g}"
    share, tails = _two(squares / unit**2), f"excess kurtosis {_two(kurtosis)}"
    # One network has a bell, whatever its width: the limit is a law over networks.
    numbers = (
        f"{tails}, variance {share} times its mean over networks. Excess kurtosis over"
        f" networks, in the limit: {_two(wanted)}"
        if one
        else f"{tails}, in the limit {_two(wanted)}; variance {share} times the limit's"
    )
    return figure(
        fig,
        alt=f"Histogram of {whose} of {place} on a logarithmic axis, {numbers}. A line"
        " for the limit over networks, and a dashed parabola for the normal law.",
        caption=f"{whose[0].upper()}{whose[1:]}, {place}: {numbers}.",
    )


def _two(number: float) -> str:
    """With two decimals and the sign of a text."""
    return f"{round(number, 2) + 0.0:.2f}".replace("-", "−")


def _draw(
    ax: Axes, state: State, x: Array, limit: AttentionLimit, unit: float, one: bool
) -> None:
    """Bars, the limit and the bell, over numbers in units of the limit's deviation."""
    reach, least = state["reach"], state["least"]
    edges = np.linspace(-reach, reach, state["bins"] + 1)
    counts = np.histogram(x, edges)[0]
    heights = counts / (len(x) * np.diff(edges))
    pale = to_rgba(COLORS[0], PALE)
    fills = [pale if count >= state["few"] else "none" for count in counts]
    fine = np.linspace(-reach, reach, 161)
    square = (x**2).mean()

    def normal(at: Array) -> Array:
        return np.asarray(np.exp(-(at**2) / (2 * square)) / np.sqrt(2 * np.pi * square))

    middles = (edges[1:] + edges[:-1]) / 2
    above = np.maximum(heights - normal(middles), 0) * (counts >= state["few"])
    ax.set(
        xlim=(-reach, reach), ylim=(least, 2), yscale="log",
        xlabel="output / standard deviation over networks", ylabel="density",
    )  # fmt: skip
    ax.tick_params(labelsize=11)
    ax.bar(
        edges[:-1], heights, np.diff(edges) * 0.9, align="edge",
        color=fills, edgecolor=COLORS[0],
    )  # fmt: skip
    if not one:
        ax.bar(
            edges[:-1], above, np.diff(edges) * 0.9, align="edge",
            bottom=np.maximum(normal(middles), least), color=COLORS[0],
        )  # fmt: skip
    ax.plot(fine, unit * limit.density(unit * fine), color=INK, linewidth=1.5)
    ax.plot(fine, normal(fine), "--", color=COLORS[1], linewidth=1.5)
