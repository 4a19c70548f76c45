r"""Sums of a Fourier series over many angles, and at many angles, as matrix products.

A power of :math:`e^{\mathrm i\theta}` is a giant step times a baby step, so that all
powers up to k cost about :math:`\sqrt{8k}` products for an angle, and two real matrix
products do the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import isqrt, prod

import numpy as np
import numpy.typing as npt

from lib.core.checks import Array

Complex = npt.NDArray[np.complex128]
_PIECE = 4096  # angles at a time: their powers stay in the cache


def circle_points(theta: Array) -> Complex:
    r""":math:`e^{\mathrm i\theta}`, to about 3e-16 absolutely.

    By the tangent of half the angle, which numpy computes several times faster than
    sine and cosine; it stays finite, since no float is an odd multiple of π/2.
    """
    t = np.tan(theta / 2)
    square = t * t
    z = np.empty(theta.shape, complex)
    z.real, z.imag = 1 - square, 2 * t
    z *= 1 / (1 + square)
    return z


def fourier_sums(z: Complex, harmonics: int) -> Complex:
    """Sums of z^(−k) over each row, k = 0, ..., harmonics.

    ``z`` is (systems, n), on the unit circle; the result (systems, harmonics + 1).
    """
    split = _split(harmonics)
    total = np.zeros((len(z), 2 * split.giants, 2 * split.babies))
    for systems, _, baby, giant in split.powers(z):
        total[systems] += giant @ baby.mT
    return split.moments(total)


def fourier_values(series: Complex, z: Complex) -> Array:
    """Real parts of Σ a_k z^k for several series.

    ``series`` is (systems, several, harmonics + 1), ``z`` (systems, n) on the unit
    circle, the result (several, systems, n).
    """
    several = series.shape[1]
    split = _split(series.shape[2] - 1)
    table = split.table(series)
    values = np.empty((several, *z.shape))
    room = np.empty(0)
    for rows, angles, baby, giant in split.powers(z):
        shape = len(baby), table.shape[1], baby.shape[2]
        if room.size != prod(shape):  # new memory costs more than what is done in it
            room = np.empty(prod(shape))
        inner = np.matmul(table[rows], baby, out=room.reshape(shape))
        inner = inner.reshape(len(baby), several, *giant.shape[1:])
        values[:, rows, angles] = np.einsum("sgx,smgx->msx", giant, inner)
    return values


class _Split:
    r"""The harmonics k = qb + r with |r| ≤ m, b = 2m + 1, as giant and baby steps.

    All functions of one angle that are needed are then products of a cosine or sine of
    :math:`qb\theta` and one of :math:`|r|\theta`.
    """

    def __init__(self, harmonics: int):
        self.babies = isqrt(harmonics // 2) + 4  # m + 1; a baby step is the cheaper one
        b = 2 * self.babies - 1
        k = np.arange(harmonics + 1)
        self.giant = (k + self.babies - 1) // b  # q
        self.giants = int(self.giant[-1]) + 1
        r = k - b * self.giant
        self.baby, sign = np.abs(r), np.sign(r)
        self.turns = r >= 0, r < 0  # r and −r share an entry
        # z^k is (C + iS)(c ± is) with cosine or sine of qbθ and of |r|θ: where these
        # stand and the factor of their product.
        self.corners = (
            (0, 0, np.ones(k.size)),
            (0, self.babies, 1j * sign),
            (self.giants, 0, np.full(k.size, 1j)),
            (self.giants, self.babies, -sign),
        )

    def moments(self, table: Array) -> Complex:
        """Sums of z^(−k) from the sums of all products, (systems, harmonics + 1)."""
        sums = np.zeros((len(table), self.giant.size), complex)
        for up, left, factor in self.corners:
            sums += factor * table[:, self.giant + up, self.baby + left]
        return sums.conj()

    def table(self, series: Complex) -> Array:
        """Coefficients of the products, (systems, several · 2 giants, 2 babies)."""
        systems, several, _ = series.shape
        table = np.zeros((systems, several, 2 * self.giants, 2 * self.babies))
        for up, left, factor in self.corners:
            values = (factor * series).real
            for turn in self.turns:
                entry = ..., self.giant[turn] + up, self.baby[turn] + left
                table[entry] += values[..., turn]
        return table.reshape(systems, -1, 2 * self.babies)

    def powers(self, z: Complex) -> Iterator[tuple[slice, slice, Array, Array]]:
        """Blocks of angles: systems, angles, baby steps, giant steps.

        Steps are (systems, cosines then sines, angles); their memory serves for the
        next block.
        """
        systems, n = z.shape
        several = max(1, _PIECE // n)
        size = min(several, systems), min(n, _PIECE)
        baby = np.empty((size[0], 2 * self.babies, size[1]))
        giant = np.empty((size[0], 2 * self.giants, size[1]))
        for s in range(0, systems, several):
            for j in range(0, n, _PIECE):
                block = z[s : s + several, j : j + _PIECE]
                b, g = (x[: len(block), :, : block.shape[1]] for x in (baby, giant))
                last = _fill(b, block)
                _fill(g, last * last * block)  # z^b = z^(2m + 1)
                yield slice(s, s + several), slice(j, j + _PIECE), b, g


_split = lru_cache(maxsize=16)(_Split)


def _fill(rows: Array, z: Complex) -> Complex:
    """Write the cosines and sines of 1, z, z², ... and return the last power."""
    count = rows.shape[1] // 2
    powers = np.empty((len(z), count, z.shape[1]), complex)
    powers[:, 0], powers[:, 1:2] = 1, z[:, None]
    done = 2
    while done < count:  # z^done = z^(done − 1) z, and so on, as many as are there
        new = min(done - 1, count - done)
        known, last = powers[:, 1 : 1 + new], powers[:, done - 1, None]
        np.multiply(known, last, out=powers[:, done : done + new])
        done += new
    rows[:, :count], rows[:, count:] = powers.real, powers.imag
    return np.asarray(powers[:, -1])
