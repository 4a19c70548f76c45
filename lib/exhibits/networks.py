"""The networks: the angle of two tokens after random layers, in one and in many."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from lib import gram, sde
from lib.core.checks import Array, require_count, require_within
from lib.core.psd import cosines
from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Slider
from lib.figures.live import Exhibit, live
from lib.figures.theme import COLORS, INK, style

State = Mapping[str, Any]
WIDTHS, DEPTHS, TEMPERATURES = (4.0, 256.0), (0.05, 2.0), (0.25, 4.0)
BRANCH = sqrt(0.5)  # γ, and λ: γ² = λ² = ½
BINS = 20  # of the cosine, from −1 to 1
# Paths of the limit, its steps in a unit of time, and the trace at which they stop.
PATHS, STEPS, LEVEL = 4000, 64, 1e6
# Tops of the axis of shares; the lowest one that has room is taken.
TOPS = (0.1, 0.2, 0.4, 1.0)
_PARTS = 8  # of the depth, between two pictures in a kernel
RIM = 200  # networks that have a mark on the half circle
_ARROWS = (
    "The horizontal arrow is the first token, the others are the second, at the input"
    " and at the output of one network; arrows show directions, not lengths."
)


def networks(
    start: float,
    *,
    width: int = 32,
    depth: float = 1.0,
    temperature: float = 1.0,
    networks: int = 1000,
    seed: int = 0,
    caption: str | None = None,
) -> Exhibit:
    r"""Live exhibit of the cosine of two tokens through layers of shaped attention.

    Above, the directions of two tokens in their plane, at the input and after the
    layers of one network; below, the cosines of many networks of the same size, and
    their law in the limit. The reader moves width n, depth T = L/n and temperature,
    watches layer after layer, and draws all weights again. It computes by the steps of
    :func:`lib.gram.simulate` with :class:`lib.gram.ShapedLayer`, exact in law at every
    width, and by those of :func:`lib.sde.simulate` with
    :class:`lib.sde.CovarianceSDE`; γ² = λ² = ½, and there is one head with keys of
    width n.

    Parameters
    ----------
    start : float
        Cosine of the tokens at the input, from −0.99 to 0.99; both have norm √n.
    width : int
        n at which it opens, from 4 to 256.
    depth : float
        T at which it opens, layers over width, from 0.05 to 2.
    temperature : float
        :math:`\tau_0` at which it opens, from 1/4 to 4.
    networks : int
        Number of networks, from 100 to 2000.
    seed : int
        Seed of the weights: of those that are stored, and of others on the page.
    caption : str, optional
        What to see, printed below, before a sentence on the arrows.

    Returns
    -------
    Exhibit
        As :func:`lib.figures.live`.

    Raises
    ------
    ValueError
        For numbers out of range.
    """
    start = require_within("start", start, -0.99, 0.99)
    require_count("width", width, least=int(WIDTHS[0]), most=int(WIDTHS[1]))
    depth = require_within("depth", depth, *DEPTHS)
    temperature = require_within("temperature", temperature, *TEMPERATURES)
    require_count("networks", networks, least=100, most=2000)
    seed = require_count("seed", seed, least=0)
    state = {
        "start": start, "networks": networks, "bins": BINS, "tops": TOPS, "rim": RIM,
        "skip": sqrt(1 - BRANCH**2), "branch": BRANCH,
        "paths": PATHS, "steps": STEPS, "level": LEVEL,
        "weights": seed, "passed": 1.0,
    }  # fmt: skip
    values = {"width": float(width), "depth": depth, "temperature": temperature}
    wider = values | {"width": min(4.0 * width, WIDTHS[1])}
    return live(
        "networks",
        draw_networks,
        state=state,
        positions=[(state | {"passed": 0.25}, values), (state, wider)],
        controls={
            "width": Slider("width n", *WIDTHS, float(width), log=True, whole=True),
            "depth": Slider("depth T", *DEPTHS, depth),
            "temperature": Slider(
                "temperature τ₀", *TEMPERATURES, temperature, log=True
            ),
        },
        kernels={
            "layer": "chain-step", "length": "covariance-length",
            "move": "covariance-step",
        },
        advance=advance_networks,
        again=lambda state, rng, **values: {
            **state, "weights": int(rng.integers(2**32)), "passed": 1.0,
        },
        seed=seed,
        caption=f"{caption} {_ARROWS}" if isinstance(caption, str) else caption,
    )  # fmt: skip


def advance_networks(
    state: State, *, width: float, depth: float, temperature: float
) -> State:
    """The same networks an eighth of the depth later; from the input after the end."""
    passed = state["passed"]
    return {**state, "passed": 0.0 if passed >= 1 else min(1.0, passed + 1 / _PARTS)}


def draw_networks(
    state: State, *, width: float, depth: float, temperature: float
) -> BookFigure:
    """Two tokens in one network, and the cosines of many, after a part of the depth."""
    n = round(width)
    layers = round(state["passed"] * max(1, round(depth * n)))
    after = network_cosines(state, n, layers, temperature)
    limit = limit_cosines(state, layers / n, temperature)
    edges = np.linspace(-1, 1, state["bins"] + 1)
    shares, line = (np.histogram(each, edges)[0] / len(each) for each in (after, limit))
    with style():
        # Placed by hand: both have the cosine as their axis across.
        fig = Figure(figsize=(3.8, 3.3))
        fig.set_layout_engine("none")
        arrows = fig.add_axes((0.13, 0.45, 0.8, 0.53))
        pile = fig.add_axes((0.13, 0.15, 0.8, 0.28))
        _draw_arrows(arrows, state["start"], after)
        _draw_pile(pile, edges, shares, line, after[0])
    mine, many = _two(after[0]), f"{len(after):,}"
    spread = f"mean {_two(after.mean())}, standard deviation {_two(after.std())}"
    place = f"{layers} layers of width {n} at τ₀ = {temperature:.3g}"
    return figure(
        fig,
        alt="Two tokens whose directions have the cosine"
        f" {_two(state['start'])} at the input and {mine} after {place} with random"
        f" weights. Below, the cosines of {many} such networks as bars, {spread}, and"
        f" the law of the limit as a line, standard deviation {_two(limit.std())}.",
        caption=f"After {place}: cosine {mine} in one network; {spread} in {many}"
        " networks.",
    )


def _two(number: float) -> str:
    """With two decimals and the sign of a text."""
    return f"{round(number, 2) + 0.0:.2f}".replace("-", "−")


def network_cosines(state: State, n: int, layers: int, temperature: float) -> Array:
    """Cosines of the two tokens after some layers of each network, (networks,)."""
    if layers == 0:
        return np.full(state["networks"], state["start"])
    layer = gram.ShapedLayer(n, n, state["skip"], state["branch"], temperature)
    run = gram.simulate(
        _first(state), layer, layers, paths=state["networks"], save_every=layers,
        rng=np.random.default_rng(state["weights"]),
    )  # fmt: skip
    return cosines(run.states[-1])[1][:, 0, 1]


def limit_cosines(state: State, time: float, temperature: float) -> Array:
    """Cosines of the two tokens on paths of the limit, (paths,), always the same."""
    if time == 0:
        return np.full(state["paths"], state["start"])
    steps = max(1, round(time * state["steps"]))
    run = sde.simulate(
        sde.CovarianceSDE(state["branch"], temperature), _first(state), time, steps,
        paths=state["paths"], rng=np.random.default_rng(0), save_every=steps,
        level=state["level"],
    )  # fmt: skip
    return cosines(run.states[-1])[1][:, 0, 1]


def _first(state: State) -> Array:
    """Gram matrix at the input."""
    return np.array([[1.0, state["start"]], [state["start"], 1.0]])


def _draw_arrows(ax: Axes, start: float, after: Array) -> None:
    """Half a circle of directions: across is the cosine with the first token."""
    ax.set(xlim=(-1, 1), ylim=(0, 1.15), aspect="equal", anchor="S")
    ax.axis("off")
    turn, around = np.linspace(0, np.pi, 97), np.arccos(after[:RIM])
    ax.plot(np.cos(turn), np.sin(turn), color=COLORS[4], linewidth=0.8)
    marks = np.stack([np.cos(around), np.sin(around)], -1)[:, None]  # (rim, 1, 2)
    ends = marks * np.array([[1.01], [1.06]])
    codes = [Path.MOVETO, Path.LINETO] * len(marks)
    rim = PathPatch(
        Path(ends.reshape(-1, 2), codes), facecolor="none", edgecolor=COLORS[0],
        linewidth=0.6, alpha=0.6, clip_on=False,
    )  # fmt: skip
    ax.add_patch(rim)
    arrows = {"": (0.0, INK), "in": (np.arccos(start), COLORS[4])}
    arrows |= {"out": (around[0], COLORS[1])}
    for name, (angle, color) in arrows.items():
        tip = float(np.cos(angle)), float(np.sin(angle))
        ax.annotate(
            "", tip, (0, 0), annotation_clip=False,
            arrowprops={
                "arrowstyle": "-|>,head_width=0.25,head_length=0.5", "color": color,
                "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0,
            },
        )  # fmt: skip
        if name != "in" or abs(angle - around[0]) > 0.2:
            ax.text(
                1.13 * tip[0], 1.13 * tip[1], name, color=color, size=11, ha="center",
                va="center",
            )  # fmt: skip
    ax.plot([after[0]] * 2, [0, np.sin(around[0])], "--", color=COLORS[1], linewidth=1)


def _draw_pile(
    ax: Axes, edges: Array, shares: Array, line: Array, cosine: float
) -> None:
    """Shares of the networks by their cosine; the bar of the one above is marked."""
    top = next(each for each in TOPS if max(shares.max(), line.max()) <= each)
    ax.set(xlim=(-1, 1), ylim=(0, top), xticks=[-1, -0.5, 0, 0.5, 1], yticks=[0, top])
    ax.tick_params(labelsize=11)
    ax.set_xlabel("cosine", labelpad=1)
    mine = np.clip(np.searchsorted(edges, cosine, "right") - 1, 0, len(shares) - 1)
    colors = [COLORS[0]] * len(shares)
    colors[mine] = COLORS[1]
    ax.bar(edges[:-1], shares, np.diff(edges) * 0.9, align="edge", color=colors)
    ax.stairs(line, edges, color=INK, linewidth=1.5, baseline=None)
