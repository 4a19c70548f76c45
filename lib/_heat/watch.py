"""What a flow has to say about its steps: one warning of a kind, at the end."""

from __future__ import annotations

import warnings

import numpy as np

from lib._checks import Array
from lib._heat.quadrature import SpacingWarning, widest_gap
from lib._sinkhorn.transport import ConvergenceWarning, FrozenFlowWarning, SelfTransport

#: Widest gap of a quadrature in units of √ε: the error is then e^{−2π²/0.81} = 3e-11.
WIDEST = 0.9


class Watch:
    """Looks at each transport of a flow, and warns of all of them together.

    ``nodes`` says whether the tokens are the nodes of a quadrature on the line.
    """

    def __init__(self, weights: Array, nodes: bool):
        self.weights, self.nodes = weights, nodes
        self.frozen: list[float] = []
        self.errors: list[float] = []
        self.gaps: list[tuple[float, float]] = []

    def see(self, found: SelfTransport, t: float) -> None:
        """Note what is wrong with the transport at the time t."""
        if found.frozen:
            self.frozen.append(t)
        if not found.converged:
            self.errors.append(found.error)
        if self.nodes:
            gap = widest_gap(found.x, self.weights) / np.sqrt(found.eps)
            if gap > WIDEST:
                self.gaps.append((t, gap))

    def warn(self) -> None:
        """Warn the caller of the flow."""
        if self.gaps:
            (t, _), gap = self.gaps[0], max(gap for _, gap in self.gaps)
            self._say(
                f"from time {t:.3g} on, nodes are more than {WIDEST} √eps apart, up to"
                f" {gap:.3g} √eps, where the quadrature of a step has an error of order"
                f" {np.exp(-2 * (np.pi / gap) ** 2):.0e}: start with closer nodes",
                SpacingWarning,
            )
        if self.frozen:
            self._say(
                f"at {len(self.frozen)} steps, first at time {self.frozen[0]:.3g}, most"
                f" tokens attend to hardly more than themselves and do not follow a"
                f" density",
                FrozenFlowWarning,
            )
        if self.errors:
            self._say(
                f"at {len(self.errors)} steps the marginal error did not fall to tol,"
                f" but to {max(self.errors):.1e}",
                ConvergenceWarning,
            )

    def _say(self, message: str, category: type[Warning]) -> None:
        # The frames are this one, warn, the iteration, the public function, its caller.
        warnings.warn(message, category, stacklevel=5)
