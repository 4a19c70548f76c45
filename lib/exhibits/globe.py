"""The globe: tokens on the sphere under attention, and the staircase they climb."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.core.checks import Array, require_flag, require_within
from lib.figures.axes import logarithmic
from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Choice, Slider
from lib.figures.live import Exhibit, live
from lib.figures.theme import COLORS, INK, style
from lib.sphere.crowd import crowd_state
from lib.sphere.field import simulate
from lib.sphere.geometry import uniform_tokens, unit_tokens

State = Mapping[str, Any]
#: Ends of the logarithmic axis of time.
FIRST, LAST = 0.1, 1e4
# Tokens within this chord belong together; groups that last are much narrower.
RADIUS = 0.25
_MOST, _HOTTEST = 256, 100.0
_SIGNS = {"+I attracts": 1.0, "−I repels": -1.0}
_TURN, _TILT = 0.6, 0.4  # of the eye, as the script has it at first


def globe(
    x0: npt.ArrayLike,
    beta: float = 9.0,
    opens: float = 8.0,
    *,
    seed: int = 0,
    rests: bool = False,
    caption: str | None = None,
) -> Exhibit:
    r"""Live exhibit of tokens on the sphere :math:`\mathbb S^2` under attention.

    The reader drags tokens, turns the globe, moves β and the number of tokens, and
    reverses the sign of the value matrix; energy and effective number of clusters are
    drawn against logarithmic time (:func:`lib.sphere.crowd_state`). It computes by
    :func:`lib.sphere.simulate`.

    Parameters
    ----------
    x0 : array_like, shape (n, 3)
        Unit tokens at time 0, at most 256.
    beta : float
        Inverse temperature at which it opens, from 0 to 100.
    opens : float
        Time at which it opens, from 0.1 to 1000.
    seed : int
        Seed of what the reader draws anew.
    rests : bool
        Whether it opens at rest, for the reader to reverse: the stored picture with
        :math:`W^V = -I` then goes back by the time that has passed, to the start.
    caption : str, optional
        What to see, printed below.

    Returns
    -------
    Exhibit
        As :func:`lib.figures.live`.

    Raises
    ------
    ValueError
        For tokens of another shape or off the sphere, or numbers out of range.
    """
    x = unit_tokens("x0", x0)
    if x.ndim != 2 or x.shape[1] != 3 or len(x) > _MOST:
        raise ValueError(f"x0 must have shape (n, 3), n ≤ {_MOST}, got {x.shape}")
    beta = require_within("beta", beta, 0, _HOTTEST)
    opens = require_within("opens", opens, FIRST, 1000)
    rests = require_flag("rests", rests)
    first = _begin(x, beta, 1.0) | {"rests": float(rests)}
    opening = _run(first, beta, 1.0, opens)
    late = _run(opening, beta, 1.0, 20 * opens)
    apart = _begin(opening["x"], beta, -1.0)
    if rests:
        apart = _run(apart, beta, -1.0, opens)
        apart["said"] = f" {opens:g} forward, then {opens:g} back: the start again."
    else:
        apart = _run(apart, beta, -1.0, 30.0)
    values = {"beta": beta, "value": 1.0, "tokens": float(len(x))}
    return live(
        "globe",
        draw_globe,
        state=opening,
        positions=[
            (first, values), (late, values), (apart, values | {"value": -1.0}),
        ],
        controls={
            "beta": Slider("β", 0.1, _HOTTEST, beta, log=True, zero=True),
            "tokens": Slider(
                "tokens", 1.0, float(_MOST), float(len(x)), log=True, whole=True
            ),
            "value": Choice("value matrix V", _SIGNS, 1.0),
        },
        kernels={"step": "sphere-step", "crowd": "sphere-crowd"},
        advance=advance_globe,
        again=lambda state, rng, **values: _begin(
            uniform_tokens(round(values["tokens"]), 3, rng=rng),
            values["beta"],
            values["value"],
        ),
        seed=seed,
        caption=caption,
    )  # fmt: skip


def advance_globe(state: State, *, beta: float, value: float, tokens: float) -> State:
    """The state a twelfth of a decade later, begun anew where a number has changed."""
    now = _changed(state, beta, value, tokens)
    return _run(now, beta, value, min(LAST, now["time"] * 10 ** (1 / 12)), 1)


def draw_globe(state: State, *, beta: float, value: float, tokens: float) -> BookFigure:
    """The globe at one time, and beside it how energy and clusters came there."""
    state = _changed(state, beta, value, tokens)
    n, time = len(state["x"]), state["time"]
    height, count = state["heights"][-1], state["clusters"][-1]
    with style():
        # Placed by hand: to look for the best places takes longer than all the rest.
        fig = Figure(figsize=(4.2, 2.5))  # of a phone, whose labels are then 11 px
        fig.set_layout_engine("none")
        tokens_at, *charts = (
            fig.add_axes(each)
            for each in (
                (0, 0.03, 0.56, 0.94),
                (0.67, 0.66, 0.27, 0.3),
                (0.67, 0.2, 0.27, 0.3),
            )
        )
        near = crowd_state(state["x"], beta, state["radius"])["neighbors"]
        _draw_tokens(tokens_at, state["x"], near)
        _draw_history(charts[0], state, "heights", "energy", (0, 1.05), "x")
        _draw_history(charts[1], state, "clusters", "clusters", (0.8, 300), "xy")
        charts[1].set_xlabel("time")
    sign = "attract" if value > 0 else "repel"
    energy = f"now {height:.2f} of its largest value" if beta else "constant for β = 0"
    return figure(
        fig,
        alt=f"A globe with {n} tokens that {sign} one another at time {time:.3g} for"
        f" β = {beta:g}: about {count:.3g} clusters. Beside it, against logarithmic"
        f" time, the energy, {energy}, and the effective number of clusters.",
        caption=f"β = {beta:g}, V = {'+' if value > 0 else '−'}I, time {time:.3g}:"
        f" about {count:.3g} clusters of {n} tokens.{state.get('said', '')}",
    )


def _changed(state: State, beta: float, value: float, tokens: float) -> State:
    """The state, or its tokens at the beginning under what the reader changed.

    Tokens that are missing are drawn from a generator seeded by their number.
    """
    x, n = np.asarray(state["x"]), round(tokens)
    if len(x) == n and state["under"] == [beta, value]:
        return state
    if len(x) < n:
        more = uniform_tokens(n - len(x), 3, rng=np.random.default_rng(n))
        x = np.concatenate([x, more])
    return _begin(x[:n], beta, value)


def _begin(x: Array, beta: float, value: float) -> dict[str, Any]:
    """State of tokens at the left end of the axis of time, where none has moved."""
    now = crowd_state(x, beta, RADIUS)
    return {
        "x": x,
        "time": FIRST,
        "times": [FIRST],
        "heights": [float(now["height"])],
        "clusters": [float(now["clusters"])],
        "radius": RADIUS,
        "under": [beta, value],
        "axis": [FIRST, LAST],
        "rests": 0.0,
        "eye": [_TURN, _TILT],
    }


def _run(
    state: State, beta: float, value: float, until: float, per_decade: int = 16
) -> dict[str, Any]:
    """The state at a later time, and what was measured on the way."""
    move = partial(simulate, beta=beta, value=value * np.eye(3))
    x, time = state["x"], state["time"]
    kept: dict[str, list[float]] = {
        name: [*state[name]] for name in ("times", "heights", "clusters")
    }
    decades = np.log10(until / time)
    stops = np.geomspace(time, until, max(2, ceil(decades * per_decade) + 1))[1:]
    for stop in stops.tolist() if until > time else []:
        span = stop - time
        steps = ceil(span * max(4.0, beta / 4))
        x = move(x, horizon=span, steps=steps, save_every=steps).states[-1]
        time = stop
        now = crowd_state(x, beta, state["radius"])
        kept["times"].append(time)
        kept["heights"].append(float(now["height"]))
        kept["clusters"].append(float(now["clusters"]))
    return {**state, "x": x, "time": time, **kept}


def _draw_tokens(ax: Axes, x: Array, near: Array) -> None:
    """Discs whose area is the number of tokens there, seen from a fixed eye."""
    circle = np.linspace(0, 2 * np.pi, 97)
    ax.plot(np.cos(circle), np.sin(circle), color=INK, linewidth=0.8)
    for level in (-0.5, 0.0, 0.5):
        around = np.sqrt(1 - level**2)
        ring = np.stack(
            [around * np.cos(circle), around * np.sin(circle), 0 * circle + level], -1
        )
        across, up, depth = _seen(ring)
        hidden = np.flatnonzero(depth[:-1] < 0)
        if len(hidden):  # begin behind the globe, where the part in front is whole
            turned = np.roll(np.stack([across, up, depth])[:, :-1], -hidden[-1], axis=1)
            across, up = turned[:2, turned[2] >= 0]
        ax.plot(across, up, color=COLORS[4], linewidth=0.5)
    across, up, depth = _seen(x)
    for face, side in (("none", depth < 0), (COLORS[0], depth >= 0)):
        for count in np.unique(near[side]).tolist():
            there = side & (near == count)
            ax.plot(
                across[there], up[there], "o", color=COLORS[0], markerfacecolor=face,
                markersize=2.2 * np.sqrt(1 + count), markeredgewidth=0.6,
            )  # fmt: skip
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
    ax.axis("off")


def _seen(x: Array) -> tuple[Array, Array, Array]:
    """Across, up and depth of points of the sphere; depth is positive in front."""
    c, s, ct, st = np.cos(_TURN), np.sin(_TURN), np.cos(_TILT), np.sin(_TILT)
    across = c * x[..., 0] - s * x[..., 1]
    back = s * x[..., 0] + c * x[..., 1]
    return across, ct * x[..., 2] - st * back, -(st * x[..., 2] + ct * back)


def _draw_history(
    ax: Axes, state: State, name: str, label: str, ylim: tuple[float, float], log: str
) -> None:
    logarithmic(ax, log, (FIRST, LAST), ylim)
    ax.set_ylabel(label)
    ax.tick_params(labelsize=11)
    ax.plot(state["times"], state[name], color=INK)
    ax.plot(state["times"][-1], state[name][-1], "o", color=COLORS[0])
