r"""The numbers that decide between limits, as functions of the sizes of a network.

The model is a transformer at random initialization: L layers of width n, m tokens, H
heads with queries, keys and values of width :math:`n_k`, and residual layers
:math:`X' = \lambda X + \gamma\, Y(X)` with :math:`\lambda^2 + \gamma^2 = 1`. Tokens
have norm :math:`\sqrt n`; where they are random, they are independent and uniform on
that sphere. Entries of weights have the variance 1/n, and logits are
:math:`\langle q_i, k_j \rangle / \tau`. So a logit has the standard deviation
:math:`\sigma = \sqrt{n_k}/\tau`, and none exceeds :math:`\beta = n_k/\tau` as long as
queries and keys have their length at initialization, :math:`\sqrt{n_k}`.

Everything is made of elementary functions and sums over nodes, so that a page can
compute it too; the nodes are arguments for that reason. Nothing is checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lib.core.checks import Array
from lib.regimes.overlap import ScoreNodes, overlap, random_overlap

Numbers = dict[str, Any]
_SHORT = 1e-6  # of a query's squared length, instead of 0
_TAIL = 18.0  # beyond this x, cosh x is half of exp(x) to rounding
TOLERANCE = 0.05  # of the error that decides on an order
# Nodes and weights for the mean over a standard normal variable.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_NORMAL_NODES = np.transpose([_NODES, _WEIGHTS / _WEIGHTS.sum()]).tolist()


def noise(branch: Any) -> Any:
    r"""q = γ²(2 − γ²), the noise of one layer with :math:`\lambda^2 + \gamma^2 = 1`."""
    return branch**2 * (2 - branch**2)


def log_length(width: Any, depth: Any, branch: Any) -> Numbers:
    r"""Law of the logarithm of a token's squared length after linear residual layers.

    With T = L/n its limit is :math:`\mathcal N(-qT, 2qT)`. At width n the squared
    length is multiplied by 1 + Z in each layer,
    :math:`Z = 2\lambda\gamma g n^{-1/2} + \gamma^2(\chi^2_n/n - 1)`, where
    :math:`g^2` is one of the summands of :math:`\chi^2_n`; its moments give the
    variance of the logarithm to the next order,

    .. math:: 2qT \Big( 1 + \frac1n \Big[ 5q -
              \frac{12 \lambda^2 \gamma^4 + 4 \gamma^6}{q} \Big] \Big) .

    Returns
    -------
    dict
        ``time`` T, ``mean`` and ``spread`` (standard deviation) in the limit, and
        ``excess``, the relative correction of the variance.
    """
    q, time = noise(branch), depth / width
    third = 12 * (1 - branch**2) * branch**4 + 4 * branch**6
    return {
        "time": time,
        "mean": -q * time,
        "spread": np.sqrt(2 * q * time),
        "excess": (5 * q - third / q) / width,
    }


def pre_norm_spread(width: Any, depth: Any) -> Any:
    r"""Spread of log squared length where branches are normalized before they act.

    Each of L branches, one random matrix on a token of norm :math:`\sqrt n`, adds an
    independent standard normal vector, whatever the length of the stream is. From the
    norm :math:`\sqrt n`, :math:`|X_L|^2/L` has a noncentral chi-square law of n degrees
    of freedom, and to leading order in 1/n its logarithm has the standard deviation

    .. math:: \sqrt{2 L (L + 2)/n} \big/ (L + 1) \le \sqrt{2/n} .
    """
    return np.sqrt(2 * depth * (depth + 2) / width) / (depth + 1)


def kurtosis(
    width: Any, heads: Any, key_width: Any, tokens: Any, spread: Any, nodes: ScoreNodes
) -> Numbers:
    r"""Excess kurtosis of an attention output: c/H + b/(n_k H) + a/n for few tokens.

    For orthonormal tokens a coordinate has the variance
    :math:`v = \frac1H \sum_a t'_a u_a`, where the scores of head a have the standard
    deviation :math:`\sigma \sqrt{t_a}` and all :math:`t_a, t'_a` are
    :math:`\chi^2_{n_k}/n_k`. a is what random tokens add because all heads see the
    same ones. Their Gram matrix V has independent entries of variance 1/n beside a
    diagonal of 1, to leading order, so

    .. math:: a = \frac{3n \mathrm{Var}(\bar v)}{\bar v^2} = \frac6{m(m - 1)} \Big(
              \frac{1 - \mathbb E u - \frac\sigma2 \frac{\mathrm d}{\mathrm d\sigma}
              \mathbb E u}{\mathbb E u} \Big)^2 , \qquad
              \bar v = \mathbb E[u \mid V] ,

    which is :math:`6 e^{-2\sigma^2}` for many tokens. More random tokens than
    dimensions are far from orthonormal; then :math:`u_a` is that of
    ``lib.regimes.overlap.random_overlap``. (Up to terms of order 1/n, and of the
    order of 1/(nH).)

    Returns
    -------
    dict
        ``c``, ``b``, ``a``; ``given`` for orthonormal and ``kurtosis`` for random
        tokens; and ``seen``, the number 1/E u of tokens that a query sees. ``b`` is
        what is left of ``given`` without c/H, times n_k H: it tends to a constant as
        heads grow wide.
    """
    mean, variance, slope = overlap(tokens, spread, nodes)
    lengths = _chi_square(key_width, nodes.normal)  # of a query, over their mean
    spreads = spread * np.sqrt(np.maximum(lengths, _SHORT))
    one, two, slopes = overlap(tokens, spreads, nodes)
    first = np.sum(nodes.part * one)
    varied = np.sum(nodes.part * (two + (one - first) ** 2))
    c = 3 * variance / mean**2
    given = 3 * (2 + (key_width + 2) * varied / first**2) / key_width
    # Derivative of the mean of u by an entry of V beside the diagonal, at V = I: that
    # of the quadratic form, and that of the scores, whose second derivatives add up
    # to 0 over all pairs since a constant changes no weight.
    pairs = tokens * (tokens - 1)
    a = 6 / pairs * ((1 - mean - spread * slope / 2) / mean) ** 2
    # The same for random tokens; what heads share does not vary between them.
    shared = a * mean**2 / (3 * width)
    one, two = random_overlap(width, spreads, (one, two, slopes))
    whole = np.sum(nodes.part * one)
    varied = np.sum(nodes.part * (two - shared + (one - whole) ** 2))
    random = 3 * (2 + (key_width + 2) * varied / whole**2) / key_width
    return {
        "c": c,
        "b": (given - c) * key_width,
        "a": a,
        "given": given / heads,
        "kurtosis": random / heads + 3 * shared / whole**2,
        "seen": 1 / first,
    }


def own_weight(tokens: Any, beta: Any) -> Any:
    """Weight of a token on itself among m, when its logit exceeds the others by β."""
    return 1 / (1 + (tokens - 1) * np.exp(np.minimum(-beta, 500)))


def tied_weight(tokens: Any, beta: Any, key_width: Any, cosine: Any = 0.0) -> Any:
    r"""Mean weight of a token on itself with random W^Q = W^K, at a common cosine ρ.

    A key has the squared length :math:`n_k t`, :math:`t \sim \chi^2_{n_k}/n_k`; given
    it the logit on itself is βt. With :math:`\sigma = \beta n_k^{-1/2}` the others are
    :math:`\rho \beta t + \sigma \sqrt{t \rho (1 - \rho)}\, g` with a standard normal
    g that all of them share, and independent normal variables of variance
    :math:`r^2 = \sigma^2 t (1 - \rho)`. For many tokens the sum of the exponentials of
    these is :math:`m e^{r^2/2}`, and where :math:`r^2 > 2 \log m` that of the largest,
    :math:`e^{r \sqrt{2 \log m}}`.
    """
    total, log = 0.0, np.log(tokens)
    for z, chance in _NORMAL_NODES:
        node = _chi_square(key_width, z)
        square = node * beta**2 / key_width * (1 - cosine)
        frozen = np.sqrt(2 * log * square) - log
        others = np.where(square < 2 * log, square / 2, frozen)
        gap, noise = node * beta * (1 - cosine) - others, np.sqrt(cosine * square)
        for g, share in _NORMAL_NODES:
            own = own_weight(tokens, gap - noise * g)
            total = total + chance * share * own
    return total


def _chi_square(degrees: Any, normal: Any) -> Any:
    """A chi-square variable over its degrees, as a function of a normal one.

    Its third root is nearly normal (Wilson and Hilferty). From four degrees on the
    kurtosis is accurate to 0.1 %.
    """
    noise = 2 / (9 * degrees)
    return np.maximum(1 - noise + normal * np.sqrt(noise), 0) ** 3


def layer_cosine(cosine: Any, tokens: Any, beta: Any, branch: Any) -> Any:
    r"""Common cosine of m tokens after one layer of the model of chapter 4.

    A layer is :math:`x_i' \propto \lambda x_i + \gamma \sum_j A_{ij} x_j` with
    :math:`A = \mathrm{softmax}(\beta \langle x_i, x_j\rangle)`, normalized; equal
    cosines stay equal. Thin layers follow :func:`lib.sphere.equiangular_field`.
    """
    return _mixed(cosine, tokens, own_weight(tokens, beta * (1 - cosine)), branch)


def tied_cosine(
    cosine: Any, tokens: Any, beta: Any, key_width: Any, branch: Any
) -> Any:
    """Common cosine after the same layer with random keys, W^Q = W^K in each head.

    The weight of a token on itself is its mean, :func:`tied_weight`; that the other
    weights differ from one another is left out, as is their dependence on earlier
    layers.
    """
    own = tied_weight(tokens, beta, key_width, cosine)
    return _mixed(cosine, tokens, own, branch)


def tied_cosines(
    depth: int, tokens: float, beta: float, key_width: float, branch: float
) -> list[float]:
    """Cosines of orthogonal tokens after 0, 1, ..., depth such layers.

    They end early where the last one stays.
    """
    cosines = [0.0]
    for _ in range(depth):
        after = tied_cosine(cosines[-1], tokens, beta, key_width, branch)
        cosines.append(float(after))
        if cosines[-1] == cosines[-2]:
            break
    return cosines


def _mixed(cosine: Any, tokens: Any, own: Any, branch: Any) -> Any:
    """Cosine after a layer that gives the same weight to each of the other tokens."""
    skip = np.sqrt(1 - branch**2)
    # <x_i, y_i>, <x_j, y_i>, |y_i|² and <y_i, y_j>, with the weight of another token.
    other = (1 - own) / (tokens - 1)
    along = own + (1 - own) * cosine
    across = own * cosine + other * (1 + (tokens - 2) * cosine)
    square = own * along + (1 - own) * across
    product = own * across + other * along + other * (tokens - 2) * across
    length = skip**2 + 2 * skip * branch * along + branch**2 * square
    inner = skip**2 * cosine + 2 * skip * branch * across + branch**2 * product
    # Rounding alone can lead beyond 1, where the next layer has no number.
    return np.minimum(inner / length, 1.0)


def left(branch: Any, depth: Any) -> Any:
    """Share of the differences between tokens left by uniform attention, λ^(2L)."""
    return (1 - branch**2) ** depth


def hemisphere(tokens: Any, width: Any, node: Array, weight: Array) -> Any:
    r"""Wendel's probability :math:`P(\mathrm{Bin}(m - 1, \frac12) < d)` as integrals.

    For m > d it is the incomplete beta function :math:`I_{1/2}(m - d, d)`; in the
    log-odds s its integrand is smooth on the scale of its width.

    Parameters
    ----------
    tokens, width : float
        m and d.
    node, weight : ndarray, shape (g,)
        Nodes of a quadrature on (0, 1).
    """
    a, b = np.maximum(tokens - width, 1), width
    middle, scale = np.log(a / b), 9 * np.sqrt((a + b) / (a * b))
    low, high = middle - scale - 40 / a, middle + scale + 40 / b
    top = -a * np.log1p(b / a) - b * np.log1p(a / b)

    def integral(end: Any) -> Any:
        s = low + (end - low) * node
        # log(1 + e^s) without overflow; the other one is less by s.
        soft = np.maximum(s, 0) + np.log1p(np.exp(-np.abs(s)))
        return (end - low) * np.sum(weight * np.exp(a * (s - soft) - b * soft - top))

    zero = np.minimum(np.maximum(0 * high, low), high)
    return np.where(tokens > width, integral(zero) / integral(high), 1.0)


def explosion(
    distance: Any, branch: Any, tau0: Any, heads: Any, node: Array, weight: Array
) -> Any:
    r"""Probability of :func:`lib.sde.explosion_probability`, as sums over nodes.

    With :math:`y \propto \sinh x` the integrals are those of
    :math:`\cosh^{1 - 2k} x`, :math:`k = H/4\gamma^2`; the tail is known.
    """
    power = heads / (2 * branch**2) - 1
    safe = np.maximum(power, 1e-3)
    unit = tau0 * np.sqrt(8 * heads * (2 - branch**2)) / branch
    ratio = distance / unit
    end = np.log1p(ratio + ratio**2 / (1 + np.sqrt(1 + ratio**2)))
    reach = np.minimum(9 / np.sqrt(safe) + 40 / safe, _TAIL)

    def tail(x: Any) -> Any:
        known = np.exp(np.minimum(safe * (np.log(2) - x), 0)) / safe
        return np.where(reach < _TAIL, 0.0, known)

    def integral(x: Any) -> Any:
        half = x * node / 2
        sinh = (np.expm1(half) - np.expm1(-half)) / 2
        return x * np.sum(weight * np.exp(-safe * np.log1p(2 * sinh**2)))

    whole = integral(reach) + tail(reach)
    far = tail(reach) - tail(np.maximum(end, reach))
    share = (integral(np.minimum(end, reach)) + far) / whole
    return np.where(power > 0, np.minimum(share, 1.0), 0.0)


def order_errors(spread: Any, orders: Array, log_factorial: Array) -> Any:
    r"""Relative error of the softmax expansion of many normal logits, by its order.

    For m → ∞ independent logits σz the weight is :math:`e^{\sigma z - \sigma^2/2}/m`,
    and its term of degree r is :math:`\sigma^r \mathrm{He}_r(z)/r!` over m. In mean
    square the error after order k is, relative to the distance from equal weights,

    .. math:: \Big( \sum_{r > k} \frac{\sigma^{2r}}{r!} \Big/ (e^{\sigma^2} - 1)
              \Big)^{1/2} .

    Parameters
    ----------
    spread : float
        σ.
    orders, log_factorial : ndarray, shape (r,)
        0, 1, 2, ..., and the logarithms of their factorials.
    """
    terms = np.exp(orders * np.log(spread**2) - log_factorial)
    beyond = np.where(orders > orders[:, None], 1.0, 0.0)
    return np.sqrt(np.sum(beyond * terms, axis=1) / np.expm1(spread**2))


def score_nodes(tokens: float, spread: float, spacing: float = 1.0) -> ScoreNodes:
    """Trapezoid nodes of ``lib.regimes.overlap.overlap``.

    The sums of analytic functions converge geometrically: with the spacing 1 only
    rounding is left, with 2 an error of about 1e-4, at a quarter of the cost.
    """
    ends = np.log(tokens) + 24 + 24 * spread
    each = max(24 / 0.125, 24 * spread / 0.2)
    z = np.linspace(-12, 12, int(np.ceil(each / spacing)) + 1)
    place = np.linspace(0, 1, int(np.ceil(ends / 0.2 / spacing)) + 1)
    chance = np.exp(-(z**2) / 2)
    share = np.full(place.size, 1 / (place.size - 1))
    normal, part = np.transpose(_NORMAL_NODES)
    return ScoreNodes(z, chance / chance.sum(), place, share, normal, part)


def gauss_nodes(count: int = 256) -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on (0, 1)."""
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, w / 2


def factorials(count: int = 80) -> tuple[Array, Array]:
    """Orders 0, 1, 2, ... and the logarithms of their factorials."""
    orders = np.arange(float(count))
    return orders, np.cumsum(np.log(np.maximum(orders, 1)))
