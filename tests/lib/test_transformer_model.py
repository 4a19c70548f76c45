"""Transformers: the formula, the law before training, and what is refused."""

import numpy as np
import pytest

from lib import gram
from lib.attention import shaped_attention, softmax
from lib.gram.layers import MultiHeadLayer, PlainLayer, ResidualReluLayer, RMSNorm
from lib.sinkhorn import sinkhorn_attention
from lib.transformer import init, perceptron

SMALL = dict(depth=2, width=6, heads=2, tokens=4, features=3, classes=3)
X = np.random.default_rng(1).standard_normal((3, 4, 3))
VARIANTS = [
    (attention, norm)
    for attention in ("softmax", "shaped", "sinkhorn")
    for norm in ("pre", "post", "none")
]


def make(seed=0, **changed):
    return init(**{**SMALL, **changed}, rng=np.random.default_rng(seed))


def rms(x):
    return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True))


def by_the_formula(params, attention, norm, heads, image):
    """One image, one head at a time, with the functions of the other packages."""
    (features, n), m = params["embed"].shape, len(image)
    x = (image @ params["embed"] / features**0.5 + params["position"]) / 2**0.5
    x = rms(x) if norm == "post" else x
    k, half = n // heads, 0.5**0.5
    tokens, outputs, scores, weights = [x], [], [], []

    def residual(x, branch):
        f = branch(rms(x) if norm == "pre" else x)
        return rms(half * x + half * f) if norm == "post" else half * (x + f)

    for layer in range(len(params["query"])):
        w = {name: params[name][layer] for name in params if params[name].ndim == 3}

        def attend(z, w=w):
            parts, s, a = [], [], []
            for h in range(heads):
                own = slice(h * k, (h + 1) * k)
                y = z @ w["query"][:, own] @ (z @ w["key"][:, own]).T / n
                tau = (n * k) ** 0.5 if attention == "shaped" else k**0.5
                s.append(y / tau)
                a.append({
                    "softmax": lambda y, tau: softmax(y / tau),
                    "shaped": shaped_attention,
                    "sinkhorn": lambda y, tau: sinkhorn_attention(y / tau, 9),
                }[attention](y, tau))  # fmt: skip
                parts.append(a[-1] @ z @ w["value"][:, own])
            scores.append(s)
            weights.append(a)
            outputs.append(np.hstack(parts) @ w["output"] / n)
            return outputs[-1]

        def perceptron(z, w=w):
            up, down = (
                (1 + n**-0.5, 1 - n**-0.5) if attention == "shaped" else (1.0, 0.0)
            )
            g = z @ w["inner"] / n**0.5
            active = up * np.maximum(g, 0) + down * np.minimum(g, 0)
            return (2 / (up**2 + down**2)) ** 0.5 * active @ w["outer"] / n**0.5

        x = residual(residual(x, attend), perceptron)
        tokens.append(x)
    last = rms(x) if norm == "pre" else x
    logits = last.mean(axis=0) @ params["readout"] / n**0.5 + params["bias"]
    assert m == len(last)
    return dict(
        logits=logits, tokens=tokens, outputs=outputs, scores=scores, weights=weights
    )


@pytest.mark.parametrize(("attention", "norm"), VARIANTS)
@pytest.mark.parametrize("heads", [1, 3])
def test_forward_is_the_formula(attention, norm, heads):
    model = make(attention=attention, norm=norm, heads=heads)
    params = model.params | {"bias": np.array([0.5, -1.0, 2.0])}
    model = model.replace(params)
    trace = model.forward(X, trace=True)
    for place, image in enumerate(X):
        expected = by_the_formula(params, attention, norm, heads, image)
        for name, value in expected.items():
            array = getattr(trace, name)
            own = array[place] if name == "logits" else array[:, place]
            np.testing.assert_allclose(own, value, rtol=1e-9, atol=1e-11, err_msg=name)
    np.testing.assert_array_equal(model.forward(X), trace.logits)


LAWS = {
    "shaped": lambda **more: MultiHeadLayer(
        8, 4, 0.5**0.5, 0.5**0.5, 1.0, heads=2, **more
    ),
    "softmax": lambda **more: PlainLayer(
        8, 4, 0.5**0.5, 0.5**0.5, heads=2, value_width=4, **more
    ),
}


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize("attention", ["shaped", "softmax"])
def test_before_training_the_blocks_have_the_law_of_lib_gram(attention, norm):
    """Two moments of the Gram matrix after two blocks, in two independent codes.

    The activations of "softmax" are made those of the layer in lib.gram.
    """
    n, networks = 8, 800
    slopes = (1 + n**-0.5, 1 - n**-0.5)
    start = np.random.default_rng(5).standard_normal((3, n)) + 0.5
    if norm == "post":
        start = rms(start)
    grams = []
    rng = np.random.default_rng(6)
    for _ in range(networks):
        model = init(
            depth=2, width=n, heads=2, tokens=3, features=1, classes=2,
            attention=attention, norm=norm, slopes=slopes, rng=rng,
        )  # fmt: skip
        model = model.replace({**model.params, "position": start * 2**0.5})
        x = model.forward(np.zeros((1, 3, 1)), trace=True).tokens[-1, 0]
        grams.append(x @ x.T / n)
    pre = dict(pre_norm=norm == "pre")
    block = (LAWS[attention](**pre), ResidualReluLayer(n, 0.5**0.5, 0.5**0.5, **pre))
    if norm == "post":
        block = (block[0], RMSNorm(n), block[1], RMSNorm(n))
    run = gram.simulate(
        start @ start.T / n, block, 2, paths=40 * networks, rng=rng
    ).states[-1]
    pairs = np.triu_indices(3)
    ours, theirs = (np.asarray(v)[:, *pairs] for v in (grams, run))
    for power in (1, 2):
        one, two = ours**power, theirs**power
        error = np.sqrt(one.var(axis=0) / len(one) + two.var(axis=0) / len(two))
        free = error > 1e-9  # the diagonal is 1 under "post"
        z = (one.mean(axis=0) - two.mean(axis=0))[free] / error[free]
        assert np.abs(z).max() < 4.5


def test_attention_does_what_its_name_says():
    for kind in ("softmax", "shaped", "sinkhorn"):
        trace = make(attention=kind, iterations=201).forward(X, trace=True)
        np.testing.assert_allclose(trace.weights.sum(axis=-1), 1, rtol=1e-12)
        columns = trace.weights.sum(axis=-2)
        doubly = np.allclose(columns, 1, rtol=0, atol=1e-9)
        assert doubly == (kind == "sinkhorn")
    far = make(attention="shaped", temperature=1e9).forward(X, trace=True)
    np.testing.assert_allclose(far.weights[0, 0, 0], np.eye(4), atol=1e-6)


def test_post_norm_keeps_tokens_on_a_sphere():
    tokens = make(norm="post").forward(X, trace=True).tokens
    np.testing.assert_allclose((tokens**2).mean(axis=-1), 1, rtol=1e-9)


def test_a_seed_gives_a_model_and_another_seed_another():
    one, same, other = make(3), make(3), make(4)
    assert one.forward(X).tobytes() == same.forward(X).tobytes()
    assert np.abs(one.forward(X) - other.forward(X)).min() > 1e-6
    a, b = (model.loss_and_gradient(X, [0, 1, 2])[1] for model in (one, same))
    assert all(a[name].tobytes() == b[name].tobytes() for name in a)


def test_replace_copies_and_changes_nothing_else():
    model = make()
    params = {name: 2 * array for name, array in model.params.items()}
    other = model.replace(params)
    params["query"][:] = np.nan
    assert np.isfinite(other.forward(X)).all() and other.plan == model.plan
    back = other.replace({name: array / 2 for name, array in other.params.items()})
    np.testing.assert_array_equal(back.forward(X), model.forward(X))
    assert (model.depth, model.width) == (2, 6)
    assert model.size == 6 * 2 * 36 + 3 * 6 + 4 * 6 + 6 * 3 + 3


def test_accuracy_counts_the_largest_logits():
    model = perceptron(features=2, hidden=0, classes=2, rng=np.random.default_rng(0))
    model = model.replace({"readout": np.eye(2), "bias": np.zeros(2)})
    x = [[1, 0], [0, 1], [3, 2], [0, 1]]
    assert model.accuracy(x, [0, 1, 0, 0]) == 0.75


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (dict(heads=4), "heads must divide the width 6, got 4"),
        (dict(classes=1), "classes must be an integer from 2 .* got 1"),
        (dict(attention="linear"), "attention must be one of .* got 'linear'"),
        (dict(norm=None), "norm must be one of pre, post, none, got None"),
        (dict(temperature=0), "temperature must be a positive .* got 0"),
        (dict(slopes=(0, 0)), r"slopes make the activation 0, got \(0, 0\)"),
        (dict(slopes=[1, 0]), r"slopes must be a pair .* got \[1, 0\]"),
        (dict(depth=0), "depth must be an integer from 1 .* got 0"),
        (dict(iterations=0), "iterations must be an integer from 1 .* got 0"),
    ],
)
def test_what_makes_no_model_is_named(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**changed)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0, 1, 3], r"labels must be integers from 0 to 2, but labels\[2\] is 3"),
        ([-1, 1, 2], r"labels must be .* labels\[0\] is -1"),
        ([0, 1.5, 2], r"labels must be .* labels\[1\] is 1.5"),
        ([0, 1], r"labels must have shape \(3,\).* got \(2,\)"),
        ([0, np.nan, 1], r"labels must be finite, but labels\[1\] is nan"),
    ],
)
def test_labels_that_are_no_classes_are_named(labels, sentence):
    for method in (make().loss_and_gradient, make().accuracy):
        with pytest.raises(ValueError, match=sentence):
            method(X, labels)


def test_images_that_do_not_fit_are_named():
    broken = X.copy()
    broken[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"x must be finite, but x\[1, 2, 0\] is nan"):
        make().forward(broken)
    for bad in (X[:, :3], X[..., :2], X[0], X[:0], X[None]):
        with pytest.raises(ValueError, match=r"x must have shape \(batch, 4, 3\), got"):
            make().forward(bad)
    flat = perceptron(features=6, hidden=2, classes=3, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"x must have shape \(batch, 6\), got"):
        flat.forward(X)


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
def test_images_beyond_the_float_range_are_named(norm):
    model, far = make(norm=norm), 1e300 * X
    with pytest.raises(OverflowError, match="x and params are too large"):
        model.forward(far)
    with pytest.raises(OverflowError, match="x and params are too large"):
        model.loss_and_gradient(far, [0, 1, 2])


def test_parameters_that_do_not_fit_are_named():
    model = make()
    with pytest.raises(ValueError, match="params must be a dict of embed, position"):
        model.replace({"embed": model.params["embed"]})
    with pytest.raises(ValueError, match="params must be a dict of .* got 3"):
        model.replace(3)
    for bad, sentence in [
        (np.zeros((2, 6, 5)), r"params\['key'\] must have shape \(2, 6, 6\), got"),
        (np.full((2, 6, 6), np.inf), r"params\['key'\] must be finite"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            model.replace({**model.params, "key": bad})
