"""The film: tokens that step away from what they attend to, and the heat above them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import pairwise
from math import ceil, floor
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib import heat
from lib.core.checks import Array, require_count, require_flag, require_within
from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Choice, Slider
from lib.figures.live import Exhibit, live
from lib.figures.theme import COLORS, INK, style
from lib.heat.mixture import GaussianMixture, require_mixture
from lib.sinkhorn.transport import FrozenFlowWarning, SelfTransport, self_transport

State = Mapping[str, Any]
#: Ends of ε, and of the film in time, into which one layer of the largest ε fits.
EPSILONS, HORIZON = (0.002, 4.0), 4.0
_COUNTS, _MOST = (25, 50, 100, 200), 200
LAYERS = {"Sinkhorn": 0.0, "softmax": 1.0, "exact score": 2.0}
_TOL = 1e-8  # marginal error of a layer, and the updates in which it is reached
_UPDATES = 200
_AT_ONCE = 1e300  # a tolerance that the softmax meets: no update
_ROUNDING = 1e-9  # of a number of layers
_PARTS = 32  # of the film, of which playing in a notebook takes one
_TIMES = 17  # at which the growth of the heat's own tokens is stored
_WHERE = ("on the line", "in the plane")
_HEIGHTS = GaussianMixture(np.zeros(1), np.ones(1), np.ones(1))
_GOLDEN = (np.sqrt(5) - 1) / 2
_FROZEN = (
    " In this layer tokens hardly see each other: most pay more than nine tenths of"
    " their attention to their own place."
)


def film(
    law: GaussianMixture,
    *,
    eps: float = 0.06,
    time: float = 0.0,
    tokens: int = 50,
    layer: str = "Sinkhorn",
    plane: bool = False,
    caption: str | None = None,
) -> Exhibit:
    r"""Live exhibit of tokens under :math:`x \leftarrow 2x - B(x)`, and the heat flow.

    The tokens start at the quantiles of a law, on the line or, with normal heights, in
    the plane; each layer takes ε of time. Above them stands the heat: the law at that
    time, exactly. The reader drags tokens, moves ε and the time, which also plays, and
    compares Sinkhorn attention with the softmax and with the exact score. It computes
    by the layers of :func:`lib.heat.bridge_flow`, :func:`lib.heat.softmax_step` and
    :func:`lib.heat.euler_flow`, and says when tokens freeze by the rule of
    :func:`lib.sinkhorn.self_transport`.

    Parameters
    ----------
    law : GaussianMixture
        Law at time 0; in the plane it is that across, and heights are standard normal.
    eps : float
        ε at which it opens, from 0.002 to 4.
    time : float
        Time at which it opens, from 0 to 4.
    tokens : int
        Number of tokens with which it opens, from 1 to 200.
    layer : {"Sinkhorn", "softmax", "exact score"}
        The layer with which it opens.
    plane : bool
        Whether it opens in the plane.
    caption : str, optional
        What to try, printed below.

    Returns
    -------
    Exhibit
        As :func:`lib.figures.live`.

    Raises
    ------
    ValueError
        For a law that is no mixture, another layer, or numbers out of range.
    """
    require_mixture("law", law)
    eps = require_within("eps", eps, *EPSILONS)
    time = require_within("time", time, 0, HORIZON)
    require_count("tokens", tokens, most=_MOST)
    if not isinstance(layer, str) or layer not in LAYERS:
        raise ValueError(f"layer must be one of {', '.join(LAYERS)}, got {layer!r}")
    kind = LAYERS[layer]
    plane = require_flag("plane", plane)
    counts = sorted({*_COUNTS, int(tokens)})
    spread = np.abs(law.means) + 2.6 * np.sqrt(law.variances + HORIZON)
    places = np.concatenate([_places(law, n) for n in counts])
    state = {
        "counts": counts, "places": places, "means": law.means,
        "variances": law.variances, "weights": law.weights,
        "reach": ceil(spread.max()), "top": 1.1 * law.pdf(places[:, 0]).max(),
        "carried": np.concatenate([carried(law, n) for n in counts]),
        "horizon": HORIZON, "tol": _TOL, "updates": _UPDATES,
    }  # fmt: skip
    values = {
        "eps": eps, "time": time, "tokens": float(tokens), "layer": kind,
        "plane": float(plane),
    }  # fmt: skip
    frozen = values | {"eps": 0.004, "tokens": 25.0, "time": 2.0, "layer": 0.0}
    other = values | {"eps": 0.25, "tokens": 200.0, "plane": float(not plane)}
    return live(
        "film",
        draw_film,
        state=state,
        positions=[(state, frozen), (state, other)],
        controls={
            "time": Slider("time", 0.0, HORIZON, time),
            "eps": Slider("ε", *EPSILONS, eps, log=True),
            "layer": Choice("layer", LAYERS, kind),
            "tokens": Choice(
                "tokens", {str(n): float(n) for n in counts}, float(tokens)
            ),
            "plane": Choice("tokens on a", {"line": 0, "plane": 1}, float(plane)),
        },
        kernels={
            "kernel": "sinkhorn-kernel", "update": "sinkhorn-update",
            "layer": "sinkhorn-layer", "score": "mixture-step",
            "heat": "mixture-density",
        },
        advance=advance_film,
        caption=caption,
    )  # fmt: skip


def _places(law: GaussianMixture, n: int) -> Array:
    """Tokens (n, 2): quantiles across, and normal ones in the order of a lattice."""
    levels = _levels(n)
    order = np.argsort(np.argsort((np.arange(n) * _GOLDEN + 0.25) % 1))
    return np.stack([law.ppf(levels), _HEIGHTS.ppf(levels[order])], axis=-1)


def _levels(n: int) -> Array:
    return (np.arange(n) + 0.5) / n


def carried(law: GaussianMixture, n: int) -> Array:
    """Growths of the variance of n quantiles that the heat carries, at even times."""
    sizes = [law.heat(t).ppf(_levels(n)).var() for t in np.linspace(0, HORIZON, _TIMES)]
    return np.asarray(np.subtract(sizes, sizes[0]))


def heat_adds(state: State, time: float, tokens: float, plane: float) -> float:
    """Growth of the variance of tokens that the heat carries, up to a time."""
    k = [*state["counts"]].index(round(tokens))
    stored = np.asarray(state["carried"])[_TIMES * k : _TIMES * (k + 1)]
    across = float(np.interp(time, np.linspace(0, HORIZON, _TIMES), stored))
    # Heights are normal: heat multiplies them, and their variance grows evenly.
    return (across + _begun(state, tokens)[:, 1].var() * time) / 2 if plane else across


def _begun(state: State, tokens: float) -> Array:
    """Tokens at time 0, in the plane, (n, 2)."""
    first = sum(n for n in state["counts"] if n < tokens)
    return np.asarray(state["places"][first : first + round(tokens)])


def _law(state: State) -> GaussianMixture:
    return GaussianMixture(state["means"], state["variances"], state["weights"])


def advance_film(state: State, *, time: float, eps: float, **others: float) -> State:
    """The same film some layers later, or from its beginning after the end."""
    layers = floor(time / eps + _ROUNDING) + max(1, floor(HORIZON / _PARTS / eps))
    return {**state, "time": 0.0 if time >= HORIZON else min(HORIZON, layers * eps)}


def draw_film(
    state: State, *, time: float, eps: float, layer: float, tokens: float, plane: float
) -> BookFigure:
    """Tokens at one time, and the heat at that time."""
    shown = film_tokens(state, time, eps, layer, tokens, plane)
    start = film_tokens(state, 0.0, eps, layer, tokens, plane)
    with style():
        fig = Figure(figsize=(3.8, 2.9))
        ax = fig.subplots()
        draw = _draw_plane if plane else _draw_line
        draw(ax, state, _law(state).heat(time), time, shown, start)
    grown = shown.var(axis=0).mean() - start.var(axis=0).mean()
    n, name = len(shown), next(k for k, v in LAYERS.items() if v == layer)
    many = f"{n} token{'s' * (n > 1)} {_WHERE[round(plane)]}"
    place = f"{_layers(time, eps)}: {many}, {name}, ε = {eps:.3g}."
    heated = heat_adds(state, time, tokens, plane)
    share = f" ({grown / heated:.0%})".replace("%", " %") if heated else ""
    variances = (
        f"variance has grown by {grown:.2f}; the heat itself would add"
        f" {heated:.2f}{share}."
    )
    said = film_sees(state, time, eps, layer, tokens, plane)
    return figure(
        fig,
        alt=f"{many} at time {time:.2f} of layers that take ε = {eps:.3g} each,"
        f" {name}, under the density of the heat; their {variances}",
        caption=f"Time {time:.2f}, {place} Their {variances}{said}",
    )


def _layers(time: float, eps: float) -> str:
    """The number of layers done at a time, or the two between which it lies."""
    done = floor(time / eps + _ROUNDING)
    between = time / eps - done > _ROUNDING
    return f"between layers {done} and {done + 1}" if between else f"layer {done}"


def film_tokens(
    state: State, time: float, eps: float, layer: float, tokens: float, plane: float
) -> Array:
    """Tokens at a time, (n, 1) or (n, 2); on straight lines between layers."""
    before, after = _around(state, time, eps, layer, tokens, plane)
    rest = time / eps - floor(time / eps + _ROUNDING)
    return np.asarray(before + rest * (after - before))


def film_sees(
    state: State, time: float, eps: float, layer: float, tokens: float, plane: float
) -> str:
    """Sentence on the attention in the last layer before a time."""
    if LAYERS["exact score"] == layer:
        return ""
    if tokens == 1:
        return " A single token has nobody to see, and stays where it is."
    x, _ = _around(state, time, eps, layer, tokens, plane)
    now = _attention(state, x, eps, layer)
    seen = now.effective_neighbors().mean()
    if now.frozen:
        return _FROZEN
    return f" A token attends to {seen:.1f} tokens, itself included."


def _attention(state: State, x: Array, eps: float, layer: float) -> SelfTransport:
    """The attention of a layer, whose softmax is the first iterate of Sinkhorn's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FrozenFlowWarning)
        tol = _AT_ONCE if layer == LAYERS["softmax"] else state["tol"]
        return self_transport(x, eps, tol=tol)


def _around(
    state: State, time: float, eps: float, layer: float, tokens: float, plane: float
) -> Array:
    """Tokens after the last layer before a time, and after the next, (2, n, d)."""
    x = _begun(state, tokens)[:, : 2 if plane else 1]
    done = floor(time / eps + _ROUNDING)
    if layer == LAYERS["softmax"]:
        for _ in range(done):
            x = heat.softmax_step(x, eps)
        return np.stack([x, heat.softmax_step(x, eps)])
    if layer == LAYERS["exact score"]:
        ways = [
            heat.euler_flow(each[:, None], eps, done + 1, law).states
            for each, law in zip(x.T, (_law(state), _HEIGHTS), strict=False)
        ]
        return np.concatenate(ways, axis=-1)[-2:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FrozenFlowWarning)
        return heat.bridge_flow(x, eps, done + 1, tol=state["tol"]).states[-2:]


def _draw_line(
    ax: Axes, state: State, law: GaussianMixture, time: float, x: Array, start: Array
) -> None:
    """The density of the heat as a line, that of the tokens as rings."""
    reach, top = state["reach"], state["top"]
    fine = np.linspace(-reach, reach, 161)
    ax.set(xlim=(-reach, reach), ylim=(-0.14 * top, top), xlabel="x", ylabel="density")
    ax.tick_params(labelsize=11)
    ax.fill_between(fine, law.pdf(fine), color=COLORS[4], alpha=0.2, linewidth=0)
    ax.plot(fine, law.pdf(fine), color=INK, linewidth=1.5, label="heat")
    ax.axhline(0, color=INK, linewidth=0.8)
    size = _size(len(x))
    marks: dict[str, Any] = {
        "color": COLORS[0],
        "markersize": size,
        "linestyle": "none",
    }
    ring = marks | {"marker": "o", "markerfacecolor": "none", "markeredgewidth": 1.0}
    ax.plot([], [], **ring, label="crowd")
    ax.plot(x, 0 * x - 0.045 * top, **marks, marker="o", label="token")
    ax.plot(start, 0 * start - 0.1 * top, "|", color=COLORS[4], ms=4, label="start")
    ax.legend(loc="upper right", frameon=False, handlelength=1, borderpad=0)
    x = np.sort(x, axis=0)
    if len(x) > 2 and (np.diff(x, axis=0) > 0).all():
        # The outermost tokens have a neighbor on one side only.
        dots = heat.node_density(x, np.full(len(x), 1 / len(x)))[1:-1]
        ax.plot(x[1:-1], np.minimum(dots, top), **ring)


def _draw_plane(
    ax: Axes, state: State, law: GaussianMixture, time: float, x: Array, start: Array
) -> None:
    """The density of the heat in bands, and tokens on it."""
    across = np.linspace(-state["reach"], state["reach"], 81)
    up = np.linspace(-0.75 * state["reach"], 0.75 * state["reach"], 61)
    density = _HEIGHTS.heat(time).pdf(up)[:, None] * law.pdf(across)
    shares = density / density.max()
    for low, high in pairwise((0.02, 0.1, 0.25, 0.5, 0.75, 1.01)):
        shade = 0.14 + 0.5 * low
        ax.contourf(across, up, shares, [low, high], colors=[COLORS[4]], alpha=shade)
    ax.plot(*x.T, "o", color=COLORS[0], markersize=_size(len(x)) + 1)
    ax.set(xlim=across[[0, -1]], ylim=up[[0, -1]], aspect="equal")
    ax.tick_params(labelsize=11)


def _size(n: int) -> float:
    """Of a mark, in points."""
    return float(np.clip(25 / np.sqrt(n), 1.8, 4))
