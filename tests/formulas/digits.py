"""Numbers with many digits, one by one or in arrays."""

from fractions import Fraction

import numpy as np
from mpmath import mp

real = np.frompyfunc(lambda x: mp.mpf(x), 1, 1)
exp = np.frompyfunc(lambda x: mp.exp(x), 1, 1)
log = np.frompyfunc(lambda x: mp.log(x), 1, 1)
root = np.frompyfunc(lambda x: mp.sqrt(x), 1, 1)


def fraction(rng, low=-9):
    return Fraction(int(rng.integers(low, 10)), int(rng.integers(1, 8)))


def drawn(rng, low, high, *shape):
    """Uniform numbers, as exact binary fractions of arbitrary precision."""
    return real(rng.uniform(low, high, shape))


def normals(rng, *shape):
    """Normal numbers, as exact binary fractions of arbitrary precision."""
    return real(rng.normal(size=shape))


def gap(left, right):
    return np.max(np.abs(np.asarray(left - right, dtype=object)))
