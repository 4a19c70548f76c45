"""The planes: two numbers that go to infinity, and what is between the two orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.special import betainc, digamma, ndtr, polygamma

from lib import circle, heat
from lib.core.checks import Array, require_choice, require_positive, require_within
from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Choice, Slider
from lib.figures.live import Exhibit, live
from lib.figures.theme import COLORS, INK, style
from lib.regimes import numbers

State = Mapping[str, Any]
SIDE = 41  # values along each axis of a plane
DENSE = 8.0  # rows along a front are denser beside it by a factor of sinh(8)/8


class Plane(NamedTuple):
    """A pair of numbers, what is measured of them, and what decides."""

    decides: str
    across: tuple[str, float, float]  # name and ends of the axis, logarithmic
    up: tuple[str, float, float]
    measured: str
    values: Callable[[Array, Array], Array]  # of columns and rows
    front: Callable[[Array], Array] | None = None  # up, where the combination is 1
    half: float = 0.0  # what is half as blue as can be; for shares ½ is
    unit: str = " %"
    # Of a wide front the limit, which depends on the combination.
    wide: Callable[[Array], Array] | None = None
    # A sharp front that the rows of its grid follow, dense beside it, where values that
    # are interpolated between rows of one height would be wrong.
    along: Callable[[Array], Array] | None = None


def _lengths(depth: Array, width: Array) -> Array:
    """Share of linear networks that keep a token's squared length within a factor 2."""
    mean = depth * (digamma(width / 2) - np.log(width / 2))
    spread = np.sqrt(depth * polygamma(1, width / 2))
    ends = [(sign * np.log(2) - mean) / spread for sign in (1, -1)]
    return np.asarray(ndtr(ends[0]) - ndtr(ends[1]))


def _kurtosis(heads: Array, width: Array) -> Array:
    """Excess kurtosis of an output of four tokens."""
    nodes = numbers.score_nodes(4, 1.0)
    one = [numbers.kurtosis(n, 1, n, 4.0, 1.0, nodes)["given"] for n in width[:, 0]]
    return np.asarray(np.array(one)[:, None] / heads)


def _heat(tokens: Array, inverse: Array) -> Array:
    """Share of heat that a step ε gives m tokens at the quantiles of a Gaussian."""
    x = np.linspace(-6, 6, 97)
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    scale = tokens**2 / inverse
    share = heat.grid_share(np.maximum(scale[..., None] * density**2, 1e-12))
    return np.asarray(np.sum(share * density, axis=-1) * (x[1] - x[0]))


def _steps(horizon: Array, inverse: Array) -> Array:
    """Relative error of the variance from N(0, 1)."""
    errors = np.zeros(np.broadcast_shapes(horizon.shape, inverse.shape))
    for row, eps in zip(errors, 1 / inverse[:, 0], strict=True):
        count = np.maximum(1, np.round(horizon[0] / eps)).astype(int)
        run = heat.gaussian_flow([[1.0]], float(eps), int(count.max()))
        exact = 1 + count * eps
        row[:] = 1 - run.states[count, 0, 0] / exact
    return np.abs(errors)


def _angle(time: Array, beta: Array) -> Array:
    """Angle of two clusters that began at a right angle, over that angle."""
    angle = np.linspace(np.pi / 2, 1e-3, 2001)
    angles = np.zeros(np.broadcast_shapes(time.shape, beta.shape))
    for row, b in zip(angles, beta[:, 0], strict=True):
        rate = 2 * np.sin(angle) / (1 + np.exp(b * (1 - np.cos(angle))))
        steps = (1 / rate[1:] + 1 / rate[:-1]) / 2 * -np.diff(angle)
        passed = np.append(0, np.cumsum(steps))
        row[:] = np.interp(time[0], passed, angle) / angle[0]
    return angles


def _halfway(time: Array) -> Array:
    """β at which the angle of two such clusters is halved at a time."""
    angle, beta = np.linspace(np.pi / 2, np.pi / 4, 1001), np.linspace(0.5, 40, 800)
    slow = (1 + np.exp(beta[:, None] * (1 - np.cos(angle)))) / (2 * np.sin(angle))
    return np.asarray(np.interp(time, np.trapezoid(slow, -angle, axis=1), beta))


def _own(tokens: Array, beta: Array) -> Array:
    """Weight of a token on itself among orthogonal ones."""
    return np.asarray(numbers.own_weight(tokens, beta))


def _hemisphere(dimension: Array, tokens: Array) -> Array:
    """Probability that uniform tokens lie in one hemisphere.

    Between whole numbers the binomial sum goes on as an incomplete beta function.
    """
    more = tokens - dimension
    return np.where(more > 0, betainc(np.maximum(more, 1e-9), dimension, 0.5), 1.0)


def _bumps(time: Array, tokens: Array) -> Array:
    """Largest of six modes of random tokens on a circle at β = 5: measured."""
    rng, steps = np.random.default_rng(6500), 48
    logs = np.log(tokens[:, 0])
    some, means = np.linspace(logs[0], logs[-1], 11), []
    for m in np.round(np.exp(some)).astype(int):
        theta = rng.uniform(0, 2 * np.pi, (max(4, 4096 // m), m))
        run = circle.simulate(theta, 5, float(time[0, -1]), steps)
        modes = np.abs(circle.moments(run.states, 6)[..., 1:]).max(axis=-1)
        means.append(np.interp(time[0], run.times, modes.mean(axis=-1)))
    columns = np.transpose(means)
    return np.transpose([np.interp(logs, some, each) for each in columns])


def _met(time: Array) -> Array:
    """β at which two equal clusters at a right angle meet at a time, e^β/(2β)."""
    beta = np.linspace(1, 40, 4000)
    return np.asarray(np.interp(np.log(time), beta - np.log(2 * beta), beta))


def _broken(time: Array) -> Array:
    """The number of random tokens that have broken up at a time, at β = 5."""
    return np.asarray(np.exp(2 * circle.growth_rate(circle.fastest_mode(5), 5) * time))


LARGE = np.array(1e6)  # a width that is as good as infinite

PLANES = (
    Plane("L/n", ("depth L", 1, 1024), ("width n", 1, 1024),
          "share of linear networks that keep a squared length within a factor 2 (by a "
          "normal law)",
          _lengths, lambda depth: depth, wide=lambda T: _lengths(T * LARGE, LARGE)),
    Plane("n and H", ("heads H", 1, 1024), ("width n", 4, 4096),
          "excess kurtosis of an output, for four orthonormal tokens and scores of "
          "variance 1,",
          _kurtosis, half=0.05, unit=""),
    Plane("εm²", ("tokens m", 4, 1024), ("1/ε", 10, 1e5),
          "share of heat in one short step, for many tokens at the quantiles of "
          "N(0, 1) (formal),", _heat,
          lambda tokens: tokens**2, wide=lambda c: _heat(np.sqrt(c), np.array(1.0))),
    Plane("ε and t", ("time t", 1, 64), ("1/ε", 0.5, 16),
          "relative error of the variance, from N(0, 1),", _steps, half=0.005),
    Plane("(log t)/β", ("time t", 1, 1e6), ("β", 1, 16),
          "angle between two equal clusters, at first 90°,", _angle, _met, unit="°",
          along=_halfway),
    Plane("β/log m", ("tokens m", 2, 1e9), ("β", 1, 32),
          "weight of a token on itself, among orthogonal ones,", _own, np.log,
          along=np.log),
    Plane("m/d", ("dimension d", 2, 1024), ("tokens m", 2, 2048),
          "probability that uniform tokens lie in one hemisphere", _hemisphere,
          lambda dimension: 2 * dimension, along=lambda dimension: 2 * dimension),
    Plane("t/log m", ("time t", 0.5, 16), ("tokens m", 8, 2048),
          "largest of six modes of random tokens on a circle at β = 5 (measured; near "
          "100 % for three clusters as for one)", _bumps, _broken),
)  # fmt: skip
#: Anchors of the sections that derive the planes, in their order.
SECTIONS = (
    "width-and-depth", "width-and-heads", "tokens-and-step", "step-and-horizon",
    "temperature-and-time", "tokens-and-temperature", "tokens-and-dimension",
    "tokens-and-time",
)  # fmt: skip
WHOLE = {"depth L", "width n", "heads H", "tokens m", "dimension d"}


@cache
def mesh(k: int) -> Array:
    """Values of a plane in percent, row by row of one height, from below."""
    plane = PLANES[k]
    across, up = (np.geomspace(*axis[1:], SIDE) for axis in (plane.across, plane.up))
    return 100 * plane.values(across[None, :], up[:, None])


@cache
def _grid(k: int) -> Array:
    """Values in percent between which :func:`value_at` interpolates."""
    plane = PLANES[k]
    if not plane.along:
        return np.round(mesh(k), 2 if plane.half else 0)
    (low, high), columns = plane.up[1:], []
    offsets = np.sinh(DENSE * np.linspace(-1, 1, SIDE)) * _reach(k) / np.sinh(DENSE)
    for number, place in zip(
        np.geomspace(*plane.across[1:], SIDE), _along(k), strict=True
    ):
        places = np.clip(place + offsets, 0, 1)
        up = low * (high / low) ** places[:, None]  # (SIDE, 1)
        columns.append(plane.values(np.array([[number]]), up)[:, 0])
    return np.round(100 * np.transpose(columns))


@cache
def _along(k: int) -> Array:
    """Place above each column of the front that the rows of a grid follow."""
    return _curve(PLANES[k], PLANES[k].along)


def _reach(k: int) -> float:
    """Largest distance from that front, above it or below, at which the plane ends."""
    if not PLANES[k].along:
        return 0.0
    return float(np.round(max(_along(k).max(), 1 - _along(k).min()), 4))


@cache
def _ends(k: int) -> tuple[float, float]:
    """Values of the combination between which the front is drawn, by falling height.

    A wide front is where the limit is between 10 and 90 percent; a sharp one is at 1.
    """
    limit = PLANES[k].wide
    if limit is None:
        return 1.0, 1.0

    def over(x: float, share: float) -> float:
        return float(limit(np.exp(x))) - share

    ends = [brentq(over, *np.log([1e-3, 1e3]), (share,)) for share in (0.1, 0.9)]
    return float(np.exp(min(ends))), float(np.exp(max(ends)))


def _curve(plane: Plane, front: Callable[[Array], Array] | None) -> Array:
    """Place of a curve above each column; in the plane from 0 to 1."""
    if front is None:
        return np.full(SIDE, _NOWHERE)
    low, high = plane.up[1:]
    values = np.maximum(front(np.geomspace(*plane.across[1:], SIDE)), 1e-9)
    places = np.log(values / low) / np.log(high / low)
    return np.asarray(np.round(np.clip(places, _NOWHERE, -_NOWHERE), 4))


def _shifts(k: int) -> Array:
    """Distances above it, in the plane, at which the front ends."""
    low, high = PLANES[k].up[1:]
    return np.asarray(np.round(-np.log(_ends(k)) / np.log(high / low), 4))


def _kind(plane: Plane) -> str:
    """Kind of the front, which is how the map draws the edge."""
    if plane.front is None:
        return "none"
    return "wide" if plane.wide else "sharp"


_NOWHERE = -9.0  # a place far outside


def _require_network(network: Mapping[str, float]) -> dict[str, float]:
    letters = {axis[0].split()[-1] for plane in PLANES for axis in plane[1:3]}
    if not isinstance(network, Mapping):
        raise ValueError(f"network must map letters to numbers, got {network!r}")
    if unknown := network.keys() - letters:
        known = ", ".join(sorted(letters))
        raise ValueError(f"network must have letters of {known}, got {min(unknown)!r}")
    return {k: require_positive(f"network[{k!r}]", v) for k, v in network.items()}


def _home(plane: Plane, network: Mapping[str, float]) -> tuple[float, float]:
    """Place of a network in a plane, or nowhere if a number is not given or outside."""
    places = []
    for name, low, high in (plane.across, plane.up):
        number = network.get(name.split()[-1])
        if number is None or not low <= number <= high:
            return _NOWHERE, _NOWHERE
        places.append(float(np.log(number / low) / np.log(high / low)))
    return places[0], places[1]


def planes(
    *,
    edge: int = 0,
    across: float = 0.7,
    up: float = 0.6,
    network: Mapping[str, float] | None = None,
    caption: str | None = None,
) -> Exhibit:
    """Live exhibit of the map of limits: each edge opens its plane.

    Along each axis of a plane one number grows, and the color is a number that tells
    the two orders of the limits apart; between them runs the front, where they differ.
    The reader chooses an edge of the map and moves a point, or lets it walk right first
    or up first; a link leads to the section on the edge, which begins with its plane as
    a link back. The values are computed beforehand, on a grid.

    Parameters
    ----------
    edge : int
        Index of the plane with which it opens.
    across, up : float
        Place of the point, from 0 to 1 along each axis.
    network : mapping of str to float, optional
        Numbers of a network by their letters on the axes, as ``{"L": 12, "n": 768}``:
        on a plane with both of its numbers the point begins there, and is full there.
    caption : str, optional
        What to see, printed below.

    Returns
    -------
    Exhibit
        As :func:`lib.figures.live`.

    Raises
    ------
    ValueError
        For an edge that is none, a place out of range, or a network with a letter on
        no axis or a number that is not positive.
    """
    edge = require_choice("edge", edge, range(len(PLANES)))
    across = require_within("across", across, 0, 1)
    up = require_within("up", up, 0, 1)
    network = _require_network({} if network is None else network)
    homes = [_home(plane, network) for plane in PLANES]
    if homes[edge][0] >= 0:
        across, up = homes[edge]
    state = {
        "side": SIDE,
        "homes": homes,
        "grids": [_grid(k) for k in range(len(PLANES))],
        "axes": [f"{plane.across[0]}|{plane.up[0]}" for plane in PLANES],
        "ends": [[*plane.across[1:], *plane.up[1:]] for plane in PLANES],
        "whole": [[float(axis[0] in WHOLE) for axis in plane[1:3]] for plane in PLANES],
        "fronts": [_curve(plane, plane.front) for plane in PLANES],
        "along": [_along(k) for k in range(len(PLANES))],
        "shifts": [_shifts(k) for k in range(len(PLANES))],
        "kinds": [_kind(plane) for plane in PLANES],
        "reaches": [_reach(k) for k in range(len(PLANES))],
        "dense": DENSE,
        "halves": [plane.half for plane in PLANES],
        "units": [plane.unit for plane in PLANES],
        "measured": [plane.measured for plane in PLANES],
        "decides": [plane.decides for plane in PLANES],
        "sections": list(SECTIONS),
    }
    others = [(edge + k) % len(PLANES) for k in (2, 4, 5)]
    starts = {k: homes[k] if homes[k][0] >= 0 else (across, up) for k in others}
    return live(
        "planes",
        draw_planes,
        state=state,
        positions=[
            (state, {"edge": float(k), "across": x, "up": y})
            for k, (x, y) in starts.items()
        ],
        controls={
            "edge": Choice(
                "edge", {plane.decides: float(k) for k, plane in enumerate(PLANES)},
                float(edge),
            ),
            "across": Slider("across", 0.0, 1.0, across),
            "up": Slider("up", 0.0, 1.0, up),
        },
        kernels={},
        caption=caption,
    )  # fmt: skip


def draw_planes(state: State, *, edge: float, across: float, up: float) -> BookFigure:
    """One plane, its front, and the point in it."""
    k = round(edge)
    plane, grid = PLANES[k], mesh(k)
    x, y = (np.geomspace(*axis[1:], SIDE) for axis in (plane.across, plane.up))
    places = place_of(plane.across, across), place_of(plane.up, up)
    at = x[0] * (x[-1] / x[0]) ** places[0], y[0] * (y[-1] / y[0]) ** places[1]
    value = value_at(k, *places)
    blue = 100 * grid / (grid + 100 * plane.half) if plane.half else grid
    with style():
        fig = Figure(figsize=(3.6, 2.9))
        ax = fig.subplots()
        levels = [0, 20, 40, 60, 80, 100.1]
        fading = [(0.0, 0.447, 0.698, a) for a in (0.04, 0.2, 0.4, 0.62, 0.85)]
        ax.contourf(x, y, blue, levels=levels, colors=fading)
        if plane.front:
            fine = np.geomspace(*plane.across[1:], 2 * SIDE)
            high, low = (plane.front(fine) / end for end in _ends(k))
            if plane.wide:  # as on the map: a band
                ax.fill_between(fine, low, high, color=INK, alpha=0.07, linewidth=0)
                for line in (high, low):
                    ax.plot(fine, line, color=INK, linewidth=0.8)
            else:
                ax.plot(fine, high, "--", color=INK, linewidth=1.2)
        home = np.hypot(across - state["homes"][k][0], up - state["homes"][k][1]) < 1e-3
        face, edge_of = (COLORS[1], INK) if home else ("white", COLORS[1])
        ax.plot(*at, "o", markersize=8, markerfacecolor=face, markeredgecolor=edge_of)
        ax.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
        ax.set(xlabel=plane.across[0], ylabel=plane.up[0])
    drawn = "band" if plane.wide else "dashed line"
    front = f"; the {drawn} is the front" if plane.front else ""
    return figure(
        fig,
        alt=f"A plane of {plane.across[0]} and {plane.up[0]} with logarithmic axes,"
        f" colored by the {plane.measured.rstrip(',')}: at the point it is"
        f" {_written(plane, value)}{front}.",
        caption=f"{plane.decides}: {plane.measured.rstrip(',')}, more where it is"
        f" darker{front}.",
    )


def _written(plane: Plane, value: float) -> str:
    """A value in percent in the unit of its plane."""
    if plane.unit == "°":
        return f"{90 * value / 100:.0f}°"
    if not plane.unit:
        return f"{value / 100:.2g}"
    return f"{value:.2g} %" if plane.half else f"{value:.0f} %"


def place_of(axis: tuple[str, float, float], place: float) -> float:
    """A place along an axis, or the nearest one where its number is whole."""
    name, low, high = axis
    if name not in WHOLE:
        return place
    number = np.floor(low * (high / low) ** place + 0.5)
    return float(np.log(number / low) / np.log(high / low))


def value_at(k: int, across: float, up: float) -> float:
    """Value of a plane in percent at a place, bilinear in columns and rows of its grid.

    Where the rows follow the front, that is at equal distances from it.
    """
    j = across * (SIDE - 1)
    left = min(int(j), SIDE - 2)
    b = j - left
    if reach := _reach(k):
        here = _along(k)[left : left + 2] @ [1 - b, b]
        scaled = (up - here) * np.sinh(DENSE) / reach
        up = min(1.0, max(0.0, (1 + np.arcsinh(scaled) / DENSE) / 2))
    i = up * (SIDE - 1)
    low = min(int(i), SIDE - 2)
    a = i - low
    four = _grid(k)[low : low + 2, left : left + 2]
    weights = np.outer([1 - a, a], [1 - b, b])
    return float(np.sum(four * weights))
