"""Rows of what the book's limits say about a network of given sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lib.core.checks import (
    require_count,
    require_flag,
    require_positive,
    require_within,
)
from lib.regimes import numbers

#: The largest sizes that are accepted.
MOST = {"width": 10**9, "heads": 10**6, "tokens": 10**12, "depth": 10**5}
_SPREADS = (1e-6, 10.0)  # of logits for which the formulas are evaluated
_MEET = 0.5  # tokens with a common cosine above it are one cluster


@dataclass(frozen=True)
class Row:
    """One quantity of a network, and the limit that it decides.

    ``value`` is a number, or None where no theorem covers the network; ``statement`` is
    the label of the statement of the book, or "" where there is none.
    """

    quantity: str
    value: float | int | None
    limit: str
    predicts: str
    correction: str
    statement: str


@dataclass(frozen=True)
class Sizes:
    """The arguments of :func:`describe`, checked and completed."""

    width: int
    depth: int
    heads: int
    tokens: int
    key_width: int
    temperature: float
    branch: float
    layers_shared: bool

    @property
    def spread(self) -> float:
        """σ, standard deviation of a logit at initialization."""
        return math.sqrt(self.key_width) / self.temperature

    @property
    def beta(self) -> float:
        """Largest logit of queries and keys of their length at initialization."""
        return self.key_width / self.temperature

    @property
    def tau0(self) -> float:
        """τ0 of the shaped attention that has these logits."""
        return self.temperature / math.sqrt(self.width * self.key_width)

    @cached_property
    def law(self) -> numbers.Numbers | None:
        """Kurtosis and number of tokens seen, or None outside of the range."""
        if not _SPREADS[0] <= self.spread <= _SPREADS[1]:
            return None
        nodes = numbers.score_nodes(self.tokens, self.spread)
        terms = numbers.kurtosis(
            float(self.width), self.heads, self.key_width, float(self.tokens),
            self.spread, nodes,
        )  # fmt: skip
        return {name: float(value) for name, value in terms.items()}


def describe(
    *,
    width: int,
    depth: int,
    heads: int = 1,
    tokens: int,
    key_width: int | None = None,
    temperature: float | None = None,
    residual_scale: float | None = None,
    layers_shared: bool = False,
) -> list[Row]:
    r"""Say which limits describe a transformer of given sizes, and how well.

    The model is that of :mod:`lib.regimes.numbers`: random weights at initialization,
    residual layers :math:`\lambda X + \gamma\, Y(X)`. What trained weights, other
    activations, positional encodings and other places of the normalization do is
    covered by no theorem of the book; the last rows say so.

    Parameters
    ----------
    width : int
        n, coordinates of a token, up to 10⁹.
    depth : int
        L, number of layers (blocks), up to 10⁵.
    heads : int
        H; must divide the width unless ``key_width`` is given.
    tokens : int
        m, length of the context, up to 10¹².
    key_width : int, optional
        :math:`n_k`, coordinates of a key in each head; n/H by default.
    temperature : float, optional
        τ, by which the scores are divided; :math:`\sqrt{n_k}` by default.
    residual_scale : float, optional
        γ, weight of the branch, up to 1, with :math:`\lambda^2 = 1 - \gamma^2`;
        :math:`1/\sqrt2` by default, branch and skip connection alike.
    layers_shared : bool
        Whether all layers have the same weights.

    Returns
    -------
    list of Row
        Depth over width first.

    Raises
    ------
    ValueError
        For sizes out of range, or heads that do not divide the width.
    """
    given = _checked(
        width, depth, heads, tokens, key_width, temperature, residual_scale,
        layers_shared,
    )  # fmt: skip
    rows = (
        _depth_over_width, _explosion, _kurtosis, _context, _hemisphere, _clusters,
        _collapse, _order,
    )  # fmt: skip
    return [*(row(given) for row in rows), *_uncovered()]


def _checked(
    width: int,
    depth: int,
    heads: int,
    tokens: int,
    key_width: int | None,
    temperature: float | None,
    residual_scale: float | None,
    layers_shared: bool,
) -> Sizes:
    """Sizes with their defaults; ValueError for what no network has."""
    width = require_count("width", width, most=MOST["width"])
    depth = require_count("depth", depth, most=MOST["depth"])
    heads = require_count("heads", heads, most=MOST["heads"])
    tokens = require_count("tokens", tokens, least=2, most=MOST["tokens"])
    if key_width is None:
        if width % heads:
            raise ValueError(
                f"heads must divide the width, got {heads} heads and width {width}"
                " (or say key_width)"
            )
        key_width = width // heads
    key_width = require_count("key_width", key_width, most=MOST["width"])
    if temperature is None:
        temperature = math.sqrt(key_width)
    temperature = require_positive("temperature", temperature)
    if not 1e-100 < temperature < 1e100:
        raise ValueError(
            f"temperature must be from 1e-100 to 1e+100, got {temperature!r}"
        )
    branch = math.sqrt(0.5) if residual_scale is None else residual_scale
    branch = require_within("residual_scale", branch, 1e-6, 1)
    return Sizes(
        width, depth, heads, tokens, key_width, temperature, branch,
        require_flag("layers_shared", layers_shared),
    )  # fmt: skip


def _depth_over_width(given: Sizes) -> Row:
    law = numbers.log_length(given.width, given.depth, given.branch)
    mean, spread = float(law["mean"]), float(law["spread"])
    excess = float(law["excess"])
    if given.layers_shared:
        return Row(
            "depth/width", float(law["time"]),
            "none: the theorem needs fresh weights in each layer",
            "repeated, one matrix is decided by its eigenvalues and not by depth over"
            " width",
            "no theorem of the book",
            "",
        )  # fmt: skip
    nearest = "width first is close" if spread < 0.1 else "depth and width together"
    return Row(
        "depth/width", float(law["time"]),
        f"proportional: log squared length ~ N(−qT, 2qT) ({nearest})",
        "for linear layers with a skip connection, one branch each: over networks the"
        f" logarithm of a token's squared length has mean {_n(mean)} and standard"
        f" deviation {_n(spread)}: half of them change it by more than"
        f" {_p(math.expm1(0.674 * spread))}; a layer with attention and a perceptron"
        " counts twice, and averaging makes the tokens of attention shorter",
        f"variance {_signed(excess)} at this width (next order of 1/n, for linear"
        " layers; simulated at three widths)",
        "thm-log-normal",
    )  # fmt: skip


def _explosion(given: Sizes) -> Row:
    chance = float(
        numbers.explosion(
            2.0, given.branch, given.tau0, given.heads, *numbers.gauss_nodes()
        )
    )
    limit = (
        f"two tokens under shaped attention; possible if and only if γ² < H/2"
        f" (γ² = {_n(given.branch**2)}, H = {given.heads})"
    )
    if given.layers_shared:
        return Row(
            "explosion probability", None, "none: the theorem needs fresh weights",
            "nothing", "no theorem of the book", "",
        )  # fmt: skip
    small = given.spread <= 0.1
    # By the drift alone, Δ becomes infinite after 2τ0²/γ² units of time.
    layers = 2 * given.tau0**2 / given.branch**2 * given.width
    return Row(
        "explosion probability", chance, limit,
        f"two orthogonal tokens drift apart without bound with probability"
        f" {_n(chance)} if layers never end; the drift alone needs {_n(layers)} layers,"
        f" there are {given.depth}",
        f"logits of {_n(given.spread)} are small, as the theorem wants" if small else
        f"logits have standard deviation {_n(given.spread)}, and the theorem wants them"
        " near 0: shaped attention with these logits is outside of it, and no finite"
        " network explodes",
        "thm-explosion",
    )  # fmt: skip


def _kurtosis(given: Sizes) -> Row:
    law = given.law
    limit = "width to infinity with H heads: a scale mixture of Gaussians, κ = c/H"
    if law is None:
        return Row(
            "excess kurtosis", None, limit, "not evaluated",
            f"evaluated for logits of standard deviation {_SPREADS[0]:g} to"
            f" {_SPREADS[1]:g}, here {_n(given.spread)}",
            "prop-narrow-heads",
        )  # fmt: skip
    main = law["c"] / given.heads
    narrow = law["given"] - main
    return Row(
        "excess kurtosis", law["kurtosis"], limit,
        f"one output over many networks has excess kurtosis {_n(law['kurtosis'])};"
        f" c/H = {_n(main)} is left at infinite width (c = {_n(law['c'])})",
        f"with orthogonal tokens, keys of width {given.key_width} add b/(n_k H)"
        f" = {_n(narrow)} (b = {_n(law['b'])}); random tokens on the sphere make it"
        f" {_n(law['kurtosis'])}, with a/n = {_n(law['a'] / given.width)} for few of"
        f" them (a = {_n(law['a'])}); up to terms of order 1/(nH), simulated at eight"
        " sizes",
        "prop-narrow-heads",
    )  # fmt: skip


def _context(given: Sizes) -> Row:
    tokens, ratio = float(given.tokens), given.beta / math.log(given.tokens)
    exact = float(numbers.own_weight(tokens, given.beta))
    tied = float(numbers.tied_weight(tokens, given.beta, given.key_width))
    law = given.law
    untied = (
        f"; with independent queries and keys it has no preference and sees about"
        f" {law['seen']:,.0f} of {given.tokens:,}" if law else ""
    )  # fmt: skip
    return Row(
        "β/log m", ratio,
        "long contexts: a token can attend mostly to itself above 1, and not below",
        f"with W^Q = W^K and orthogonal keys (β = {_n(given.beta)}) a token puts"
        f" {_p(exact)} on itself{untied}",
        f"exact at this m for orthogonal keys, about {_p(tied)} for random ones of"
        f" width {given.key_width} (simulated at three sizes); the step at 1 is 1/log m"
        f" = {_n(1 / math.log(given.tokens))} wide",
        "prop-long-context",
    )  # fmt: skip


def _hemisphere(given: Sizes) -> Row:
    ratio = given.tokens / given.width
    nodes = numbers.gauss_nodes()
    chance = float(numbers.hemisphere(float(given.tokens), float(given.width), *nodes))
    half = math.sqrt(2 * given.width) / given.width
    return Row(
        "m/d", ratio, "uniform tokens: one hemisphere below 2, none above",
        "random tokens lie in one hemisphere with probability"
        f" {'more than 0.999' if chance > 0.999 and ratio > 1 else _n(chance)}"
        + (", and then all of them meet" if chance > 0.5 else ""),
        f"exact at these sizes (Wendel); the step at 2 is about {_n(2 * half)} wide",
        "prop-tokens-dimension",
    )  # fmt: skip


def _clusters(given: Sizes) -> Row:
    if not given.layers_shared:
        return Row(
            "clusters", None,
            "none: the theorems on clusters have the same weights in each layer",
            "see the row on differences between tokens",
            "no theorem of the book counts clusters under fresh weights",
            "",
        )  # fmt: skip
    cosines = numbers.tied_cosines(
        given.depth, float(given.tokens), given.beta, given.key_width, given.branch
    )
    met = next((layer for layer, each in enumerate(cosines) if each > _MEET), None)
    when = f"they pass cosine ½ in layer {met}" if met else "they are still apart"
    return Row(
        "clusters", 1 if met else given.tokens,
        "layers as time, values x and W^Q = W^K: equiangular tokens",
        f"from orthogonal tokens the cosine after {given.depth} layers is"
        f" {_n(cosines[-1])}: {when}",
        f"the noise of random keys of width {given.key_width} is in it to leading order"
        f" (many heads and tokens, few heads are slower; simulated at three sizes);"
        f" random tokens in"
        f" {given.width} dimensions are off by about 3/√d ="
        f" {_n(3 / math.sqrt(given.width))} (measured in chapter 4)",
        "prop-equiangular",
    )  # fmt: skip


def _collapse(given: Sizes) -> Row:
    share = float(numbers.left(given.branch, given.depth))
    law = given.law
    back = (
        f"not quite uniform attention gives back γ²(1/seen − 1/m) ="
        f" {_n(given.branch**2 * (1 / law['seen'] - 1 / given.tokens))} in the first"
        " layer" if law else "not evaluated for logits this large"
    )  # fmt: skip
    budget = given.branch**2 * given.depth
    says = "width and depth commute" if budget <= 1 else "rank collapse"
    return Row(
        "differences left", share,
        f"uniform attention: λ^(2L); γ²L = {_n(budget)}, {says}",
        f"of the squared differences between tokens {_n(share)} is left after"
        f" {given.depth} attention layers",
        back + " (with a normalization before each branch γ² falls like 1/ℓ instead)",
        "prop-uniform",
    )  # fmt: skip


def _order(given: Sizes) -> Row:
    if not _SPREADS[0] <= given.spread <= 4:
        small = given.spread < 1
        return Row(
            "softmax order", 1 if small else None,
            "many tokens: terms σ^r He_r(z)/r!",
            "order 1 is enough" if small else "no low order is enough",
            f"evaluated for logits of standard deviation up to 4, here"
            f" {_n(given.spread)}",
            "prop-many-scores",
        )  # fmt: skip
    errors = numbers.order_errors(given.spread, *numbers.factorials())
    order = int((errors > numbers.TOLERANCE).sum())
    reach = 2 * given.spread * math.sqrt(2 * math.log(given.tokens))
    series = "inside" if reach < math.pi else "beyond"
    return Row(
        "softmax order", order, "many tokens: terms σ^r He_r(z)/r!",
        f"the first {order} orders of the softmax expansion describe its weights to"
        f" 5 % (logits of standard deviation {_n(given.spread)}; order 1 leaves"
        f" {_p(float(errors[1]))}, order 2 {_p(float(errors[2]))})",
        f"logits of {given.tokens:,} tokens have a range of about {_n(reach)}, {series}"
        " the π within which the series is sure to converge",
        "prop-many-scores",
    )  # fmt: skip


def _uncovered() -> Iterator[Row]:
    """Rows that say what no theorem of the book covers."""
    for what, says in (
        (
            "trained weights",
            "weights are no longer independent; chapter 7 measures some",
        ),
        ("GELU, SwiGLU", "the perceptron of a block is covered for shaped ReLU only"),
        ("RoPE, ALiBi", "positions are not in the model: tokens are exchangeable"),
        (
            "other normalization",
            "normalization before a branch, or of queries and keys, is not covered",
        ),
    ):
        yield Row(what, None, "none", says, "no theorem of the book", "")


def _n(value: float) -> str:
    """A number as one reads it."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    else:
        text = (
            f"{value:.1e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
        )
    return text.replace("-", "−")


def _p(share: float) -> str:
    """A share in percent; beyond ten times, a factor."""
    return f"{_n(100 * share)} %" if share < 10 else f"a factor of {_n(share)}"


def _signed(share: float) -> str:
    return f"{_p(abs(share))} {'larger' if share >= 0 else 'smaller'}"
