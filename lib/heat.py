r"""The heat flow of a density, and the schemes that follow it by attention.

The heat flow :math:`\partial_t\rho = \frac12\Delta\rho` moves mass with the velocity
:math:`v = -\frac12\nabla\log\rho`. One attention layer is
:math:`x \mapsto 2x - B(x)` with the barycentric map B of :mod:`lib.sinkhorn`. Since
:math:`x - B(x) \approx -\frac\varepsilon2\nabla\log\rho(x)`, it is a step of time ε.

Tokens without weights are particles. Quadrature nodes with weights stand for a density
itself: the weights stay, the nodes move, and the scheme for infinitely many particles
is computed to the accuracy of the quadrature.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lib._checks import LARGEST, require_flag, require_line, require_positive
from lib._heat.gaussian import (
    gaussian_barycentric,
    gaussian_flow,
    gaussian_slope,
    gaussian_w2,
)
from lib._heat.mixture import GaussianMixture, require_mixture
from lib._heat.quadrature import SpacingWarning, node_density, quadrature
from lib._heat.steps import kl_surrogate, softmax_step, surrogate_step
from lib._heat.wasserstein import PairedDistance, w2_of_pairs, w2_to_law
from lib._heat.watch import Watch
from lib._sinkhorn.transport import checked_problem, symmetric_scaling, transport
from lib._trajectory import Trajectory, step_times

__all__ = [
    "GaussianMixture",
    "PairedDistance",
    "SpacingWarning",
    "bridge_flow",
    "euler_flow",
    "gaussian_barycentric",
    "gaussian_flow",
    "gaussian_slope",
    "gaussian_w2",
    "kl_surrogate",
    "node_density",
    "ornstein_uhlenbeck_flow",
    "quadrature",
    "softmax_step",
    "surrogate_step",
    "w2_of_pairs",
    "w2_to_law",
]


def bridge_flow(
    x: npt.ArrayLike,
    eps: float,
    steps: int,
    *,
    weights: npt.ArrayLike | None = None,
    backward: bool = False,
    tol: float = 1e-10,
) -> Trajectory:
    r"""The iterated bridge step :math:`x \leftarrow 2x - B(x)`: the heat flow.

    For smooth densities on the line we measure an error of order 2 in ε.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Tokens at the start.
    eps : float
        Regularization and time step ε > 0.
    steps : int
        Number of steps, at least 1.
    weights : array_like, shape (n,), optional
        Positive weights of sum 1, by default 1/n. Tokens on the line with weights are
        taken for the nodes of a quadrature, whose gaps are watched.
    backward : bool
        Whether to iterate :math:`x \leftarrow B(x)` instead (value matrix +I): the
        heat flow run back in time, which is ill-posed.
    tol : float
        L1 marginal error of each transport.

    Returns
    -------
    Trajectory
        ``times`` kε, (steps + 1,), and ``states`` (steps + 1, n, d).

    Raises
    ------
    ValueError
        As :func:`lib.sinkhorn.self_transport`; for fewer than 1 step; for a time
        beyond the float range.

    Warns
    -----
    SpacingWarning
        When nodes are further apart than 0.9√ε where the density is not negligible.
    FrozenFlowWarning, ConvergenceWarning
        As :func:`lib.sinkhorn.self_transport`, once for all steps.
    """
    sign = 1.0 if require_flag("backward", backward) else -1.0
    return _iterated(x, eps, steps, weights, tol, sign=sign)


def ornstein_uhlenbeck_flow(
    x: npt.ArrayLike,
    eps: float,
    steps: int,
    *,
    weights: npt.ArrayLike | None = None,
    variance: float = 1.0,
    splitting: str = "strang",
    tol: float = 1e-10,
) -> Trajectory:
    r"""Bridge steps and exact drifts in turn: the flow to :math:`\mathcal N(0, sI)`.

    The equation is
    :math:`\partial_t\rho = \nabla\cdot(\frac{x}{2s}\rho) + \frac12\Delta\rho`. Its
    drift contracts by :math:`c = e^{-\varepsilon/2s}` in a time ε. Lie splitting is
    :math:`x \leftarrow c\,(2x - B(x))`, of order 1. Strang splitting, of order 2, has
    half of the drift before the bridge step and half after it.

    Parameters
    ----------
    x, eps, steps, weights, tol
        As in :func:`bridge_flow`.
    variance : float
        Variance s > 0 of the stationary law in each coordinate.
    splitting : {"strang", "lie"}

    Returns
    -------
    Trajectory
        As :func:`bridge_flow`.

    Raises
    ------
    ValueError
        As :func:`bridge_flow`, for a variance that is not positive, or another
        splitting.

    Warns
    -----
    SpacingWarning, FrozenFlowWarning, ConvergenceWarning
        As :func:`bridge_flow`.
    """
    if not isinstance(splitting, str) or splitting not in ("strang", "lie"):
        raise ValueError(f"splitting must be 'strang' or 'lie', got {splitting!r}")
    rate = require_positive("eps", eps) / 2 / require_positive("variance", variance)
    if not rate < np.inf:
        raise ValueError(f"variance is too small for eps={eps!r}, got {variance!r}")
    shares = (0.5, 0.5) if splitting == "strang" else (0.0, 1.0)
    before, after = (float(np.exp(-rate * share)) for share in shares)
    return _iterated(x, eps, steps, weights, tol, before=before, after=after)


def euler_flow(
    x: npt.ArrayLike, eps: float, steps: int, law: GaussianMixture
) -> Trajectory:
    r"""Explicit Euler with the exact score of the exact heat flow of ``law``.

    At the time t = kε a step is

    .. math:: x \leftarrow x - \tfrac\varepsilon2 (\log\rho_t)'(x) .

    Parameters
    ----------
    x : array_like, shape (n, 1)
        Tokens at the start.
    eps : float
        Time step ε > 0.
    steps : int
        Number of steps, at least 1.
    law : GaussianMixture
        The density at time 0.

    Returns
    -------
    Trajectory
        ``times`` kε, (steps + 1,), and ``states`` (steps + 1, n, 1).

    Raises
    ------
    ValueError
        For tokens that are not a finite (n, 1) array, a law that is no mixture, an eps
        that is not positive, fewer than 1 step, or tokens that leave ±1e100.
    """
    require_mixture("law", law)
    tokens = require_line("x", x)
    times = step_times(require_positive("eps", eps), steps)
    states = np.empty((len(times), *tokens.shape))
    states[0] = tokens
    for k, t in enumerate(times[:-1]):
        with np.errstate(over="ignore"):
            states[k + 1] = states[k] - eps / 2 * law.heat(t).score(states[k])
        if not np.abs(states[k + 1]).max() <= LARGEST:
            raise ValueError(f"eps is too large: tokens left ±1e100 at step {k + 1}")
    return Trajectory(times, states)


def _iterated(
    x: npt.ArrayLike,
    eps: float,
    steps: int,
    weights: npt.ArrayLike | None,
    tol: float,
    *,
    sign: float = -1.0,
    before: float = 1.0,
    after: float = 1.0,
) -> Trajectory:
    """The flow y = before · x, x ← after · (y + sign · (B(y) − y))."""
    tokens, eps, w, tol = checked_problem(x, eps, weights, tol)
    times = step_times(eps, steps)
    states = np.empty((len(times), *tokens.shape))
    states[0] = tokens
    watch = Watch(w, nodes=weights is not None and tokens.shape[1] == 1)
    for k, t in enumerate(times[:-1]):
        found = transport(before * states[k], eps, w, tol, symmetric_scaling)
        watch.see(found, float(t))
        states[k + 1] = after * (found.x + sign * found.displacement())
    watch.warn()
    return Trajectory(times, states)
