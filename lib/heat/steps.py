"""Single steps beside the bridge step: softmax, and bridges to a surrogate measure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    LARGEST,
    Array,
    require_moderate,
    require_number,
    require_positive,
    require_tokens,
    require_weights,
)
from lib.heat.nodes import node_cells
from lib.sinkhorn.attention import sinkhorn_attention
from lib.sinkhorn.kernel import GibbsKernel
from lib.sinkhorn.transport import checked_problem, displacement, self_transport

_LIGHTEST = 1e-300  # weights below are raised to it


def softmax_step(
    x: npt.ArrayLike,
    eps: float,
    *,
    weights: npt.ArrayLike | None = None,
    kernel: str = "distance",
) -> Array:
    r"""The step :math:`x \mapsto 2x - B(x)` with rows normalized once: a softmax.

    With the kernel of distances, :math:`w_j e^{-|x_i - x_j|^2/2\varepsilon}`, the step
    follows :math:`\partial_t\rho = \Delta\rho`: twice the speed of the bridge step,
    and order 1. With the kernel of dot products,
    :math:`w_j e^{\langle x_i, x_j\rangle/\varepsilon}`, there is no such limit as
    ε → 0.

    Parameters
    ----------
    x, eps, weights
        As in :func:`lib.heat.bridge_flow`.
    kernel : {"distance", "dot"}

    Returns
    -------
    ndarray, shape (n, d)

    Raises
    ------
    ValueError
        As :func:`lib.sinkhorn.self_transport`, for another kernel, or for dot products
        beyond 1e100 ε.
    """
    if not isinstance(kernel, str) or kernel not in ("distance", "dot"):
        raise ValueError(f"kernel must be 'distance' or 'dot', got {kernel!r}")
    tokens, number, w, _ = checked_problem(x, eps, weights, 1.0)
    if kernel == "distance":
        gibbs = GibbsKernel(tokens, number)
        return tokens - displacement(gibbs, w, gibbs @ w, gibbs.centered)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = tokens @ (tokens / number).T + np.log(w)  # (n, n)
    if not (np.abs(scores) <= LARGEST).all():
        raise ValueError(f"x is too large for eps={eps!r}: a score exceeds 1e100")
    return np.asarray(2 * tokens - sinkhorn_attention(scores, 1) @ tokens)


def surrogate_step(
    x: npt.ArrayLike,
    eps: float,
    surrogate: npt.ArrayLike,
    *,
    theta: float = -1.0,
    tol: float = 1e-10,
) -> Array:
    r"""The general bridge step :math:`x \mapsto x + \theta (B(x) - x)`.

    B is the barycentric map of a surrogate measure :math:`\rho^{\mathrm s}`. As
    :math:`B - \mathrm{id} \approx \frac\varepsilon2\nabla\log\rho^{\mathrm s}`, the
    step follows the velocity
    :math:`v = \frac\theta2\nabla\log\rho^{\mathrm s}`. To follow a given v, choose a
    θ of either sign for which the surrogate with that score is integrable.

    - Heat flow, :math:`v = -\frac12\nabla\log\rho`: the surrogate is ρ itself and
      θ = −1, which is :func:`lib.sinkhorn.bridge_step`.
    - Flow of the relative entropy to a Gaussian: :func:`kl_surrogate`.

    Parameters
    ----------
    x, eps, tol
        As in :func:`lib.heat.bridge_flow`.
    surrogate : array_like, shape (n,)
        Weights of the surrogate measure at the tokens, positive with sum 1.
    theta : float

    Returns
    -------
    ndarray, shape (n, d)

    Raises
    ------
    ValueError
        As :func:`lib.sinkhorn.self_transport`, for a theta that is not finite, or a
        step that leaves ±1e100.

    Warns
    -----
    FrozenFlowWarning, ConvergenceWarning
        As :func:`lib.sinkhorn.self_transport`.

    References
    ----------
    Agarwal, Harchaoui, Mulcahy, Pal, *Iterated Schrödinger bridge approximation to
    Wasserstein gradient flows*, 2024, arXiv:2406.10823.
    """
    theta = require_number("theta", theta)
    tokens = require_tokens("x", x)
    own = require_weights("surrogate", surrogate, len(tokens), "x")
    result = self_transport(tokens, eps, weights=own, tol=tol)
    with np.errstate(over="ignore"):
        moved = tokens + theta * result.displacement()
    return require_moderate("theta times the displacement of x", moved)


def kl_surrogate(
    x: npt.ArrayLike, weights: npt.ArrayLike, *, variance: float = 1.0
) -> tuple[Array, float]:
    r"""Surrogate and θ of the flow of :math:`\frac12\mathrm{KL}(\rho|\nu)`, ν Gaussian.

    The velocity is :math:`-\frac12\nabla\log(\rho/\nu)` with
    :math:`\nu = \mathcal N(0, sI)`. For a ρ narrower than ν the surrogate is ρ/ν with
    θ = −1, else ν/ρ with θ = 1, both normalized: one of the two is integrable.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Tokens of ρ. If ρ is wider than ν, they must be quadrature nodes on the line,
        as the density of ρ is needed.
    weights : array_like, shape (n,)
        Their weights.
    variance : float
        s > 0.

    Returns
    -------
    surrogate : ndarray, shape (n,)
        Weights at the tokens, at least 1e-300, for :func:`surrogate_step`.
    theta : float

    Raises
    ------
    ValueError
        For tokens that are not a finite matrix, weights that are not positive with sum
        1, a variance that is not positive, or a ρ wider than ν in d > 1.
    """
    tokens = require_tokens("x", x)
    n, d = tokens.shape
    w = require_weights("weights", weights, n, "x")
    s = require_positive("variance", variance)
    with np.errstate(over="ignore"):
        potential = ((tokens / np.sqrt(s)) ** 2).sum(axis=1) / 2  # −log ν
    if not potential.max() < LARGEST:
        raise ValueError("x is too far from the Gaussian of this variance")
    if w @ potential < d / 2:
        logs, theta = np.log(w) + potential, -1.0
    else:
        if d > 1 or n == 1:
            raise ValueError(
                f"x must be nodes on the line where it is wider than the Gaussian,"
                f" got shape {tokens.shape}"
            )
        # ν/ρ has weight ν · (cell / w) · cell in the cell of a node. At the ends of the
        # line steps contract more and nodes may meet: their cells are then 0.
        with np.errstate(divide="ignore"):
            cells = np.log(node_cells(tokens))
        logs, theta = 2 * cells - np.log(w) - potential, 1.0
    surrogate = np.exp(logs - logs.max())
    return np.maximum(surrogate / surrogate.sum(), _LIGHTEST), theta
