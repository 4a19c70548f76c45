"""Layers of random weights with a shaped ReLU: see :mod:`lib.gram.layers`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lib.core.checks import Array, require_count, require_number
from lib.core.psd import triangular
from lib.gram.base import WIDEST, Layer, Residual, times_weights, token_root


class _Relu(Layer):
    """σ(x) = s₊ max(x, 0) + s₋ min(x, 0) with slopes s± = 1 + c±/√n."""

    slopes: tuple[float, float]

    def _check_slopes(self) -> None:
        if not isinstance(self.slopes, tuple) or len(self.slopes) != 2:
            raise ValueError(f"slopes must be a pair of numbers, got {self.slopes!r}")
        for slope in self.slopes:
            require_number("slopes", slope)
        if self._slope(0) == 0 and self._slope(1) == 0:
            raise ValueError(f"slopes make the activation 0, got {self.slopes!r}")

    def _slope(self, side: int) -> float:
        return float(1 + self.slopes[side] / np.sqrt(self.width))

    def _activation(self, x: Array) -> Array:
        r"""√c σ(x) with :math:`c = 2/(s_+^2 + s_-^2)`, so that E (√c σ(g))² = 1."""
        up, down = self._slope(0), self._slope(1)
        kept = np.sqrt(2.0) / np.hypot(up, down)
        return np.asarray(x * np.where(x > 0, kept * up, kept * down))

    def _active(self, root: Array, rng: np.random.Generator) -> Array:
        """Root √(c/n) σ(C G) after the activation, with G normal k × n: (paths, m, n).

        The activations have no law that a few numbers give: the cost is m²n.
        """
        paths, _, k = root.shape
        draws = root @ rng.standard_normal((paths, k, self.width))
        return np.asarray(self._activation(draws) / np.sqrt(self.width))


@dataclass(frozen=True)
class ReluLayer(_Relu):
    r"""Shaped ReLU without skip connection.

    .. math:: X' = \sqrt c\,\varphi_s(XW/\sqrt n),

    where :math:`\varphi_s(x) = s_+ \max(x, 0) + s_- \min(x, 0)` with
    :math:`s_\pm = 1 + c_\pm/\sqrt n`, and :math:`c = 2/(s_+^2 + s_-^2)`.

    Parameters
    ----------
    width : int
        n, coordinates of a token.
    slopes : (float, float)
        c₊ and c₋. Opposite slopes, the default, make the bias of a finite width O(1/n);
        others leave O(1/√n).

    Raises
    ------
    ValueError
        For a width below 1, or slopes that are not two finite numbers.
    """

    width: int
    slopes: tuple[float, float] = (1.0, -1.0)

    def __post_init__(self) -> None:
        require_count("width", self.width, most=WIDEST)
        self._check_slopes()

    def _gram_step(self, root: Array, rng: np.random.Generator) -> Array:
        """Roots after the layer."""
        after = self._active(root, rng)  # (paths, m, n)
        return after if self.width < 2 * root.shape[1] else triangular(after)

    def _token_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens after the layer; XW/√n has the law of C G with G normal k × n."""
        return np.asarray(self._active(token_root(x), rng) * np.sqrt(self.width))

    def _dense_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens after the layer, with its weights."""
        return self._activation(times_weights(x, self.width, self.width, rng))


@dataclass(frozen=True)
class ResidualReluLayer(_Relu, Residual):
    r"""Perceptron with a skip connection and a shaped ReLU between two matrices.

    .. math:: X' = \lambda X + \tfrac{\gamma}{\sqrt n}\, Z W^{\mathrm{post}}, \qquad
              Z = \sqrt c\,\varphi_s(X W^{\mathrm{pre}}/\sqrt n).

    Parameters
    ----------
    width, slopes
        As in :class:`ReluLayer`.
    skip, branch : float
        λ and γ.
    pre_norm : bool
        Whether the branch sees each token over its root mean square (RMSNorm).

    Raises
    ------
    ValueError
        As :class:`ReluLayer`, and for weights that are not finite.
    """

    width: int
    skip: float
    branch: float
    slopes: tuple[float, float] = (1.0, -1.0)
    pre_norm: bool = False

    def __post_init__(self) -> None:
        self.check_residual()
        self._check_slopes()

    def _branch_root(self, root: Array, rng: np.random.Generator) -> Array:
        """The root of the activations."""
        return self._active(root, rng)

    def _branch_tokens(self, x: Array, rng: np.random.Generator) -> Array:
        """The activations, with real weights."""
        return self._activation(times_weights(x, self.width, self.width, rng))
