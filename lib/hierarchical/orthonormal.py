"""The kurtosis constant of orthonormal tokens, for any number of them."""

from __future__ import annotations

import numpy as np

from lib.core.checks import Array, require_count, require_within

_SMALL = 1e-3  # below it the leading term is nearer than the rounding of the sums
_LARGEST = 100.0  # the nodes grow with the score scale


def orthonormal_constant(tokens: int, score_scale: float) -> float:
    r"""c(m, σ) = 3 Var(u)/(E u)² for m orthonormal tokens: the kurtosis of one head.

    There :math:`u = \sum_j s_j^2` with :math:`s = \mathrm{softmax}(p)` and independent
    scores :math:`p_j \sim N(0, \sigma^2)`. Because
    :math:`Z^{-k} = \int_0^\infty \lambda^{k-1} e^{-\lambda Z} \mathrm d\lambda/(k-1)!`
    for the denominator Z, the scores separate: with
    :math:`M_k(\lambda) = \lambda^k E[e^{kp} e^{-\lambda e^p}]`

    .. math:: E u = m \int_0^\infty M_2 M_0^{m-1} \frac{\mathrm d\lambda}\lambda,
              \qquad
              E u^2 = \frac m6 \int_0^\infty \big[ M_4 M_0^{m-1}
              + (m-1) M_2^2 M_0^{m-2} \big] \frac{\mathrm d\lambda}\lambda .

    Both are trapezoid sums in :math:`\log\lambda`, at a cost that does not depend on m.
    For σ < 0.001 the leading term :math:`6\sigma^4 (m-1)/m^2` is returned.

    Parameters
    ----------
    tokens : int
        m, from 1 to 2**53.
    score_scale : float
        σ, from 0 to 100.

    Returns
    -------
    float
        With an error of about 1e-13 (1 + c).

    Raises
    ------
    ValueError
        For numbers out of these ranges.
    """
    m = float(require_count("tokens", tokens, most=2**53))
    sigma = require_within("score_scale", score_scale, 0, _LARGEST)
    if m == 1:
        return 0.0  # a single token has all the attention
    if sigma < _SMALL:
        return 6 * sigma**4 * (m - 1) / m**2
    step = min(0.2, 0.7 * sigma)
    log_none, second, fourth = _transforms(m, sigma, step)
    others = np.exp((m - 2) * log_none)  # M_0^{m−2}
    mean = m * step * np.sum(second * others * np.exp(log_none))
    square = fourth * others * np.exp(log_none) + (m - 1) * second**2 * others
    return float(3 * (m / 6 * step * np.sum(square) / mean**2 - 1))


def _transforms(m: float, sigma: float, step: float) -> tuple[Array, Array, Array]:
    """log M_0, M_2 and M_4 on a grid of log λ.

    On one grid for scores and for log λ, E g(log λ + p) is a correlation of g with the
    weights of the scores.
    """
    reach = int(np.ceil(12 * sigma / step))
    p = step * np.arange(-reach, reach + 1)
    weights = np.exp(-((p / sigma) ** 2) / 2)
    weights /= weights.sum()
    # λ is about 1/Z, and Z between e^{−12σ} and m e^{12σ}.
    low = -int(np.ceil((np.log(m) + 40) / step)) - 2 * reach
    high = int(np.ceil(6 / step)) + 2 * reach
    t = step * np.arange(low, high + 1)
    with np.errstate(over="ignore", under="ignore"):
        z = np.exp(t)
        missing, kept = -np.expm1(-z), np.exp(-z)
        second, fourth = (np.where(kept > 0, np.exp(k * t), 0) * kept for k in (2, 4))
    # Where λe^p is large for every score, M_0 is 0 to rounding, and so are the others.
    lost = np.minimum(np.correlate(missing, weights, "valid"), 1 - 2.0**-53)
    return (
        np.log1p(-lost),
        np.correlate(second, weights, "valid"),
        np.correlate(fourth, weights, "valid"),
    )
