"""Two tokens by triangular roots: the layers of gram, without a branch."""

import numpy as np
import pytest

from lib.core import wishart
from lib.core.psd import cosines, gram_of, triangular
from lib.gram import ShapedLayer, pairs

RNG = np.random.default_rng(17)
ROWS = RNG.standard_normal((50, 2, 4))


def test_root_of_two_rows_is_that_of_many():
    factor = pairs.triangular_pair(ROWS)
    assert np.abs(factor - triangular(ROWS)).max() < 1e-13
    assert (factor[:, 0, 1] == 0).all()


@pytest.mark.parametrize("gap", [1e-3, 1e-8, 1e-13])
def test_next_to_collapse_no_distance_is_lost(gap):
    rows = np.stack([ROWS[:, 0], ROWS[:, 0] + gap * ROWS[:, 1]], axis=1)
    factor = pairs.triangular_pair(rows)
    assert np.abs(gram_of(factor) - gram_of(rows)).max() < 1e-14 * 50
    apart = np.linalg.norm(factor[:, 0] - factor[:, 1], axis=-1)
    wanted = np.linalg.norm(rows[:, 0] - rows[:, 1], axis=-1)
    assert np.abs(apart / wanted - 1).max() < 1e-14 / gap
    # The part across the first token is no rounding of a square.
    assert (factor[:, 1, 1] > 1e-3 * gap).all()


@pytest.mark.parametrize("sizes", [(1e-200, 1.0), (1e200, 1e-200), (1e200, 1e200)])
def test_rows_of_any_size_keep_their_angle(sizes):
    rows = ROWS * np.array(sizes)[:, None]
    wanted = pairs.cosine(pairs.triangular_pair(ROWS))
    factor = pairs.triangular_pair(rows) / np.array(sizes)[:, None]
    assert np.abs(pairs.cosine(factor) - wanted).max() < 1e-14


def test_equal_tokens_and_tokens_that_are_zero_have_a_root():
    zero, one = np.zeros(4), np.array([3.0, 0.0, 4.0, 0.0])
    for rows, wanted in (
        ((one, one), [[5, 0], [5, 0]]),
        ((one, -2 * one), [[5, 0], [-10, 0]]),
        ((zero, one), [[0, 0], [0, 5]]),
        ((one, zero), [[5, 0], [0, 0]]),
        ((zero, zero), [[0, 0], [0, 0]]),
    ):
        root = pairs.triangular_pair(np.stack(rows))
        assert np.abs(root - wanted).max() < 1e-15


@pytest.mark.parametrize("width", [4, 9, 300])
@pytest.mark.parametrize("tau0", [0.3, 1.0])
def test_layer_is_that_of_the_chain(width, tau0):
    """From the same draws, pair by pair; some pairs are next to collapse."""
    layer = ShapedLayer(width, 7, 0.8, 0.6, tau0)
    root = np.tril(RNG.standard_normal((40, 2, 2)))
    root[:10, 1, 1] *= 1e-7
    wanted = layer._gram_step(root, np.random.default_rng(width))
    rng = np.random.default_rng(width)
    keys = wishart.bartlett(40, 2, 7, rng)
    queries, seen = rng.standard_normal((40, 2, 2)), rng.standard_normal((40, 2, 2))
    unseen = wishart.bartlett(40, 2, width - 2, rng)
    after = pairs.layer_step(layer, root, keys, queries, seen, unseen)
    assert np.abs(gram_of(after) - gram_of(wanted)).max() < 1e-13 * width
    cosine = cosines(gram_of(wanted))[1][:, 0, 1]
    assert np.abs(pairs.cosine(after) - cosine).max() < 1e-14
