"""Arrays of other libraries: the same numbers as in numpy, where the arrays lie."""

from functools import partial
from importlib.util import find_spec

import array_api_strict
import numpy as np
import pytest

from lib import sinkhorn, sphere

RNG = np.random.default_rng(0)
TOKENS = {
    "one system": sphere.uniform_tokens(9, 3, rng=RNG),
    "systems": sphere.uniform_tokens(5, 4, systems=3, rng=RNG),
}
WEIGHTS = ("query", "key", "value")


def strict(device):
    """Arrays that can do what the standard says, and nothing with another device's."""
    place = array_api_strict.Device(device)
    return lambda array: array_api_strict.asarray(array, device=place)


PLACES = {"strict": strict("CPU_DEVICE"), "strict elsewhere": strict("device1")}
if find_spec("torch"):
    import torch

    PLACES["torch"] = torch.asarray
    if torch.cuda.is_available():
        PLACES["torch on a GPU"] = partial(torch.asarray, device="cuda")


@pytest.fixture(params=PLACES)
def there(request):
    """A function that brings a numpy array to another library."""
    return PLACES[request.param]


def assert_same(found, wanted, like):
    assert type(found) is type(like) and found.device == like.device
    assert found.dtype == like.dtype
    back = (
        found.cpu().numpy()
        if hasattr(found, "cpu")
        else np.from_dlpack(found, device="cpu")
    )
    np.testing.assert_allclose(back, wanted, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("beta", [-1.5, 0.0, 2.0, 1e7])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("tokens", TOKENS)
def test_field(there, beta, normalize, causal, tokens):
    x = TOKENS[tokens]
    like = there(x)
    found = sphere.attention_field(like, beta, normalize, causal=causal)
    assert_same(found, sphere.attention_field(x, beta, normalize, causal=causal), like)


@pytest.mark.parametrize("tokens", TOKENS)
def test_field_with_weights_of_numpy_or_beside_the_tokens(there, tokens):
    x = TOKENS[tokens]
    weights = {k: RNG.standard_normal((2, x.shape[-1], x.shape[-1])) for k in WEIGHTS}
    wanted, like = sphere.attention_field(x, 2.0, **weights), there(x)
    assert_same(sphere.attention_field(like, 2.0, **weights), wanted, like)
    moved = {k: there(weight) for k, weight in weights.items()}
    assert_same(sphere.attention_field(like, 2.0, **moved), wanted, like)


def test_field_in_blocks(there, monkeypatch):
    x = TOKENS["systems"]
    wanted, like = sphere.attention_field(x, 2.0), there(x)
    for size in (1, 5, 10, 25, 60):
        monkeypatch.setattr("lib._sphere.heads._LARGE", size)
        assert_same(sphere.attention_field(like, 2.0), wanted, like)


@pytest.mark.parametrize("tokens", TOKENS)
def test_flow(there, tokens):
    x = TOKENS[tokens]
    wanted, like = sphere.simulate(x, 2.0, 1.0, 8, save_every=3), there(x)
    found = sphere.simulate(like, 2.0, 1.0, 8, save_every=3)
    assert_same(found.states, wanted.states, like)
    assert isinstance(found.times, np.ndarray) and (found.times == wanted.times).all()
    found = sphere.flow(lambda y: sphere.attention_output(y, 2.0), like, 1.0, 8)
    assert_same(found.states[-1, ...], wanted.states[-1], like)


def test_errors_are_those_of_numpy(there):
    x = TOKENS["one system"].copy()
    with pytest.raises(ValueError, match="steps=1 is too small.* x0 and beta"):
        sphere.simulate(there(x), 40.0, 9.0, 1)
    large = 1e200 * np.eye(3)
    with pytest.raises(ValueError, match="query, key or value is too large"):
        sphere.attention_field(there(x), 2.0, query=large, key=large)
    with pytest.raises(ValueError, match="field must give vectors of shape"):
        sphere.flow(lambda y: y[..., :2], there(x), 1.0, 8)
    with pytest.raises(ValueError, match="field must be finite"):
        sphere.flow(lambda y: y * float("inf"), there(x), 1.0, 8)
    x[3] *= 2
    with pytest.raises(ValueError, match=r"x must lie on .* x\[3\] has norm 2"):
        sphere.attention_field(there(x), 2.0)
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"x must be finite, but x\[3, 1\] is nan"):
        sphere.attention_field(there(x), 2.0)


CLOUDS = {"line": 1, "plane": 2, "many coordinates": 12}


@pytest.mark.parametrize("d", CLOUDS.values(), ids=CLOUDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solve", ["self_transport", "alternating_transport"])
def test_transport(there, d, weighted, solve, monkeypatch):
    monkeypatch.setattr("lib._sinkhorn.rows._ENTRIES", 50)  # in blocks of 4 rows
    x = RNG.standard_normal((11, d))
    weights = np.arange(1.0, 12.0) / 66 if weighted else None
    wanted = getattr(sinkhorn, solve)(x, d / 2, weights=weights)
    like = there(x)
    moved = there(weights) if weighted else None
    found = getattr(sinkhorn, solve)(like, d / 2, weights=moved)
    assert (found.iterations, found.converged) == (wanted.iterations, True)
    assert found.frozen == wanted.frozen
    for name in ("x", "weights", "left", "right"):
        assert_same(getattr(found, name), getattr(wanted, name), like)
    for name in ("plan", "barycentric", "displacement", "effective_neighbors"):
        assert_same(getattr(found, name)(), getattr(wanted, name)(), like)
    assert_same(found.barycentric(there(x**2)), wanted.barycentric(x**2), like)
    assert_same(sinkhorn.bridge_step(like, d / 2), sinkhorn.bridge_step(x, d / 2), like)


def test_transport_of_frozen_tokens_warns(there):
    x = np.arange(12.0)[:, None] % 6  # each place twice
    with pytest.warns(sinkhorn.FrozenFlowWarning, match="nearest other.*about 1,"):
        found = sinkhorn.self_transport(there(x), 0.01)
    assert_same(
        found.right, sinkhorn.self_transport(x, 1.0).right * 0 + 6**0.5, found.x
    )


@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_sinkhorn_attention(there, iterations):
    scores = RNG.standard_normal((2, 5, 5))
    scores[0, 1, 2] = -np.inf
    wanted, like = sinkhorn.sinkhorn_attention(scores, iterations), there(scores)
    assert_same(sinkhorn.sinkhorn_attention(like, iterations), wanted, like)


def test_errors_of_transport_are_those_of_numpy(there):
    x = there(np.ones((3, 2)))
    with pytest.raises(ValueError, match="weights must sum to 1"):
        sinkhorn.self_transport(x, 1.0, weights=there(np.ones(3)))
    with pytest.raises(ValueError, match="x must be finite"):
        sinkhorn.self_transport(there(np.full((3, 2), np.inf)), 1.0)
    with pytest.raises(ValueError, match="values must have 3 rows"):
        sinkhorn.self_transport(x, 1.0).barycentric(there(np.ones((2, 2))))
    with pytest.raises(ValueError, match="scores must be finite or -inf"):
        sinkhorn.sinkhorn_attention(there(np.full((3, 3), np.nan)), 2)
