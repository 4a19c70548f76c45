"""Clusters over long times, against tokens, closed forms and their own limits."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lib import sphere
from lib.circle import points
from lib.sphere import coalesce, equiangular_time

THETA = np.random.default_rng(3).uniform(0, 2 * np.pi, 40)
X = points(THETA)


@pytest.mark.parametrize("normalize", [True, False])
def test_short_times_are_those_of_tokens(normalize):
    """Chords and energies agree with a plain integration while it still can see."""
    beta, run = 4.0, coalesce(X, 4.0, normalize=normalize, radius=1e-5)
    times = run.times[(run.times > 0.5) & (run.times < 60)][::9]

    def slope(_, y):
        x = y.reshape(40, 2)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        return sphere.attention_field(x, beta, normalize).ravel()

    plain = solve_ivp(
        slope, (0, times[-1]), X.ravel(), "DOP853", times, rtol=1e-11, atol=1e-12
    )
    for time, y in zip(times, plain.y.T, strict=True):
        mine = run.states[np.searchsorted(run.times, time)]
        np.testing.assert_allclose(mine, y.reshape(40, 2), atol=2e-5, rtol=0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("angle", [1.0, np.pi / 2, 2.5])
@pytest.mark.parametrize("beta", [5.0, 40.0, 350.0])
def test_two_clusters_merge_at_the_time_in_closed_form(angle, beta, normalize):
    run = coalesce(points([0.0, angle]), beta, normalize=normalize)
    gap = (0.999e-3) ** 2 / 2
    exact = equiangular_time(2, beta, gap, normalize, cosine0=np.cos(angle))
    assert run.merge_times == pytest.approx([exact], rel=2e-6, abs=0)
    assert exact > 1e100 or beta < 300 or angle < 2


def test_masses_count():
    """Of clusters of masses a and b each moves in proportion to the other's mass."""
    x = points([0.0] * 3 + [1.2])
    run = coalesce(x, 30.0)
    assert run.counts[0] == 2 and run.plateaus[0] == (9 + 1) / 16
    moved = np.arctan2(run.states[-1, 0, 1], run.states[-1, 0, 0])
    # Far apart the speeds are b/a and a/b, so the large one moves 1/9 of the other.
    far = run.states[np.searchsorted(run.times, 0.5 * run.times[-1])]
    share = np.arctan2(far[0, 1], far[0, 0]) / (1.2 - np.arctan2(far[3, 1], far[3, 0]))
    assert share == pytest.approx(1 / 9, rel=1e-6, abs=0) and 0.1 < moved < 0.3


@pytest.mark.parametrize("beta", [9.0, 20.0, 40.0])
def test_energy_rests_at_the_sum_of_squared_masses(beta):
    """And exceeds it by the interaction of the clusters, exponentially small."""
    run = coalesce(X, beta)
    heights = 2 * beta * sphere.interaction_energy(run.states, beta, shifted=True)
    assert np.diff(heights).min() > -1e-6  # merging moves tokens by the radius
    for left in (2, 3):
        inside = np.flatnonzero(run.counts == left)
        k = inside[np.searchsorted(run.times[inside], 0.1 * run.times[inside[-1]])]
        masses = np.bincount(run.labels[k]) / 40
        first = [np.argmax(run.labels[k] == c) for c in range(left)]
        cosines = run.states[k][first] @ run.states[k][first].T
        exact = masses @ np.exp(beta * (cosines - 1)) @ masses
        assert heights[k] == pytest.approx(exact, rel=1e-6, abs=0)
        assert run.plateaus[k] == pytest.approx(np.sum(masses**2), rel=1e-14, abs=0)
    assert heights[-1] == pytest.approx(1) and run.counts[-1] == 1


def test_times_do_not_depend_on_radius_and_tolerance():
    ends = [
        coalesce(X, 40.0, radius=radius, tol=tol).merge_times[-2:]
        for radius, tol in ((1e-3, 1e-8), (3e-3, 1e-8), (1e-3, 1e-6))
    ]
    np.testing.assert_allclose(ends, np.tile(ends[0], (3, 1)), rtol=5e-5)
    np.testing.assert_allclose(ends[0], [1.66e23, 1.36e33], rtol=5e-3)


def test_clusters_on_a_sphere():
    x = sphere.uniform_tokens(12, 3, rng=np.random.default_rng(1))
    run = coalesce(x, 25.0)
    np.testing.assert_allclose(np.linalg.norm(run.states, axis=-1), 1, rtol=1e-12)
    assert run.counts[-1] == 1 and (np.diff(run.times) >= 0).all()
    assert run.merge_times[-1] > 1e6
    stopped = coalesce(x, 25.0, clusters=3)
    assert stopped.counts[-1] <= 3 < stopped.counts[0]
    np.testing.assert_allclose(
        stopped.merge_times, run.merge_times[: len(stopped.merge_times)], rtol=1e-12
    )


def test_a_mean_may_meet_a_third_token():
    """Two tokens within the radius, a third within it of their mean only."""
    near = 1e-3 * np.array([[-0.48, 0], [0.48, 0], [0, 0.9]])
    x = np.vstack([np.column_stack([near, np.sqrt(1 - np.sum(near**2, 1))]), [1, 0, 0]])
    run = coalesce(x, 5.0)
    np.testing.assert_array_equal(run.counts[:2], [4, 2])
    np.testing.assert_array_equal(run.labels[1], [0, 0, 0, 1])
    assert run.counts[-1] == 1


def test_equal_tokens_are_one_from_the_start():
    run = coalesce(points([0.3, 0.3, 0.3]), 5.0)
    np.testing.assert_array_equal(run.times, [0])
    np.testing.assert_array_equal(run.labels, [[0, 0, 0]])
    assert run.merge_times.size == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coalesce(points([0, np.pi]), 5.0), ["x0", "equilibrium"]),
        (
            lambda: coalesce(points(2 * np.pi * np.arange(3) / 3), 5.0),
            ["x0", "equilibrium"],
        ),
        (lambda: coalesce(X, 0.0), ["beta", "0.0"]),
        (lambda: coalesce(X, -1.0), ["beta", "-1.0"]),
        (lambda: coalesce(X, 40.0, radius=0.2), ["radius", "0.2"]),
        (lambda: coalesce(X, 1e8), ["radius", "beta=100000000.0"]),
        (lambda: coalesce(X, 4.0, tol=0.0101), ["tol", "0.0101"]),
        (lambda: coalesce(X[None], 4.0), ["x0", "(1, 40, 2)"]),
        (lambda: coalesce(X, 4.0, clusters=0), ["clusters", "0"]),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=".") as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)


def test_times_beyond_floats_give_their_logarithm():
    with pytest.raises(OverflowError, match="logarithm is ") as error:
        coalesce(points([0.0, 2.0]), 900.0)
    logarithm = float(str(error.value).split()[-1])
    leading = 900 * (1 - np.cos(2.0)) - np.log(2 * 900 * np.sin(2.0) ** 2)
    assert logarithm == pytest.approx(leading, abs=0.01)
