"""Systems of tokens: drawn at random, and parted into clusters."""

import numpy as np
import pytest

from lib import sphere
from lib.sphere.geometry import unit

RNG = np.random.default_rng(0)


def test_clusters_are_connected_components():
    theta = np.array([0, 0.1, 0.2, 1.0, 1.05, 3.0, 2 * np.pi - 0.1])
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    np.testing.assert_array_equal(sphere.cluster_labels(x, 0.11), [0, 0, 0, 1, 1, 2, 0])
    both = sphere.cluster_labels(np.stack([x, x[::-1]]), 0.11)
    np.testing.assert_array_equal(both[1], [0, 1, 2, 2, 0, 0, 0])
    assert sphere.cluster_labels(x, 0.01).max() == 6
    chord = 2 * np.sin(0.05)
    assert sphere.cluster_labels(x[:2], chord * (1 + 1e-9)).max() == 0
    assert sphere.cluster_labels(x[:2], chord * (1 - 1e-9)).max() == 1
    assert sphere.cluster_labels(x, 2.0).max() == 0
    # Below the rounding of a cosine: 1 − cos of 1e-10 is 5e-21.
    near = np.array([[1.0, 0.0], [1.0, 1e-10], [1.0, 3e-10]])
    np.testing.assert_array_equal(sphere.cluster_labels(near, 1.5e-10), [0, 0, 1])


def test_tokens_whose_squares_leave_the_range_have_a_direction():
    y = np.array([[3e200, 4e200], [-3e-200, 4e-200], [5e-324, 0], [0, 2]])
    expected = [[0.6, 0.8], [-0.6, 0.8], [1, 0], [0, 1]]
    np.testing.assert_allclose(unit(y), expected, rtol=1e-15)
    with pytest.raises(ValueError, match="make a token 0"):
        unit(np.append(y, np.zeros((1, 2)), axis=0))


def test_uniform_tokens_have_their_law():
    """A coordinate in d = 3 is uniform on [−1, 1] (Archimedes): KS at 1e-6."""
    x = sphere.uniform_tokens(20_000, 3, rng=np.random.default_rng(6))
    for a in range(3):
        sorted_ = np.sort(x[:, a])
        gap = np.abs((sorted_ + 1) / 2 - (np.arange(20_000) + 0.5) / 20_000).max()
        assert gap < np.sqrt(-np.log(0.5e-6 / 3) / 2 / 20_000)
    assert sphere.uniform_tokens(3, 2, systems=5, rng=RNG).shape == (5, 3, 2)


def test_clusters_that_are_narrow_and_apart_are_counted_exactly():
    centers = np.stack([np.eye(3), -np.eye(3)]).reshape(6, 3)
    x = unit(
        np.repeat(centers, [1, 2, 3, 4, 5, 20], axis=0) + 1e-3 * RNG.normal(size=3)
    )
    assert sphere.cluster_count(x, 0.2) == pytest.approx(6, abs=1e-12)
    assert sphere.neighbors(x, 0.2).tolist() == [1] + 2 * [2] + 3 * [3] + 4 * [
        4
    ] + 5 * [5] + 20 * [20]
    assert len({*sphere.cluster_labels(x, 0.2).tolist()}) == 6
    assert sphere.cluster_count(x, 2.0) == pytest.approx(1, abs=1e-12)
    assert sphere.cluster_count(x[:1], 0.2) == 1


def test_the_count_of_clusters_is_at_most_what_can_be_chosen_apart():
    """Caro and Wei: greedily chosen tokens farther apart than the radius are as many
    in the mean over orders, so the largest choice is at least that."""
    x = sphere.uniform_tokens(60, 3, rng=RNG)
    apart = np.linalg.norm(x[:, None] - x, axis=-1) > 0.5
    most = 0
    for _ in range(300):
        chosen = []
        for i in RNG.permutation(60):
            if apart[i, chosen].all():
                chosen.append(i)
        most = max(most, len(chosen))
    assert 1 < sphere.cluster_count(x, 0.5) <= most
    systems = np.stack([x, x[::-1]])
    assert np.allclose(sphere.cluster_count(systems, 0.5), sphere.cluster_count(x, 0.5))


def test_uniform_tokens_are_few_chains_and_no_clusters():
    x = sphere.uniform_tokens(256, 3, systems=8, rng=RNG)
    chains = 1 + sphere.cluster_labels(x, 0.25).max(axis=-1)
    assert 6 < chains.mean() < 20 < 50 < sphere.cluster_count(x, 0.25).min()


def test_crowd_is_measured_by_the_functions_that_it_joins():
    x = sphere.uniform_tokens(20, 3, rng=RNG)
    for beta in (4.0, -4.0):
        crowd = sphere.crowd_state(x, beta, 0.4)
        energy = sphere.interaction_energy(x, beta, shifted=True)
        assert crowd["height"] == pytest.approx(2 * beta * energy, rel=1e-12)
        assert crowd["clusters"] == sphere.cluster_count(x, 0.4)
        assert (crowd["neighbors"] == sphere.neighbors(x, 0.4)).all()
    assert sphere.crowd_state(x, 0.0, 0.4)["height"] == pytest.approx(1)
    one = np.ones((20, 1)) * x[:1]
    assert sphere.crowd_state(one, 9.0, 0.4)["height"] == pytest.approx(1)
