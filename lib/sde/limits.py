"""Limits of Gram matrices: linear layers, shaped attention, and blocks of several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from lib.core.checks import (
    LARGEST,
    Array,
    require_count,
    require_flag,
    require_generator,
    require_within,
)
from lib.core.psd import require_grams, semidefinite_root
from lib.core.wishart import bartlett

_EXACT = 1e-32  # relative variances below leave float64 numbers as they are


class Limit(ABC):
    r"""A limit :math:`dV = b(V)\,dt + \Sigma(V)^{1/2}dB` of the Gram matrix.

    Time is layers, or blocks of layers, over width.
    """

    def drift(self, gram: npt.ArrayLike) -> Array:
        """Drift b(V), the mean of dV per unit of time.

        Parameters
        ----------
        gram : array_like, shape (..., m, m)
            Gram matrices V.

        Returns
        -------
        ndarray, shape (..., m, m)
            Symmetric.

        Raises
        ------
        ValueError
            For matrices that are no Gram matrices, or so large that the drift leaves
            the float range.
        """
        gram = require_grams("gram", gram)
        with np.errstate(over="ignore", invalid="ignore"):
            return _in_range(self._drift(gram), gram)

    def diffusion(self, gram: npt.ArrayLike) -> Array:
        r"""Covariance Σ(V) of the noise of vech(V) per unit of time.

        Parameters
        ----------
        gram : array_like, shape (..., m, m)
            Gram matrices V.

        Returns
        -------
        ndarray, shape (..., m(m+1)/2, m(m+1)/2)
            Rows and columns are the entries of the upper triangle, row by row.

        Raises
        ------
        ValueError
            As :meth:`drift`.
        """
        gram = require_grams("gram", gram)
        with np.errstate(over="ignore", invalid="ignore"):
            return _in_range(vech_covariance(gram, self._spread(gram)), gram)

    def noise(self, gram: npt.ArrayLike, *, rng: np.random.Generator) -> Array:
        """One draw of the noise, of variance Σ(V): that of one unit of time.

        It is made of normal m × m matrices in O(m³); the covariance Σ(V), whose root
        takes O(m⁶), is not assembled.

        Parameters
        ----------
        gram : array_like, shape (..., m, m)
            Gram matrices V.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (..., m, m)
            Symmetric, independent draws.

        Raises
        ------
        ValueError
            As :meth:`drift`.
        """
        gram = require_grams("gram", gram)
        require_generator("rng", rng)
        with np.errstate(over="ignore", invalid="ignore"):
            return _in_range(self._noise(semidefinite_root(gram), rng), gram)

    # What follows is what a limit says of itself, unchecked: of Gram matrices V,
    # (..., m, m), or of their roots C, V = CCᵀ, (..., m, m) too.

    @property
    @abstractmethod
    def linear_noise(self) -> float:
        """The largest q of the linear layers in this limit."""

    def _drift(self, gram: Array) -> Array:
        return np.zeros_like(gram)

    def _spread(self, gram: Array) -> Array:
        """T with Cov(Z_ij, Z_kl) = V_ik T_jl for the noise Z + Zᵀ, Z = C S Cᵀ."""
        return self.linear_noise / 2 * gram

    def _mixing(self, root: Array, rng: np.random.Generator) -> Array:
        """S, drawn for one unit of time."""
        normals = rng.standard_normal(root.shape)
        return np.asarray(np.sqrt(self.linear_noise / 2) * normals)

    def _noise(self, root: Array, rng: np.random.Generator) -> Array:
        half = root @ self._mixing(root, rng) @ root.swapaxes(-1, -2)
        return np.asarray(half + half.swapaxes(-1, -2))

    def _rate(self, root: Array) -> Array:
        """Rate, one over a time, of all that moves V but the linear noise."""
        return np.zeros(root.shape[:-2])

    def _advance(self, root: Array, step: Array, rng: np.random.Generator) -> Array:
        """Roots (paths, m, m) after a step in time, given for each path."""
        return self._moved(root, step, *self._draws(root.shape, step, rng))

    def _draws(
        self, shape: tuple[int, ...], step: Array, rng: np.random.Generator
    ) -> tuple[Array, ...]:
        """Draw the noise of a step: a Bartlett factor of 1/(q·step) degrees."""
        return (bartlett(shape[0], shape[1], 1 / self._variance(step), rng),)

    def _moved(self, root: Array, step: Array, *draws: Array) -> Array:
        r"""Roots after a step with given draws.

        Linear noise: C R/√k with the Bartlett factor R of k = 1/(q·step) degrees of
        freedom. RRᵀ/k has mean I, covariance (δδ + δδ)/k and third cumulants O(1/k²),
        as it must up to O(step²).
        """
        scale = np.sqrt(self._variance(step))[:, None, None]
        return np.asarray(root @ (scale * draws[-1]))

    def _variance(self, step: Array) -> Array:
        return np.maximum(self.linear_noise * step, _EXACT)  # (paths,)


def vech_covariance(gram: Array, spread: Array) -> Array:
    """Covariance of the upper triangle of Z + Zᵀ where Cov(Z_ij, Z_kl) = V_ik T_jl."""
    i, j = np.triu_indices(gram.shape[-1])
    rows = (gram[..., i, :], gram[..., j, :])  # (..., m(m+1)/2, m) each
    others = (spread[..., j, :], spread[..., i, :])
    # Cov(Z_ij + Z_ji, Z_kl + Z_lk), ij in the rows and kl in the columns.
    total = sum(
        a[..., i] * b[..., j] + a[..., j] * b[..., i]
        for a, b in zip(rows, others, strict=True)
    )
    return np.asarray(total)


def _in_range(result: Array, gram: Array) -> Array:
    if not np.isfinite(result).all():
        raise ValueError(f"gram is too large: its entry {gram.max():.3g}")
    return result


@dataclass(frozen=True)
class LinearSDE(Limit):
    r"""Limit of linear layers :math:`X' = \lambda X + \gamma XW/\sqrt n`, λ² + γ² = 1.

    .. math:: b = 0, \qquad \Sigma = \gamma^2(2 - \gamma^2)\, \Sigma^{\mathrm{lin}}.

    The product of skip and branch gives 2λ²γ², the square of the branch γ⁴.

    Parameters
    ----------
    branch : float
        γ from 0 to 1; 1, the default, is a network without skip connections.

    Raises
    ------
    ValueError
        For another branch.
    """

    branch: float = 1.0

    def __post_init__(self) -> None:
        require_within("branch", self.branch, 0, 1)

    @property
    def linear_noise(self) -> float:
        """q = γ²(2 − γ²)."""
        square: float = self.branch**2
        return square * (2 - square)


@dataclass(frozen=True)
class CovarianceSDE(Limit):
    r"""Limit of shaped attention with a skip connection, λ² + γ² = 1.

    With :math:`\tilde V = JVJ`, the diagonals v of V and :math:`\tilde d` of
    :math:`\tilde V`, and :math:`w = VJ\tilde d`,

    .. math:: b = \frac{\gamma^2}{\tau_0^2} \Big[ \frac{\lVert\tilde V\rVert_F^2}{m^2} V
              + \frac{v w^\top + w v^\top}{2m} \Big], \qquad
              \Sigma = q\,\Sigma^{\mathrm{lin}} + \frac{\gamma^4}{H\tau_0^2} \mathcal A.

    Here :math:`q = \gamma^2(2 - \gamma^2)`, and 𝒜 is the covariance of
    :math:`PV + VP^\top`, where :math:`P = \frac1m CNC^\top J` is the first order of
    the softmax. In the noise :math:`C(S + S^\top)C^\top` that is a term
    :math:`\frac{\gamma^2}{m\tau_0\sqrt H} N C^\top J C` of S.

    Parameters
    ----------
    branch : float
        γ from 0 to 1.
    tau0 : float
        The temperature is :math:`\tau = \tau_0\sqrt{n n_k}`.
    heads : int
        H; they divide the noise of the attention weights, not the drift.
    output_matrix : bool
        Whether there is an output matrix besides the value matrix (as after heads that
        are concatenated). It adds its own noise: q = 2γ².

    Raises
    ------
    ValueError
        For a branch out of range, a tau0 that is not positive (or not between 1e-100
        and 1e100), or fewer heads than 1.

    References
    ----------
    Noci et al., *The Shaped Transformer*, 2023, arXiv:2306.17759.
    """

    branch: float
    tau0: float
    heads: int = 1
    output_matrix: bool = False

    def __post_init__(self) -> None:
        require_within("branch", self.branch, 0, 1)
        require_within("tau0", self.tau0, 1 / LARGEST, LARGEST)
        require_count("heads", self.heads)
        require_flag("output_matrix", self.output_matrix)

    @property
    def linear_noise(self) -> float:
        """q = γ²(2 − γ²), or 2γ² with an output matrix."""
        square: float = self.branch**2
        return 2 * square if self.output_matrix else square * (2 - square)

    @property
    def _strength(self) -> float:
        """γ²/τ0²."""
        strength: float = (self.branch / self.tau0) ** 2
        return strength

    @property
    def _noise_scale(self) -> float:
        """γ²/(τ0√H)."""
        scale: float = self.branch**2 / self.tau0 / sqrt(self.heads)
        return scale

    def _drift(self, gram: Array) -> Array:
        m = gram.shape[-1]
        J = np.eye(m) - 1 / m
        rows = gram @ J
        centered = J @ rows
        v = np.einsum("...ii->...i", gram)
        w = np.einsum("...ij,...jj->...i", rows, centered)
        scale = self._strength / m**2 * _norm(centered)
        half = v[..., :, None] * (self._strength / (2 * m) * w)[..., None, :]
        return np.asarray(
            scale[..., None, None] * gram + (half + half.swapaxes(-1, -2))
        )

    def _spread(self, gram: Array) -> Array:
        m = gram.shape[-1]
        rows = gram @ (np.eye(m) - 1 / m)
        scale = (self._noise_scale / m) ** 2
        return np.asarray(super()._spread(gram) + scale * (rows @ rows @ gram))

    def _mixing(self, root: Array, rng: np.random.Generator) -> Array:
        square, _ = _apart(root)
        linear = super()._mixing(root, rng)
        return linear + self._attention_mixing(square, rng.standard_normal(root.shape))

    def _attention_mixing(self, square: Array, normals: Array) -> Array:
        return np.asarray(self._noise_scale / square.shape[-1] * (normals @ square))

    def _rate(self, root: Array) -> Array:
        m, (square, pull) = root.shape[-1], _apart(root)
        w = np.abs(root @ pull).max(axis=(-2, -1))
        return np.asarray(self._strength * (_norm(square) / m**2 + w / m))

    def _draws(
        self, shape: tuple[int, ...], step: Array, rng: np.random.Generator
    ) -> tuple[Array, ...]:
        """Normal matrices for attention, and what linear noise draws."""
        return rng.standard_normal(shape), *super()._draws(shape, step, rng)

    def _moved(self, root: Array, step: Array, *draws: Array) -> Array:
        r"""Attention by a factor from the left, then linear noise.

        The factor is :math:`(I + P + P_2)\sqrt{1 + g}`. P has the variance of the
        noise, so that the mean of :math:`PVP^\top` is the share γ²/H of the first term
        of the drift; g is its rest, and P₂, a multiple of :math:`v(J\tilde d)^\top`,
        the second term.
        """
        m, (square, pull) = root.shape[-1], _apart(root)
        rest = (1 - self.branch**2 / self.heads) / m**2 * _norm(square)
        growth = np.sqrt(1 + step * self._strength * rest)[:, None, None]
        step = step[:, None, None]
        mixed = root + root @ (np.sqrt(step) * self._attention_mixing(square, draws[0]))
        v = np.einsum("...ij,...ij->...i", root, root)[..., None]
        mixed += self._strength / (2 * m) * step * v * pull.swapaxes(-1, -2)
        return super()._moved(growth * mixed, step[:, 0, 0], *draws)


@dataclass(frozen=True)
class BlockSDE(Limit):
    """Limit of a block of several layers, passed in turn: drifts and noises add.

    Time is blocks over width.

    Parameters
    ----------
    parts : tuple of Limit
        Such as ``(CovarianceSDE(0.6, 1.5), ReluSDE(branch=0.6))``.

    Raises
    ------
    ValueError
        For anything else than limits.
    """

    parts: tuple[Limit, ...]

    def __post_init__(self) -> None:
        full = isinstance(self.parts, tuple) and len(self.parts) > 0
        if not full or not all(isinstance(part, Limit) for part in self.parts):
            raise ValueError(f"parts must be a tuple of limits, got {self.parts!r}")

    @property
    def linear_noise(self) -> float:
        """The largest q of the parts."""
        return max(part.linear_noise for part in self.parts)

    def _drift(self, gram: Array) -> Array:
        return _total(part._drift(gram) for part in self.parts)

    def _spread(self, gram: Array) -> Array:
        return _total(part._spread(gram) for part in self.parts)

    def _mixing(self, root: Array, rng: np.random.Generator) -> Array:
        return _total(part._mixing(root, rng) for part in self.parts)

    def _rate(self, root: Array) -> Array:
        return _total(part._rate(root) for part in self.parts)

    def _advance(self, root: Array, step: Array, rng: np.random.Generator) -> Array:
        for part in self.parts:
            root = part._advance(root, step, rng)
        return root


def _total(arrays: Iterable[Array]) -> Array:
    return np.asarray(np.sum(list(arrays), axis=0))


def _apart(root: Array) -> tuple[Array, Array]:
    """CᵀJC, with the norm of Ṽ, and CᵀJd̃ (..., m, 1), with w = C(CᵀJd̃)."""
    m = root.shape[-2]
    apart = (np.eye(m) - 1 / m) @ root  # JC
    spread = np.einsum("...ij,...ij->...i", apart, apart)  # d̃
    turned = apart.swapaxes(-1, -2)
    return turned @ apart, turned @ spread[..., None]


def _norm(square: Array) -> Array:
    """Squared Frobenius norm."""
    return np.asarray(np.einsum("...ij,...ij->...", square, square))
