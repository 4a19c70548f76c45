r"""Layers of random weights, each in two forms that have the same law.

Tokens are the rows of X, shape (m, n). A layer with a skip connection is

.. math:: X' = \lambda X + \tfrac{\gamma}{\sqrt n}\, Z W,

where W is a new n × n matrix of independent standard normal weights, and Z, shape
(m, n), is what the layer makes of X with further weights: X itself, attention, a
perceptron. The *dense* form draws all weights. The *Gram* form knows X only by a root
C of its Gram matrix, :math:`V = XX^\top/n = CC^\top`: each layer says how to draw a
root F of :math:`ZZ^\top/n` given C, with numbers whose count does not grow with n, but
for the activations of a perceptron. :mod:`lib.gram` runs both. Layers with a shaped
ReLU are in ``lib.gram.relu``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lib.attention import softmax
from lib.core.checks import Array, require_count, require_flag, require_positive
from lib.core.wishart import factor, product
from lib.gram.base import WIDEST, Layer, Residual, normed, times_weights, token_root
from lib.gram.relu import ReluLayer, ResidualReluLayer

__all__ = [
    "LinearLayer", "MultiHeadLayer", "PlainLayer", "RMSNorm", "ReluLayer",
    "ResidualReluLayer", "ShapedLayer",
]  # fmt: skip


@dataclass(frozen=True)
class LinearLayer(Residual):
    r"""Linear layer :math:`X' = \lambda X + \gamma X W/\sqrt n`.

    Without a skip connection, the default, :math:`X' = XW/\sqrt n`.

    Parameters
    ----------
    width : int
        n, coordinates of a token.
    skip, branch : float
        λ and γ.
    pre_norm : bool
        Whether the branch sees each token over its root mean square (RMSNorm).

    Raises
    ------
    ValueError
        For a width below 1 or weights that are not finite.
    """

    width: int
    skip: float = 0.0
    branch: float = 1.0
    pre_norm: bool = False

    def __post_init__(self) -> None:
        self.check_residual()

    def _branch_root(self, root: Array, rng: np.random.Generator) -> Array:
        """The root itself: Z = X."""
        return root

    def _branch_tokens(self, x: Array, rng: np.random.Generator) -> Array:
        """Z = X."""
        return x


class _Attention(Residual):
    """Z = (1/√H) Σ A X over H heads; the scores are (1/n) X Wᵠ (Wᴷ)ᵀ Xᵀ for each."""

    key_width: int
    heads: int
    centered: ClassVar[bool] = False

    @property
    @abstractmethod
    def temperature(self) -> float:
        """The number τ that divides the scores."""

    def _check_attention(self) -> None:
        self.check_residual()
        require_count("key_width", self.key_width, most=WIDEST)
        require_count("heads", self.heads)

    def _attention(self, scores: Array) -> Array:
        """Attention matrix (…, m, m) of scores (…, m, m)."""
        weights = softmax(scores / self.temperature)
        if not self.centered:
            return weights
        m = scores.shape[-1]
        return np.asarray(weights + (np.eye(m) - 1 / m))

    def _heads_root(self, root: Array, rng: np.random.Generator) -> list[Array]:
        """A C of each head: scores are C G₁G₂ᵀ Cᵀ with normal k × key_width G₁, G₂."""
        (paths, _, k), mixed = root.shape, []
        for _ in range(self.heads):
            draws = product(paths, k, k, self.key_width, rng)
            mixed.append(self._head_root(root, draws))
        return mixed  # each (paths, m, k)

    def _head_root(self, root: Array, draws: Array) -> Array:
        """A C, where the scores are C G₁G₂ᵀ Cᵀ with a draw of G₁G₂ᵀ."""
        return self._attention(root @ draws @ root.swapaxes(-1, -2)) @ root

    def _heads_tokens(self, x: Array, rng: np.random.Generator) -> list[Array]:
        """A X of each head, with real query and key weights."""
        (paths, _, n), mixed = x.shape, []
        for _ in range(self.heads):
            w_query, w_key = rng.standard_normal((2, paths, n, self.key_width))
            scores = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / n  # (paths, m, m)
            mixed.append(self._attention(scores) @ x)
        return mixed  # each (paths, m, n)

    @property
    def _columns(self) -> int | None:
        """Columns of the value weights of a head, None where a head has W alone."""
        return None

    def _branch_root(self, root: Array, rng: np.random.Generator) -> Array:
        """The heads side by side: FFᵀ is the mean of AVAᵀ over them.

        With value weights of n_v columns, the mean of A C S CᵀAᵀ/n_v with S Wishart.
        """
        mixed, columns = self._heads_root(root, rng), self._columns
        if columns is None:
            return _joined(mixed, self.heads)
        paths, _, k = mixed[0].shape
        values = [head @ factor(paths, k, columns, rng) for head in mixed]
        return _joined(values, self.heads * columns)

    def _branch_tokens(self, x: Array, rng: np.random.Generator) -> Array:
        """The heads side by side, (paths, m, H n) or (paths, m, H n_v)."""
        mixed, columns = self._heads_tokens(x, rng), self._columns
        if columns is None:
            return _joined(mixed, self.heads)
        values = [times_weights(head, columns, self.width, rng) for head in mixed]
        scale = np.sqrt(self.width / (self.heads * columns))
        return np.asarray(scale * np.concatenate(values, axis=-1))


@dataclass(frozen=True)
class ShapedLayer(_Attention):
    r"""Shaped attention :math:`X' = \lambda X + \gamma A X W^V/\sqrt n`.

    Here :math:`A = I + \mathrm{softmax}(Y/\tau) - \frac1m 11^\top` with
    :math:`\tau = \tau_0 \sqrt{n n_k}` and scores
    :math:`Y = \frac1n X W^Q (W^K)^\top X^\top`. Several heads have weights of their own
    and are summed over the root of their number.

    Parameters
    ----------
    width : int
        n, coordinates of a token.
    key_width : int
        Columns of the query and of the key weights of a head.
    skip, branch : float
        λ and γ; λ² + γ² = 1 is usual, not forced.
    tau0 : float
        The temperature is τ = tau0 · √(width · key_width).
    heads : int
        Number of heads.
    pre_norm : bool
        Whether the branch sees each token over its root mean square (RMSNorm).

    Raises
    ------
    ValueError
        For counts below 1, weights that are not finite, a tau0 that is not positive.
    """

    width: int
    key_width: int
    skip: float
    branch: float
    tau0: float
    heads: int = 1
    pre_norm: bool = False
    centered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_attention()
        require_positive("tau0", self.tau0)

    @property
    def temperature(self) -> float:
        """τ = tau0 · √(width · key_width)."""
        return _width_temperature(self.tau0, self.width, self.key_width)


@dataclass(frozen=True)
class PlainLayer(_Attention):
    r"""Plain attention, :math:`A = \mathrm{softmax}(Y/\tau)`, not shaped.

    Parameters
    ----------
    width, key_width, skip, branch, heads, pre_norm
        As in :class:`ShapedLayer`.
    tau0 : float, optional
        The temperature is τ = tau0 · √(width · key_width); without it the usual
        :math:`\tau = \sqrt{n_k}`, that is tau0 = 1/√width.
    value_width : int, optional
        Columns :math:`n_v` of the value weights of a head. Each head then has an output
        matrix too, :math:`X' = \lambda X + \frac{\gamma}{\sqrt{H n n_v}} \sum_a A_a X
        W^V_a W^O_a`, in place of a single n × n matrix.

    Raises
    ------
    ValueError
        As :class:`ShapedLayer`.
    """

    width: int
    key_width: int
    skip: float
    branch: float
    tau0: float | None = None
    heads: int = 1
    pre_norm: bool = False
    value_width: int | None = None

    def __post_init__(self) -> None:
        self._check_attention()
        if self.tau0 is not None:
            require_positive("tau0", self.tau0)
        if self.value_width is not None:
            require_count("value_width", self.value_width, most=WIDEST)

    @property
    def _columns(self) -> int | None:
        return self.value_width

    @property
    def temperature(self) -> float:
        """τ = √key_width, or tau0 · √(width · key_width)."""
        if self.tau0 is None:
            return float(np.sqrt(float(self.key_width)))
        return _width_temperature(self.tau0, self.width, self.key_width)


@dataclass(frozen=True)
class MultiHeadLayer(_Attention):
    r"""Shaped attention with H concatenated heads of n/H coordinates each.

    Head a has value weights :math:`W^V_a` of shape (n, n/H), and

    .. math:: X' = \lambda X + \tfrac{\gamma}{\sqrt n} Z W^O, \qquad
              Z = \tfrac1{\sqrt n} (A_1 X W^V_1, \dots, A_H X W^V_H).

    Without the output matrix, :math:`X' = \lambda X + \gamma Z`: then the coordinates
    are not exchangeable, the next Gram matrix is not a function of V and fresh weights,
    and only the simulations that keep X apply.

    Parameters
    ----------
    width, key_width, skip, branch, tau0, pre_norm
        As in :class:`ShapedLayer`.
    heads : int
        Number of heads, a divisor of the width.
    output_matrix : bool
        Whether there is an output matrix.

    Raises
    ------
    ValueError
        As :class:`ShapedLayer`, and for heads that do not divide the width.
    """

    width: int
    key_width: int
    skip: float
    branch: float
    tau0: float
    heads: int
    output_matrix: bool = True
    pre_norm: bool = False
    centered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_attention()
        require_positive("tau0", self.tau0)
        require_flag("output_matrix", self.output_matrix)
        if self.width % self.heads:
            raise ValueError(
                f"heads must divide the width {self.width}, got {self.heads}"
            )

    @property
    def temperature(self) -> float:
        """τ = tau0 · √(width · key_width)."""
        return _width_temperature(self.tau0, self.width, self.key_width)

    @property
    def _columns(self) -> int:
        return self.width // self.heads

    def _gram_step(self, root: Array, rng: np.random.Generator) -> Array:
        """Roots after the layer; ValueError without an output matrix."""
        if not self.output_matrix:
            raise ValueError(
                "layer has no output matrix, so that it is not a function of the Gram"
                " matrix: use simulate_tokens, which keeps the tokens"
            )
        return super()._gram_step(root, rng)

    def _token_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens after the layer, with or without the output matrix."""
        if self.output_matrix:
            return super()._token_step(x, rng)
        root, columns = token_root(x), self.width // self.heads
        root = normed(root, 1) if self.pre_norm else root
        heads = []
        for mixed in self._heads_root(root, rng):
            heads.append(mixed @ rng.standard_normal((len(x), root.shape[-1], columns)))
        return np.asarray(self.skip * x + self.branch * np.concatenate(heads, axis=-1))

    def _dense_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens after the layer, with all its weights."""
        if self.output_matrix:
            return super()._dense_step(x, rng)
        z = self._branch_tokens(normed(x, x.shape[-1]) if self.pre_norm else x, rng)
        return np.asarray(self.skip * x + self.branch * z)


@dataclass(frozen=True)
class RMSNorm(Layer):
    """Each token over its root mean square, so that V has ones on the diagonal.

    Parameters
    ----------
    width : int
        n, coordinates of a token.

    Raises
    ------
    ValueError
        For a width below 1.
    """

    width: int

    def __post_init__(self) -> None:
        require_count("width", self.width, most=WIDEST)

    def _gram_step(self, root: Array, rng: np.random.Generator) -> Array:
        """Roots with rows of norm 1."""
        return normed(root, 1)

    def _token_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens of norm √n."""
        return normed(x, x.shape[-1])

    def _dense_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens of norm √n."""
        return normed(x, x.shape[-1])


def _joined(parts: list[Array], scale: int) -> Array:
    """Side by side, over the root of ``scale``."""
    if len(parts) == scale == 1:
        return parts[0]
    return np.asarray(np.concatenate(parts, axis=-1) / np.sqrt(scale))


def _width_temperature(tau0: float, width: int, key_width: int) -> float:
    temperature: float = (tau0 * np.sqrt(1.0 * width * key_width)).item()
    return temperature
