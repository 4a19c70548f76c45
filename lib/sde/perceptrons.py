"""Limits of perceptrons: the shaped ReLU, and smooth activations."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc

from lib.core.checks import LARGEST, Array, as_float, require_finite, require_within
from lib.core.psd import cosines, gram_of, semidefinite_root
from lib.sde.limits import Limit


class _Perceptron(Limit):
    """A shaped activation pulls V to a kernel Q(V) at a constant rate."""

    branch: float | None

    def _check_branch(self) -> None:
        if self.branch is not None:
            require_within("branch", self.branch, 0, 1)

    @property
    def linear_noise(self) -> float:
        """q = 1 without a skip connection, with it 2γ² for the two matrices."""
        return 1.0 if self.branch is None else float(2 * self.branch**2)

    @property
    def _weight(self) -> float:
        return 1.0 if self.branch is None else float(self.branch**2)

    @property
    @abstractmethod
    def _pull(self) -> float:
        """Rate at which V is pulled to Q, without a skip connection."""

    @abstractmethod
    def _excess(self, gram: Array) -> Array:
        """Q − V."""

    def _drift(self, gram: Array) -> Array:
        return np.asarray(self._weight * self._pull * self._excess(gram))

    def _advance(self, root: Array, step: Array, rng: np.random.Generator) -> Array:
        """Towards Q as if that did not move, a mean of Gram matrices; then noise."""
        if self._weight * self._pull > 0:
            gram = gram_of(root)
            share = -np.expm1(-self._weight * self._pull * step)[:, None, None]
            root = semidefinite_root(gram + share * self._excess(gram))
        return super()._advance(root, step, rng)


@dataclass(frozen=True)
class ReluSDE(_Perceptron):
    r"""Limit of perceptrons with the shaped ReLU, slopes :math:`1 + c_\pm/\sqrt n`.

    .. math:: b_{ij} = \nu(\rho_{ij}) \sqrt{V_{ii}V_{jj}}, \qquad
              \nu(\rho) = \frac{(c_+ - c_-)^2}{2\pi}
              \big(\sqrt{1 - \rho^2} - \rho\arccos\rho\big), \qquad
              \Sigma = \Sigma^{\mathrm{lin}},

    with the cosine ρ of two tokens; that is
    :math:`b = \frac14(c_+ - c_-)^2 (Q - V)` with the kernel Q of the absolute value,
    :math:`Q_{ij} = \mathbb E|x_i x_j|` for x of law N(0, V).

    Parameters
    ----------
    slopes : (float, float)
        c₊ and c₋.
    branch : float, optional
        γ from 0 to 1, of a perceptron of two matrices with a skip connection,
        λ² + γ² = 1: it has the drift γ²b and the noise 2γ²Σ^lin. Without it, there is
        one matrix and no skip connection.

    Raises
    ------
    ValueError
        For slopes that are not two numbers below 1e100, or a branch out of range.
    """

    slopes: tuple[float, float] = (1.0, -1.0)
    branch: float | None = None

    def __post_init__(self) -> None:
        self._check_branch()
        if not isinstance(self.slopes, tuple) or len(self.slopes) != 2:
            raise ValueError(f"slopes must be a pair of numbers, got {self.slopes!r}")
        for slope in self.slopes:
            require_within("slopes", slope, -LARGEST, LARGEST)

    @property
    def _pull(self) -> float:
        return float((self.slopes[0] - self.slopes[1]) ** 2 / 4)

    def _excess(self, gram: Array) -> Array:
        norms, cosine = cosines(gram)
        angle = np.arccos(cosine)
        sizes = norms * norms.swapaxes(-1, -2)
        return np.asarray(2 / np.pi * sizes * (np.sin(angle) - cosine * angle))


@dataclass(frozen=True)
class SmoothSDE(_Perceptron):
    r"""Limit of perceptrons with :math:`x \mapsto s\varphi(x/s)`, :math:`s = a\sqrt n`.

    For a smooth φ with φ(0) = 0 and φ'(0) = 1, and Σ = Σ^lin,

    .. math:: b_{ij} = \frac{\varphi''(0)^2}{4a^2} (V_{ii}V_{jj} + 2V_{ij}^2 - 3V_{ij})
              + \frac{\varphi'''(0)}{2a^2} V_{ij} (V_{ii} + V_{jj} - 2).

    The first term is a pull to the kernel :math:`Q_{ij} = \frac13\mathbb E x_i^2x_j^2`
    for x of law N(0, V), the second one scales the tokens.

    Parameters
    ----------
    second, third : float
        φ''(0) and φ'''(0).
    scale : float
        a > 0.
    branch : float, optional
        As in :class:`ReluSDE`.

    Raises
    ------
    ValueError
        For derivatives beyond 1e100, a scale that is not from 1e-50 to 1e50, or a
        branch out of range.
    """

    second: float
    third: float
    scale: float = 1.0
    branch: float | None = None

    def __post_init__(self) -> None:
        self._check_branch()
        require_within("second", self.second, -LARGEST, LARGEST)
        require_within("third", self.third, -LARGEST, LARGEST)
        require_within("scale", self.scale, 1e-50, 1e50)

    def explosion_probability(self, size0: npt.ArrayLike) -> Array:
        r"""Probability that one token explodes in finite time.

        A token alone follows :math:`dV = BV(V - 1)\,dt + \sqrt2\,V dB_t` with
        :math:`B = \frac1{a^2}(\frac34\varphi''(0)^2 + \varphi^{(3)}(0))`. The density
        of the scale function is :math:`v^B e^{-Bv}`: for B > 0 the probability is the
        regularized incomplete gamma function P(B + 1, B V₀), otherwise 0. With a skip
        connection the drift has the factor γ² and the variance 2γ²: then B/2 takes the
        place of B.

        Parameters
        ----------
        size0 : array_like
            V₀, not negative.

        Returns
        -------
        ndarray
            Of the shape of ``size0``.

        Raises
        ------
        ValueError
            For sizes that are negative or not finite.
        """
        size = require_finite("size0", as_float("size0", size0))
        if (size < 0).any():
            raise ValueError(f"size0 must not be negative, got {size.min()}")
        growth = (self._pull + self._scaling) / (1 if self.branch is None else 2)
        if growth <= 0 or self.branch == 0:
            return np.asarray(np.zeros_like(size)[()])
        with np.errstate(over="ignore"):
            return np.asarray(gammainc(growth + 1, growth * size))[()]

    @property
    def _pull(self) -> float:
        return float(3 * (self.second / self.scale) ** 2 / 4)

    @property
    def _scaling(self) -> float:
        """φ'''(0)/a²."""
        return float(self.third / self.scale / self.scale)

    def _excess(self, gram: Array) -> Array:
        v = np.diagonal(gram, axis1=-2, axis2=-1)
        products = v[..., :, None] * v[..., None, :]
        return np.asarray((products + 2 * gram * gram) / 3 - gram)

    def _drift(self, gram: Array) -> Array:
        v = np.diagonal(gram, axis1=-2, axis2=-1) - 1
        scaled = gram * (v[..., :, None] + v[..., None, :]) / 2
        return np.asarray(super()._drift(gram) + self._weight * self._scaling * scaled)

    def _rate(self, root: Array) -> Array:
        v = (root * root).sum(axis=-1).max(axis=-1)
        return np.asarray(self._weight * (self._pull + abs(self._scaling)) * v)

    def _advance(self, root: Array, step: Array, rng: np.random.Generator) -> Array:
        """Scale the tokens, then as all perceptrons."""
        v = (root * root).sum(axis=-1, keepdims=True)  # (paths, m, 1)
        change = self._weight * self._scaling / 2 * step[:, None, None] * (v - 1)
        # exp(arsinh x) = 1 + x + O(x²), positive for any x, never beyond the floats.
        return super()._advance(root * np.exp(np.arcsinh(change)), step, rng)
