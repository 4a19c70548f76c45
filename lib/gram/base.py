"""Base of the layers of random weights: see :mod:`lib.gram.layers`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from lib.core.checks import (
    Array,
    require_count,
    require_flag,
    require_generator,
    require_number,
)
from lib.core.psd import gram_root, rank, triangular
from lib.core.wishart import bartlett

WIDEST = 2**53


class Layer(ABC):
    """The three forms of a layer that :mod:`lib.gram` runs."""

    width: int

    @abstractmethod
    def _gram_step(self, root: Array, rng: np.random.Generator) -> Array:
        """Roots after the layer, (paths, m, k) as those given; V = root rootᵀ.

        There are k = m columns, or k = n where the width n is less than 2m.
        """

    @abstractmethod
    def _token_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens after the layer, (paths, m, n): without n × n matrices."""

    @abstractmethod
    def _dense_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens after the layer, (paths, m, n): with all its weight matrices."""


class Residual(Layer):
    """X' = λX + (γ/√n) Z W: all that is common to layers with a skip connection."""

    skip: float
    branch: float
    pre_norm: bool

    def check_residual(self) -> None:
        """Check the width and the weights."""
        require_count("width", self.width, most=WIDEST)
        require_number("skip", self.skip)
        require_number("branch", self.branch)
        require_flag("pre_norm", self.pre_norm)

    @abstractmethod
    def _branch_root(self, root: Array, rng: np.random.Generator) -> Array:
        """Root F of ZZᵀ/n, (paths, m, r), given the root C of the branch's input."""

    @abstractmethod
    def _branch_tokens(self, x: Array, rng: np.random.Generator) -> Array:
        """Z with real weights, (paths, m, n)."""

    def _gram_step(self, root: Array, rng: np.random.Generator) -> Array:
        """Roots after the layer, (paths, m, k).

        ZW/n has the law of F(H, G)/√n in an orthonormal basis that starts with k
        vectors spanning the tokens: H normal r × k, seen by them, G normal r × (n − k).
        """
        n, (paths, m, k) = self.width, root.shape
        inner = self._branch_root(normed(root, 1) if self.pre_norm else root, rng)
        inner = inner * (self.branch / np.sqrt(n))  # (paths, m, r)
        seen = inner @ rng.standard_normal((paths, inner.shape[-1], k))
        ahead = self.skip * root + seen
        if n < 2 * m:  # the root has all n columns: nothing is left unseen
            return np.asarray(ahead)
        if inner.shape[-1] > m:
            inner = triangular(inner)
        return with_unseen(ahead, inner, bartlett(paths, inner.shape[-1], n - m, rng))

    def _token_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens after the layer; ZW/√n has the law of F G with G normal r × n."""
        root = token_root(x)
        inner = self._branch_root(normed(root, 1) if self.pre_norm else root, rng)
        moved = inner @ rng.standard_normal((len(x), inner.shape[-1], x.shape[-1]))
        return np.asarray(self.skip * x + self.branch * moved)

    def _dense_step(self, x: Array, rng: np.random.Generator) -> Array:
        """Tokens after the layer, with all its weights."""
        z = self._branch_tokens(normed(x, x.shape[-1]) if self.pre_norm else x, rng)
        return self.skip * x + self.branch * times_weights(
            z, self.width, self.width, rng
        )


def with_unseen(
    ahead: Array,
    inner: Array,
    factor: Array,
    reduced: Callable[[Array], Array] = triangular,
) -> Array:
    """Roots after a layer: the part that the tokens see, and a draw of the rest."""
    return reduced(np.concatenate([ahead, inner @ factor], axis=-1))  # of (…, m, 2m)


def normed(rows: Array, size: int) -> Array:
    """Rows scaled to squared norm ``size``."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    if not (norms > 0).all():
        raise ValueError("gram0 or x0 has a token that is 0: it cannot be normalized")
    return np.asarray(rows * (np.sqrt(size) / norms))


def times_weights(
    x: Array, columns: int, width: int, rng: np.random.Generator
) -> Array:
    """X W/√n with one weight matrix W per path, (paths, m, columns)."""
    weights = rng.standard_normal((len(x), x.shape[-1], columns))
    return np.asarray(x @ weights / np.sqrt(width))


def token_root(x: Array) -> Array:
    """Root of XXᵀ/n, (paths, m, min(m, n)), without squaring."""
    root = x / np.sqrt(x.shape[-1])
    return root if x.shape[1] > x.shape[2] else triangular(root)


def start_root(gram: Array, width: int) -> Array:
    """Root C of V = CCᵀ, shape (m, m), or (m, n) for widths n below 2m."""
    m, root = len(gram), gram_root(gram)
    if rank(root) > width:
        raise ValueError(f"gram0 has rank {rank(root)}, more than the width {width}")
    columns = m if width >= 2 * m else width
    return np.pad(root[:, :columns], ((0, 0), (0, max(columns - m, 0))))


Layers = Layer | tuple[Layer, ...]


def require_run(
    layer: Layers, depth: int, paths: int, rng: np.random.Generator, save_every: int
) -> tuple[Layer, ...]:
    """Check what the simulations are given beside their input; the layers."""
    block = layer if isinstance(layer, tuple) else (layer,)
    if not block or not all(isinstance(one, Layer) for one in block):
        raise ValueError(f"layer must be a layer or a tuple of them, got {layer!r}")
    if len({one.width for one in block}) > 1:
        raise ValueError(
            f"layer must have one width, got {[one.width for one in block]}"
        )
    require_count("depth", depth)
    require_count("paths", paths)
    require_count("save_every", save_every)
    require_generator("rng", rng)
    return block
