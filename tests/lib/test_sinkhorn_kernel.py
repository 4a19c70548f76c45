"""The Gibbs kernel, stored and computed again."""

import tracemalloc

import numpy as np
import pytest

from lib.sinkhorn import gibbs_kernel, self_transport
from lib.sinkhorn import kernel as gibbs_module

RNG = np.random.default_rng(0)

X = RNG.standard_normal((40, 2))


def mixture_sample(n, key=0):
    """Draws of ½N(−2, 1) + ½N(2, 1), shape (n, 1)."""
    rng = np.random.default_rng(key)
    return rng.standard_normal((n, 1)) + 2 * rng.choice([-1, 1], size=(n, 1))


@pytest.mark.parametrize("d", [1, 2, 12])
def test_rows_computed_again_are_the_rows_stored(d, monkeypatch):
    x = np.random.default_rng(1).standard_normal((300, d))
    stored = self_transport(x, 0.5 * d)
    monkeypatch.setattr(gibbs_module, "_STORED", 100)
    monkeypatch.setattr(gibbs_module, "_BLOCK", 7000)  # 23 rows: 300 is no multiple
    chunked = self_transport(x, 0.5 * d)
    assert chunked.iterations == stored.iterations
    for name in ("plan", "barycentric", "effective_neighbors"):
        one, two = getattr(stored, name)(), getattr(chunked, name)()
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-13)


def test_memory_grows_like_the_number_of_tokens(monkeypatch):
    monkeypatch.setattr(gibbs_module, "_STORED", 100)
    peaks = []
    for n in (1000, 4000):
        x = mixture_sample(n)
        tracemalloc.start()
        self_transport(x, 0.1, tol=1e-2).barycentric()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 8e6 and peaks[1] < 4 * peaks[0]  # the kernel has 128e6 bytes


def test_gibbs_kernel():
    kernel = gibbs_kernel(X, 0.7)
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    np.testing.assert_allclose(kernel, np.exp(-squares / 1.4), rtol=1e-14)
    assert np.linalg.eigvalsh(kernel)[0] > -1e-14
    wide = np.random.default_rng(2).standard_normal((50, 40))
    squares = ((wide[:, None] - wide) ** 2).sum(axis=-1)
    kernel = gibbs_kernel(wide, 30)
    np.testing.assert_allclose(kernel, np.exp(-squares / 60), rtol=1e-12)
    np.testing.assert_array_equal(np.diag(kernel), 1)
    copies = gibbs_kernel(np.repeat(wide[:9], 2, axis=0) + 1, 30)
    assert copies.max() == 1
    # Two clouds so far apart that expanding the square would lose the near pairs.
    apart = wide + 1e8 * (np.arange(50) % 2)[:, None]
    near = gibbs_kernel(apart, 30)[::2, ::2]
    np.testing.assert_allclose(near, kernel[::2, ::2], rtol=1e-5)


@pytest.mark.parametrize(("size", "digits"), [(0.9e5, 3e-10), (1.1e5, 1e-12)])
def test_squares_are_expanded_only_where_nine_digits_of_distances_last(size, digits):
    """Two far clusters, and the distances within one of them."""
    offsets = np.random.default_rng(2).standard_normal((40, 12)) / 4
    far = np.zeros(12)
    far[0] = np.sqrt(2 * size)
    x = np.concatenate([offsets + far, -offsets - far])
    near = gibbs_kernel(x, 1.0)[:40, :40]
    distances = ((offsets[:, None] - offsets) ** 2).sum(axis=-1)
    errors = np.abs(np.log(near) + distances / 2)
    assert errors.max() < digits
    assert (errors.max() > 1e-12) == (size < 1e5)
