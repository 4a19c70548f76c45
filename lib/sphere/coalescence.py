r"""Clusters that drift together: attention at large β over exponentially long times.

Clusters at a distance move at speeds of order :math:`e^{-\beta(1 - \cos)}`, which soon
falls below the rounding of a field that is summed over all tokens. Here tokens closer
than a small radius become one token whose weight is their number. A token at x then
moves by

.. math:: \operatorname{Proj}_x \frac{\sum_{y \ne x} w_y e^{\beta(\langle x, y\rangle
          - 1)} y}{w_x + \sum_{y \ne x} w_y e^{\beta(\langle x, y\rangle - 1)}} ,

where its own term is left out of the numerator, to which it contributes exactly 0. So
speeds keep their relative precision however small they are. The path is followed in
its length instead of in time, for the time from one merging to the next grows like
:math:`e^{c\beta}` while the length of the path does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    Array,
    require_count,
    require_flag,
    require_positive,
    require_within,
)
from lib.sphere.equiangular import LOG_LARGEST_TIME
from lib.sphere.geometry import cluster_labels, require_unit, tangent, unit

_BALANCED = 1e-12  # a total force this small next to its terms is an equilibrium


@dataclass(frozen=True)
class Coalescence:
    """Tokens on their way to one cluster.

    Attributes
    ----------
    times : ndarray, shape (K,)
        From 0 on; at a merging the same time stands twice, before and after.
    states : ndarray, shape (K, n, d)
        Position of each token, which is that of its cluster.
    labels : ndarray of int, shape (K, n)
        Cluster of each token, numbered by first appearance.
    """

    times: Array
    states: Array
    labels: npt.NDArray[np.int64]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of clusters at each time, shape (K,)."""
        return np.asarray(self.labels.max(axis=1) + 1)

    @property
    def plateaus(self) -> Array:
        r"""Sum of the squared masses :math:`\sum_c w_c^2` at each time, (K,)."""
        n = self.labels.shape[1]
        masses = np.stack([np.bincount(row, minlength=n) / n for row in self.labels])
        return np.asarray((masses**2).sum(axis=1))

    @property
    def merge_times(self) -> Array:
        """Times at which clusters merged, in order; one entry for each merging."""
        return self.times[1:][np.diff(self.counts) < 0]


def coalesce(
    x0: npt.ArrayLike,
    beta: float,
    *,
    normalize: bool = True,
    clusters: int = 1,
    radius: float = 1e-3,
    tol: float = 1e-8,
) -> Coalescence:
    r"""Follow tokens until ``clusters`` clusters are left, to times such as 1e33.

    Parameters
    ----------
    x0 : array_like, shape (n, d)
        Unit tokens of one system.
    beta : float
        Inverse temperature β > 0.
    normalize : bool
        False for the unnormalized model in its time :math:`s = e^\beta t`.
    clusters : int
        Where to stop.
    radius : float
        Chord below which tokens are merged, at their weighted mean. It should be small
        next to :math:`\beta^{-1/2}`, the width of the kernel.
    tol : float
        Relative error of one step of the solver.

    Returns
    -------
    Coalescence

    Raises
    ------
    ValueError
        For tokens off the sphere, a radius that is not small, or tokens that come to
        rest in an equilibrium, as symmetric ones do.
    OverflowError
        For times beyond the float range; the message gives the logarithm.
    """
    x = unit(require_unit("x0", x0))
    if x.ndim != 2:
        raise ValueError(f"x0 must be one system, of shape (n, d), got {x.shape}")
    beta = require_positive("beta", beta)
    require_count("clusters", clusters)
    require_within("tol", tol, 1e-12, 1e-2)
    if not 1e-7 <= require_positive("radius", radius) < min(0.1, beta**-0.5):
        raise ValueError(
            f"radius must be at least 1e-7 and below 0.1 and beta^(-1/2), got"
            f" {radius!r} at beta={beta!r}"
        )
    normalize = require_flag("normalize", normalize)
    times, states, labels = [0.0], [x], [cluster_labels(x, 1e-300)]
    while True:
        x, masses, joined = _merged(states[-1], radius)
        if len(x) < labels[-1].max() + 1:
            times.append(times[-1])
            states.append(x[joined])
            labels.append(joined)
        if len(x) <= clusters:
            break
        elapsed, path = _approach(x, masses, beta, normalize, radius, tol)
        times.extend(times[-1] + elapsed)
        states.extend(path[:, joined])
        labels.extend([joined] * len(path))
    return Coalescence(np.array(times), np.array(states), np.array(labels))


def _merged(x: Array, radius: float) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """Clusters of the tokens x: positions (k, d), masses (k,), labels (n,)."""
    joined = cluster_labels(x, radius)
    while True:
        masses = np.bincount(joined) / len(x)
        sums = np.zeros((len(masses), x.shape[1]))
        np.add.at(sums, joined, x)
        means = unit(sums)
        # A mean may lie closer to a third token than either of the two did.
        again = cluster_labels(means, radius)
        if again.max() + 1 == len(means):
            return means, masses, joined
        joined = again[joined]


def _approach(
    x: Array, masses: Array, beta: float, normalize: bool, radius: float, tol: float
) -> tuple[Array, Array]:
    """Times (k,) and positions (k, c, d) of clusters until two of them touch."""
    from scipy.integrate import solve_ivp

    velocity = partial(_velocity, masses=masses, beta=beta, normalize=normalize)
    start, log_start = velocity(x)
    rate = np.sqrt(np.sum(start**2))

    def slope(_: float, y: Array) -> Array:
        """Derivatives by the length of the path, of time in units of its first one."""
        v, log_scale = velocity(unit(y[:-1].reshape(x.shape)))
        speed = np.sqrt(np.sum(v**2))
        return np.append(v / speed, rate / speed * np.exp(log_start - log_scale))

    def touch(_: float, y: Array) -> float:
        # A little less, so that rounding cannot leave them just outside the radius.
        gap = np.sqrt(_squares(unit(y[:-1].reshape(x.shape))).min())
        return float(gap - 0.999 * radius)

    touch.terminal = True  # type: ignore[attr-defined]
    begin, longest = np.append(x, 0.0), 100 * np.sqrt(len(x))
    path_solution = solve_ivp(
        slope, (0, longest), begin, "DOP853", events=touch, rtol=tol, atol=1e-10
    )
    if path_solution.status != 1:
        raise ValueError(
            f"x0 does not coalesce at beta={beta!r}: {path_solution.message}"
        )
    units = path_solution.y[-1, 1:]
    log_times = np.log(units) - np.log(rate) - log_start
    if log_times[-1] > LOG_LARGEST_TIME:
        raise OverflowError(
            f"the time of the next merging at beta={beta!r} exceeds the largest float;"
            f" its logarithm is {log_times[-1]:.12g}"
        )
    path = path_solution.y[:-1, 1:].T.reshape(-1, *x.shape)
    return np.exp(log_times), unit(path)


def _velocity(
    x: Array, masses: Array, beta: float, normalize: bool
) -> tuple[Array, float]:
    """Velocities of the clusters over a factor, and its logarithm."""
    exponents = beta * (-_squares(x) / 2)  # β(<x, y> − 1), −∞ on the diagonal
    top = float(exponents.max())
    pull = masses * np.exp(exponents - top)
    force = tangent(x, pull @ x)
    if np.abs(force).max() < _BALANCED * pull.sum(axis=1).max():
        raise ValueError(f"x0 leads {len(x)} clusters into an equilibrium")
    if normalize:
        force = force / (masses + np.exp(top) * pull.sum(axis=1))[:, None]
    return force, top


def _squares(x: Array) -> Array:
    """Squared distances between different tokens, ∞ on the diagonal."""
    squares = np.sum((x[:, None] - x) ** 2, axis=-1)
    np.fill_diagonal(squares, np.inf)
    return np.asarray(squares)
