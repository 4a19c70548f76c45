"""The energy distance of samples: known values, its standard error, what it sees."""

import numpy as np
import pytest

from lib.samples import energy_distance


def rng(key=0):
    return np.random.default_rng(key)


def test_it_is_the_sum_over_all_pairs():
    x, y = rng(1).standard_normal((2, 60, 3))

    def mean(a, b, same):
        total = sum(np.linalg.norm(p - q) for p in a for q in b)
        return total / (len(a) * (len(b) - same))

    expected = 2 * mean(x, y, 0) - mean(x, x, 1) - mean(y, y, 1)
    assert energy_distance(x, y).distance == pytest.approx(expected, rel=1e-12)


def test_shifted_normal_laws_on_the_line():
    """For N(0, 1) and N(a, 1), E|X − Y| = 2 φ(b)√2 + a(2Φ(b) − 1), b = a/√2."""
    from scipy.stats import norm

    a = 0.7
    b = a / np.sqrt(2)
    cross = 2 * np.sqrt(2) * norm.pdf(b) + a * (2 * norm.cdf(b) - 1)
    expected = 2 * cross - 2 * 2 / np.sqrt(np.pi)
    distance, error = energy_distance(
        rng(2).standard_normal((2000, 1)), a + rng(3).standard_normal((2000, 1))
    )
    assert distance == pytest.approx(expected, abs=5 * error) and error < 0.03


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_the_standard_error_is_the_spread_of_estimates(shift):
    estimates = np.array(
        [
            energy_distance(x, y + shift)
            for x, y in rng(4).standard_normal((200, 2, 100, 2))
        ]
    )  # (200, 2)
    spread = estimates[:, 0].std()
    if shift:
        assert estimates[:, 1].mean() == pytest.approx(spread, rel=0.2)
    else:  # equal laws: no bias, and the jackknife errs on the safe side
        assert abs(estimates[:, 0].mean()) < 4 * spread / np.sqrt(200)
        assert spread < estimates[:, 1].mean() < 3 * spread


def test_it_sees_dependence_where_marginals_are_equal():
    x = rng(5).standard_normal((1000, 1))
    tied = np.hstack([x, x])
    loose = rng(6).standard_normal((1000, 2))
    distance, error = energy_distance(tied, loose)
    assert distance > 10 * error


def test_order_of_rows_matters_to_the_error_alone():
    x, y = rng(7).standard_normal((2, 80, 2))
    one = energy_distance(x, y)
    other = energy_distance(x[::-1], rng(8).permutation(y))
    assert one.distance == pytest.approx(other.distance, rel=1e-12)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (np.ones((40, 2)), np.ones((40, 3)), "one and other must have one shape"),
        (np.ones((41, 2)), np.ones((41, 2)), "a multiple of 20 rows"),
        (np.ones((20, 2)), np.ones((20, 2)), "at least 40, got 20"),
        (np.ones(40), np.ones(40), "one must be a non-empty matrix"),
    ],
)
def test_samples_that_do_not_fit(one, other, message):
    with pytest.raises(ValueError, match=message):
        energy_distance(one, other)
