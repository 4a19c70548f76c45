"""The regimes: where a network of given sizes stands between the book's limits."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10, sqrt
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.core.checks import require_count, require_within
from lib.figures.book_figure import BookFigure, figure
from lib.figures.controls import Slider
from lib.figures.live import Exhibit, live
from lib.figures.theme import COLORS, INK, style
from lib.regimes import PRESETS, numbers, preset
from lib.regimes.overlap import ScoreNodes

State = Mapping[str, Any]
WIDTHS, DEPTHS, HEADS = (64.0, 16384.0), (1.0, 128.0), (1.0, 128.0)
TOKENS, SPREADS = (16.0, 131072.0), (0.05, 2.0)
LEAST_KEYS = 4.0  # coordinates of a head; the formulas are not made for fewer
BRANCH = sqrt(0.5)  # γ: skip connection and branch weigh alike
# What the state calls the fields of ScoreNodes.
_SCORE_NODES = ("score", "chance", "place", "share", "normal", "part")
# Said of a network of one's own, and of layers that are all alike.
UNKNOWN = "positions, your nonlinearity and normalization"
NORMALIZED = "positions, your nonlinearity, attention with normalization"
SUPPOSED = "With random weights and branches as heavy as skip connections,"
REPEATS = "repeats one layer, which no limit of depth and width here covers"
FIXED = "lengths are fixed"
FIXES = "normalizes each token after each branch, so that lengths are fixed"


class Gauge(NamedTuple):
    """A number that decides between limits, and what the limits on its sides say."""

    name: str
    question: str
    symbol: str  # what stands before the number
    low: float
    high: float
    log: bool
    breaks: tuple[float, ...]
    zones: tuple[str, ...]
    verdicts: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    def zone(self, value: float) -> int:
        """Return the number of the zone of a value, from 0."""
        return sum(value > border for border in self.breaks)

    def reads(self, value: float) -> str:
        """Return the number in words; a cosine is not 1 by rounding."""
        return "> 0.99" if self is GAUGES[-1] and value > 0.995 else _short(value)

    def named(self) -> tuple[str, ...]:
        """Return what stands at the beginning of each zone, and at the end."""
        return self.marks or tuple(map(_short, (self.low, *self.breaks, self.high)))


GAUGES = (
    # The standard deviation of the logarithm of a token's squared length.
    Gauge("spread", "Which limit of depth and width?", "spread", 0.005, 10, True,
          (0.1, 1.0), ("width first", "together", "depth first"),
          ("for the limit of infinite width first",
           "for the joint limit of depth and width",
           "for the limit of infinite depth first")),
    # Ten thousand normal numbers have a kurtosis of 0 ± 0.049.
    Gauge("excess kurtosis", "Is an output Gaussian?", "κ =", 1e-4, 10, True, (0.05,),
          ("Gaussian", "non-Gaussian"),
          (", its outputs are nearly Gaussian",
           ", its outputs are visibly non-Gaussian")),
    Gauge("β/log m", "Q = K: can a token keep to itself?", "β/log m =", 0, 3, False,
          (1.0,), ("it spreads out", "it can"),
          (", no token can single itself out",
           ", with equal queries and keys a token would single itself out")),
    Gauge("m/d", "Do random tokens share a hemisphere?", "m/d =", 0.01, 1000, True,
          (2.0,), ("they do", "they do not")),
    # Each whole number has the room from half below to half above it.
    Gauge("softmax orders", "How many orders of the softmax?", "", 0.5, 16.5, True,
          (2.5,), ("two are enough", "three or more"), marks=("1", "2–3", "16")),
    Gauge("cosine of shared layers", "Q = K, layers alike: do tokens meet?", "cosine",
          0, 1, False, (0.5, 0.9), ("they stay apart", "unclear", "met"),
          (", and, were all layers alike, its tokens would stay apart",
           ", and, were all layers alike, its tokens might stay apart or meet",
           ", and, were all layers alike and heads many, its tokens would meet")),
)  # fmt: skip
# The cosine is that of many heads, and H heads keep tokens farther apart. From so many
# on, cosines were 0.47 or more where the formula exceeds 0.9 for logits 1 + 2/H times
# as large, too: simulated with 4, 8 and 16 heads of width 4 to 128, 16 to 256 tokens
# and 6 to 96 layers, at the largest such logits. With fewer heads tokens may stay apart
# at any value.
ENOUGH_HEADS, EXTRA = 4, 2.0


def regimes(
    model: str,
    *,
    other: str = "bert-base",
    told: str = GAUGES[0].name,
    spread: float = 1.0,
    caption: str | None = None,
) -> Exhibit:
    r"""Live exhibit of the limits that a network of given sizes is near.

    Each gauge is a number that decides between limits; its zones are named by them, and
    a mark says where the network stands. The reader chooses a published model, or moves
    its sizes. It computes by the functions of :mod:`lib.regimes.numbers`.

    Parameters
    ----------
    model : str
        Name of a published model (:func:`lib.regimes.preset`) with which it opens.
    other : str
        Name of the model of a second stored picture.
    told : str
        Name of the gauge whose number is put into words when it opens.
    spread : float
        Standard deviation σ of a logit with which the first model opens. Where it is
        not 1, gray marks say where the model stands with 1.
    caption : str, optional
        What to see, printed below.

    Returns
    -------
    Exhibit
        As :func:`lib.figures.live`.

    Raises
    ------
    ValueError
        For the name of no model or of no gauge, and for a spread that the slider does
        not reach.
    """
    require_within("spread", spread, *SPREADS)
    names = [each.name for each in GAUGES]
    if told not in names:
        raise ValueError(f"told must be one of {', '.join(names)}, got {told!r}")
    values, others = _sizes(model) | {"spread": float(spread)}, _sizes(other)
    state: dict[str, Any] = {
        **_nodes(),
        "branch": BRANCH,
        "gauges": [each.question for each in GAUGES],
        "symbols": [each.symbol for each in GAUGES],
        "ends": [[each.low, each.high] for each in GAUGES],
        "logs": [float(each.log) for each in GAUGES],
        "breaks": [(*each.breaks, each.high)[:2] for each in GAUGES],
        "marks": ["|".join(each.named()) for each in GAUGES],
        "zones": ["|".join(each.zones) for each in GAUGES],
        "keys": LEAST_KEYS,
        "models": [each.title for each in PRESETS.values()],
        "special": [each.special for each in PRESETS.values()],
        "unknown": [UNKNOWN, NORMALIZED],
        "fixed": [float(each.family.length_fixed) for each in PRESETS.values()],
        "shared": [float(each.family.layers_shared) for each in PRESETS.values()],
        "sizes": [[*_sizes(name).values()] for name in PRESETS],
        "chosen": [*PRESETS].index(model),
        "told": names.index(told),
        "constant": FIXED,
        "enough": float(ENOUGH_HEADS),
        "extra": EXTRA,
    }
    return live(
        "regimes",
        draw_regimes,
        state=state,
        positions=[(state | {"chosen": [*PRESETS].index(other)}, others)],
        controls={
            "width": Slider("width n", *WIDTHS, values["width"], log=True, whole=True),
            "depth": Slider("depth L", *DEPTHS, values["depth"], log=True, whole=True),
            "heads": Slider("heads H", *HEADS, values["heads"], log=True, whole=True),
            "tokens": Slider(
                "tokens m", *TOKENS, values["tokens"], log=True, whole=True
            ),
            "spread": Slider("logits σ", *SPREADS, values["spread"], log=True),
        },
        kernels={
            "lengths": "regime-lengths", "context": "regime-context",
            "kurtosis": "regime-kurtosis", "hemisphere": "regime-hemisphere",
            "layer": "regime-layer", "order": "regime-order",
        },
        caption=caption,
    )  # fmt: skip


def _sizes(name: str) -> dict[str, float]:
    """Values of the sliders for a published model."""
    known = preset(name)
    return {
        "width": float(known.width), "depth": float(known.depth),
        "heads": float(known.heads), "tokens": float(known.tokens), "spread": 1.0,
    }  # fmt: skip


def _nodes() -> dict[str, Any]:
    """Nodes for all positions of the sliders."""
    # It prints three digits, and answers a slider in each frame.
    score = numbers.score_nodes(TOKENS[1], SPREADS[1], spacing=2)
    node, weight = numbers.gauss_nodes()
    orders, log_factorial = numbers.factorials(40)
    return {
        **dict(zip(_SCORE_NODES, score, strict=True)),
        "node": node, "weight": weight, "orders": orders,
        "log_factorial": log_factorial,
    }  # fmt: skip


def readings(
    state: State,
    *,
    width: float,
    depth: float,
    heads: float,
    tokens: float,
    spread: float,
) -> dict[str, float]:
    """The numbers of the gauges, and those that the sentences need."""
    require_within("width", width, *WIDTHS)
    require_count("depth", round(depth), most=int(DEPTHS[1]))
    key_width = width / heads
    beta = spread * sqrt(key_width)
    nodes = ScoreNodes(*(np.asarray(state[name]) for name in _SCORE_NODES))
    law = numbers.kurtosis(width, heads, key_width, tokens, spread, nodes)
    orders, log_factorial = (np.asarray(state[n]) for n in ("orders", "log_factorial"))
    errors = numbers.order_errors(spread, orders, log_factorial)
    cosine, least = (  # the latter for the larger logits
        numbers.tied_cosines(round(depth), tokens, factor * beta, key_width, BRANCH)[-1]
        for factor in (1, 1 + EXTRA / heads)
    )
    node, weight = np.asarray(state["node"]), np.asarray(state["weight"])
    lengths = numbers.log_length(width, depth, BRANCH)
    reading = {
        "depth/width": lengths["time"],
        "excess kurtosis": law["kurtosis"],
        "β/log m": beta / np.log(tokens),
        "m/d": tokens / width,
        "softmax orders": np.sum(errors > numbers.TOLERANCE),
        "cosine of shared layers": cosine,
        "spread": lengths["spread"],
        "pre_norm": numbers.pre_norm_spread(width, depth),
        "heads": heads,
        "least cosine": least,
        "limit": law["c"] / heads,
        "seen": law["seen"],
        "tied": numbers.tied_weight(tokens, beta, key_width),
        "chance": numbers.hemisphere(tokens, width, node, weight),
    }
    return {name: float(value) for name, value in reading.items()}


def draw_regimes(
    state: State,
    *,
    width: float,
    depth: float,
    heads: float,
    tokens: float,
    spread: float,
) -> BookFigure:
    """Gauges one below the other, each with a mark for the network.

    More heads than leave each of them four coordinates are drawn as that many.
    """
    heads = min(heads, width // LEAST_KEYS)
    sizes = {
        "width": width, "depth": depth, "heads": heads, "tokens": tokens,
        "spread": spread,
    }  # fmt: skip
    reading = readings(state, **sizes)
    k = _model(state, sizes)
    fixed, shared = (
        k is not None and state[name][k] > 0 for name in ("fixed", "shared")
    )
    bare = reading["spread"]
    base = reading  # where a published model stands with the usual logits
    if k is not None and spread != 1:
        base = readings(state, **sizes | {"spread": 1.0})
    if k is not None:  # normalized before each branch, which decides
        reading["spread"] = base["spread"] = reading["pre_norm"]
    with style():
        fig = Figure(figsize=(4.2, 4.8))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0.02, 0.01, 0.96, 0.98))
        ax.set(xlim=(0, 1), ylim=(-len(GAUGES), 0))
        ax.axis("off")
        for i, gauge in enumerate(GAUGES):
            fixes = i == 0 and fixed
            _draw_gauge(ax, -i, gauge, None if fixes else reading)
            if not fixes:
                if base[gauge.name] != reading[gauge.name]:
                    _mark(ax, -i, gauge, base[gauge.name], COLORS[4])
                _mark(ax, -i, gauge, reading[gauge.name], COLORS[1])
        if k is not None:  # what the lengths would do without normalization
            _mark(ax, 0, GAUGES[0], bare, "none")
    named = _named(state, sizes, k)
    heard = [f"{gauge.name} {gauge.reads(reading[gauge.name])}" for gauge in GAUGES]
    if fixed:
        heard[0] = FIXED
    said = ", ".join(heard)
    return figure(
        fig,
        alt=f"Six gauges for {named}: {said}. Each has zones named by the limits"
        " between which it decides.",
        caption=f"{named[0].upper()}{named[1:]}. {SUPPOSED} this network"
        f" {verdict(reading, published=k is not None, fixed=fixed, shared=shared)}.",
    )


def verdict(
    reading: Mapping[str, float],
    *,
    published: bool = False,
    fixed: bool = False,
    shared: bool = False,
) -> str:
    """Say in words in which zones the numbers lie.

    A published model normalizes, after each branch if it has ``fixed`` lengths and else
    before; and its layers may be all alike.
    """
    first, *others = (gauge for gauge in GAUGES if gauge.verdicts)
    how = "normalized before each branch" if published else "without normalization"
    lengths = f"calls, {how}, {first.verdicts[first.zone(reading[first.name])]}"
    said = [gauge.verdicts[zone_of(gauge, reading)] for gauge in others]
    return "".join([REPEATS if shared else FIXES if fixed else lengths, *said])


def zone_of(gauge: Gauge, reading: Mapping[str, float]) -> int:
    """The zone in which a gauge stands; that tokens meet only if heads are enough."""
    zone = gauge.zone(reading[gauge.name])
    if gauge is not GAUGES[-1]:
        return zone
    few = reading["heads"] < ENOUGH_HEADS or gauge.zone(reading["least cosine"]) < 2
    return min(zone, 1) if few else zone


def _model(state: State, sizes: Mapping[str, float]) -> int | None:
    """The number of the published model of these sizes, if there is one."""
    # Several models have the same sizes: the one that was chosen comes first. The last
    # number is that of the logits, which a model need not keep.
    for k in (state["chosen"], *range(len(state["models"]))):
        if [*state["sizes"][k]][:-1] == [*sizes.values()][:-1]:
            return int(k)
    return None


def _named(state: State, sizes: Mapping[str, float], model: int | None) -> str:
    """The network in words, with its name if it is a published one."""
    words = (
        f"width {sizes['width']:,.0f}, {sizes['depth']:.0f} layers,"
        f" {sizes['heads']:.0f} heads, {sizes['tokens']:,.0f} tokens, logits of"
        f" standard deviation {sizes['spread']:.2g}"
    )
    return words if model is None else f"{state['models'][model]}: {words}"


def _draw_gauge(
    ax: Axes, top: float, gauge: Gauge, reading: Mapping[str, float] | None
) -> None:
    """Zones of a gauge, and its number unless that is fixed."""
    edges = [0.0, *(_place(gauge, x) for x in gauge.breaks), 1.0]
    here = None if reading is None else zone_of(gauge, reading)
    marks = gauge.named()
    for k, zone in enumerate(gauge.zones):
        left, right = edges[k], edges[k + 1]
        ax.fill_between(
            [left, right], top - 0.66, top - 0.38, color=COLORS[0],
            alpha=0.36 if k == here else 0.12, linewidth=0,
        )  # fmt: skip
        ax.text(
            (left + right) / 2, top - 0.52, zone, fontsize=11, ha="center",
            va="center_baseline", weight="bold" if k == here else "normal",
        )  # fmt: skip
    for edge, mark in zip(edges, marks, strict=True):
        side = "left" if edge == 0 else "right" if edge == 1 else "center"
        ax.plot([edge] * 2, [top - 0.71, top - 0.38], color=INK, linewidth=1)
        ax.text(edge, top - 0.81, mark, fontsize=10.5, ha=side, va="center")
    shown = FIXED
    if reading is not None:
        shown = f"{gauge.symbol} {gauge.reads(reading[gauge.name])}".strip()
    ax.text(0, top - 0.12, gauge.question, fontsize=11.5, va="center")
    ax.text(1, top - 0.12, shown, fontsize=11.5, ha="right", va="center")


def _place(gauge: Gauge, x: float) -> float:
    a, b = gauge.low, gauge.high
    if gauge.log:
        x, a, b = log10(max(x, a)), log10(a), log10(b)
    return min(1.0, max(0.0, (x - a) / (b - a)))


def _mark(ax: Axes, top: float, gauge: Gauge, value: float, face: str) -> None:
    ax.plot(
        _place(gauge, value), top - 0.32, "v", color=face, markeredgecolor=INK,
        markersize=7, clip_on=False,
    )  # fmt: skip


def _short(value: float) -> str:
    """A number of two or three digits."""
    if value == round(value) and abs(value) < 1e4:
        return f"{value:.0f}"
    value *= 1 + 1e-12  # halves go up, as in the browser
    text = f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"
    return text.replace("-", "−")
