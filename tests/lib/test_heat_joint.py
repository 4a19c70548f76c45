"""The joint limit of step and spacing on the line, where it is known exactly."""

import numpy as np
import pytest

from lib import heat


def test_share_is_the_variance_of_a_gaussian_on_the_integers():
    a, k = np.array([0.02, 0.3, 1.0, 1.9, 5.0]), np.arange(-60.0, 61.0)
    weights = np.exp(-(k**2) / (2 * a[:, None]))
    wanted = weights @ k**2 / weights.sum(axis=1) / a
    np.testing.assert_allclose(heat.grid_share(a), wanted, rtol=1e-13)


def test_two_tokens_of_large_scale_part_as_heat_does():
    """g = 1 leaves d' = 1/d for the distance d, so that d² grows by twice the time."""
    run = heat.joint_flow([[0.0], [1.0]], 1000.0, 4.0, times=3)
    gaps = np.sqrt([1.0, 5.0, 9.0])
    wanted = np.stack([1 - gaps, 1 + gaps], axis=1) / 2
    np.testing.assert_array_equal(run.times, [0, 2, 4])
    np.testing.assert_allclose(run.states[..., 0], wanted, atol=1e-8, rtol=0)


def test_tokens_at_one_place_are_refused():
    with pytest.raises(ValueError, match="at least two tokens in increasing order"):
        # With a scale that is refused next: such a flow let through would never end.
        heat.joint_flow([[1.0], [1.0]], 0.0, 1.0)
