"""Softmax, its derivatives and expansion, against independent computations."""

import os
import subprocess
import sys
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.special import softmax as scipy_softmax

from lib import attention
from lib.claims import convergence_order

# No test depends on the clock. In CI the examples are the same in every run: what is
# red there is red here.
settings.register_profile("lib", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("lib")

moderate = st.floats(-30, 30)
rows = arrays(
    np.float64, array_shapes(min_dims=1, max_dims=3, max_side=6), elements=moderate
)
ORDERS = (0, 1, 2, 3)


@given(rows)
def test_softmax_is_a_probability_and_ignores_shifts(u):
    s = attention.softmax(u)
    assert (s >= 0).all()
    np.testing.assert_allclose(s.sum(axis=-1), 1, rtol=1e-14)
    np.testing.assert_allclose(attention.softmax(u + 7), s, rtol=1e-12)


@given(rows)
def test_softmax_agrees_with_scipy(u):
    np.testing.assert_allclose(
        attention.softmax(u), scipy_softmax(u, axis=-1), rtol=1e-13
    )


def test_softmax_masks_and_extremes():
    np.testing.assert_array_equal(attention.softmax([0, -np.inf]), [1, 0])
    np.testing.assert_array_equal(attention.softmax([1e308, -1e308]), [1, 0])
    np.testing.assert_array_equal(attention.softmax([5]), [1])
    np.testing.assert_allclose(
        attention.softmax([1e6, 1e6 + np.log(3)]), [0.25, 0.75], 1e-9
    )


@pytest.mark.parametrize("most", [299, 301, 700])
def test_softmax_is_as_exact_where_its_maximum_is_not_taken_away(most):
    rng = np.random.default_rng(3)
    z = rng.uniform(-most, most, (400, 5))
    z[0], z[1], z[2] = most, -most, [most, -most, 0, most, -most]
    weights = np.exp(z.astype(np.longdouble))  # its range holds all of them
    exact = weights / weights.sum(axis=-1, keepdims=True)
    kept = exact > np.finfo(float).tiny  # smaller ones have fewer digits
    # Of moderate scores the digits are those of exp; of others also those of z − max.
    error = np.abs(attention.softmax(z) / exact - 1)[kept].max()
    assert error < (1e-15 if most < 300 else 1e-13)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    "z", [np.zeros(4), np.array([0.3, -1.0, 2.0, 0.5]), [0.7], [1, 2]]
)
def test_derivatives_are_those_of_the_order_below(z, order):
    z, h = np.asarray(z, float), 1e-4
    tensor = attention.softmax_derivatives(z, order)
    assert tensor.shape == (z.size,) * (order + 1)
    below = (
        attention.softmax
        if order == 1
        else (lambda z: attention.softmax_derivatives(z, order - 1))
    )
    quotient = [(below(z + h * e) - below(z - h * e)) / (2 * h) for e in np.eye(z.size)]
    np.testing.assert_allclose(tensor, np.stack(quotient, axis=-1), atol=3e-9, rtol=0)
    for axes in ((1, 0), (order, *range(order))):  # generate all permutations
        moved = np.moveaxis(tensor, range(len(axes)), axes)
        np.testing.assert_allclose(moved, tensor, atol=1e-16, rtol=0)
    np.testing.assert_allclose(tensor.sum(axis=0), 0, atol=1e-16, rtol=0)


def test_derivatives_at_zero_have_their_closed_forms():
    m, eye = 5, np.eye(5)
    np.testing.assert_allclose(
        attention.softmax_derivatives(np.zeros(m), 1),
        (eye - 1 / m) / m,
        atol=1e-16,
        rtol=0,
    )
    pairs = eye[:, :, None] + eye[:, None, :] + eye[None, :, :]
    triple = np.einsum("ij,jk->ijk", eye, eye)
    np.testing.assert_allclose(
        attention.softmax_derivatives(np.zeros(m), 2),
        triple / m - pairs / m**2 + 2 / m**3,
        atol=1e-16,
        rtol=0,
    )
    third = attention.softmax_derivatives(np.zeros(4), 3)
    assert set(np.round(third.ravel() * 128, 9)) == {-3.0, 1.0}


def test_masked_index_has_derivative_zero():
    tensor = attention.softmax_derivatives([0, 1, -np.inf], 2)
    np.testing.assert_array_equal(tensor[2], 0)
    np.testing.assert_allclose(
        tensor[:2, :2, :2], attention.softmax_derivatives([0, 1], 2)
    )


@pytest.mark.parametrize("order", ORDERS)
def test_expansion_is_the_taylor_polynomial(order):
    """Contract the derivative tensors at zero: a computation with no moments in it."""
    u = np.array([0.4, -1.3, 0.2, 2.0, 0.1])
    total = np.full(5, 1 / 5)
    for r in range(1, order + 1):
        term = attention.softmax_derivatives(np.zeros(5), r)
        for _ in range(r):
            term = term @ u
        total += term / np.prod(range(1, r + 1))
    np.testing.assert_allclose(attention.softmax_expansion(u, order), total, rtol=1e-13)


@pytest.mark.parametrize("order", ORDERS)
def test_remainder_has_its_order(order):
    u = np.random.default_rng(1).standard_normal((3, 6))
    scales = 2.0 ** np.arange(-9, -3)
    errors = [
        np.abs(
            attention.softmax(s * u) - attention.softmax_expansion(s * u, order)
        ).max()
        for s in scales
    ]
    slope, _ = convergence_order(scales, errors)
    assert slope == pytest.approx(order + 1, abs=0.05)


@given(rows, st.sampled_from(ORDERS))
def test_expansion_rows_sum_to_one_and_commute_with_permutations(u, order):
    p = attention.softmax_expansion(u, order)
    # A power of degree k is rounded to one part in 1e16 of R^k before it cancels.
    rounding = 1e-15 * (1 + np.ptp(u)) ** order
    assert (np.abs(p.sum(axis=-1) - 1) <= rounding).all()
    flipped = attention.softmax_expansion(u[..., ::-1], order)[..., ::-1]
    np.testing.assert_allclose(flipped, p, atol=rounding, rtol=0)


@given(rows, st.sampled_from(ORDERS), st.sampled_from([1e-3, 1e-2, 0.1, 1.0]))
def test_bound_is_never_exceeded(u, order, scale):
    u = u * scale
    remainder = np.abs(attention.softmax(u) - attention.softmax_expansion(u, order))
    rounding = 1e-15 * (1 + np.ptp(u)) ** order
    bound = attention.remainder_bound(u, order)
    assert bound.shape == u.shape[:-1]
    assert (remainder.max(axis=-1) <= bound + rounding).all()


@pytest.mark.parametrize("order", ORDERS)
def test_bound_is_sharp_as_the_scores_tend_to_zero(order):
    """Row by row: what is left is the next term of the series."""
    u = 1e-3 * np.random.default_rng(2).standard_normal((50, 4))
    remainder = np.abs(attention.softmax(u) - attention.softmax_expansion(u, order))
    bound = attention.remainder_bound(u, order)
    seen = bound > 1e-15  # the softmax itself is rounded to about 1e-17
    ratio = remainder.max(axis=-1)[seen] / bound[seen]
    assert seen.sum() > 40 and 0.93 < ratio.min() < ratio.max() < 1.02


def test_bound_of_large_scores_has_the_constants_of_its_formula():
    """For a wide range neither the exponential nor the next order is the smaller."""
    R = 600.0
    for k, constant in enumerate((1 / 4, 1 / (6 * 3**0.5), 1 / 8, 1 / 6)):
        wanted = constant * R ** (k + 1) / factorial(k + 1)
        bound = attention.remainder_bound([0.0, 0.0, R], k)
        assert bound == pytest.approx(wanted, rel=1e-13, abs=0)


def test_last_constant_of_the_bound_is_made_of_bounds_on_cumulants():
    """Of two keys the term of degree 4 is 0: the bound of order 3 is C₅R⁵/5! alone."""
    x = 0.01
    bound = attention.remainder_bound([x, -x], 3)
    constant = bound * 120 * 2 * np.exp(-x) / (2 * x) ** 5
    # The third cumulants of laws on [0, 1] with two values go up to 1/(6√3).
    p = np.linspace(0, 1, 100_001)
    skew = (p * (1 - p) * np.abs(1 - 2 * p)).max()
    parts = [1, 10 / 4, 10 * skew, 15 / 16, 5 / 8, 5 * skew, 1 / 4]
    assert constant == pytest.approx(sum(parts), rel=1e-8)
    assert 6.755 < constant < 6.756


def test_derivatives_along_a_ray_are_at_most_those_constants():
    """Entry 0 of weight p beside others at distances y: laws on unit intervals."""
    rng = np.random.default_rng(9)
    y = rng.uniform(size=(200_000, 3))
    y[:, :2] = 0, 1
    y -= rng.uniform(size=(len(y), 1)) * rng.integers(2, size=(len(y), 1))
    law = rng.dirichlet(np.full(3, 0.3), size=len(y))
    p = rng.uniform(size=len(y))
    d = np.sum(law * y, axis=1)
    v, c3, c4 = (np.sum(law * (y - d[:, None]) ** r, axis=1) for r in (2, 3, 4))
    x, odd = p * (1 - p), 1 - 2 * p
    derivatives = [
        x * d,
        x * (odd * d**2 - v),
        x * ((1 - 6 * x) * d**3 - 3 * odd * d * v + c3),
        x * odd * ((1 - 12 * x) * d**4 + 3 * v**2 + 4 * d * c3)
        - x * (6 * (1 - 6 * x) * d**2 * v + c4 - 3 * v**2),
    ]
    largest = [np.abs(each).max() for each in derivatives]
    # Two keys have the largest derivatives that were found.
    s = np.linspace(0, 1, 10_001)  # |1 − 2p|
    fourth = (s * (1 - s**2) * np.abs(2 - 3 * s**2) / 4).max()
    best = [1 / 4, 1 / (6 * np.sqrt(3)), 1 / 8, fourth]
    np.testing.assert_allclose(largest, best, rtol=2e-3)
    assert (np.less_equal(largest, [*best[:3], 1 / 6])).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("scale", [0.1, 0.3, 1.0])
def test_bound_is_within_twenty_of_the_worst_remainder(order, m, scale):
    u = scale * np.random.default_rng(m).standard_normal((20_000, m))
    remainder = np.abs(attention.softmax(u) - attention.softmax_expansion(u, order))
    bound = attention.remainder_bound(u, order)
    seen = bound > 1e-12  # below that the rounding of the softmax is larger
    worst = (remainder.max(axis=-1)[seen] / bound[seen]).max()
    assert 1 / 20 <= worst <= 1 + 1e-3


def test_shaped_attention_is_the_identity_in_the_limit():
    y = np.random.default_rng(0).standard_normal((2, 4, 4))
    a = attention.shaped_attention(y, 3.0)
    np.testing.assert_allclose(a.sum(axis=-1), 1, rtol=1e-14)
    np.testing.assert_allclose(
        a - np.eye(4) + 1 / 4, attention.softmax(y / 3), rtol=1e-14
    )
    np.testing.assert_allclose(
        attention.shaped_attention(y, 1e12),
        np.broadcast_to(np.eye(4), a.shape),
        atol=1e-11,
        rtol=0,
    )


def test_scores_have_their_covariance():
    """E[Y_ad Y_bw] = n_k V_ab V_dw exactly, at any width; 4 standard errors."""
    rng = np.random.default_rng(5)
    x, key_width = rng.standard_normal((2, 3)), 2
    v = x @ x.T / 3
    y = np.stack(
        [attention.random_scores(x, key_width, rng=rng) for _ in range(20_000)]
    )
    products = np.einsum("rad,rbw->rabdw", y, y)
    error = products.std(axis=0) / len(y) ** 0.5
    wanted = key_width * np.einsum("ab,dw->abdw", v, v)
    assert (np.abs(products.mean(axis=0) - wanted) <= 4.5 * error).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: attention.softmax([0, np.nan]), ["logits[1]", "nan"]),
        (lambda: attention.softmax([[0, np.inf]]), ["logits[0, 1]", "inf"]),
        (lambda: attention.softmax([-np.inf, -np.inf]), ["logits", "-inf only"]),
        (lambda: attention.softmax([]), ["logits", "(0,)"]),
        (lambda: attention.softmax(1.0), ["logits", "()"]),
        (lambda: attention.softmax(["a", "b"]), ["logits", "<U1"]),
        (lambda: attention.softmax(None), ["logits", "object"]),
        (lambda: attention.softmax_derivatives([0, 1], 4), ["order", "4"]),
        (lambda: attention.softmax_derivatives([[0, 1]], 1), ["z", "(1, 2)"]),
        (lambda: attention.softmax_derivatives([-np.inf], 1), ["z", "-inf"]),
        (lambda: attention.softmax_expansion([0, 1], 4), ["order", "4"]),
        (lambda: attention.softmax_expansion([0, 1], 1.0), ["order", "1.0"]),
        (lambda: attention.softmax_expansion([0, -np.inf], 1), ["logits[1]", "-inf"]),
        (lambda: attention.softmax_expansion([0, 1e200], 3), ["logits", "order 3"]),
        (lambda: attention.remainder_bound([np.nan], 1), ["logits[0]", "nan"]),
        (lambda: attention.remainder_bound([0], -1), ["order", "-1"]),
        (lambda: attention.shaped_attention(np.eye(2), -1), ["temperature", "-1"]),
        (lambda: attention.shaped_attention(np.eye(2), "a"), ["temperature", "'a'"]),
        (lambda: attention.shaped_attention(np.ones((2, 3)), 1), ["logits", "(2, 3)"]),
        (lambda: attention.shaped_attention(1e300 * np.eye(2), 1e-20), ["temperature"]),
        (
            lambda: attention.random_scores(np.eye(2), 0, rng=np.random.default_rng()),
            ["key_width", "0"],
        ),
        (lambda: attention.random_scores(np.eye(2), 1, rng=None), ["rng", "None"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words)


def test_input_is_left_alone_and_may_be_read_only():
    u = np.arange(12).reshape(3, 4)[:, ::-1]
    u.flags.writeable = False
    before = u.copy()
    (
        attention.softmax(u),
        attention.softmax_expansion(u, 3),
        attention.remainder_bound(u, 1),
    )
    np.testing.assert_array_equal(u, before)
    assert attention.softmax(u).dtype == np.float64


def test_import_is_light():
    """Counts, not seconds: none of the heavy packages comes with the numerics."""
    code = (
        "import sys, lib.attention;"
        "heavy = ('matplotlib', 'scipy', 'ot', 'IPython');"
        "print([m for m in heavy if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "[]"
