"""Flows in many steps: of the heat equation, to a Gaussian law, and by exact scores."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from lib.core.checks import LARGEST, Array, require_flag, require_line, require_positive
from lib.core.trajectory import Trajectory, step_times
from lib.heat.mixture import Components, GaussianMixture, require_mixture
from lib.heat.nodes import SpacingWarning, widest_gap
from lib.sinkhorn.transport import (
    ConvergenceWarning,
    FrozenFlowWarning,
    SelfTransport,
    checked_problem,
    symmetric_scaling,
    transport,
)

#: Widest gap of a quadrature in units of √ε: the error is then e^{−2π²/0.81} = 3e-11.
WIDEST = 0.9


class FlowWarnings:
    """The warnings of a flow: one of each kind, after its last step.

    ``nodes`` says whether the tokens are the nodes of a quadrature on the line.
    """

    def __init__(self, weights: Array, nodes: bool):
        self.weights, self.nodes = weights, nodes
        self.frozen: list[float] = []
        self.errors: list[float] = []
        self.gaps: list[tuple[float, float]] = []

    def note(self, result: SelfTransport, t: float) -> None:
        """Note what is wrong with the transport at the time t."""
        if result.frozen:
            self.frozen.append(t)
        if not result.converged:
            self.errors.append(result.error)
        if self.nodes:
            gap = widest_gap(result.x, self.weights) / np.sqrt(result.eps)
            if gap > WIDEST:
                self.gaps.append((t, gap))

    def warn(self) -> None:
        """Warn the caller of the flow."""
        if self.gaps:
            (t, _), gap = self.gaps[0], max(gap for _, gap in self.gaps)
            self._warn(
                f"from time {t:.3g} on, nodes are more than {WIDEST} √eps apart, up to"
                f" {gap:.3g} √eps, where the quadrature of a step has an error of order"
                f" {np.exp(-2 * (np.pi / gap) ** 2):.0e}: start with closer nodes",
                SpacingWarning,
            )
        if self.frozen:
            self._warn(
                f"at {len(self.frozen)} steps, first at time {self.frozen[0]:.3g}, most"
                f" tokens attend to hardly more than themselves and do not follow a"
                f" density",
                FrozenFlowWarning,
            )
        if self.errors:
            self._warn(
                f"at {len(self.errors)} steps the marginal error did not fall to tol,"
                f" but to {max(self.errors):.1e}",
                ConvergenceWarning,
            )

    def _warn(self, message: str, category: type[Warning]) -> None:
        # The frames are this one, warn, the iteration, the public function, its caller.
        warnings.warn(message, category, stacklevel=5)


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
        As :func:`lib.sinkhorn.self_transport`; for fewer than 1 step.

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
            states[k + 1] = euler_step(states[k], eps, law.heat(t))
        if not np.abs(states[k + 1]).max() <= LARGEST:
            raise ValueError(f"eps is too large: tokens left ±1e100 at step {k + 1}")
    return Trajectory(times, states)


def euler_step(x: Array, eps: float, law: GaussianMixture | Components) -> Array:
    """One step against half the score of the law that the tokens have now."""
    return x - eps / 2 * law.score(x)


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
    warnings_of_steps = FlowWarnings(
        w, nodes=weights is not None and tokens.shape[1] == 1
    )
    for k, t in enumerate(times[:-1]):
        result = transport(before * states[k], eps, w, tol, symmetric_scaling)
        warnings_of_steps.note(result, float(t))
        states[k + 1] = after * (result.x + sign * result.displacement())
    warnings_of_steps.warn()
    return Trajectory(times, states)
