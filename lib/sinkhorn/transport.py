"""Same-marginal entropic transport: its scaling iterations, and their result."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    require_count,
    require_positive,
    require_tokens,
    weights_or_equal,
)
from lib.sinkhorn.kernel import GibbsKernel, squared_distances

_WINDOW = 10  # iterations in which the error must halve: the local rate is ½ or less
_ROUNDING = 1e-12  # errors below are stopped by rounding
_SOME = 64  # tokens that a warning looks at
_OWN = 0.9  # attention to its own place from which a token counts as frozen
# u, v, K(wv), the number of updates and the error.
Scalings = tuple[Array, Array, Array, int, float]


class ConvergenceWarning(UserWarning):
    """An iteration stopped before its marginal error fell to the tolerance."""


class FrozenFlowWarning(UserWarning):
    """Most tokens attend to hardly more than themselves: steps hardly move them."""


@dataclass(frozen=True, eq=False)
class SelfTransport:
    r"""An entropic transport of weighted tokens to themselves.

    The plan is :math:`\pi_{ij} = w_i u_i K_{ij} v_j w_j`, with u = v where the
    iteration is symmetric.

    Attributes
    ----------
    x : ndarray, shape (n, d)
        Tokens.
    eps : float
        Regularization.
    weights : ndarray, shape (n,)
        Their weights w.
    left, right : ndarray, shape (n,)
        The scalings u and v.
    iterations : int
        Number of updates of the scalings.
    error : float
        L1 marginal error :math:`\sum_i |\sum_j \pi_{ij} - w_i|`, largest of both sides.
    converged : bool
        Whether that error is at most the tolerance.
    frozen : bool
        Whether tokens with more than half of the weight pay more than 0.9 of their
        attention to their own place; never if all tokens are at one place.
    """

    x: Array
    eps: float
    weights: Array
    left: Array
    right: Array
    iterations: int
    error: float
    converged: bool
    frozen: bool
    _kernel: GibbsKernel = field(repr=False)
    _received: Array = field(repr=False)  # K(wv)

    @property
    def value(self) -> float:
        r"""Least cost :math:`\sum_{ij} \pi_{ij} \frac12|x_i - x_j|^2
        + \varepsilon\,\mathrm{KL}(\pi | w \otimes w)`.

        By duality it is :math:`\varepsilon \sum_i w_i (\log u_i + \log v_i)`, right
        up to the square of the marginal error.
        """
        return float(self.eps * (self.weights @ np.log(self.left * self.right)))

    def plan(self) -> Array:
        """The plan π, shape (n, n): mass 1, marginals the weights."""
        plan = np.empty((len(self.x), len(self.x)))
        for rows, block in self._kernel.blocks():
            plan[rows, :] = block * (self.weights * self.right)
            plan[rows, :] *= (self.weights * self.left)[rows, None]
        return plan

    def barycentric(self, values: npt.ArrayLike | None = None) -> Array:
        r"""Barycentric projection :math:`B(x_i) = \sum_j P_{ij} x_j`, shape (n, d).

        P is the plan with rows normalized to sum 1, converged or not. With ``values``
        of shape (n, k) these are averaged in place of the tokens: a conditional
        expectation.

        Raises ValueError for values that are not a finite matrix with n rows.
        """
        if values is None:
            return self.x + self.displacement()
        rows = require_tokens("values", values)
        if len(rows) != len(self.x):
            raise ValueError(
                f"values must have {len(self.x)} rows, got shape {rows.shape}"
            )
        return self._average(rows)

    def displacement(self) -> Array:
        """B(x) − x, shape (n, d), where differences of large numbers cancel early."""
        mass = self.weights * self.right
        return displacement(self._kernel, mass, self._received, self._kernel.centered)

    def effective_neighbors(self) -> Array:
        r"""Effective number of neighbors :math:`1 / \sum_j P_{ij}^2`, shape (n,).

        From 1, where a token sees itself only, to n.
        """
        mass = self.weights * self.right
        rows = [effective_number(block * mass) for _, block in self._kernel.blocks()]
        return np.concatenate(rows)

    def _average(self, values: Array) -> Array:
        mass = self.weights * self.right
        return average(self._kernel, mass, self._received, values)


def average(
    kernel: GibbsKernel | Array, mass: Array, received: Array, values: Array
) -> Array:
    """Σ_j P_ij values_j with the rows K_ij mass_j of P normalized, (n, k)."""
    return (kernel @ (mass[:, None] * values)) / received[:, None]


def displacement(
    kernel: GibbsKernel | Array, mass: Array, received: Array, centered: Array
) -> Array:
    """B(x) − x, (n, d), of tokens about their mean: a layer takes it off the tokens."""
    return average(kernel, mass, received, centered) - centered


def effective_number(attention: Array) -> Array:
    """1 / Σ_j P_ij² of the rows (..., n) of an attention, normalized to P."""
    shares = attention / attention.sum(axis=1, keepdims=True)
    return np.asarray(1 / np.einsum("ij,ij->i", shares, shares))


def mostly_own(shares: Array, w: Array) -> bool:
    """Tell whether more than half of the weight keeps 0.9 of its attention at home.

    ``shares`` of shape (n,) are those that tokens pay to their own place.
    """
    frozen: float = np.sum(np.where(shares > _OWN, w, 0.0))
    return frozen > 0.5


def symmetric_update(
    kernel: GibbsKernel | Array, w: Array, u: Array
) -> tuple[Array, float, Array]:
    """K(wu), the error Σ w|u K(wu) − 1| of the scaling u, and the next one."""
    received = kernel @ (w * u)
    return received, np.sum(w * np.abs(u * received - 1)), np.sqrt(u / received)


def symmetric_scaling(
    kernel: GibbsKernel, w: Array, tol: float, max_iter: int = 500
) -> Scalings:
    """Iterate u ← √(u / K(wu)) until Σ w|u K(wu) − 1| ≤ tol, or it stops falling."""
    u = np.ones_like(w)
    errors: list[float] = []
    while True:
        received, error, following = symmetric_update(kernel, w, u)
        errors.append(float(error))
        stalled = len(errors) > _WINDOW and errors[-1] > errors[-1 - _WINDOW] / 2
        if errors[-1] <= tol or stalled or len(errors) > max_iter:
            return u, u, received, len(errors) - 1, errors[-1]
        u = following


def alternating_scaling(
    kernel: GibbsKernel, w: Array, tol: float, max_iter: int
) -> Scalings:
    """Iterate u ← 1 / K(wv), v ← 1 / K(wu) until Σ w|u K(wv) − 1| ≤ tol."""
    u, v = np.ones_like(w), np.ones_like(w)
    iterations = 0
    while True:
        received = kernel @ (w * v)
        # The columns are exact once v is updated: all of the error is in the rows.
        error = float(np.sum(w * np.abs(u * received - 1)))
        if error <= tol or iterations == max_iter:
            return u, v, received, iterations, error
        u = 1 / received
        v = 1 / (kernel @ (w * u))
        iterations += 1


def checked_problem(
    x: npt.ArrayLike, eps: float, weights: npt.ArrayLike | None, tol: float
) -> tuple[Array, float, Array, float]:
    """Tokens, eps, weights and tol after the checks shared by all transports."""
    tokens = require_tokens("x", x)
    w = weights_or_equal("weights", weights, len(tokens), "x")
    return tokens, require_positive("eps", eps), w, require_positive("tol", tol)


def transport(
    x: Array, eps: float, w: Array, tol: float, scale: Callable[..., Scalings]
) -> SelfTransport:
    """Solve by ``scale(kernel, w, tol)``, without warnings."""
    kernel = GibbsKernel(x, eps)
    u, v, received, iterations, error = scale(kernel, w, tol)
    frozen = _is_frozen(x, w, w * v, received)
    return SelfTransport(
        x, eps, w, u, v, iterations, error, error <= tol, frozen, kernel, received
    )


def _is_frozen(x: Array, w: Array, mass: Array, received: Array) -> bool:
    """Tell whether most tokens attend to their own place, which copies share."""
    # Copies have the same sum, so that one number per token brings them together.
    order = np.argsort((x * np.cos(np.arange(x.shape[1]))).sum(axis=1))
    new = (x[order[1:]] != x[order[:-1]]).any(axis=1)  # (n - 1,)
    if not new.any():
        return False
    place = np.empty(len(x), dtype=np.int64)
    place[order] = np.concatenate([[0], np.cumsum(new)])
    return bool(mostly_own(np.bincount(place, mass)[place] / received, w))


def warn(result: SelfTransport) -> None:
    """Warn whoever called the caller of a result that did not converge or is frozen."""
    if not result.converged:
        rounding = result.error < _ROUNDING
        reason = "tol is below what rounding allows" if rounding else "raise max_iter"
        warnings.warn(
            f"the marginal error is {result.error:.1e} after {result.iterations}"
            f" iterations and not at most tol: {reason}",
            ConvergenceWarning,
            stacklevel=3,
        )
    if result.frozen:
        nearest = _nearest(result.x)
        warnings.warn(
            f"at eps={result.eps:.3g} most tokens attend to hardly more than themselves"
            f" and do not follow a density; their squared distance to the nearest other"
            f" token is about {nearest:.3g}, and eps should be of that order",
            FrozenFlowWarning,
            stacklevel=3,
        )


def _nearest(x: Array) -> float:
    """Median of the squared distance to the nearest other place, over some tokens."""
    some = x[:: max(1, len(x) // _SOME)]
    squares = squared_distances(some, x)
    squares[squares == 0] = np.inf
    return float(np.median(squares.min(axis=1)))


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
    result = transport(*problem, partial(symmetric_scaling, max_iter=max_iter))
    warn(result)
    return result


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
    result = transport(*problem, partial(alternating_scaling, max_iter=max_iter))
    warn(result)
    return result


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
    result = transport(*checked_problem(x, eps, weights, tol), symmetric_scaling)
    warn(result)
    return result.x - result.displacement()
