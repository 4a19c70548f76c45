r"""Doubly stochastic attention: entropic transport of tokens to themselves.

Tokens :math:`x_1, \dots, x_n` with weights w (usually 1/n) are coupled with themselves
by the plan that minimizes

.. math:: \sum_{ij} \tfrac12 |x_i - x_j|^2 \pi_{ij}
          + \varepsilon \, \mathrm{KL}(\pi \,|\, w \otimes w)

among all plans with both marginals w. Its solution is
:math:`\pi_{ij} = w_i u_i K_{ij} u_j w_j` with the Gibbs kernel
:math:`K_{ij} = e^{-|x_i - x_j|^2/2\varepsilon}` and one scaling u, as both marginals
are the same. The cost is *half* the squared distance: in a library that takes all of
it, the same plan belongs to the regularization 2ε.

The rows of π, divided by their weights, are attention: the kernel
:math:`e^{\langle x_i, x_j\rangle/\varepsilon}` of dot products differs from K by
factors of i and of j alone, and so has the same plan.
"""

from __future__ import annotations

from functools import partial

import numpy.typing as npt

from lib._checks import Array, require_count, require_positive, require_tokens
from lib._sinkhorn.attention import sinkhorn_attention
from lib._sinkhorn.gibbs import GibbsKernel
from lib._sinkhorn.transport import (
    ConvergenceWarning,
    FrozenFlowWarning,
    SelfTransport,
    alternating_scaling,
    checked_problem,
    symmetric_scaling,
    transport,
    warn,
)

__all__ = [
    "ConvergenceWarning",
    "FrozenFlowWarning",
    "SelfTransport",
    "alternating_transport",
    "bridge_step",
    "gibbs_kernel",
    "self_transport",
    "sinkhorn_attention",
]


def self_transport(
    x: npt.ArrayLike,
    eps: float,
    *,
    weights: npt.ArrayLike | None = None,
    tol: float = 1e-10,
    max_iter: int = 500,
) -> SelfTransport:
    r"""Entropic transport of tokens to themselves, by the symmetric scaling.

    .. math:: u \leftarrow \sqrt{u / K(w u)}

    is, for the potential :math:`f = \varepsilon\log u`, the average of f and of its
    Sinkhorn update. Near the solution an eigenvalue λ of the row-normalized plan gives
    the rate (1 − λ)/2. K is positive semidefinite, so 0 ≤ λ ≤ 1 and the error at least
    halves, whatever ε is. No logarithms are needed: K has diagonal 1, so
    :math:`K(wu)_i \ge w_i u_i` never vanishes.

    Up to 8,192 tokens the kernel is stored; above, every product computes it again.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Tokens.
    eps : float
        Regularization ε > 0, in the unit of squared distances.
    weights : array_like, shape (n,), optional
        Positive weights of sum 1, by default 1/n. Quadrature weights make x stand for
        a density.
    tol : float
        L1 marginal error to reach.
    max_iter : int
        Updates of u at most.

    Returns
    -------
    SelfTransport
        With ``.plan()``, ``.barycentric()``, ``.displacement()``,
        ``.effective_neighbors()``, ``.iterations``, ``.error``, ``.converged`` and
        ``.frozen``.

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix, entries beyond 1e100, an eps or tol
        that is not positive, or weights that are not positive with sum 1.

    Warns
    -----
    ConvergenceWarning
        When ``max_iter`` is reached, or the error stops falling because ``tol`` is
        below what rounding allows.
    FrozenFlowWarning
        When eps is so small that most tokens attend to hardly more than themselves.

    References
    ----------
    Knight, Ruiz, Uçar, *A symmetry preserving algorithm for matrix scaling*, SIAM J.
    Matrix Anal. Appl. 35 (2014), for symmetric scaling with a square root. Feydy et
    al., *Interpolating between optimal transport and MMD using Sinkhorn divergences*,
    AISTATS 2019, for the averaged potential; the library OTT iterates the same in its
    symmetric mode, by logarithms.
    """
    problem = checked_problem(x, eps, weights, tol)
    require_count("max_iter", max_iter)
    found = transport(*problem, partial(symmetric_scaling, max_iter=max_iter))
    warn(found)
    return found


def alternating_transport(
    x: npt.ArrayLike,
    eps: float,
    *,
    weights: npt.ArrayLike | None = None,
    tol: float = 1e-10,
    max_iter: int = 100_000,
) -> SelfTransport:
    r"""The same transport by the alternating scaling, for comparison.

    .. math:: u \leftarrow 1 / K(w v), \qquad v \leftarrow 1 / K(w u)

    with the same kernel and the same stopping rule; one iteration is both updates.
    Near the solution its rate is the square of the second largest eigenvalue of the
    row-normalized plan, which tends to 1 as ε → 0.

    Parameters
    ----------
    x, eps, weights, tol
        As in :func:`self_transport`.
    max_iter : int
        Iterations at most.

    Returns
    -------
    SelfTransport
        With different scalings ``.left`` and ``.right``. The columns of its plan have
        the exact sums, its rows the marginal error.

    Raises
    ------
    ValueError
        As :func:`self_transport`.

    Warns
    -----
    ConvergenceWarning, FrozenFlowWarning
        As :func:`self_transport`; it does not notice that an error stops falling.

    References
    ----------
    Sinkhorn, Knopp, Pacific J. Math. 21 (1967); Cuturi, *Sinkhorn distances*, NIPS
    2013.
    """
    problem = checked_problem(x, eps, weights, tol)
    require_count("max_iter", max_iter)
    found = transport(*problem, partial(alternating_scaling, max_iter=max_iter))
    warn(found)
    return found


def bridge_step(
    x: npt.ArrayLike,
    eps: float,
    *,
    weights: npt.ArrayLike | None = None,
    tol: float = 1e-10,
) -> Array:
    r"""One attention layer :math:`x \mapsto 2x - B(x)` with time step ε.

    It is the update :math:`x_i + \sum_j P_{ij} W^V (x_j - x_i)` with
    :math:`W^V = -I` and the attention P of :func:`self_transport`: each token moves
    away from the mean of what it attends to.

    Parameters
    ----------
    x, eps, weights, tol
        As in :func:`self_transport`.

    Returns
    -------
    ndarray, shape (n, d)

    Raises
    ------
    ValueError
        As :func:`self_transport`.

    Warns
    -----
    ConvergenceWarning, FrozenFlowWarning
        As :func:`self_transport`.
    """
    found = transport(*checked_problem(x, eps, weights, tol), symmetric_scaling)
    warn(found)
    return found.x - found.displacement()


def gibbs_kernel(x: npt.ArrayLike, eps: float) -> Array:
    r"""The Gibbs kernel :math:`K_{ij} = e^{-|x_i - x_j|^2/2\varepsilon}`.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Tokens.
    eps : float
        Regularization ε > 0.

    Returns
    -------
    ndarray, shape (n, n)
        Symmetric, positive semidefinite, with diagonal 1.

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix, entries beyond 1e100, or an eps that
        is not positive.
    """
    tokens = require_tokens("x", x)
    kernel = GibbsKernel(tokens, require_positive("eps", eps), store=False)
    return kernel.entries(slice(0, len(tokens)))
