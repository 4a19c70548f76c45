"""Systems of tokens: drawn at random, and parted into clusters."""

import numpy as np

from lib import sphere

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


def test_uniform_tokens_have_their_law():
    """A coordinate in d = 3 is uniform on [−1, 1] (Archimedes): KS at 1e-6."""
    x = sphere.uniform_tokens(20_000, 3, rng=np.random.default_rng(6))
    for a in range(3):
        sorted_ = np.sort(x[:, a])
        gap = np.abs((sorted_ + 1) / 2 - (np.arange(20_000) + 0.5) / 20_000).max()
        assert gap < np.sqrt(-np.log(0.5e-6 / 3) / 2 / 20_000)
    assert sphere.uniform_tokens(3, 2, systems=5, rng=RNG).shape == (5, 3, 2)
