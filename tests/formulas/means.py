"""Means that tests of several chapters need: exact, or at many digits."""

from functools import cache

import numpy as np
from mpmath import mp, mpf
from sympy import QQ, factorial2
from sympy.polys.rings import ring


def variables(*shapes):
    """Arrays of independent variables, of which one can make polynomials."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    _, *every = ring([f"g{k}" for k in range(sum(sizes))], QQ)
    flat = np.split(np.array(every, dtype=object), np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(flat, shapes, strict=True)]


@cache
def normal(k):
    """The moment of order k of a standard normal variable."""
    return 0 if k % 2 else int(factorial2(k - 1)) if k else 1


def mean(polynomial, moments=None):
    """Of a polynomial in standard normal variables, but for those named in moments."""
    law = {polynomial.ring.gens.index(g): f for g, f in (moments or {}).items()}
    every = []
    for powers, factor in polynomial.terms():
        used = [(j, k) for j, k in enumerate(powers) if k]
        if any(k % 2 for j, k in used if j not in law):
            continue
        for j, k in used:
            moment = law.get(j, normal)(k)
            factor = (number(factor) if isinstance(moment, mpf) else factor) * moment
        every.append(factor)
    if any(isinstance(one, mpf) for one in every):
        return sum(number(one) for one in every)
    return sum(every, QQ(0))


def number(fraction):
    """A fraction, with the digits that are asked for."""
    if isinstance(fraction, mpf):
        return fraction
    return mpf(int(fraction.numerator)) / int(fraction.denominator)


def rational(rng, *shape):
    """Random small fractions, none of which is 0."""
    top = rng.integers(1, 8, shape) * rng.choice([-1, 1], shape)
    bottom = rng.integers(1, 5, shape)
    return np.vectorize(lambda p, q: QQ(int(p), int(q)), otypes=[object])(top, bottom)


def frame(rng, rows, n):
    """As many orthonormal rows of n rational numbers: those of a reflection."""
    v = rational(rng, n)
    return np.array(
        [[QQ(i == j) - 2 * v[i] * v[j] / v.dot(v) for j in range(n)] for i in range(n)]
    )[:rows]


def at_infinity(f, sizes):
    """Limit of f(n), a power series in 1/n: the polynomial through the given sizes."""
    x, p = [1 / mpf(n) for n in sizes], [f(n) for n in sizes]
    for k in range(1, len(p)):
        for i in range(len(p) - k):
            p[i] = (x[i + k] * p[i] - x[i] * p[i + 1]) / (x[i + k] - x[i])
    return p[0]


def grid(step, end):
    """Points and weights of the mean over a standard normal variable."""
    points = [k * mpf(step) for k in range(-int(end / step), int(end / step) + 1)]
    return [(g, step * mp.npdf(g)) for g in points]


def chi_square(n):
    """Points and weights of the mean over t = χ²_n/n, by the trapezoid rule in log t.

    Some 18 digits for n = 4 and 5.
    """
    half, step = mpf(n) / 2, mpf("0.2")
    ts = [mp.exp(k * step) for k in range(-120, 17)]
    c = step * half**half / mp.gamma(half)
    return [(t, c * t**half * mp.exp(-half * t)) for t in ts]


def moments_of_tanh(n, a):
    """Means of the powers of tanh(d/2), d = sum of n products q k of normals, scaled.

    Given the keys, d is normal; so its characteristic function is (1 + a x²/n)^(-n/2),
    a its variance. The transforms of sech² and sech⁴ are known.
    """
    h = mpf("0.08")
    x = [(k + mpf(1) / 2) * h for k in range(300)]
    base = [
        4 * h * y / mp.sinh(mp.pi * y) * (1 + a * y * y / n) ** (-mpf(n) / 2) for y in x
    ]
    two = sum(base)
    four = sum(b * 2 * (1 + y * y) / 3 for b, y in zip(base, x, strict=True))
    return {1: 0, 2: 1 - two, 3: 0, 4: 1 - 2 * two + four}.__getitem__
